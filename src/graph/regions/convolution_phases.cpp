// Convolutions of a dilated input as convolutions of the input itself, so that no zeros are stored or multiplied. This
// is the sub-pixel form of a transposed convolution (Shi et al. 2016, arXiv:1609.07009).
//
// Along an axis, with input dilation d, output o reads tap k where o·stride + k·dilation - low is a multiple of d.
// Outputs o = q·D + r with D = d / gcd(stride, d) have the same taps for every q: r is their phase. These taps are
// k₀(r) + j·period, and they read elements q·(stride·D/d) + j·(dilation/gcd) - low(r): a convolution. Neighbouring
// phases with as many taps and the same low are one convolution, with the phases as channels; stride 1 without kernel
// dilation leaves at most three such runs an axis, whatever d is.
#include <algorithm>
#include <numeric>

#include "graph/build.h"
#include "graph/regions/convolution.h"

namespace weft::graph {
namespace {

/// Phases first … first + count - 1; the first tap of phase first + i is tap + i·step.
struct Run {
  int64_t first = 0, count = 1;
  int64_t tap = 0, step = 1;
  int64_t taps = 0;           // 0: the results are zeros
  int64_t low = 0, high = 0;  // padding of the convolution
};

/// The phases of an axis and the convolutions that they are.
struct PhasedAxis {
  int64_t phases = 1, positions = 0;  // D, and the number of q
  int64_t results = 0;                // of the whole axis
  int64_t period = 1;                 // from tap to tap
  int64_t stride = 1, dilation = 1;   // of the convolutions
  std::vector<Run> runs;
};

PhasedAxis phased_axis(const ConvolutionForm& form, size_t k, int64_t extent, int64_t kernel) {
  const int64_t d = form.input_dilation[k], stride = form.stride[k], dilation = form.dilation[k], low = form.low[k];
  const int64_t common = std::gcd(dilation, d), span = (kernel - 1) * dilation + 1;
  PhasedAxis axis;
  axis.results = ((extent - 1) * d + 1 + low + form.high[k] - span) / stride + 1;
  axis.phases = std::min(d / std::gcd(stride, d), axis.results);
  axis.positions = (axis.results + axis.phases - 1) / axis.phases;
  axis.period = d / common;
  axis.stride = stride / std::gcd(stride, d);
  axis.dilation = dilation / common;
  for (int64_t r = 0; r < axis.phases; ++r) {
    Run run{.first = r};
    const int64_t most = std::min(axis.period, kernel);
    while (run.tap < most && (r * stride + run.tap * dilation - low) % d != 0) ++run.tap;
    if (run.tap < most) {
      run.taps = (kernel - 1 - run.tap) / axis.period + 1;
      run.low = (low - r * stride - run.tap * dilation) / d;
      run.high = (axis.positions - 1) * axis.stride + (run.taps - 1) * axis.dilation + 1 - extent - run.low;
    }
    if (run.taps == 0 || run.low <= -extent || run.high <= -extent) run = Run{.first = r};  // reads no element
    if (!axis.runs.empty()) {
      Run& last = axis.runs.back();
      const int64_t step = last.count == 1 ? run.tap - last.tap : last.step;
      if (last.taps == run.taps && last.low == run.low && (run.taps == 0 || run.tap == last.tap + last.count * step)) {
        last.step = step;
        ++last.count;
        continue;
      }
    }
    axis.runs.push_back(run);
  }
  return axis;
}

/// The parts of one convolution: for each axis its phases, and one run of each axis where a part is meant.
class Phases {
 public:
  Phases(const Value& x, const Value& w, const ConvolutionForm& form) : x_(x), w_(w), form_(form) {
    for (size_t k = 0; k < space(); ++k)
      axes_.push_back(phased_axis(form, k, x.shape()[k + 1].bound(), w.shape()[k + 1].bound()));
  }

  /// Returns [N, o…, O].
  Value joined() const {
    std::vector<const Run*> runs;
    const Value parts = joined(runs);  // [N, q₁, r₁, q₂, r₂, …, O]
    Shape shape{x_.shape()[0]}, sizes{x_.shape()[0]};
    for (const PhasedAxis& axis : axes_) {
      shape.emplace_back(axis.positions * axis.phases);
      sizes.emplace_back(axis.results);
    }
    for (Shape* s : {&shape, &sizes}) s->push_back(w_.shape()[0]);
    const Value whole = reshape(parts, shape);
    return shape == sizes ? whole : slice(whole, std::vector<int64_t>(shape.size(), 0), sizes);
  }

