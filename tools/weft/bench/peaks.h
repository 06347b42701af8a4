#pragma once
// The peaks of the device that a program runs on, measured once in a process: times of kernels are compared with them.
#include <string>

namespace weft::tool {

struct Peaks {
  double copy_gbs = 0;     // bytes read and written by a copy larger than all caches, with all threads, GB/s
  double gflops_f32 = 0;   // of a product of large matrices in float32 (TF32 where the process allows it)
  double gflops_half = 0;  // the same in bfloat16
};

/// Returns the peaks of the default device. The first call for a device takes about half a second, and on a GPU 512 MiB
/// of its memory. All figures are the best of several runs.
const Peaks& machine_peaks();

/// Returns the minimal seconds of moving `bytes` and computing `flops`: the longer of the two at the machine's peaks.
double floor_seconds(const Peaks& peaks, double bytes, double flops, bool half);

/// Returns "43.1 GB/s copied, 180 GFLOP/s in float32 products, 900 in bfloat16".
std::string to_string(const Peaks& peaks);

}  // namespace weft::tool
