// Renders the functions around a kernel's body: the head of its device function, and the __global__ function that finds
// the program, its buffers and its shared memory.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Ref;

std::string Renderer::signature(const std::string& symbol) const {
  const std::string_view fixed = iterations_ == 1 && sets_ == 1 ? "const " : "";
  std::string text = fmt::format("FN void {}_body({}int t, u8* {}shared, const i64 {}, const bool early", symbol, fixed,
                                 fixed, persistent_ ? "first, const i64 grid" : "program");
  for (size_t k = 0; k < kernel_.params.size(); ++k)
    text += fmt::format(", {}{}* {} p{}", kernel_.params[k].written ? "" : "const ", memory_type(static_cast<Ref>(k)),
                        kernel_.params[k].written ? "" : "__restrict__", k);
  for (size_t k = 0; k < kernel_.symbols.size(); ++k) text += fmt::format(", const i64 s{}", k);
  for (size_t k = 0; k < maps_.size(); ++k) text += fmt::format(", const TensorMap* const map{}", k);
  if (meets()) text += ", u32* const meeting, const i64 programs";
  return text + ") {\n";
}

/// Returns the __global__ function. Parameters that are constant while the kernel runs are declared const __restrict__,
/// so that the compiler may read them at any time through the read-only cache.
std::string Renderer::entry(const std::string& symbol) const {
  const int block = threads_of_block();
  const bool many = variant_.segments > 1;
  check(!many || !counts(), "cuda render", "programs that wait for each other are launched alone");
  const size_t params = kernel_.params.size(), symbols = kernel_.symbols.size(), row = params + symbols;
  std::string text;
  if (many)
    text += fmt::format("struct {}_table {{ i64 v[{}]; }};\n", symbol,
                        2 + static_cast<size_t>(variant_.segments) * (row + 1));
  const int of_cluster = std::max(cluster_, kernel_.cluster);
  const std::string cluster = of_cluster > 1 ? fmt::format(" __cluster_dims__({}, 1, 1)", of_cluster) : "";
  text += fmt::format("extern \"C\" __global__ void{} __launch_bounds__({}{}) {}(", cluster, block,
                      min_blocks() > 0  ? fmt::format(", {}", min_blocks())
                      : sets_registers_ ? ", 1"
                                        : "",
                      symbol);
  if (many) {
    text += fmt::format("const __grid_constant__ {}_table table", symbol);
  } else {
    for (size_t k = 0; k < params; ++k)
      text += fmt::format("{}{}* {}p{}, ", kernel_.params[k].written ? "" : "const ", memory_type(static_cast<Ref>(k)),
                          kernel_.params[k].constant && !kernel_.params[k].written ? "__restrict__ " : "", k);
    for (size_t k = 0; k < symbols; ++k) text += fmt::format("const i64 s{}, ", k);
    text += "const i64 grid";
    for (size_t k = 0; k < maps_.size(); ++k) text += fmt::format(", const __grid_constant__ TensorMap map{}", k);
    if (counts()) text += ", const i32 overlapping";
  }
  text += ") {\n  extern __shared__ __align__(";
  text += fmt::format("{}) u8 memory[];\n", warpgroups_ > 0 || !box_copies_.empty() ? 1024 : 16);
  // The range of t, for all threads: the compiler then sees which registers lie past the end of a partly filled tile.
  text += producer_ ? "  const int t = threadIdx.x;\n" : fmt::format("  const int t = threadIdx.x % {};\n", threads_);
  text += programs_ == 1 ? fmt::format("  i64 program = blockIdx.x{};\n  u8* const shared = memory;\n",
                                       cluster_ > 1 ? fmt::format(" / {}", cluster_) : "")
                         : fmt::format(
                               "  i64 program = (i64)blockIdx.x * {} + threadIdx.x / {};\n  u8* const shared = memory "
                               "+ threadIdx.x / {} * {};\n",
                               programs_, threads_, threads_, exchange_bytes_ + local_bytes_ + stage_bytes_);
  if (many) {
    // A binary search for the segment whose range holds this program.
    text +=
        "  const int n = (int)table.v[0];\n  if (program >= table.v[1 + n]) return;\n  int low = 0, high = n;\n"
        "  while (high - low > 1) { const int middle = (low + high) / 2; if (program >= table.v[1 + middle]) low = "
        "middle; else high = middle; }\n"
        "  program -= table.v[1 + low];\n";
    text += fmt::format("  const i64* const row = table.v + 2 + n + low * {};\n", row);
  } else {
    if (kernel_.ordered)
      text += fmt::format("  program = draw_number({}_numbers + overlapping, grid, memory);\n", symbol);
    text += "  if (program >= grid) return;\n";
  }
  text +=
      many ? "  const bool early = true;\n" : fmt::format("  const bool early = grid <= {};\n", most_early_programs);
  text += fmt::format("  if (early) begin_next();\n  {}_body(t, shared, program{}, early", symbol,
                      persistent_ ? ", grid" : "");
  for (size_t k = 0; k < params; ++k) {
    const std::string p = many ? fmt::format("({}{}*)row[{}]", kernel_.params[k].written ? "" : "const ",
                                             memory_type(static_cast<Ref>(k)), k)
                               : fmt::format("p{}", k);
    text += kernel_.params[k].constant && !kernel_.params[k].written ? ", " + p : fmt::format(", changing({})", p);
  }
  for (size_t k = 0; k < symbols; ++k) text += many ? fmt::format(", row[{}]", params + k) : fmt::format(", s{}", k);
  for (size_t k = 0; k < maps_.size(); ++k) text += fmt::format(", &map{}", k);
  if (meets()) text += fmt::format(", {}_meetings[overlapping], grid", symbol);
  return text + ");\n}\n";
}

}  // namespace weft::target::cuda
