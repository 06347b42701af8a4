#include "target/cuda/handwritten/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "kernel/describe/dot_form.h"
#include "target/cuda/codegen/render.h"
#include "target/cuda/codegen/text/wgmma.h"
#include "target/cuda/driver/context.h"

namespace weft::target::cuda {

using kernel::Activation;
using kernel::DotDesc;
using kernel::PreActivation;

namespace {

constexpr double least_flops = 8e9;  // below, there are few tiles and little to gain
constexpr double least_used =
    0.85;  // share of the SMs' time that is used, given whole tiles and the wait for the last one
constexpr int64_t swizzled_elements = 64;  // of a 128-byte line

int64_t tiles_of(int64_t extent, int64_t tile) { return (extent + tile - 1) / tile; }

/// Returns the columns of a tile, such that tiles are equally wide: 1600 columns are seven tiles of 232. Where B is
/// contiguous along n, widths are multiples of 128 bytes, because boxes begin there.
int64_t tile_n_for(int64_t n, bool b_n_major) {
  const int64_t step = b_n_major ? swizzled_elements : 8;
  return tiles_of(tiles_of(n, tiles_of(n, GemmForm::max_tile_n)), step) * step;
}

/// Returns TMA's description of a matrix: boxes of `across` by `down` elements, rows `line` elements apart.
TensorMap tensor_map(const GemmForm& form, void* address, int64_t columns, int64_t rows, int64_t line, int64_t across,
                     int64_t down, TensorMapLayout swizzle) {
  TensorMap map;
  const uint64_t extents[] = {static_cast<uint64_t>(columns), static_cast<uint64_t>(rows)},
                 strides[] = {static_cast<uint64_t>(line) * 2};
  const uint32_t box[] = {static_cast<uint32_t>(across), static_cast<uint32_t>(down)}, steps[] = {1, 1};
  check_result(driver().tensor_map_encode_tiled(&map, form.dtype == bfloat16 ? tensor_map_bf16 : tensor_map_f16, 2,
                                                address, extents, strides, box, steps, tensor_map_interleave_none,
                                                swizzle, tensor_map_promotion_256, tensor_map_fill_zero),
               "cuTensorMapEncodeTiled", form.symbol());
  return map;
}

/// Returns the description of A or B, with `tile` elements of its non-contracted axis in a box; contiguous along k
/// (`k_major`) or along that axis.
TensorMap operand_map(const GemmForm& form, void* address, bool k_major, int64_t extent, int64_t depth, int64_t line,
                      int64_t tile) {
  return k_major
             ? tensor_map(form, address, depth, extent, line, swizzled_elements, tile, tensor_map_swizzle_128)
             : tensor_map(form, address, extent, depth, line, swizzled_elements, form.tile_k, tensor_map_swizzle_128);
}

std::string gemm_parameters(const GemmForm& form) {
  const int64_t accumulators = tiles_of(form.tile_n, 16) * 2;  // stmatrix stores them in pairs
  return Parameters()
      .entry("KERNEL", form.symbol())
      .flag("bf16", form.dtype == bfloat16)
      .flag("a_m_major", form.a_m_major)
      .flag("b_n_major", form.b_n_major)
      .flag("bias", form.bias)
      .flag("relu", form.activation == Activation::relu)
      .flag("gelu", form.activation == Activation::gelu_tanh)
      .flag("residual", form.residual)
      .flag("column_sums", form.sums)
      .flag("store_argument", form.argument == PreActivation::stored)
      .flag("multiply_slope", form.argument == PreActivation::derivative)
      .integer("tile_m", form.tile_m)
      .integer("tile_n", form.tile_n)
      .integer("max_tile_n", form.max_tile_n)
      .integer("tile_k", form.tile_k)
      .integer("stages", form.stages)
      .integer("accumulators", accumulators)
      .integer("threads", form.threads)
      .integer("shared_bytes", form.shared_bytes())
      .function(wgmma_function({form.dtype, form.tile_n, form.a_m_major, form.b_n_major}, accumulators))
      .text();
}

/// Launches the kernel.
void run(const GemmForm& form, const DotDesc& d, std::span<void* const> operands, const Match::Launch& launch) {
  TensorMap a = operand_map(form, operands[0], !form.a_m_major, d.m, d.k, form.a_m_major ? d.a_k : d.a_m, form.tile_m);
  TensorMap b =
      operand_map(form, operands[1], !form.b_n_major, d.n, d.k, form.b_n_major ? d.b_k : d.b_n, form.max_tile_n);
  const bool argument = form.argument != PreActivation::none;
  void *c = operands.back(), *bias = form.bias ? operands[2] : nullptr,
       *sums = form.sums ? operands[operands.size() - (argument ? 3 : 2)] : nullptr;
  void* other = argument ? operands[operands.size() - 2] : form.residual ? operands[form.bias ? 3 : 2] : nullptr;
  TensorMap other_map =
      other ? tensor_map(form, other, d.n, d.m, d.c_m, form.max_tile_n, form.tile_m, tensor_map_swizzle_none) : a;
  int m = static_cast<int>(d.m), n = static_cast<int>(d.n), k = static_cast<int>(d.k);
  int64_t stride = d.c_m;
  void* arguments[] = {&a, &b, &other_map, &c, &other, &bias, &sums, &m, &n, &k, &stride};
  launch(0, arguments);
}

}  // namespace

std::string GemmForm::symbol() const {
  std::string out = dtype == bfloat16 ? "gemm_bf16" : "gemm_f16";
  if (a_m_major) out += "_a_m_major";
  if (b_n_major) out += "_b_n_major";
  if (tile_n != max_tile_n) out += fmt::format("_{}", tile_n);
  if (bias) out += "_bias";
  if (activation != Activation::none) out += std::string("_") + name(activation);
  if (residual) out += "_residual";
  if (sums) out += "_sums";
  if (argument == PreActivation::stored) out += "_written";
  if (argument == PreActivation::derivative) out += "_slope";
  return out;
}

/// Returns the size of gemm.cu's layout of shared memory, which gemm.cu checks.
int64_t GemmForm::shared_bytes() const {
  const int64_t stage = 2 * (tile_m + max_tile_n) * tile_k, tile = tile_m * (2 * max_tile_n + 16),
                barriers = tiles_of(stages * 12, 16) * 16, column_sums = 2 * 4 * 4 * max_tile_n;
  return 1024 + stages * stage + tile + barriers + (sums ? column_sums : 0);
}

std::optional<GemmForm> gemm_form(const DotDesc& desc, DotDesc* merged) {
  DotDesc d = desc;
  std::vector<kernel::BatchAxis> axes = kernel::merged_batch(d);
  kernel::batch_into_rows(d, axes);
  const bool half = (d.a == float16 || d.a == bfloat16) && d.b == d.a && d.c == d.a;
  const bool sums = d.sum == kernel::OperandSum::c;
  if (!half || !axes.empty() || !(sums || d.sum == kernel::OperandSum::none) || d.scales != 0) return std::nullopt;
  if (sums && d.m % kernel::rows_of_a_sum != 0) return std::nullopt;
  if (d.m < 1 || d.n < 8 || d.k < 1 || std::max({d.m, d.n, d.k}) > (int64_t{1} << 30)) return std::nullopt;
  if (d.c_n != 1 || d.c_m < d.n || d.c_m % 8 != 0) return std::nullopt;
  // The epilogue stores eight columns at once, the last ones also into the padding of C's rows. It reads two biases.
  if (d.n % 8 != 0 && (d.c_m != tiles_of(d.n, 8) * 8 || (d.bias && d.n % 2 != 0))) return std::nullopt;
  if (d.activation != Activation::none && d.activation != Activation::relu && d.activation != Activation::gelu_tanh)
    return std::nullopt;
  if (d.residual && d.activation != Activation::none) return std::nullopt;
  if (d.pre_activation != PreActivation::none && d.activation != Activation::gelu_tanh) return std::nullopt;
  if (d.pre_activation == PreActivation::derivative && d.bias) return std::nullopt;
  // Lines must begin at multiples of 16 bytes.
  const auto lines = [](int64_t contiguous, int64_t line, int64_t length) {
    return contiguous == 1 && line % 8 == 0 && line >= length;
  };
  const bool a_m_major = !lines(d.a_k, d.a_m, d.k), b_n_major = !lines(d.b_k, d.b_n, d.k);
  if ((a_m_major && !lines(d.a_m, d.a_k, d.m)) || (b_n_major && !lines(d.b_n, d.b_k, d.n))) return std::nullopt;
  d.batch.clear(), d.a_batch.clear(), d.b_batch.clear(), d.c_batch.clear();
  if (merged) *merged = d;
  GemmForm form{.dtype = d.a, .a_m_major = a_m_major, .b_n_major = b_n_major, .bias = d.bias, .residual = d.residual};
  form.sums = sums, form.activation = d.activation, form.argument = d.pre_activation;
  form.tile_n = tile_n_for(d.n, b_n_major);
  return form;
}

bool gemm_may_win(const DotDesc& d, int64_t sms) {
  const int64_t tiles = tiles_of(d.m, GemmForm::tile_m) * tiles_of(d.n, GemmForm::max_tile_n),
                waves = tiles_of(tiles, sms);
  const double used = static_cast<double>(d.m) * static_cast<double>(d.n) /
                      static_cast<double>(waves * sms * GemmForm::tile_m * GemmForm::max_tile_n);
  // cuBLASLt is three times slower where contiguous extents are not whole 16 bytes, although lines are.
  const bool whole = d.n % 8 == 0 && (d.k % 8 == 0 || (d.a_k != 1 && d.b_k != 1)) && (d.m % 8 == 0 || d.a_m != 1);
  return d.flops() >= least_flops && (used >= least_used || !whole);
}

std::optional<Match> match_gemm(const Work& work, const Machine& machine) {
  const auto* desc = std::get_if<DotDesc>(&work);
  if (!desc || !features_of(machine).warpgroups) return std::nullopt;
  DotDesc d;
  const std::optional<GemmForm> form = gemm_form(*desc, &d);
  if (!form) return std::nullopt;
  const int64_t tiles = tiles_of(d.m, form->tile_m) * tiles_of(d.n, form->tile_n);
  Match match;
  match.form = form->symbol();
  match.parameters = gemm_parameters(*form);
  match.entries = {{match.form, {std::min(tiles, machine.processors), 1, form->threads, form->shared_bytes()}}};
  match.label = fmt::format("weft gemm {}x{}", form->tile_m, form->tile_n);
  match.may_win = gemm_may_win(d, machine.processors);
  match.run = [form = *form, d](std::span<void* const> operands, void*, const Match::Launch& launch) {
    run(form, d, operands, launch);
  };
  return match;
}

}  // namespace weft::target::cuda
