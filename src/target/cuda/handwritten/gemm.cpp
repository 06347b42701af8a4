#include "target/cuda/handwritten/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "kernel/describe/dot_form.h"
#include "target/cuda/codegen/prelude.h"

namespace weft::target::cuda {

using kernel::Activation;
using kernel::DotDesc;
using kernel::PreActivation;

namespace {

constexpr double least_work = 4e9;  // multiplications: below, tiles are few, and what is gained is little

constexpr int64_t multiprocessors = 132;
constexpr double least_used = 0.85;  // of the time that they take for whole tiles, and wait for the last one

int64_t tiles_of(int64_t extent, int64_t tile) { return (extent + tile - 1) / tile; }

/// Of a tile: 1600 columns are seven times 232. Where lines of B run along them they begin at multiples of 128 bytes.
int64_t columns_of(int64_t n, bool b_turned) {
  const int64_t step = b_turned ? 64 : 8;
  return tiles_of(tiles_of(n, tiles_of(n, product_columns)), step) * step;
}

/// Boxes of `across` by `down` elements of a matrix whose lines are `line` elements apart.
TensorMap tensor_map(const ProductForm& form, void* address, int64_t columns, int64_t rows, int64_t line,
                     int64_t across, int64_t down, TensorMapLayout swizzle) {
  TensorMap map;
  const uint64_t extents[] = {static_cast<uint64_t>(columns), static_cast<uint64_t>(rows)},
                 strides[] = {static_cast<uint64_t>(line) * 2};
  const uint32_t box[] = {static_cast<uint32_t>(across), static_cast<uint32_t>(down)}, steps[] = {1, 1};
  check(driver().tensor_map_encode_tiled(&map, form.dtype == bfloat16 ? tensor_map_bf16 : tensor_map_f16, 2, address,
                                         extents, strides, box, steps, tensor_map_interleave_none, swizzle,
                                         tensor_map_promotion_256, tensor_map_fill_zero),
        "cuTensorMapEncodeTiled", form.symbol());
  return map;
}

/// One side: lines along k, or along its other axis (`turned`).
TensorMap side_map(const ProductForm& form, void* address, bool turned, int64_t extent, int64_t depth, int64_t line,
                   int64_t tile) {
  constexpr int64_t across = 128 / 2;  // what is swizzled
  return turned ? tensor_map(form, address, extent, depth, line, across, product_depth, tensor_map_swizzle_128)
                : tensor_map(form, address, depth, extent, line, across, tile, tensor_map_swizzle_128);
}

}  // namespace

std::optional<ProductForm> product_form(const DotDesc& desc, DotDesc* merged) {
  DotDesc d = desc;
  std::vector<kernel::BatchAxis> axes = kernel::merged_batch(d);
  kernel::batch_into_rows(d, axes);
  const bool half = (d.a == float16 || d.a == bfloat16) && d.b == d.a && d.c == d.a;
  const bool sums = d.sum == kernel::OperandSum::c;
  if (!half || !axes.empty() || !(sums || d.sum == kernel::OperandSum::none) || d.scales != 0) return std::nullopt;
  if (sums && d.m % kernel::rows_of_a_sum != 0) return std::nullopt;
  if (d.m < 1 || d.n < 8 || d.k < 1 || d.n % 8 != 0 || std::max({d.m, d.n, d.k}) > (int64_t{1} << 30))
    return std::nullopt;
  if (d.c_n != 1 || d.c_m < d.n || d.c_m % 8 != 0) return std::nullopt;
  if (d.activation != Activation::none && d.activation != Activation::relu && d.activation != Activation::gelu_tanh)
    return std::nullopt;
  if (d.residual && d.activation != Activation::none) return std::nullopt;
  if (d.pre_activation != PreActivation::none && d.activation != Activation::gelu_tanh) return std::nullopt;
  if (d.pre_activation == PreActivation::derivative && d.bias) return std::nullopt;
  // Lines at multiples of 16 bytes.
  const auto lines = [](int64_t contiguous, int64_t line, int64_t length) {
    return contiguous == 1 && line % 8 == 0 && line >= length;
  };
  const bool a_turned = !lines(d.a_k, d.a_m, d.k), b_turned = !lines(d.b_k, d.b_n, d.k);
  if ((a_turned && !lines(d.a_m, d.a_k, d.m)) || (b_turned && !lines(d.b_n, d.b_k, d.n))) return std::nullopt;
  d.batch.clear(), d.a_batch.clear(), d.b_batch.clear(), d.c_batch.clear();
  if (merged) *merged = d;
  return ProductForm{
      d.a, a_turned, b_turned, d.bias, d.residual, sums, d.activation, d.pre_activation, columns_of(d.n, b_turned)};
}

bool product_may_win(const DotDesc& d) {
  const int64_t tiles = tiles_of(d.m, product_rows) * tiles_of(d.n, product_columns),
                rounds = tiles_of(tiles, multiprocessors);
  const double used = static_cast<double>(d.m) * static_cast<double>(d.n) /
                      static_cast<double>(rounds * multiprocessors * product_rows * product_columns);
  return d.flops() >= 2 * least_work && used >= least_used;
}

const Entry& ProductKernel::entry() const {
  std::call_once(once_, [&] {
    const Rendered rendered = render_product(form_);
    entry_ = find_entry(
        context_, load_module(context_, compile_(std::string(prelude) + rendered.source), rendered.symbol), rendered);
  });
  return entry_;
}

std::string Product::name() const { return fmt::format("product {}x{}", product_rows, kernel_->form().columns); }

void Product::run(std::span<void* const> operands) const {
  const ProductForm& form = kernel_->form();
  Context& context = kernel_->context();
  const Entry& entry = kernel_->entry();
  context.make_current();
  TensorMap a = side_map(form, operands[0], form.a_turned, d_.m, d_.k, form.a_turned ? d_.a_k : d_.a_m, product_rows);
  TensorMap b =
      side_map(form, operands[1], form.b_turned, d_.n, d_.k, form.b_turned ? d_.b_k : d_.b_n, product_columns);
  const bool argument = form.argument != PreActivation::none;
  void *c = operands.back(), *bias = form.bias ? operands[2] : nullptr,
       *sums = form.sums ? operands[operands.size() - (argument ? 3 : 2)] : nullptr;
  void* other = argument ? operands[operands.size() - 2] : form.residual ? operands[form.bias ? 3 : 2] : nullptr;
  TensorMap read =
      other ? tensor_map(form, other, d_.n, d_.m, d_.c_m, product_columns, product_rows, tensor_map_swizzle_none) : a;
  int m = static_cast<int>(d_.m), n = static_cast<int>(d_.n), k = static_cast<int>(d_.k);
  int64_t stride = d_.c_m;
  void* arguments[] = {&a, &b, &read, &c, &other, &bias, &sums, &m, &n, &k, &stride};
  const int64_t tiles = tiles_of(d_.m, product_rows) * tiles_of(d_.n, form.columns);
  launch(context, entry, std::min<int64_t>(tiles, context.info().multiprocessors), 1, arguments,
         form.symbol() + " for " + d_.to_string());
}

}  // namespace weft::target::cuda
