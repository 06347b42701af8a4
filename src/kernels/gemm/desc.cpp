#include "kernels/gemm/desc.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "kernel/describe/dot_form.h"
#include "kernel/language/trace.h"
#include "kernels/gemm/gemm.h"

namespace weft::kernels {

using k::Any;
using k::Index;
using k::Span;
using kernel::Activation;
using kernel::DotDesc;
using kernel::OperandSum;
using kernel::PreActivation;
using Sums = k::Tile<float, 2>;

namespace {

bool is_tf32(const DotDesc& d) { return d.a == float32 && d.numerics.tf32; }

bool finishes(const DotDesc& d) {
  return d.bias || d.residual || d.activation != Activation::none || d.sum == OperandSum::c;
}

/// Returns whether there is a kernel for operands and a result of these dtypes. 8 bits lie along the contracted axis.
/// Sums of 8-bit floats keep some 13 bits on tensor cores (sm_90), so their result is bfloat16; sums of integers are
/// stored as they are.
bool takes_dtypes(const DotDesc& d) {
  if (d.b != d.a) return false;
  const bool along = d.a_k == 1 && d.b_k == 1;
  if (is_float8(d.a)) return along && d.c == bfloat16;
  if (d.a == int8) return along && d.c == int32 && !finishes(d) && d.pre_activation == PreActivation::none;
  return d.c == d.a && (d.a == float16 || d.a == bfloat16 || is_tf32(d));
}

/// Returns whether there is a kernel; `d` has its batch axes merged.
bool takes(const DotDesc& d) {
  if (!takes_dtypes(d) || d.scales != 0) return false;
  if (d.sum == OperandSum::a || d.sum == OperandSum::b) return false;
  if (d.sum == OperandSum::c && (d.m % kernel::rows_of_a_sum != 0 || !d.batch.empty())) return false;
  if (d.m < 2 || d.n < 8 || d.k < 1 || d.c_n != 1 || d.c_m < d.n) return false;
  if (d.activation != Activation::none && d.activation != Activation::relu && d.activation != Activation::gelu_tanh)
    return false;
  return d.pre_activation == PreActivation::none || d.activation == Activation::gelu_tanh;
}

/// tanh's gelu is x s, s = sigmoid(w), w = 2 sqrt(2 / pi) (x + 0.044715 x^3), as in graph/regions/composites.cpp.
constexpr double gelu_cubic = 0.044715;
const double gelu_linear = 2 * std::sqrt(2 / std::numbers::pi);

Sums gelu_gate(const Sums& x) { return k::sigmoid(x * (x * x * (gelu_linear * gelu_cubic) + gelu_linear)); }

/// Returns the derivative, s + x s (1 - s) w'.
Sums gelu_slope(const Sums& x) {
  const Sums s = gelu_gate(x);
  return s + x * s * (1.0 - s) * (x * x * (gelu_linear * 3 * gelu_cubic) + gelu_linear);
}

/// A kernel while it is traced.
class Described {
 public:
  Described(DotDesc desc, const GemmTile& tile, bool in_parts)
      : d_(std::move(desc)), tile_(tile), in_parts_(in_parts && finishes(d_)) {
    for (const int64_t n : d_.batch) batches_ *= n;
    a_ = {param(k::Use::in, d_.a, d_.a_batch, {d_.m, d_.k}, {d_.a_m, d_.a_k}),
          d_.a_batch,
          {d_.m, d_.k},
          {d_.a_m, d_.a_k}};
    b_ = {param(k::Use::in, d_.b, d_.b_batch, {d_.k, d_.n}, {d_.b_k, d_.b_n}),
          d_.b_batch,
          {d_.k, d_.n},
          {d_.b_k, d_.b_n}};
    if (d_.bias) bias_ = like_c(k::Use::in, {0, 1});
    if (d_.residual) residual_ = like_c(k::Use::in, {d_.c_m, 1});
    if (d_.sum == OperandSum::c) {
      const std::vector<int64_t> dims{d_.m / kernel::rows_of_a_sum, d_.n}, strides{d_.n, 1};
      sums_ = {param(k::Use::in_out, float32, {}, dims, strides), {}, dims, strides};
    }
    if (d_.pre_activation == PreActivation::stored) argument_ = like_c(k::Use::in_out, {d_.c_m, 1});
    if (d_.pre_activation == PreActivation::derivative) argument_ = like_c(k::Use::in, {d_.c_m, 1});
    c_ = like_c(k::Use::in_out, {d_.c_m, 1});
  }

