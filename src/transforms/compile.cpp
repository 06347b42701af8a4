// weft/compile.h: one traced program for each signature. A call collects the storage of the inputs, runs the program,
// and sets results and states.
//
// A state is overwritten only where its handle is the only owner of its data; else the program runs on a copy, so that
// a handle kept before the call keeps its old value. Everything that can be refused is refused before the program
// starts; where a call throws, the handles keep their values.
#include "weft/compile.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

#include "array/handle.h"
#include "array/host.h"
#include "array/op_support.h"
#include "array/realise.h"
#include "base/error.h"
#include "compiler/program.h"
#include "graph/build.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "runtime/executor.h"
#include "runtime/trace.h"
#include "transforms/traced.h"
#include "weft/random.h"

namespace weft {
namespace {

using graph::Storage;
using transforms::Slot;
using transforms::Traced;
using SymbolValues = std::map<const Symbol*, int64_t>;

std::atomic<bool> compile_enabled = true;

struct Compiled {
  ArrayFunction fun;
  CompileOptions options;
  std::mutex mutex;  // protects `entries`, and tracing
  struct Entry {
    std::vector<graph::Type> types;  // of arguments and states
    int device;
    std::shared_ptr<const Traced> traced;
  };
  std::vector<Entry> entries;
};

// Returns the arguments' types with dynamic axes as symbols, and the values of the symbols in this call.
std::vector<graph::Type> argument_types(const Compiled& compiled, const std::vector<array>& arguments,
                                        SymbolValues& symbols) {
  std::vector<graph::Type> types;
  for (const array& a : arguments) types.push_back(a.value().type());
  for (const DynamicAxis& d : compiled.options.dynamic) {
    const std::string what = "dynamic axis \"" + d.name + "\"";
    if (d.argument < 0 || d.argument >= static_cast<int>(arguments.size()))
      throw_invalid("compile", what + " is of argument " + std::to_string(d.argument) +
                                   ", but the function was called with " + std::to_string(arguments.size()));
    Shape& shape = types[static_cast<size_t>(d.argument)].shape;
    const auto axis = static_cast<size_t>(detail::one_axis("compile", d.axis, shape.size()));
    const int64_t n = shape[axis].bound();
    if (n < 1 || n > d.bound)
      throw_invalid("compile", what + " has length " + std::to_string(n) + " in argument " +
                                   std::to_string(d.argument) + ", but lengths are 1 to " + std::to_string(d.bound));
    const Symbol* s = symbol(d.name, d.bound);
    const auto [at, added] = symbols.emplace(s, n);
    if (!added && at->second != n)
      throw_invalid("compile", what + " has lengths " + std::to_string(at->second) + " and " + std::to_string(n) +
                                   " in one call: axes of one name are equally long");
    shape[axis] = s;
  }
  return types;
}

graph::Values input_values(const std::vector<array>& arguments, const std::vector<array*>& states) {
  graph::Values values;
  for (const array& a : arguments) values.push_back(a.value());
  for (const array* s : states) values.push_back(s->value());
  return values;
}

/// Starts computing arguments and states, which a device does while the function is traced and compiled: that needs
/// their types only.
class InputsDuringTrace {
 public:
  InputsDuringTrace(const std::vector<array>& arguments, const std::vector<array*>& states)
      : stream_(graph::StreamScope::current()) {
    if (runtime::executor_device(stream_) >= 0) detail::realise_later(input_values(arguments, states));
    else detail::realise_all(input_values(arguments, states));
  }
  /// Returns when the stream's thread no longer holds them.
  void wait() const {
    if (runtime::executor_device(stream_) >= 0) runtime::executor(stream_).wait();
  }

