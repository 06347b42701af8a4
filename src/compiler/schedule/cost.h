#pragma once
// The cost model: the seconds of a launch, from its work and the machine's rates. A launch takes the time of an empty
// one, and then the longer of moving its bytes and of computing. docs/notes/cost-model.md says how good that is, and
// where it is wrong.
#include <array>
#include <span>

#include "compiler/schedule/work.h"
#include "target/rates.h"

namespace weft::compiler {

/// Bytes by how far apart their uses are: part k was last touched up to Rates::least_footprint · 2^k bytes of other
/// traffic ago, the last part longer ago.
using Reuse = std::array<double, target::Rates::footprints>;

/// How the work of a launch is divided.
struct Division {
  double programs = 0;      // that run independently; 0: a library divides the work as it likes
  double processors = 1;    // that may run them
  bool one_thread = false;  // of a CPU: too little work for the thread team
};

/// Returns the seconds that the bytes take: each part at the bandwidth of the cache that still holds it.
double memory_seconds(const Reuse& reuse, const target::Rates& rates);
/// Returns the seconds of a launch.
double seconds_of(const LaunchWork& work, const Reuse& reuse, const Division& division, const target::Rates& rates);
/// Returns the seconds that the work takes at the machine's peaks: the longer of moving and computing, without a
/// launch.
double floor_seconds(const LaunchWork& work, const Reuse& reuse, const target::Rates& rates);
/// Returns the seconds of moving `bytes` from memory and computing `flops` at the machine's peaks.
double floor_seconds(double bytes, double flops, Arithmetic arithmetic, const target::Rates& rates);

}  // namespace weft::compiler
