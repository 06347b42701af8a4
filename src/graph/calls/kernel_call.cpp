// Kernels of users as calls: the checks of their programs and nodes, and the rules of the call "kernel".
#include "graph/calls/kernel_call.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/calls/call_rules.h"
#include "graph/calls/kernel_tuning.h"
#include "graph/rows.h"
#include "kernel/checked_memory.h"
#include "kernel/derive/sharding.h"
#include "kernel/interpret.h"
#include "kernel/op_info.h"

namespace weft::graph {
namespace {

constexpr const char* call_name = "kernel";

[[noreturn]] void refuse(const KernelProgram& program, const std::string& what) {
  throw_invalid("kernel " + program.kernel.name, what);
}

bool is_input(const KernelArray& a) { return a.use != KernelUse::out; }
bool is_result(const KernelArray& a) { return a.use != KernelUse::in; }

/// Returns the types of the arrays for which `is` holds.
template <class Is>
std::vector<Type> types_where(const KernelProgram& program, Is is) {
  std::vector<Type> out;
  for (const KernelArray& a : program.arrays)
    if (is(a)) out.push_back(a.type);
  return out;
}

const KernelProgram& program_of(const Attrs& attrs) {
  if (!attrs.kernel) throw_invalid(call_name, "the node has no program: a kernel does not come from a file");
  return *attrs.kernel;
}

// ---- programs ----

void find_stored(const kernel::Kernel& kernel, const kernel::Block& block, std::set<kernel::Ref>& stored) {
  for (const kernel::Inst& inst : block.insts) {
    const kernel::Access access = kernel::info(inst.op).access;
    if (access == kernel::Access::writes || access == kernel::Access::updates) stored.insert(inst.ref);
    if (inst.op == kernel::Op::source)
      for (size_t k = 0; k < kernel.params.size(); ++k) stored.insert(static_cast<kernel::Ref>(k));
    for (const kernel::Block& inner : inst.blocks) find_stored(kernel, inner, stored);
  }
}

void check_array(const KernelProgram& program, size_t k, const std::set<kernel::Ref>& stored) {
  const KernelArray& array = program.arrays[k];
  const kernel::Param& param = program.kernel.params[k];
  const std::string what = fmt::format("array {} ({}), {}", k, param.name, to_string(array.type));
  if (is_complex(array.type.dtype)) refuse(program, what + ", is complex: pass its real and imaginary parts");
  check(param.dtype == array.type.dtype && param.written == is_result(array), "kernel", "an array is no parameter");
  if (array.use == KernelUse::out && program.grid > 0 && !stored.contains(static_cast<kernel::Ref>(k)))
    refuse(program, what + ", is a result, but nothing is ever stored there");
}

/// Refuses a symbol that no input has: nothing would say how long it is.
void check_known(const KernelProgram& program, const Symbol* s) {
  for (const KernelArray& a : program.arrays)
    if (is_input(a))
      for (const Dim& d : a.type.shape)
        if (d.symbol() == s) return;
  refuse(program, fmt::format("has a result of the length {}, which no argument has: give it a number, or the length "
                              "of an argument",
                              s->name));
}

/// Returns "file:line" of the first line that the user wrote, without folders; "" where there is none.
std::string line_of(const kernel::Kernel& kernel) {
  for (const kernel::SourceLine& line : kernel.lines) {
    const std::string_view file = line.file;
    if (line.line > 0) return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), line.line);
  }
  return "";
}

Digest key_of(const KernelProgram& program) {
  Hasher h;
  h.digest(kernel::digest(program.kernel)).number(program.grid);
  for (const KernelArray& a : program.arrays) {
    h.number(a.use).number(a.type.dtype.val()).number(a.type.shape.size());
    for (const Dim& d : a.type.shape) h.number(d.bound()).text(d.symbol() ? d.symbol()->name : "");
  }
  for (const Symbol* s : program.symbols) h.text(s->name).number(s->bound);
  h.text(program.count.to_string());
  if (program.tuning) h.digest(program.tuning->key);
  for (const std::vector<int>& axes : program.factors)
    for (const int factor : axes) h.number(factor);
  return h.finish();
}

// ---- rules of the call ----

std::vector<Type> kernel_types(const Attrs& attrs, TypeSpan in) {
  const KernelProgram& program = program_of(attrs);
  const std::vector<Type> expected = types_where(program, is_input);
  if (in.size() != expected.size()) refuse(program, fmt::format("takes {} arrays, got {}", expected.size(), in.size()));
  for (size_t k = 0; k < in.size(); ++k)
    if (!(in[k] == expected[k]))
      refuse(program, fmt::format("argument {} must be {}, got {}", k, to_string(expected[k]), to_string(in[k])));
  return types_where(program, is_result);
}

Values kernel_vjp(const Node& node, ValueSpan x, ValueSpan, ValueSpan g) { return kernel_cotangents(node, x, g); }
Values kernel_jvp(const Node& node, ValueSpan x, ValueSpan, ValueSpan t) { return kernel_tangents(node, x, t); }

/// Runs the programs of all elements in one launch. What a result begins as is repeated where it is not batched.
Values kernel_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  const KernelProgram& program = *node.attrs().kernel;
  const Dim extent = batch_extent(x, axes);
  if (extent.symbol()) refuse(program, "cannot be mapped over a symbolic axis: give the kernel the axis");
  std::vector<bool> has_axis;
  Values inputs;
  size_t next = 0;
  for (const KernelArray& array : program.arrays) {
    if (array.use == KernelUse::in) has_axis.push_back(axes[next] >= 0);
    else has_axis.push_back(true);
    if (!is_input(array)) continue;
    inputs.push_back(has_axis.back() ? batched(x[next], axes[next], extent) : x[next]);
    ++next;
  }
  return kernel_call(batched_program(program, extent.bound(), has_axis), std::move(inputs));
}

