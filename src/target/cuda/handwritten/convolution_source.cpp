// The kernel of convolution.h. Each group of four warps goes through tiles of its own, 32 channels at a time, in turns
// of two slots of shared memory: while the tensor cores multiply one slot, tap by tap, the group's threads put what has
// come from memory into the other one and ask for what follows. In a slot four channels of a position lie side by side,
// positions one after the other and the next four channels in another plane: rows of eight positions are what wgmma
// reads as one (no swizzle), from wherever a tap begins.
#include <fmt/format.h>

#include "target/cuda/handwritten/convolution.h"

namespace weft::target::cuda {

namespace {

constexpr const char* declarations = R"cuda(
constexpr int taps = taps_down * taps_across, reach = (taps_down - 1) * dilation_down * line + (taps_across - 1) * dilation_across;
constexpr int read = 128 + reach, pieces = (read + 15) / 16, slices = in / 32, slot_bytes = 8 * plane_bytes, threads = groups * 128;

// Tensor cores cut off what TF32 does not keep. The factor adds what they cut off on average (ln 2 of half a step), so
// that sums lean to neither side; what TF32 holds stays as it is.
FN u32 nearly_tf32(u32 v) { return bits(real(v) * 1.00033838f); }
FN W16 nearly_tf32(W16 v) { return {nearly_tf32(v.x), nearly_tf32(v.y), nearly_tf32(v.z), nearly_tf32(v.w)}; }
FN W16 read_if(const void* from, bool wanted) {
  W16 v = {0u, 0u, 0u, 0u};
  asm volatile("{.reg .pred p; setp.ne.b32 p, %5, 0; @p ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];}" : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w) : "l"(from), "r"((int)wanted));
  return v;
}
// The row and column of an image in which a place of the long line is.
struct Place { int image, row, column; };
FN Place place_at(const u32 number) {
  const u32 image = number / (lines * line), left = number % (lines * line);
  return {(int)image, (int)(left / line), (int)(left % line)};
}
)cuda";

constexpr const char* before = R"cuda(
  extern __shared__ __align__(128) u8 memory[];
  const int group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0), thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32, chunk = thread % 8, first = thread / 8;
  const u32 weights = shared_address(memory), ring = weights + weight_bytes + group * (2 * slot_bytes), to = ring + chunk * plane_bytes + first * 16;
  const int tiles = (images * (lines * line) + 127) / 128, stride = gridDim.x * groups;
  W16 coming[pieces];
  int asked = blockIdx.x * groups + group, asked_slice = 0;
  const auto ask = [&](const int k) {
    const Place p = place_at(asked * 128 + first + k * 16);
    const int row = p.row - low_down, column = p.column - low_across;
    const bool inside = first + k * 16 < read && p.image < images && row >= 0 && row < in_rows && column >= 0 && column < in_columns;
    coming[k] = read_if(x + (((i64)p.image * in_rows + row) * in_columns + column) * in + asked_slice * 32 + chunk * 4, inside);
  };
  const auto asked_for = [&] {
    if (++asked_slice == slices) asked_slice = 0, asked += stride;
  };
  const auto put = [&](const int k, const u32 slot) {
    if (first + k * 16 < read) store_shared(to + slot * slot_bytes + k * 256, nearly_tf32(coming[k]));
  };
  EACH (int k = 0; k < pieces; ++k) ask(k);
  asked_for();
  // [tap][four input channels][output channel]; two threads side by side read 32 bytes of a line.
  _Pragma("unroll 6") for (int k = threadIdx.x; k < taps * in / 4 * out; k += threads) {
    const int n = k / 2 % out, c = k / 2 / out * 2 + k % 2;
    store_shared(weights + (c * out + n) * 16, nearly_tf32(*(const W16*)(w + (i64)n * (taps * in) + c * 4)));
  }
  EACH (int k = 0; k < pieces; ++k) put(k, 0), ask(k);
  asked_for();
  fence_for_wgmma();
  __syncthreads();
  f32 sum[2][out / 8][4];
  u32 slot = 0;
  int slice = 0;
  _Pragma("unroll 1") for (int tile = blockIdx.x * groups + group; tile < tiles;) {
    fence_for_wgmma();
    asm volatile("bar.sync %0, 128;" : : "r"(group + 1) : "memory");
    wgmma_fence();
    const u64 a = (u64)((ring + slot * slot_bytes) >> 4) | (u64)(plane_bytes / 16) << 16 | 8ull << 32, b = (u64)((weights + slice * (8 * out * 16)) >> 4) | (u64)out << 16 | 8ull << 32;
    EACH (int tap = 0; tap < taps; ++tap) {
      const int away = tap / taps_across * dilation_down * line + tap % taps_across * dilation_across;
)cuda";

constexpr const char* after = R"cuda(
      EACH (int k = tap * pieces / taps; k < (tap + 1) * pieces / taps; ++k) put(k, slot ^ 1u), ask(k);
    }
    wgmma_commit();
    asked_for();
    slot ^= 1u;
    wgmma_wait<0>();
    if (++slice < slices) continue;
    EACH (int m = 0; m < 2; ++m) EACH (int h = 0; h < 2; ++h) {
      const Place p = place_at(tile * 128 + m * 64 + warp * 16 + h * 8 + lane / 4);
      f32* const at = y + (((i64)p.image * out_rows + p.row) * out_columns + p.column) * out + lane % 4 * 2;
      if (p.image < images && p.row < out_rows && p.column < out_columns) EACH (int j = 0; j < out / 8; ++j) *(W8*)(at + j * 8) = {bits(sum[m][j][h * 2]), bits(sum[m][j][h * 2 + 1])};
    }
    slice = 0, tile += stride;
  }
}
)cuda";

}  // namespace

