// What well-formed code of a target is, how it is appended, and where it is found.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "kernel/rules/checker.h"

namespace weft::kernel {

void Rules::inline_code() {
  if (!require(inst.code != nullptr, "there is no code")) return;
  const InlineCode& code = *inst.code;
  if (inst.op == Op::source) {
    args(0);
    for (const auto* extents : {&code.block, &code.grid})
      for (const int64_t n : *extents) require(n >= 1, "blocks and threads are positive");
    return;
  }
  if (!args(inst.args.size()) || !require(!inst.args.empty() && !inst.results.empty(), "code takes and makes tiles"))
    return;
  require(code.pack == 1 || code.pack == 2 || code.pack == 4 || code.pack == 8 || code.pack == 16,
          "code runs for 1, 2, 4, 8 or 16 elements at once");
  for (size_t k = 0; k < inst.args.size(); ++k)
    require(arg(k).dims == inst.type.dims, "the arguments and the results have one shape");
  for (const Value v : inst.results)
    require(kernel.types[static_cast<size_t>(v)].dims == inst.type.dims,
            "the arguments and the results have one shape");
  if (code.constraints.empty())
    require(code.inputs.size() == inst.args.size() && code.outputs.size() == inst.results.size(),
            "each argument and result has a name");
  if (inst.blocks.empty()) return;
  const Block& body = inst.blocks[0];
  if (!require(body.arguments.size() == inst.args.size(), "the counterpart takes the arguments")) return;
  for (size_t k = 0; k < body.arguments.size(); ++k) {
    const Value v = body.arguments[k];
    require(v >= 0 && static_cast<size_t>(v) < kernel.types.size() && kernel.types[static_cast<size_t>(v)] == arg(k),
            "the counterpart takes the arguments");
  }
}

std::vector<Value> Builder::inline_code(InlineCode code, const std::vector<Value>& args,
                                        const std::vector<Dtype>& results, const std::vector<int64_t>& dims,
                                        const Counterpart& counterpart) {
  Inst inst{.op = Op::inline_code, .args = args};
  inst.code = std::make_shared<const InlineCode>(std::move(code));
  if (counterpart) {
    open();
    std::vector<Value> arguments;
    for (const Value v : args) arguments.push_back(new_value(Type(type(v))));
    frames_.back().block.arguments = arguments;
    std::vector<Value> made = counterpart(arguments);
    inst.blocks.push_back(close(std::move(made)));
  }
  for (const Dtype t : results) inst.results.push_back(new_value({t, dims}));
  inst.type = type(inst.results.at(0));
  std::vector<Value> out = inst.results;
  append(std::move(inst));
  return out;
}

void Builder::source(InlineCode code) {
  Inst inst{.op = Op::source};
  inst.code = std::make_shared<const InlineCode>(std::move(code));
  append(std::move(inst));
}

bool has_code(const Block& block) {
  return std::any_of(block.insts.begin(), block.insts.end(), [](const Inst& inst) {
    return inst.op == Op::inline_code || inst.op == Op::source ||
           std::any_of(inst.blocks.begin(), inst.blocks.end(), has_code);
  });
}

void refuse_code(const Kernel& kernel, const Inst& inst) {
  const SourceLine& at = kernel.lines[static_cast<size_t>(inst.line)];
  throw_invalid("kernel " + kernel.name,
                fmt::format("{}'{}' is code for GPUs alone, and this is none: give it a counterpart, or run the "
                            "kernel on a GPU",
                            at.line > 0 ? fmt::format("{}:{}: ", at.file, at.line) : "", inst.code->name));
}

}  // namespace weft::kernel
