#include "array/routines/kernel_launch.h"

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "compiler/program.h"
#include "graph/calls/kernel_call.h"
#include "kernel/language/trace.h"
#include "target/foreign_launch.h"

namespace weft::k::detail {

/// What a launch was traced for, and its code on each device. Run-time extents are no part of it.
struct RawEntry {
  std::vector<Shape> shapes;
  std::vector<Strides> strides;
  AnyConfig config;
  Program program;
  double work;
  std::mutex lock;
  std::map<int, std::shared_ptr<const target::Executable>> code;  // by device; -1: the CPU

  RawEntry(std::vector<Shape> s, std::vector<Strides> t, AnyConfig c, Program p, double w)
      : shapes(std::move(s)), strides(std::move(t)), config(std::move(c)), program(std::move(p)), work(w) {}

  const target::Executable& on(int device) {
    const std::scoped_lock held(lock);
    std::shared_ptr<const target::Executable>& made = code[device];
    if (!made) made = compiler::target_of(device).compile(std::span(&program.data().kernel, 1))[0];
    return *made;
  }
};

namespace {

std::string describe_device(const Device& d) {
  return fmt::format("{} {}", d.type == Device::gpu ? "gpu" : "cpu", d.index);
}

std::string describe_extent(const Symbol& s) { return fmt::format("{}<={}", s.name, s.bound); }

/// A kernel, and the line of the user's program that launches it.
struct Caller {
  const Definition& kernel;
  Line at;
  [[noreturn]] void refuse(const std::string& what) const {
    throw_invalid("kernel " + kernel.name, fmt::format("{}:{}: launch: {}", at.file, at.number, what));
  }
};

/// Checks the arrays of a launch; returns the strides of all.
std::vector<Strides> strides_of(const Caller& caller, const std::vector<RawArray>& arrays) {
  const std::vector<ArrayType>& types = caller.kernel.arrays;
  if (arrays.size() != types.size())
    caller.refuse(fmt::format("it takes {} arrays, got {}", types.size(), arrays.size()));
  std::vector<Strides> out;
  for (size_t k = 0; k < arrays.size(); ++k) {
    const RawArray& a = arrays[k];
    const auto wrong = [&](const std::string& what) { caller.refuse(fmt::format("array {} {}", k, what)); };
    if (a.shape.size() != static_cast<size_t>(types[k].rank))
      wrong(fmt::format("has {} axes, its shape is {}", types[k].rank, weft::to_string(a.shape)));
    if (!a.strides.empty() && a.strides.size() != a.shape.size())
      wrong(fmt::format("has {} strides for {} axes", a.strides.size(), a.shape.size()));
    if (num_elements(a.shape) > 0 && !a.data) wrong("has elements, but its pointer is null");
    if (reinterpret_cast<uintptr_t>(a.data) % static_cast<uintptr_t>(types[k].dtype.size()) != 0)
      wrong(fmt::format("does not lie at a multiple of {} bytes, as {} must", types[k].dtype.size(),
                        dtype_name(types[k].dtype)));
    out.push_back(a.strides.empty() ? row_major_strides(a.shape) : Strides(a.strides));
    for (size_t axis = 0; axis < a.shape.size(); ++axis)
      if (types[k].use != Use::in && out[k][axis] == 0 && a.shape[axis].bound() > 1)
        wrong("is written, and repeats its elements: give it strides that are not 0");
  }
  return out;
}

/// The values of a launch's run-time extents, each with where it was given.
class ExtentValues {
 public:
  ExtentValues(const Caller& caller, const std::vector<RawArray>& arrays) : caller_(caller) {
    for (size_t k = 0; k < arrays.size(); ++k) {
      shapes_ += (k > 0 ? ", " : "") + weft::to_string(arrays[k].shape);
      add(k, arrays[k]);
    }
  }

  /// Adds the values of a list; `known` are the symbols of the kernel.
  void add(const std::vector<RawExtent>& list, const std::vector<const Symbol*>& known) {
    for (const RawExtent& e : list) {
      const Symbol* const symbol = e.length.symbol();
      if (!symbol)
        caller_.refuse(fmt::format("a value is given for the number {}: give it for a symbol of the shapes {}",
                                   e.length.bound(), shapes_));
      if (std::find(known.begin(), known.end(), symbol) == known.end())
        caller_.refuse(
            fmt::format("a value is given for {}, which is no extent of the shapes {}, and which the kernel "
                        "does not read: leave it out",
                        describe_extent(*symbol), shapes_));
      add(symbol, e.value, "the list of extents");
    }
  }

  /// Returns the values of a kernel's symbols, in its order.
  std::vector<int64_t> of(const std::vector<const Symbol*>& symbols) const {
    std::vector<int64_t> out;
    for (const Symbol* s : symbols) {
      const auto found = given_.find(s);
      if (found == given_.end())
        caller_.refuse(
            fmt::format("the run-time extent {} of the shapes {} has no value: give it in the `extents` of "
                        "an array, or behind the arrays",
                        describe_extent(*s), shapes_));
      out.push_back(found->second.value);
    }
    return out;
  }

