// Converts a descriptor with strides to cuBLASLt's column-major matrices. A row-major C is a column-major Cᵀ = Bᵀ Aᵀ,
// so the operands are exchanged.
#include <algorithm>
#include <utility>

#include "kernel/describe/dot_form.h"
#include "target/cuda/libraries/cublaslt.h"

namespace weft::target::cuda {
namespace {

using kernel::Activation;
using kernel::BatchAxis;
using kernel::DotDesc;

struct Types {
  lt::DataType a, b, c;
  lt::ComputeType compute;
  lt::DataType scale;
};

std::optional<lt::DataType> type_of(Dtype t) {
  switch (t.val()) {
    case Dtype::Val::float32: return lt::r_32f;
    case Dtype::Val::float64: return lt::r_64f;
    case Dtype::Val::float16: return lt::r_16f;
    case Dtype::Val::bfloat16: return lt::r_16bf;
    case Dtype::Val::int8: return lt::r_8i;
    case Dtype::Val::int32: return lt::r_32i;
    case Dtype::Val::float8_e4m3: return lt::r_8f_e4m3;
    case Dtype::Val::float8_e5m2: return lt::r_8f_e5m2;
    default: return std::nullopt;
  }
}

std::optional<Types> types_of(const DotDesc& d, bool tf32) {
  const auto a = type_of(d.a), b = type_of(d.b), c = type_of(d.c);
  if (!a || !b || !c) return std::nullopt;
  Types t{*a, *b, *c, lt::compute_32f, lt::r_32f};
  const bool half = d.a == float16 || d.a == bfloat16;
  const auto eight = [](Dtype x) { return x == float8_e4m3 || x == float8_e5m2; };
  if (eight(d.a) && eight(d.b)) {
    if (d.a == float8_e5m2 && d.b == float8_e5m2) return std::nullopt;
    if (!(d.c == float16 || d.c == bfloat16 || d.c == float32)) return std::nullopt;
    // A bias has the dtype of a 16-bit result only, and an activation is left alone.
    if ((d.bias && d.c.size() != 2) || d.activation != Activation::none) return std::nullopt;
    return t;
  }
  if (d.scales > 0) return std::nullopt;
  if (d.a != d.b) return std::nullopt;
  if (d.a == float32 && d.c == float32) {
    if (tf32) t.compute = lt::compute_32f_fast_tf32;
    return t;
  }
  if (half && (d.c == d.a || d.c == float32)) return t;
  if (d.a == float64 && d.c == float64) {
    t.compute = lt::compute_64f, t.scale = lt::r_64f;
    return t;
  }
  if (d.a == int8 && d.c == int32 && !d.bias && !d.residual && d.activation == Activation::none) {
    t.compute = lt::compute_32i, t.scale = lt::r_32i;
    return t;
  }
  return std::nullopt;
}

/// Returns op(M) of rows × columns with the given strides; nothing if neither axis is contiguous or columns overlap.
std::optional<LtMatrix> matrix(lt::DataType type, int64_t rows, int64_t columns, int64_t row_stride,
                               int64_t column_stride, bool may_transpose) {
  if ((rows == 1 || row_stride == 1)) {
    const int64_t leading = columns == 1 ? rows : column_stride;
    if (leading >= rows) return LtMatrix{type, false, rows, columns, leading, 0};
  }
  if (may_transpose && (columns == 1 || column_stride == 1)) {
    const int64_t leading = rows == 1 ? columns : row_stride;
    if (leading >= columns) return LtMatrix{type, true, columns, rows, leading, 0};
  }
  return std::nullopt;
}

/// Puts the longest batch axis into the call; the other batch axes become separate calls. Returns false if there are
/// too many.
bool set_batch(std::vector<BatchAxis> axes, LtForm& form) {
  form.calls = {LtForm::Offset{}};
  if (axes.empty()) return true;
  const auto longest = std::max_element(axes.begin(), axes.end(),
                                        [](const BatchAxis& x, const BatchAxis& y) { return x.extent < y.extent; });
  form.batch = longest->extent;
  form.a.batch_stride = longest->a, form.b.batch_stride = longest->b, form.d.batch_stride = longest->c;
  axes.erase(longest);
  for (const BatchAxis& axis : axes) {
    std::vector<LtForm::Offset> all;
    if (static_cast<int64_t>(form.calls.size()) * axis.extent > cublaslt_max_calls) return false;
    for (const LtForm::Offset& at : form.calls)
      for (int64_t i = 0; i < axis.extent; ++i)
        all.push_back({at.a + i * axis.a, at.b + i * axis.b, at.c + i * axis.c});
    form.calls = std::move(all);
  }
  return true;
}

/// Returns cuBLASLt's epilogue for what follows the matmul. The residual is its C, which it adds before an activation,
/// not after.
std::optional<uint32_t> epilogue_of(const DotDesc& d, bool swapped, bool tf32) {
  if (d.pre_activation != kernel::PreActivation::none) {
    // 16-bit results, tanh's gelu; rows of Z must begin at multiples of 16 bytes.
    const bool fits = d.activation == Activation::gelu_tanh && d.c.size() == 2 && !d.residual && d.batch.empty();
    if (!fits || (d.bias && !swapped) || d.m % 8 != 0 || d.n % 8 != 0 || std::max(d.c_m, d.c_n) % 8 != 0)
      return std::nullopt;
    if (d.pre_activation == kernel::PreActivation::derivative)
      return d.bias ? std::nullopt : std::optional<uint32_t>(lt::epilogue_dgelu);
    return lt::epilogue_gelu_aux | (d.bias ? lt::epilogue_bias : 0u);
  }
  if (d.residual && d.activation != Activation::none) return std::nullopt;
  // Its approximation has an error of 2e-5 in float32 and of 1e-10 in float64.
  if (d.activation == Activation::gelu_tanh && (d.c == float64 || (d.a == float32 && !tf32))) return std::nullopt;
  if (d.bias && !swapped) return std::nullopt;  // its bias runs along D's rows
  switch (d.activation) {
    case Activation::none: return d.bias ? lt::epilogue_bias : lt::epilogue_default;
    case Activation::relu: return lt::epilogue_relu | (d.bias ? lt::epilogue_bias : 0u);
    case Activation::gelu_tanh: return lt::epilogue_gelu | (d.bias ? lt::epilogue_bias : 0u);
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<LtForm> cublaslt_form(const DotDesc& desc, bool tf32) {
  const std::optional<Types> types = types_of(desc, tf32);
  if (!types || desc.m < 1 || desc.n < 1 || desc.k < 1) return std::nullopt;
  for (size_t i = 0; i < desc.batch.size(); ++i) {
    if (desc.batch[i] < 1) return std::nullopt;
    if (desc.batch[i] > 1 && (desc.c_batch[i] <= 0 || desc.a_batch[i] < 0 || desc.b_batch[i] < 0)) return std::nullopt;
  }
  if (desc.sum != kernel::OperandSum::none) return std::nullopt;  // Machine::sums_operands says why
  DotDesc d = desc;
  std::vector<BatchAxis> axes = kernel::merged_batch(d);
  kernel::batch_into_rows(d, axes);
  double work = static_cast<double>(d.m) * static_cast<double>(d.n) * static_cast<double>(d.k);
  for (const BatchAxis& axis : axes) work *= static_cast<double>(axis.extent);
  if (work < cublaslt_min_work) return std::nullopt;

  LtForm form;
  form.compute = types->compute, form.scale = types->scale;
  std::optional<LtMatrix> a, b, c;
  if ((c = matrix(types->c, d.n, d.m, d.c_n, d.c_m, false))) {
    form.swapped = true;
    a = matrix(types->b, d.n, d.k, d.b_n, d.b_k, true);
    b = matrix(types->a, d.k, d.m, d.a_k, d.a_m, true);
    for (BatchAxis& axis : axes) std::swap(axis.a, axis.b);
  } else if ((c = matrix(types->c, d.m, d.n, d.c_m, d.c_n, false))) {
    a = matrix(types->a, d.m, d.k, d.a_m, d.a_k, true);
    b = matrix(types->b, d.k, d.n, d.b_k, d.b_n, true);
  }
  if (!a || !b || !c) return std::nullopt;
  if (a->type == lt::r_8f_e4m3 ||
      a->type == lt::r_8f_e5m2) {  // the tensor cores take 8-bit floats along k alone, 16 at a time
    if (!a->transposed || b->transposed || d.m % 16 != 0 || d.n % 16 != 0 || d.k % 16 != 0) return std::nullopt;
  }
  const std::optional<uint32_t> epilogue = epilogue_of(desc, form.swapped, tf32);
  if (!epilogue) return std::nullopt;
  form.epilogue = *epilogue;
  form.a = *a, form.b = *b, form.d = *c;
  if (!set_batch(std::move(axes), form)) return std::nullopt;
  return form;
}

}  // namespace weft::target::cuda