 private:
  size_t space() const { return form_.stride.size(); }
  int64_t groups() const { return form_.groups; }
  int64_t out() const { return w_.shape()[0].bound() / groups(); }  // channels of a group

  /// Returns the part with the chosen runs of the first axes and all of the others.
  Value joined(std::vector<const Run*>& runs) const {
    const size_t k = runs.size();
    if (k == space()) return part(runs);
    Values parts;
    for (const Run& run : axes_[k].runs) {
      runs.push_back(&run);
      parts.push_back(joined(runs));
      runs.pop_back();
    }
    return parts.size() == 1 ? parts[0] : concat(parts, static_cast<int>(2 * k + 2));
  }

  /// Returns [N, q₁, r₁, q₂, r₂, …, O] of one run of each axis.
  Value part(const std::vector<const Run*>& runs) const {
    Shape apart{x_.shape()[0]}, whole = apart;  // [N, q…, groups, r…, O / groups]
    bool zeros = false;
    for (size_t k = 0; k < space(); ++k) {
      zeros = zeros || runs[k]->taps == 0;
      apart.emplace_back(axes_[k].positions);
      whole.insert(whole.end(), {Dim(axes_[k].positions), Dim(runs[k]->count)});
    }
    whole.push_back(w_.shape()[0]);
    if (zeros) return full(whole, x_.dtype(), Number::of_real(0));
    apart.emplace_back(groups());
    for (const Run* run : runs) apart.emplace_back(run->count);
    apart.emplace_back(out());
    ConvolutionForm form{{}, {}, {}, {}, std::vector<int64_t>(space(), 1), groups()};
    std::vector<int64_t> order{0};
    const auto n = static_cast<int64_t>(space());
    for (size_t k = 0; k < space(); ++k) {
      form.stride.push_back(axes_[k].stride), form.dilation.push_back(axes_[k].dilation);
      form.low.push_back(runs[k]->low), form.high.push_back(runs[k]->high);
      const auto axis = static_cast<int64_t>(k);
      order.insert(order.end(), {axis + 1, axis + 2 + n});
    }
    order.insert(order.end(), {n + 1, 2 * n + 2});
    return reshape(permute(reshape(convolution(x_, weights(runs), form), apart), order), whole);
  }

  /// Returns the weights [groups · r… · O / groups, taps…, C / groups] of one run of each axis.
  Value weights(const std::vector<const Run*>& runs) const {
    Shape shape = w_.shape();
    shape[0] = out();
    shape.insert(shape.begin(), Dim(groups()));
    Value v = reshape(w_, shape);
    std::vector<int64_t> order{0};  // of the axes of v, which become [groups, O / groups, taps₁, r₁, …, C / groups]
    std::vector<int64_t> taps;
    for (size_t k = 0; k < space(); ++k) {
      v = taps_of(v, 2 * k + 2, axes_[k].period, *runs[k]);
      taps.push_back(static_cast<int64_t>(2 * k + 2));
      order.push_back(taps.back() + 1);
    }
    order.push_back(1);
    order.insert(order.end(), taps.begin(), taps.end());
    order.push_back(static_cast<int64_t>(2 * space() + 2));
    v = permute(v, order);
    Shape joined{w_.shape()[0]};
    for (size_t k = 0; k < space(); ++k) {
      joined[0] = joined[0].bound() * runs[k]->count;
      joined.emplace_back(runs[k]->taps);
    }
    joined.push_back(w_.shape().back());
    return reshape(v, joined);
  }

  /// Splits axis `at`, the kernel, into [taps, phases] of the run.
  static Value taps_of(const Value& w, size_t at, int64_t period, const Run& run) {
    const int64_t kernel = w.shape()[at].bound(), rounds = (kernel + period - 1) / period;
    std::vector<int64_t> low(w.shape().size(), 0), high = low;
    high[at] = rounds * period - kernel;
    Shape shape = w.shape();
    shape[at] = rounds;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at) + 1, Dim(period));
    const Value split = reshape(high[at] == 0 ? w : pad(w, low, high), shape);
    std::vector<int64_t> start(shape.size(), 0), step(shape.size(), 1);
    start[at + 1] = run.tap, step[at + 1] = run.step;
    shape[at] = run.taps, shape[at + 1] = run.count;
    return slice(split, start, shape, step);
  }

  const Value &x_, &w_;
  const ConvolutionForm& form_;
  std::vector<PhasedAxis> axes_;
};

}  // namespace

Value convolution_by_phases(const Value& x, const Value& w, const ConvolutionForm& form) {
  return Phases(x, w, form).joined();
}

}  // namespace weft::graph
