// Renders what users write in CUDA C++ and PTX. Their text stands under its own lines (#line), by which the compiler's
// messages name it.
#include <fmt/format.h>

#include <algorithm>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::InlineCode;
using kernel::Type;

namespace {

/// Returns the bytes that elements take as an operand: whole words, as PTX sees them.
int64_t words_of(Dtype t, int pack) { return std::max<int64_t>(1, (pack * static_cast<int64_t>(t.size()) + 3) / 4); }

/// Returns the type of an operand of assembly by its constraint ("=r", "f").
const char* operand_type(const std::string& constraint) {
  switch (constraint.back()) {
    case 'f': return "f32";
    case 'l': return "u64";
    case 'd': return "f64";
    case 'h': return "u16";
    default: return "u32";
  }
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> out(1);
  for (const char c : list) {
    if (c == ',') out.emplace_back();
    else if (c != ' ') out.back() += c;
  }
  return out;
}

/// Returns PTX as the text of an asm statement: $0 becomes %0, and % becomes %%.
std::string as_assembly(const std::string& text) {
  std::string out;
  for (size_t k = 0; k < text.size(); ++k) {
    const char c = text[k];
    if (c == '$' && k + 1 < text.size() && text[k + 1] >= '0' && text[k + 1] <= '9') out += '%';
    else if (c == '%') out += "%%";
    else if (c == '\n') out += "\\n";
    else if (c == '"' || c == '\\') out += {'\\', c};
    else out += c;
  }
  return out;
}

}  // namespace

const kernel::InlineCode* Renderer::source_of(const kernel::Kernel& kernel) {
  const Inst& first = kernel.body.insts[0];
  return first.op == kernel::Op::source ? first.code.get() : nullptr;
}

/// Returns a function of users' code, whose lines are the user's.
std::string Renderer::code_function(const InlineCode& code, const std::string& function,
                                    const std::string& parameters) {
  const std::string mark = code.line > 0 ? fmt::format("\n#line {} \"{}\"\n", code.line, code.file) : "\n";
  return fmt::format("FN void {}({}) {{{}{}\n#line 1 \"kernel {}\"\n}}\n", function, parameters, mark, code.text,
                     kernel_.name);
}

/// Renders code for each element, `pack` registers of a thread at a time. The last registers are taken again where they
/// are no multiple.
void Renderer::inline_code(const Inst& inst) {
  const InlineCode& code = *inst.code;
  const Layout s = layout_of(inst.type);
  const int registers = s.registers(), pack = code.pack;
  const bool assembly = !code.constraints.empty();
  const int64_t number = codes_++;
  std::vector<std::string> in, out;
  std::string parameters;
  for (size_t k = 0; k < inst.args.size() + inst.results.size(); ++k) {
    const bool result = k >= inst.args.size();
    const Value v = result ? inst.results[k - inst.args.size()] : inst.args[k];
    (result ? out : in).push_back(fmt::format("{}{}", result ? "made" : "given", k));
    if (assembly) continue;
    const std::string& name = result ? code.outputs[k - inst.args.size()] : code.inputs[k];
    parameters += fmt::format("{}{}{} {}{}", k > 0 ? ", " : "", result ? "" : "const ", type_name(type(v).dtype),
                              pack > 1 ? "*"
                              : result ? "&"
                                       : "",
                              name);
  }
  const std::string function = fmt::format("{}_code{}", symbol_, number);
  if (!assembly) functions_ += code_function(code, function, parameters);
  for (const Value v : inst.results) declare(v);
  open(fmt::format("EACH (int first = 0; first < {}; first += {})", registers, pack));
  const auto array = [&](const std::string& name, Dtype t) {
    const int64_t elements = std::max<int64_t>(pack, 4 / std::min<int64_t>(4, static_cast<int64_t>(t.size())));
    add(fmt::format("alignas(16) {} {}[{}];", type_name(t), name, elements));
  };
  for (size_t k = 0; k < in.size(); ++k) {
    array(in[k], type(inst.args[k]).dtype);
    const std::string r =
        registers % pack == 0 ? "(first + k)" : fmt::format("imin<int>(first + k, {})", registers - 1);
    add(fmt::format("EACH (int k = 0; k < {}; ++k) {}[k] = {};", pack, in[k], at(inst.args[k], r)));
  }
  for (size_t k = 0; k < out.size(); ++k) array(out[k], type(inst.results[k]).dtype);
  if (assembly) {
    inline_assembly(inst, in, out);
  } else {
    std::string arguments;
    for (const auto* names : {&in, &out})
      for (const std::string& name : *names)
        arguments += (arguments.empty() ? "" : ", ") + name + (pack > 1 ? "" : "[0]");
    add(fmt::format("{}({});", function, arguments));
  }
  for (size_t k = 0; k < out.size(); ++k) {
    const Value v = inst.results[k];
    const std::string guard = registers % pack == 0 ? "" : fmt::format("if (first + k < {}) ", registers);
    const std::string to = type(v).rank() == 0 ? fresh(v) : fresh(v) + "[first + k]";
    add(fmt::format("EACH (int k = 0; k < {}; ++k) {}{} = {}[k];", pack, guard, to, out[k]));
  }
  close();
}

