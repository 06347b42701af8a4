// sums[ids[i], :] += rows[i, :], in no order: the gradient of an embedding where the bits may differ from run to run.
//
// A warp adds one row by atomics. Against the ordered form (kernel/routines/routine_scatter.cpp) this spares the sort
// of the ids. From compute capability 9.0 on red.v4.f32 adds four floats at once (PTX ISA, red).
//
// Parameters, defined in front of this file (scatter_add_rows.cpp):
//   type Id, Element               of ids: an integer; of rows: float, or unsigned short for 16-bit floats
//   bool bf16                      16-bit elements are bfloat16, else float16
//   long long count, table_rows    rows; rows of sums
//   int width                      elements of a row, a multiple of 4
typedef long long i64;
struct __align__(16) Float4 {
  float x, y, z, w;
};
struct __align__(8) Word2 {
  unsigned a, b;
};

constexpr int warps_of_block = 8;

__device__ __forceinline__ float from_low(const unsigned v) {
  if constexpr (bf16) return __uint_as_float(v << 16);
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"((unsigned short)v));
  return f;
}
__device__ __forceinline__ Float4 read(const float* p) { return *(const Float4*)p; }
__device__ __forceinline__ Float4 read(const unsigned short* p) {
  const Word2 v = *(const Word2*)p;
  return {from_low(v.a & 0xffffu), from_low(v.a >> 16), from_low(v.b & 0xffffu), from_low(v.b >> 16)};
}
__device__ __forceinline__ void add(float* to, const Float4 v) {
#if __CUDA_ARCH__ >= 900
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(v.x), "f"(v.y), "f"(v.z),
               "f"(v.w)
               : "memory");
#else
  atomicAdd(to, v.x), atomicAdd(to + 1, v.y), atomicAdd(to + 2, v.z), atomicAdd(to + 3, v.w);
#endif
}

// ids [count], rows [count, width], sums [table_rows, width]. Negative ids count from the end; those outside add
// nothing.
extern "C" __global__ void __launch_bounds__(32 * warps_of_block)
    KERNEL(const Id* const ids, const Element* const rows, float* const sums) {
  const i64 row = (i64)blockIdx.x * warps_of_block + threadIdx.x / 32;
  if (row >= count) return;
  i64 id = (i64)ids[row];
  if (id < 0) id += table_rows;
  if (id < 0 || id >= table_rows) return;
  const Element* const from = rows + row * width;
  float* const to = sums + id * width;
#pragma unroll 4
  for (int i = (int)threadIdx.x % 32 * 4; i < width; i += 128) add(to + i, read(from + i));
}
