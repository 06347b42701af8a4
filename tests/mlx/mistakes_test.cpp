// Mistakes throw the class of exception that MLX throws: tests/mlx/generate/mistakes.py.
#include <doctest/doctest.h>

#include <fstream>
#include <limits>
#include <map>

#include "io/folder.h"
#include "mlx/assertions.h"
#include "mlx/differences.h"
#include "weft/compile.h"
#include "weft/einsum.h"
#include "weft/fast.h"
#include "weft/fft.h"
#include "weft/io.h"
#include "weft/linalg.h"
#include "weft/nn/losses.h"
#include "weft/ops.h"
#include "weft/random.h"

namespace weft::test {
namespace {

using V = std::vector<int>;
using Mistake = std::pair<std::string, std::function<Arrays()>>;

// Arguments of the mistakes; what they hold does not matter.
const array a = ones({3, 4}), b = ones({5, 6}), v = ones({4}), i({0, 1}), s(2.0f), none = zeros({0, 3}), m = eye(3);
array cube() { return ones({2, 2, 2}); }

std::vector<Mistake> axes() {
  using F = array (*)(const array&, int);
  using A = const array&;
  const std::pair<const char*, F> functions[] = {{"sum", [](A x, int n) { return sum(x, n); }},
                                                 {"prod", [](A x, int n) { return prod(x, n); }},
                                                 {"mean", [](A x, int n) { return mean(x, n); }},
                                                 {"max", [](A x, int n) { return max(x, n); }},
                                                 {"min", [](A x, int n) { return min(x, n); }},
                                                 {"all", [](A x, int n) { return all(x, n); }},
                                                 {"any", [](A x, int n) { return any(x, n); }},
                                                 {"var", [](A x, int n) { return var(x, n); }},
                                                 {"std", [](A x, int n) { return std(x, n); }},
                                                 {"logsumexp", [](A x, int n) { return logsumexp(x, n); }},
                                                 {"argmax", [](A x, int n) { return argmax(x, n); }},
                                                 {"argmin", [](A x, int n) { return argmin(x, n); }},
                                                 {"softmax", [](A x, int n) { return softmax(x, n); }},
                                                 {"cumsum", [](A x, int n) { return cumsum(x, n); }},
                                                 {"cumprod", [](A x, int n) { return cumprod(x, n); }},
                                                 {"cummax", [](A x, int n) { return cummax(x, n); }},
                                                 {"logcumsumexp", [](A x, int n) { return logcumsumexp(x, n); }},
                                                 {"sort", [](A x, int n) { return sort(x, n); }},
                                                 {"argsort", [](A x, int n) { return argsort(x, n); }},
                                                 {"median", [](A x, int n) { return median(x, n); }}};
  std::vector<Mistake> all;
  for (const auto& [name, f] : functions) {
    all.emplace_back(std::string(name) + " axis", [f = f] { return Arrays{f(a, 2)}; });
    all.emplace_back(std::string(name) + " negative axis", [f = f] { return Arrays{f(a, -3)}; });
  }
  return all;
}

const std::vector<Mistake> shapes = {
    {"add of shapes that do not broadcast", [] { return Arrays{a + b}; }},
    {"where of shapes that do not broadcast", [] { return Arrays{where(a > 0, b, v)}; }},
    {"broadcast_to",
     [] {
       return Arrays{broadcast_to(a, {3, 5})};
     }},
    {"broadcast_to fewer axes", [] { return Arrays{broadcast_to(a, {4})}; }},
    {"broadcast_arrays",
     [] {
       return broadcast_arrays({a, b});
     }},
    {"bitwise_and of floats", [] { return Arrays{bitwise_and(a, a)}; }},
    {"left_shift of floats", [] { return Arrays{left_shift(a, a)}; }},
    {"bitwise_invert of floats", [] { return Arrays{bitwise_invert(a)}; }},
    {"negative of bools", [] { return Arrays{negative(a > 0)}; }},
    {"clip without bounds", [] { return Arrays{clip(a)}; }},
    {"sum axes twice",
     [] {
       return Arrays{sum(a, V{0, 0})};
     }},
    {"max of nothing", [] { return Arrays{max(none, 0)}; }},
    {"argmin of nothing", [] { return Arrays{argmin(none, 0)}; }},
    {"partition axis", [] { return Arrays{partition(a, 1, 4)}; }},
    {"partition place", [] { return Arrays{partition(a, 9, 1)}; }},
    {"topk too many", [] { return Arrays{topk(a, 5, 1)}; }},
    {"searchsorted of a matrix", [] { return Arrays{searchsorted(a, v)}; }},
    {"reshape size",
     [] {
       return Arrays{reshape(a, {5, 2})};
     }},
    {"reshape two unknown",
     [] {
       return Arrays{reshape(a, {-1, -1})};
     }},
    {"reshape unknown does not divide",
     [] {
       return Arrays{reshape(a, {5, -1})};
     }},
    {"flatten axes", [] { return Arrays{flatten(a, 1, 0)}; }},
    {"unflatten size",
     [] {
       return Arrays{unflatten(a, 1, {3, 2})};
     }},
    {"unflatten axis",
     [] {
       return Arrays{unflatten(a, 5, {2, 2})};
     }},
    {"squeeze of a longer axis", [] { return Arrays{squeeze(a, 0)}; }},
    {"squeeze axis", [] { return Arrays{squeeze(a, 3)}; }},
    {"expand_dims axis", [] { return Arrays{expand_dims(a, 5)}; }},
    {"expand_dims twice",
     [] {
       return Arrays{expand_dims(a, V{0, 0})};
     }},
    {"transpose number of axes", [] { return Arrays{transpose(a, V{0})}; }},
    {"transpose twice",
     [] {
       return Arrays{transpose(a, V{0, 0})};
     }},
    {"transpose axis",
     [] {
       return Arrays{transpose(a, V{0, 3})};
     }},
    {"swapaxes axis", [] { return Arrays{swapaxes(a, 0, 2)}; }},
    {"moveaxis axis", [] { return Arrays{moveaxis(a, 2, 0)}; }},
    {"flip axis", [] { return Arrays{flip(a, 2)}; }},
    {"roll axis", [] { return Arrays{roll(a, 1, 2)}; }},
    {"diagonal of a vector", [] { return Arrays{diagonal(v)}; }},
    {"diagonal axes", [] { return Arrays{diagonal(a, 0, 0, 3)}; }},
    {"diag of three axes", [] { return Arrays{diag(cube())}; }},
    {"tril of a vector", [] { return Arrays{tril(v)}; }},
    {"trace of a vector", [] { return Arrays{trace(v)}; }},
    {"concatenate nothing", [] { return Arrays{concatenate(Arrays{})}; }},
    {"concatenate lengths",
     [] {
       return Arrays{concatenate({a, b})};
     }},
    {"concatenate axis",
     [] {
       return Arrays{concatenate({a, a}, 2)};
     }},
    {"concatenate one array", [] { return Arrays{concatenate({a}, 5)}; }},
    {"stack nothing", [] { return Arrays{stack(Arrays{})}; }},
    {"stack shapes",
     [] {
       return Arrays{stack({a, v})};
     }},
    {"stack axis",
     [] {
       return Arrays{stack({a, a}, 4)};
     }},
    {"split does not divide", [] { return split(a, 3, 1); }},
    {"split axis", [] { return split(a, 2, 2); }},
    {"repeat axis", [] { return Arrays{repeat(a, 2, 3)}; }},
    {"repeat negative", [] { return Arrays{repeat(a, -1, 0)}; }},
    {"pad negative", [] { return Arrays{pad(a, -1)}; }},
    {"pad mode", [] { return Arrays{pad(a, 1, array(0), "round")}; }},
    {"meshgrid indexing",
     [] {
       return meshgrid({v, v}, false, "xyz");
     }},
    {"zeros negative",
     [] {
       return Arrays{zeros({-1, 2})};
     }},
    {"eye negative", [] { return Arrays{eye(-1)}; }},
    {"arange without a step", [] { return Arrays{arange(0.0, 1.0, 0.0)}; }},
    {"arange of NaN", [] { return Arrays{arange(std::numeric_limits<double>::quiet_NaN())}; }},
    {"linspace negative", [] { return Arrays{linspace(0, 1, -1)}; }},
    {"as_strided lengths",
     [] {
       return Arrays{as_strided(a, {2, 2}, {1}, 0)};
     }},
    {"view width", [] { return Arrays{view(astype(m, float16), float32)}; }},
};

const std::vector<Mistake> indices = {
    {"take axis", [] { return Arrays{take(a, i, 2)}; }},
    {"take by floats", [] { return Arrays{take(a, v, 0)}; }},
    {"take_along_axis ranks", [] { return Arrays{take_along_axis(a, i, 0)}; }},
    {"take_along_axis axis",
     [] {
       return Arrays{take_along_axis(a, zeros({3, 4}, int32), 2)};
     }},
    {"put_along_axis ranks", [] { return Arrays{put_along_axis(a, i, s, 0)}; }},
    {"slice_update shape",
     [] {
       return Arrays{slice_update(a, b, i, V{0, 1})};
     }},
};

const std::vector<Mistake> products = {
    {"matmul lengths", [] { return Arrays{matmul(a, b)}; }},
    {"matmul of a number", [] { return Arrays{matmul(a, s)}; }},
    {"matmul of integers",
     [] {
       return Arrays{matmul(ones({2, 2}, int32), ones({2, 2}, int32))};
     }},
    {"addmm shape", [] { return Arrays{addmm(b, a, transpose(a))}; }},
    {"inner lengths", [] { return Arrays{inner(a, m)}; }},
    {"tensordot lengths", [] { return Arrays{tensordot(a, b, 1)}; }},
    {"vecdot lengths", [] { return Arrays{vecdot(a, m)}; }},
    {"einsum letters", [] { return Arrays{einsum("ij,jk", {a})}; }},
    {"einsum rank", [] { return Arrays{einsum("ijk->i", {a})}; }},
    {"einsum lengths",
     [] {
       return Arrays{einsum("ij,jk->ik", {a, a})};
     }},
    {"hadamard length", [] { return Arrays{hadamard_transform(ones({7}))}; }},
    {"conv1d rank", [] { return Arrays{conv1d(v, v)}; }},
    {"conv1d channels",
     [] {
       return Arrays{conv1d(ones({1, 5, 3}), ones({2, 3, 4}))};
     }},
    {"conv2d groups",
     [] {
       return Arrays{conv2d(ones({1, 5, 5, 3}), ones({2, 3, 3, 3}), {1, 1}, {0, 0}, {1, 1}, 2)};
     }},
    {"conv1d stride",
     [] {
       return Arrays{conv1d(ones({1, 5, 3}), ones({2, 3, 3}), 0)};
     }},
    {"inv of a row", [] { return Arrays{linalg::inv(a)}; }},
    {"inv of integers",
     [] {
       return Arrays{linalg::inv(ones({2, 2}, int32))};
     }},
    {"inv of a vector", [] { return Arrays{linalg::inv(v)}; }},
    {"cholesky of a row", [] { return Arrays{linalg::cholesky(a)}; }},
    {"solve lengths",
     [] {
       return Arrays{linalg::solve(m, ones({4, 2}))};
     }},
    {"qr of a vector", [] { return Arrays{linalg::qr(v).first}; }},
    {"svd of a vector", [] { return linalg::svd(v); }},
    {"eigh UPLO", [] { return Arrays{linalg::eigh(m, "X").first}; }},
    {"eigh of a row", [] { return Arrays{linalg::eigvalsh(a)}; }},
    {"norm order", [] { return Arrays{linalg::norm(m, "what")}; }},
    {"norm axes",
     [] {
       return Arrays{linalg::norm(cube(), 2.0, V{0, 1, 2})};
     }},
    {"norm axis", [] { return Arrays{linalg::norm(m, 3)}; }},
    {"cross length", [] { return Arrays{linalg::cross(ones({5}), ones({5}))}; }},
    {"det of a row", [] { return Arrays{linalg::det(a)}; }},
    {"fft of a number", [] { return Arrays{fft::fft(s)}; }},
    {"fft axis", [] { return Arrays{fft::fft(a, 3)}; }},
    {"fft length", [] { return Arrays{fft::fft(a, 0, -1)}; }},
    {"fft2 of a vector", [] { return Arrays{fft::fft2(v)}; }},
    {"fftn lengths",
     [] {
       return Arrays{fft::fftn(a, {2}, {0, 1})};
     }},
    {"rfft of complex", [] { return Arrays{fft::rfft(fft::fft(a))}; }},
    {"fftshift axis", [] { return Arrays{fft::fftshift(a, V{3})}; }},
    {"fftfreq", [] { return Arrays{fft::fftfreq(0)}; }},
    {"fftfreq distance", [] { return Arrays{fft::fftfreq(4, 0)}; }},
    {"rfftfreq distance", [] { return Arrays{fft::rfftfreq(4, 0)}; }},
    {"kron of nothing",
     [] {
       return Arrays{kron(zeros({0, 3}), m)};
     }},
    {"det of complex", [] { return Arrays{linalg::det(astype(m, complex64))}; }},
    {"from_fp8 of integers", [] { return Arrays{from_fp8(i)}; }},
};

ArrayFunction doubled() {
  return [](const Arrays& x) { return Arrays{x[0] * 2}; };
}

array watched(const array& x) {
  const array y = x * 2;
  async_eval(y);
  return sum(y);
}

array product_of_chosen(const Arrays& in) {
  return sum(gather_mm(in[0], in[0], std::nullopt, in.size() > 1 ? in[1] : argmax(take(in[0], 0, 1), 1)));
}

const std::vector<Mistake> functions = {
    {"uniform dtype", [] { return Arrays{random::uniform({2}, int32)}; }},
    {"uniform bounds", [] { return Arrays{random::uniform(v, v, {3})}; }},
    {"uniform key dtype", [] { return Arrays{random::uniform({2}, float32, i)}; }},
    {"uniform key shape", [] { return Arrays{random::uniform({2}, float32, zeros({3}, uint32))}; }},
    {"normal dtype", [] { return Arrays{random::normal({2}, int32)}; }},
    {"normal negative", [] { return Arrays{random::normal({-2})}; }},
    {"randint of floats", [] { return Arrays{random::randint(array(0), array(3), {2}, float32)}; }},
    {"bernoulli of integers", [] { return Arrays{random::bernoulli(i)}; }},
    {"categorical axis", [] { return Arrays{random::categorical(a, 4)}; }},
    {"permutation axis", [] { return Arrays{random::permutation(a, 3)}; }},
    {"layer_norm weight", [] { return Arrays{fast::layer_norm(a, ones({3}), std::nullopt, 1e-5f)}; }},
    {"layer_norm of a number", [] { return Arrays{fast::layer_norm(s, std::nullopt, std::nullopt, 1e-5f)}; }},
    {"rope rank", [] { return Arrays{fast::rope(v, 4, false, 10.0f, 1.0f, 0)}; }},
    {"attention rank", [] { return Arrays{fast::scaled_dot_product_attention(a, a, a, 1.0f)}; }},
    {"attention width",
     [] {
       return Arrays{
           fast::scaled_dot_product_attention(ones({1, 2, 3, 4}), ones({1, 2, 3, 5}), ones({1, 2, 3, 5}), 1.0f)};
     }},
    {"attention mode",
     [] {
       return Arrays{fast::scaled_dot_product_attention(ones({1, 2, 3, 4}), ones({1, 2, 3, 4}), ones({1, 2, 3, 4}),
                                                        1.0f, "acausal")};
     }},
    {"grad of an array", [] { return Arrays{grad(UnaryFunction([](const array& x) { return x * 2; }))(a)}; }},
    {"grad by integers", [] { return Arrays{grad(UnaryFunction([](const array& x) { return sum(x); }))(i)}; }},
    {"grad argument", [] { return grad(ScalarFunction([](const Arrays& x) { return sum(x[0]); }), 1)({a}); }},
    {"gather_mm by indices",
     [] {
       return grad(ScalarFunction(product_of_chosen), V{0, 1})({ones({2, 2, 2}), i});
     }},
    {"gather_mm by computed indices",
     [] {
       return grad(ScalarFunction(product_of_chosen))({ones({2, 2, 2})});
     }},
    {"async_eval in grad", [] { return Arrays{grad(UnaryFunction(watched))(v)}; }},
    {"async_eval in vmap", [] { return Arrays{vmap(UnaryFunction(watched))(a)}; }},
    {"async_eval in compile", [] { return compile([](const Arrays& in) { return Arrays{watched(in[0])}; })({v}); }},
    {"vjp cotangents", [] { return vjp(doubled(), {a}, {v}).first; }},
    {"vjp number of cotangents", [] { return vjp(doubled(), {a}, Arrays{}).first; }},
    {"jvp tangents", [] { return jvp(doubled(), {a}, {v}).first; }},
    {"vmap axis", [] { return vmap(doubled(), {3})({a}); }},
    {"vmap lengths",
     [] { return Arrays{vmap(BinaryFunction([](const array& x, const array& y) { return x + y; }))(a, b)}; }},
    {"vmap of a number", [] { return vmap(doubled())({s}); }},
    {"item of more", [] { return Arrays{array(a.item<float>())}; }},
    {"to_fp8 of integers", [] { return Arrays{to_fp8(i)}; }},
    {"erf of complex", [] { return Arrays{erf(fft::fft(v))}; }},
    {"floor of complex", [] { return Arrays{floor(fft::fft(v))}; }},
    {"cross_entropy shapes", [] { return Arrays{nn::losses::cross_entropy(a, zeros({5}, int32))}; }},
    {"mse_loss shapes", [] { return Arrays{nn::losses::mse_loss(a, v)}; }},
};

// Whether what happened is what MLX does, or is listed as different.
void check(const std::string& title, const std::string& expected, const std::function<Arrays()>& call, size_t& agree) {
  std::string message, threw = thrown_by([&] { eval(call()); }, &message);
  agree += threw == expected;
  auto name = [](const std::string& c) { return c.empty() ? std::string("nothing") : c; };
  if ((threw == expected) == is_listed(title))
    FAIL_CHECK(title << " throws " << name(threw) << " (" << message << "), MLX " << name(expected));
}

}  // namespace

TEST_CASE("mistakes throw MLX's class of exception") {
  Golden golden("mistakes");
  std::map<std::string, std::function<Arrays()>> all;
  for (const auto& more : {axes(), shapes, indices, products, functions}) all.insert(more.begin(), more.end());
  size_t agree = 0, tried = 0;
  for (const Case& c : golden.cases()) {
    if (!c.name.starts_with("mistake/")) continue;
    auto found = all.find(c.name.substr(8));
    REQUIRE_MESSAGE(found != all.end(), c.name);
    check(c.name, c.throws, found->second, agree);
    all.erase(found), ++tried;
  }
  for (const auto& [name, f] : all) FAIL_CHECK(name << " is not in the file");
  MESSAGE(agree << " of " << tried << " mistakes");
}

TEST_CASE("broken files throw MLX's class of exception") {
  Golden golden("mistakes");
  Folder folder;
  size_t agree = 0, tried = 0;
  for (const Case& c : golden.cases()) {
    if (!c.name.starts_with("file/")) continue;
    std::string path = folder / c.name.substr(5);
    if (!c.in.empty()) {
      array bytes = c.in[0].make();
      std::ofstream(path, std::ios::binary)
          .write(static_cast<const char*>(bytes.raw_data()), static_cast<std::streamsize>(bytes.nbytes()));
    }
    check(
        c.name, c.throws,
        [&] {
          if (path.ends_with(".npy")) return Arrays{load(path)};
          Arrays loaded;
          for (const auto& [name, value] : load_safetensors(path).first) loaded.push_back(value);
          return loaded;
        },
        agree);
    ++tried;
  }
  MESSAGE(agree << " of " << tried << " files");
}

}  // namespace weft::test
