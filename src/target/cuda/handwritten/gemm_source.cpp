// The kernel of products whose epilogue costs as much as a good part of their multiplications (handwritten/gemm.h).
// Three groups of four warps:
//   groups 1, 2  multiply: 64 rows of the tile each, all sums in registers; at the end of K they leave them in shared
//                memory, rounded, and begin the next tile. The warp that is the last
//                to have read a piece of A and B asks for the piece that takes its place in the ring; the copy engine
//                  brings it (tensor maps, swizzled by 128 bytes)
//   group 0      finishes tiles: a row a warp, eight elements a thread; activation, slope, residual, stores of 16 bytes
// Barriers in shared memory count pieces that have come; named barriers hand halves of the tile over and back.
#include <fmt/format.h>

#include "base/error.h"
#include "target/cuda/handwritten/gemm.h"

namespace weft::target::cuda {

using kernel::Activation;
using kernel::PreActivation;

namespace {

constexpr int64_t stages = 3,
                  line_bytes = 2 * product_columns +
                               16;  // of the ring; of a row of the rounded tile: rows lie in different banks
constexpr int64_t stage_bytes = 2 * (product_rows + product_columns) * product_depth,
                  tile_bytes = product_rows * line_bytes;
constexpr int64_t barrier_bytes = (stages * 12 + 15) / 16 * 16,
                  sums_bytes =
                      2 * 4 * 4 * product_columns;  // barriers and counts; two positions for the sums of four warps
constexpr int64_t rows_together =
    16;  // of tiles that take turns: multiprocessors then read the same lines of A and columns of B at the same time

constexpr const char* helpers = R"cuda(
struct alignas(128) TensorMap { u64 v[16]; };
FN void barrier_init(u32 at, u32 count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(at), "r"(count) : "memory"); }
FN void barrier_expect(u32 at, u32 bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(at), "r"(bytes) : "memory"); }
FN void barrier_wait(u32 at, u32 parity) {
  u32 done;
  do asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(at), "r"(parity) : "memory");
  while (!done);
}
FN void prefetch_box(const TensorMap* map, int x, int y) { asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" : : "l"(map), "r"(x), "r"(y) : "memory"); }
FN void copy_box(u32 to, const TensorMap* map, int x, int y, u32 barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
               : : "r"(to), "l"(map), "r"(x), "r"(y), "r"(barrier) : "memory");
}
// A group that multiplies and the one that finishes: one side waits for the other, which goes on.
FN void handed_over(int barrier) { asm volatile("bar.sync %0, 256;" : : "r"(barrier) : "memory"); }
FN void hand_over(int barrier) { asm volatile("bar.arrive %0, 256;" : : "r"(barrier) : "memory"); }
// How many have counted before.
FN u32 count_shared(u32 at) { u32 r; asm volatile("atom.acq_rel.cta.shared::cta.add.u32 %0, [%1], 1;" : "=r"(r) : "r"(at) : "memory"); return r; }
FN void store_matrices(u32 to, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" : : "r"(to), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
FN void store_shared_4(u32 to, u32 v) { asm volatile("st.shared.u32 [%0], %1;" : : "r"(to), "r"(v) : "memory"); }
FN W16 load_shared_16(u32 from) {
  W16 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(from) : "memory");
  return v;
}
FN W16 load_once(const void* from, bool wanted) {
  W16 v = {0u, 0u, 0u, 0u};
  asm volatile("{.reg .pred p; setp.ne.b32 p, %5, 0; @p ld.global.cs.v4.u32 {%0, %1, %2, %3}, [%4];}" : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w) : "l"(from), "r"((int)wanted));
  return v;
}
FN void store_past(void* to, W16 v, bool wanted) {
  asm volatile("{.reg .pred p; setp.ne.b32 p, %5, 0; @p st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};}" : : "l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"((int)wanted) : "memory");
}
// x s, where s = 1 / (1 + exp(-2 sqrt(2 / pi) (x + 0.044715 x^3))), is tanh's gelu; its slope: s + s (1 - s) x times
// the derivative of the exponent.
FN f32 sigmoid_of_gelu(f32 x) { return frecip(1.0f + fexp2(x * fmaf(x * x, -0.1029432407f, -2.3022081984f))); }
FN f32 gelu(f32 x) { return x * sigmoid_of_gelu(x); }
FN f32 slope_of_gelu(f32 x) {
  const f32 s = sigmoid_of_gelu(x);
  return fmaf(fmaf(-s, s, s), x * fmaf(x * x, 0.2140644489f, 1.5957691216f), s);
}
struct Tile { int row, column; };
FN Tile tile_at(int number, int tiles_down, int tiles_across, int together, int columns) {
  const int strip = together * tiles_across, first = number / strip * together, height = imin(together, tiles_down - first), left = number % strip;
  return {(first + left % height) * 128, left / height * columns};
}
)cuda";

