// The gradient of a depthwise convolution's weights: for each channel and tap a sum over all pixels of all images.
//
//    dw[c, tap] = Σ over images and pixels of g[image, pixel, c] · x[image, pixel · stride + tap · dilation - pad, c]
//
// Two kernels. The first has a block for each part of the images (`parts`) and each tile of channels. Its threads have
// `tile` vectors of channels side by side, for each row of the filter, for each of `slots` places: a thread keeps the
// sums of one row of the filter for `vector` channels in registers and goes through runs of outputs, every slots-th of
// the part. It reads a run and the inputs that it reaches once. The block adds its slots in shared memory and writes
// sums [part][tap][channel] to a workspace. The second kernel adds the parts in a fixed order, so the bits are the same
// in every run.
//
// Shared memory of the first: float32 [slot][tap][tile_channels]; of the second: [8][32].
//
// Parameters, defined in front of this file (depthwise.cpp), besides those of depthwise.cuh:
//   int slots                    runs that a block goes through at a time
#include "target/cuda/handwritten/convolution/depthwise.cuh"

constexpr int threads = tile * filter_rows * slots;

// x [images, in_rows, in_columns, channels], g [images, out_rows, out_columns, channels], sums [parts, taps, channels].
extern "C" __global__ void __launch_bounds__(threads)
    KERNEL(const Element* const x, const Element* const g, f32* const sums, const int images, const int parts) {
  extern __shared__ __align__(16) u8 memory[];
  const int lane = threadIdx.x % tile, filter_row = threadIdx.x / tile % filter_rows,
            slot = threadIdx.x / (tile * filter_rows);
  const int first = blockIdx.x % tiles * tile_channels, part = blockIdx.x / tiles, channel = first + lane * vector;
  const i64 places = (i64)images * (out_rows * runs);
  const int begin = (int)(places * part / parts), end = (int)(places * (part + 1) / parts);
  Wide sum[filter_columns];
  EACH (int k = 0; k < filter_columns; ++k)
    EACH (int c = 0; c < vector; ++c) sum[k].of[c] = 0.0f;
  _Pragma("unroll 1")
  for (int index = begin + slot; index < end; index += slots) {
    const Place at = place_at(index);
    const int row = at.row * stride_rows - pad_rows + filter_row * dilation_rows,
              left = at.column * stride_columns - pad_columns;
    if (row < 0 || row >= in_rows || channel >= channels) continue;
    const Element* const from =
        g + (((i64)at.image * out_rows + at.row) * out_columns + at.column) * channels + channel;
    const Element* const line = x + ((i64)at.image * in_rows + row) * (in_columns * channels) + channel;
    Vector slope[run], seen[reach];
    EACH (int r = 0; r < run; ++r) slope[r] = read_if(at.column + r < out_columns, from + r * channels);
    EACH (int j = 0; j < reach; ++j)
      seen[j] = read_if(left + j >= 0 && left + j < in_columns, line + (left + j) * channels);
    Wide of[run];
    EACH (int r = 0; r < run; ++r) of[r] = widened(slope[r]);
    EACH (int j = 0; j < reach; ++j) {
      const Wide v = widened(seen[j]);
      EACH (int r = 0; r < run; ++r)
        if (const int k = column_between(j, r); k >= 0)
          EACH (int c = 0; c < vector; ++c) sum[k].of[c] = fmaf(v.of[c], of[r].of[c], sum[k].of[c]);
    }
  }

  f32* const all = (f32*)memory;
  EACH (int k = 0; k < filter_columns; ++k)
    *(Wide*)(all + ((slot * filter_rows + filter_row) * filter_columns + k) * tile_channels + lane * vector) = sum[k];
  __syncthreads();
  for (int k = threadIdx.x; k < taps * tile_channels; k += threads) {
    f32 total = all[k];
    EACH (int s = 1; s < slots; ++s) total += all[s * (taps * tile_channels) + k];
    const int tap = k / tile_channels, c = first + k % tile_channels;
    if (c < channels) sums[((i64)part * taps + tap) * channels + c] = total;
  }
}

// result [channels, taps] = Σ over the parts of sums. Each of eight warps adds every eighth part of 32 results; the
// first warp adds the eight.
extern "C" __global__ void __launch_bounds__(256)
    REDUCE_KERNEL(const f32* const sums, Element* const result, const int parts) {
  extern __shared__ __align__(16) u8 memory[];
  f32* const all = (f32*)memory;
  const int at = blockIdx.x * 32 + threadIdx.x % 32, line = threadIdx.x / 32;
  f32 sum = 0.0f;
  if (at < taps * channels) {
    _Pragma("unroll 8")
    for (int k = line; k < parts; k += 8) sum += sums[(i64)k * (taps * channels) + at];
  }
  all[threadIdx.x] = sum;
  __syncthreads();
  if (line > 0 || at >= taps * channels) return;
  EACH (int k = 1; k < 8; ++k) sum += all[k * 32 + threadIdx.x];
  result[at % channels * taps + at / channels] = narrowed(sum);
}
