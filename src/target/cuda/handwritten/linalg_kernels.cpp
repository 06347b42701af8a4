#include "target/cuda/handwritten/linalg_kernels.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace weft::target::cuda {

namespace {

constexpr const char* text = R"cuda(
typedef unsigned int u32;
typedef long long i64;

// All bits but the sign: NaN in float32, and twice in float64.
extern "C" __global__ void linalg_nan(const int* const info, const int words, u32* const a, const i64 na, u32* const b, const i64 nb, u32* const c, const i64 nc) {
  const i64 k = blockIdx.x;
  bool failed = false;
  for (int i = 0; i < words; ++i) failed = failed || info[k * words + i] != 0;
  if (!failed) return;
  for (i64 i = threadIdx.x; i < na; i += blockDim.x) a[k * na + i] = 0x7fffffffu;
  for (i64 i = threadIdx.x; i < nb; i += blockDim.x) b[k * nb + i] = 0x7fffffffu;
  for (i64 i = threadIdx.x; i < nc; i += blockDim.x) c[k * nc + i] = 0x7fffffffu;
}

extern "C" __global__ void linalg_table(char** const to, const i64 count, char* const a, const i64 na, char* const b, const i64 nb, char* const c, const i64 nc) {
  const i64 k = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= count) return;
  to[k] = a + k * na;
  if (b) to[count + k] = b + k * nb;
  if (c) to[2 * count + k] = c + k * nc;
}

// One matrix a block. Exchanges follow each other, so one thread makes them.
extern "C" __global__ void linalg_rows(const int* const pivots, const int pivoted, u32* const rows, const int m) {
  extern __shared__ u32 own[];
  for (int i = threadIdx.x; i < m; i += blockDim.x) own[i] = i;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int i = 0; i < pivoted; ++i) {
      const int other = pivots[(i64)blockIdx.x * pivoted + i] - 1;
      const u32 row = own[i];
      own[i] = own[other];
      own[other] = row;
    }
  __syncthreads();
  for (int i = threadIdx.x; i < m; i += blockDim.x) rows[(i64)blockIdx.x * m + i] = own[i];
}

// Elements of `words` words, n * n a matrix.
extern "C" __global__ void linalg_upper(const u32* const from, u32* const to, const int n, const int words, const i64 all) {
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= all) return;
  const i64 element = i / words % ((i64)n * n);
  if (element % n > element / n) to[i] = from[i];
}

// One matrix a block, a column of Q a warp: a lane has every 32nd element of it in shared memory. Reflections behind
// the column's own leave it as it is.
template <class T> __device__ void columns_of_q(const T* a, const T* tau, T* q, const int m, const int n, const int columns) {
  extern __shared__ __align__(8) unsigned char memory[];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  T* const x = (T*)memory + (i64)warp * m;
  a += (i64)blockIdx.x * m * n, tau += (i64)blockIdx.x * n, q += (i64)blockIdx.x * m * columns;
  for (int c = warp; c < columns; c += warps) {
    for (int i = lane; i < m; i += 32) x[i] = i == c ? T(1) : T(0);
    for (int j = c < n ? c : n - 1; j >= 0; --j) {
      const T* const v = a + (i64)j * m;
      const int first = j / 32 * 32 + lane;
      T sum = 0;
      for (int i = first; i < m; i += 32) sum += i < j ? T(0) : i == j ? x[i] : v[i] * x[i];
      for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
      sum *= tau[j];
      for (int i = first; i < m; i += 32)
        if (i >= j) x[i] -= i == j ? sum : sum * v[i];
    }
    for (int i = lane; i < m; i += 32) q[(i64)c * m + i] = x[i];
  }
}
extern "C" __global__ void linalg_q_floats(const float* a, const float* tau, float* q, const int m, const int n, const int columns) { columns_of_q(a, tau, q, m, n, columns); }
extern "C" __global__ void linalg_q_doubles(const double* a, const double* tau, double* q, const int m, const int n, const int columns) { columns_of_q(a, tau, q, m, n, columns); }
)cuda";

