// One malformed kernel for each rule: it must be refused, and for that reason.
#include <doctest/doctest.h>

#include <functional>

#include "base/error.h"
#include "kernel/tile.h"

using namespace weft;
using namespace weft::kernel;

namespace {

// A kernel with one instruction of every kind, to be broken in one place.
Kernel sound() {
  Builder b("sound");
  const Ref in = b.param("x", float32, false), out = b.param("y", float32, true), sums = b.param("s", int64, true),
            local = b.local(float32, 8);
  const Value zero = b.index(0), n = b.symbol("n"), pid = b.program_id(), lanes = b.arange(8), step = b.index(2);
  const Value x = b.load(in, pid, {8}, {1}, {n}), twice = b.add(x, x), mask = b.lt(lanes, n);
  const Value bits = b.bitcast(b.cast(lanes, uint32), float32);
  const Value wide = b.broadcast(twice, {4, 8}), column = b.reshape(x, {8, 1}), tall = b.transpose(wide);
  const Value product = b.dot(wide, tall, b.real(float32, 0, {4, 4}));
  const Value line = b.reduce(Reducer::sum, wide, 0);
  b.store(local, line, zero, {1});
  const auto carried = b.loop(zero, n, step, {x, line}, [&](Value i, const std::vector<Value>& c) {
    const Value g = b.gather(in, b.add(lanes, i), mask);
    return std::vector<Value>{b.add(c[0], g), c[1]};
  });
  const Value condition = b.lt(pid, n);
  b.when(condition, [&] { b.scatter(out, carried[0], lanes, mask); });
  b.atomic_add(sums, lanes, lanes, mask);
  b.store(out, b.select(mask, bits, twice), zero, {1});
  b.store(out, product, zero, {4, 1});
  b.store(out, column, zero, {1, 1});
  const Value chosen =
      b.when(mask, {x}, [&] { return std::vector<Value>{b.mul(b.broadcast(b.cast(n, float32), {8}), x)}; })[0];
  b.store(out, chosen, zero, {1});
  return b.finish();
}

Inst& find(Block& block, Op op, int nth = 0) {
  for (Inst& i : block.insts)
    if (i.op == op && nth-- == 0) return i;
  throw std::logic_error("no such instruction");
}
Inst& find(Kernel& k, Op op, int nth = 0) { return find(k.body, op, nth); }
Inst& find(Kernel& k, ScalarOp op) {
  for (Inst& i : k.body.insts)
    if (i.op == Op::scalar && i.scalar_op == op) return i;
  throw std::logic_error("no such operator");
}
Type& type_of(Kernel& k, Value v) { return k.types[static_cast<size_t>(v)]; }
void retype(Kernel& k, Inst& inst, Type t) { inst.type = type_of(k, inst.results[0]) = std::move(t); }

std::string complaint(const std::function<void(Kernel&)>& damage) {
  Kernel k = sound();
  damage(k);
  try {
    verify(k);
  } catch (const internal_error& e) {
    return e.what();
  }
  return "accepted";
}

void refuses(const char* reason, const std::function<void(Kernel&)>& damage) {
  const std::string said = complaint(damage);
  CAPTURE(said);
  CHECK_MESSAGE(said.find(reason) != std::string::npos, "wanted: ", reason);
}

}  // namespace

TEST_CASE("a sound kernel is accepted and a complaint names kernel and instruction") {
  CHECK(complaint([](Kernel&) {}) == "accepted");
  const std::string said = complaint([](Kernel& k) { find(k, Op::reduce).axis = 2; });
  CHECK(said.find("kernel sound") != std::string::npos);
  CHECK(said.find("reduce sum") != std::string::npos);
}

