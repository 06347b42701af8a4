// weft/compile.h: one traced program for each signature. A call collects the storage of the inputs, runs the program,
// and sets results and states.
//
// A state is overwritten only where its handle is the only owner of its data, and then keeps its node, so that a step
// over thousands of states makes no nodes; else the program runs on a copy, so that a handle kept before the call keeps
// its old value. Everything that can be refused is refused before the program
// starts; where a call throws, the handles keep their values.
#include "weft/compile.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <unordered_set>

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
#include "transforms/compiled.h"
#include "transforms/traced.h"
#include "weft/random.h"

namespace weft {
namespace {

using graph::Storage;
using transforms::Slot;
using transforms::Traced;
using SymbolValues = std::map<const Symbol*, int64_t>;

std::atomic<bool> compile_enabled = true;

/// One signature of a compiled function, and what each of its calls needs to know.
struct Signature {
  std::vector<graph::Type> types;  // of arguments and states
  int device;
  Traced traced;
  std::vector<char> updated;    // by state: whether the program overwrites it
  std::vector<char> passed_on;  // by state: whether its old value outlives the call elsewhere, so that it is shared
};

struct Compiled {
  ArrayFunction fun;
  CompileOptions options;
  std::mutex mutex;  // protects `signatures`, and tracing
  std::vector<std::shared_ptr<const Signature>> signatures;
};

// Returns the arguments' types with dynamic axes as symbols, and the values of the symbols in this call. Empty where
// there are no dynamic axes: then the types are the arguments' own.
std::vector<graph::Type> argument_types(const Compiled& compiled, const std::vector<array>& arguments,
                                        SymbolValues& symbols) {
  std::vector<graph::Type> types;
  if (compiled.options.dynamic.empty()) return types;
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

const graph::Type& type_of(size_t argument, const std::vector<graph::Type>& types,
                           const std::vector<array>& arguments) {
  return types.empty() ? arguments[argument].value().type() : types[argument];
}

bool matches(const Signature& signature, const std::vector<graph::Type>& types, const std::vector<array>& arguments,
             const std::vector<array*>& states) {
  const size_t count = arguments.size();
  if (signature.types.size() != count + states.size()) return false;
  for (size_t k = 0; k < count; ++k)
    if (!(signature.types[k] == type_of(k, types, arguments))) return false;
  for (size_t k = 0; k < states.size(); ++k)
    if (!(signature.types[count + k] == states[k]->value().type())) return false;
  return true;
}

std::shared_ptr<const Signature> lookup_or_trace(Compiled& compiled, const std::vector<graph::Type>& types,
                                                 const std::vector<array>& arguments, const std::vector<array*>& states,
                                                 bool implicit_key) {
  const int device = runtime::executor_device(graph::StreamScope::current());
  std::lock_guard lock(compiled.mutex);
  for (const auto& signature : compiled.signatures)
    if (signature->device == device && matches(*signature, types, arguments, states)) return signature;
  const InputsDuringTrace inputs(arguments, states);
  const runtime::Span span("compiler", "trace");
  std::vector<graph::Type> given;
  for (size_t k = 0; k < arguments.size(); ++k) given.push_back(type_of(k, types, arguments));
  const auto made = std::make_shared<Signature>();
  made->device = device;
  made->traced = transforms::trace_function(compiled.fun, given, states, implicit_key);
  made->types = std::move(given);
  for (const array* state : states) made->types.push_back(state->value().type());
  const Traced& traced = made->traced;
  made->updated.assign(traced.states, 0);
  made->passed_on.assign(traced.states, 0);
  for (const compiler::Update& u : traced.updates) made->updated[static_cast<size_t>(u.input)] = 1;
  for (const Slot& slot : traced.results)
    if (slot.from == Slot::From::state) made->passed_on[slot.index] = 1;
  for (size_t k = 0; k < traced.states; ++k)
    if (const Slot& slot = traced.new_states[k]; slot.from == Slot::From::state && slot.index != k)
      made->passed_on[slot.index] = 1;
  compiled.signatures.push_back(made);
  inputs.wait();
  return made;
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

// Returns a copy of a state's storage, which a program may overwrite. It is made on the device that runs the program:
// optimizers begin with gigabytes of zeros, and those of one shape share their memory.
Storage copy_of(const array& state, const Storage& storage) {
  ++runtime::counters().copies;
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

/// The inputs of a run by address: storage that the handles hold, or copies, which live as long as the call.
class Inputs {
 public:
  Inputs(const Signature& signature, const std::vector<graph::Type>& types, const std::vector<array>& arguments,
         const std::vector<array*>& states)
      : in_place_(signature.traced.states, 0) {
    find(signature.traced, arguments, states);
    size_t k = 0;
    for (const array& a : arguments) {
      row_major(k, a);
      if (!types.empty()) addresses_[k] = &copies_.emplace_back(at_bound(a, types[k], *addresses_[k]));
      ++k;
    }
    for (size_t s = 0; s < signature.traced.states; ++s, ++k) {
      const bool own = addresses_[k] != nullptr;
      row_major(k, *states[s]);
      if (!signature.updated[s]) continue;
      if (own && arrays::sole_owner(*states[s], *addresses_[k])) in_place_[s] = keeps_node(*states[s]);
      else addresses_[k] = &copies_.emplace_back(copy_of(*states[s], *addresses_[k]));
    }
    for (const array& a : signature.traced.captured) row_major(k++, a);
  }
  std::span<const Storage* const> addresses() const { return addresses_; }
  /// Returns whether the program overwrites state `s` where its own node has it.
  bool in_place(size_t s) const { return in_place_[s] != 0; }

 private:
  void find(const Traced& traced, const std::vector<array>& arguments, const std::vector<array*>& states) {
    addresses_.reserve(arguments.size() + traced.states + traced.captured.size());
    std::shared_lock lock(graph::structure());
    for (const array& a : arguments) addresses_.push_back(detail::packed_storage(a.value()));
    for (size_t s = 0; s < traced.states; ++s) addresses_.push_back(detail::packed_storage(states[s]->value()));
    for (const array& a : traced.captured) addresses_.push_back(detail::packed_storage(a.value()));
  }
  void row_major(size_t k, const array& a) {
    if (!addresses_[k]) addresses_[k] = &copies_.emplace_back(detail::realise(a.value()));
  }
  /// A constant is its number, and a node with several results keeps the memory of all: they are replaced.
  static bool keeps_node(const array& state) {
    const graph::Node& node = *state.value().node;
    return node.op() != graph::Op::constant && node.outputs() == 1;
  }

  std::vector<const Storage*> addresses_;
  std::deque<Storage> copies_;
  std::vector<char> in_place_;
};

/// The arrays that a call returns and binds to states. Those of the program's outputs are made when they are asked for;
/// an output that lies in a state's own node is that state.
class Results {
 public:
  Results(const Signature& signature, const std::vector<array>& arguments, const std::vector<array*>& states,
          const SymbolValues& symbols)
      : traced_(signature.traced), arguments_(arguments), states_(states), symbols_(symbols) {
    if (std::find(signature.passed_on.begin(), signature.passed_on.end(), 1) == signature.passed_on.end()) return;
    old_.resize(traced_.states);  // held from here on, so that their storage counts as shared
    for (size_t s = 0; s < traced_.states; ++s)
      if (signature.passed_on[s]) old_[s] = *states[s];
  }
  void run(const Inputs& inputs) {
    std::vector<int64_t> lengths;
    for (const Symbol* s : traced_.program->symbols()) lengths.push_back(symbols_.at(s));
    outputs_ = traced_.program->execute(inputs.addresses(), lengths);
    made_.resize(outputs_.size());
    for (compiler::Output& out : outputs_) {
      if (out.input < 0) continue;
      const auto state = static_cast<size_t>(out.input) - arguments_.size();
      if (inputs.in_place(state)) continue;
      out = {*inputs.addresses()[static_cast<size_t>(out.input)], -1};
    }
  }
  /// Returns whether the state already is what the slot says.
  bool stands(size_t state, const Slot& slot) const {
    if (slot.from == Slot::From::state) return slot.index == state;
    return slot.from == Slot::From::program && output_state(slot.index) == static_cast<int64_t>(state);
  }
  const array& of(const Slot& slot) {
    switch (slot.from) {
      case Slot::From::program: return output(slot.index);
      case Slot::From::argument: return arguments_[slot.index];
      case Slot::From::state: return *old_[slot.index];
      case Slot::From::captured: break;
    }
    return traced_.captured[slot.index];
  }

 private:
  /// Returns the state in whose node an output lies, or a negative number.
  int64_t output_state(size_t k) const {
    return outputs_[k].input < 0 ? -1 : outputs_[k].input - static_cast<int64_t>(arguments_.size());
  }
  const array& output(size_t k) {
    if (const int64_t state = output_state(k); state >= 0) return *states_[static_cast<size_t>(state)];
    if (!made_[k]) {
      graph::Type type = traced_.outputs[k];
      for (Dim& d : type.shape)
        if (!d.is_static()) d = symbols_.at(d.symbol());
      made_[k].emplace(graph::data(type, std::move(outputs_[k].storage)));
    }
    return *made_[k];
  }

  const Traced& traced_;
  const std::vector<array>& arguments_;
  const std::vector<array*>& states_;
  const SymbolValues& symbols_;
  std::vector<compiler::Output> outputs_;
  std::vector<std::optional<array>> made_, old_;
};

std::vector<array> run_traced(const Signature& signature, const std::vector<graph::Type>& types,
                              const std::vector<array>& arguments, const std::vector<array*>& states,
                              const SymbolValues& symbols) {
  const Traced& traced = signature.traced;
  Results results(signature, arguments, states, symbols);
  if (traced.program) {
    std::optional<runtime::Span> span(std::in_place, "compiler", "inputs are gathered");
    const Inputs inputs(signature, types, arguments, states);
    span.reset();
    results.run(inputs);
  }
  std::vector<array> returned;
  for (const Slot& slot : traced.results) returned.push_back(results.of(slot));
  std::vector<std::pair<size_t, array>> new_states;
  for (size_t s = 0; s < traced.states; ++s)
    if (!results.stands(s, traced.new_states[s])) new_states.emplace_back(s, results.of(traced.new_states[s]));
  for (auto& [s, value] : new_states) *states[s] = std::move(value);
  return returned;
}

/// Computes what is pending of arguments and states, in one program.
void realise_inputs(const std::vector<array>& arguments, const std::vector<array*>& states) {
  const auto stored = [](const array& a) { return a.value().node->storage(0) != nullptr; };
  {
    std::shared_lock lock(graph::structure());
    if (std::all_of(arguments.begin(), arguments.end(), stored) &&
        std::all_of(states.begin(), states.end(), [&](const array* s) { return stored(*s); }))
      return;
  }
  detail::realise_all(input_values(arguments, states));
}

/// What a call runs, and on what.
struct Prepared {
  SymbolValues symbols;
  std::vector<graph::Type> types;
  std::vector<array*> states;
  std::shared_ptr<const Signature> signature;
};

Prepared prepare(Compiled& compiled, const std::vector<array>& arguments) {
  Prepared p;
  p.types = argument_types(compiled, arguments, p.symbols);
  p.states = compiled.options.state;
  array* sequence = &random::default_key();
  const bool implicit_key = std::find(p.states.begin(), p.states.end(), sequence) == p.states.end();
  if (implicit_key) p.states.push_back(sequence);
  p.signature = lookup_or_trace(compiled, p.types, arguments, p.states, implicit_key);
  return p;
}

std::vector<array> call(Compiled& compiled, const std::vector<array>& arguments) {
  if (!compile_enabled) return compiled.fun(arguments);
  if (detail::Trace::current()) return transforms::call_inside_trace(compiled.fun, arguments, compiled.options.state);
  const Prepared p = prepare(compiled, arguments);
  realise_inputs(arguments, p.states);
  return run_traced(*p.signature, p.types, arguments, p.states, p.symbols);
}

/// What compile() returns.
struct CompiledFunction {
  std::shared_ptr<Compiled> compiled;
  std::vector<array> operator()(const std::vector<array>& arguments) const { return call(*compiled, arguments); }
};

}  // namespace

ArrayFunction compile(const ArrayFunction& fun, const CompileOptions& options) {
  if (!fun) throw_invalid("compile", "there is no function: it is a null pointer");
  auto compiled = std::make_shared<Compiled>();
  compiled->fun = fun;
  compiled->options = options;
  std::vector<array*>& states = compiled->options.state;  // each handle once, in the order given
  for (size_t k = 0; k < states.size(); ++k)
    if (!states[k]) throw_invalid("compile", "state " + std::to_string(k) + " is a null pointer");
  std::unordered_set<const array*> known;
  std::erase_if(states, [&](const array* state) { return !known.insert(state).second; });
  return CompiledFunction{compiled};
}

ArrayFunction compile(const ArrayFunction& fun, bool) { return compile(fun, CompileOptions{}); }

std::shared_ptr<const compiler::Program> transforms::program_for(const ArrayFunction& fun,
                                                                 const std::vector<array>& arguments) {
  const ArrayFunction compiled = fun.target<CompiledFunction>() ? fun : compile(fun, CompileOptions{});
  return prepare(*compiled.target<CompiledFunction>()->compiled, arguments).signature->traced.program;
}

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
