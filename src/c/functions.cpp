// Functions of arrays and their transforms in the C interface.
#include <memory>

#include "c/handles.h"
#include "weft/compile.h"
#include "weft/control.h"

using weft::array;
using weft::ArrayFunction;
using weft::c::guarded;
using weft::c::in;
using weft::c::out;

namespace {

/// A callback with its context.
struct Callback {
  weft_callback function;
  void* context;
  void (*release)(void* context);

  Callback(weft_callback f, void* c, void (*r)(void*)) : function(f), context(c), release(r) {}
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  ~Callback() {
    if (release) release(context);
  }

  std::vector<array> operator()(const std::vector<array>& arguments) const {
    weft_arrays_handle results, given{arguments};
    const weft_status status = function(&results, &given, context);
    if (status != WEFT_OK) throw weft::c::CallbackFailed{status};
    return std::move(results.values);
  }
};

std::vector<int> numbers(const int* values, size_t count) { return weft::c::list(values, count); }

/// Returns a function of arrays that returns one, as C++ wants the condition of a loop.
weft::ScalarFunction one_of(const ArrayFunction& f) {
  return [f](const std::vector<array>& arguments) {
    const std::vector<array> results = f(arguments);
    if (results.size() != 1) throw std::invalid_argument("[weft_while_loop] the condition must return one array");
    return results[0];
  };
}

/// The caller's handles as the state of a compiled function: they are copied to arrays before a call, and back after
/// it. While the function is traced the caller's function sees the placeholders in its own handles.
struct State {
  std::vector<weft_array*> handles;
  std::vector<array> slots;

  void load() {
    for (size_t k = 0; k < handles.size(); ++k) slots[k] = in(*handles[k]);
  }
  void store() {
    for (size_t k = 0; k < handles.size(); ++k) (*handles[k])->value = slots[k];
  }
};

}  // namespace

weft_status weft_function_new(weft_function* result, weft_callback callback, void* context,
                              void (*release)(void* context)) {
  return guarded([&] {
    if (!callback) throw std::invalid_argument("[weft_function_new] the callback is NULL");
    const auto shared = std::make_shared<Callback>(callback, context, release);
    out(result, ArrayFunction([shared](const std::vector<array>& arguments) { return (*shared)(arguments); }));
  });
}
void weft_function_free(weft_function f) { delete f; }
weft_status weft_function_call(weft_arrays* results, weft_function f, weft_arrays arguments) {
  return guarded([&] { out(results, in(f)(in(arguments))); });
}

