// The C interface: statuses and messages, handles, lists, functions and their transforms, files.
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "weft/c.h"

namespace {

constexpr weft_stream here = {};

/// An array that frees its handle.
struct Array {
  weft_array a = nullptr;
  Array() = default;
  Array(const std::vector<float>& values, std::vector<int64_t> shape) {
    REQUIRE(weft_array_new(&a, values.data(), shape.data(), shape.size(), WEFT_FLOAT32) == WEFT_OK);
  }
  explicit Array(const std::vector<float>& values) : Array(values, {static_cast<int64_t>(values.size())}) {}
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { weft_array_free(a); }
  operator weft_array() const { return a; }
  std::vector<float> values() const {
    const void* data = nullptr;
    REQUIRE(weft_array_dtype(a) == WEFT_FLOAT32);
    REQUIRE(weft_array_data(&data, a) == WEFT_OK);
    const auto* first = static_cast<const float*>(data);
    return {first, first + weft_array_size(a)};
  }
};

struct List {
  weft_arrays l = nullptr;
  List() = default;
  List(std::initializer_list<weft_array> items) {
    REQUIRE(weft_arrays_new(&l, items.begin(), items.size()) == WEFT_OK);
  }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() { weft_arrays_free(l); }
  std::vector<float> values(size_t k) const {
    Array a;
    REQUIRE(weft_arrays_get(&a.a, l, k) == WEFT_OK);
    return a.values();
  }
};

struct Function {
  weft_function f = nullptr;
  Function() = default;
  Function(weft_callback callback, void* context = nullptr, void (*release)(void*) = nullptr) {
    REQUIRE(weft_function_new(&f, callback, context, release) == WEFT_OK);
  }
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;
  ~Function() { weft_function_free(f); }
};

/// Appends x · x · x of the first argument.
weft_status cube(weft_arrays results, weft_arrays arguments, void*) {
  Array x, square, out;
  weft_arrays_get(&x.a, arguments, 0);
  if (const weft_status s = weft_multiply(&square.a, x, x, here)) return s;
  if (const weft_status s = weft_multiply(&out.a, square, x, here)) return s;
  return weft_arrays_append(results, out);
}

weft_status total_of_cubes(weft_arrays results, weft_arrays arguments, void* context) {
  List all;
  weft_arrays_new(&all.l, nullptr, 0);
  if (const weft_status s = cube(all.l, arguments, context)) return s;
  Array x, out;
  weft_arrays_get(&x.a, all.l, 0);
  if (const weft_status s = weft_sum(&out.a, x, here)) return s;
  return weft_arrays_append(results, out);
}

using Values = std::vector<float>;

}  // namespace

TEST_CASE("complex numbers of C, of both widths") {
  Array narrow, wide, copy;
  REQUIRE(weft_array_new_complex(&narrow.a, 0.1f, -2) == WEFT_OK);
  REQUIRE(weft_array_new_complex128(&wide.a, 0.1, -2) == WEFT_OK);
  CHECK(weft_array_dtype(narrow) == WEFT_COMPLEX64);
  CHECK(weft_array_dtype(wide) == WEFT_COMPLEX128);
  CHECK(weft_dtype_size(WEFT_COMPLEX128) == 16);
  CHECK(std::string(weft_dtype_name(WEFT_COMPLEX128)) == "complex128");
  const void* data = nullptr;
  REQUIRE(weft_array_data(&data, wide) == WEFT_OK);
  CHECK(static_cast<const double*>(data)[0] == 0.1);
  CHECK(static_cast<const double*>(data)[1] == -2);
  const double parts[] = {0.1, 1e300, 3, 4};
  const int64_t two = 2;
  REQUIRE(weft_array_new(&copy.a, parts, &two, 1, WEFT_COMPLEX128) == WEFT_OK);
  REQUIRE(weft_array_data(&data, copy) == WEFT_OK);
  CHECK(std::memcmp(data, parts, sizeof parts) == 0);
}

