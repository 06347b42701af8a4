// The gradient of a convolution's weights in TF32 on tensor cores (mma.sync, from sm_80 on): few results, each a sum
// over all pixels of all images. A GEMM with split K:
//
//    dw[tap, in, out] = Σ over pixels of x[pixel · stride + tap · dilation - pad, in] · g[pixel, out]
//                       M = taps x in,  N = out,  K = pixels
//
// Two kernels. The first has a block for each part of the images (grid x) and for each set of taps and channels (grid
// y); a block writes sums of its part to a workspace [part][tap][in][out]. The second adds the parts in a fixed order,
// so the bits are the same in every run.
//
// A block goes through tiles of an image: tile_rows x tile_columns pixels of g, and the pixels of x that their taps
// read. cp.async brings both into a pipeline of `stages` stages; every tap reads the same bytes of x at its own
// distance. The warps share out taps (`sets`), 64 output channels (`halves` of 32) and the pixels of the tile
// (`parts`); each keeps [taps_of_warp][32 input channels, 32 output channels] of sums in registers. In the end the
// `parts` are added up through shared memory.
//
// Shared memory:
//
//   stage 0     g: depth pixels of (32 halves + 8) floats │ x: reach_rows x reach_columns pixels of 40 floats
//   stage 1     …                                            (8 floats of padding: pixels begin in different banks)
//   offsets     depth ints, at the end: where the pixel of x that tap 0 reads lies for each pixel of g
//
// Fragments of mma.m16n8k8: thread t of four has pixels t and t + 4 of eight. The channels of a fragment are those that
// lie side by side in memory, so that one load of 16 bytes fills registers of four fragments; which channel a row of
// the product is makes no difference to the sums, and the stores undo it.
//
// Parameters, defined in front of this file (convolution_wgrad.cpp):
//   int in_rows, in_columns, out_rows, out_columns, filter_rows, filter_columns, stride_rows, stride_columns,
//       dilation_rows, dilation_columns, pad_rows, pad_columns, tile_rows, tile_columns
//   int in, out                              channels, multiples of 32
//   int taps_of_warp, sets, halves, parts    how the work is split over warps
//   int depth                                pixels of a tile, rounded up to whole steps of 8 for each part
//   int stages, stage_bytes, shared_bytes
#include "target/cuda/codegen/text/prelude.cuh"
#include "target/cuda/handwritten/convolution/tf32.cuh"

constexpr int pixels = tile_rows * tile_columns, taps = filter_rows * filter_columns;
constexpr int reach_rows = (tile_rows - 1) * stride_rows + (filter_rows - 1) * dilation_rows + 1;
constexpr int reach_columns = (tile_columns - 1) * stride_columns + (filter_columns - 1) * dilation_columns + 1;
constexpr int tiles_down = (out_rows + tile_rows - 1) / tile_rows,
              tiles_across = (out_columns + tile_columns - 1) / tile_columns;
constexpr int units = sets * halves, threads = units * parts * 32,
              channels = halves * 32;  // output channels of a block
constexpr int g_line = (channels + 8) * 4, x_line = (32 + 8) * 4, g_bytes = depth * g_line;  // bytes
static_assert(stage_bytes == g_bytes + reach_rows * reach_columns * x_line,
              "convolution_wgrad.cpp has another layout of a stage");
struct alignas(16) F4 {
  f32 x, y, z, w;
};