constexpr const char* pairs_of_bf16 = R"cuda(
FN u32 pair(f32 low, f32 high) { u32 r; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low)); return r; }
FN f32 low(u32 v) { return real(v << 16); }
FN f32 high(u32 v) { return real(v & 0xffff0000u); }
)cuda";
constexpr const char* pairs_of_f16 = R"cuda(
FN u32 pair(f32 low, f32 high) { u32 r; asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low)); return r; }
FN f32 low(u32 v) { return from_f16((u16)v); }
FN f32 high(u32 v) { return from_f16((u16)(v >> 16)); }
)cuda";

constexpr const char* epilogues = R"cuda(
FN u32 gelus(u32 v) { return pair(gelu(low(v)), gelu(high(v))); }
FN u32 times_slopes(u32 v, u32 z) { return pair(low(v) * slope_of_gelu(low(z)), high(v) * slope_of_gelu(high(z))); }
FN u32 positives(u32 v) { return pair(fmaximum(low(v), 0.0f), fmaximum(high(v), 0.0f)); }
FN u32 totals(u32 v, u32 z) { return pair(low(v) + low(z), high(v) + high(z)); }
)cuda";

/// The boxes of one side's piece at (first, asked_k): one where lines run along k; else one for each 64 elements.
std::string boxes(const char* map, bool turned, const char* first, const std::string& to, int64_t extent) {
  if (!turned) return fmt::format("copy_box({}, &{}, asked_k, {}, full + slot * 8);", to, map, first);
  return fmt::format(
      "EACH (int i = 0; i < {}; ++i) copy_box({} + i * 8192, &{}, {} + i * 64, asked_k, full + slot * 8);", extent / 64,
      to, map, first);
}

std::string multiply(const ProductForm& form) {
  const auto matrix = [](bool turned) {
    return fmt::format("{:#x}ull", static_cast<uint64_t>(turned ? product_depth * 128 / 16 : 1) << 16 |
                                       uint64_t{64} << 32 | uint64_t{1} << 62);
  };
  const int64_t sums = form.columns / 2;
  std::string registers, operands;
  for (int64_t r = 0; r < sums; ++r) {
    registers += fmt::format("{}%{}", r ? ", " : "", r);
    operands += fmt::format("{}\"+f\"(sum[{}][{}])", r ? ", " : "", r / 4, r % 4);
  }
  const char* type = form.dtype == bfloat16 ? "bf16" : "f16";
  std::string text = fmt::format(
      "      const u64 a_matrix = (u64)((piece + half * 8192) >> 4) | {}, b_matrix = (u64)((piece + {}) >> 4) | {};\n",
      matrix(form.a_turned), 2 * product_rows * product_depth, matrix(form.b_turned));
  text += fmt::format(
      "      EACH (int step = 0; step < {}; ++step) asm volatile(\"{{.reg .pred p; setp.ne.b32 p, %{}, 0; "
      "wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{} {{{}}}, %{}, %{}, p, 1, 1, {}, {};}}\" : {} : \"l\"(a_matrix + "
      "step * {}), \"l\"(b_matrix + step * {}), "
      "\"r\"(k + step) : \"memory\");\n",
      product_depth / 16, sums + 2, form.columns, type, type, registers, sums, sums + 1, form.a_turned ? 1 : 0,
      form.b_turned ? 1 : 0, operands, form.a_turned ? 128 : 2, form.b_turned ? 128 : 2);
  return text;
}

