// Loads, stores, gathers, scatters and atomics: all forms of strides and limits.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "target/cpu/codegen/compile.h"
#include "target/cpu/cpu_support.h"

using namespace weft;
using namespace weft::kernel;
using namespace weft::test;

namespace {

struct Form {
  std::vector<int64_t> dims, strides;
};

const std::vector<Form> forms = {
    {{}, {}},          {{16}, {1}},        {{16}, {2}},      {{16}, {-1}},       {{5}, {1}},        {{3}, {-7}},
    {{1}, {1}},        {{64}, {1}},        {{2}, {9}},       {{4, 8}, {20, 1}},  {{8, 4}, {1, 11}}, {{4, 8}, {1, 5}},
    {{8, 16}, {1, 9}}, {{16, 4}, {1, 33}}, {{5, 3}, {1, 7}}, {{4, 16}, {3, 50}}, {{5, 1}, {4, 1}},  {{1, 6}, {1, 1}},
    {{1, 8}, {0, 2}},  {{3, 7}, {-30, 1}}, {{2, 2}, {2, 1}},
};
const std::vector<Form> loads_only = {
    {{16}, {0}}, {{4, 8}, {0, 1}}, {{4, 8}, {1, 0}}, {{4, 16}, {0, 0}}, {{8, 4}, {1, 0}}};

constexpr int64_t room = 2048, middle = 1000;

std::vector<int64_t> dense(const std::vector<int64_t>& dims) {
  if (dims.size() == 2) return {dims[1], 1};
  return std::vector<int64_t>(dims.size(), 1);
}

// y[form], or a dense tile of y, = x[form]; limits from symbols, from constants, or absent.
RandomCase copy_case(Dtype t, const Form& f, bool store_form, int limit_kind, std::vector<int64_t> limits,
                     bool streaming = false) {
  Builder b("copy");
  const Ref x = b.param("x", t, false), y = b.param("y", t, true);
  std::vector<Value> cut;
  for (size_t k = 0; k < f.dims.size(); ++k) {
    const Value symbol = b.symbol(k == 0 ? "l0" : "l1");
    if (limit_kind == 0 || (limit_kind == 3 && k == 0)) cut.push_back(no_value);
    else cut.push_back(limit_kind == 1 ? b.index(limits[k]) : symbol);
  }
  const Value at = b.index(middle);
  const Number other = round_to(Number::of_int(1), t);
  const Value v = b.load(x, at, f.dims, f.strides, cut, other);
  b.store(y, v, at, store_form ? f.strides : dense(f.dims), store_form ? cut : std::vector<Value>(), streaming);
  RandomCase c = make_case(b.finish(), {room, room}, {}, 1);
  for (size_t k = 0; k < c.kernel.symbols.size(); ++k) c.symbols.push_back(limits.at(k));
  return c;
}

}  // namespace

TEST_CASE("tiles of all strides and limits") {
  uint64_t turn = 0;
  for (Dtype t : {bool_, int8, bfloat16, float32, float64})
    for (const std::vector<Form>& list : {forms, loads_only})
      for (const Form& f : list) {
        const bool storable = std::find(f.strides.begin(), f.strides.end(), 0) == f.strides.end();
        for (int kind = 0; kind < 4; ++kind) {
          const std::vector<std::vector<int64_t>> cuts = {{3, 2}, {0, 5}, {100, 1}, {-4, 100}, {1, 3}, {2, 100}};
          const std::vector<int64_t> limits = cuts[turn++ % cuts.size()];
          if (kind != 0 && f.dims.empty()) continue;
          agree(copy_case(t, f, storable, kind, limits, turn % 3 == 0), turn % 4 == 0 ? 3 : 1);
        }
      }
}

TEST_CASE("streaming stores write what ordinary ones do") {
  for (int64_t shift : {0, 1})
    for (int64_t n : {1000, 1024}) {
      Builder b("stream");
      const Ref x = b.param("x", float32, false), y = b.param("y", float32, true);
      const Value start = b.mul(b.program_id(), b.index(64)), left = b.sub(b.symbol("n"), start);
      b.store(y, b.load(x, start, {64}, {1}, {left}), b.add(start, b.index(shift)), {1}, {left}, true);
      agree(make_case(b.finish(), {1024, 1040}, {n}, 16));
    }
}