TEST_CASE("scopes") {
  refuses("used before it is defined", [](Kernel& k) { std::swap(find(k, Op::load), find(k, ScalarOp::add)); });
  refuses("used outside its block",
          [](Kernel& k) { find(k, Op::store, 1).args[1] = find(k, Op::loop).blocks[0].arguments[0]; });
  refuses("defined twice", [](Kernel& k) { k.body.insts.insert(k.body.insts.begin(), find(k, Op::program_id)); });
  refuses("does not exist", [](Kernel& k) { find(k, Op::permute).args[0] = 10000; });
  refuses("not a value of the kernel", [](Kernel& k) { find(k, Op::program_id).results[0] = 10000; });
  refuses("ends with a yield", [](Kernel& k) { k.body.insts.pop_back(); });
  refuses("ends with a yield", [](Kernel& k) { find(k, Op::when).blocks[0].insts.clear(); });
  refuses("stands inside a block", [](Kernel& k) { k.body.insts.insert(k.body.insts.begin(), Inst{.op = Op::yield}); });
  refuses("outermost block takes no arguments", [](Kernel& k) { k.body.arguments = {0}; });
  refuses("the block yields 1 values, not 0",
          [](Kernel& k) { k.body.insts.back().args = {find(k, Op::load).results[0]}; });
  refuses("a body is not wanted", [](Kernel& k) { find(k, Op::load).blocks.emplace_back(); });
  refuses("a field is set that the instruction does not read", [](Kernel& k) { find(k, Op::permute).axis = 1; });
  refuses("a field is set that the instruction does not read", [](Kernel& k) { find(k, Op::reduce).streaming = true; });
  refuses("a field is set that the instruction does not read", [](Kernel& k) { find(k, Op::store).number.i = 3; });
  refuses("one body is wanted", [](Kernel& k) { find(k, Op::when).blocks.clear(); });
}

TEST_CASE("types and constants") {
  refuses("at most four axes", [](Kernel& k) { retype(k, find(k, Op::arange), {int64, {2, 2, 2, 2, 2}}); });
  refuses("extents are positive", [](Kernel& k) { retype(k, find(k, Op::arange), {int64, {0}}); });
  refuses("complex dtype", [](Kernel& k) { retype(k, find(k, Op::cast), {complex64, {8}}); });
  refuses("complex dtype", [](Kernel& k) { k.params[0].dtype = complex64; });
  refuses("type differs from the result's", [](Kernel& k) { find(k, Op::load).type.dims = {4}; });
  refuses("an effect has no result", [](Kernel& k) { find(k, Op::store).results = find(k, Op::load).results; });
  refuses("one result is wanted", [](Kernel& k) { find(k, Op::load).results.clear(); });
  refuses("not one of the dtype", [](Kernel& k) { find(k, Op::constant).number = Number::of_real(1.5); });
  refuses("not one of the dtype", [](Kernel& k) { find(k, Op::load).number = Number::of_real(0.1); });
  refuses("number of arguments", [](Kernel& k) { find(k, Op::program_id).args = {0}; });
  refuses("an argument is missing", [](Kernel& k) { find(k, Op::permute).args = {no_value}; });
  refuses("no such symbol", [](Kernel& k) { find(k, Op::symbol).ref = 1; });
  refuses("int64 scalar", [](Kernel& k) { retype(k, find(k, Op::program_id), {int32, {}}); });
  refuses("int64 or int32 with one axis", [](Kernel& k) { retype(k, find(k, Op::arange), {float32, {8}}); });
}

TEST_CASE("elementwise instructions") {
  refuses("number of arguments", [](Kernel& k) { find(k, ScalarOp::add).args.pop_back(); });
  refuses("one shape", [](Kernel& k) { find(k, ScalarOp::add).args[1] = find(k, Op::program_id).results[0]; });
  refuses("one dtype", [](Kernel& k) { find(k, ScalarOp::add).args[1] = find(k, Op::arange).results[0]; });
  refuses("not defined on this dtype", [](Kernel& k) { find(k, ScalarOp::add).scalar_op = ScalarOp::bit_or; });
  refuses("not defined on this dtype", [](Kernel& k) { find(k, ScalarOp::add).scalar_op = ScalarOp::mulhi; });
  refuses("result's dtype", [](Kernel& k) { find(k, ScalarOp::add).scalar_op = ScalarOp::lt; });
  refuses("condition is a bool", [](Kernel& k) { find(k, ScalarOp::select).args[0] = find(k, Op::arange).results[0]; });
  refuses("no such scalar operator", [](Kernel& k) { find(k, ScalarOp::add).scalar_op = ScalarOp::count_; });
  refuses("the shape changes", [](Kernel& k) { retype(k, find(k, Op::cast), {uint32, {4}}); });
  refuses("the width changes", [](Kernel& k) { retype(k, find(k, Op::bitcast), {float64, {8}}); });
}

