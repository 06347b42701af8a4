#include "target/cuda/handwritten/convolution/convolution_wgrad.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace weft::target::cuda {

namespace {

using Pair = WgradForm::Pair;

constexpr int64_t blocks_of_sm = 2;
constexpr int64_t reserved = 1 << 10;  // shared memory that each block reserves
constexpr int64_t channels_of_warp = 32, most_taps = 3, most_sets = 3, warps = 6, most_stages = 4;
constexpr int64_t line_of_input =
    (channels_of_warp + 8) * 4;           // bytes of a pixel, padded so that pixels begin in different banks
constexpr double least_wgrad_work = 1e8;  // multiplications; below, the launch takes most of the time
constexpr int64_t least_parts = 16;       // with fewer, the result is large and cuDNN's GEMMs are good

int64_t wgrad_tiles(int64_t extent, int64_t tile) { return (extent + tile - 1) / tile; }

/// Returns how far a tile of the output reaches in the input.
int64_t reach(const WgradForm& f, size_t axis) {
  return (f.tile[axis] - 1) * f.stride[axis] + (f.kernel[axis] - 1) * f.dilation[axis] + 1;
}

int64_t stage_bytes(const WgradForm& f) {
  return f.depth() * (f.halves * channels_of_warp + 8) * 4 + reach(f, 0) * reach(f, 1) * line_of_input;
}

/// Sets the tile that wastes least on zeros and repeated reads, such that two of them fit into `bytes`. Returns false
/// if none does.
bool choose_tile(WgradForm& form, int64_t bytes) {
  double least = std::numeric_limits<double>::infinity();
  WgradForm f = form;
  for (int64_t down = 1; down <= f.output[0]; ++down)
    for (int64_t across = 1; across <= f.output[1]; ++across) {
      f.tile = {wgrad_tiles(f.output[0], down), wgrad_tiles(f.output[1], across)};
      f.stage_bytes = stage_bytes(f);
      f.stages = std::min(most_stages, (bytes - f.depth() * 4) / f.stage_bytes);
      f.shared_bytes =
          std::max(f.stages * f.stage_bytes, f.parts > 1 ? f.sets * f.halves * f.taps * 4096 : 0) + f.depth() * 4;
      if (f.stages < 2 || f.shared_bytes > bytes) continue;
      const double time = static_cast<double>(f.tiles_of_image()) *
                          (static_cast<double>(f.depth() + 8) + 0.25 * static_cast<double>(reach(f, 0) * reach(f, 1)));
      if (time >= least) continue;
      least = time;
      form = f;
    }
  return form.stages > 0;
}

std::string wgrad_parameters(const WgradForm& f) {
  return Parameters()
      .entry("KERNEL", f.symbol())
      .entry("REDUCE_KERNEL", f.symbol() + "_reduce")
      .rows_columns("in", f.input)
      .rows_columns("out", f.output)
      .rows_columns("filter", f.kernel)
      .rows_columns("stride", f.stride)
      .rows_columns("dilation", f.dilation)
      .rows_columns("pad", f.low)
      .rows_columns("tile", f.tile)
      .integer("in", f.in)
      .integer("out", f.out)
      .integer("taps_of_warp", f.taps)
      .integer("sets", f.sets)
      .integer("halves", f.halves)
      .integer("parts", f.parts)
      .integer("depth", f.depth())
      .integer("stages", f.stages)
      .integer("stage_bytes", f.stage_bytes)
      .integer("shared_bytes", f.shared_bytes)
      .text();
}

}  // namespace

int64_t WgradForm::depth() const { return wgrad_tiles(tile[0] * tile[1], 8 * parts) * 8 * parts; }

int64_t WgradForm::blocks() const {
  return in / channels_of_warp * (out / (halves * channels_of_warp)) * wgrad_tiles(kernel[0] * kernel[1], sets * taps);
}

int64_t WgradForm::tiles_of_image() const { return wgrad_tiles(output[0], tile[0]) * wgrad_tiles(output[1], tile[1]); }

