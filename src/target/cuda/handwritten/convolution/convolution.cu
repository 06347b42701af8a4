// Convolutions of few channels in TF32 on Hopper's tensor cores (sm_90a): an implicit GEMM whose A is never built.
//
// The images lie one after the other, row by row, with the zeros of the padding between them, on one line of pixels:
// the zeros after a row serve as those before the next one. On that line a tap of the filter is a constant distance, so
// the product of a tap is a wgmma whose A begins that many pixels further in shared memory:
//
//    y[pixel, out] = Σ over taps of x[pixel + distance(tap), in] · w[tap][in, out]
//
//    the line:   │ row 0 of image 0 │ 0 │ row 1 │ 0 │ … │ 0 0 0 │ row 0 of image 1 │ …
//                └── line_width pixels ─┘                line_height rows an image
//    a tile:     128 pixels of the line, and the `reach` pixels after them that its taps read
//
// One block runs on each SM, of one or two warpgroups that go through tiles of their own. All weights stay in shared
// memory. A warpgroup goes through 32 input channels (a slice) at a time with two buffers: while the tensor cores
// multiply one, tap by tap, its threads convert what has come from memory, store it to the other, and load what
// follows.
//
// Shared memory:
//
//   weights    [tap][in / 4][out] words of 4 channels
//   buffers    2 for each warpgroup; of each 8 planes [pixel] of 4 channels (16 bytes); planes begin in different banks
//
// wgmma reads such planes without a swizzle: eight pixels of a plane are a core matrix of 8 lines of 16 bytes, wherever
// it begins (PTX ISA, wgmma: matrix descriptors). The next eight pixels come 128 bytes later, the next four channels
// plane_bytes later.
//
// Parameters, defined in front of this file (convolution.cpp):
//   int in_rows, in_columns, out_rows, out_columns, filter_rows, filter_columns, dilation_rows, dilation_columns,
//       pad_rows, pad_columns      extents of an image and the padding before it
//   int line_height, line_width    rows and columns of an image on the line, padding included
//   int in, out                    channels
//   int groups                     warpgroups of a block
//   int plane_bytes, weight_bytes, shared_bytes
//   void wgmma(f32 (&sum)[out / 8][4], u64 a, u64 b, int accumulate)       one wgmma.m64n{out}k8
#include "target/cuda/codegen/text/prelude.cuh"
#include "target/cuda/handwritten/convolution/tf32.cuh"

constexpr int taps = filter_rows * filter_columns;
constexpr int tile = 128;  // pixels
constexpr int reach = (filter_rows - 1) * dilation_rows * line_width + (filter_columns - 1) * dilation_columns;
constexpr int pixels = tile + reach;       // that a tile reads
constexpr int loads = (pixels + 15) / 16;  // of 16 bytes, a thread: 16 pixels of 8 planes at a time
constexpr int slices = in / 32;
constexpr int buffer_bytes = 8 * plane_bytes;
constexpr int threads = groups * 128;
static_assert(shared_bytes == weight_bytes + groups * 2 * buffer_bytes,
              "convolution.cpp asks for another amount of shared memory than this layout has");

// Where a pixel of the line lies; may be in the padding, or after the last image.
struct Pixel {
  int image, row, column;
};
FN Pixel pixel_at(const u32 index) {
  const u32 image = index / (line_height * line_width), left = index % (line_height * line_width);
  return {(int)image, (int)(left / line_width), (int)(left % line_width)};
}

FN W16 load_if(const void* from, bool wanted) {
  W16 v = {0u, 0u, 0u, 0u};
  asm volatile("{.reg .pred p; setp.ne.b32 p, %5, 0; @p ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];}"
               : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
               : "l"(from), "r"((int)wanted));
  return v;
}

