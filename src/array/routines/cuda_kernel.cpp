// fast::cuda_kernel: a kernel of source as a node of the graph.
#include <algorithm>
#include <array>
#include <cstdio>

#include <fmt/format.h>

#include "array/op_support.h"
#include "base/error.h"
#include "graph/calls/kernel_call.h"
#include "kernel/forms/inline_code.h"
#include "weft/fast.h"
#include "weft/ops.h"

namespace weft::fast {

namespace {

constexpr int64_t most_block_threads = 1024;

/// A kernel of source, and one call of it.
struct SourceKernel {
  std::string name;
  std::vector<std::string> inputs, outputs;
  std::string source, header;
  int shared_bytes;
  CpuKernelFunction cpu;

  [[noreturn]] void refuse(const std::string& what) const { throw_invalid("kernel " + name, what); }
};

const char* cuda_type(const SourceKernel& k, Dtype t) {
  switch (t.val()) {
    case Dtype::Val::bool_: return "bool";
    case Dtype::Val::uint8: return "unsigned char";
    case Dtype::Val::uint16: return "unsigned short";
    case Dtype::Val::uint32: return "unsigned int";
    case Dtype::Val::uint64: return "unsigned long long";
    case Dtype::Val::int8: return "signed char";
    case Dtype::Val::int16: return "short";
    case Dtype::Val::int32: return "int";
    case Dtype::Val::int64: return "long long";
    case Dtype::Val::float16:
    case Dtype::Val::bfloat16: return "unsigned short";
    case Dtype::Val::float32: return "float";
    case Dtype::Val::float64: return "double";
    default: k.refuse(fmt::format("an array of {} has no type in CUDA C++: convert it", dtype_name(t)));
  }
}

std::string text_of(const SourceKernel& k, const TemplateArg& arg) {
  if (const bool* flag = std::get_if<bool>(&arg)) return *flag ? "true" : "false";
  if (const int* number = std::get_if<int>(&arg)) return std::to_string(*number);
  return cuda_type(k, std::get<Dtype>(arg));
}

std::array<int64_t, 3> extents(const std::tuple<int, int, int>& t) {
  return {std::get<0>(t), std::get<1>(t), std::get<2>(t)};
}

std::string list_of(const char* type, const std::string& what, const std::vector<int64_t>& numbers) {
  return fmt::format("static __device__ const {} {}[] = {{{}}};\n", type, what,
                     numbers.empty() ? "0" : fmt::format("{}", fmt::join(numbers, ", ")));
}

/// Returns what stands before the source: template arguments, and the shapes that it mentions.
std::string preamble(const SourceKernel& k, const std::vector<array>& inputs,
                     const std::vector<std::pair<std::string, TemplateArg>>& arguments) {
  std::string out;
  for (const auto& [what, arg] : arguments)
    out += std::holds_alternative<Dtype>(arg)
               ? fmt::format("using {} = {};\n", what, text_of(k, arg))
               : fmt::format("constexpr {} {} = {};\n", std::holds_alternative<bool>(arg) ? "bool" : "int", what,
                             text_of(k, arg));
  const auto mentions = [&](const std::string& what) {
    return k.source.find(what) != std::string::npos || k.header.find(what) != std::string::npos;
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string& input = k.inputs[i];
    const Shape& shape = inputs[i].shape();
    std::vector<int64_t> dims(shape.begin(), shape.end());
    if (mentions(input + "_shape")) out += list_of("int", input + "_shape", dims);
    if (mentions(input + "_strides")) out += list_of("long long", input + "_strides", row_major_strides(shape));
    if (mentions(input + "_ndim")) out += fmt::format("constexpr int {}_ndim = {};\n", input, dims.size());
  }
  return out + k.header;
}

/// Checks the sizes of a call, and returns its code.
kernel::InlineCode code_of(const SourceKernel& k, const std::vector<array>& inputs, const std::vector<Shape>& shapes,
                           const std::vector<Dtype>& dtypes, const std::array<int64_t, 3>& threads,
                           const std::array<int64_t, 3>& block) {
  if (inputs.size() != k.inputs.size())
    k.refuse(fmt::format("takes {} arrays, got {}", k.inputs.size(), inputs.size()));
  if (shapes.size() != k.outputs.size() || dtypes.size() != k.outputs.size())
    k.refuse(fmt::format("has {} outputs, but {} shapes and {} dtypes: give one of each", k.outputs.size(),
                         shapes.size(), dtypes.size()));
  for (const array& a : inputs)
    if (!is_static(a.shape())) k.refuse("an argument has a symbolic length: source is made for fixed shapes");
  kernel::InlineCode code{
      .name = k.name, .text = k.source, .constraints = {}, .inputs = k.inputs, .outputs = k.outputs};
  int64_t in_block = 1, blocks = 1;
  for (size_t i = 0; i < 3; ++i) {
    if (threads[i] < 1 || block[i] < 1)
      k.refuse(fmt::format("a grid of {}x{}x{} threads in blocks of {}x{}x{}: give 1 or more along each axis",
                           threads[0], threads[1], threads[2], block[0], block[1], block[2]));
    code.block[i] = std::min(block[i], threads[i]);
    code.grid[i] = (threads[i] + block[i] - 1) / block[i];
    in_block *= code.block[i], blocks *= code.grid[i];
  }
  if (in_block > most_block_threads)
    k.refuse(fmt::format("a block of {}x{}x{} has {} threads: give {} at most", code.block[0], code.block[1],
                         code.block[2], in_block, most_block_threads));
  if (blocks > INT32_MAX)
    k.refuse(fmt::format("{} blocks are more than a launch may have: give larger blocks", blocks));
  code.shared_bytes = k.shared_bytes;
  code.file = "source", code.line = 1;
  return code;
}

std::vector<array> run(const SourceKernel& k, const std::vector<array>& inputs, const std::vector<Shape>& shapes,
                       kernel::InlineCode code, const std::vector<Dtype>& dtypes, std::optional<float> init) {
  kernel::Builder b(k.name);
  graph::KernelProgram program{{}, {}, code.grid[0] * code.grid[1] * code.grid[2]};
  graph::Values values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    b.param(k.inputs[i], inputs[i].dtype(), false);
    program.arrays.push_back({graph::KernelUse::in, {inputs[i].shape(), inputs[i].dtype()}});
    values.push_back(inputs[i].value());
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    b.param(k.outputs[i], dtypes[i], true);
    program.arrays.push_back({init ? graph::KernelUse::in_out : graph::KernelUse::out, {shapes[i], dtypes[i]}});
    if (init) values.push_back(full(shapes[i], array(*init), dtypes[i]).value());
  }
  b.source(std::move(code));
  program.kernel = b.finish();
  program.kernel.any_size = true;  // a CPU says that it cannot run it
  std::vector<array> out;
  for (graph::Value& v : graph::kernel_call(graph::kernel_program(std::move(program)), std::move(values)))
    out.emplace_back(std::move(v));
  return out;
}

}  // namespace