TEST_CASE("what a limit leaves out is never touched") {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  char* const memory =
      static_cast<char*>(mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(memory != MAP_FAILED);
  mprotect(memory + page, page, PROT_NONE);  // the two buffers end where their pages do
  mprotect(memory + 3 * page, page, PROT_NONE);
  for (Dtype t : {bool_, bfloat16, float32, float64})
    for (const char* isa : instruction_sets) {
      if (!cpu_target(isa)) continue;
      for (const Form& f :
           {Form{{16}, {1}}, Form{{8}, {3}}, Form{{16}, {0}}, Form{{4, 8}, {8, 1}}, Form{{8, 4}, {1, 8}}}) {
        const bool same_slot = f.strides == std::vector<int64_t>{0};
        Builder b("edge");
        const Ref x = b.param("x", t, false), y = b.param("y", t, true);
        std::vector<Value> cut;
        for (size_t k = 0; k < f.dims.size(); ++k) cut.push_back(b.symbol(k == 0 ? "l0" : "l1"));
        const Value v = b.load(x, b.index(0), f.dims, f.strides, cut, Number::of_int(0));
        b.store(y, v, b.index(0), same_slot ? std::vector<int64_t>{1} : f.strides, cut);
        const Kernel k = b.finish();
        const auto code = cpu_target(isa)->compile(std::span<const Kernel>(&k, 1));
        for (int64_t elements : {0, 1}) {
          std::vector<void*> buffers{memory + page - static_cast<size_t>(elements) * t.size(),
                                     memory + 3 * page - static_cast<size_t>(elements) * t.size()};
          const std::vector<int64_t> symbols(f.dims.size(), elements);
          const target::Segment s{buffers, symbols, 1};
          code[0]->run(std::span(&s, 1), 0);
        }
      }
    }
  munmap(memory, 4 * page);
}

TEST_CASE("no access by mask has a branch for each lane, whatever the instruction set lacks") {
  for (const char* isa : instruction_sets) {
    if (!cpu_target(isa)) continue;
    for (Dtype t : {bool_, bfloat16, float32, float64}) {
      Builder b("masked");
      const Ref x = b.param("x", t, false), y = b.param("y", t, true);
      const Value n = b.symbol("n"), lanes = b.arange(256), inside = b.lt(lanes, b.broadcast(n, {256}));
      b.store(y, b.load(x, b.index(0), {256}, {1}, {n}), b.index(0), {1}, {n});
      b.scatter(y, b.gather(x, lanes, inside), b.add(lanes, b.broadcast(n, {256})), inside);
      target::CodeGenerator g(cpu_target(isa)->isa());
      const std::string text = g.assembly(expand(b.finish()), "masked");
      size_t labels = 0;
      for (size_t at = 0; (at = text.find("\n.LBB", at)) != std::string::npos; ++at) ++labels;
      CAPTURE(isa);
      CAPTURE(dtype_name(t));
      CHECK(labels < 32);
    }
  }
}

TEST_CASE("gather, scatter and atomic add") {
  for (Dtype t : all_dtypes)
    for (int64_t lanes : {1, 3, 16})
      for (bool masked : {false, true}) {
        Builder b("indexed");
        const Ref x = b.param("x", t, false), at = b.param("at", int64, false), which = b.param("which", bool_, false),
                  y = b.param("y", t, true);
        const Ref sums = b.param("sums", t == bool_ ? int32 : t, true);
        const Value start = b.mul(b.program_id(), b.index(lanes));
        const Value index = b.scalar(ScalarOp::mod, {b.load(at, start, {lanes}, {1}), b.index(40)});
        const Value mask = masked ? b.load(which, start, {lanes}, {1}) : no_value;
        const Value v = b.gather(x, index, mask, round_to(Number::of_int(1), t));
        b.scatter(y, v, index, mask);  // positions repeat: the last lane wins
        if (is_integer(t)) b.atomic_add(sums, v, index, mask);
        agree(make_case(b.finish(), {40, 48, 48, 40, 40}, {}, 1, static_cast<uint64_t>(lanes)));
      }
}

TEST_CASE("atomic adds of floats arrive, each of them, from two threads") {
  for (Dtype t : {float16, bfloat16, float32, float64, int32})
    for (const char* isa : instruction_sets) {
      if (!cpu_target(isa)) continue;
      Builder b("count");
      const Ref sums = b.param("sums", t, true);
      b.atomic_add(sums, b.constant(t, round_to(Number::of_int(1), t), {4}), b.arange(4));
      RandomCase c = make_case(b.finish(), {4}, {}, 200);
      for (int64_t k = 0; k < 4; ++k) write_element(c.buffers[0].data(), t, k, round_to(Number::of_int(0), t));
      run_compiled(*cpu_target(isa), c, 1e9);
      for (int64_t k = 0; k < 4; ++k) CHECK(read_element(c.buffers[0].data(), t, k).real() == 200);
    }
}