std::string WgradForm::symbol() const {
  const auto pair = [](const Pair& p) { return fmt::format("{}x{}", p[0], p[1]); };
  return fmt::format("convolution_wgrad_{}_{}_{}_on_{}_{}_by_{}_{}_from_{}_tile_{}", pair(kernel), in, out, pair(input),
                     pair(output), pair(stride), pair(dilation), pair(low), pair(tile));
}

std::optional<WgradForm> wgrad_form(const kernel::CallDesc& desc, int64_t shared_bytes) {
  const std::optional<ConvolutionWindows> windows = windows_of(desc);
  if (!windows || desc.name != "convolution_weights" || !desc.numerics.tf32 || desc.integers[0] != 1)
    return std::nullopt;
  for (const auto& a : {desc.inputs[0], desc.inputs[1], desc.outputs[0]})
    if (a.dtype != float32) return std::nullopt;
  const auto &x = desc.inputs[0].extents, &g = desc.inputs[1].extents, &w = desc.outputs[0].extents;
  WgradForm f{*windows};
  f.in = x.back(), f.out = g.back();
  if (f.in % channels_of_warp != 0 || f.out % channels_of_warp != 0 || w.back() != f.in) return std::nullopt;
  constexpr int64_t most = int64_t{1} << 30;
  if (f.input[0] * f.input[1] * f.in > most || f.output[0] * f.output[1] * f.out > most ||
      x[0] * f.output[0] * f.output[1] > most)
    return std::nullopt;

  const int64_t taps = f.kernel[0] * f.kernel[1];
  f.taps = taps == 4 ? 2 : std::min(taps, most_taps);
  const int64_t sets = wgrad_tiles(taps, f.taps);
  f.sets = wgrad_tiles(sets, wgrad_tiles(sets, most_sets));
  f.halves = f.out % (2 * channels_of_warp) == 0 ? 2 : 1;
  f.parts = std::max<int64_t>(1, warps / (f.sets * f.halves));
  return choose_tile(f, shared_bytes / blocks_of_sm - reserved) ? std::optional(f) : std::nullopt;
}

int64_t wgrad_parts(const WgradForm& form, int64_t images, int64_t sms) {
  return std::max<int64_t>(1, std::min(blocks_of_sm * sms / form.blocks(), images * form.tiles_of_image()));
}

bool wgrad_may_win(const WgradForm& form, int64_t images, int64_t sms) {
  const double work =
      static_cast<double>(form.results()) * static_cast<double>(images * form.output[0] * form.output[1]);
  return work >= least_wgrad_work && wgrad_parts(form, images, sms) >= least_parts;
}

std::optional<Match> match_convolution_wgrad(const kernel::CallDesc& work, const Machine& machine) {
  const std::optional<WgradForm> form = wgrad_form(work, machine.tensor_core_bytes(float32));
  if (!form) return std::nullopt;
  const int64_t images = work.inputs[0].extents[0], parts = wgrad_parts(*form, images, machine.processors);
  Match match;
  match.form = form->symbol();
  match.parameters = wgrad_parameters(*form);
  match.entries = {{match.form, {parts, form->blocks(), form->threads(), form->shared_bytes}},
                   {match.form + "_reduce", {form->results() / 128, 1, 256, 0}}};
  match.label = fmt::format("weft convolution_wgrad, {} parts", parts);
  match.may_win = wgrad_may_win(*form, images, machine.processors);
  match.scratch_bytes = parts * form->results() * 4;
  match.run = [images, parts](std::span<void* const> operands, void* scratch, const Match::Launch& launch) {
    weft::check(operands.size() == 3, "convolution_wgrad", "number of operands");
    void *x = operands[0], *g = operands[1], *result = operands[2];
    int count = static_cast<int>(images), sums = static_cast<int>(parts);
    void* first[] = {&x, &g, &scratch, &count};
    launch(0, first);
    void* second[] = {&scratch, &result, &sums};
    launch(1, second);
  };
  return match;
}

}  // namespace weft::target::cuda