CustomKernelFunction cuda_kernel(const std::string& name, const std::vector<std::string>& input_names,
                                 const std::vector<std::string>& output_names, const std::string& source,
                                 const std::string& header, bool, int shared_memory, CpuKernelFunction cpu) {
  const SourceKernel k{name, input_names, output_names, source, header, shared_memory, std::move(cpu)};
  if (output_names.empty()) k.refuse("has no output: name one at least");
  if (shared_memory < 0) k.refuse(fmt::format("asks for {} bytes of shared memory: give 0 or more", shared_memory));
  return [k](const std::vector<array>& inputs, const std::vector<Shape>& shapes, const std::vector<Dtype>& dtypes,
             std::tuple<int, int, int> grid, std::tuple<int, int, int> threadgroup,
             const std::vector<std::pair<std::string, TemplateArg>>& template_args, std::optional<float> init_value,
             bool verbose, StreamOrDevice s) {
    kernel::InlineCode code = code_of(k, inputs, shapes, dtypes, extents(grid), extents(threadgroup));
    code.header = preamble(k, inputs, template_args);
    if (verbose) std::printf("%s\n%s\n", code.header.c_str(), code.text.c_str());
    const detail::OnStream on_stream("cuda_kernel", s);
    if (to_stream(s).device.type == Device::cpu) {
      if (!k.cpu) k.refuse("is CUDA source and its stream is a CPU's: give it a function for CPUs, or a GPU's stream");
      std::vector<array> out = k.cpu(inputs);
      if (out.size() != shapes.size())
        k.refuse(fmt::format("its function for CPUs returns {} arrays: return {}", out.size(), shapes.size()));
      for (size_t i = 0; i < out.size(); ++i)
        if (out[i].shape() != shapes[i] || out[i].dtype() != dtypes[i])
          k.refuse(fmt::format("its function for CPUs returns {} as output {}: return {} of shape {}",
                               detail::describe(out[i]), i, dtype_name(dtypes[i]), weft::to_string(shapes[i])));
      return out;
    }
    return run(k, inputs, shapes, std::move(code), dtypes, init_value);
  };
}

}  // namespace weft::fast
