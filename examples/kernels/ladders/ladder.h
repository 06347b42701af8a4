#pragma once
// Ladders: one result by many kernels, each a step better than the one before or a dead end that is marked as one. The
// first rung is a loop in C++. `examples/kernels/ladders/main.cpp` checks all rungs at a small size, `weft bench
// ladder` times them; docs/kernels/ says what each one teaches.
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/kernel_async.h"
#include "weft/kernel_function.h"
#include "weft/kernel_group.h"
#include "weft/kernel_library.h"
#include "weft/weft.h"

namespace ladders {

namespace k = weft::k;
using weft::array;
using weft::Shape;
/// Arguments, or results.
using Arrays = std::vector<array>;

/// One step: the ladder's results by other means.
struct Rung {
  std::string name;
  weft::ArrayFunction run;
  /// What was traced of the kernel, the first one where there are several; and the rung's results in the interpreter,
  /// where it is one kernel.
  std::function<k::Program(const Arrays&)> program = {};
  weft::ArrayFunction interpret = {};
  /// Whether it runs on the calling thread, on memory of the host.
  bool host = false;
  /// Why the step does not pay; empty where it does.
  std::string dead_end = {};
  /// Whether it adds floats in no order, which is refused unless results may differ from run to run.
  bool any_order = false;
};

/// While it lives, results may differ from run to run, if `allowed`.
class AnyOrder {
 public:
  explicit AnyOrder(bool allowed) : before_(weft::numerics()) {
    weft::Numerics now = before_;
    now.deterministic = now.deterministic && !allowed;
    weft::set_numerics(now);
  }
  AnyOrder(const AnyOrder&) = delete;
  AnyOrder& operator=(const AnyOrder&) = delete;
  ~AnyOrder() { weft::set_numerics(before_); }

 private:
  weft::Numerics before_;
};

/// How large the arrays are: a multiple of nothing that is checked in no time; what is timed on a CPU, and on a GPU.
enum class Scale { check, cpu, gpu };
/// Returns the size of a scale.
inline int64_t at(Scale scale, int64_t check, int64_t cpu, int64_t gpu) {
  return scale == Scale::check ? check : scale == Scale::cpu ? cpu : gpu;
}

struct Ladder {
  std::string name;
  Arrays inputs;
  /// What the compiler, or a library, makes of the same.
  weft::ArrayFunction library = {};
  std::vector<Rung> rungs = {};
  /// The bytes that must be read and written, or the operations: what limits the result. The other one is 0.
  double bytes = 0, operations = 0;
  /// The largest difference from the library's result.
  double tolerance = 0;
  /// What else must hold of results of the inputs, in place of that: says what does not, or nothing.
  std::function<std::string(const Arrays&, const Arrays&)> check = {};
};

/// A ladder by its name.
struct Entry {
  const char* name;
  const char* what;
  Ladder (*make)(Scale);
};
/// Returns all ladders.
std::span<const Entry> all();

/// Makes a rung of one kernel.
template <class... P>
Rung rung(std::string name, k::KernelFunction<P...> kernel, std::string dead_end = {}) {
  return {std::move(name),
          [kernel](const Arrays& in) { return kernel(in); },
          [kernel](const Arrays& in) { return kernel.program(in); },
          [kernel](const Arrays& in) { return kernel.interpret(in); },
          false,
          std::move(dead_end)};
}
/// Makes a rung of one kernel that takes other arrays than the ladder's inputs (zeros to begin with, counters, locks):
/// arguments(inputs). `results`: the numbers of the ladder's results among its own.
template <class... P>
Rung rung(std::string name, k::KernelFunction<P...> kernel, weft::ArrayFunction arguments, std::vector<size_t> results,
          std::string dead_end = {}) {
  const auto chosen = [results = std::move(results)](const Arrays& all) {
    Arrays out;
    for (const size_t i : results) out.push_back(all[i]);
    return out;
  };
  return {std::move(name),
          [=](const Arrays& in) { return chosen(kernel(arguments(in))); },
          [=](const Arrays& in) { return kernel.program(arguments(in)); },
          [=](const Arrays& in) { return chosen(kernel.interpret(arguments(in))); },
          false,
          std::move(dead_end)};
}
/// Makes a rung of several kernels, of which the first one is worth looking at.
template <class... P>
Rung passes(std::string name, k::KernelFunction<P...> first, weft::ArrayFunction run, std::string dead_end = {}) {
  return {std::move(name), std::move(run),     [first](const Arrays& in) { return first.program(in); }, {},
          false,           std::move(dead_end)};
}
/// Returns the rung as one that adds floats in no order.
inline Rung in_any_order(Rung rung) {
  rung.any_order = true;
  return rung;
}
/// Makes a rung of several kernels.
inline Rung rung(std::string name, weft::ArrayFunction run, std::string dead_end = {}) {
  return {std::move(name), std::move(run), {}, {}, false, std::move(dead_end)};
}
/// Makes a rung of a loop on the host: f(inputs, outputs), of float32, the outputs of the given
/// shapes. Nothing is in the outputs' memory yet.
Rung loop(std::vector<Shape> shapes, std::function<void(std::span<const float* const>, std::span<float* const>)> f);

/// Returns normally distributed numbers, the same in each run.
inline array normal(const Shape& shape, uint64_t seed) {
  return weft::random::normal(shape, weft::float32, 0.0f, 1.0f, weft::random::key(seed));
}
/// Returns a function of arrays with one result.
inline weft::ArrayFunction one(std::function<array(const Arrays&)> f) {
  return [f = std::move(f)](const Arrays& in) { return Arrays{f(in)}; };
}

Ladder vec_add(Scale scale);
Ladder reduction(Scale scale);
Ladder transpose(Scale scale);
Ladder softmax(Scale scale);
Ladder matmul(Scale scale);
Ladder matmul_tensor(Scale scale);
Ladder batched_matmul(Scale scale);
Ladder attention(Scale scale);
Ladder attention_tensor(Scale scale);
Ladder layer_norm(Scale scale);
Ladder layer_norm_gradient(Scale scale);
Ladder histogram(Scale scale);
Ladder dropout(Scale scale);
Ladder activation(Scale scale);
Ladder scan(Scale scale);
Ladder sort(Scale scale);

}  // namespace ladders
