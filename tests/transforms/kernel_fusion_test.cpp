// Elementwise neighbours of kernels, launches on memory of the caller's, what explain and profiles say of kernels, and
// a warm start.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "runtime/trace.h"
#include "support.h"
#include "target/target.h"
#include "weft/compile.h"
#include "weft/kernel_code.h"
#include "weft/kernel_function.h"
#include "weft/kernel_group.h"
#include "weft/profile.h"

using namespace weft;
using namespace weft::testing;

namespace {

array normal(const Shape& shape, uint64_t seed) { return random::normal(shape, float32, 0, 1, random::key(seed)); }

auto rows_kernel() {
  return k::kernel("rows",
                   [](k::In<float, 2> x, k::Out<float, 2> y) {
                     const auto row = k::program_id(0);
                     const auto v = x(row, k::ds(0, 16)).load(-INFINITY);
                     const auto e = k::exp(v - k::max(v, 0));
                     y(row, k::ds(0, 16)) = e / k::sum(e, 0);
                   })
      .grid([](auto x, auto) { return k::Grid{x.dim(0)}; });
}

/// Reads each row twice.
auto twice_kernel() {
  return k::kernel("twice",
                   [](k::In<float, 2> x, k::Out<float, 2> y) {
                     const auto row = k::program_id(0);
                     const auto most = k::max(x(row, k::all).load(), 0);
                     y(row, k::all) = x(row, k::all).load() - most;
                   })
      .grid([](auto x, auto) { return k::Grid{x.dim(0)}; });
}

/// Returns the launches of a call of a function that is compiled already.
int64_t launches(const ArrayFunction& f, const Arrays& arguments) {
  eval(f(arguments));
  const int64_t before = runtime::counters().kernel_launches;
  eval(f(arguments));
  return runtime::counters().kernel_launches - before;
}

}  // namespace

TEST_CASE("elementwise operators move into the loads and stores of a kernel") {
  const auto f = rows_kernel();
  const array x = normal({9, 13}, 1), y = normal({9, 13}, 2);
  eval(x, y);
  const auto before = [](const array& a, const array& b) { return exp(a * 0.5f) + b; };
  const auto behind = [](const array& p, const array& b) { return astype(p * b > array(0.1f), int32) + 1; };
  const ArrayFunction all =
      compile(ArrayFunction([&](const Arrays& a) { return Arrays{behind(f(before(a[0], a[1])), a[1])}; }));
  CHECK(launches(all, {x, y}) == 1);
  // Unfused, each is evaluated before the next one begins.
  const array inner = before(x, y);
  eval(inner);
  const array middle = f(inner);
  eval(middle);
  const array outer = behind(middle, y);
  const array fused = all({x, y})[0];
  CHECK(fused.dtype() == int32);
  CHECK(fused.to_vector<int>() == outer.to_vector<int>());
  const ArrayFunction sums =
      compile(ArrayFunction([&](const Arrays& a) { return Arrays{f(before(a[0], a[1])) * a[0]}; }));
  CHECK(launches(sums, {x, y}) == 1);
  CHECK(sums({x, y})[0].to_vector<float>() == (middle * x).to_vector<float>());
}

TEST_CASE("operators move into kernels whose lanes exchange values, and that have code of a target") {
  const k::Code code("negated", {"a"}, {"b"}, "b = -a;");
  const auto f = k::kernel("turned", [code](k::In<float, 1> x, k::Out<float, 1> y) {
                   const auto turned = k::warp::shfl_xor(x(k::all).load(), 1);
                   y(k::all) = k::cuda<float>(
                       code, [](auto a) { return -a; }, turned);
                 }).grid({1});
  const array x = normal({32}, 1);
  const ArrayFunction g = compile(ArrayFunction([&](const Arrays& a) { return Arrays{f(a[0] * 2.0f) + 1.0f}; }));
  CHECK(launches(g, {x}) == 1);
  const array pairs = reshape(x, {16, 2});
  const array other = reshape(concatenate({slice(pairs, {0, 1}, {16, 2}), slice(pairs, {0, 0}, {16, 1})}, 1), {32});
  CHECK(g({x})[0].to_vector<float>() == (1.0f - other * 2.0f).to_vector<float>());
}

TEST_CASE("operators stay outside where others read them, or the kernel reads an element twice") {
  const auto f = rows_kernel();
  const auto g = twice_kernel();
  const array x = normal({9, 13}, 1);
  eval(x);
  const ArrayFunction shared = compile(ArrayFunction([&](const Arrays& a) {
    const array e = exp(a[0]);
    return Arrays{f(e), e};
  }));
  CHECK(launches(shared, {x}) == 2);
  const ArrayFunction again = compile(ArrayFunction([&](const Arrays& a) { return Arrays{g(exp(a[0]))}; }));
  CHECK(launches(again, {x}) == 2);
  const ArrayFunction bias = compile(ArrayFunction([&](const Arrays& a) { return Arrays{f(a[0] + a[1])}; }));
  const array b = normal({13}, 2);
  eval(b);
  CHECK(launches(bias, {x, b}) == 2);
  check_close(bias({x, b})[0], softmax(x + b, -1), 1e-5);
  // A kernel between others: what it is multiplied by comes after it in the graph.
  const ArrayFunction late =
      compile(ArrayFunction([&](const Arrays& a) { return Arrays{f(a[0]) * f(f(a[0]) + 1.0f)}; }));
  check_close(late({x})[0], softmax(x, -1) * softmax(softmax(x, -1) + 1.0f, -1), 1e-5);
}

