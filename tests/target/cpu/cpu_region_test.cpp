// Loops, conditions, scratch, matrix products, and the target around the code: cache, threads, segments.
#include <chrono>
#include <thread>

#include "base/hash.h"
#include "runtime/cache_dir.h"
#include "runtime/threads.h"
#include "target/cpu/codegen/compile.h"
#include "target/cpu/cpu_support.h"

using namespace weft;
using namespace weft::kernel;
using namespace weft::test;

TEST_CASE("matrix products of all tile shapes") {
  for (Dtype t : {float32, float64, bfloat16, float16})
    for (const auto& [m, k, n] :
         {std::array<int64_t, 3>{1, 1, 1}, {4, 4, 16}, {8, 3, 32}, {3, 8, 5}, {2, 4, 64}, {5, 1, 8}, {1, 8, 16}})
      for (bool alone : {true, false}) {
        if (t != float32 && k * m > 16) continue;
        Builder b("dot");
        const Ref a = b.param("a", t, false), w = b.param("w", t, false), c = b.param("c", t, true),
                  copy = b.param("copy", t, true);
        const Value zero = b.index(0), rows = b.symbol("rows");
        const Value left = b.load(a, zero, {m, k}, {k + 3, 1}, {rows, no_value}, Number::of_real(0));
        const auto sum = b.loop(zero, b.symbol("steps"), b.index(1), {b.load(c, zero, {m, n}, {n, 1})},
                                [&, k = k, n = n](Value i, const std::vector<Value>& acc) {
                                  const Value right = b.load(w, b.mul(i, b.index(k * n)), {k, n}, {n, 1});
                                  return std::vector<Value>{b.dot(left, right, acc[0])};
                                });
        b.store(c, sum[0], zero, {n, 1}, {rows, no_value});
        if (!alone) b.store(copy, left, zero, {k, 1});  // the left operand is wanted as a tile, too
        const Kernel kernel = b.finish();
        for (int64_t steps : {0, 3})
          agree(make_case(kernel, {m * (k + 3), 3 * k * n, m * n, m * k}, {m == 1 ? 1 : m - 1, steps}, 1));
      }
}

TEST_CASE("nested loops, conditions and scratch") {
  Builder b("regions");
  const Ref x = b.param("x", float32, false), y = b.param("y", float32, true), count = b.param("count", int64, true);
  const Ref scratch = b.local(float32, 256), flags = b.local(bool_, 16),
            large = b.local(float64, 40000);  // the last one is too large for a stack
  const Value n = b.symbol("n"), pid = b.program_id(), zero = b.index(0);
  const auto outer =
      b.loop(zero, n, b.index(3), {b.real(float32, 0, {16}), zero}, [&](Value i, const std::vector<Value>& c) {
        const auto inner = b.loop(i, n, b.index(2), {c[0]}, [&](Value j, const std::vector<Value>& d) {
          return std::vector<Value>{b.add(d[0], b.load(x, b.add(b.mul(pid, b.index(16)), j), {16}, {1}))};
        });
        const Value odd = b.scalar(ScalarOp::eq, {b.scalar(ScalarOp::mod, {i, b.index(2)}), b.index(1)});
        b.store(scratch, c[0], b.index(16), {1});
        b.when(odd, [&] { b.store(scratch, inner[0], b.index(16), {1}); });
        return std::vector<Value>{b.load(scratch, b.index(16), {16}, {1}), b.add(c[1], i)};
      });
  b.store(flags, b.lt(outer[0], b.real(float32, 1, {16})), zero, {1});
  b.store(large, b.cast(outer[0], float64), b.index(39000), {1});
  const Value low = b.load(flags, zero, {16}, {1});
  const Value back = b.cast(b.load(large, b.index(39000), {16}, {1}), float32);
  b.store(y, b.select(low, back, b.real(float32, -1, {16})), b.mul(pid, b.index(16)), {1});
  b.store(count, outer[1], pid, {});
  const Kernel k = b.finish();
  for (int64_t steps : {0, 1, 2, 9}) agree(make_case(k, {64, 48, 3}, {steps}, 3, static_cast<uint64_t>(steps)));
}