TEST_CASE("movement, reductions and products") {
  refuses("does not broadcast", [](Kernel& k) {
    find(k, Op::broadcast, 1).type.dims = type_of(k, find(k, Op::broadcast, 1).results[0]).dims = {8, 4};
  });
  refuses("number of elements changes", [](Kernel& k) { retype(k, find(k, Op::reshape), {float32, {4}}); });
  refuses("not the permuted", [](Kernel& k) { retype(k, find(k, Op::permute), {float32, {4, 8}}); });
  refuses("no permutation", [](Kernel& k) { find(k, Op::permute).axes = {1, 1}; });
  refuses("no permutation", [](Kernel& k) { find(k, Op::permute).axes = {1, 2}; });
  refuses("for each axis of the result", [](Kernel& k) { find(k, Op::permute).axes = {0}; });
  refuses("no such axis", [](Kernel& k) { find(k, Op::reduce).axis = -1; });
  refuses("without the axis", [](Kernel& k) { find(k, Op::reduce).axis = 1; });
  refuses("reducer is not defined", [](Kernel& k) { find(k, Op::reduce).reducer = Reducer::any; });
  refuses("[m,k] [k,n] [m,n]", [](Kernel& k) { std::swap(find(k, Op::dot).args[0], find(k, Op::dot).args[1]); });
  refuses("as wide as they are", [](Kernel& k) { find(k, Op::dot).args[2] = find(k, Op::arange).results[0]; });
  refuses("two axes", [](Kernel& k) { find(k, Op::dot).args[0] = find(k, Op::load).results[0]; });
}

TEST_CASE("memory") {
  refuses("not declared as written", [](Kernel& k) { find(k, Op::store, 1).ref = 0; });
  refuses("not declared as written", [](Kernel& k) { k.params[2].written = false; });
  refuses("no parameter or local", [](Kernel& k) { find(k, Op::load).ref = 4; });
  refuses("no parameter or local", [](Kernel& k) { find(k, Op::load).ref = -1; });
  refuses("differs from the buffer's", [](Kernel& k) { find(k, Op::load).ref = 2; });
  refuses("one stride for each axis", [](Kernel& k) { find(k, Op::load).strides = {1, 1}; });
  refuses("offset is an int64 scalar",
          [](Kernel& k) { find(k, Op::store, 1).args[1] = find(k, Op::arange).results[0]; });
  refuses("limit is an int64 scalar",
          [](Kernel& k) { find(k, Op::store, 1).args[2] = find(k, Op::arange).results[0]; });
  refuses("stride of 0", [](Kernel& k) { find(k, Op::store, 1).strides = {0}; });
  refuses("value is missing", [](Kernel& k) { find(k, Op::store).args.clear(); });
  refuses("index is an int64 tile",
          [](Kernel& k) { find(k, Op::atomic_add).args[1] = find(k, Op::program_id).results[0]; });
  refuses("mask is a bool tile", [](Kernel& k) { find(k, Op::atomic_add).args[2] = find(k, Op::arange).results[0]; });
  refuses("names no local", [](Kernel& k) { find(k, Op::alloc).ref = 1; });
  refuses("number of elements differs", [](Kernel& k) { k.locals[0].elements = 9; });
  refuses("used before it is made",
          [](Kernel& k) { std::erase_if(k.body.insts, [](const Inst& i) { return i.op == Op::alloc; }); });
  refuses("made twice", [](Kernel& k) { k.body.insts.insert(k.body.insts.begin(), find(k, Op::alloc)); });
  refuses("outermost block", [](Kernel& k) {
    Block& inner = find(k, Op::when).blocks[0];
    inner.insts.insert(inner.insts.begin(), find(k, Op::alloc));
  });
  refuses("at least one element", [](Kernel& k) { k.locals[0].elements = 0; });
}

