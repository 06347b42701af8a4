#include "target/cuda/handwritten/convolution/depthwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace weft::target::cuda {

namespace {

using Pair = DepthwiseForm::Pair;

constexpr int64_t sector = 32;      // bytes that memory moves at least
constexpr int64_t most_lanes = 16;  // vectors of a block: the rest of it are neighbouring rows, which share inputs
constexpr int64_t block_threads = 256, least_threads = 64;
constexpr int64_t blocks_an_sm_runs = 2;  // of so many threads with up to 128 registers: they begin and end together
constexpr int64_t blocks_to_fill = 4;     // an SM, before blocks are made larger than least_threads
constexpr int64_t most_run = 8, most_inputs = 24, most_columns = 11;  // of the filter, of inputs: all in registers
constexpr double least_depthwise_work = 1e6;  // multiplications; below, the launch takes most of the time

int64_t parts_of(int64_t extent, int64_t part) { return (extent + part - 1) / part; }

/// Returns how many vectors of channels a block has: few left over, and whole sectors.
int64_t tile_of(int64_t vectors, int64_t vector_bytes) {
  int64_t best = 1, least = INT64_MAX;
  for (int64_t tile = 1; tile <= std::min(vectors, most_lanes); ++tile) {
    if (tile != vectors && tile * vector_bytes % sector != 0) continue;
    const int64_t padded = parts_of(vectors, tile) * tile;
    if (padded <= least) best = tile, least = padded;
  }
  return best;
}

/// Returns the outputs of a thread with the fewest instructions a row: those past its end are computed too, and each
/// input of a run is loaded and converted once.
int64_t run_of(const DepthwiseForm& form) {
  int64_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  DepthwiseForm f = form;
  for (f.run = 1; f.run <= std::min(most_run, form.output[1]); ++f.run) {
    if (f.reach() > most_inputs) break;
    const auto multiplied = static_cast<double>(f.run * f.kernel[1] * f.vector),
               moved = static_cast<double>((f.reach() + f.kernel[1]) * (f.vector + 4)),
               count = static_cast<double>(parts_of(f.output[1], f.run));
    if (count * (multiplied + moved) < least) best = f.run, least = count * (multiplied + moved);
  }
  return best;
}

/// Returns the prelude's type of `bytes` bytes.
const char* word_of(int64_t bytes) { return bytes == 2 ? "u16" : bytes == 4 ? "W4" : bytes == 8 ? "W8" : "W16"; }

Parameters depthwise_parameters(const DepthwiseForm& f) {
  return Parameters()
      .rows_columns("in", f.input)
      .rows_columns("out", f.output)
      .rows_columns("filter", f.kernel)
      .rows_columns("stride", f.stride)
      .rows_columns("dilation", f.dilation)
      .rows_columns("pad", f.low)
      .integer("channels", f.channels)
      .type("Element", f.dtype == float32 ? "float" : "unsigned short")
      .flag("bf16", f.dtype == bfloat16)
      .integer("vector", f.vector)
      .entry("VECTOR", word_of(f.vector * size_of(f.dtype)))
      .integer("tile", f.tile)
      .integer("run", f.run);
}

/// Returns the form of the work if it is the call of that name.
std::optional<DepthwiseForm> form_of(const kernel::CallDesc& work, const Machine& machine, const char* name) {
  return work.name == name ? depthwise_form(work, machine.processors) : std::nullopt;
}

}  // namespace

double DepthwiseForm::multiplications() const {
  return static_cast<double>(images * output[0] * output[1]) * static_cast<double>(channels * taps());
}

std::string DepthwiseForm::symbol(const std::string& name) const {
  const auto pair = [](const Pair& p) { return fmt::format("{}x{}", p[0], p[1]); };
  return fmt::format("{}_{}_{}_{}_on_{}_{}_by_{}_{}_from_{}_places_{}", name, dtype_name(dtype), pair(kernel), channels,
                     pair(input), pair(output), pair(stride), pair(dilation), pair(low), places);
}

