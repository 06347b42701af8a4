#include "tools/weft/kernel/subjects.h"

#include <algorithm>
#include <filesystem>

#include "array/routines/kernel_stages.h"
#include "base/arithmetic.h"
#include "compiler/program.h"
#include "graph/calls/kernel_text.h"
#include "io/program/tape.h"
#include "target/target.h"
#include "tools/weft/kernel/examples.h"
#include "tools/weft/kernel/library.h"
#include "tools/weft/options.h"
#include "weft/io.h"
#include "weft/ops.h"
#include "weft/random.h"

namespace weft::tool {

namespace {

/// Collects the kernels of a function, each once, with those of its regions and its control flow.
void collect_kernels(const io::Tape& tape, std::vector<KernelSubject>& out) {
  for (const io::Tape::Entry& e : tape.entries) {
    const auto& program = e.attrs.kernel;
    const auto same = [&](const KernelSubject& s) { return s.program->key == program->key; };
    if (program && std::none_of(out.begin(), out.end(), same)) out.push_back({program->kernel.name, "", program});
    if (e.body) collect_kernels(*e.body, out);
    if (e.control)
      for (const auto& body : e.control->bodies) collect_kernels(*body, out);
  }
}

std::vector<KernelSubject> from_file(const std::string& path) {
  std::vector<KernelSubject> out;
  const std::string bytes = io::read_file(path);
  if (bytes.starts_with("kernel ") || bytes.starts_with("//")) {
    auto program = graph::program_of_text(bytes);
    out.push_back({program->kernel.name, "", program});
    return out;
  }
  for (const io::TapedFunction& f : io::read_program(path).functions)
    collect_kernels(io::tape_for(f, io::example_types(f)), out);
  if (out.empty()) throw UsageError(path + " calls no kernels of users");
  return out;
}

KernelSubject from_example(const ExampleKernel& e, bool small) {
  const array result = e.call(example_arguments(small ? e.small : e.shapes))[0];
  return {e.name, e.summary, result.value().node->attrs().kernel};
}

/// Returns the machine that a kernel is made for: this one, or where that is another device a usual one.
target::Machine machine_of(const LibraryKernel& k, const target::Machine& machine) {
  if (k.is_made_for(machine)) return machine;
  return machine.simt ? target::cpu().machine() : target::gpu_of(usual_arch());
}

/// Appends the kernels of the library that a name means; "": those for a machine, without one all.
void add_library_kernels(const std::string& name, bool small, const target::Machine* machine,
                         std::vector<KernelSubject>& out) {
  for (const LibraryKernel& k : library_kernels()) {
    if (name.empty() ? machine && !k.is_made_for(*machine) : name != k.name) continue;
    const target::Machine of = machine_of(k, machine ? *machine : compiler::default_target().machine());
    if (auto program = k.make(of, small)) out.push_back({k.name, k.summary, std::move(program)});
    else if (!name.empty()) throw UsageError(name + " is a kernel for tensor cores, which " + of.arch + " lacks");
  }
}

Arithmetic arithmetic_of(const graph::KernelWork& work) {
  if (work.operands == float64) return Arithmetic::f64;
  if (is_float8(work.operands)) return Arithmetic::f8;
  if (work.operands == float16 || work.operands == bfloat16) return Arithmetic::f16;
  return work.tf32 ? Arithmetic::tf32 : Arithmetic::f32;
}

}  // namespace

std::vector<KernelSubject> find_subjects(const std::string& source, bool small, const target::Machine* machine) {
  if (std::filesystem::is_regular_file(source)) return from_file(source);
  std::vector<KernelSubject> out;
  std::vector<std::string> known;
  for (const ExampleKernel& e : example_kernels()) {
    known.push_back(e.name);
    if (source.empty() || source == e.name) out.push_back(from_example(e, small));
  }
  add_library_kernels(source, small, machine, out);
  if (!out.empty()) return out;
  for (const LibraryKernel& k : library_kernels()) known.push_back(k.name);
  const std::string near = nearest(source, known);
  throw UsageError("'" + source + "' is neither a file nor a built-in kernel" +
                   (near.empty() ? " (weft kernel list shows them)" : "; did you mean " + near + "?"));
}

std::vector<array> random_arguments(const graph::KernelProgram& program, uint64_t seed) {
  std::vector<array> out;
  for (const graph::KernelArray& a : program.arrays) {
    if (a.use == graph::KernelUse::out) continue;
    const array key = random::key(seed + out.size());
    const Dtype t = a.type.dtype;
    out.push_back(is_float(t)
                      ? astype(random::normal(a.type.shape, float32, 0, 1, key), t)
                      : astype(random::randint(array(0), array(t == bool_ ? 2 : 4), a.type.shape, int32, key), t));
  }
  return out;
}

std::vector<array> call_of(const std::shared_ptr<const graph::KernelProgram>& program,
                           const std::vector<array>& inputs) {
  graph::Values values;
  for (const array& a : inputs) values.push_back(a.value());
  std::vector<array> out;
  for (graph::Value& v : graph::kernel_call(program, std::move(values))) out.emplace_back(std::move(v));
  return out;
}

double least_bytes(const graph::KernelProgram& program) {
  double bytes = 0;
  for (const graph::KernelArray& a : program.arrays) {
    const double once = static_cast<double>(num_elements(a.type.shape)) * a.type.dtype.size();
    bytes += a.use == graph::KernelUse::in_out ? 2 * once : once;
  }
  return bytes;
}

Roofline roofline(const graph::KernelProgram& program, const target::Rates& rates) {
  Roofline out;
  const auto at_least = [&](double work, double rate, const char* bound) {
    if (work > 0 && rate > 0 && work / rate > out.seconds) out = {work / rate, bound};
  };
  const double bytes = least_bytes(program);
  at_least(bytes, rates.peak_bandwidth(bytes), "memory");
  at_least(program.work.products, rates.peak(arithmetic_of(program.work)), "products");
  at_least(program.work.operations, rates.vector, "arithmetic");
  return out;
}

}  // namespace weft::tool