constexpr size_t usual_shared_bytes = 48 << 10;
constexpr int most_warps = 8;

std::array<LinalgKernels::Matrices, 3> three(std::span<const LinalgKernels::Matrices> some) {
  std::array<LinalgKernels::Matrices, 3> out;
  std::copy(some.begin(), some.end(), out.begin());
  return out;
}

}  // namespace

const std::string& LinalgKernels::source() {
  static const std::string whole = text;
  return whole;
}

void LinalgKernels::launch(Which which, int64_t blocks, int threads, size_t shared_bytes, void** arguments) const {
  static constexpr const char* names[kernels] = {"linalg_nan",   "linalg_table",    "linalg_rows",
                                                 "linalg_upper", "linalg_q_floats", "linalg_q_doubles"};
  std::call_once(once_, [&] {
    const ModuleHandle module = load_module(context_, compile_(source()), "kernels beside cuSOLVER");
    for (int k = 0; k < kernels; ++k)
      check(driver().module_get_function(&functions_[k], module, names[k]), "cuModuleGetFunction", names[k]);
  });
  context_.make_current();
  LaunchConfig config;
  config.grid_x = static_cast<unsigned>(blocks);
  config.block_x = static_cast<unsigned>(threads);
  config.shared_memory_bytes = static_cast<unsigned>(shared_bytes);
  config.stream = context_.stream();
  check(driver().launch_kernel_ex(&config, functions_[which], arguments, nullptr), "cuLaunchKernelEx", names[which]);
}

void LinalgKernels::poison(const int* info, int words, int64_t count, std::span<const Matrices> results) const {
  auto r = three(results);
  std::array<int64_t, 3> numbers;
  for (size_t i = 0; i < 3; ++i) numbers[i] = static_cast<int64_t>(r[i].bytes / 4);
  void* arguments[] = {&info, &words, &r[0].first, &numbers[0], &r[1].first, &numbers[1], &r[2].first, &numbers[2]};
  launch(nan, count, 128, 0, arguments);
}

void LinalgKernels::addresses(void* to, int64_t count, std::span<const Matrices> of) const {
  auto m = three(of);
  std::array<int64_t, 3> bytes;
  for (size_t i = 0; i < 3; ++i) bytes[i] = static_cast<int64_t>(m[i].bytes);
  void* arguments[] = {&to, &count, &m[0].first, &bytes[0], &m[1].first, &bytes[1], &m[2].first, &bytes[2]};
  launch(table, (count + 127) / 128, 128, 0, arguments);
}

void LinalgKernels::exchanged_rows(const int* pivots, int pivoted, uint32_t* to, int m, int64_t count) const {
  void* arguments[] = {&pivots, &pivoted, &to, &m};
  launch(rows, count, 32, static_cast<size_t>(m) * sizeof(uint32_t), arguments);
}

void LinalgKernels::upper_parts(bool doubles, const void* from, void* to, int n, int64_t count) const {
  int words = doubles ? 2 : 1;
  int64_t all = count * n * n * words;
  void* arguments[] = {&from, &to, &n, &words, &all};
  launch(upper, (all + 127) / 128, 128, 0, arguments);
}

void LinalgKernels::columns_of_q(bool doubles, const void* reflections, const void* tau, void* q, int m, int n,
                                 int columns, int64_t count) const {
  const size_t column = static_cast<size_t>(m) * (doubles ? sizeof(double) : sizeof(float));
  const int warps = static_cast<int>(std::min({static_cast<size_t>(most_warps), static_cast<size_t>(columns),
                                               std::max<size_t>(1, usual_shared_bytes / column)}));
  void* arguments[] = {&reflections, &tau, &q, &m, &n, &columns};
  launch(doubles ? q_doubles : q_floats, count, 32 * warps, static_cast<size_t>(warps) * column, arguments);
}

}  // namespace weft::target::cuda