TEST_CASE(
    "parallel loops: outermost, of equally many iterations, before anything else is written, and nothing is carried") {
  // What each of these loops does is legal where rounds follow each other.
  const auto verdict = [](const std::function<void(Builder&, Ref, Ref)>& body) {
    Builder b("iterations");
    const Ref out = b.param("y", float32, true), local = b.local(float32, 64);
    body(b, out, local);
    Kernel k = b.finish();
    const std::function<void(Block&)> mark = [&](Block& block) {
      for (Inst& inst : block.insts) {
        inst.parallel = inst.op == Op::loop;
        for (Block& inner : inst.blocks) mark(inner);
      }
    };
    mark(k.body);
    try {
      verify(k);
    } catch (const internal_error& e) {
      return std::string(e.what());
    }
    return print(k).find("loop parallel ") == std::string::npos ? std::string("not printed") : std::string("accepted");
  };
  const auto rounds = [](Builder& b, Ref to, const std::function<void()>& inside = {}) {
    b.loop(b.index(0), b.symbol("n"), b.index(1), {}, [&](Value i, const std::vector<Value>&) {
      b.store(to, b.real(float32, 1, {8}), b.mul(i, b.index(8)), {1});
      if (inside) inside();
      return std::vector<Value>{};
    });
  };
  CHECK(verdict([&](Builder& b, Ref, Ref local) { rounds(b, local); }) == "accepted");
  CHECK(verdict([&](Builder& b, Ref, Ref local) {
          rounds(b, local, [&] { rounds(b, local); });
        }).find("stand in the outermost block") != std::string::npos);
  CHECK(verdict([&](Builder& b, Ref out, Ref) { rounds(b, out), rounds(b, out); }) == "accepted");
  CHECK(verdict([&](Builder& b, Ref, Ref local) {
          rounds(b, local);
          b.loop(b.index(0), b.symbol("m"), b.index(1), {},
                 [&](Value, const std::vector<Value>&) { return std::vector<Value>{}; });
        }).find("equally many iterations") != std::string::npos);
  CHECK(verdict([&](Builder& b, Ref out, Ref local) {
          b.store(out, b.real(float32, 2, {8}), b.index(0), {1});
          rounds(b, local);
        }).find("nothing is written before a parallel loop") != std::string::npos);
  CHECK(verdict([&](Builder& b, Ref out, Ref) {
          const auto sum =
              b.loop(b.index(0), b.symbol("n"), b.index(1), {b.real(float32, 0, {8})},
                     [&](Value, const std::vector<Value>& c) { return std::vector<Value>{b.add(c[0], c[0])}; });
          b.store(out, sum[0], b.index(0), {1});
        }).find("and carry nothing") != std::string::npos);
}

TEST_CASE("local buffers in shares are touched by iterations alone") {
  const auto kernel = [](bool in_iteration) {
    Builder b("shares");
    const Ref out = b.param("y", float32, true), local = b.local(float32, 16, 8);
    b.parallel(2, [&](Value round) { b.store(local, b.real(float32, 1, {8}), b.mul(round, b.index(8)), {1}); });
    const auto copy = [&](Value from) { b.store(out, b.load(local, from, {8}, {1}), from, {1}); };
    if (in_iteration) b.parallel(2, [&](Value round) { copy(b.mul(round, b.index(8))); });
    else copy(b.index(0));
    return b.finish();
  };
  const Kernel k = kernel(true);
  CHECK(print(k).find("share(8)") != std::string::npos);
  Kernel whole = k;
  whole.locals[0].share = 0;
  CHECK(digest(k) != digest(whole));
  CHECK_THROWS_WITH_AS(kernel(false), doctest::Contains("touched by iterations alone"), internal_error);
}

