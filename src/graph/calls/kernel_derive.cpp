// The derivatives of kernels of users, from their bodies (kernel/derive): nodes of derived kernels.
#include <map>
#include <mutex>
#include <utility>

#include "graph/calls/kernel_call.h"
#include "graph/rows.h"
#include "kernel/derive/derive.h"

namespace weft::graph {
namespace {

using kernel::DerivedArray;
using Role = DerivedArray::Role;

/// A derived kernel, and what its arrays are.
struct DerivedProgram {
  std::shared_ptr<const KernelProgram> program;  // null: nothing has an influence
  std::vector<DerivedArray> arrays;
};

/// Returns what an array of a derived kernel is, for the graph.
KernelArray derived_array(const KernelProgram& from, const DerivedArray& a) {
  Type type = from.arrays[a.source].type;
  type.dtype = a.dtype;
  if (a.parts > 0) type.shape = prepend(a.parts, type.shape);
  return {!a.written ? KernelUse::in : a.begins ? KernelUse::in_out : KernelUse::out, type};
}

DerivedProgram derive(const KernelProgram& from, bool reverse, const std::vector<char>& given) {
  kernel::Source source{from.kernel, {}, {}, from.grid, from.count};
  for (const KernelArray& a : from.arrays) {
    std::vector<int64_t>& dims = source.dims.emplace_back();
    for (const Dim& d : a.type.shape) dims.push_back(d.bound());
    source.begins.push_back(a.use != KernelUse::out);
  }
  for (const Symbol* s : from.symbols) source.bounds.push_back(s->bound);
  kernel::Derivative d =
      reverse ? kernel::reverse_derivative(source, given) : kernel::forward_derivative(source, given);
  DerivedProgram out{nullptr, std::move(d.arrays)};
  KernelProgram program{std::move(d.kernel), {}, d.programs, d.count, from.symbols};
  bool writes = false;
  for (const DerivedArray& a : out.arrays) {
    program.arrays.push_back(derived_array(from, a));
    writes = writes || a.written;
  }
  if (writes) out.program = kernel_program(std::move(program));
  return out;
}

/// Returns a derived kernel, made now or before: a step that is not compiled derives its kernels each time.
std::shared_ptr<const DerivedProgram> derived(const KernelProgram& from, bool reverse, const std::vector<char>& given) {
  constexpr size_t most = 256;
  using Key = std::tuple<std::string, bool, std::vector<char>>;
  static std::mutex lock;
  static std::map<Key, std::shared_ptr<const DerivedProgram>> known;
  const Key key{from.key.hex(), reverse, given};
  {
    const std::scoped_lock held(lock);
    if (const auto found = known.find(key); found != known.end()) return found->second;
  }
  auto made = std::make_shared<const DerivedProgram>(derive(from, reverse, given));
  const std::scoped_lock held(lock);
  if (known.size() >= most) known.clear();
  return known.emplace(key, std::move(made)).first->second;
}

/// The values of a node by the arrays of its kernel: inputs, and what belongs to results.
struct ByArray {
  ByArray(const KernelProgram& program, ValueSpan inputs, ValueSpan results)
      : of_input(program.arrays.size()), of_result(of_input) {
    size_t input = 0, result = 0;
    for (size_t k = 0; k < program.arrays.size(); ++k) {
      const KernelUse use = program.arrays[k].use;
      if (use != KernelUse::out && !inputs.empty()) of_input[k] = inputs[input++];
      if (use != KernelUse::in && !results.empty()) of_result[k] = results[result++];
    }
  }
  Values of_input, of_result;
};

Value zeros_of(const Type& t) { return full(t.shape, t.dtype, Number{}); }

/// Makes the node of a derived kernel; `begin(array)` is what an array begins as. Returns a value for each of its
/// arrays, nothing for those that it does not write.
template <class Begin>
Values launch(const DerivedProgram& d, const Begin& begin) {
  Values inputs;
  for (size_t k = 0; k < d.arrays.size(); ++k)
    if (const KernelArray& a = d.program->arrays[k]; a.use != KernelUse::out) {
      const Value v = begin(d.arrays[k]);
      inputs.push_back(v ? cast(v, a.type.dtype) : zeros_of(a.type));
    }
  const Values results = kernel_call(d.program, std::move(inputs));
  return ByArray(*d.program, {}, results).of_result;
}

bool is_differentiable(const KernelArray& a) { return is_float(a.type.dtype); }

}  // namespace

Values kernel_cotangents(const Node& node, ValueSpan x, ValueSpan g) {
  const KernelProgram& program = *node.attrs().kernel;
  const ByArray inputs(program, x, {}), results(program, {}, g);
  std::vector<char> given;
  bool any = false;
  for (size_t k = 0; k < program.arrays.size(); ++k) {
    given.push_back(results.of_result[k] && is_differentiable(program.arrays[k]));
    any = any || given.back();
  }
  Values by_array(program.arrays.size());
  if (any) {
    // What a kernel does not touch passes through.
    for (size_t k = 0; k < by_array.size(); ++k)
      if (program.arrays[k].use == KernelUse::in_out && given[k]) by_array[k] = results.of_result[k];
    const std::shared_ptr<const DerivedProgram> d = derived(program, true, given);
    Values made;
    if (d->program)
      made = launch(*d, [&](const DerivedArray& a) -> Value {
        if (a.role == Role::value) return inputs.of_input[a.source];
        return program.arrays[a.source].use == KernelUse::in ? Value{} : results.of_result[a.source];
      });
    for (size_t k = 0; k < made.size(); ++k) {
      const DerivedArray& a = d->arrays[k];
      if (a.role != Role::cotangent || !made[k] || program.arrays[a.source].use == KernelUse::out) continue;
      const Value whole = a.parts > 0 ? reduce(kernel::Reducer::sum, made[k], {0}) : made[k];
      by_array[a.source] = cast(whole, program.arrays[a.source].type.dtype);
    }
  }
  Values out;
  for (size_t k = 0; k < program.arrays.size(); ++k)
    if (program.arrays[k].use != KernelUse::out) out.push_back(by_array[k]);
  return out;
}

Values kernel_tangents(const Node& node, ValueSpan x, ValueSpan t) {
  const KernelProgram& program = *node.attrs().kernel;
  const ByArray inputs(program, x, {}), tangents(program, t, {});
  std::vector<char> given;
  bool any = false;
  for (size_t k = 0; k < program.arrays.size(); ++k) {
    given.push_back(tangents.of_input[k] && is_differentiable(program.arrays[k]));
    any = any || given.back();
  }
  Values by_array(program.arrays.size());
  if (any) {
    const std::shared_ptr<const DerivedProgram> d = derived(program, false, given);
    Values made;
    if (d->program)
      made = launch(*d, [&](const DerivedArray& a) {
        return a.role == Role::value ? inputs.of_input[a.source] : tangents.of_input[a.source];
      });
    for (size_t k = 0; k < made.size(); ++k)
      if (d->arrays[k].role == Role::tangent && made[k]) by_array[d->arrays[k].source] = made[k];
  }
  Values out;
  for (size_t k = 0; k < program.arrays.size(); ++k)
    if (program.arrays[k].use != KernelUse::in) out.push_back(by_array[k]);
  return out;
}

}  // namespace weft::graph