/// Runs the interpreter on copies of the arrays.
std::vector<HostTensor> kernel_reference(const Attrs& attrs, std::span<const HostTensor> in, TypeSpan) {
  const KernelProgram& program = program_of(attrs);
  std::vector<std::vector<std::byte>> memory;
  std::vector<kernel::HostBuffer> buffers;
  size_t next = 0;
  for (const KernelArray& array : program.arrays) {
    const int64_t elements = num_elements(array.type.shape);
    std::vector<std::byte>& data =
        memory.emplace_back(static_cast<size_t>(elements) * static_cast<size_t>(array.type.dtype.size()));
    if (is_input(array)) {
      const HostTensor& from = in[next++];
      for (int64_t k = 0; k < elements; ++k)
        kernel::write_element(data.data(), array.type.dtype, k, from.data[static_cast<size_t>(k)]);
    }
    buffers.push_back({data.data(), elements});
  }
  const std::vector<int64_t> bounds = bounds_of(program);
  kernel::interpret(program.kernel, buffers, bounds, programs_at(program, bounds));
  std::vector<HostTensor> out;
  for (size_t p = 0; p < program.arrays.size(); ++p) {
    if (!is_result(program.arrays[p])) continue;
    HostTensor& to = out.emplace_back(host(program.arrays[p].type));
    for (size_t k = 0; k < to.data.size(); ++k)
      to.data[k] = kernel::read_element(buffers[p].data, to.type.dtype, static_cast<int64_t>(k));
  }
  return out;
}

Factors kernel_factors(const Attrs& attrs, TypeSpan, TypeSpan) {
  const KernelProgram& program = program_of(attrs);
  const std::vector<std::vector<int>> all = factors_of(program);
  Factors f;
  for (size_t k = 0; k < all.size(); ++k) {
    if (is_input(program.arrays[k])) f.inputs.push_back(all[k]);
    if (is_result(program.arrays[k])) f.outputs.push_back(all[k]);
  }
  return f;
}

constexpr CallRule rules[] = {
    {call_name, 0, -1, 0, kernel_types, None::unbounded, kernel_vjp, kernel_jvp, kernel_vmap, kernel_factors,
     kernel_reference, 4},
};

}  // namespace

std::shared_ptr<const KernelProgram> kernel_program(KernelProgram program) {
  check(program.kernel.params.size() == program.arrays.size() &&
            program.kernel.symbols.size() == program.symbols.size() && program.grid >= 0,
        "kernel", "a program has an array for each parameter, a length for each symbol and a number of programs");
  std::set<kernel::Ref> stored;
  find_stored(program.kernel, program.kernel.body, stored);
  for (size_t k = 0; k < program.arrays.size(); ++k) check_array(program, k, stored);
  for (const Symbol* s : program.symbols) check_known(program, s);
  if (std::none_of(program.arrays.begin(), program.arrays.end(), is_result))
    refuse(program, "has no result: it takes at least one array that it writes");
  program.work = work_of(program.kernel, program.grid);
  program.where = line_of(program.kernel);
  program.key = key_of(program);
  return std::make_shared<const KernelProgram>(std::move(program));
}

std::vector<std::vector<int>> factors_of(const KernelProgram& program) {
  if (!program.factors.empty()) return program.factors;
  std::vector<std::vector<int64_t>> dims;
  for (const KernelArray& a : program.arrays) dims.push_back(bounds(a.type.shape));
  return kernel::array_factors(program.kernel, dims, program.grid, !program.count, bounds_of(program)).of_axes;
}

std::string factors_text(const KernelProgram& program) {
  const std::vector<std::vector<int>> all = factors_of(program);
  std::string inputs, results;
  for (size_t k = 0; k < all.size(); ++k) {
    std::vector<std::string> axes;
    for (const int factor : all[k])
      axes.push_back(factor < 0    ? "-"
                     : factor < 26 ? std::string(1, static_cast<char>('a' + factor))
                                   : fmt::format("f{}", factor));
    const std::string text = fmt::format("[{}]", fmt::join(axes, " "));
    if (is_input(program.arrays[k])) inputs += (inputs.empty() ? "" : ", ") + text;
    if (is_result(program.arrays[k])) results += (results.empty() ? "" : ", ") + text;
  }
  return inputs + " -> " + results;
}

std::vector<int64_t> bounds_of(const KernelProgram& program) {
  std::vector<int64_t> out;
  for (const Symbol* s : program.symbols) out.push_back(s->bound);
  return out;
}

int64_t programs_at(const KernelProgram& program, std::span<const int64_t> symbols) {
  return program.count ? std::clamp<int64_t>(program.count.value(symbols), 0, program.grid) : program.grid;
}

Values kernel_call(std::shared_ptr<const KernelProgram> program, Values inputs) {
  Attrs attrs;
  attrs.call = call_name;
  attrs.kernel = std::move(program);
  if (attrs.kernel->grid > 0) return make_all(Op::call, std::move(inputs), std::move(attrs));
  std::vector<Type> types;
  for (const Value& v : inputs) types.push_back(v.type());
  kernel_types(attrs, types);
  Values out;
  size_t next = 0;
  for (const KernelArray& array : attrs.kernel->arrays) {
    const Value input = is_input(array) ? inputs[next++] : Value{};
    if (array.use == KernelUse::in_out) out.push_back(input);
    if (array.use == KernelUse::out) out.push_back(full(array.type.shape, array.type.dtype, Number{}));
  }
  return out;
}

std::span<const CallRule> kernel_calls() {
  static_assert(complete_calls(rules));
  return rules;
}

}  // namespace weft::graph
