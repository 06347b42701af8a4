// Convolutions and their gradients by oneDNN, on channels-last arrays in place. The batch is cut into pieces by
// the work alone. Each piece is a primitive for one thread on Weft's own thread team, and the pieces of a weight
// gradient are added in order, so the bits do not depend on the number of threads.
#include "target/cpu/routines/calls.h"

#ifndef WEFT_HAVE_ONEDNN

namespace weft::target {
std::shared_ptr<const LibraryCall> onednn_convolution(const kernel::CallDesc&) { return nullptr; }
std::shared_ptr<const LibraryCall> onednn_convolution_input(const kernel::CallDesc&) { return nullptr; }
std::shared_ptr<const LibraryCall> onednn_convolution_weights(const kernel::CallDesc&) { return nullptr; }
}  // namespace weft::target

#else

#include <fmt/format.h>

#include <algorithm>
#include <dnnl.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "runtime/buffer.h"
#include "runtime/threads.h"
#include "target/cpu/libraries/onednn.h"
#include "target/cpu/libraries/onednn_support.h"

namespace weft::target {
namespace {

using dnnl::memory;
using Extents = memory::dims;

/// What a call computes of a convolution y of x and w: y, or the gradient of x from y's and w, or of w from x and y's.
enum class Role : uint8_t { forward, input, weights };

/// The convolution between x and y that a call stands for.
struct Problem {
  Role role;
  Dtype dtype;
  int64_t batch, in, out, groups;  // channels
  Extents x, y, kernel;            // extents of space
  Extents stride, dilation, low, high;

