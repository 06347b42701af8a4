// Programs that wait for each other, in the interpreter: ordered grids, barriers of the grid, and what is said of waits
// that are wrong.
#include "kernel/language/waiting_kernels.h"

#include <doctest/doctest.h>

#include <functional>
#include <numeric>
#include <string>

#include "kernel/derive/derive.h"
#include "kernel/language/errors.h"
#include "kernel/language/run.h"
#include "kernel/text/text.h"

namespace {

using namespace test_kernels;

using Flags = k::InOut<int32_t, 1>;

std::string here(int number) { return "waiting_test.cpp:" + std::to_string(number); }

/// Traces a kernel of two arrays of int32 with 8 elements, in a grid of 4 programs.
k::Program of_flags(const std::function<void(Flags, Flags)>& body, k::Order order = k::Order::ordered) {
  return k::trace("wrong", {array_of(k::Use::in_out, int32, {8}), array_of(k::Use::in_out, int32, {8})},
                  {k::GridAxis(4, order)}, [&](std::span<const k::AnyRef> r) { body(Flags(r[0]), Flags(r[1])); });
}

/// Runs such a kernel, whose fault the message names.
void runs_wrong(const std::vector<std::string>& words, const std::function<void(Flags, Flags)>& body,
                k::Order order = k::Order::ordered) {
  const k::Program program = of_flags(body, order);
  std::vector<int32_t> a(8), b(8);
  void* const arrays[] = {a.data(), b.data()};
  check_message<std::runtime_error>([&] { program.interpret(arrays); }, "[kernel wrong] ", words);
}
void traces_wrong(const std::string& words, const std::function<void(Flags, Flags)>& body,
                  k::Order order = k::Order::ordered) {
  check_message<std::invalid_argument>([&] { of_flags(body, order); }, "[kernel wrong] ", {words});
}

const auto release = [](const Flags& flags, const k::Index& at) {
  k::atomic({"exchange", k::MemoryOrder::release}, flags, 1, at);
};

}  // namespace

TEST_CASE("a program of an ordered grid waits for what an earlier one has stored") {
  std::vector<float> x(11 * 70), y(11 * 70);
  std::iota(x.begin(), x.end(), -100.f);
  std::vector<int32_t> done(11);
  run(chain(), x, y, done);
  for (size_t j = 0; j < 70; ++j) {
    float sum = 0;
    for (size_t i = 0; i < 11; ++i) {
      sum += x[i * 70 + j];
      CHECK(y[i * 70 + j] == sum);
    }
  }
}

TEST_CASE("a role waits for another program while others go on") {
  std::vector<float> x(7 * 48, 1.f), y(7 * 48);
  std::vector<int32_t> done(8);
  run(chain_by_roles(), x, y, done);
  for (size_t i = 0; i < y.size(); ++i) CHECK(y[i] == static_cast<float>(i / 48 + 1));
}

TEST_CASE("tangents wait as values do, and nothing runs backwards") {
  namespace kernel = weft::kernel;
  const k::Program program = chain();
  const kernel::Source source{program.data().kernel, {{11, 70}, {11, 70}, {11}}, {1, 1, 1}, program.programs()};
  const kernel::Derivative tangents = kernel::forward_derivative(source, {1, 0, 0});
  CHECK(tangents.kernel.ordered);
  std::vector<std::vector<float>> arrays;
  for (const kernel::DerivedArray& a : tangents.arrays) {
    arrays.emplace_back(a.source == 2 ? 11 : 11 * 70, 0.f);
    if (a.role == kernel::DerivedArray::Role::tangent && a.source == 0)
      std::iota(arrays.back().begin(), arrays.back().end(), 0.f);
  }
  std::vector<kernel::HostBuffer> buffers;
  for (std::vector<float>& a : arrays) buffers.push_back({a.data(), static_cast<int64_t>(a.size())});
  kernel::interpret(tangents.kernel, buffers, {}, tangents.programs);
  bool seen = false;
  for (size_t k = 0; k < arrays.size(); ++k) {
    if (tangents.arrays[k].role != kernel::DerivedArray::Role::tangent || tangents.arrays[k].source != 1) continue;
    seen = true;
    for (size_t j = 0; j < 70; ++j) CHECK(arrays[k][10 * 70 + j] == static_cast<float>(55 * 70 + 11 * j));
  }
  CHECK(seen);
  check_message<std::invalid_argument>(
      [&] {
        kernel::reverse_derivative(source, {0, 1, 0});
      },
      "[kernel chain] ",
      {"waiting_kernels.h:",
       "wait_until: programs that wait for each other do not run backwards: give the derivative "
       "by custom_function"});
}