/// Renders PTX over the words of arrays.
void Renderer::inline_assembly(const Inst& inst, const std::vector<std::string>& in,
                               const std::vector<std::string>& out) {
  const InlineCode& code = *inst.code;
  const std::vector<std::string> constraints = split(code.constraints);
  size_t next = 0;
  const auto operands = [&](const std::vector<std::string>& names, const std::vector<Value>& values) {
    std::string list;
    for (size_t k = 0; k < names.size(); ++k) {
      const Dtype t = type(values[k]).dtype;
      const int64_t words = t.size() == 8 ? code.pack : words_of(t, code.pack);
      for (int64_t w = 0; w < words; ++w, ++next)
        list += fmt::format("{}\"{}\"(*({}*)((u8*){} + {}))", list.empty() ? "" : ", ", constraints.at(next),
                            operand_type(constraints[next]), names[k], w * (t.size() == 8 ? 8 : 4));
    }
    return list;
  };
  const std::string results = operands(out, inst.results), arguments = operands(in, inst.args);
  if (code.line > 0) body_ += fmt::format("#line {} \"{}\"\n", code.line, code.file);
  add(fmt::format("asm volatile(\"{}\" : {} : {}{});", as_assembly(code.text), results, arguments,
                  code.effects ? " : \"memory\"" : ""));
  if (code.line > 0) body_ += fmt::format("#line 1 \"kernel {}\"\n", kernel_.name);
}

/// Renders a whole kernel: a function of the user's names, which sees the grid and the block that the user asked for. A
/// launch has one axis, the first of the user's the fastest.
void Renderer::source(const Inst& inst) {
  const InlineCode& code = *inst.code;
  std::string parameters = "const uint3 blockIdx, const uint3 threadIdx, const dim3 gridDim, const dim3 blockDim";
  size_t input = 0, output = 0;
  std::string arguments;
  for (size_t k = 0; k < kernel_.params.size(); ++k) {
    const kernel::Param& p = kernel_.params[k];
    parameters += fmt::format(", {}{}* {}", p.written ? "" : "const ", memory_type(static_cast<kernel::Ref>(k)),
                              p.written ? code.outputs.at(output++) : code.inputs.at(input++));
    arguments += ", " + buffer(static_cast<kernel::Ref>(k));
  }
  const std::string function = symbol_ + "_source";
  if (!code.header.empty()) functions_ += code.header + "\n";
  functions_ += code_function(code, function, parameters);
  const auto position = [](const std::string& n, const std::array<int64_t, 3>& of) {
    return fmt::format("make_uint3({0} % {1}, {0} / {1} % {2}, {0} / {3})", n, of[0], of[1], of[0] * of[1]);
  };
  const auto extents = [](const std::array<int64_t, 3>& of) {
    return fmt::format("dim3({}, {}, {})", of[0], of[1], of[2]);
  };
  add(fmt::format("{}({}, {}, {}, {}{});", function, position("(unsigned)program", code.grid),
                  position("(unsigned)t", code.block), extents(code.grid), extents(code.block), arguments));
}

}  // namespace weft::target::cuda