  size_t space() const { return x.size(); }
  double work() const {
    const int64_t group_in = in / groups;
    double w = static_cast<double>(batch) * static_cast<double>(group_in) * static_cast<double>(out);
    for (size_t k = 0; k < space(); ++k) w *= static_cast<double>(y[k]) * static_cast<double>(kernel[k]);
    return w;
  }
};

/// Describes [batch, space…, channels] as oneDNN's (batch, channels, space…).
memory::desc data_desc(const Problem& p, int64_t batch, int64_t channels, const Extents& space) {
  Extents dims{batch, channels}, strides(space.size() + 2);
  dims.insert(dims.end(), space.begin(), space.end());
  int64_t stride = channels;
  for (size_t k = space.size(); k-- > 0; stride *= space[k]) strides[k + 2] = stride;
  strides[0] = stride;
  strides[1] = 1;
  return {dims, onednn_type(p.dtype), strides};
}

/// Returns (groups, out, in, kernel…), without the first if there is one group.
Extents weight_dims(const Problem& p) {
  Extents dims{p.out / p.groups, p.in / p.groups};
  if (p.groups > 1) dims.insert(dims.begin(), p.groups);
  dims.insert(dims.end(), p.kernel.begin(), p.kernel.end());
  return dims;
}

/// Describes a weight in place: [out, kernel…, in / groups].
memory::desc weight_desc(const Problem& p, memory::data_type type) {
  Extents strides(p.space());
  int64_t stride = p.in / p.groups;
  for (size_t k = p.space(); k-- > 0; stride *= p.kernel[k]) strides[k] = stride;
  strides.insert(strides.begin(), {stride, 1});
  if (p.groups > 1) strides.insert(strides.begin(), p.out / p.groups * stride);
  return {weight_dims(p), type, strides};
}

dnnl::primitive_attr own_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

Extents less_one(Extents v) {
  for (int64_t& e : v) --e;
  return v;
}

using Forward = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;

Forward::primitive_desc forward_of(const Problem& p, const memory::desc& x, const memory::desc& w,
                                   const memory::desc& y) {
  const auto kind = dnnl::prop_kind::forward_training;
  const auto algorithm = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
  return {onednn_engine(), kind, algorithm, x, w, y, p.stride, less_one(p.dilation), p.low, p.high, own_scratchpad()};
#else
  return {Forward::desc(kind, algorithm, x, w, y, p.stride, less_one(p.dilation), p.low, p.high), own_scratchpad(),
          onednn_engine()};
#endif
}

BackwardData::primitive_desc backward_of(const Problem& p, const memory::desc& x, const memory::desc& w,
                                         const memory::desc& y) {
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const auto hint = forward_of(p, x, w, y);
#if DNNL_VERSION_MAJOR >= 3
  return {onednn_engine(), algorithm, x, w, y, p.stride, less_one(p.dilation), p.low, p.high, hint, own_scratchpad()};
#else
  return {BackwardData::desc(algorithm, x, w, y, p.stride, less_one(p.dilation), p.low, p.high), own_scratchpad(),
          onednn_engine(), hint};
#endif
}

BackwardWeights::primitive_desc weights_of(const Problem& p, const memory::desc& x, const memory::desc& w,
                                           const memory::desc& y) {
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const auto hint = forward_of(p, x, memory::desc(weight_dims(p), onednn_type(p.dtype), memory::format_tag::any), y);
#if DNNL_VERSION_MAJOR >= 3
  return {onednn_engine(), algorithm, x, w, y, p.stride, less_one(p.dilation), p.low, p.high, hint, own_scratchpad()};
#else
  return {BackwardWeights::desc(algorithm, x, w, y, p.stride, less_one(p.dilation), p.low, p.high), own_scratchpad(),
          onednn_engine(), hint};
#endif
}

/// Examples begin … begin + size of the batch.
struct BatchPiece {
  int64_t begin, size;
};

/// Cuts the batch into pieces of about 8 million multiply-adds, at most `most`, at least two if there is work for two
/// threads.
std::vector<BatchPiece> cut_batch(const Problem& p, int64_t most) {
  const double work = p.work();
  int64_t count = work < 1e6 ? 1 : 2;
  while (count < most && work / static_cast<double>(count) > 12e6) count *= 2;
  const int64_t each = (p.batch + count - 1) / count;
  std::vector<BatchPiece> pieces;
  for (int64_t begin = 0; begin < p.batch; begin += each) pieces.push_back({begin, std::min(each, p.batch - begin)});
  return pieces;
}

/// A primitive for one size of piece, with its descriptors.
struct Compiled {
  int64_t size;
  dnnl::primitive primitive;
  memory::desc x, w, y, scratchpad;
  std::string implementation;
};

template <class Desc>
Compiled compiled(int64_t size, const Desc& pd, const memory::desc& x, const memory::desc& w, const memory::desc& y) {
  return {size, dnnl::primitive(pd.get()), x, w, y, pd.scratchpad_desc(), pd.impl_info_str()};
}

/// Base of both calls: pieces, one or two primitives, and the weight in oneDNN's own layout.
class OnednnConvolution : public LibraryCall {
 public:
  OnednnConvolution(const kernel::CallDesc& desc, Problem problem, int64_t most)
      : text_(desc.to_string()), p_(std::move(problem)), pieces_(cut_batch(p_, most)) {
    const runtime::LibraryScope alone;
    const memory::desc any(weight_dims(p_), onednn_type(p_.role == Role::weights ? float32 : p_.dtype),
                           memory::format_tag::any);
    make(pieces_.front().size, any);
    if (pieces_.back().size != pieces_.front().size) make(pieces_.back().size, sizes_.front().w);
  }

  std::string name() const override {
    return fmt::format("onednn {} ({})", sizes_.front().implementation, pieces_.size());
  }
  bool optimised() const { return sizes_.front().implementation.find("ref") == std::string::npos; }

 protected:
  const Compiled& of(const BatchPiece& piece) const {
    return piece.size == sizes_.front().size ? sizes_.front() : sizes_.back();
  }
  size_t piece_bytes(const memory::desc& whole, int64_t size) const {
    return whole.get_size() / static_cast<size_t>(size);
  }

  void execute(const Compiled& c, std::initializer_list<std::pair<int, memory>> arguments) const {
    std::unordered_map<int, memory> all(arguments.begin(), arguments.end());
    all.emplace(DNNL_ARG_SCRATCHPAD, memory(c.scratchpad, onednn_engine(), onednn_scratch(c.scratchpad.get_size())));
    c.primitive.execute(onednn_stream(), all);
  }

  /// Runs every piece, each on one thread. `body` gets the piece and its index.
  template <class Body>
  void each_piece(const Body& body) const {
    runtime::parallel_for(static_cast<int64_t>(pieces_.size()), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k)
        guarded([&] { body(pieces_[static_cast<size_t>(k)], static_cast<size_t>(k)); });
    });
  }

