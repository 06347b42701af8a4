#pragma once
// What the device that a program runs on can do at most, measured once in a process: the figures that times of kernels
// are held against.
#include <string>

namespace weft::tool {

struct Peaks {
  double copy_gbs = 0;     // bytes read and written by a copy that no cache holds, with all threads, GB/s
  double gflops_f32 = 0;   // of a product of large matrices, float32 (TF32 where the process allows it)
  double gflops_half = 0;  // the same in bfloat16
};

/// Of the default device. Takes about half a second the first time that a device is asked about, and on a GPU 512 MiB
/// of its memory. All figures are the best of several runs.
const Peaks& machine_peaks();

/// Seconds that moving `bytes` and computing `flops` takes at least: the longer of the two at the machine's peaks.
double floor_seconds(const Peaks& peaks, double bytes, double flops, bool half);

/// "43.1 GB/s copied, 180 GFLOP/s in float32 products, 900 in bfloat16"
std::string to_string(const Peaks& peaks);

}  // namespace weft::tool