TEST_CASE("decoupled look-back scans in one pass, whatever programs are under way") {
  constexpr size_t n = 9 * 64 - 5;
  std::vector<int32_t> x(n), y(n);
  std::iota(x.begin(), x.end(), -200);
  std::vector<int64_t> state(9);
  run(look_back(), x, y, state);
  int32_t sum = 0;
  for (size_t i = 0; i < n; ++i) {
    sum += x[i];
    CHECK(y[i] == sum);
  }
  for (const int64_t word : state) CHECK((word >> 32) == 2);
}

TEST_CASE("behind a barrier of the grid all programs see what all have stored before") {
  constexpr size_t programs = 6, columns = 40;
  std::vector<float> x(programs * columns), y(2 * programs * columns);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17);
  std::vector<float> wanted = x;
  for (int round = 0; round < 3; ++round) {
    std::vector<float> next = wanted;
    for (size_t i = 0; i < x.size(); ++i) next[i] += wanted[(i + columns) % x.size()] * std::ldexp(1.f, -round);
    wanted = next;
  }
  run(rounds(), x, y);
  for (size_t i = 0; i < x.size(); ++i) CHECK(y[x.size() + i] == wanted[i]);
  for (size_t j = 0; j < columns; ++j) CHECK(y[j] == wanted[(programs - 1) * columns + j] + 0.125f);
}

TEST_CASE("programs of a cluster reach each other's shared memory") {
  constexpr size_t rows = 3, size = 4, part = 24, n = size * part;
  std::vector<float> x(rows * n), y(rows * size), z(rows * n);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13);
  run(sums_of_clusters(), x, y, z);
  for (size_t i = 0; i < rows; ++i) {
    const float sum = std::accumulate(x.begin() + static_cast<std::ptrdiff_t>(i * n),
                                      x.begin() + static_cast<std::ptrdiff_t>((i + 1) * n), 0.f);
    for (size_t k = 0; k < size; ++k) CHECK(y[i * size + k] == sum);
    for (size_t j = 0; j < n; ++j) CHECK(z[i * n + j] == x[i * n + j] + 2 * x[i * n + (j + n - part) % n]);
  }
}

TEST_CASE("what no barrier of the cluster orders is a race") {
  using Buffer = k::Ref<float, 1>;
  const auto races = [](const std::vector<std::string>& words, const std::function<void(Buffer, k::Index)>& body) {
    const k::Program program = k::trace("wrong", {array_of(k::Use::out, float32, {4})},
                                        {2, k::GridAxis(2, k::Order::cluster)}, [&](std::span<const k::AnyRef> r) {
                                          const auto own = k::this_cluster().block_rank();
                                          body(k::shared<float>({8}), own);
                                          const k::Out<float, 1> y(r[0]);
                                          y(k::program_id(0) * 2 + own) = k::scalar<float>(0);
                                        });
    std::vector<float> y(4);
    void* const arrays[] = {y.data()};
    check_message<std::runtime_error>([&] { program.interpret(arrays); }, "[kernel wrong] ", words);
  };
  races({"race: ", "another program"}, [](auto buffer, auto own) {
    buffer(k::all) = k::full<float>({8}, 1);
    k::check(k::neighbour(buffer, 1 - own)(0).load() == 1.f, "it is not 1");
    k::cluster_barrier();
  });
  races({"race: ", "another program"}, [](auto buffer, auto own) {
    buffer(k::all) = k::full<float>({8}, 1);
    k::cluster_barrier();
    k::check(k::neighbour(buffer, 1 - own)(0).load() == 1.f, "it is not 1");  // of one that may have ended
  });
  races({"race: ", "another program"}, [](auto buffer, auto own) {
    k::cluster_barrier();
    k::neighbour(buffer, 1 - own)(0) = k::scalar<float>(1);
    buffer(0) = k::scalar<float>(2);
    k::cluster_barrier();
  });
  races({"there is no program 2 in a cluster of 2"}, [](auto buffer, auto own) {
    k::cluster_barrier();
    k::neighbour(buffer, own + 1)(0) = k::scalar<float>(1);
    k::cluster_barrier();
  });
  races({"deadlock: program ", "the barrier of the cluster, to which 1 of 2 programs have come, and 1 have ended"},
        [](auto, auto own) { k::loop(own, [&](k::Index) { k::cluster_barrier(); }); });
}