  k::Program run() {
    return k::trace("gemm", params_, gemm_grid(batches_, d_.m, d_.n, tile_), [&](std::span<const k::AnyRef> refs) {
      refs_ = refs;
      Gemm g{batches_, d_.m, d_.n, Index(d_.k), tile_, usual_band};
      if (is_tf32(d_)) g.precision = k::Precision::tf32;
      if (is_integer(d_.a)) g.sums = int32;
      g.left = [&](const GemmOrigin& at, const Index& depth) {
        return load(a_, at, part(at.row, tile_.rows), part(depth, tile_.depth));
      };
      g.right = [&](const GemmOrigin& at, const Index& depth) {
        return load(b_, at, part(depth, tile_.depth), part(at.column, tile_.columns));
      };
      g.finish = [&](const GemmOrigin& at, const Any& sums) {
        if (is_integer(d_.a)) store(c_, at, sums);
        else finish(at, Sums(sums));
      };
      g.part = in_parts_ ? usual_part : 0;
      gemm(g);
    });
  }

 private:
  /// An operand: matrices, one for each batch index.
  struct Array {
    size_t param = 0;
    std::vector<int64_t> batch, dims, strides;
  };

  /// Declares an operand; returns its number.
  size_t param(k::Use use, Dtype dtype, const std::vector<int64_t>& batch, const std::vector<int64_t>& dims,
               const std::vector<int64_t>& strides) {
    int64_t reach = 1;
    for (size_t axis = 0; axis < batch.size(); ++axis) reach += (d_.batch[axis] - 1) * batch[axis];
    for (size_t axis = 0; axis < dims.size(); ++axis) reach += (dims[axis] - 1) * strides[axis];
    params_.push_back({use, dtype, {reach}});
    return params_.size() - 1;
  }
  Array like_c(k::Use use, const std::vector<int64_t>& strides) {
    const std::vector<int64_t> batch = strides[0] == 0 ? std::vector<int64_t>(d_.batch.size()) : d_.c_batch;
    return {param(use, d_.c, batch, {d_.m, d_.n}, strides), batch, {d_.m, d_.n}, strides};
  }

  static Span part(const Index& first, int64_t count) { return {.start = first.any(), .size = count}; }

  k::AnyRef view(const Array& x) const {
    k::AnyRef out = refs_[x.param];
    out.dims = x.batch.empty() ? std::vector<int64_t>{} : d_.batch, out.strides = x.batch;
    out.dims.insert(out.dims.end(), x.dims.begin(), x.dims.end());
    out.strides.insert(out.strides.end(), x.strides.begin(), x.strides.end());
    return out;
  }
  std::vector<Span> spans(const Array& x, const GemmOrigin& at, const Span& rows, const Span& columns) const {
    std::vector<Span> out(x.batch.size());
    Index rest = at.batch;
    for (size_t axis = x.batch.size(); axis-- > 0;) {
      out[axis] = {.start = (axis == 0 ? rest : k::mod(rest, d_.batch[axis])).any(), .squeezed = true};
      if (axis > 0) rest = k::floordiv(rest, d_.batch[axis]);
    }
    out.push_back(rows), out.push_back(columns);
    return out;
  }
  Any load(const Array& x, const GemmOrigin& at, const Span& rows, const Span& columns) const {
    return k::load(view(x), spans(x, at, rows, columns));
  }
  /// Returns elements that belong to those of a tile.
  Sums beside(const Array& x, const GemmOrigin& at, const Sums& tile) const {
    return Sums(k::cast(load(x, at, part(at.row, tile.dim(0)), part(at.column, tile.dim(1))), float32));
  }
  void store(const Array& x, const GemmOrigin& at, const Any& tile) const {
    k::store(view(x), spans(x, at, part(at.row, tile.dims()[0]), part(at.column, tile.dims()[1])), tile);
  }