weft_status weft_grad(weft_function* result, weft_function f, const int* argnums, size_t count) {
  return guarded([&] {
    const auto both = weft::value_and_grad(in(f), numbers(argnums, count));
    out(result, ArrayFunction([both](const std::vector<array>& arguments) { return both(arguments).second; }));
  });
}
weft_status weft_value_and_grad(weft_function* result, weft_function f, const int* argnums, size_t count) {
  return guarded([&] {
    const auto both = weft::value_and_grad(in(f), numbers(argnums, count));
    out(result, ArrayFunction([both](const std::vector<array>& arguments) {
          auto [all, gradients] = both(arguments);
          all.insert(all.end(), gradients.begin(), gradients.end());
          return all;
        }));
  });
}
weft_status weft_vjp(weft_arrays* results, weft_arrays* products, weft_function f, weft_arrays primals,
                     weft_arrays cotangents) {
  return guarded([&] {
    auto [values, derived] = weft::vjp(in(f), in(primals), in(cotangents));
    out(results, std::move(values));
    out(products, std::move(derived));
  });
}
weft_status weft_jvp(weft_arrays* results, weft_arrays* products, weft_function f, weft_arrays primals,
                     weft_arrays tangents) {
  return guarded([&] {
    auto [values, derived] = weft::jvp(in(f), in(primals), in(tangents));
    out(results, std::move(values));
    out(products, std::move(derived));
  });
}
weft_status weft_vmap(weft_function* result, weft_function f, const int* in_axes, size_t in_count, const int* out_axes,
                      size_t out_count) {
  return guarded([&] { out(result, weft::vmap(in(f), numbers(in_axes, in_count), numbers(out_axes, out_count))); });
}
weft_status weft_compile(weft_function* result, weft_function f) {
  return guarded([&] { out(result, weft::compile(in(f))); });
}
weft_status weft_compile_with_state(weft_function* result, weft_function f, weft_array* const* state, size_t count) {
  return guarded([&] {
    const auto shared = std::make_shared<State>();
    shared->handles = weft::c::list(state, count);
    shared->slots.assign(count, array(0));
    weft::CompileOptions options;
    for (array& slot : shared->slots) options.state.push_back(&slot);
    const ArrayFunction traced = [shared, fun = in(f)](const std::vector<array>& arguments) {
      shared->store();
      std::vector<array> results = fun(arguments);
      shared->load();
      return results;
    };
    const ArrayFunction program = weft::compile(traced, options);
    out(result, ArrayFunction([shared, program](const std::vector<array>& arguments) {
          shared->load();
          std::vector<array> before(shared->slots);
          try {
            for (weft_array* h : shared->handles) (*h)->value = array(0);  // so that the program may reuse their memory
            before.clear();
            std::vector<array> results = program(arguments);
            shared->store();
            return results;
          } catch (...) {
            shared->store();
            throw;
          }
        }));
  });
}
weft_status weft_checkpoint(weft_function* result, weft_function f) {
  return guarded([&] { out(result, weft::checkpoint(in(f))); });
}
weft_status weft_custom_vjp(weft_function* result, weft_function f, weft_function vjp) {
  return guarded([&] {
    const weft::CustomVjp rule = [fun = in(vjp)](const std::vector<array>& primals,
                                                 const std::vector<array>& cotangents,
                                                 const std::vector<array>& outputs) {
      std::vector<array> all = primals;
      all.insert(all.end(), cotangents.begin(), cotangents.end());
      all.insert(all.end(), outputs.begin(), outputs.end());
      return fun(all);
    };
    out(result, weft::custom_vjp(in(f), rule));
  });
}

weft_status weft_cond(weft_arrays* results, weft_array pred, weft_function true_function, weft_function false_function,
                      weft_arrays operands) {
  return guarded([&] { out(results, weft::cond(in(pred), in(true_function), in(false_function), in(operands))); });
}
weft_status weft_while_loop(weft_arrays* results, weft_function condition, weft_function body, weft_arrays init,
                            int64_t max_steps) {
  return guarded([&] {
    const auto limit = max_steps < 0 ? std::nullopt : std::optional(max_steps);
    out(results, weft::while_loop(one_of(in(condition)), in(body), in(init), limit));
  });
}
weft_status weft_scan(weft_arrays* carry, weft_arrays* stacked, weft_function step, weft_arrays init, weft_arrays xs,
                      int64_t length, bool reverse) {
  return guarded([&] {
    const size_t count = in(init).size();
    const weft::ScanFunction each = [&](const std::vector<array>& state, const std::vector<array>& x) {
      std::vector<array> arguments = state;
      arguments.insert(arguments.end(), x.begin(), x.end());
      std::vector<array> all = in(step)(arguments);
      if (all.size() < count)
        throw std::invalid_argument("[weft_scan] the step must return the carry, " + std::to_string(count) +
                                    " arrays, and its results; it returned " + std::to_string(all.size()));
      const auto end = all.begin() + static_cast<std::ptrdiff_t>(count);
      return std::pair{std::vector<array>(all.begin(), end), std::vector<array>(end, all.end())};
    };
    auto [last, results] =
        weft::scan(each, in(init), in(xs), length < 0 ? std::nullopt : std::optional(length), reverse);
    out(carry, std::move(last));
    out(stacked, std::move(results));
  });
}