bool reads(const ProductForm& form) { return form.residual || form.argument == PreActivation::derivative; }

/// Four warps finish a tile, one half after the other: each has every fourth row, eight of them in a part. Four rows
/// are on their way from shared memory, and eight of what else is read, over the borders of halves and tiles.
std::string finish(const ProductForm& form) {
  const char* f = form.residual                                ? "totals"
                  : form.argument == PreActivation::derivative ? "times_slopes"
                  : form.activation == Activation::gelu_tanh   ? "gelus"
                  : form.activation == Activation::relu        ? "positives"
                                                               : nullptr;
  std::string t = fmt::format(
      "        if (part % 2 == 0) {{\n          handed_over(1 + part / 2);\n          EACH (int i = 0; i < 4; ++i) "
      "v[i] = load_shared_16(from + i * {});\n        }}\n",
      4 * line_bytes);
  if (reads(form)) t += "        if (part == 3) begin(next, number + gridDim.x < tiles);\n";
  t += "        EACH (int i = 0; i < 8; ++i) {\n          W16& x = v[i % 4];\n          const bool there = inside && "
       "part * 32 + i * 4 < rows;\n";
  if (form.argument == PreActivation::stored)
    t += "          store_past(also_to, x, there);\n          also_to += down;\n";
  for (const char* w : {"x", "y", "z", "w"})
    if (f) t += fmt::format("          x.{0} = {1}(x.{0}{2});\n", w, f, reads(form) ? fmt::format(", z[i].{}", w) : "");
  if (reads(form)) t += "          z[i] = ahead();\n";
  if (form.sums)
    for (const auto& [w, at] : {std::pair{"x", 0}, {"y", 2}, {"z", 4}, {"w", 6}})
      t += fmt::format("          total[{}] += low(x.{}), total[{}] += high(x.{});\n", at, w, at + 1, w);
  return t + fmt::format(
                 "          store_past(to, x, there);\n          to += down;\n          if (part % 2 == 0 || i < 4) x "
                 "= load_shared_16(from + (i + 4) * {0});\n        }}\n        from += 8 * {0};\n",
                 4 * line_bytes);
}

/// What is read beside the product, eight rows ahead.
std::string read_ahead(const ProductForm& form) {
  return fmt::format(
      "    const u16* further = other;\n    int left = 0;\n"
      "    const auto begin = [&](const Tile tile, const bool exists) {{\n      const int column = tile.column + lane "
      "* 8;\n      further = other + (i64)(tile.row + warp) * stride + column;\n"
      "      left = exists && column < n && lane < {} ? imin(128, m - tile.row) - warp : 0;\n    }};\n"
      "    const auto ahead = [&] {{\n      const W16 row = load_once(further, left > 0);\n      further += 4 * "
      "stride, left -= 4;\n      return row;\n    }};\n"
      "    W16 z[8];\n    begin(next, blockIdx.x < tiles);\n    EACH (int i = 0; i < 8; ++i) z[i] = ahead();\n",
      form.columns / 8);
}

/// The sums of the four warps, in turns in two positions: nobody writes to one before all have read it.
std::string add_up(const ProductForm& form) {
  return fmt::format(
      "      const u32 parts = full + {3} + odd * {0};\n      odd ^= 1;\n"
      "      EACH (int i = 0; i < 8; i += 4) store_shared(parts + (warp * {1} + lane * 8 + i) * 4, {{bits(total[i]), "
      "bits(total[i + 1]), bits(total[i + 2]), bits(total[i + 3])}});\n"
      "      asm volatile(\"bar.sync 5, 128;\" : : : \"memory\");\n"
      "      EACH (int i = 0; i < 2; ++i) {{\n        const int at = warp * 32 + lane + i * 128;\n        f32 all = "
      "0.0f;\n"
      "        EACH (int w = 0; w < 4; ++w) all += real(load_shared(parts + (w * {1} + at) * 4));\n"
      "        if (at < {2} && tile.column + at < n) sums[(i64)(tile.row / 128) * n + tile.column + at] = all;\n      "
      "}}\n",
      sums_bytes / 2, product_columns, form.columns, barrier_bytes);
}

}  // namespace