TEST_CASE("arrays of C hold what they were made of") {
  const Array x({1, 2, 3, 4, 5, 6}, {2, 3});
  CHECK(weft_array_ndim(x) == 2);
  CHECK(weft_array_dim(x, 1) == 3);
  CHECK(weft_array_dim(x, 2) == -1);
  CHECK(weft_array_size(x) == 6);
  CHECK(weft_array_nbytes(x) == 24);
  Array sums, copy;
  REQUIRE(weft_sum_axis(&sums.a, x, -1, true, here) == WEFT_OK);
  CHECK(sums.values() == Values{6, 15});
  REQUIRE(weft_array_copy(&copy.a, sums) == WEFT_OK);
  CHECK(copy.values() == sums.values());
  char* text = nullptr;
  REQUIRE(weft_array_text(&text, sums) == WEFT_OK);
  CHECK(std::string(text) == "array([[6],\n       [15]], dtype=float32)");
  weft_text_free(text);
  int freed = 0;
  alignas(64) static float memory[] = {1, 2};
  {
    Array managed;
    const int64_t length = 2;
    REQUIRE(weft_array_new_managed(
                &managed.a, memory, &length, 1, WEFT_FLOAT32, [](void* count) { ++*static_cast<int*>(count); },
                &freed) == WEFT_OK);
    CHECK(managed.values() == Values{1, 2});
  }
  CHECK(freed == 1);
}

TEST_CASE("mistakes in C are statuses with messages, and write no result") {
  const Array x({1, 2, 3}), y({1, 2});
  weft_array out = nullptr;
  CHECK(weft_add(&out, x, y, here) == WEFT_INVALID_ARGUMENT);
  CHECK(std::string(weft_error_message()).find("[add]") == 0);
  CHECK(weft_sum_axis(&out, x, 3, false, here) == WEFT_OUT_OF_RANGE);
  CHECK(weft_add(&out, x, nullptr, here) == WEFT_INVALID_ARGUMENT);
  CHECK(weft_add(nullptr, x, x, here) == WEFT_INVALID_ARGUMENT);
  CHECK(weft_load(&out, "there-is-no-such-file.npy") == WEFT_RUNTIME_ERROR);
  CHECK(weft_astype(&out, x, static_cast<weft_dtype>(99), here) == WEFT_INVALID_ARGUMENT);
  CHECK(weft_abs(&out, x, weft_stream{.kind = 7, .index = 0, .device = WEFT_CPU, .device_index = 0}) ==
        WEFT_INVALID_ARGUMENT);
  double value = 0;
  CHECK(weft_array_item(&value, x) == WEFT_INVALID_ARGUMENT);
  weft_arrays list = nullptr;
  REQUIRE(weft_arrays_new(&list, nullptr, 0) == WEFT_OK);
  CHECK(weft_arrays_get(&out, list, 0) == WEFT_OUT_OF_RANGE);
  weft_arrays_free(list);
  CHECK(out == nullptr);
  CHECK(weft_dtype_size(static_cast<weft_dtype>(99)) == 0);
  CHECK(std::strcmp(weft_dtype_name(WEFT_BFLOAT16), "bfloat16") == 0);
}

TEST_CASE("optional arguments of C may be NULL, and lists have counts") {
  const Array x({-2, 0.5, 7}), low({-1.0f}, {});
  Array limited, flipped;
  REQUIRE(weft_clip(&limited.a, x, low, nullptr, here) == WEFT_OK);
  CHECK(limited.values() == Values{-1, 0.5, 7});
  const int axes[] = {0};
  REQUIRE(weft_flip_axes(&flipped.a, x, axes, 1, here) == WEFT_OK);
  CHECK(flipped.values() == Values{7, 0.5, -2});
  List parts;
  REQUIRE(weft_split(&parts.l, x, 3, here) == WEFT_OK);
  CHECK(weft_arrays_size(parts.l) == 3);
  const weft_array both[] = {x, limited};
  Array joined, q, r;
  REQUIRE(weft_concatenate(&joined.a, both, 2, here) == WEFT_OK);
  CHECK(weft_array_size(joined) == 6);
  const Array m({2, 0, 0, 3}, {2, 2});
  REQUIRE(weft_linalg_qr(&q.a, &r.a, m, here) == WEFT_OK);
  CHECK(std::abs(r.values()[3]) == doctest::Approx(3));
  Array image({1, 2, 3, 4}, {1, 2, 2, 1}), kernel({1, 1, 1, 1}, {1, 2, 2, 1}), sum;
  const int stride[] = {1, 1}, padding[] = {0, 0}, dilation[] = {1, 1};
  REQUIRE(weft_conv2d(&sum.a, image, kernel, stride, padding, dilation, 1, here) == WEFT_OK);
  CHECK(sum.values() == Values{10});
}

