// Renders the function around a kernel, its regions, and the instructions that are one line each.
#include "target/cpu/codegen/render.h"
#include "base/half.h"

#include <fmt/format.h>
#include <llvm-c/Analysis.h>

#include "base/error.h"
#include "kernel/rules.h"
#include "target/cpu/codegen/renderer.h"

namespace weft::target {

using namespace kernel;

LLVMModuleRef render(LLVMContextRef context, const Kernel& kernel, const std::string& symbol, const Isa& isa) {
  return Renderer(context, kernel, isa).render(symbol);
}

Renderer::Renderer(LLVMContextRef context, const Kernel& kernel, const Isa& isa)
    : ir_(context, kernel.name), kernel_(kernel), isa_(isa), values_(kernel.types.size()),
      splatted_(kernel.types.size(), 0) {}

LLVMModuleRef Renderer::render(const std::string& symbol) {
  find_splatted(kernel_.body);
  declare(symbol);
  enter();
  programs();
  char* message = nullptr;
  const bool broken = LLVMVerifyModule(ir_.module, LLVMReturnStatusAction, &message);
  const std::string text = message;
  LLVMDisposeMessage(message);
  if (broken) {
    LLVMDisposeModule(ir_.module);
    throw_internal("cpu render", fmt::format("kernel {}: {}", kernel_.name, text));
  }
  return ir_.module;
}

void Renderer::declare(const std::string& symbol) {
  IrType args[] = {ir_.ptr, ir_.ptr, ir_.i64, ir_.i64};
  ir_.function =
      LLVMAddFunction(ir_.module, symbol.c_str(), LLVMFunctionType(LLVMVoidTypeInContext(ir_.context), args, 4, 0));
  attributes();
  for (unsigned k : {1u, 2u})
    for (const char* name : {"noalias", "readonly"})
      LLVMAddAttributeAtIndex(
          ir_.function, k,
          LLVMCreateEnumAttribute(ir_.context,
                                  LLVMGetEnumAttributeKindForName(name, std::char_traits<char>::length(name)), 0));
}

/// Gives the function the attributes that all functions of a kernel have.
void Renderer::attributes() {
  ir_.attribute("nounwind");
  ir_.attribute("target-cpu", isa_.cpu);
  ir_.attribute("target-features", isa_.features);
  ir_.attribute("prefer-vector-width", std::to_string(isa_.vector_bits));
}

// Loads pointers and symbols once, on entry. A parameter that is not written never aliases one that is, so alias scopes
// are attached: accesses of written parameters are in a scope of their own, and accesses of the others are marked as
// outside it.
void Renderer::enter() {
  ir_.go(ir_.block("entry"));
  const auto text = [&](const char* s) {
    return LLVMMDStringInContext2(ir_.context, s, std::char_traits<char>::length(s));
  };
  const auto node = [&](std::vector<LLVMMetadataRef> parts) {
    return LLVMMDNodeInContext2(ir_.context, parts.data(), parts.size());
  };
  const LLVMMetadataRef scope = node({text("written"), node({text("weft")})});
  written_scope_ = LLVMMetadataAsValue(ir_.context, node({scope}));
  for (size_t k = 0; k < kernel_.params.size(); ++k)
    buffers_.push_back(
        ir_.load(ir_.ptr, ir_.at(ir_.ptr, LLVMGetParam(ir_.function, 0), ir_.index(static_cast<int64_t>(k))), 8));
  for (size_t k = 0; k < kernel_.symbols.size(); ++k)
    symbols_.push_back(
        ir_.load(ir_.i64, ir_.at(ir_.i64, LLVMGetParam(ir_.function, 1), ir_.index(static_cast<int64_t>(k))), 8));
  for (size_t k = 0; k < kernel_.locals.size(); ++k) make_local(k);
  if (kernel_.cluster > 0) share_locals();
}

// Allocates a local buffer: small ones on the stack, large ones on the heap once a call, since the stacks of team
// threads are small.
void Renderer::make_local(size_t index) {
  const Local& local = kernel_.locals[index];
  const int64_t bytes = local.elements * local.dtype.size();
  constexpr int64_t most_on_stack = 128 * 1024;
  if (on_stack_ + bytes <= most_on_stack) {
    on_stack_ += bytes;
    const IrValue v = LLVMBuildAlloca(
        ir_.b, LLVMArrayType(memory_element(local.dtype), static_cast<unsigned>(std::max<int64_t>(local.elements, 1))),
        "");
    LLVMSetAlignment(v, 64);
    buffers_.push_back(v);
    return;
  }
  const IrValue args[] = {ir_.index(64), ir_.index((bytes + 63) / 64 * 64)};
  buffers_.push_back(ir_.call_external("aligned_alloc", ir_.ptr, args));
  heap_.push_back(buffers_.back());
}

// Emits for (program = begin; program < end; ++program) body, in rotated form, which the loop passes expect.
void Renderer::programs() {
  const IrValue begin = LLVMGetParam(ir_.function, 2), end = LLVMGetParam(ir_.function, 3);
  const LLVMBasicBlockRef entry = ir_.here(), body = ir_.block("program"), exit = ir_.block("exit");
  LLVMBuildCondBr(ir_.b, ir_.compare(LLVMIntSLT, begin, end), body, exit);
  ir_.go(body);
  program_ = LLVMBuildPhi(ir_.b, ir_.i64, "");
  block(kernel_.body);
  const IrValue next = LLVMBuildNSWAdd(ir_.b, program_, ir_.index(1), "");
  IrValue from[] = {begin, next};
  LLVMBasicBlockRef blocks[] = {entry, ir_.here()};
  LLVMAddIncoming(program_, from, blocks, 2);
  LLVMBuildCondBr(ir_.b, ir_.compare(LLVMIntSLT, next, end), body, exit);
  LLVMMoveBasicBlockAfter(exit, ir_.here());
  ir_.go(exit);
#if defined(__x86_64__)
  // Streaming stores are weakly ordered: make them visible before the launch counts as done.
  if (streams_) ir_.intrinsic("llvm.x86.sse.sfence", {}, {});
#endif
  for (IrValue p : heap_)
    ir_.call_external("free", LLVMVoidTypeInContext(ir_.context), std::span<const IrValue>(&p, 1));
  LLVMBuildRetVoid(ir_.b);
}

Rows Renderer::block(const Block& block) {
  for (const Inst& inst : block.insts) {
    if (inst.op != Op::yield) {
      instruction(inst);
      continue;
    }
    Rows all;
    for (Value v : inst.args) all.insert(all.end(), rows(v).begin(), rows(v).end());
    return all;
  }
  return {};
}

void Renderer::instruction(const Inst& inst) {
  auto each = [&](auto&& f) {
    Rows out;
    for (IrValue v : rows(inst.args[0])) out.push_back(f(v));
    define(inst, std::move(out));
  };
  switch (inst.op) {
    case Op::constant: constant(inst); return;
    case Op::program_id: define(inst, {program_}); return;
    case Op::symbol: define(inst, {symbols_[static_cast<size_t>(inst.ref)]}); return;
    case Op::arange: define(inst, {ir_.iota(element(inst.type.dtype), inst.type.dims[0])}); return;
    case Op::scalar: scalar(inst); return;
    case Op::cast: each([&](IrValue v) { return convert(v, type(inst.args[0]).dtype, inst.type.dtype); }); return;
    case Op::bitcast: each([&](IrValue v) { return bitcast(v, type(inst.args[0]).dtype, inst.type.dtype); }); return;
    case Op::broadcast: broadcast(inst); return;
    case Op::reshape: reshape(inst); return;
    case Op::permute: define(inst, transpose(rows(inst.args[0]))); return;
    case Op::reduce: reduce(inst); return;
    case Op::shift: shift_lanes(inst); return;
    case Op::exchange: exchange_lanes(inst); return;
    case Op::extract:
      define(inst,
             {lanes_of(type(inst.args[0])) == 1 ? single(inst.args[0]) : ir_.extract(single(inst.args[0]), inst.axis)});
      return;
    case Op::dot: dot(inst); return;
    case Op::load: load(inst); return;
    case Op::store: store(inst); return;
    case Op::gather: gather(inst); return;
    case Op::scatter: scatter(inst); return;
    case Op::atomic_add: atomic_add(inst); return;
    case Op::prefetch: prefetch(inst); return;
    case Op::alloc:  // allocated on entry
      if (is_barrier(kernel_, inst.ref)) make_barriers(inst);
      return;
    case Op::arrive: arrive(inst); return;
    case Op::await: await(inst); return;
    case Op::roles: roles(inst); return;
    case Op::loop: loop(inst); return;
    case Op::when: when(inst); return;
    case Op::branch: branch(inst); return;
    case Op::while_loop: while_loop(inst); return;
    case Op::atomic:
    case Op::exchange_memory:
    case Op::compare_exchange: update(inst); return;
    case Op::wait_until: wait_until(inst); return;
    case Op::grid_barrier:
    case Op::cluster_barrier: meet(inst); return;
    case Op::load_neighbour:
    case Op::store_neighbour: reach(inst); return;
    case Op::print: print(inst); return;
    case Op::assert_: check_condition(inst); return;
    default: break;
  }
  throw_internal("cpu render", "kernel " + kernel_.name + ": an instruction out of place");
}

void Renderer::constant(const Inst& inst) {
  define(inst, Rows(static_cast<size_t>(rows_of(inst.type)),
                    splat_number(inst.number, inst.type.dtype, lanes_of(inst.type))));
}

/// Lets values stand for rows that follow each other in `all`.
void Renderer::assign_rows(std::span<const Value> to, const Rows& all) {
  size_t next = 0;
  for (Value v : to) {
    const size_t count = static_cast<size_t>(rows_of(type(v)));
    values_[static_cast<size_t>(v)].assign(all.begin() + static_cast<std::ptrdiff_t>(next),
                                           all.begin() + static_cast<std::ptrdiff_t>(next + count));
    next += count;
  }
}

// Renders a loop in rotated form: a guard, then a body with its test at the end. Carried values are phis of rows.
void Renderer::loop(const Inst& inst) {
  const IrValue lo = single(inst.args[0]), hi = single(inst.args[1]), step = single(inst.args[2]);
  const Block& inner = inst.blocks[0];
  Rows initial;
  for (size_t k = 3; k < inst.args.size(); ++k)
    initial.insert(initial.end(), rows(inst.args[k]).begin(), rows(inst.args[k]).end());
  const LLVMBasicBlockRef before = ir_.here(), body = ir_.block("loop"), exit = ir_.block("done");
  LLVMBuildCondBr(ir_.b, ir_.compare(LLVMIntSLT, lo, hi), body, exit);

  ir_.go(body);
  const IrValue variable = LLVMBuildPhi(ir_.b, ir_.i64, "");
  Rows phis;
  for (IrValue v : initial) phis.push_back(LLVMBuildPhi(ir_.b, LLVMTypeOf(v), ""));
  values_[static_cast<size_t>(inner.arguments[0])] = {variable};
  assign_rows(std::span(inner.arguments).subspan(1), phis);
  const Rows last = block(inner);
  const IrValue next = LLVMBuildNSWAdd(ir_.b, variable, step, "");
  const LLVMBasicBlockRef latch = ir_.here();
  LLVMBuildCondBr(ir_.b, ir_.compare(LLVMIntSLT, next, hi), body, exit);
  auto join = [](IrValue phi, IrValue a, LLVMBasicBlockRef from_a, IrValue b, LLVMBasicBlockRef from_b) {
    IrValue v[] = {a, b};
    LLVMBasicBlockRef f[] = {from_a, from_b};
    LLVMAddIncoming(phi, v, f, 2);
  };
  join(variable, lo, before, next, latch);
  for (size_t k = 0; k < phis.size(); ++k) join(phis[k], initial[k], before, last[k], latch);

  LLVMMoveBasicBlockAfter(exit, latch);
  ir_.go(exit);
  Rows results;
  for (size_t k = 0; k < phis.size(); ++k) {
    results.push_back(LLVMBuildPhi(ir_.b, LLVMTypeOf(initial[k]), ""));
    join(results[k], initial[k], before, last[k], latch);
  }
  assign_rows(inst.results, results);
}

// Renders a conditional block. If it has values, it runs for all lanes of a tile when it must for one of them; the
// branch is marked as unlikely.
void Renderer::when(const Inst& inst) {
  const LLVMBasicBlockRef before = ir_.here(), then = ir_.block("then"), after = ir_.block("after");
  const bool values = !inst.results.empty();
  const IrValue branch =
      LLVMBuildCondBr(ir_.b, values ? any_lane(rows(inst.args[0])) : single(inst.args[0]), then, after);
  if (values) unlikely(branch);
  ir_.go(then);
  Rows yielded = block(inst.blocks[0]), otherwise;
  for (size_t k = 1; k < inst.args.size(); ++k)
    otherwise.insert(otherwise.end(), rows(inst.args[k]).begin(), rows(inst.args[k]).end());
  const Rows& condition = rows(inst.args[0]);
  for (size_t k = 0; k < yielded.size(); ++k)
    yielded[k] = ir_.select(condition[k % condition.size()], yielded[k], otherwise[k]);
  const LLVMBasicBlockRef end = ir_.here();
  LLVMBuildBr(ir_.b, after);
  LLVMMoveBasicBlockAfter(after, end);
  ir_.go(after);
  for (size_t k = 0; k < inst.results.size(); ++k) {
    Rows joined;
    for (size_t r = k * condition.size(); r < (k + 1) * condition.size(); ++r) {
      joined.push_back(LLVMBuildPhi(ir_.b, LLVMTypeOf(yielded[r]), ""));
      IrValue from[] = {otherwise[r], yielded[r]};
      LLVMBasicBlockRef blocks[] = {before, end};
      LLVMAddIncoming(joined.back(), from, blocks, 2);
    }
    values_[static_cast<size_t>(inst.results[k])] = std::move(joined);
  }
}

// Returns whether any lane is true: halves are combined down to a register's lanes, whose mask bits the processor tests
// at once.
IrValue Renderer::any_lane(const Rows& condition) {
  IrValue any = condition[0];
  for (size_t r = 1; r < condition.size(); ++r) any = ir_.bit_or(any, condition[r]);
  for (int64_t n = ir_.lanes(any); n > isa_.vector_bits / 32 && n % 2 == 0; n /= 2)
    any = ir_.bit_or(ir_.slice(any, 0, n / 2), ir_.slice(any, n / 2, n / 2));
  return ir_.lanes(any) == 1 ? any : ir_.intrinsic("llvm.vector.reduce.or", {any});
}

void Renderer::unlikely(IrValue branch) {
  const auto weight = [&](unsigned w) { return LLVMValueAsMetadata(LLVMConstInt(ir_.i32, w, 0)); };
  constexpr std::string_view name = "branch_weights", kind = "prof";
  LLVMMetadataRef parts[] = {LLVMMDStringInContext2(ir_.context, name.data(), name.size()), weight(1), weight(2000)};
  LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(ir_.context, kind.data(), static_cast<unsigned>(kind.size())),
                  LLVMMetadataAsValue(ir_.context, LLVMMDNodeInContext2(ir_.context, parts, 3)));
}