TEST_CASE("clusters that can never be right are refused when they are traced") {
  const auto grid = [](const k::Grid& g, const std::string& words) {
    check_message<std::invalid_argument>([&] { k::trace("wrong", {}, g, [](std::span<const k::AnyRef>) {}); },
                                         "[kernel wrong] ", {words});
  };
  grid({k::GridAxis(2, k::Order::cluster), 4}, "axis 0 of 2 of the grid is a cluster of 2 programs: make it the last");
  grid({k::GridAxis(9, k::Order::cluster)}, "is a cluster of 9 programs: make it the last axis, of 1 to 8");
  grid({k::GridAxis(3, k::Order::ordered), k::GridAxis(2, k::Order::cluster)},
       "the grid has clusters and an ordered axis, which do not mix");
  traces_wrong("cluster_barrier: the grid has no clusters", [](auto, auto) { k::cluster_barrier(); });
  traces_wrong("cluster_size: the grid has no clusters", [](auto, auto) { k::this_cluster().num_blocks(); });
  traces_wrong("load_neighbour: the grid has no clusters",
               [](auto, auto) { k::neighbour(k::shared<float>({4}), 0)(0).load(); });
  const auto of_cluster = [](const std::string& words, const std::function<void(Flags)>& body) {
    check_message<std::invalid_argument>(
        [&] {
          k::trace("wrong", {array_of(k::Use::in_out, int32, {8})}, {k::GridAxis(2, k::Order::cluster)},
                   [&](std::span<const k::AnyRef> r) { body(Flags(r[0])); });
        },
        "[kernel wrong] ", {words});
  };
  of_cluster("load_neighbour: array 0 is everyone's", [](auto a) { k::neighbour(a, 0)(0).load(); });
  of_cluster("store_neighbour: the slice of [4] may leave the buffer", [](auto) {
    k::neighbour(k::shared<float>({4}), 0)(k::ds(k::program_id(0) * 3, 2)) = k::full<float>({2}, 1);
  });
  of_cluster("grid_barrier: the grid has clusters", [](auto) { k::grid_barrier(); });
  of_cluster("cluster_barrier: it stands in a condition",
             [](auto) { k::when(k::program_id(0) == 0, [] { k::cluster_barrier(); }); });
}

TEST_CASE("the text of waits is read back") {
  for (const k::Program& program : {chain(), look_back(), rounds(), sums_of_clusters()}) {
    const std::string text = weft::kernel::print(program.data().kernel);
    CAPTURE(text);
    CHECK(digest(weft::kernel::parse(text).kernel) == digest(program.data().kernel));
  }
  const std::string text = chain().to_string();
  CHECK(text.find(" any_size ordered {") != std::string::npos);
  CHECK(text.find("= wait_until p2[") != std::string::npos);
  CHECK(text.find("order(acquire device)") != std::string::npos);
  CHECK(rounds().to_string().find("grid_barrier\n") != std::string::npos);
}

TEST_CASE("a wait for a later program, or for nobody, is a deadlock, which is told by its lines") {
  const int at = __LINE__ + 4;
  runs_wrong({"deadlock: program 0: the program waits at ", here(at) + " for element 1 of p0, which is 0",
              "all programs before it have ended, and later ones may never begin"},
             [](auto a, auto) {
               k::wait_until(a, k::program_id(0) + 1, 1);
               release(a, k::program_id(0));
             });
  runs_wrong({"program 2: the program waits at ", "for element 7 of p1, which is 0"}, [](auto, auto b) {
    k::when(k::program_id(0) == 2, [&] { k::wait_until(b, 7, [](const auto& v) { return v > 0; }); });
  });
}

TEST_CASE("a barrier to which not all programs come is a deadlock") {
  const int at = __LINE__ + 5;
  runs_wrong({"deadlock: program ", here(at) + " for the barrier of the grid, to which 3 of 4 programs have come",
              "and 1 have ended"},
             [](auto, auto) {
               const auto most = k::where(k::program_id(0) == 1, k::scalar<int64_t>(0), k::scalar<int64_t>(1));
               k::loop(most, [&](k::Index) { k::grid_barrier(); });
             });
}