TEST_CASE("a loop that counts down to nothing leaves its initial values") {
  Builder b("empty_loop");
  const Ref y = b.param("y", int64, true);
  const auto r = b.loop(b.symbol("lo"), b.symbol("hi"), b.index(1), {b.index(7)},
                        [&](Value i, const std::vector<Value>&) { return std::vector<Value>{i}; });
  b.store(y, r[0], b.index(0), {});
  const Kernel k = b.finish();
  agree(make_case(k, {1}, {5, 5}, 1));
  agree(make_case(k, {1}, {5, -5}, 1));
  agree(make_case(k, {1}, {-2, 5}, 1));
}

namespace {

Kernel row_sum() {
  Builder b("row_sum");
  const Ref x = b.param("x", float32, false), y = b.param("y", float32, true);
  const Value row = b.mul(b.program_id(), b.symbol("n"));
  const auto s = b.loop(
      b.index(0), b.symbol("n"), b.index(64), {b.real(float32, 0, {64})}, [&](Value i, const std::vector<Value>& c) {
        return std::vector<Value>{b.add(c[0], b.load(x, b.add(row, i), {64}, {1}, {b.sub(b.symbol("n"), i)}))};
      });
  b.store(y, b.reduce(Reducer::sum, s[0], 0), b.program_id(), {});
  return b.finish();
}

Kernel scaled(double factor) {
  Builder b("scaled");
  const Ref x = b.param("x", float32, false), y = b.param("y", float32, true);
  const Value start = b.mul(b.program_id(), b.index(16)), left = b.sub(b.symbol("n"), start);
  b.store(y, b.mul(b.load(x, start, {16}, {1}, {left}), b.real(float32, factor)), start, {1}, {left});
  return b.finish();
}

}  // namespace

TEST_CASE("the same bits from one thread and from two, and over several segments") {
  const int before = runtime::num_threads();
  const Kernel k = row_sum();
  RandomCase one = make_case(k, {37 * 203, 37}, {203}, 37), two = one;
  runtime::set_num_threads(1);
  run_compiled(*cpu_target("native"), one, 1e9);
  runtime::set_num_threads(2);
  run_compiled(*cpu_target("native"), two, 1e9);
  CHECK(one.buffers[1] == two.buffers[1]);

  // Three segments of other sizes, one of them empty: program ids run through all of them.
  const Kernel s = scaled(3);
  const auto code = cpu_target("native")->compile(std::span<const Kernel>(&s, 1));
  std::vector<std::vector<float>> x{std::vector<float>(100, 1.f), {}, std::vector<float>(1000, 2.f)},
      y{std::vector<float>(100), {}, std::vector<float>(1000)};
  std::vector<std::array<void*, 2>> buffers;
  std::vector<std::array<int64_t, 1>> symbols;
  std::vector<target::Segment> segments;
  for (size_t p = 0; p < 3; ++p) {
    buffers.push_back({x[p].data(), y[p].data()});
    symbols.push_back({static_cast<int64_t>(x[p].size())});
  }
  for (size_t p = 0; p < 3; ++p) segments.push_back({buffers[p], symbols[p], (symbols[p][0] + 15) / 16});
  code[0]->run(segments, 1e9);
  CHECK(y[0] == std::vector<float>(100, 3.f));
  CHECK(y[2] == std::vector<float>(1000, 6.f));
  runtime::set_num_threads(before);
}