std::string ProductForm::symbol() const {
  std::string out = dtype == bfloat16 ? "product_bf16" : "product_f16";
  if (a_turned) out += "_a_turned";
  if (b_turned) out += "_b_turned";
  if (columns != product_columns) out += fmt::format("_{}", columns);
  if (bias) out += "_bias";
  if (activation != Activation::none) out += std::string("_") + name(activation);
  if (residual) out += "_residual";
  if (sums) out += "_sums";
  if (argument == PreActivation::stored) out += "_written";
  if (argument == PreActivation::derivative) out += "_slope";
  return out;
}

Rendered render_product(const ProductForm& form) {
  std::string t = std::string(helpers) + (form.dtype == bfloat16 ? pairs_of_bf16 : pairs_of_f16) + epilogues;
  t += fmt::format(
      "extern \"C\" __global__ void __launch_bounds__(384, 1) {}(const __grid_constant__ TensorMap a, const "
      "__grid_constant__ TensorMap b, const __grid_constant__ TensorMap read, u16* const c, u16* const other, "
      "const u16* const bias, f32* const sums, const int m, const int n, const int depth, const i64 stride) {{\n",
      form.symbol());
  t += "  extern __shared__ u8 memory[];\n";
  t += fmt::format(
      "  const u32 ring = shared_address(memory) + 1023u & ~1023u, rounded = ring + {}, full = rounded + {}, counts = "
      "full + {};\n",
      stages * stage_bytes, tile_bytes, stages * 8);
  t += fmt::format(
      "  const int group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0), warp = __shfl_sync(0xffffffffu, threadIdx.x "
      "/ 32 % 4, 0), lane = threadIdx.x % 32;\n"
      "  const int tiles_down = (m + 127) / 128, tiles_across = (n + {}) / {}, tiles = tiles_down * tiles_across;\n"
      "  if (threadIdx.x == 0) {{\n"
      "    EACH (int s = 0; s < {}; ++s) barrier_init(full + s * 8, 1), store_shared_4(counts + s * 4, 0u);\n"
      "    asm volatile(\"fence.mbarrier_init.release.cluster;\" : : : \"memory\");\n"
      "  }}\n"
      "  fence_for_wgmma();\n"
      "  __syncthreads();\n",
      form.columns - 1, form.columns, stages);
  const std::string tile =
      fmt::format("tile_at(number, tiles_down, tiles_across, {}, {})", rows_together, form.columns);
  const std::string tiles = "for (int number = blockIdx.x; number < tiles; number += gridDim.x) {\n";
  const std::string next = fmt::format("slot = slot == {} ? 0 : slot + 1, parity ^= slot == 0;\n", stages - 1);

  t += "  if (group == 0) {\n    asm volatile(\"setmaxnreg.dec.sync.aligned.u32 120;\");\n    if (blockIdx.x < tiles) "
       "hand_over(3), hand_over(4);\n";
  t += "    const auto place = [&](const int number) { return " + tile +
       "; };\n    Tile next = place(blockIdx.x);\n    const i64 down = 4 * stride;\n";
  if (reads(form)) t += read_ahead(form);
  if (form.sums) t += "    u32 odd = 0;\n";
  t += "    " + tiles +
       "      const Tile tile = next;\n      next = place(number + gridDim.x);\n      const int column = tile.column + "
       "lane * 8, rows = m - tile.row - warp;\n";
  t += fmt::format(
      "      const bool inside = column < n && lane < {};\n      const i64 at = (i64)(tile.row + warp) * stride + "
      "column;\n      u16* to = c + at;\n      u32 from = rounded + warp * {} + lane * 16;\n      W16 v[4];\n",
      form.columns / 8, line_bytes);
  if (form.argument == PreActivation::stored) t += "      u16* also_to = other + at;\n";
  if (form.sums) t += "      f32 total[8]{};\n";
  t += "      _Pragma(\"unroll 1\") for (int part = 0; part < 4; ++part) {\n" + finish(form);
  t += "        if (part % 2 == 1 && number + gridDim.x < tiles) hand_over(3 + part / 2);\n      }\n" +
       (form.sums ? add_up(form) : "") + "    }\n";

  t += "  } else {\n    asm volatile(\"setmaxnreg.inc.sync.aligned.u32 192;\");\n    const int half = group - 1;\n    "
       "f32 sum[32][4];\n    EACH (int j = " +
       std::to_string(form.columns / 8) + "; j < 32; ++j) EACH (int q = 0; q < 4; ++q) sum[j][q] = 0.0f;\n";
  t += fmt::format("    const u32 to = rounded + (half * 64 + warp * 16 + lane % 16) * {} + lane / 16 * 16;\n",
                   line_bytes);
  // The next piece that nobody has asked for.
  t += "    int asked = blockIdx.x, asked_k = 0;\n    const auto place = [&](const int number) { return " + tile +
       "; };\n    Tile there = place(asked);\n";
  t += fmt::format(
      "    const auto ask = [&](const u32 slot) {{\n      const u32 piece = ring + slot * {};\n      "
      "barrier_expect(full + slot * 8, {});\n      {}\n      {}\n{}    }};\n",
      stage_bytes, stage_bytes, boxes("a", form.a_turned, "there.row", "piece", product_rows),
      boxes("b", form.b_turned, "there.column", fmt::format("piece + {}", 2 * product_rows * product_depth),
            product_columns),
      reads(form) ? "      if (asked_k == 0) prefetch_box(&read, there.column, there.row);\n" : "");
  t += fmt::format(
      "    const auto asked_for = [&] {{\n      asked_k += {};\n      if (asked_k >= depth) asked_k = 0, asked += "
      "gridDim.x, there = place(asked);\n    }};\n",
      product_depth);
  t += "    const auto has_read = [&](const u32 slot) {\n      if (asked >= tiles) return;\n      if (lane == 0 && "
       "count_shared(counts + slot * 4) % 8 == 7) ask(slot);\n      asked_for();\n    };\n";
  t += fmt::format(
      "    for (u32 slot = 0; slot < {} && asked < tiles; ++slot) {{\n      if (half == 0 && warp == 0 && lane == 0) "
      "ask(slot);\n      asked_for();\n    }}\n    u32 slot = 0, parity = 0;\n    ",
      stages);
  t += tiles + "      u32 before = 0;\n";
  t += fmt::format(
      "      for (int k = 0; k < depth; k += {}) {{\n      barrier_wait(full + slot * 8, parity);\n      const u32 "
      "piece = ring + slot * {};\n      wgmma_fence();\n",
      product_depth, stage_bytes);
  t += multiply(form);
  t += "      wgmma_commit();\n      wgmma_wait<1>();\n      if (k > 0) has_read(before);\n      before = slot;\n     "
       " " +
       next + "      }\n";
  t += "      const Tile tile = place(number);\n";
  if (form.bias)
    t += "      u32 added[32]{};\n      EACH (int j = 0; j < " + std::to_string(form.columns / 8) +
         "; ++j) {\n        const int column = tile.column + j * 8 + lane % 4 * 2;\n        added[j] = column < n ? "
         "*(const u32*)(bias + column) : 0u;\n      }\n";
  t += "      wgmma_wait<0>();\n      has_read(before);\n";
  if (form.bias)
    t += "      EACH (int j = 0; j < " + std::to_string(form.columns / 8) +
         "; ++j) sum[j][0] += low(added[j]), sum[j][1] += high(added[j]), sum[j][2] += low(added[j]), sum[j][3] += "
         "high(added[j]);\n";
  t += "      handed_over(3 + half);\n      EACH (int j = 0; j < " + std::to_string(form.columns / 8) +
       "; j += 2)\n"
       "        store_matrices(to + j * 16, pair(sum[j][0], sum[j][1]), pair(sum[j][2], sum[j][3]), pair(sum[j + "
       "1][0], sum[j + 1][1]), pair(sum[j + 1][2], sum[j + 1][3]));\n"
       "      hand_over(1 + half);\n    }\n  }\n}\n";
  return {t, form.symbol(), 384, 1,
          1024 + stages * stage_bytes + tile_bytes + barrier_bytes + (form.sums ? sums_bytes : 0)};
}

}  // namespace weft::target::cuda