std::optional<DepthwiseForm> depthwise_form(const kernel::CallDesc& desc, int64_t processors) {
  const std::optional<ConvolutionWindows> windows = windows_of(desc);
  if (!windows) return std::nullopt;
  DepthwiseForm f{*windows};
  f.dtype = desc.inputs[0].dtype;
  if (f.dtype != float32 && f.dtype != bfloat16 && f.dtype != float16) return std::nullopt;
  if (desc.inputs[1].dtype != f.dtype || desc.outputs[0].dtype != f.dtype) return std::nullopt;
  const bool weights = desc.name == "convolution_weights";
  const auto &x = desc.inputs[0].extents, &second = desc.inputs[1].extents, &result = desc.outputs[0].extents,
             &w = weights ? result : second, &y = weights ? second : result;
  f.images = x[0], f.channels = x.back();
  if (desc.integers[0] != f.channels || y.back() != f.channels || w.back() != 1) return std::nullopt;
  // Indices within an image, of runs and of weights have 32 bits.
  constexpr int64_t most = int64_t{1} << 30;
  if (f.kernel[1] > most_columns || f.input[0] * f.input[1] * f.channels > most ||
      f.output[0] * f.output[1] * f.channels > most || f.taps() * f.channels > most ||
      f.images * f.output[0] * f.output[1] > most)
    return std::nullopt;
  f.vector = f.channels % 4 == 0 ? 4 : f.channels % 2 == 0 ? 2 : 1;
  f.tile = tile_of(f.channels / f.vector, f.vector * size_of(f.dtype));
  f.run = run_of(f);
  if (f.run == 0) return std::nullopt;
  const int64_t each = f.tile * (weights ? f.kernel[0] : 1);  // threads of a place
  f.places = std::max<int64_t>(1, block_threads / each);
  while (!weights && f.places > 1 && each * f.places > least_threads &&
         parts_of(f.runs(), f.places) * f.tiles() < blocks_to_fill * processors)
    f.places = parts_of(f.places, 2);
  return f;
}

std::optional<Match> match_depthwise(const kernel::CallDesc& work, const Machine& machine) {
  const std::optional<DepthwiseForm> form = form_of(work, machine, "convolution");
  if (!form) return std::nullopt;
  const int64_t shared = form->taps() * (form->tile * form->vector + 4) * 4;
  if (shared > machine.shared_bytes) return std::nullopt;
  Match match;
  match.form = form->symbol("depthwise");
  match.parameters = depthwise_parameters(*form).entry("KERNEL", match.form).integer("places", form->places).text();
  match.entries = {
      {match.form, {parts_of(form->runs(), form->places) * form->tiles(), 1, form->tile * form->places, shared}}};
  match.label = "weft depthwise";
  match.may_win = form->multiplications() >= least_depthwise_work;
  match.run = [count = static_cast<int>(form->images)](std::span<void* const> operands, void*,
                                                       const Match::Launch& launch) {
    weft::check(operands.size() == 3, "depthwise", "number of operands");
    void *x = operands[0], *w = operands[1], *y = operands[2];
    int images = count;
    void* arguments[] = {&x, &w, &y, &images};
    launch(0, arguments);
  };
  return match;
}

std::optional<Match> match_depthwise_weights(const kernel::CallDesc& work, const Machine& machine) {
  const std::optional<DepthwiseForm> form = form_of(work, machine, "convolution_weights");
  if (!form) return std::nullopt;
  const int64_t threads = form->tile * form->kernel[0] * form->places, results = form->taps() * form->channels,
                shared = form->places * form->taps() * form->tile * form->vector * 4;
  if (threads > machine.max_threads / 2 || shared > machine.shared_bytes) return std::nullopt;
  const int64_t blocks = blocks_an_sm_runs * machine.processors,
                parts = std::clamp<int64_t>(blocks / form->tiles(), 1, parts_of(form->runs(), form->places));
  Match match;
  match.form = form->symbol("depthwise_weights");
  match.parameters = depthwise_parameters(*form)
                         .entry("KERNEL", match.form)
                         .entry("REDUCE_KERNEL", match.form + "_reduce")
                         .integer("slots", form->places)
                         .text();
  match.entries = {{match.form, {parts * form->tiles(), 1, threads, shared}},
                   {match.form + "_reduce", {parts_of(results, 32), 1, 256, 1024}}};
  match.label = fmt::format("weft depthwise_weights, {} parts", parts);
  match.may_win = form->multiplications() >= least_depthwise_work;
  match.scratch_bytes = parts * results * 4;
  match.run = [images = form->images, parts](std::span<void* const> operands, void* scratch,
                                             const Match::Launch& launch) {
    weft::check(operands.size() == 3, "depthwise_weights", "number of operands");
    void *x = operands[0], *g = operands[1], *result = operands[2];
    int count = static_cast<int>(images), sums = static_cast<int>(parts);
    void* first[] = {&x, &g, &scratch, &count, &sums};
    launch(0, first);
    void* second[] = {&scratch, &result, &sums};
    launch(1, second);
  };
  return match;
}

}  // namespace weft::target::cuda