TEST_CASE("objects are kept on disk: a second target generates no code, a damaged entry is a miss") {
  // A factor of its own: whatever this folder holds from before does not count.
  const double salt = static_cast<double>(std::chrono::system_clock::now().time_since_epoch().count() % 1000003) + 0.25;
  const std::vector<Kernel> kernels{scaled(salt), scaled(salt + 1), row_sum(), scaled(salt)};
  REQUIRE(!runtime::cache_dir().empty());
  target::CpuTarget first;
  first.compile(kernels);
  CHECK(first.stats().compiled + first.stats().from_disk == 3);
  CHECK(first.stats().compiled >= 2);
  CHECK(first.stats().from_memory == 1);
  first.compile(kernels);
  CHECK(first.stats().from_memory == 5);

  target::CpuTarget second;
  const auto code = second.compile(kernels);
  CHECK(second.stats().compiled == 0);
  CHECK(second.stats().from_disk == 3);
  std::vector<float> x(16, 2.f), y(16);
  void* buffers[] = {x.data(), y.data()};
  const int64_t n = 16;
  const target::Segment s{buffers, std::span(&n, 1), 1};
  code[1]->run(std::span(&s, 1), 0);
  CHECK(y[0] == 2.f * static_cast<float>(salt + 1));

  const Digest key = Hasher().text(first.fingerprint()).digest(digest(expand(kernels[0]))).finish();
  auto entry = runtime::cache_get("cpu", key);
  REQUIRE(entry.has_value());
  CHECK(target::unseal(target::seal({'a', 'b'})) == std::vector<char>{'a', 'b'});
  std::vector<char> damaged = *entry;
  damaged[damaged.size() / 2] ^= 1;
  const std::vector<char> bad[] = {
      damaged, {entry->begin(), entry->end() - 1}, {entry->begin(), entry->begin() + 5}, {}};
  for (const std::vector<char>& b : bad) {
    runtime::cache_put("cpu", key, b.data(), b.size());
    target::CpuTarget third;
    third.compile(std::span(kernels.data(), 1));
    CHECK(third.stats().compiled == 1);  // and the entry is whole again
    target::CpuTarget fourth;
    fourth.compile(std::span(kernels.data(), 1));
    CHECK(fourth.stats().from_disk == 1);
  }
}

TEST_CASE("several threads may compile and run at once") {
  target::CpuTarget t(target::CpuOptions{"native", false});
  std::vector<std::thread> threads;
  std::array<bool, 4> fine{};
  for (size_t k = 0; k < 4; ++k)
    threads.emplace_back([&, k] {
      bool ok = true;
      for (int round = 0; round < 8; ++round) {
        const Kernel kernel = scaled(round);
        const auto code = t.compile(std::span(&kernel, 1));
        std::vector<float> x(100, 2.f), y(100);
        void* buffers[] = {x.data(), y.data()};
        const int64_t n = 100;
        const target::Segment s{buffers, std::span(&n, 1), 7};
        code[0]->run(std::span(&s, 1), 0);
        ok = ok && y == std::vector<float>(100, 2.f * static_cast<float>(round));
      }
      fine[k] = ok;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(fine == std::array<bool, 4>{true, true, true, true});
  CHECK(t.stats().compiled == 8);
}

TEST_CASE("unknown instruction sets are refused") {
  CHECK_THROWS_AS(target::resolve(target::CpuOptions{"mmx"}), std::invalid_argument);
  CHECK(target::resolve(target::CpuOptions{"generic"}).vector_bits == 128);
}

TEST_CASE("a row reduction keeps its accumulators in vector registers") {
  if (!cpu_target("avx512")) return;
  target::CodeGenerator g(cpu_target("avx512")->isa());
  const std::string text = g.assembly(expand(row_sum()), "row_sum");
  size_t adds = 0;
  for (size_t at = 0; (at = text.find("vaddps", at)) != std::string::npos; ++at)
    adds += text.substr(at, text.find('\n', at) - at).find("zmm") != std::string::npos;
  CHECK(adds >= 4 + 2);                             // four accumulators in the loop, then the tree
  CHECK(text.find("(%rsp)") == std::string::npos);  // nothing spilt
}