 private:
  struct Given {
    int64_t value;
    std::string where;
  };

  void add(size_t number, const RawArray& a) {
    if (a.extents.empty()) return;
    const std::string where = fmt::format("array {} of shape {}", number, weft::to_string(a.shape));
    if (a.extents.size() != a.shape.size())
      caller_.refuse(fmt::format("{} has {} extents: give one for each axis, or none", where, a.extents.size()));
    for (size_t axis = 0; axis < a.shape.size(); ++axis) {
      const Dim& length = a.shape[axis];
      if (length.symbol()) add(length.symbol(), a.extents[axis], where);
      else if (length.bound() != a.extents[axis])
        caller_.refuse(
            fmt::format("{} is given the extent {} along axis {}, which has {}: a shape with a symbol there "
                        "has extents of run time",
                        where, a.extents[axis], axis, length.bound()));
    }
  }

  void add(const Symbol* symbol, int64_t value, const std::string& where) {
    if (value < 1 || value > symbol->bound)
      caller_.refuse(fmt::format("the run-time extent {} is {} in {}: it lies in 1 to {}", describe_extent(*symbol),
                                 value, where, symbol->bound));
    const auto [known, added] = given_.try_emplace(symbol, Given{value, where});
    if (!added && known->second.value != value)
      caller_.refuse(fmt::format("the run-time extent {} is {} in {}, and {} in {}: give it one value",
                                 describe_extent(*symbol), known->second.value, known->second.where, value, where));
  }

  const Caller& caller_;
  std::string shapes_;
  std::map<const Symbol*, Given> given_;
};

}  // namespace

std::shared_ptr<RawEntry> RawPrograms::of(const Definition& d, const std::vector<RawArray>& arrays,
                                          std::vector<Strides> strides, const AnyConfig& config) {
  std::vector<Shape> shapes;
  for (const RawArray& a : arrays) shapes.push_back(a.shape);
  {
    const std::scoped_lock held(lock_);
    for (const auto& e : entries_)
      if (e->shapes == shapes && e->strides == strides && same_config(e->config, config)) return e;
  }
  Program program = program_for(d, shapes, strides, config);
  const graph::KernelWork work = graph::work_of(program.data().kernel, program.programs());
  double total = work.operations + work.products;
  for (size_t k = 0; k < shapes.size(); ++k)
    total += static_cast<double>(num_elements(shapes[k]) * d.arrays[k].dtype.size());
  auto made = std::make_shared<RawEntry>(std::move(shapes), std::move(strides), config, std::move(program), total);
  const std::scoped_lock held(lock_);
  entries_.push_front(made);
  if (entries_.size() > most_traced) entries_.pop_back();
  return made;
}

RawPrograms::Checked RawPrograms::checked(const Definition& d, const std::vector<RawArray>& arrays,
                                          const std::vector<RawExtent>& extents, const AnyConfig& config, Line at) {
  const Caller caller{d, at};
  if (!config.value) caller.refuse("it has no configuration: give one by .config");
  std::vector<Strides> strides = strides_of(caller, arrays);
  ExtentValues values(caller, arrays);
  Checked out{of(d, arrays, std::move(strides), config), {}, {}};
  const std::vector<const Symbol*>& symbols = out.entry->program.symbols();
  values.add(extents, symbols);
  out.extents = values.of(symbols);
  for (const RawArray& a : arrays) out.pointers.push_back(a.data);
  return out;
}

void RawPrograms::launch(const Definition& d, const RawStream& stream, const std::vector<RawArray>& arrays,
                         const std::vector<RawExtent>& extents, const AnyConfig& config, Line at) {
  if (!is_available(stream.device))
    Caller{d, at}.refuse(fmt::format("this machine has no such device: {}", describe_device(stream.device)));
  const Checked call = checked(d, arrays, extents, config, at);
  const target::Segment segment{call.pointers, call.extents, call.entry->program.programs(call.extents)};
  if (segment.grid == 0) return;
  const target::Executable& code = call.entry->on(stream.device.type == Device::gpu ? stream.device.index : -1);
  if (const auto* foreign = dynamic_cast<const target::ForeignLaunch*>(&code))
    return foreign->run_on(stream.handle, segment);
  code.run(std::span(&segment, 1), call.entry->work);
}

void RawPrograms::debug(const Definition& d, const Debugger& debugger, const std::vector<RawArray>& arrays,
                        const std::vector<RawExtent>& extents, const AnyConfig& config, Line at) {
  const Checked call = checked(d, arrays, extents, config, at);
  for (size_t k = 0; k < arrays.size(); ++k)
    if (call.entry->strides[k] != row_major_strides(arrays[k].shape))
      Caller{d, at}.refuse(
          fmt::format("array {} of shape {} has strides of its own, which the interpreter does not "
                      "know: give it a row-major copy",
                      k, weft::to_string(arrays[k].shape)));
  k::debug(call.entry->program, call.pointers, debugger, call.extents);
}

}  // namespace weft::k::detail