 private:
  int stream_;
};

std::shared_ptr<const Traced> lookup_or_trace(Compiled& compiled, const std::vector<graph::Type>& arguments,
                                              const std::vector<array>& values, const std::vector<array*>& states,
                                              bool implicit_key) {
  std::vector<graph::Type> signature = arguments;
  for (const array* state : states) signature.push_back(state->value().type());
  const int device = runtime::executor_device(graph::StreamScope::current());
  std::lock_guard lock(compiled.mutex);
  for (const Compiled::Entry& entry : compiled.entries)
    if (entry.types == signature && entry.device == device) return entry.traced;
  const InputsDuringTrace inputs(values, states);
  const runtime::Span span("compiler", "trace");
  auto traced =
      std::make_shared<const Traced>(transforms::trace_function(compiled.fun, arguments, states, implicit_key));
  compiled.entries.push_back({std::move(signature), device, traced});
  inputs.wait();
  return traced;
}

// Returns an argument laid out at the bounds of its symbolic axes: shorter ones are copied into a buffer of that size,
// followed by zeros.
Storage at_bound(const array& a, const graph::Type& type, Storage storage) {
  bool whole = true;
  for (size_t k = 0; k < type.shape.size(); ++k) whole = whole && type.shape[k].bound() == a.shape()[k].bound();
  if (whole) return storage;
  Storage padded = detail::allocate_storage(type);
  std::memset(padded.buffer->data(), 0, static_cast<size_t>(num_elements(type.shape)) * type.dtype.size());
  detail::copy_strided(detail::address(storage, type.dtype), storage.strides, padded.buffer->data(), padded.strides,
                       a.shape(), type.dtype.size());
  ++runtime::counters().copies;
  return padded;
}

// Returns storage that a program may overwrite: the state's own buffer, or a copy where it is shared.
Storage writable(const array& state) {
  const bool sole = arrays::sole_owner(state);
  Storage storage = detail::realise(state.value());
  if (sole) return storage;
  ++runtime::counters().copies;
  // On the device that runs the program: optimizers begin with gigabytes of zeros, and those of one shape share their
  // memory.
  if (runtime::Accelerator* device = compiler::default_target().device(); device && state.nbytes() > 0) {
    Storage copy{runtime::allocate_on(device, state.nbytes()), 0, storage.strides};
    const auto* from = static_cast<const std::byte*>(storage.buffer->on(device)) +
                       storage.offset * static_cast<int64_t>(state.dtype().size());
    device->copy(copy.buffer->on(device), from, state.nbytes());
    return copy;
  }
  Storage copy = detail::allocate_storage(state.value().type());
  if (state.nbytes() > 0) std::memcpy(copy.buffer->data(), detail::address(storage, state.dtype()), state.nbytes());
  return copy;
}

std::vector<array> wrap_outputs(const Traced& traced, std::vector<Storage> storages, const SymbolValues& symbols) {
  std::vector<array> outputs;
  for (size_t k = 0; k < storages.size(); ++k) {
    graph::Type type = traced.outputs[k];
    for (Dim& d : type.shape)
      if (!d.is_static()) d = symbols.at(d.symbol());
    outputs.emplace_back(graph::data(type, std::move(storages[k])));
  }
  return outputs;
}

std::vector<array> run_traced(const Traced& traced, const std::vector<graph::Type>& types,
                              const std::vector<array>& arguments, const std::vector<array*>& states,
                              const SymbolValues& symbols) {
  std::vector<bool> updated(traced.states, false);
  for (const compiler::Update& u : traced.updates) updated[static_cast<size_t>(u.input)] = true;
  // Holds old values that outlive the call, so that they count as shared.
  std::vector<std::optional<array>> old(traced.states);
  for (const auto* slots : {&traced.results, &traced.new_states})
    for (size_t k = 0; k < slots->size(); ++k) {
      const Slot& slot = (*slots)[k];
      const bool stays = slots == &traced.new_states && slot.index == k;
      if (slot.from == Slot::From::state && !stays) old[slot.index] = *states[slot.index];
    }

  std::vector<array> outputs;
  if (traced.program) {
    std::optional<runtime::Span> span(std::in_place, "compiler", "inputs are gathered");
    std::vector<Storage> inputs;
    for (size_t k = 0; k < arguments.size(); ++k)
      inputs.push_back(at_bound(arguments[k], types[k], detail::realise(arguments[k].value())));
    for (size_t k = 0; k < traced.states; ++k)
      inputs.push_back(updated[k] ? writable(*states[k]) : detail::realise(states[k]->value()));
    for (const array& a : traced.captured) inputs.push_back(detail::realise(a.value()));
    span.reset();
    std::vector<int64_t> lengths;
    for (const Symbol* s : traced.program->symbols()) lengths.push_back(symbols.at(s));
    outputs = wrap_outputs(traced, traced.program->run(inputs, lengths), symbols);
  }
  const auto pick = [&](const Slot& slot) -> const array& {
    switch (slot.from) {
      case Slot::From::program: return outputs[slot.index];
      case Slot::From::argument: return arguments[slot.index];
      case Slot::From::state: return old[slot.index] ? *old[slot.index] : *states[slot.index];
      case Slot::From::captured: break;
    }
    return traced.captured[slot.index];
  };
  std::vector<array> results, new_states;
  for (const Slot& slot : traced.results) results.push_back(pick(slot));
  for (const Slot& slot : traced.new_states) new_states.push_back(pick(slot));
  for (size_t k = 0; k < traced.states; ++k) *states[k] = std::move(new_states[k]);
  return results;
}

std::vector<array> call(Compiled& compiled, const std::vector<array>& arguments) {
  if (!compile_enabled) return compiled.fun(arguments);
  if (detail::Trace::current()) return transforms::call_inside_trace(compiled.fun, arguments, compiled.options.state);
  SymbolValues symbols;
  const std::vector<graph::Type> types = argument_types(compiled, arguments, symbols);
  std::vector<array*> states = compiled.options.state;
  array* sequence = &random::default_key();
  const bool implicit_key = std::find(states.begin(), states.end(), sequence) == states.end();
  if (implicit_key) states.push_back(sequence);
  const auto traced = lookup_or_trace(compiled, types, arguments, states, implicit_key);
  detail::realise_all(input_values(arguments, states));
  return run_traced(*traced, types, arguments, states, symbols);
}

}  // namespace

ArrayFunction compile(const ArrayFunction& fun, const CompileOptions& options) {
  if (!fun) throw_invalid("compile", "there is no function: it is a null pointer");
  auto compiled = std::make_shared<Compiled>();
  compiled->fun = fun;
  compiled->options = options;
  std::vector<array*>& states = compiled->options.state;  // each handle once, in the order given
  for (size_t k = 0; k < states.size(); ++k) {
    if (!states[k]) throw_invalid("compile", "state " + std::to_string(k) + " is a null pointer");
    states.erase(std::remove(states.begin() + static_cast<int64_t>(k) + 1, states.end(), states[k]), states.end());
  }
  return [compiled](const std::vector<array>& arguments) { return call(*compiled, arguments); };
}

ArrayFunction compile(const ArrayFunction& fun, bool) { return compile(fun, CompileOptions{}); }

Numerics numerics() { return compiler::default_policy().numerics; }
void set_numerics(const Numerics& numerics) {
  compiler::Policy policy = compiler::default_policy();
  policy.numerics = numerics;
  compiler::set_default_policy(policy);
}

void disable_compile() { compile_enabled = false; }
void enable_compile() { compile_enabled = true; }
void set_compile_mode(CompileMode mode) { compile_enabled = mode != CompileMode::disabled; }

}  // namespace weft
