// Depthwise convolutions: each channel sees its own filter. A filter is used for few multiplications a byte, so vector
// units compute them in the time of the loads, and tensor cores, which multiply matrices over channels, have nothing to
// share.
//
//    y[image, row, column, c] = Σ over taps of x[image, row · stride + tap · dilation - pad, …, c] · w[c, tap]
//
// A thread computes `run` neighbours in a row for `vector` channels. It goes through the rows of the filter. Of each it
// keeps the weights in registers and reads the inputs that the run reaches once: each is multiplied with the weights of
// all outputs that see it. Threads of a block have `tile` vectors of channels side by side, for each of `places` runs
// one after the other; runs of neighbouring rows find their inputs in L1.
//
// Shared memory: the weights of the block's channels as float32, [tap][tile_channels + 4].
//
// Parameters, defined in front of this file (depthwise.cpp), besides those of depthwise.cuh:
//   int places                   runs of a block
#include "target/cuda/handwritten/convolution/depthwise.cuh"

constexpr int threads = tile * places;
constexpr int pitch = tile_channels + 4;  // of a tap: those side by side begin in other banks

// x [images, in_rows, in_columns, channels], w [channels, taps], y [images, out_rows, out_columns, channels].
extern "C" __global__ void __launch_bounds__(threads)
    KERNEL(const Element* const x, const Element* const w, Element* const y, const int images) {
  extern __shared__ __align__(16) u8 memory[];
  f32* const weights = (f32*)memory;
  const int first = blockIdx.x % tiles * tile_channels;
  _Pragma("unroll 8")  // loads in flight
  for (int k = threadIdx.x; k < taps * tile_channels; k += threads) {
    const int c = k / taps, tap = k % taps;
    weights[tap * pitch + c] = first + c < channels ? widened_one(w[(first + c) * taps + tap]) : 0.0f;
  }
  __syncthreads();

  const int lane = threadIdx.x % tile, channel = first + lane * vector;
  const Place at = place_at(blockIdx.x / tiles * places + threadIdx.x / tile);
  if (at.image >= images || channel >= channels) return;
  const int left = at.column * stride_columns - pad_columns;
  const Element* const image = x + (i64)at.image * (in_rows * in_columns * channels) + channel;
  Wide sum[run];
  EACH (int r = 0; r < run; ++r)
    EACH (int i = 0; i < vector; ++i) sum[r].of[i] = 0.0f;
  _Pragma("unroll 1")
  for (int i = 0; i < filter_rows; ++i) {
    const int row = at.row * stride_rows - pad_rows + i * dilation_rows;
    if (row < 0 || row >= in_rows) continue;
    const Element* const line = image + row * (in_columns * channels);
    Vector seen[reach];
    EACH (int j = 0; j < reach; ++j)
      seen[j] = read_if(left + j >= 0 && left + j < in_columns, line + (left + j) * channels);
    Wide weight[filter_columns];
    EACH (int k = 0; k < filter_columns; ++k)
      weight[k] = *(const Wide*)(weights + (i * filter_columns + k) * pitch + lane * vector);
    EACH (int j = 0; j < reach; ++j) {
      const Wide v = widened(seen[j]);
      EACH (int r = 0; r < run; ++r)
        if (const int k = column_between(j, r); k >= 0)
          EACH (int c = 0; c < vector; ++c) sum[r].of[c] = fmaf(v.of[c], weight[k].of[c], sum[r].of[c]);
    }
  }
  Element* const to = y + (((i64)at.image * out_rows + at.row) * out_columns + at.column) * channels + channel;
  EACH (int r = 0; r < run; ++r)
    if (at.column + r < out_columns) *(Vector*)(to + r * channels) = narrowed(sum[r]);
}