// Finds tiles that are loaded only as the left operand of a dot, whose lanes are each splat over a row. Their elements
// are loaded as scalars, which the code generator turns into broadcasting loads.
void Renderer::find_splatted(const Block& body) {
  std::vector<int> uses(kernel_.types.size(), 0), wanted(kernel_.types.size(), 0);
  std::vector<Value> loaded;
  auto walk = [&](auto&& self, const Block& b) -> void {
    for (const Inst& inst : b.insts) {
      for (size_t k = 0; k < inst.args.size(); ++k) {
        if (inst.args[k] == no_value) continue;
        ++uses[static_cast<size_t>(inst.args[k])];
        if (inst.op == Op::dot && k == 0) ++wanted[static_cast<size_t>(inst.args[k])];
      }
      if (inst.op == Op::load && inst.type.rank() == 2 && lanes_of(inst.type) > 1 && inst.type.size() <= 512)
        loaded.push_back(inst.results[0]);
      for (const Block& nested : inst.blocks) self(self, nested);
    }
  };
  walk(walk, body);
  for (Value v : loaded) {
    const size_t k = static_cast<size_t>(v);
    splatted_[k] = wanted[k] > 0 && wanted[k] == uses[k];
  }
}

Dtype Renderer::ref_dtype(Ref ref) const {
  const size_t k = static_cast<size_t>(ref), params = kernel_.params.size();
  return k < params ? kernel_.params[k].dtype : kernel_.locals[k - params].dtype;
}

IrType Renderer::element(Dtype t) const {
  if (t == bool_) return ir_.i1;
  if (t == float32) return ir_.f32;
  if (t == float64) return ir_.f64;
  return ir_.integer(t.size() * 8);
}

IrType Renderer::memory_element(Dtype t) const { return t == bool_ ? ir_.i8 : element(t); }

IrValue Renderer::splat_number(const Number& number, Dtype t, int64_t lanes) const {
  if (t == float32 || t == float64)
    return ir_.real_splat(element(t), t == float32 ? static_cast<float>(number.real()) : number.real(), lanes);
  if (is_low_float(t)) return ir_.integer_splat(element(t), float_to_low(static_cast<float>(number.real()), t), lanes);
  return ir_.integer_splat(element(t), reference_cast(number, number.integral ? int64 : float64, t).i, lanes);
}

}  // namespace weft::target
