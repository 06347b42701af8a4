// The kernels of handwritten/convolution_wgrad.h. A block's warps share out taps, halves of 64 output channels and
// positions; a warp has a tile of [taps][32 input channels, 32 output channels] of sums in registers. Eight positions
// are multiplied at a time: of the fragments of mma.sync a thread has positions t and t + 4 (t its number in a group of
// four), and channels that lie side by side, so that one load of 16 bytes fills registers of four fragments. Where a
// position of the output lies in the tile of the input is looked up in a table; a tap is a distance from there.
#include <fmt/format.h>

#include "target/cuda/handwritten/convolution_wgrad.h"

namespace weft::target::cuda {

namespace {

constexpr const char* text = R"cuda(
constexpr int places = tile_rows * tile_columns, reach_down = (tile_rows - 1) * stride_down + (taps_down - 1) * dilation_down + 1;
constexpr int reach_across = (tile_columns - 1) * stride_across + (taps_across - 1) * dilation_across + 1, taps = taps_down * taps_across;
constexpr int tiles_down = (out_rows + tile_rows - 1) / tile_rows, tiles_across = (out_columns + tile_columns - 1) / tile_columns;
constexpr int units = sets * halves, threads = units * parts * 32, channels = halves * 32, g_line = (channels + 8) * 4, x_line = 160, g_bytes = depth * g_line;
struct alignas(16) F4 { f32 x, y, z, w; };

// Tensor cores cut off what TF32 does not keep. The factor adds what they cut off on average (ln 2 of half a step), so
// that sums lean to neither side; what TF32 holds stays as it is.
FN u32 nearly_tf32(u32 v) { return bits(real(v) * 1.00033838f); }

extern "C" __global__ void __launch_bounds__(threads, 2) PARTS(const f32* const x, const f32* const g, f32* const sums, const int images) {
  extern __shared__ __align__(16) u8 memory[];
  const u32 ring = shared_address(memory);
  int* const where = (int*)(memory + shared_bytes - depth * 4);
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), lane = threadIdx.x % 32, row = lane / 4, third = lane % 4;
  const int unit = warp % units, part = warp / units, half = unit % halves;
  const int c0 = blockIdx.y % (in / 32) * 32, n0 = blockIdx.y / (in / 32) % (out / channels) * channels, tap0 = (blockIdx.y / (in / 32 * (out / channels)) * sets + unit / halves) * taps_of_warp;
  for (int p = threadIdx.x; p < depth; p += threads) where[p] = p < places ? (p / tile_columns * stride_down * reach_across + p % tile_columns * stride_across) * x_line : 0;
  const int tiles = images * (tiles_down * tiles_across), first = (int)((i64)tiles * blockIdx.x / gridDim.x), last = (int)((i64)tiles * (blockIdx.x + 1) / gridDim.x);

  const auto ask = [&](const int tile, const u32 to) {
    int thread = threadIdx.x;
    asm volatile("" : "+r"(thread));  // places are computed for each tile: kept, they would take the sums' registers
    const int y0 = tile / tiles_across % tiles_down * tile_rows, x0 = tile % tiles_across * tile_columns;
    const i64 image = tile / (tiles_down * tiles_across);
    const f32* const g_image = g + image * (out_rows * out_columns * out) + n0;
    const f32* const x_image = x + image * (in_rows * in_columns * in) + c0;
    constexpr int g_chunks = depth * channels / 4, x_chunks = reach_down * reach_across * 8;
    EACH (int i = 0; i < g_chunks; i += threads) {
      const int k = i + thread, p = k / (channels / 4), chunk = k % (channels / 4), down = y0 + p / tile_columns, across = x0 + p % tile_columns;
      const bool inside = p < places && down < out_rows && across < out_columns;
      if (k < g_chunks) copy_async(to + p * g_line + chunk * 16, g_image + (inside ? (down * out_columns + across) * out + chunk * 4 : 0), inside ? 16 : 0);
    }
    EACH (int i = 0; i < x_chunks; i += threads) {
      const int k = i + thread, p = k / 8, chunk = k % 8, down = y0 * stride_down - low_down + p / reach_across, across = x0 * stride_across - low_across + p % reach_across;
      const bool inside = down >= 0 && down < in_rows && across >= 0 && across < in_columns;
      if (k < x_chunks) copy_async(to + g_bytes + p * x_line + chunk * 16, x_image + (inside ? (down * in_columns + across) * in + chunk * 4 : 0), inside ? 16 : 0);
    }
  };