// x [images, in_rows, in_columns, in], w [out, filter_rows, filter_columns, in], y [images, out_rows, out_columns,
// out].
extern "C" __global__ void __launch_bounds__(threads, 1)
    KERNEL(const f32* const x, const f32* const w, f32* const y, const int images) {
  extern __shared__ __align__(128) u8 memory[];
  const int group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0), thread = threadIdx.x % 128, warp = thread / 32,
            lane = thread % 32;
  const int plane = thread % 8, first = thread / 8;  // a thread loads every 16th pixel of a plane
  const u32 weights = shared_address(memory), buffers = weights + weight_bytes + group * (2 * buffer_bytes),
            to = buffers + plane * plane_bytes + first * 16;
  const int tiles = (images * (line_height * line_width) + tile - 1) / tile, stride = gridDim.x * groups;

  // --- Loads: the slice that comes next, in registers until its buffer is free ---
  W16 coming[loads];
  int requested = blockIdx.x * groups + group, requested_slice = 0;
  const auto load = [&](const int k) {
    const Pixel p = pixel_at(requested * tile + first + k * 16);
    const int row = p.row - pad_rows, column = p.column - pad_columns;
    const bool inside =
        first + k * 16 < pixels && p.image < images && row >= 0 && row < in_rows && column >= 0 && column < in_columns;
    coming[k] = load_if(
        x + (((i64)p.image * in_rows + row) * in_columns + column) * in + requested_slice * 32 + plane * 4, inside);
  };
  const auto advance_request = [&] {
    if (++requested_slice == slices) requested_slice = 0, requested += stride;
  };
  const auto store = [&](const int k, const u32 buffer) {
    if (first + k * 16 < pixels) store_shared(to + buffer * buffer_bytes + k * 256, nearly_tf32(coming[k]));
  };

  // --- Prologue: the first slice, the weights, the second slice ---
  EACH (int k = 0; k < loads; ++k) load(k);
  advance_request();
  // Two threads side by side read 32 bytes of a line.
  _Pragma("unroll 6")
  for (int k = threadIdx.x; k < taps * in / 4 * out; k += threads) {
    const int n = k / 2 % out, c = k / 2 / out * 2 + k % 2;
    store_shared(weights + (c * out + n) * 16, nearly_tf32(*(const W16*)(w + (i64)n * (taps * in) + c * 4)));
  }
  EACH (int k = 0; k < loads; ++k) store(k, 0), load(k);
  advance_request();
  fence_for_wgmma();
  __syncthreads();

  // --- Main loop: a slice of a tile at a time ---
  f32 sum[2][out / 8][4];  // of 64 pixels each
  u32 buffer = 0;
  int slice = 0;
  _Pragma("unroll 1")
  for (int index = blockIdx.x * groups + group; index < tiles;) {
    fence_for_wgmma();
    asm volatile("bar.sync %0, 128;" : : "r"(group + 1) : "memory");
    wgmma_fence();
    // Descriptors: the start, the distance of two planes, that of two core matrices, in units of 16 bytes.
    const u64 a = (u64)((buffers + buffer * buffer_bytes) >> 4) | (u64)(plane_bytes / 16) << 16 | 8ull << 32,
              b = (u64)((weights + slice * (8 * out * 16)) >> 4) | (u64)out << 16 | 8ull << 32;
    EACH (int tap = 0; tap < taps; ++tap) {
      const int distance = tap / filter_columns * dilation_rows * line_width + tap % filter_columns * dilation_columns;
      EACH (int step = 0; step < 4; ++step)
        EACH (int m = 0; m < 2; ++m)
          wgmma(sum[m], a + (2 * step * (plane_bytes / 16) + m * 64 + distance), b + (tap * (in / 4) + 2 * step) * out,
                slice + tap + step);
      EACH (int k = tap * loads / taps; k < (tap + 1) * loads / taps; ++k) store(k, buffer ^ 1u), load(k);
    }
    wgmma_commit();
    advance_request();
    buffer ^= 1u;
    wgmma_wait<0>();
    if (++slice < slices) continue;

    // --- Epilogue: the pixels of the tile that are results ---
    EACH (int m = 0; m < 2; ++m)
      EACH (int h = 0; h < 2; ++h) {
        const Pixel p = pixel_at(index * tile + m * 64 + warp * 16 + h * 8 + lane / 4);
        f32* const at = y + (((i64)p.image * out_rows + p.row) * out_columns + p.column) * out + lane % 4 * 2;
        if (p.image < images && p.row < out_rows && p.column < out_columns)
          EACH (int j = 0; j < out / 8; ++j) *(W8*)(at + j * 8) = {bits(sum[m][j][h * 2]), bits(sum[m][j][h * 2 + 1])};
      }
    slice = 0, index += stride;
  }
}