TEST_CASE("functions of C are transformed") {
  const Array x({1, 2, 3});
  const List in{x};
  const Function f(cube), total(total_of_cubes);
  SUBCASE("gradients") {
    Function g, both;
    const int first = 0;
    REQUIRE(weft_grad(&g.f, total.f, &first, 1) == WEFT_OK);
    REQUIRE(weft_value_and_grad(&both.f, total.f, &first, 1) == WEFT_OK);
    List out, two;
    REQUIRE(weft_function_call(&out.l, g.f, in.l) == WEFT_OK);
    CHECK(out.values(0) == Values{3, 12, 27});
    REQUIRE(weft_function_call(&two.l, both.f, in.l) == WEFT_OK);
    CHECK(two.values(0) == Values{36});
    CHECK(two.values(1) == Values{3, 12, 27});
    Function bad;
    REQUIRE(weft_grad(&bad.f, f.f, &first, 1) == WEFT_OK);
    weft_arrays none = nullptr;
    CHECK(weft_function_call(&none, bad.f, in.l) == WEFT_INVALID_ARGUMENT);  // no scalar
  }
  SUBCASE("products with the Jacobian") {
    const Array ones({1, 1, 1});
    const List along{ones};
    List values, pulled, again, pushed;
    REQUIRE(weft_vjp(&values.l, &pulled.l, f.f, in.l, along.l) == WEFT_OK);
    REQUIRE(weft_jvp(&again.l, &pushed.l, f.f, in.l, along.l) == WEFT_OK);
    CHECK(values.values(0) == Values{1, 8, 27});
    CHECK(pulled.values(0) == Values{3, 12, 27});
    CHECK(pushed.values(0) == pulled.values(0));
  }
  SUBCASE("batches, programs, recomputation") {
    for (auto* transform :
         {+[](weft_function*out, weft_function g) { return weft_vmap(out, g, nullptr, 0, nullptr, 0); },
          +[](weft_function*out, weft_function g) { return weft_compile(out, g); },
          +[](weft_function*out, weft_function g) { return weft_checkpoint(out, g); }}) {
      Function g;
      REQUIRE(transform(&g.f, f.f) == WEFT_OK);
      List out;
      REQUIRE(weft_function_call(&out.l, g.f, in.l) == WEFT_OK);
      CHECK(out.values(0) == Values{1, 8, 27});
    }
  }
  SUBCASE("a derivative of its own") {
    const Function rule([](weft_arrays results, weft_arrays all, void*) {
      CHECK(weft_arrays_size(all) == 3);  // primal, cotangent, output
      Array c;
      weft_arrays_get(&c.a, all, 1);
      return weft_arrays_append(results, c);
    });
    Function custom;
    REQUIRE(weft_custom_vjp(&custom.f, f.f, rule.f) == WEFT_OK);
    const Array ones({1, 2, 4});
    const List along{ones};
    List values, pulled;
    REQUIRE(weft_vjp(&values.l, &pulled.l, custom.f, in.l, along.l) == WEFT_OK);
    CHECK(pulled.values(0) == Values{1, 2, 4});
  }
}

TEST_CASE("callbacks of C that fail end the call with their status, and contexts are released") {
  int released = 0;
  {
    const Function f([](weft_arrays, weft_arrays, void*) { return WEFT_OUT_OF_RANGE; }, &released,
                     [](void* count) { ++*static_cast<int*>(count); });
    const Array x({1});
    const List in{x};
    weft_arrays out = nullptr;
    CHECK(weft_function_call(&out, f.f, in.l) == WEFT_OUT_OF_RANGE);
    CHECK(out == nullptr);
    CHECK(released == 0);
  }
  CHECK(released == 1);
}

