// The canonical form of a kernel: values renumbered in program order, names and unused fields dropped. Kernels with the
// same instructions get the same digest, which is the key of their compiled code.
#include <utility>

#include "kernel/op_info.h"
#include "kernel/rules.h"

namespace weft::kernel {
namespace {

class Renumbering {
 public:
  explicit Renumbering(const Kernel& from) : from_(from), to_(from.types.size(), no_value) {}

  Kernel run() {
    for (const Param& p : from_.params) out_.params.push_back({"", p.dtype, p.written, p.constant});
    out_.symbols.assign(from_.symbols.size(), "");
    out_.locals = from_.locals;
    out_.any_size = from_.any_size;
    out_.ordered = from_.ordered;
    out_.cluster = from_.cluster;
    out_.launch = from_.launch;
    out_.body = block(from_.body);
    return std::move(out_);
  }

 private:
  Value define(Value v) {
    out_.types.push_back(from_.types.at(static_cast<size_t>(v)));
    return to_[static_cast<size_t>(v)] = static_cast<Value>(out_.types.size() - 1);
  }

  Block block(const Block& b) {
    Block result;
    for (Value v : b.arguments) result.arguments.push_back(define(v));
    for (const Inst& i : b.insts) result.insts.push_back(inst(i));
    return result;
  }

  // Copies the fields that the instruction's kind uses, and no others.
  Inst inst(const Inst& i) {
    Inst result{.op = i.op};
    for (Value v : i.args) result.args.push_back(v == no_value ? no_value : to_.at(static_cast<size_t>(v)));
    for (Value v : i.results) result.results.push_back(define(v));
    if (!i.results.empty()) result.type = i.type;
    const unsigned fields = info(i.op).fields;
    if (i.op == Op::copy_async) result.type = i.type;
    if (fields & scalar_op_field) result.scalar_op = i.scalar_op;
    if (fields & reducer_field) result.reducer = i.reducer;
    if (fields & number_field) result.number = i.number;
    if (fields & ref_field) result.ref = i.ref;
    if (fields & matrices_field) result.left = i.left, result.right = i.right;
    if (fields & axis_field) result.axis = i.axis;
    if (fields & strides_field) result.strides = i.strides;
    if (fields & streaming_field) result.streaming = i.streaming;
    if (fields & parallel_field) result.parallel = i.parallel;
    if (fields & axes_field) result.axes = i.axes;
    if (fields & reverse_field) result.reverse = i.reverse;
    if (fields & precision_field) result.precision = i.precision;
    if (fields & text_field) result.text = i.text;
    if (fields & lane_op_field) result.lane_op = i.lane_op;
    if (fields & ordering_field) result.ordering = i.ordering;
    if (fields & code_field) result.code = i.code;
    for (const Block& b : i.blocks) result.blocks.push_back(block(b));
    return result;
  }

  const Kernel& from_;
  std::vector<Value> to_;
  Kernel out_;
};

template <class T>
void hash_list(Hasher& h, const std::vector<T>& list) {
  h.number(list.size());
  for (const T& v : list) h.number(v);
}

void hash_type(Hasher& h, const Type& t) {
  h.number(t.dtype.val());
  hash_list(h, t.dims);
}

void hash_code(Hasher& h, const InlineCode& code) {
  h.text(code.name).text(code.text).text(code.constraints).text(code.header);
  h.number(code.pack).number(code.effects).number(code.shared_bytes);
  for (const auto* names : {&code.inputs, &code.outputs}) {
    h.number(names->size());
    for (const std::string& name : *names) h.text(name);
  }
  for (const auto* extents : {&code.block, &code.grid})
    for (const int64_t n : *extents) h.number(n);
}

void hash_block(Hasher& h, const Block& b) {
  hash_list(h, b.arguments);
  h.number(b.insts.size());
  for (const Inst& i : b.insts) {
    h.number(i.op);
    hash_type(h, i.type);
    hash_list(h, i.results);
    hash_list(h, i.args);
    h.number(i.scalar_op).number(i.reducer).number(i.number.integral).number(i.number.integral ? i.number.i : 0);
    h.number(__builtin_bit_cast(uint64_t, i.number.integral ? 0.0 : i.number.f));
    h.number(i.ref).number(i.axis).number(i.streaming).number(i.parallel).number(i.reverse).number(i.precision);
    h.number(i.lane_op).number(i.ordering.order).number(i.ordering.scope);
    if (i.code) hash_code(h, *i.code);
    hash_list(h, i.axes);
    h.text(i.text);
    if (i.op == Op::copy_async) h.number(i.left).number(i.right);
    hash_list(h, i.strides);
    h.number(i.blocks.size());
    for (const Block& inner : i.blocks) hash_block(h, inner);
  }
}

}  // namespace

Kernel canonical(const Kernel& kernel) { return Renumbering(kernel).run(); }

Digest digest(const Kernel& kernel) {
  const Kernel k = canonical(kernel);
  Hasher h;
  h.number(k.params.size());
  for (const Param& p : k.params) h.number(p.dtype.val()).number(p.written + 2 * p.constant);
  h.number(k.symbols.size()).number(k.locals.size()).number(k.any_size);
  for (const Local& l : k.locals)
    h.number(l.dtype.val()).number(l.elements).number(l.share).number(l.arrivals).number(l.swizzle);
  if (k.ordered) h.text("ordered");
  if (k.cluster > 0) h.text("clusters").number(k.cluster);
  if (k.launch != LaunchOptions{})
    h.text("launch")
        .number(k.launch.warps)
        .number(k.launch.stages)
        .number(k.launch.cluster)
        .number(k.launch.registers)
        .number(k.launch.specialize)
        .number(k.launch.persistent)
        .number(k.launch.ping_pong)
        .number(k.launch.instruction)
        .number(k.launch.iterations);
  h.number(k.types.size());
  for (const Type& t : k.types) hash_type(h, t);
  hash_block(h, k.body);
  return h.finish();
}

}  // namespace weft::kernel