  template <class Body>
  void guarded(const Body& body) const {
    const runtime::LibraryScope alone;
    try {
      body();
    } catch (const dnnl::error& e) {
      throw_failure("convolution",
                    fmt::format("oneDNN failed on {}: {} (status {})", text_, e.message, static_cast<int>(e.status)));
    }
  }

  void reorder(const memory::desc& from, void* source, const memory::desc& to, void* target) const {
    const dnnl::reorder::primitive_desc pd(onednn_engine(), from, onednn_engine(), to, own_scratchpad());
    memory scratchpad(pd.scratchpad_desc(), onednn_engine(), onednn_scratch(pd.scratchpad_desc().get_size()));
    dnnl::reorder(pd).execute(onednn_stream(), {{DNNL_ARG_FROM, memory(from, onednn_engine(), source)},
                                                {DNNL_ARG_TO, memory(to, onednn_engine(), target)},
                                                {DNNL_ARG_SCRATCHPAD, scratchpad}});
  }

  std::string text_;
  Problem p_;
  std::vector<BatchPiece> pieces_;

 private:
  void make(int64_t size, const memory::desc& w) {
    const memory::desc x = data_desc(p_, size, p_.in, p_.x), y = data_desc(p_, size, p_.out, p_.y);
    if (p_.role == Role::weights) {
      const auto pd = weights_of(p_, x, w, y);
      sizes_.push_back(compiled(size, pd, x, pd.diff_weights_desc(), y));
    } else if (p_.role == Role::input) {
      const auto pd = backward_of(p_, x, w, y);
      sizes_.push_back(compiled(size, pd, x, pd.weights_desc(), y));
    } else {
      const auto pd = forward_of(p_, x, w, y);
      sizes_.push_back(compiled(size, pd, x, pd.weights_desc(), y));
    }
  }

  std::vector<Compiled> sizes_;
};

/// Computes y from x and w, or the gradient of x from y's and w.
class Convolve final : public OnednnConvolution {
 public:
  Convolve(const kernel::CallDesc& desc, Problem problem) : OnednnConvolution(desc, std::move(problem), 32) {}

  void run(std::span<void* const> operands) const override {
    check(operands.size() == 3, "onednn", "number of operands");
    const memory::desc own = weight_desc(p_, onednn_type(p_.dtype)), packed_desc = of(pieces_.front()).w;
    const bool back = p_.role == Role::input;
    runtime::BufferRef packed;
    void* weight = operands[1];
    guarded([&] {
      if (own == packed_desc) return;
      packed = runtime::allocate(packed_desc.get_size());
      reorder(own, weight, packed_desc, packed->data());
      weight = packed->data();
    });
    each_piece([&](const BatchPiece& piece, size_t) {
      const Compiled& c = of(piece);
      const auto begin = static_cast<size_t>(piece.begin);
      char* first = static_cast<char*>(operands[0]) + begin * piece_bytes(back ? c.y : c.x, c.size);
      char* result = static_cast<char*>(operands[2]) + begin * piece_bytes(back ? c.x : c.y, c.size);
      const memory x(c.x, onednn_engine(), back ? result : first), y(c.y, onednn_engine(), back ? first : result),
          w(c.w, onednn_engine(), weight);
      if (back) execute(c, {{DNNL_ARG_DIFF_DST, y}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DIFF_SRC, x}});
      else execute(c, {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}});
    });
  }
};

/// Computes the gradient of w from x and the gradient of y: a float32 sum for each piece, then their sum.
class WeightGradient final : public OnednnConvolution {
 public:
  WeightGradient(const kernel::CallDesc& desc, Problem problem) : OnednnConvolution(desc, std::move(problem), 8) {}