TEST_CASE("a compiled function of C updates its state") {
  struct Counter {
    Array count{{0.0f}, {}};
  } counter;
  const Function add(
      [](weft_arrays results, weft_arrays arguments, void* context) {
        auto& c = *static_cast<Counter*>(context);
        Array x, next;
        weft_arrays_get(&x.a, arguments, 0);
        if (const weft_status s = weft_add(&next.a, c.count, x, here)) return s;
        std::swap(c.count.a, next.a);
        return weft_arrays_append(results, c.count);
      },
      &counter);
  Function compiled;
  weft_array* const state[] = {&counter.count.a};
  REQUIRE(weft_compile_with_state(&compiled.f, add.f, state, 1) == WEFT_OK);
  const Array two({2.0f}, {});
  const List in{two};
  for (int k = 1; k <= 4; ++k) {
    List out;
    REQUIRE(weft_function_call(&out.l, compiled.f, in.l) == WEFT_OK);
    CHECK(counter.count.values() == Values{2.0f * static_cast<float>(k)});
  }
}

TEST_CASE("control flow of C") {
  const Array x({1, 2}), yes({1.0f}, {}), limit({100.0f}, {});
  const List in{x};
  const Function f(cube), same([](weft_arrays results, weft_arrays arguments, void*) {
    Array a;
    weft_arrays_get(&a.a, arguments, 0);
    return weft_arrays_append(results, a);
  });
  Array pred;
  REQUIRE(weft_astype(&pred.a, yes, WEFT_BOOL, here) == WEFT_OK);
  List out;
  REQUIRE(weft_cond(&out.l, pred, f.f, same.f, in.l) == WEFT_OK);
  CHECK(out.values(0) == Values{1, 8});

  const Function small(
      [](weft_arrays results, weft_arrays arguments, void* context) {
        Array a, total, less;
        weft_arrays_get(&a.a, arguments, 0);
        weft_sum(&total.a, a, here);
        weft_less(&less.a, total, static_cast<weft_array>(context), here);
        return weft_arrays_append(results, less);
      },
      limit.a);
  const Function twice([](weft_arrays results, weft_arrays arguments, void*) {
    Array a, b;
    weft_arrays_get(&a.a, arguments, 0);
    weft_add(&b.a, a, a, here);
    return weft_arrays_append(results, b);
  });
  List last;
  REQUIRE(weft_while_loop(&last.l, small.f, twice.f, in.l, -1) == WEFT_OK);
  CHECK(last.values(0) == Values{64, 128});

  const Function step([](weft_arrays results, weft_arrays arguments, void*) {  // carry + x, and that as the result
    Array c, x_k, next;
    weft_arrays_get(&c.a, arguments, 0);
    weft_arrays_get(&x_k.a, arguments, 1);
    weft_add(&next.a, c, x_k, here);
    weft_arrays_append(results, next);
    return weft_arrays_append(results, next);
  });
  const Array zero({0.0f}, {}), xs({1, 2, 3});
  const List init{zero}, over{xs};
  List carry, stacked;
  REQUIRE(weft_scan(&carry.l, &stacked.l, step.f, init.l, over.l, -1, false) == WEFT_OK);
  CHECK(carry.values(0) == Values{6});
  CHECK(stacked.values(0) == Values{1, 3, 6});
}