  int moved[taps_of_warp];
  EACH (int i = 0; i < taps_of_warp; ++i) {
    const int tap = imin(tap0 + i, taps - 1);
    moved[i] = (tap / taps_across * dilation_down * reach_across + tap % taps_across * dilation_across) * x_line;
  }
  f32 sum[taps_of_warp][2][4][4];
  EACH (int i = 0; i < taps_of_warp; ++i) EACH (int m = 0; m < 2; ++m) EACH (int j = 0; j < 4; ++j) EACH (int q = 0; q < 4; ++q) sum[i][m][j][q] = 0.0f;
  EACH (int s = 0; s < stages - 1; ++s) {
    if (first + s < last) ask(first + s, ring + s * stage_bytes);
    commit_copies();
  }
  int slot = 0, next = stages - 1;
  _Pragma("unroll 1") for (int tile = first; tile < last; ++tile) {
    wait_copies<stages - 2>();
    __syncthreads();
    if (tile + stages - 1 < last) ask(tile + stages - 1, ring + next * stage_bytes);
    commit_copies();
    const u8* const g_lines = memory + slot * stage_bytes + third * g_line + half * 128 + row * 16;
    const u8* const x_lines = memory + slot * stage_bytes + g_bytes + row * 16;
    _Pragma("unroll 1") for (int step = part * 8; step < depth; step += parts * 8) {
      const u8* const near = x_lines + where[step + third];
      const u8* const far = x_lines + where[step + 4 + third];
      const W16 b0 = *(const W16*)(g_lines + step * g_line), b1 = *(const W16*)(g_lines + (step + 4) * g_line);
      const u32 b[2][4] = {{nearly_tf32(b0.x), nearly_tf32(b0.y), nearly_tf32(b0.z), nearly_tf32(b0.w)}, {nearly_tf32(b1.x), nearly_tf32(b1.y), nearly_tf32(b1.z), nearly_tf32(b1.w)}};
      EACH (int i = 0; i < taps_of_warp; ++i) {
        const W16 a0 = *(const W16*)(near + moved[i]), a1 = *(const W16*)(far + moved[i]);
        const u32 a[2][4] = {{nearly_tf32(a0.x), nearly_tf32(a0.y), nearly_tf32(a1.x), nearly_tf32(a1.y)}, {nearly_tf32(a0.z), nearly_tf32(a0.w), nearly_tf32(a1.z), nearly_tf32(a1.w)}};
        EACH (int m = 0; m < 2; ++m) EACH (int j = 0; j < 4; ++j) mma_tf32(sum[i][m][j], a[m], b[0][j], b[1][j]);
      }
    }
    slot = slot == stages - 1 ? 0 : slot + 1, next = next == stages - 1 ? 0 : next + 1;
  }
  wait_copies<0>();

  f32* const shared = (f32*)memory + unit * (taps_of_warp * 1024) + lane;
  _Pragma("unroll 1") for (int p = 1; p < parts; ++p) {
    __syncthreads();
    if (part == p) EACH (int i = 0; i < taps_of_warp; ++i) EACH (int m = 0; m < 2; ++m) EACH (int j = 0; j < 4; ++j) EACH (int q = 0; q < 4; ++q) shared[(i * 32 + m * 16 + j * 4 + q) * 32] = sum[i][m][j][q];
    __syncthreads();
    if (part == 0) EACH (int i = 0; i < taps_of_warp; ++i) EACH (int m = 0; m < 2; ++m) EACH (int j = 0; j < 4; ++j) EACH (int q = 0; q < 4; ++q) sum[i][m][j][q] += shared[(i * 32 + m * 16 + j * 4 + q) * 32];
  }
  if (part > 0) return;
  EACH (int i = 0; i < taps_of_warp; ++i) EACH (int m = 0; m < 2; ++m) EACH (int r = 0; r < 2; ++r) {
    f32* const to = sums + (((i64)blockIdx.x * taps + tap0 + i) * in + c0 + row * 4 + m * 2 + r) * out + n0 + half * 32 + third * 8;
    if (tap0 + i < taps) EACH (int q = 0; q < 2; ++q) *(F4*)(to + q * 4) = {sum[i][m][0][r * 2 + q], sum[i][m][1][r * 2 + q], sum[i][m][2][r * 2 + q], sum[i][m][3][r * 2 + q]};
  }
}

// Four results a thread of the first warp, for which each of eight warps adds up every eighth part.
extern "C" __global__ void __launch_bounds__(256) FOLD(const f32* const sums, f32* const result, const int count) {
  __shared__ F4 all[8][32];
  const int word = blockIdx.x * 32 + threadIdx.x % 32, line = threadIdx.x / 32;
  const auto add = [](F4& to, const F4 v) { to.x += v.x, to.y += v.y, to.z += v.z, to.w += v.w; };
  F4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
  _Pragma("unroll 4") for (int k = line; k < count; k += 8) add(sum, ((const F4*)sums)[(i64)k * (taps * in * out / 4) + word]);
  all[line][threadIdx.x % 32] = sum;
  __syncthreads();
  if (line > 0) return;
  EACH (int k = 1; k < 8; ++k) add(sum, all[k][threadIdx.x]);
  f32* const to = result + (i64)(word * 4 % out) * (taps * in) + word * 4 / out;
  to[0] = sum.x, to[taps * in] = sum.y, to[2 * taps * in] = sum.z, to[3 * taps * in] = sum.w;
}
)cuda";

}  // namespace

RenderedWeightGradient render_weight_gradient(const WeightGradientForm& f) {
  const std::string parts = f.symbol(), fold = parts + "_fold";
  std::string t = fmt::format("#define PARTS {}\n#define FOLD {}\n", parts, fold);
  const auto constants = [&](const char* down, const char* across, const WeightGradientForm::Pair& p) {
    t += fmt::format("constexpr int {} = {}, {} = {};\n", down, p[0], across, p[1]);
  };
  constants("in_rows", "in_columns", f.input);
  constants("out_rows", "out_columns", f.output);
  constants("taps_down", "taps_across", f.kernel);
  constants("stride_down", "stride_across", f.stride);
  constants("dilation_down", "dilation_across", f.dilation);
  constants("low_down", "low_across", f.low);
  constants("tile_rows", "tile_columns", f.tile);
  t += fmt::format(
      "constexpr int in = {}, out = {}, taps_of_warp = {}, sets = {}, halves = {}, parts = {}, depth = {}, stages = "
      "{}, stage_bytes = {}, shared_bytes = {};\n",
      f.in, f.out, f.taps, f.sets, f.halves, f.parts, f.depth(), f.stages, f.stage_bytes, f.shared_bytes);
  t += text;
  return {{t, parts, static_cast<int>(f.threads()), 1, f.shared_bytes}, {"", fold, 256, 1, 0}};
}

}  // namespace weft::target::cuda