TEST_CASE("what a wait does not order is a race") {
  runs_wrong({"race: ", "element 0, which another program "}, [](auto a, auto b) {
    const auto own = k::program_id(0);
    b(own) = k::scalar<int32_t>(3);
    release(a, own);
    k::when(own == 1, [&] { b(7) = k::wait_until(a, 0, 1, k::MemoryOrder::relaxed) + b(0).load(); });
  });
  runs_wrong({"race: ", "element 0, which another program "}, [](auto a, auto b) {
    const auto own = k::program_id(0);
    release(a, own);
    b(own) = k::scalar<int32_t>(3);  // behind the release
    k::when(own == 1, [&] { b(7) = k::wait_until(a, 0, 1) + b(0).load(); });
  });
  runs_wrong({"race: waits for element 0, which another program wrote: store it by an atomic"}, [](auto a, auto) {
    const auto own = k::program_id(0);
    k::when(own == 0, [&] { a(0) = k::scalar<int32_t>(1); });
    k::when(own == 1, [&] { k::wait_until(a, 0, 1); });
  });
  runs_wrong({"race: ", "element 0, ", "another program ", ": store it by an atomic"}, [](auto a, auto) {
    const auto own = k::program_id(0);
    k::when(own == 1, [&] { k::wait_until(a, 0, 0); });  // which it is from the beginning
    k::when(own == 3, [&] { a(0) = k::scalar<int32_t>(0); });
  });
  runs_wrong(
      {"race: ", "which another program"},
      [](auto a, auto b) {
        const auto own = k::program_id(0);
        k::grid_barrier();
        a(own) = k::scalar<int32_t>(1);
        b(own) = a((own + 1) % 4).load();  // before the next barrier
      },
      k::Order::parallel);
}

TEST_CASE("waits that can never be right are refused when they are traced") {
  traces_wrong(
      "wait_until: the programs of this grid begin in any order", [](auto a, auto) { k::wait_until(a, 0, 1); },
      k::Order::parallel);
  traces_wrong("wait_until: an index along axis 0 lies outside of its 8 elements",
               [](auto a, auto) { k::wait_until(a, 8, 1); });
  traces_wrong("wait_until: a read releases nothing",
               [](auto a, auto) { k::wait_until(a, 0, 1, k::MemoryOrder::release); });
  traces_wrong("in the function of a reduction or scan, or the condition of a wait: it computes scalars from scalars",
               [](auto a, auto b) { k::wait_until(a, 0, [&](const auto& v) { return v == b(0).load(); }); });
  traces_wrong("wait_until: scratch belongs to one program", [](auto, auto) {
    const auto own = k::scratch<int32_t>({4});
    k::wait_until(own, 0, 1);
  });
  traces_wrong("grid_barrier: it stands in a condition or a while loop",
               [](auto, auto) { k::when(k::program_id(0) == 0, [] { k::grid_barrier(); }); });
  traces_wrong("grid_barrier: a role comes alone", [](auto, auto) {
    k::roles({{.warps = 1, .body = [] { k::grid_barrier(); }}, {.warps = 1, .body = [] {}}});
  });
  check_message<std::invalid_argument>(
      [] {
        k::trace("wrong", {array_of(k::Use::in_out, weft::int16, {8})}, {k::GridAxis(2, k::Order::ordered)},
                 [](std::span<const k::AnyRef> r) { k::wait_until(k::InOut<int16_t, 1>(r[0]), 0, int16_t{1}); });
      },
      "[kernel wrong] ", {"wait_until: an element of int16 has fewer than 32 bits"});
}

TEST_CASE("tile IR refuses waits in kernels that are not ordered, and barriers in conditions") {
  const auto refused_text = [](const std::string& text, const std::string& words) {
    CHECK_THROWS_WITH_AS(weft::kernel::parse(text), doctest::Contains(words.c_str()), std::invalid_argument);
  };
  const std::string wait =
      "  %0 = constant 0 : i64\n  %2 = wait_until p0[%0] by(%1: i32) : i32 {\n"
      "    %3 = constant 1 : i32\n    %4 = eq %1 %3 : bool\n    yield %4\n  }\n}\n";
  CHECK_NOTHROW(weft::kernel::parse("kernel @w(p0: out i32) any_size ordered {\n" + wait));
  refused_text("kernel @w(p0: out i32) any_size {\n" + wait, "the kernel is not ordered");
  refused_text("kernel @w(p0: i32) any_size ordered {\n" + wait, "the parameter is not declared as written");
  refused_text("kernel @w(p0: out i32) any_size {\n  %0 = constant 1 : bool\n  when %0 {\n    grid_barrier\n  }\n}\n",
               "all programs come to a barrier of the grid");
  refused_text("kernel @w(p0: out i32) any_size {\n  cluster_barrier\n}\n", "the kernel has no clusters");
  refused_text("kernel @w(p0: out i32) any_size ordered clusters 2 {\n}\n",
               "programs of clusters neither begin in order nor meet at barriers of the grid");
}
