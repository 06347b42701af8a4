// Every function of MLX's C++ API outside of ops.h, in each of its overloads with each number of arguments that it
// takes, and what it returns: compiled, not run. Kernels in source code, GGUF and MLX's own settings are not among
// them.
#include <iostream>
#include <type_traits>

#include "weft/weft.h"

using namespace weft;

namespace {

using Arrays = std::vector<array>;
/// Every one of the results has type R.
template <class R, class... T>
void are(const T&...) requires((std::is_same_v<R, T> && ...));

static_assert(requires(array a, uint64_t u, StreamOrDevice s, int i, float x, std::optional<array> o, Shape shape,
                       Dtype t) {  // random
  are<array>(random::key(u));
  are<array>(random::bits(shape, i), random::bits(shape, i, o), random::bits(shape, i, o, s), random::bits(shape),
             random::bits(shape, o), random::bits(shape, o, s));
  are<array>(random::split(a, i), random::split(a, i, s));
  are<array>(random::uniform(a, a, shape), random::uniform(a, a, shape, t), random::uniform(a, a, shape, t, o),
             random::uniform(a, a, shape, t, o, s), random::uniform(shape, t), random::uniform(shape, t, o),
             random::uniform(shape, t, o, s), random::uniform(shape), random::uniform(shape, o),
             random::uniform(shape, o, s));
  are<array>(random::normal(shape, t, o, o, o), random::normal(shape, t, o, o, o, s), random::normal(shape, t, x, x),
             random::normal(shape, t, x, x, o), random::normal(shape, t, x, x, o, s), random::normal(shape, x, x),
             random::normal(shape, x, x, o), random::normal(shape, x, x, o, s), random::normal(shape, t),
             random::normal(shape, t, o), random::normal(shape, t, o, s), random::normal(shape),
             random::normal(shape, o), random::normal(shape, o, s));
  are<array>(random::multivariate_normal(a, a, shape, t), random::multivariate_normal(a, a, shape, t, o),
             random::multivariate_normal(a, a, shape, t, o, s));
  are<array>(random::randint(a, a, shape), random::randint(a, a, shape, t), random::randint(a, a, shape, t, o),
             random::randint(a, a, shape, t, o, s));
  are<array>(random::bernoulli(a, shape), random::bernoulli(a, shape, o), random::bernoulli(a, shape, o, s),
             random::bernoulli(a), random::bernoulli(a, o), random::bernoulli(a, o, s), random::bernoulli(),
             random::bernoulli(o), random::bernoulli(o, s));
  are<array>(random::truncated_normal(a, a, shape), random::truncated_normal(a, a, shape, t),
             random::truncated_normal(a, a, shape, t, o), random::truncated_normal(a, a, shape, t, o, s),
             random::truncated_normal(a, a), random::truncated_normal(a, a, t), random::truncated_normal(a, a, t, o),
             random::truncated_normal(a, a, t, o, s));
  are<array>(random::gumbel(shape), random::gumbel(shape, t), random::gumbel(shape, t, o),
             random::gumbel(shape, t, o, s));
  are<array>(random::categorical(a, i, shape), random::categorical(a, i, shape, o),
             random::categorical(a, i, shape, o, s), random::categorical(a, i, i), random::categorical(a, i, i, o),
             random::categorical(a, i, i, o, s), random::categorical(a), random::categorical(a, i),
             random::categorical(a, i, o), random::categorical(a, i, o, s));
  are<array>(random::laplace(shape, t, x, x), random::laplace(shape, t, x, x, o), random::laplace(shape, t, x, x, o, s),
             random::laplace(shape, x, x), random::laplace(shape, x, x, o), random::laplace(shape, x, x, o, s),
             random::laplace(shape, t), random::laplace(shape, t, o), random::laplace(shape, t, o, s),
             random::laplace(shape), random::laplace(shape, o), random::laplace(shape, o, s));
  are<array>(random::permutation(a), random::permutation(a, i), random::permutation(a, i, o),
             random::permutation(a, i, o, s), random::permutation(i), random::permutation(i, o),
             random::permutation(i, o, s));
  random::seed(u);
  are<std::pair<array, array>>(random::split(a), random::split(a, s));
  are<array>(random::uniform(0.0f, 1.0f, shape), random::uniform(0.0, 1, shape, t, o, s), random::randint(0, i, shape),
             random::randint(0, i, shape, t, o, s));
  are<array>(random::bernoulli(x), random::bernoulli(x, shape), random::KeySequence::default_().next());
});

static_assert(requires(array a, StreamOrDevice s, int i, float x, bool yes, std::optional<array> o,
                       std::optional<float> ox, std::string text) {  // fast
  are<array>(fast::rms_norm(a, o, x), fast::rms_norm(a, o, x, s));
  are<array>(fast::layer_norm(a, o, o, x), fast::layer_norm(a, o, o, x, s));
  are<array>(fast::rope(a, i, yes, ox, x, i), fast::rope(a, i, yes, ox, x, i, o), fast::rope(a, i, yes, ox, x, i, o, s),
             fast::rope(a, i, yes, ox, x, a), fast::rope(a, i, yes, ox, x, a, o),
             fast::rope(a, i, yes, ox, x, a, o, s));
  are<array>(fast::scaled_dot_product_attention(a, a, a, x), fast::scaled_dot_product_attention(a, a, a, x, text),
             fast::scaled_dot_product_attention(a, a, a, x, text, o),
             fast::scaled_dot_product_attention(a, a, a, x, text, o, o),
             fast::scaled_dot_product_attention(a, a, a, x, text, o, o, yes),
             fast::scaled_dot_product_attention(a, a, a, x, text, o, o, yes, s));
});

static_assert(requires(array a, StreamOrDevice s, int i, int n, double d, std::vector<int> axes, Shape shape,
                       fft::FFTNorm norm) {  // fft
  are<array>(fft::fftn(a, shape, axes), fft::fftn(a, shape, axes, norm), fft::fftn(a, shape, axes, norm, s),
             fft::fftn(a, axes), fft::fftn(a, axes, norm), fft::fftn(a, axes, norm, s), fft::fftn(a),
             fft::fftn(a, norm), fft::fftn(a, norm, s));
  are<array>(fft::ifftn(a, shape, axes), fft::ifftn(a, shape, axes, norm), fft::ifftn(a, shape, axes, norm, s),
             fft::ifftn(a, axes), fft::ifftn(a, axes, norm), fft::ifftn(a, axes, norm, s), fft::ifftn(a),
             fft::ifftn(a, norm), fft::ifftn(a, norm, s));
  are<array>(fft::fft(a, i, i), fft::fft(a, i, i, norm), fft::fft(a, i, i, norm, s), fft::fft(a), fft::fft(a, i),
             fft::fft(a, i, norm), fft::fft(a, i, norm, s));
  are<array>(fft::ifft(a, i, i), fft::ifft(a, i, i, norm), fft::ifft(a, i, i, norm, s), fft::ifft(a), fft::ifft(a, i),
             fft::ifft(a, i, norm), fft::ifft(a, i, norm, s));
  are<array>(fft::fft2(a, shape, axes), fft::fft2(a, shape, axes, norm), fft::fft2(a, shape, axes, norm, s),
             fft::fft2(a), fft::fft2(a, axes), fft::fft2(a, axes, norm), fft::fft2(a, axes, norm, s));
  are<array>(fft::ifft2(a, shape, axes), fft::ifft2(a, shape, axes, norm), fft::ifft2(a, shape, axes, norm, s),
             fft::ifft2(a), fft::ifft2(a, axes), fft::ifft2(a, axes, norm), fft::ifft2(a, axes, norm, s));
  are<array>(fft::rfftn(a, shape, axes), fft::rfftn(a, shape, axes, norm), fft::rfftn(a, shape, axes, norm, s),
             fft::rfftn(a, axes), fft::rfftn(a, axes, norm), fft::rfftn(a, axes, norm, s), fft::rfftn(a),
             fft::rfftn(a, norm), fft::rfftn(a, norm, s));
  are<array>(fft::irfftn(a, shape, axes), fft::irfftn(a, shape, axes, norm), fft::irfftn(a, shape, axes, norm, s),
             fft::irfftn(a, axes), fft::irfftn(a, axes, norm), fft::irfftn(a, axes, norm, s), fft::irfftn(a),
             fft::irfftn(a, norm), fft::irfftn(a, norm, s));
  are<array>(fft::rfft(a, i, i), fft::rfft(a, i, i, norm), fft::rfft(a, i, i, norm, s), fft::rfft(a), fft::rfft(a, i),
             fft::rfft(a, i, norm), fft::rfft(a, i, norm, s));
  are<array>(fft::irfft(a, i, i), fft::irfft(a, i, i, norm), fft::irfft(a, i, i, norm, s), fft::irfft(a),
             fft::irfft(a, i), fft::irfft(a, i, norm), fft::irfft(a, i, norm, s));
  are<array>(fft::rfft2(a, shape, axes), fft::rfft2(a, shape, axes, norm), fft::rfft2(a, shape, axes, norm, s),
             fft::rfft2(a), fft::rfft2(a, axes), fft::rfft2(a, axes, norm), fft::rfft2(a, axes, norm, s));
  are<array>(fft::irfft2(a, shape, axes), fft::irfft2(a, shape, axes, norm), fft::irfft2(a, shape, axes, norm, s),
             fft::irfft2(a), fft::irfft2(a, axes), fft::irfft2(a, axes, norm), fft::irfft2(a, axes, norm, s));
  are<array>(fft::fftfreq(i), fft::fftfreq(i, d), fft::fftfreq(i, d, s));
  are<array>(fft::rfftfreq(i), fft::rfftfreq(i, d), fft::rfftfreq(i, d, s));
  are<array>(fft::fftshift(a), fft::fftshift(a, s), fft::fftshift(a, axes), fft::fftshift(a, axes, s));
  are<array>(fft::ifftshift(a), fft::ifftshift(a, s), fft::ifftshift(a, axes), fft::ifftshift(a, axes, s));
});

static_assert(requires(array a, StreamOrDevice s, int i, double d, bool yes, std::string text,
                       std::optional<std::vector<int>> oaxes, std::vector<int> axes) {  // linalg
  are<array>(linalg::norm(a, d), linalg::norm(a, d, oaxes), linalg::norm(a, d, oaxes, yes),
             linalg::norm(a, d, oaxes, yes, s), linalg::norm(a, d, i), linalg::norm(a, d, i, yes),
             linalg::norm(a, d, i, yes, s), linalg::norm(a, text), linalg::norm(a, text, oaxes),
             linalg::norm(a, text, oaxes, yes), linalg::norm(a, text, oaxes, yes, s), linalg::norm(a, text, i),
             linalg::norm(a, text, i, yes), linalg::norm(a, text, i, yes, s), linalg::norm(a), linalg::norm(a, oaxes),
             linalg::norm(a, oaxes, yes), linalg::norm(a, oaxes, yes, s), linalg::norm(a, i), linalg::norm(a, i, yes),
             linalg::norm(a, i, yes, s));
  are<array>(linalg::inv(a), linalg::inv(a, s));
  are<array>(linalg::tri_inv(a), linalg::tri_inv(a, yes), linalg::tri_inv(a, yes, s));
  are<array>(linalg::cholesky(a), linalg::cholesky(a, yes), linalg::cholesky(a, yes, s));
  are<array>(linalg::pinv(a), linalg::pinv(a, s));
  are<array>(linalg::cholesky_inv(a), linalg::cholesky_inv(a, yes), linalg::cholesky_inv(a, yes, s));
  are<array>(linalg::solve(a, a), linalg::solve(a, a, s));
  are<array>(linalg::solve_triangular(a, a), linalg::solve_triangular(a, a, yes),
             linalg::solve_triangular(a, a, yes, s));
  are<array>(linalg::cross(a, a), linalg::cross(a, a, i), linalg::cross(a, a, i, s));
  are<array>(linalg::eigvals(a), linalg::eigvals(a, s));
  are<array>(linalg::eigvalsh(a), linalg::eigvalsh(a, text), linalg::eigvalsh(a, text, s));
  are<array>(linalg::det(a), linalg::det(a, s));
  are<std::pair<array, array>>(linalg::qr(a), linalg::qr(a, s));
  are<std::pair<array, array>>(linalg::lu_factor(a), linalg::lu_factor(a, s));
  are<std::pair<array, array>>(linalg::eig(a), linalg::eig(a, s));
  are<std::pair<array, array>>(linalg::eigh(a), linalg::eigh(a, text), linalg::eigh(a, text, s));
  are<std::pair<array, array>>(linalg::slogdet(a), linalg::slogdet(a, s));
  are<Arrays>(linalg::svd(a, yes, s), linalg::svd(a), linalg::svd(a, s));
  are<Arrays>(linalg::lu(a), linalg::lu(a, s));
});

static_assert(requires(Arrays v, StreamOrDevice s, std::string text, std::vector<std::string> texts) {  // einsum
  are<std::pair<std::vector<std::vector<int>>, std::string>>(einsum_path(text, v));
  are<array>(einsum(text, v), einsum(text, v, s));
});

static_assert(requires(array a, Arrays v, int i, std::vector<int> axes, ArrayFunction f, ScalarFunction fs,
                       UnaryFunction f1, BinaryFunction f2, std::optional<CustomVjp> fun_vjp,
                       std::optional<CustomJvp> fun_jvp, std::optional<CustomVmap> fun_vmap,
                       CustomVjp vjp_rule) {  // transforms
  async_eval(v);
  eval(v);
  are<std::pair<Arrays, Arrays>>(vjp(f, v, v));
  are<std::pair<Arrays, Arrays>>(jvp(f, v, v));
  are<std::pair<array, array>>(vjp(f1, a, a));
  are<std::pair<array, array>>(jvp(f1, a, a));
  are<ValueAndGradFn>(value_and_grad(f, axes));
  value_and_grad(f);
  value_and_grad(f, i);
  value_and_grad(f1);
  value_and_grad(fs, axes);
  value_and_grad(fs);
  value_and_grad(fs, i);
  grad(fs, axes);
  grad(fs);
  grad(fs, i);
  grad(f1);
  are<UnaryFunction>(vmap(f1), vmap(f1, i), vmap(f1, i, i));
  are<BinaryFunction>(vmap(f2), vmap(f2, i), vmap(f2, i, i), vmap(f2, i, i, i));
  are<ArrayFunction>(vmap(f), vmap(f, axes), vmap(f, axes, axes));
  are<ArrayFunction>(custom_function(f), custom_function(f, fun_vjp), custom_function(f, fun_vjp, fun_jvp),
                     custom_function(f, fun_vjp, fun_jvp, fun_vmap));
  are<ArrayFunction>(custom_vjp(f, vjp_rule));
  are<ArrayFunction>(checkpoint(f));
});

static_assert(requires(ArrayFunction f, Arrays (*pointer)(const Arrays&), bool yes, CompileMode mode) {  // compile
  are<ArrayFunction>(compile(f), compile(f, yes), compile(pointer), compile(pointer, yes));
  disable_compile();
  enable_compile();
  set_compile_mode(mode);
});

static_assert(requires(std::string text, ExportCallback callback, ArrayFunction f, KwargsFunction fk,
                       ArgsKwargsFunction fb, Args v, Kwargs named, bool yes) {  // export
  are<FunctionExporter>(exporter(text, f), exporter(text, f, yes), exporter(text, f, yes, text), exporter(text, fk),
                        exporter(text, fk, yes), exporter(text, fk, yes, text), exporter(text, fb),
                        exporter(text, fb, yes), exporter(text, fb, yes, text), exporter(callback, f),
                        exporter(callback, f, yes), exporter(callback, fk), exporter(callback, fk, yes),
                        exporter(callback, fb), exporter(callback, fb, yes));
  export_function(text, f, v);
  export_function(text, f, v, yes);
  export_function(text, f, v, yes, text);
  export_function(text, fk, named);
  export_function(text, fk, named, yes);
  export_function(text, fk, named, yes, text);
  export_function(text, fb, v, named);
  export_function(text, fb, v, named, yes);
  export_function(text, fb, v, named, yes, text);
  export_function(callback, f, v);
  export_function(callback, f, v, yes);
  export_function(callback, fk, named);
  export_function(callback, fk, named, yes);
  export_function(callback, fb, v, named);
  export_function(callback, fb, v, named, yes);
  are<ImportedFunction>(import_function(text));
});

static_assert(requires(array a, StreamOrDevice s, std::string text, std::shared_ptr<io::Reader> reader,
                       std::shared_ptr<io::Writer> writer, std::unordered_map<std::string, array> named,
                       std::unordered_map<std::string, std::string> texts_by_name,
                       std::unordered_map<std::string, GGUFMetaData> values) {  // io
  save(writer, a);
  save(text, a);
  save_safetensors(writer, named);
  save_safetensors(writer, named, texts_by_name);
  save_safetensors(text, named);
  save_safetensors(text, named, texts_by_name);
  save_gguf(text, named);
  save_gguf(text, named, values);
  are<GGUFLoad>(load_gguf(text), load_gguf(text, s));
  are<array>(load(reader), load(reader, s), load(text), load(text, s));
  are<SafetensorsLoad>(load_safetensors(reader), load_safetensors(reader, s), load_safetensors(text),
                       load_safetensors(text, s));
});

static_assert(requires(size_t n) {  // memory
  are<size_t>(get_active_memory());
  are<size_t>(get_peak_memory());
  are<size_t>(get_cache_memory());
  are<size_t>(set_memory_limit(n));
  are<size_t>(get_memory_limit());
  are<size_t>(set_cache_limit(n));
  are<size_t>(set_wired_limit(n));
  reset_peak_memory();
  clear_cache();
});

static_assert(requires(Device device, Device::DeviceType kind) {  // device
  are<Device>(default_device());
  set_default_device(device);
  are<bool>(is_available(device));
  are<int>(device_count(kind));
  are<std::unordered_map<std::string, std::variant<std::string, size_t>>>(device_info(), device_info(device));
  are<bool>(gpu::is_available(), cu::is_available(), metal::is_available(), device == kind, device == device,
            device < device);
  are<int>(gpu::device_count());
  are<DeviceInfo>(gpu::device_info(), gpu::device_info(1), cu::device_info(), cu::device_info(1), metal::device_info());
  are<std::string>(metal::get_metallib_path());
  metal::start_capture();
  metal::start_capture("path");
  metal::stop_capture();
  metal::set_metallib_path("path");
  version();
});

static_assert(requires(Device device, Stream stream, ThreadLocalStream local) {  // stream
  are<Stream>(default_stream(device));
  are<Stream>(new_stream(device));
  are<Stream>(new_thread_unsafe_stream(device));
  are<Stream>(stream_from_thread_local_stream(local));
  set_default_stream(stream);
  synchronize();
  synchronize(stream);
  synchronize(local);
  clear_streams();
  are<ThreadLocalStream>(new_thread_local_stream(device));
  are<std::vector<Stream>>(get_streams());
});

static_assert(requires(array a, Arrays v, StreamOrDevice s, Device device, std::ostream& os, bool yes, int i,
                       Shape shape, std::string text, PrintOptions options, PrintFormatter formatter,
                       const char* pointer_text) {  // utils
  are<Stream>(to_stream(s), to_stream(s, device));
  formatter.print(os, yes);
  set_printoptions(options);
  are<PrintFormatter>(get_global_formatter());
  are<Dtype>(result_type(a, a), result_type(a, a, a), result_type(v));
  are<Shape>(broadcast_shapes(shape, shape));
  are<int>(normalize_axis_index(i, i), normalize_axis_index(i, i, text));
  are<int>(next_power_of_2(i));
  are<bool>(is_power_of_2(i));
  are<int>(env::get_var(pointer_text, i));
  are<std::string>(env::get_var(pointer_text, pointer_text));
  are<bool>(is_main_thread());
});

static_assert(requires(array a, Arrays v, std::ostream& os, NodeNamer namer) {  // graph_utils
  print_graph(os, namer, v);
  print_graph(os, v);
  print_graph(os, a, a);
  print_graph(os, namer, a, a);
  export_to_dot(os, namer, v);
  export_to_dot(os, v);
  export_to_dot(os, a, a);
  export_to_dot(os, namer, a, a);
});

}  // namespace
