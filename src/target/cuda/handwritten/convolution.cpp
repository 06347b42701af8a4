#include "target/cuda/handwritten/convolution.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "target/cuda/codegen/prelude.h"

namespace weft::target::cuda {

namespace {

using Pair = ConvolutionForm::Pair;

constexpr int64_t positions_of_tile = 128, channels_together = 32, slots = 2;
constexpr int64_t most_groups = 2, most_out = 128;
constexpr int64_t most_reach = 112;  // a thread keeps the next tile's share of all this in registers
constexpr double least_work = 1e8;   // multiplications: below, a launch is most of it

}  // namespace

int64_t ConvolutionForm::reach() const {
  return (kernel[0] - 1) * dilation[0] * lines[1] + (kernel[1] - 1) * dilation[1];
}

int64_t ConvolutionForm::tiles(int64_t images) const {
  return (images * lines[0] * lines[1] + positions_of_tile - 1) / positions_of_tile;
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
  // One axis of space: another one of one element comes first.
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
  if (f.in % channels_together != 0 || f.out % 8 != 0 || f.out > most_out || w.back() != f.in || f.reach() > most_reach)
    return std::nullopt;
  // Numbers of positions have 32 bits, with those of a few tiles beyond the last one.
  constexpr int64_t most = int64_t{1} << 30;
  if (f.lines[0] > most / f.lines[1] || x[0] > most / (f.lines[0] * f.lines[1])) return std::nullopt;
  // Planes begin in different banks, so that threads that write to eight of them do not wait for each other.
  f.plane_bytes = 16 * ((positions_of_tile + f.reach()) | 1);
  for (f.groups = most_groups; f.groups > 0; --f.groups) {
    f.shared_bytes = f.weight_bytes() + f.groups * slots * channels_together / 4 * f.plane_bytes;
    if (f.shared_bytes <= shared_bytes) return f;
  }
  return std::nullopt;
}

bool convolution_may_win(const ConvolutionForm& form, int64_t images) {
  return static_cast<double>(form.weight_bytes() / 4) * static_cast<double>(images * form.output[0] * form.output[1]) >=
         least_work;
}

const Entry& ConvolutionKernel::entry() const {
  std::call_once(once_, [&] {
    const Rendered rendered = render_convolution(form_);
    entry_ = find_entry(
        context_, load_module(context_, compile_(std::string(prelude) + rendered.source), rendered.symbol), rendered);
  });
  return entry_;
}

namespace {

class ConvolutionCall final : public LibraryCall {
 public:
  ConvolutionCall(std::shared_ptr<const ConvolutionKernel> kernel, int64_t images)
      : kernel_(std::move(kernel)), images_(images) {}

  std::string name() const override { return "weft convolution"; }

  void run(std::span<void* const> operands) const override {
    weft::check(operands.size() == 3, "convolution", "number of operands");
    void *x = operands[0], *w = operands[1], *y = operands[2];
    int images = static_cast<int>(images_);
    void* arguments[] = {&x, &w, &y, &images};
    Context& context = kernel_->context();
    context.make_current();
    const ConvolutionForm& form = kernel_->form();
    launch(context, kernel_->entry(),
           std::min<int64_t>(context.info().multiprocessors, (form.tiles(images_) + form.groups - 1) / form.groups), 1,
           arguments, form.symbol());
  }

 private:
  std::shared_ptr<const ConvolutionKernel> kernel_;
  int64_t images_;
};

}  // namespace

std::shared_ptr<const LibraryCall> convolution_call(std::shared_ptr<const ConvolutionKernel> kernel, int64_t images) {
  return std::make_shared<ConvolutionCall>(std::move(kernel), images);
}

}  // namespace weft::target::cuda
