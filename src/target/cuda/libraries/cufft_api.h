#pragma once
// The part of cuFFT's interface that Weft needs, in declarations of our own. tests/target/cuda/cuda_libraries_test.cpp
// compares them with its header.
#include <cstddef>

#include "target/cuda/driver/driver.h"

namespace weft::target::cuda::cufft {

using Plan = int;
enum Kind : int { r2c = 0x2a, c2r = 0x2c, c2c = 0x29, d2z = 0x6a, z2d = 0x6c, z2z = 0x69 };
enum Direction : int { forward = -1, inverse = 1 };

struct Api {
  int (*create)(Plan* plan);
  int (*destroy)(Plan plan);
  int (*set_auto_allocation)(Plan plan, int on);
  int (*make_plan_many)(Plan plan, int rank, long long* n, long long* in_embed, long long in_stride,
                        long long in_distance, long long* out_embed, long long out_stride, long long out_distance,
                        Kind kind, long long batch, size_t* workspace_bytes);
  int (*set_work_area)(Plan plan, void* workspace);
  int (*set_stream)(Plan plan, StreamHandle stream);
  int (*run_c2c)(Plan plan, void* in, void* out, int direction);
  int (*run_r2c)(Plan plan, void* in, void* out);
  int (*run_c2r)(Plan plan, void* in, void* out);
  int (*run_z2z)(Plan plan, void* in, void* out, int direction);
  int (*run_d2z)(Plan plan, void* in, void* out);
  int (*run_z2d)(Plan plan, void* in, void* out);
};

/// Calls visit(pointer, name) for each function.
template <class Visit>
void for_each_function(Api& api, Visit&& visit) {
  visit(api.create, "cufftCreate");
  visit(api.destroy, "cufftDestroy");
  visit(api.set_auto_allocation, "cufftSetAutoAllocation");
  visit(api.make_plan_many, "cufftMakePlanMany64");
  visit(api.set_work_area, "cufftSetWorkArea");
  visit(api.set_stream, "cufftSetStream");
  visit(api.run_c2c, "cufftExecC2C");
  visit(api.run_r2c, "cufftExecR2C");
  visit(api.run_c2r, "cufftExecC2R");
  visit(api.run_z2z, "cufftExecZ2Z");
  visit(api.run_d2z, "cufftExecD2Z");
  visit(api.run_z2d, "cufftExecZ2D");
}

/// Returns the functions; null if the library is missing (library.h says why) or lacks one.
const Api* api();

}  // namespace weft::target::cuda::cufft