TEST_CASE("loops and conditions") {
  refuses("step is positive", [](Kernel& k) {
    const Value step = find(k, Op::loop).args[2];
    for (Inst& i : k.body.insts)
      if (i.op == Op::constant && i.results[0] == step) i.number = Number::of_int(0);
  });
  refuses("bounds and step are int64", [](Kernel& k) { find(k, Op::loop).args[1] = find(k, Op::arange).results[0]; });
  refuses("one result for each", [](Kernel& k) { find(k, Op::loop).args.pop_back(); });
  refuses("induction variable and the carried", [](Kernel& k) { find(k, Op::loop).blocks[0].arguments.pop_back(); });
  refuses("carried value changes", [](Kernel& k) { find(k, Op::loop).args[3] = find(k, Op::arange).results[0]; });
  refuses("carried value changes",
          [](Kernel& k) { find(k, Op::loop).blocks[0].insts.back().args[0] = find(k, Op::arange).results[0]; });
  refuses("yields 1 values, not 2", [](Kernel& k) { find(k, Op::loop).blocks[0].insts.back().args.pop_back(); });
  refuses("induction variable is an int64", [](Kernel& k) {
    type_of(k, find(k, Op::loop).blocks[0].arguments[0]) = {int32, {}};
  });
  refuses("condition is a bool scalar", [](Kernel& k) { find(k, Op::when).args[0] = find(k, Op::arange).results[0]; });
  refuses("takes no arguments", [](Kernel& k) {
    k.types.push_back({int64, {}});
    find(k, Op::when).blocks[0].arguments = {static_cast<Value>(k.types.size() - 1)};
  });
  const auto chosen = [](Kernel& k) -> Inst& { return find(k, Op::when, 1); };
  refuses("number of arguments is wrong", [&](Kernel& k) { chosen(k).args.pop_back(); });
  refuses("condition is a bool", [&](Kernel& k) { chosen(k).args[0] = chosen(k).args[1]; });
  refuses("have one shape", [&](Kernel& k) { chosen(k).args[0] = find(k, Op::when).args[0]; });
  refuses("type of a value changes", [&](Kernel& k) { chosen(k).args[1] = find(k, Op::arange).results[0]; });
  refuses("carried value changes",
          [&](Kernel& k) { chosen(k).blocks[0].insts.back().args[0] = find(k, Op::arange).results[0]; });
  refuses("yields 0 values, not 1", [&](Kernel& k) { chosen(k).blocks[0].insts.back().args.clear(); });
  refuses("lane by lane, on nothing but values", [&](Kernel& k) {  // memory is read
    std::vector<Inst>& insts = chosen(k).blocks[0].insts;
    insts.insert(insts.begin(), find(k, Op::load));
    k.types.push_back(insts[0].type);
    insts[0].results = {static_cast<Value>(k.types.size() - 1)};
  });
  refuses("lane by lane, on nothing but values", [&](Kernel& k) {  // lanes move
    std::vector<Inst>& insts = chosen(k).blocks[0].insts;
    insts.insert(insts.begin(), find(k, Op::reduce));
    k.types.push_back(insts[0].type);
    insts[0].results = {static_cast<Value>(k.types.size() - 1)};
  });
  refuses("all tiles have its shape", [&](Kernel& k) {
    std::vector<Inst>& insts = chosen(k).blocks[0].insts;
    insts.insert(insts.begin(), Inst{.op = Op::cast, .type = {float64, {4, 4}}, .args = {find(k, Op::dot).results[0]}});
    k.types.push_back(insts[0].type);
    insts[0].results = {static_cast<Value>(k.types.size() - 1)};
  });
}