TEST_CASE("maps of C in files, and functions in files") {
  const auto folder = std::filesystem::temp_directory_path() / "weft-c-test";
  std::filesystem::create_directories(folder);
  const Array x({1, 2, 3});
  weft_map map = nullptr;
  REQUIRE(weft_map_new(&map) == WEFT_OK);
  REQUIRE(weft_map_set(map, "b", x) == WEFT_OK);
  REQUIRE(weft_map_set(map, "a", x) == WEFT_OK);
  REQUIRE(weft_map_set_text(map, "made_by", "a test") == WEFT_OK);
  for (const char* ending : {"npz", "safetensors", "gguf", "pt"}) {
    CAPTURE(ending);
    const std::string path = (folder / ("x." + std::string(ending))).string();
    REQUIRE(weft_save_map(path.c_str(), map) == WEFT_OK);
    weft_map found = nullptr;
    REQUIRE(weft_load_map(&found, path.c_str()) == WEFT_OK);
    CHECK(weft_map_size(found) == 2);
    CHECK(std::string(weft_map_name(found, 0)) == "a");
    CHECK(weft_map_name(found, 2) == nullptr);
    Array got;
    REQUIRE(weft_map_get(&got.a, found, "b") == WEFT_OK);
    CHECK(got.values() == x.values());
    weft_array none = nullptr;
    CHECK(weft_map_get(&none, found, "c") == WEFT_OUT_OF_RANGE);
    const bool texts = std::string(ending) == "safetensors" || std::string(ending) == "gguf";
    CHECK((weft_map_text(found, "made_by") != nullptr) == texts);
    weft_map_free(found);
  }
  CHECK(weft_save_map((folder / "x.txt").string().c_str(), map) == WEFT_INVALID_ARGUMENT);
  weft_map_free(map);

  const std::string program = (folder / "cube.weft").string();
  const List in{x};
  const Function f(cube);
  REQUIRE(weft_export_function(program.c_str(), f.f, in.l) == WEFT_OK);
  Function imported;
  REQUIRE(weft_import_function(&imported.f, program.c_str()) == WEFT_OK);
  List out;
  REQUIRE(weft_function_call(&out.l, imported.f, in.l) == WEFT_OK);
  CHECK(out.values(0) == Values{1, 8, 27});
  std::filesystem::remove_all(folder);
}

TEST_CASE("einsum of windows is a convolution, and says what it does not take") {
  const Array x({1, 2, 3, 4, 5, 6, 7}), w({1, 10});
  const weft_array operands[] = {x, w};
  Array y;
  REQUIRE(weft_einsum(&y.a, "(2*place+tap), tap -> place", operands, 2, here) == WEFT_OK);
  CHECK(y.values() == Values{21, 43, 65});
  weft_array none = nullptr;
  CHECK(weft_einsum(&none, "(2*place-tap), tap -> place", operands, 2, here) == WEFT_INVALID_ARGUMENT);
  CHECK(std::string(weft_error_message()).find("reverse or pad") != std::string::npos);
}

namespace {

struct Exporter {
  weft_exporter e = nullptr;
  ~Exporter() { weft_exporter_free(e); }
};

}  // namespace

TEST_CASE("several signatures in one file, and one signature for all lengths") {
  const auto folder = std::filesystem::temp_directory_path() / "weft_c_signatures";
  std::filesystem::create_directories(folder);
  const std::string several = (folder / "several.weft").string(), any = (folder / "any.weft").string();
  const Function f(cube);
  const Array three({1, 2, 3}), two({4, 5}), four({1, 2, 3, 4});
  const List in_three{three}, in_two{two}, in_four{four};
  {
    Exporter e;
    REQUIRE(weft_exporter_new(&e.e, several.c_str(), f.f, false) == WEFT_OK);
    CHECK(weft_exporter_add(e.e, in_three.l) == WEFT_OK);
    CHECK(weft_exporter_add(e.e, in_two.l) == WEFT_OK);
    CHECK(weft_exporter_add(e.e, nullptr) == WEFT_INVALID_ARGUMENT);
    CHECK(weft_exporter_close(e.e) == WEFT_OK);
    CHECK(weft_exporter_add(e.e, in_four.l) == WEFT_RUNTIME_ERROR);
    CHECK(std::string(weft_error_message()).find("closed") != std::string::npos);
  }
  {
    Exporter e;
    REQUIRE(weft_exporter_new(&e.e, any.c_str(), f.f, true) == WEFT_OK);
    CHECK(weft_exporter_add(e.e, in_three.l) == WEFT_OK);
  }  // freed: written
  CHECK(weft_exporter_new(nullptr, any.c_str(), f.f, true) == WEFT_INVALID_ARGUMENT);
  CHECK(weft_exporter_close(nullptr) == WEFT_INVALID_ARGUMENT);
  const auto call = [](const std::string& path, const List& in, List& out) {
    Function g;
    REQUIRE(weft_import_function(&g.f, path.c_str()) == WEFT_OK);
    return weft_function_call(&out.l, g.f, in.l);
  };
  List a, b, c, d, e;
  CHECK((call(several, in_three, a) == WEFT_OK && a.values(0) == Values{1, 8, 27}));
  CHECK((call(several, in_two, b) == WEFT_OK && b.values(0) == Values{64, 125}));
  CHECK(call(several, in_four, c) == WEFT_INVALID_ARGUMENT);
  CHECK((call(any, in_two, d) == WEFT_OK && d.values(0) == Values{64, 125}));
  CHECK((call(any, in_four, e) == WEFT_OK && e.values(0) == Values{1, 8, 27, 64}));
  std::filesystem::remove_all(folder);
}