TEST_CASE("launches on memory of the caller's, with strides") {
  const auto f = rows_kernel();
  const array x = normal({5, 7}, 1), wanted = softmax(x, -1);
  std::vector<float> data = x.to_vector<float>(), out(35, -1);
  f.launch({}, {{data.data(), {5, 7}}, {out.data(), {5, 7}}});
  check_close(array(out.data(), {5, 7}, float32), wanted, 1e-6);
  // Columns of one array into rows of a wider one, which keeps what lies between.
  std::vector<float> wide(5 * 9, -1);
  f.launch({}, {{data.data(), {7, 5}, {1, 7}}, {wide.data(), {7, 5}, {1, 9}}});
  const array columns = transpose(softmax(transpose(x), -1));
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 9; ++j)
      if (j < 7)
        CHECK(std::abs(wide[static_cast<size_t>(i * 9 + j)] -
                       columns.to_vector<float>()[static_cast<size_t>(i * 7 + j)]) < 1e-6);
      else CHECK(wide[static_cast<size_t>(i * 9 + j)] == -1);
  f.launch({}, {{nullptr, {0, 7}}, {nullptr, {0, 7}}});
}

TEST_CASE("launches that do not fit are refused by the kernel's name") {
  const auto f = rows_kernel();
  std::vector<float> data(35), out(35);
  const k::RawArray in{data.data(), {5, 7}};
  const std::string few = message([&] { f.launch({}, {in}); });
  CHECK(few.starts_with("[kernel rows] "));
  CHECK(contains(few, "kernel_fusion_test.cpp:"));
  CHECK(contains(few, ": launch: it takes 2 arrays, got 1"));
  CHECK(contains(message([&] { f.launch({}, {in, {out.data(), {35}}}); }), "launch: array 1 has 2 axes"));
  CHECK(contains(message([&] { f.launch({}, {in, {nullptr, {5, 7}}}); }), "its pointer is null"));
  CHECK(contains(message([&] { f.launch({}, {in, {out.data(), {5, 7}, {0, 1}}}); }), "repeats its elements"));
  CHECK(contains(message([&] { f.launch({}, {in, {out.data(), {5, 7}, {7}}}); }), "has 1 strides for 2 axes"));
  CHECK(contains(message([&] {
                   f.launch({}, {in, {reinterpret_cast<char*>(out.data()) + 1, {4, 7}}});
                 }),
                 "does not lie at a multiple of 4 bytes"));
  CHECK(contains(message([&] {
                   f.launch({Device(Device::gpu, 99), nullptr}, {in, {out.data(), {5, 7}}});
                 }),
                 "this machine has no such device: gpu 99"));
}

TEST_CASE("explain and profiles show a kernel's name, the user's line, bytes and operations") {
  const auto f = rows_kernel();
  const array x = normal({64, 16}, 1);
  const auto table = explain([&](const Arrays& a) { return Arrays{f(a[0])}; }, {x});
  REQUIRE(table.rows.size() == 1);
  const KernelRow& row = table.rows[0];
  CHECK(contains(row.name, "rows"));
  CHECK(contains(row.what, "kernel rows (kernel_fusion_test.cpp:"));
  CHECK(row.bytes == 2 * 64 * 16 * 4);
  CHECK(row.flops > 64 * 16 * 4);
  const auto measured = profile([&](const Arrays& a) { return Arrays{f(a[0])}; }, {x}, 2);
  CHECK(contains(measured.to_string(), "kernel rows (kernel_fusion_test.cpp:"));
}

TEST_CASE("a second process with a warm cache compiles no kernel") {
  namespace fs = std::filesystem;
  const char* const given = std::getenv("WEFT_CACHE_DIR");
  const std::string before = given ? given : "";
  const fs::path folder = fs::temp_directory_path() / ("weft_warm_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  ::setenv("WEFT_CACHE_DIR", folder.c_str(), 1);
  // Runs a step with kernels and their derivatives, and returns how many kernels went through the code generator.
  const auto child = [] {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      const char* const program = "/proc/self/exe";
      ::dup2(ends[1], 1);
      ::execl(program, program, "--test-case=a process with kernels", "--no-skip", "--quiet", nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    std::string text;
    char buffer[256];
    for (ssize_t n = 0; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
    ::close(ends[0]);
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
    const size_t at = text.find("kernels compiled: ");
    REQUIRE(at != std::string::npos);
    return std::atoi(text.c_str() + at + 18);
  };
  CHECK(child() > 0);
  CHECK(child() == 0);
  fs::remove_all(folder);
  if (given) ::setenv("WEFT_CACHE_DIR", before.c_str(), 1);
  else ::unsetenv("WEFT_CACHE_DIR");
}

TEST_CASE("a process with kernels" * doctest::skip()) {
  const auto f = rows_kernel();
  const array x = array({0.5f, 0.25f, -1.0f, 2.0f}, {2, 2});
  eval(grad([&](const array& a) { return sum(f(a * 2.0f) * a); })(x), twice_kernel()(x));
  std::vector<float> data(4, 1), out(4);
  f.launch({}, {{data.data(), {2, 2}}, {out.data(), {2, 2}}});
  std::printf("kernels compiled: %d\n", static_cast<int>(target::cpu().stats().compiled));
}