Rendered render_convolution(const ConvolutionForm& f) {
  std::string t;
  const auto constants = [&](const char* down, const char* across, const ConvolutionForm::Pair& p) {
    t += fmt::format("constexpr int {} = {}, {} = {};\n", down, p[0], across, p[1]);
  };
  constants("in_rows", "in_columns", f.input);
  constants("out_rows", "out_columns", f.output);
  constants("taps_down", "taps_across", f.kernel);
  constants("dilation_down", "dilation_across", f.dilation);
  constants("low_down", "low_across", f.low);
  constants("lines", "line", f.lines);
  t += fmt::format("constexpr int in = {}, out = {}, groups = {}, plane_bytes = {}, weight_bytes = {};\n", f.in, f.out,
                   f.groups, f.plane_bytes, f.weight_bytes());
  t += declarations;
  t += fmt::format(
      "extern \"C\" __global__ void __launch_bounds__(threads, 1) {}(const f32* const x, const f32* const w, f32* "
      "const y, const int images) {{",
      f.symbol());
  t += before;
  const int64_t sums = f.out / 2;
  std::string registers, operands;
  for (int64_t r = 0; r < sums; ++r) {
    registers += fmt::format("{}%{}", r ? ", " : "", r);
    operands += fmt::format("{}\"+f\"(sum[m][{}][{}])", r ? ", " : "", r / 4, r % 4);
  }
  t += fmt::format(
      "      EACH (int step = 0; step < 4; ++step) EACH (int m = 0; m < 2; ++m) asm volatile(\"{{.reg .pred p; "
      "setp.ne.b32 p, %{}, 0; wgmma.mma_async.sync.aligned.m64n{}k8.f32.tf32.tf32 "
      "{{{}}}, %{}, %{}, p, 1, 1;}}\" : {} : \"l\"(a + (2 * step * (plane_bytes / 16) + m * 64 + away)), \"l\"(b + "
      "(tap * (in / 4) + 2 * step) * out), \"r\"(slice + tap + step) : \"memory\");",
      sums + 2, f.out, registers, sums, sums + 1, operands);
  t += after;
  return {t, f.symbol(), static_cast<int>(f.groups * 128), 1, f.shared_bytes};
}

}  // namespace weft::target::cuda
