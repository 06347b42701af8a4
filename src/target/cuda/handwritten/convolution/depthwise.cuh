// What both kernels for depthwise convolutions have in common: vectors of neighbouring channels, and the work that
// threads divide. Parameters, defined in front of the file (depthwise.cpp):
//   int in_rows, in_columns, out_rows, out_columns, filter_rows, filter_columns, stride_rows, stride_columns,
//       dilation_rows, dilation_columns, pad_rows, pad_columns      extents of an image, the padding before it
//   int channels
//   type Element, bool bf16      float, or unsigned short: 16-bit elements are bfloat16, else float16
//   int vector                   neighbouring channels of a thread, a divisor of the channels
//   VECTOR                       the prelude's type of as many bytes
//   int tile                     vectors of a block, side by side
//   int run                      outputs of a thread, neighbours in a row
#include "target/cuda/codegen/text/prelude.cuh"

constexpr int taps = filter_rows * filter_columns;
constexpr int reach = (run - 1) * stride_columns + (filter_columns - 1) * dilation_columns + 1;  // inputs of a run
constexpr int runs = (out_columns + run - 1) / run;                                              // of a row
constexpr int tile_channels = tile * vector, tiles = (channels + tile_channels - 1) / tile_channels;

using Vector = VECTOR;  // moved by one instruction
struct alignas(vector * sizeof(f32)) Wide {
  f32 of[vector];
};

FN Wide widened(const Vector& v) {
  const Element* const from = (const Element*)&v;
  Wide to;
  EACH (int i = 0; i < vector; ++i) {
    if constexpr (sizeof(Element) == 4) to.of[i] = from[i];
    else if constexpr (!bf16) to.of[i] = from_f16(from[i]);
    else if constexpr (vector % 2 == 0) to.of[i] = from_bf16((const u16*)from, i);
    else to.of[i] = from_bf16((u16)from[i]);
  }
  return to;
}
FN f32 widened_one(Element v) {
  if constexpr (sizeof(Element) == 4) return v;
  else return bf16 ? from_bf16((u16)v) : from_f16((u16)v);
}
FN Element narrowed(f32 v) {
  if constexpr (sizeof(Element) == 4) return v;
  else return bf16 ? to_bf16(v) : to_f16(v);
}
FN Vector narrowed(const Wide& v) {
  Vector to;
  EACH (int i = 0; i < vector; ++i) ((Element*)&to)[i] = narrowed(v.of[i]);
  return to;
}
FN Vector read_if(bool there, const Element* at) {
  Vector v = {};
  if (there) v = *(const Vector*)at;
  return v;
}

// A run of outputs: `run` neighbours in a row of an image.
struct Place {
  int image, row, column;
};
FN Place place_at(int index) { return {index / (out_rows * runs), index / runs % out_rows, index % runs * run}; }

// Returns the filter's column through which output r of a run sees input j, or -1.
FN constexpr int column_between(int j, int r) {
  const int distance = j - r * stride_columns;
  return distance >= 0 && distance % dilation_columns == 0 && distance / dilation_columns < filter_columns
             ? distance / dilation_columns
             : -1;
}