  void finish(const GemmOrigin& at, Sums v) const {
    if (d_.bias) {
      const Any row = k::load(view(bias_), spans(bias_, at, {.size = 1}, part(at.column, v.dim(1))));
      v = v + Sums(k::broadcast_to(k::cast(row, float32), {v.dim(0), v.dim(1)}));
    }
    if (d_.pre_activation == PreActivation::stored) store(argument_, at, k::cast(v.any(), d_.c));
    if (d_.pre_activation == PreActivation::derivative) v = v * gelu_slope(beside(argument_, at, v));
    else if (d_.activation == Activation::gelu_tanh) v = v * gelu_gate(v);
    if (d_.activation == Activation::relu) v = k::maximum(v, 0.0f);
    if (d_.residual) v = v + beside(residual_, at, v);
    const Any rounded = k::cast(v.any(), d_.c);
    store(c_, at, rounded);
    if (d_.sum == OperandSum::c) add_rows(at, Sums(k::cast(rounded, float32)));
  }

  /// Stores the sums of each 128 rows of the result.
  void add_rows(const GemmOrigin& at, const Sums& v) const {
    constexpr int64_t rows = kernel::rows_of_a_sum;
    for (int64_t first = 0; first < v.dim(0); first += rows) {
      const Any some = v.dim(0) == rows ? v.any() : k::slice(v.any(), {first, 0}, {rows, v.dim(1)});
      const Any sum = k::reshape(k::reduce("sum", some, 0), {1, v.dim(1)});
      store(sums_, {at.batch, k::floordiv(at.row + first, rows), at.column}, sum);
    }
  }

  DotDesc d_;
  GemmTile tile_;
  bool in_parts_;
  int64_t batches_ = 1;
  std::vector<k::Param> params_;
  std::span<const k::AnyRef> refs_;
  Array a_, b_, bias_, residual_, sums_, argument_, c_;
};

GemmWork work_of(const DotDesc& d) {
  constexpr double of_gelu = 10;
  GemmWork w{d.a, 1, d.m, d.n, d.k};
  for (const int64_t n : d.batch) w.batches *= n;
  w.along_depth = is_tf32(d) && d.a_k == 1 && d.b_k == 1;
  w.b_across = d.b_k != 1;
  const auto size = static_cast<double>(d.c.size());
  w.bytes = size * (1 + (d.residual ? 1 : 0) + (d.pre_activation != PreActivation::none ? 1 : 0));
  w.epilogue_operations =
      (d.bias ? 1 : 0) + (d.residual ? 1 : 0) + (d.activation == Activation::gelu_tanh ? of_gelu : 0);
  if (d.sum == OperandSum::c) w.rows_of_tiles = kernel::rows_of_a_sum, w.epilogue_operations += 1;
  return w;
}

}  // namespace

std::vector<GemmKernel> gemm_kernels(const DotDesc& desc, const target::Machine& machine, size_t most) {
  const DotDesc d = kernel::with_merged_batch(desc);
  std::vector<GemmKernel> out;
  if (!takes(d) || machine.tensor_core_bytes(d.a) == 0) return out;
  for (const GemmTiling& tiling : gemm_tilings(machine, work_of(d), most)) {
    const k::Program program = Described(d, tiling.tile, machine.whole_rows_of_products()).run();
    GemmKernel made{program.data().kernel, program.programs(), tiling};
    made.kernel.launch.stages = tiling.tile.stages;
    made.kernel.launch.ping_pong = tiling.tile.ping_pong ? 1 : 0;
    out.push_back(std::move(made));
  }
  return out;
}

bool gemm_may_win(const DotDesc& d, const GemmTiling& tiling) {
  constexpr double least_flops = 8e9;   // below, there are few tiles and little to gain
  constexpr double least_share = 0.75;  // of the speed of the fastest tiles on SMs that are all busy
  // cuBLASLt is three times slower where contiguous extents are not whole 16 bytes, although lines are.
  const bool whole = d.n % 8 == 0 && (d.k % 8 == 0 || (d.a_k != 1 && d.b_k != 1)) && (d.m % 8 == 0 || d.a_m != 1);
  return d.flops() >= least_flops && (tiling.share >= least_share || !whole);
}

}  // namespace weft::kernels