// x [images, in_rows, in_columns, in], g [images, out_rows, out_columns, out], sums [gridDim.x, taps, in, out].
extern "C" __global__ void __launch_bounds__(threads, 2)
    KERNEL(const f32* const x, const f32* const g, f32* const sums, const int images) {
  extern __shared__ __align__(16) u8 memory[];
  const u32 ring = shared_address(memory);
  int* const offsets = (int*)(memory + shared_bytes - depth * 4);
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), lane = threadIdx.x % 32, row = lane / 4,
            third = lane % 4;
  const int unit = warp % units, part = warp / units, half = unit % halves;
  const int c0 = blockIdx.y % (in / 32) * 32, n0 = blockIdx.y / (in / 32) % (out / channels) * channels,
            tap0 = (blockIdx.y / (in / 32 * (out / channels)) * sets + unit / halves) * taps_of_warp;
  for (int p = threadIdx.x; p < depth; p += threads)
    offsets[p] =
        p < pixels ? (p / tile_columns * stride_rows * reach_columns + p % tile_columns * stride_columns) * x_line : 0;
  const int tiles = images * (tiles_down * tiles_across), first = (int)((i64)tiles * blockIdx.x / gridDim.x),
            last = (int)((i64)tiles * (blockIdx.x + 1) / gridDim.x);

  // --- Copies: a tile into a stage ---
  const auto copy = [&](const int tile, const u32 to) {
    int thread = threadIdx.x;
    asm volatile(""
                 : "+r"(thread));  // pixels are computed again for each tile: kept, they would take the sums' registers
    const int y0 = tile / tiles_across % tiles_down * tile_rows, x0 = tile % tiles_across * tile_columns;
    const i64 image = tile / (tiles_down * tiles_across);
    const f32* const g_image = g + image * (out_rows * out_columns * out) + n0;
    const f32* const x_image = x + image * (in_rows * in_columns * in) + c0;
    constexpr int g_chunks = depth * channels / 4, x_chunks = reach_rows * reach_columns * 8;
    EACH (int i = 0; i < g_chunks; i += threads) {
      const int k = i + thread, p = k / (channels / 4), chunk = k % (channels / 4), down = y0 + p / tile_columns,
                across = x0 + p % tile_columns;
      const bool inside = p < pixels && down < out_rows && across < out_columns;
      if (k < g_chunks)
        copy_async(to + p * g_line + chunk * 16,
                   g_image + (inside ? (down * out_columns + across) * out + chunk * 4 : 0), inside ? 16 : 0);
    }
    EACH (int i = 0; i < x_chunks; i += threads) {
      const int k = i + thread, p = k / 8, chunk = k % 8, down = y0 * stride_rows - pad_rows + p / reach_columns,
                across = x0 * stride_columns - pad_columns + p % reach_columns;
      const bool inside = down >= 0 && down < in_rows && across >= 0 && across < in_columns;
      if (k < x_chunks)
        copy_async(to + g_bytes + p * x_line + chunk * 16,
                   x_image + (inside ? (down * in_columns + across) * in + chunk * 4 : 0), inside ? 16 : 0);
    }
  };

  // --- Prologue ---
  int distance[taps_of_warp];  // of a tap, in bytes of a stage's x
  EACH (int i = 0; i < taps_of_warp; ++i) {
    const int tap = imin(tap0 + i, taps - 1);
    distance[i] =
        (tap / filter_columns * dilation_rows * reach_columns + tap % filter_columns * dilation_columns) * x_line;
  }
  f32 sum[taps_of_warp][2][4][4];
  EACH (int i = 0; i < taps_of_warp; ++i)
    EACH (int m = 0; m < 2; ++m)
      EACH (int j = 0; j < 4; ++j)
        EACH (int q = 0; q < 4; ++q) sum[i][m][j][q] = 0.0f;
  EACH (int s = 0; s < stages - 1; ++s) {
    if (first + s < last) copy(first + s, ring + s * stage_bytes);
    commit_copies();
  }

  // --- Main loop: a tile at a time, eight of its pixels a step ---
  int stage = 0, next = stages - 1;
  _Pragma("unroll 1")
  for (int tile = first; tile < last; ++tile) {
    wait_copies<stages - 2>();
    __syncthreads();
    if (tile + stages - 1 < last) copy(tile + stages - 1, ring + next * stage_bytes);
    commit_copies();
    const u8* const g_lines = memory + stage * stage_bytes + third * g_line + half * 128 + row * 16;
    const u8* const x_lines = memory + stage * stage_bytes + g_bytes + row * 16;
    _Pragma("unroll 1")
    for (int step = part * 8; step < depth; step += parts * 8) {
      const u8* const near = x_lines + offsets[step + third];
      const u8* const far = x_lines + offsets[step + 4 + third];
      const W16 b0 = *(const W16*)(g_lines + step * g_line), b1 = *(const W16*)(g_lines + (step + 4) * g_line);
      const u32 b[2][4] = {{nearly_tf32(b0.x), nearly_tf32(b0.y), nearly_tf32(b0.z), nearly_tf32(b0.w)},
                           {nearly_tf32(b1.x), nearly_tf32(b1.y), nearly_tf32(b1.z), nearly_tf32(b1.w)}};
      EACH (int i = 0; i < taps_of_warp; ++i) {
        const W16 a0 = *(const W16*)(near + distance[i]), a1 = *(const W16*)(far + distance[i]);
        const u32 a[2][4] = {{nearly_tf32(a0.x), nearly_tf32(a0.y), nearly_tf32(a1.x), nearly_tf32(a1.y)},
                             {nearly_tf32(a0.z), nearly_tf32(a0.w), nearly_tf32(a1.z), nearly_tf32(a1.w)}};
        EACH (int m = 0; m < 2; ++m)
          EACH (int j = 0; j < 4; ++j) mma_tf32(sum[i][m][j], a[m], b[0][j], b[1][j]);
      }
    }
    stage = stage == stages - 1 ? 0 : stage + 1, next = next == stages - 1 ? 0 : next + 1;
  }
  wait_copies<0>();

  // --- Epilogue: the sums of the warps that share taps and channels, in a fixed order, then the stores ---
  f32* const shared = (f32*)memory + unit * (taps_of_warp * 1024) + lane;
  _Pragma("unroll 1")
  for (int p = 1; p < parts; ++p) {
    __syncthreads();
    if (part == p)
      EACH (int i = 0; i < taps_of_warp; ++i)
        EACH (int m = 0; m < 2; ++m)
          EACH (int j = 0; j < 4; ++j)
            EACH (int q = 0; q < 4; ++q) shared[(i * 32 + m * 16 + j * 4 + q) * 32] = sum[i][m][j][q];
    __syncthreads();
    if (part == 0)
      EACH (int i = 0; i < taps_of_warp; ++i)
        EACH (int m = 0; m < 2; ++m)
          EACH (int j = 0; j < 4; ++j)
            EACH (int q = 0; q < 4; ++q) sum[i][m][j][q] += shared[(i * 32 + m * 16 + j * 4 + q) * 32];
  }
  if (part > 0) return;
  EACH (int i = 0; i < taps_of_warp; ++i)
    EACH (int m = 0; m < 2; ++m)
      EACH (int r = 0; r < 2; ++r) {
        f32* const to = sums + (((i64)blockIdx.x * taps + tap0 + i) * in + c0 + row * 4 + m * 2 + r) * out + n0 +
                        half * 32 + third * 8;
        if (tap0 + i < taps)
          EACH (int q = 0; q < 2; ++q)
            *(F4*)(to + q * 4) = {sum[i][m][0][r * 2 + q], sum[i][m][1][r * 2 + q], sum[i][m][2][r * 2 + q],
                                  sum[i][m][3][r * 2 + q]};
      }
}

// result [out, taps, in] = Σ over count parts of sums. Each of eight warps adds every eighth part of 128 results, four
// a thread; the first warp adds the eight.
extern "C" __global__ void __launch_bounds__(256)
    REDUCE_KERNEL(const f32* const sums, f32* const result, const int count) {
  __shared__ F4 all[8][32];
  const int word = blockIdx.x * 32 + threadIdx.x % 32, line = threadIdx.x / 32;
  const auto add = [](F4& to, const F4 v) { to.x += v.x, to.y += v.y, to.z += v.z, to.w += v.w; };
  F4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
  _Pragma("unroll 4")
  for (int k = line; k < count; k += 8) add(sum, ((const F4*)sums)[(i64)k * (taps * in * out / 4) + word]);
  all[line][threadIdx.x % 32] = sum;
  __syncthreads();
  if (line > 0) return;
  EACH (int k = 1; k < 8; ++k) add(sum, all[k][threadIdx.x]);
  f32* const to = result + (i64)(word * 4 % out) * (taps * in) + word * 4 / out;
  to[0] = sum.x, to[taps * in] = sum.y, to[2 * taps * in] = sum.z, to[3 * taps * in] = sum.w;
}