  void run(std::span<void* const> operands) const override {
    check(operands.size() == 3, "onednn", "number of operands");
    const memory::desc part = of(pieces_.front()).w;
    const size_t bytes = (part.get_size() + 63) / 64 * 64, count = part.get_size() / sizeof(float);
    const runtime::BufferRef sums = runtime::allocate(bytes * pieces_.size());
    const auto sum_of = [&](size_t k) { return static_cast<char*>(sums->data()) + k * bytes; };
    each_piece([&](const BatchPiece& piece, size_t k) {
      const Compiled& c = of(piece);
      char* x = static_cast<char*>(operands[0]) + static_cast<size_t>(piece.begin) * piece_bytes(c.x, c.size);
      char* y = static_cast<char*>(operands[1]) + static_cast<size_t>(piece.begin) * piece_bytes(c.y, c.size);
      execute(c, {{DNNL_ARG_SRC, memory(c.x, onednn_engine(), x)},
                  {DNNL_ARG_DIFF_DST, memory(c.y, onednn_engine(), y)},
                  {DNNL_ARG_DIFF_WEIGHTS, memory(c.w, onednn_engine(), sum_of(k))}});
    });
    auto* total = reinterpret_cast<float*>(sum_of(0));
    for (size_t k = 1; k < pieces_.size(); ++k) {
      const auto* more = reinterpret_cast<const float*>(sum_of(k));
      for (size_t i = 0; i < count; ++i) total[i] += more[i];
    }
    guarded([&] { reorder(part, total, weight_desc(p_, onednn_type(p_.dtype)), operands[2]); });
  }
};

/// The integers of a convolution call, as in graph/regions/convolution.h.
struct ConvolutionForm {
  int64_t groups;
  Extents stride, low, high, dilation, input_dilation;
};

ConvolutionForm convolution_form(const kernel::CallDesc& desc) {
  const std::vector<int64_t>& all = desc.integers;
  const auto space = static_cast<std::ptrdiff_t>((all.size() - 1) / 5);
  const auto part = [&](std::ptrdiff_t k) {
    return Extents(all.begin() + 1 + k * space, all.begin() + 1 + (k + 1) * space);
  };
  return {all[0], part(0), part(1), part(2), part(3), part(4)};
}

bool all_one(const Extents& v) {
  return std::all_of(v.begin(), v.end(), [](int64_t e) { return e == 1; });
}
bool none_negative(const Extents& v) {
  return std::all_of(v.begin(), v.end(), [](int64_t e) { return e >= 0; });
}
Extents between(const std::vector<int64_t>& v) { return Extents(v.begin() + 1, v.end() - 1); }

bool convolution_dtypes_fit(const kernel::CallDesc& desc) {
  const Dtype t = desc.inputs[0].dtype;
  return (t == float32 || t == bfloat16) && desc.inputs[1].dtype == t && desc.outputs[0].dtype == t;
}

/// Returns the problem of a call, or nothing if it is not supported.
std::optional<Problem> problem_of(const kernel::CallDesc& desc, Role role) {
  const ConvolutionForm f = convolution_form(desc);
  if (f.stride.size() > 3 || !convolution_dtypes_fit(desc)) return std::nullopt;
  if (!all_one(f.input_dilation) || !none_negative(f.low) || !none_negative(f.high)) return std::nullopt;
  const auto &first = desc.inputs[0].extents, &second = desc.inputs[1].extents, &result = desc.outputs[0].extents;
  for (const auto* extents : {&first, &second, &result})
    if (std::any_of(extents->begin(), extents->end(), [](int64_t e) { return e == 0; })) return std::nullopt;
  const auto &x = role == Role::input ? result : first, &w = role == Role::weights ? result : second,
             &y = role == Role::forward ? result
                  : role == Role::input ? first
                                        : second;
  return Problem{role,       desc.inputs[0].dtype, x[0],     x.back(),   y.back(), f.groups, between(x),
                 between(y), between(w),           f.stride, f.dilation, f.low,    f.high};
}

template <class Call>
std::shared_ptr<const LibraryCall> offered(const kernel::CallDesc& desc, Role role) {
  const auto problem = problem_of(desc, role);
  if (!problem || problem->work() < onednn_min_work) return nullptr;
  try {
    auto call = std::make_shared<Call>(desc, *problem);
    return call->optimised() ? call : nullptr;
  } catch (const dnnl::error&) {
    return nullptr;  // unsupported form
  }
}

}  // namespace

std::shared_ptr<const LibraryCall> onednn_convolution(const kernel::CallDesc& desc) {
  return offered<Convolve>(desc, Role::forward);
}
std::shared_ptr<const LibraryCall> onednn_convolution_input(const kernel::CallDesc& desc) {
  return offered<Convolve>(desc, Role::input);
}
std::shared_ptr<const LibraryCall> onednn_convolution_weights(const kernel::CallDesc& desc) {
  return offered<WeightGradient>(desc, Role::weights);
}

}  // namespace weft::target

#endif