TEST_CASE("memory is counted and limited") {
  const size_t cache = weft_set_cache_limit(0), limit = weft_memory_limit();
  weft_reset_peak_memory();
  const size_t before = weft_active_memory();
  CHECK(weft_peak_memory() == before);
  {
    const Array big(std::vector<float>(1 << 20, 1.0f));
    CHECK(weft_active_memory() >= before + (size_t{4} << 20));
    CHECK(weft_set_memory_limit(weft_active_memory() + 1024) == limit);
    CHECK(weft_memory_limit() == weft_active_memory() + 1024);
    Array doubled;
    REQUIRE(weft_add(&doubled.a, big, big, here) == WEFT_OK);
    CHECK(weft_array_eval(doubled) == WEFT_RUNTIME_ERROR);
    weft_set_memory_limit(limit);
    CHECK(weft_array_eval(doubled) == WEFT_OK);
  }
  CHECK(weft_peak_memory() >= before + (size_t{8} << 20));
  CHECK(weft_cache_memory() == 0);
  CHECK(weft_set_cache_limit(cache) == 0);
}

TEST_CASE("a process by itself is a group of one") {
  weft_group group = nullptr, part = nullptr;
  bool available = true;
  CHECK(weft_distributed_is_available(&available, "any") == WEFT_OK);
  CHECK(!available);
  CHECK(weft_distributed_is_available(&available, "pigeons") == WEFT_INVALID_ARGUMENT);
  CHECK(weft_distributed_init(&group, true, "any") == WEFT_RUNTIME_ERROR);
  REQUIRE(weft_distributed_init(&group, false, "any") == WEFT_OK);
  CHECK((weft_group_rank(group) == 0 && weft_group_size(group) == 1));
  CHECK((weft_group_rank(nullptr) == 0 && weft_group_size(nullptr) == 1));
  CHECK(weft_group_split(&part, group, 0, -1) == WEFT_RUNTIME_ERROR);
  const Array x({1, 2, 3});
  using Collective = weft_status (*)(weft_array*, weft_array, weft_group, weft_stream);
  for (const Collective f : {weft_distributed_all_sum, weft_distributed_all_max, weft_distributed_all_min,
                             weft_distributed_all_gather, weft_distributed_sum_scatter})
    for (const weft_group g : {group, weft_group(nullptr)}) {
      Array result;
      REQUIRE(f(&result.a, x, g, here) == WEFT_OK);
      CHECK(result.values() == x.values());
      CHECK(f(&result.a, nullptr, g, here) == WEFT_INVALID_ARGUMENT);
    }
  Array none;
  const int64_t shape[] = {3};
  CHECK(weft_distributed_send(&none.a, x, 0, group, here) == WEFT_INVALID_ARGUMENT);
  CHECK(weft_distributed_recv(&none.a, shape, 1, WEFT_FLOAT32, 0, group, here) == WEFT_INVALID_ARGUMENT);
  CHECK(weft_distributed_recv_like(&none.a, x, 0, nullptr, here) == WEFT_INVALID_ARGUMENT);
  weft_group_free(group);
}
