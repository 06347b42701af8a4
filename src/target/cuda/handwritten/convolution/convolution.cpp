#include "target/cuda/handwritten/convolution/convolution.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "target/cuda/codegen/render.h"
#include "target/cuda/codegen/text/wgmma.h"

namespace weft::target::cuda {

namespace {

using Pair = ConvolutionForm::Pair;

constexpr int64_t tile_pixels = 128, slice_channels = 32, buffers = 2;
constexpr int64_t most_groups = 2, most_out = 128;
constexpr int64_t most_reach = 112;  // a thread keeps its share of a tile's pixels, and of these, in registers
constexpr double least_work = 1e8;   // multiplications; below, the launch takes most of the time

std::string convolution_parameters(const ConvolutionForm& f) {
  return Parameters()
      .entry("KERNEL", f.symbol())
      .rows_columns("in", f.input)
      .rows_columns("out", f.output)
      .rows_columns("filter", f.kernel)
      .rows_columns("dilation", f.dilation)
      .rows_columns("pad", f.low)
      .integer("line_height", f.lines[0])
      .integer("line_width", f.lines[1])
      .integer("in", f.in)
      .integer("out", f.out)
      .integer("groups", f.groups)
      .integer("plane_bytes", f.plane_bytes)
      .integer("weight_bytes", f.weight_bytes())
      .integer("shared_bytes", f.shared_bytes)
      .function(wgmma_function({float32, f.out}, f.out / 8))
      .text();
}

}  // namespace

int64_t ConvolutionForm::reach() const {
  return (kernel[0] - 1) * dilation[0] * lines[1] + (kernel[1] - 1) * dilation[1];
}

int64_t ConvolutionForm::tiles(int64_t images) const {
  return (images * lines[0] * lines[1] + tile_pixels - 1) / tile_pixels;
}

std::string ConvolutionForm::symbol() const {
  const auto pair = [](const Pair& p) { return fmt::format("{}x{}", p[0], p[1]); };
  return fmt::format("convolution_{}_{}_{}_on_{}_{}_by_{}_from_{}", pair(kernel), in, out, pair(input), pair(output),
                     pair(dilation), pair(low));
}

std::optional<ConvolutionForm> convolution_form(const kernel::CallDesc& desc, int64_t shared_bytes) {
  if (desc.name != "convolution" || !desc.numerics.tf32 || desc.integers.empty() || desc.integers[0] != 1)
    return std::nullopt;
  const size_t space = (desc.integers.size() - 1) / 5;
  if (space < 1 || space > 2) return std::nullopt;
  for (const auto& a : {desc.inputs[0], desc.inputs[1], desc.outputs[0]})
    if (a.dtype != float32 || std::any_of(a.extents.begin(), a.extents.end(), [](int64_t e) { return e < 1; }))
      return std::nullopt;
  const auto &x = desc.inputs[0].extents, &w = desc.inputs[1].extents, &y = desc.outputs[0].extents;
  ConvolutionForm f;
  f.in = x.back(), f.out = y.back();
  // A convolution over one axis of space gets a leading axis of one element.
  f.input = f.output = f.kernel = f.dilation = f.lines = {1, 1};
  f.low = {0, 0};
  for (size_t k = 0; k < space; ++k) {
    const size_t axis = 2 - space + k;
    const auto integer = [&](size_t what) { return desc.integers[1 + what * space + k]; };
    f.input[axis] = x[1 + k], f.output[axis] = y[1 + k], f.kernel[axis] = w[1 + k];
    f.low[axis] = integer(1), f.dilation[axis] = integer(3);
    const int64_t high = integer(2);
    if (integer(0) != 1 || f.low[axis] < 0 || high < 0 || integer(4) != 1) return std::nullopt;
    f.lines[axis] = std::max(f.output[axis], f.input[axis] + std::max(f.low[axis], high));
  }
  if (f.in % slice_channels != 0 || f.out % 8 != 0 || f.out > most_out || w.back() != f.in || f.reach() > most_reach)
    return std::nullopt;
  // Pixel indices have 32 bits, including a few tiles past the last one.
  constexpr int64_t most = int64_t{1} << 30;
  if (f.lines[0] > most / f.lines[1] || x[0] > most / (f.lines[0] * f.lines[1])) return std::nullopt;
  // Planes begin in different banks, so that threads that write to eight of them have no bank conflicts.
  f.plane_bytes = 16 * ((tile_pixels + f.reach()) | 1);
  for (f.groups = most_groups; f.groups > 0; --f.groups) {
    f.shared_bytes = f.weight_bytes() + f.groups * buffers * slice_channels / 4 * f.plane_bytes;
    if (f.shared_bytes <= shared_bytes) return f;
  }
  return std::nullopt;
}

bool convolution_may_win(const ConvolutionForm& form, int64_t images) {
  const int64_t weights = form.weight_bytes() / 4;
  return static_cast<double>(weights) * static_cast<double>(images * form.output[0] * form.output[1]) >= least_work;
}

std::optional<Match> match_convolution(const kernel::CallDesc& work, const Machine& machine) {
  if (!features_of(machine).warpgroups) return std::nullopt;
  const std::optional<ConvolutionForm> form = convolution_form(work, machine.tensor_core_bytes(float32));
  if (!form) return std::nullopt;
  const int64_t images = work.inputs[0].extents[0], threads = form->groups * 128,
                blocks = (form->tiles(images) + form->groups - 1) / form->groups;
  Match match;
  match.form = form->symbol();
  match.parameters = convolution_parameters(*form);
  match.entries = {{match.form, {std::min(machine.processors, blocks), 1, threads, form->shared_bytes}}};
  match.label = "weft convolution";
  match.may_win = convolution_may_win(*form, images);
  match.run = [count = static_cast<int>(images)](std::span<void* const> operands, void*, const Match::Launch& launch) {
    weft::check(operands.size() == 3, "convolution", "number of operands");
    void *x = operands[0], *w = operands[1], *y = operands[2];
    int number = count;
    void* arguments[] = {&x, &w, &y, &number};
    launch(0, arguments);
  };
  return match;
}

}  // namespace weft::target::cuda
