// Small kernels beside cuSOLVER's and cuBLAS's routines on batches of matrices (libraries/cusolver*.cpp): tables of
// addresses, permutations, triangles, conjugates, NaN where a routine failed, and the columns of Q from Householder
// reflections (LAPACK's orgqr and ungqr). They have no parameters: shapes are arguments. A matrix of a batch lies `n…`
// bytes or words after the one before.
typedef unsigned int u32;
typedef long long i64;

// Matrix k of up to three arrays becomes NaN throughout where one of info[k * words …] is not 0. One matrix a block.
// All bits but the sign are a NaN in float32, and two such words one in float64.
extern "C" __global__ void linalg_nan(const int* const info, const int words, u32* const a, const i64 na, u32* const b,
                                      const i64 nb, u32* const c, const i64 nc) {
  const i64 k = blockIdx.x;
  bool failed = false;
  for (int i = 0; i < words; ++i) failed = failed || info[k * words + i] != 0;
  if (!failed) return;
  for (i64 i = threadIdx.x; i < na; i += blockDim.x) a[k * na + i] = 0x7fffffffu;
  for (i64 i = threadIdx.x; i < nb; i += blockDim.x) b[k * nb + i] = 0x7fffffffu;
  for (i64 i = threadIdx.x; i < nc; i += blockDim.x) c[k * nc + i] = 0x7fffffffu;
}

// to[i * count + k]: the address of matrix k of the i-th of up to three arrays, for routines on batches of pointers.
extern "C" __global__ void linalg_table(char** const to, const i64 count, char* const a, const i64 na, char* const b,
                                        const i64 nb, char* const c, const i64 nc) {
  const i64 k = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= count) return;
  to[k] = a + k * na;
  if (b) to[count + k] = b + k * nb;
  if (c) to[2 * count + k] = c + k * nc;
}

// rows[k * m …]: the indices of m rows after rows 0, 1 … were exchanged with rows pivots[k * pivoted …] - 1, one after
// the other (LAPACK's laswp). One matrix a block; the exchanges depend on each other, so one thread makes them.
extern "C" __global__ void linalg_rows(const int* const pivots, const int pivoted, u32* const rows, const int m) {
  extern __shared__ u32 order[];
  for (int i = threadIdx.x; i < m; i += blockDim.x) order[i] = i;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int i = 0; i < pivoted; ++i) {
      const int other = pivots[(i64)blockIdx.x * pivoted + i] - 1;
      const u32 row = order[i];
      order[i] = order[other];
      order[other] = row;
    }
  __syncthreads();
  for (int i = threadIdx.x; i < m; i += blockDim.x) rows[(i64)blockIdx.x * m + i] = order[i];
}

// Copies what lies above the diagonals of matrices n x n whose elements have `words` words; `all` words together.
extern "C" __global__ void linalg_upper(const u32* const from, u32* const to, const int n, const int words,
                                        const i64 all) {
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= all) return;
  const i64 element = i / words % ((i64)n * n);
  if (element % n > element / n) to[i] = from[i];
}

// Conjugates complex numbers of `words` words each, whose imaginary part's sign is in the last one.
extern "C" __global__ void linalg_conjugate(u32* const a, const int words, const i64 count) {
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) a[i * words + words - 1] ^= 0x80000000u;
}

template <class T>
struct Complex {
  T re, im;
  Complex() = default;
  __device__ Complex(T real, T imaginary = 0) : re(real), im(imaginary) {}
};
template <class T>
__device__ Complex<T> operator*(Complex<T> a, Complex<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class T>
__device__ Complex<T>& operator+=(Complex<T>& a, Complex<T> b) {
  return a.re += b.re, a.im += b.im, a;
}
template <class T>
__device__ Complex<T>& operator-=(Complex<T>& a, Complex<T> b) {
  return a.re -= b.re, a.im -= b.im, a;
}
template <class T>
__device__ T conjugate(T x) {
  return x;
}
template <class T>
__device__ Complex<T> conjugate(Complex<T> z) {
  return {z.re, -z.im};
}
template <class T>
__device__ T of_lane(T x, int step) {
  return __shfl_xor_sync(0xffffffffu, x, step);
}
template <class T>
__device__ Complex<T> of_lane(Complex<T> z, int step) {
  return {of_lane(z.re, step), of_lane(z.im, step)};
}

// The first `columns` columns of Q = H0 H1 …, Hj = 1 - tau[j] v vH, where v is 0 above row j, 1 there, and column j of
// `a` below. Matrices of m rows and n reflections, column by column. One matrix a block, a column of Q a warp: a lane
// has every 32nd element of it in shared memory. Reflections after the column's own do not change it.
template <class T>
__device__ void columns_of_q(const T* a, const T* tau, T* q, const int m, const int n, const int columns) {
  extern __shared__ __align__(16) unsigned char memory[];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  T* const x = (T*)memory + (i64)warp * m;
  a += (i64)blockIdx.x * m * n, tau += (i64)blockIdx.x * n, q += (i64)blockIdx.x * m * columns;
  for (int c = warp; c < columns; c += warps) {
    for (int i = lane; i < m; i += 32) x[i] = i == c ? T(1) : T(0);
    for (int j = c < n ? c : n - 1; j >= 0; --j) {
      const T* const v = a + (i64)j * m;
      const int first = j / 32 * 32 + lane;
      T sum = T(0);
      for (int i = first; i < m; i += 32) sum += i < j ? T(0) : i == j ? x[i] : conjugate(v[i]) * x[i];
      for (int step = 16; step > 0; step /= 2) sum += of_lane(sum, step);
      sum = tau[j] * sum;
      for (int i = first; i < m; i += 32)
        if (i >= j) x[i] -= i == j ? sum : v[i] * sum;
    }
    for (int i = lane; i < m; i += 32) q[(i64)c * m + i] = x[i];
  }
}
extern "C" __global__ void linalg_q_floats(const float* a, const float* tau, float* q, const int m, const int n,
                                           const int columns) {
  columns_of_q(a, tau, q, m, n, columns);
}
extern "C" __global__ void linalg_q_doubles(const double* a, const double* tau, double* q, const int m, const int n,
                                            const int columns) {
  columns_of_q(a, tau, q, m, n, columns);
}
extern "C" __global__ void linalg_q_complex_floats(const Complex<float>* a, const Complex<float>* tau,
                                                   Complex<float>* q, const int m, const int n, const int columns) {
  columns_of_q(a, tau, q, m, n, columns);
}
extern "C" __global__ void linalg_q_complex_doubles(const Complex<double>* a, const Complex<double>* tau,
                                                    Complex<double>* q, const int m, const int n, const int columns) {
  columns_of_q(a, tau, q, m, n, columns);
}
