#include "target/cuda/handwritten/scatter_add_rows.h"

#include <fmt/format.h>

#include "base/error.h"

namespace weft::target::cuda {

namespace {

constexpr int64_t warps_of_block = 8;  // one row each

/// Returns the C++ type of an integer dtype, "unsigned short"; "" for other dtypes.
const char* integer_name(Dtype t) {
  if (t == int32) return "int";
  if (t == uint32) return "unsigned";
  if (t == int64) return "long long";
  if (t == uint64) return "unsigned long long";
  if (t == int16) return "short";
  if (t == uint16) return "unsigned short";
  if (t == int8) return "signed char";
  return t == uint8 ? "unsigned char" : "";
}

}  // namespace

std::optional<Match> match_scatter_add_rows(const kernel::CallDesc& work, const Machine&) {
  if (work.name != "scatter_rows" || work.numerics.deterministic) return std::nullopt;
  const Dtype id = work.inputs[0].dtype, from = work.inputs[1].dtype;
  const int64_t count = work.inputs[0].extents[0], table_rows = work.outputs[0].extents[0],
                width = work.outputs[0].extents[1];
  const std::string id_type = integer_name(id);
  if (work.outputs[0].dtype != float32 || (from != float32 && from != bfloat16 && from != float16) || id_type.empty() ||
      width % 4 != 0 || width > INT32_MAX || count == 0)
    return std::nullopt;
  Match match;
  match.form =
      fmt::format("scatter_add_rows_{}_{}_{}_{}_{}", dtype_name(id), dtype_name(from), count, table_rows, width);
  match.parameters = Parameters()
                         .entry("KERNEL", match.form)
                         .type("Id", id_type)
                         .type("Element", from == float32 ? "float" : "unsigned short")
                         .flag("bf16", from == bfloat16)
                         .integer("count", count)
                         .integer("table_rows", table_rows)
                         .integer("width", width)
                         .text();
  match.entries = {{match.form, {(count + warps_of_block - 1) / warps_of_block, 1, 32 * warps_of_block, 0}}};
  match.label = "weft scatter_add_rows";
  match.run = [](std::span<void* const> operands, void*, const Match::Launch& launch) {
    weft::check(operands.size() == 3, "scatter_add_rows", "number of operands");
    void *ids = operands[0], *rows = operands[1], *sums = operands[2];
    void* arguments[] = {&ids, &rows, &sums};
    launch(0, arguments);
  };
  return match;
}

}  // namespace weft::target::cuda
