// What all generated kernels, and most hand-written ones, are made of: names of types, the operators of kernel/scalar.h
// that CUDA C++ has no function for (with the meanings stated there; base/half.h has the same conversions on the host),
// and instructions. Compiled by NVRTC; tests/compiler/host_cuda runs the parts without inline assembly on the host.
typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
struct alignas(4) W4 {
  u32 x;
};
struct alignas(8) W8 {
  u32 x, y;
};
struct alignas(16) W16 {
  u32 x, y, z, w;
};
#define EACH \
  _Pragma("unroll") for
#define FN static __device__ __forceinline__

FN u32 bits(f32 v) { return __float_as_uint(v); }
FN f32 real(u32 v) { return __uint_as_float(v); }
FN u64 bits(f64 v) { return (u64)__double_as_longlong(v); }
FN f64 real(u64 v) { return __longlong_as_double((i64)v); }

// NaN wins, -0 is below +0.
FN f32 fmaximum(f32 a, f32 b) {
  f32 r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
FN f32 fminimum(f32 a, f32 b) {
  f32 r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
FN f64 fmaximum(f64 a, f64 b) { return a != a ? a : b != b ? b : a == b ? real(bits(a) & bits(b)) : a > b ? a : b; }
FN f64 fminimum(f64 a, f64 b) { return a != a ? a : b != b ? b : a == b ? real(bits(a) | bits(b)) : a < b ? a : b; }
template <class T>
FN T imax(T a, T b) {
  return a > b ? a : b;
}
template <class T>
FN T imin(T a, T b) {
  return a < b ? a : b;
}
FN f32 fexp2(f32 a) {
  f32 r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
  return r;
}
FN f32 frecip(f32 a) {
  f32 r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
  return r;
}
// The instruction and one step of Newton's method. No branch, unlike a correctly rounded square root and quotient.
FN f32 frsqrt(f32 a) {
  f32 r;
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(a));
  const f32 better = fmaf(0.5f * r, fmaf(-a * r, r, 1.0f), r);
  return a > 1.17549435e-38f && a < 3.4028235e38f ? better : r;
}
FN f32 ffloordiv(f32 a, f32 b) { return floorf(__fdiv_rn(a, b)); }
FN f64 ffloordiv(f64 a, f64 b) { return floor(a / b); }
FN f32 fmodulo(f32 a, f32 b) {
  f32 r = fmodf(a, b);
  return r != 0.0f && (r < 0.0f) != (b < 0.0f) ? r + b : r;
}
FN f64 fmodulo(f64 a, f64 b) {
  f64 r = fmod(a, b);
  return r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r;
}
// The product is exact in f64, so there is one rounding, to f32.
FN f32 fldexp(f32 a, f32 n) {
  return n != n ? n : (f32)((f64)a * real((u64)((i64)fminf(fmaxf(floorf(n), -400.0f), 400.0f) + 1023) << 52));
}
FN f64 flogaddexp(f64 a, f64 b) {
  return a == b ? a + 0.69314718055994530942 : a != a || b != b ? a + b : fmax(a, b) + log1p(exp(-fabs(a - b)));
}

// Toward minus infinity; by zero 0; wrapping.
template <class T>
FN T ufloordiv(T a, T b) {
  return b == 0 ? (T)0 : (T)(a / b);
}
template <class T>
FN T umodulo(T a, T b) {
  return b == 0 ? (T)0 : (T)(a % b);
}
template <class T, class U>
FN T sfloordiv(T a, T b) {
  if (b == 0) return 0;
  if (b == -1) return (T)(U)(0 - (U)a);
  T q = (T)(a / b), r = (T)(a % b);
  return r != 0 && (r < 0) != (b < 0) ? (T)(q - 1) : q;
}
template <class T>
FN T smodulo(T a, T b) {
  if (b == 0 || b == -1) return 0;
  T r = (T)(a % b);
  return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r;
}
// Shifts by the width or more leave nothing but the sign. A funnel shift is an instruction whose count ends at 32.
template <class T, class U>
FN T shiftleft(T a, T n) {
  if constexpr (sizeof(T) == 4) return (T)__funnelshift_lc(0u, (u32)a, (u32)n);
  return (U)n < sizeof(T) * 8 ? (T)((u64)(U)a << (u32)(U)n) : (T)0;
}
template <class T, class U>
FN T shiftright(T a, T n) {
  if constexpr (sizeof(T) == 4 && (T)-1 > (T)0) return (T)__funnelshift_rc((u32)a, 0u, (u32)n);
  return (U)n < sizeof(T) * 8 ? (T)(a >> (int)n) : (T)(a < (T)0 ? (T)-1 : (T)0);
}
FN u8 upperhalf(u8 a, u8 b) { return (u8)(((u32)a * b) >> 8); }
FN u16 upperhalf(u16 a, u16 b) { return (u16)(((u32)a * b) >> 16); }
FN u32 upperhalf(u32 a, u32 b) { return __umulhi(a, b); }
FN u64 upperhalf(u64 a, u64 b) { return __umul64hi(a, b); }
FN i8 upperhalf(i8 a, i8 b) { return (i8)upperhalf((u8)a, (u8)b); }
FN i16 upperhalf(i16 a, i16 b) { return (i16)upperhalf((u16)a, (u16)b); }
FN i32 upperhalf(i32 a, i32 b) { return (i32)upperhalf((u32)a, (u32)b); }
FN i64 upperhalf(i64 a, i64 b) { return (i64)upperhalf((u64)a, (u64)b); }

// All bits of a product. As assembly: of arithmetic in C++ the compiler first prunes what leads to words of Philox that
// an element does not select, and then no longer finds that several elements have equal products.
FN void whole_product(u32 a, u32 b, u32& low, u32& high) {
  asm("{ .reg .b64 product; mul.wide.u32 product, %2, %3; mov.b64 {%0, %1}, product; }"
      : "=r"(low), "=r"(high)
      : "r"(a), "r"(b));
}
struct RandomWords {
  u32 at[4];
};
// The words of Philox-4x32-10. Counters are often 0 in part: the first round is arithmetic that constants shorten.
FN RandomWords philox(u32 key0, u32 key1, u32 c0, u32 c1, u32 c2, u32 c3) {
  RandomWords x = {{upperhalf(c2, 0xCD9E8D57u) ^ c1 ^ key0, c2 * 0xCD9E8D57u, upperhalf(c0, 0xD2511F53u) ^ c3 ^ key1,
                    c0 * 0xD2511F53u}};
  EACH (u32 n = 1; n < 10; ++n) {
    u32 a, b, a_high, b_high;
    whole_product(x.at[0], 0xD2511F53u, a, a_high);
    whole_product(x.at[2], 0xCD9E8D57u, b, b_high);
    x = {{b_high ^ x.at[1] ^ (key0 + n * 0x9E3779B9u), b, a_high ^ x.at[3] ^ (key1 + n * 0xBB67AE85u), a}};
  }
  return x;
}

// Floats to integers truncate and saturate; NaN gives 0.
template <class F>
FN i64 to_i64(F v) {
  return v != v                           ? 0
         : v >= (F)9223372036854775808.0  ? 9223372036854775807ll
         : v <= (F)-9223372036854775808.0 ? (i64)(1ull << 63)
                                          : (i64)v;
}
template <class F>
FN u64 to_u64(F v) {
  return !(v > (F)0) ? 0ull : v >= (F)18446744073709551616.0 ? ~0ull : (u64)v;
}
template <class F>
FN i64 to_signed(F v, i64 low, i64 high) {
  return v != v ? 0 : v >= (F)high ? high : v <= (F)low ? low : (i64)v;
}
template <class F>
FN i64 to_unsigned(F v, i64 high) {
  return !(v > (F)0) ? 0 : v >= (F)high ? high : (i64)v;
}

FN f32 from_bf16(u16 v) { return real((u32)v << 16); }
FN f32 from_bf16(const u16* v, int r) {
  const u32 word = ((const u32*)v)[r >> 1];
  return real(r & 1 ? word & 0xffff0000u : word << 16);
}
// Returns v & mask, below 2^23: its bits are the fraction of 2^23 + the number. One instruction masks and joins.
FN f32 masked_to_float(u32 v, u32 mask) {
  u32 bits;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(bits) : "r"(v), "r"(mask), "r"(0x4b000000u));
  return real(bits) - 8388608.0f;
}
FN u16 to_bf16(f32 v) {
  u16 r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(v));
  return r;
}
FN f32 from_f16(u16 v) {
  f32 r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(v));
  return r;
}
FN u16 to_f16(f32 v) {
  u16 r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(v));
  return r;
}
// Two numbers in a word, the first one in its lower half.
FN u32 to_bf16_pair(f32 low, f32 high) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
FN u32 to_f16_pair(f32 low, f32 high) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
template <int M, int B, u32 Largest>
FN f32 from_f8(u8 v) {
  const u32 sign = (u32)(v & 0x80u) << 24, size = v & 0x7fu, moved = size << (23 - M);
  return size > Largest ? real(sign | 0x7f800000u | moved)
                        : real(sign | bits(real(moved) * real((u32)(254 - B) << 23)));
}
template <int M, int B, u32 Largest, u32 Infinity, u32 Quiet>
FN u8 to_f8(f32 v) {
  const u32 u = bits(v), size = u & 0x7fffffffu, sign = (u >> 24) & 0x80u;
  if (size > 0x7f800000u) return (u8)(sign | Quiet | (size >> 21 & 1u));
  if (size == 0x7f800000u) return (u8)(sign | Infinity);
  constexpr int shift = 23 - M;
  u32 r;
  if (size >= (u32)(128 - B) << 23)
    r = (size - ((u32)(127 - B) << 23) + (1u << (shift - 1)) - 1u + ((size >> shift) & 1u)) >> shift;
  else r = bits(real(size) + real((u32)(128 - B + shift) << 23)) - ((u32)(128 - B + shift) << 23);
  return (u8)(sign | (r < Largest ? r : Largest));
}
FN f32 from_e4m3(u8 v) { return from_f8<3, 7, 0x7eu>(v); }
FN f32 from_e5m2(u8 v) { return from_f8<2, 15, 0x7bu>(v); }
#if __CUDA_ARCH__ >= 890
// The instructions make infinities the largest number, and every NaN a positive one. No branches: loads are to stay
// together.
FN u8 to_e4m3(f32 v) {
  u16 r;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(0.0f), "f"(v));
  return (u8)(r | (bits(v) >> 24 & 0x80u));
}
FN u8 to_e5m2(f32 v) {
  u16 r;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(r) : "f"(0.0f), "f"(v));
  const u32 size = bits(v) & 0x7fffffffu, not_finite = size == 0x7f800000u ? 0x7cu : 0x7eu | (size >> 21 & 1u);
  return (u8)((size < 0x7f800000u ? r : not_finite) | (bits(v) >> 24 & 0x80u));
}
#else
FN u8 to_e4m3(f32 v) { return to_f8<3, 7, 0x7eu, 0x7eu, 0x7fu>(v); }
FN u8 to_e5m2(f32 v) { return to_f8<2, 15, 0x7bu, 0x7cu, 0x7eu>(v); }
#endif

// Atomic *place = add(*place), by compare-and-swap on the word around it; returns what was there.
template <class T, class Add>
FN T atomic_update(T* place, Add add) {
  if constexpr (sizeof(T) == 8) {
    u64 *word = (u64*)place, old = *word, seen;
    do {
      seen = old;
      T next = add(*(T*)&seen);
      old = atomicCAS(word, seen, *(u64*)&next);
    } while (old != seen);
    return *(T*)&old;
  } else {
    const u64 address = (u64)place;
    u32 *word = (u32*)(address & ~3ull), old = *word, seen;
    const u32 shift = (u32)(address & 3u) * 8u,
              mask = sizeof(T) == 4 ? ~0u : ((1u << (sizeof(T) * 8 % 32)) - 1u) << shift;
    do {
      seen = old;
      u32 bits_then = (seen & mask) >> shift;
      T next = add(*(T*)&bits_then);
      u32 bits_now = 0;
      *(T*)&bits_now = next;
      old = atomicCAS(word, seen, (seen & ~mask) | (bits_now << shift & mask));
    } while (old != seen);
    old = (old & mask) >> shift;
    return *(T*)&old;
  }
}

// Atomic *place += v of integers. 32 and 64 bits are instructions of shared memory and of the L2.
template <class T, class V>
FN void atomic_sum(T* place, V v) {
  if constexpr (sizeof(T) == 4) atomicAdd((u32*)place, (u32)v);
  else if constexpr (sizeof(T) == 8) atomicAdd((u64*)place, (u64)v);
  else atomic_update(place, [&](T old) { return (T)(old + v); });
}

FN void prefetch_line(const void* at) { asm volatile("prefetch.global.L2 [%0];" : : "l"(at)); }
// Shared memory by 32-bit addresses: asynchronous copies of 16 bytes from global memory (of `bytes` of them, filled up
// with zeros), and 8 x 8 matrices of 16-bit elements.
FN u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
FN void copy_async(u32 to, const void* from) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" : : "r"(to), "l"(from) : "memory");
}
FN void copy_async(u32 to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" : : "r"(to), "l"(from), "r"(bytes) : "memory");
}
FN void commit_copies() { asm volatile("cp.async.commit_group;" : : : "memory"); }
template <int Left>
FN void wait_copies() {
  asm volatile("cp.async.wait_group %0;" : : "n"(Left) : "memory");
}
FN void store_shared(u32 to, W16 v) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};"
               :
               : "r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}
FN u32 load_shared(u32 from) {
  u32 r;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(r) : "r"(from) : "memory");
  return r;
}
template <int Chunks>
FN u32 swizzled(int line, int chunk) {
  return (u32)(line * Chunks + (chunk ^ (Chunks >= 8 ? line & 7 : line / (8 / Chunks) & (Chunks - 1)))) * 16u;
}
template <int Lines, int Chunks = 8>
FN u32 in_panels(int line, int chunk) {
  return (u32)(chunk / Chunks * Lines * Chunks * 16) + swizzled<Chunks>(line, chunk % Chunks);
}
FN void ldmatrix(u32* r, u32 from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from)
               : "memory");
}
FN void ldmatrix_turned(u32* r, u32 from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from)
               : "memory");
}
// Writes four matrices of 8 x 8 whose columns become lines: lane l says where line l % 8 of matrix l / 8 begins.
FN void store_turned(u32 to, const u32* r) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
               :
               : "r"(to), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}
// Warpgroups: fence_for_wgmma makes what was copied to shared memory visible to wgmma. The tensor cores own the
// accumulators from wgmma_fence until what was committed has been waited for.
FN void fence_for_wgmma() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }
FN void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }
FN void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); }
template <int Left>
FN void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(Left) : "memory");
}
// Keeps what reads accumulators behind the wait for them.
template <int Count>
FN void wgmma_settle(f32* c) {
  EACH (int i = 0; i < Count; ++i) asm volatile("" : "+f"(c[i]) : : "memory");
}
template <int Count>
FN void wgmma_settle(i32* c) {
  EACH (int i = 0; i < Count; ++i) asm volatile("" : "+r"(c[i]) : : "memory");
}
// mbarriers: `count` threads and the bytes that copies bring end a phase; who waits for a phase of `parity` goes on
// after it. TMA copies a box of a matrix into shared memory, whose bytes an mbarrier counts.
struct alignas(128) TensorMap {
  u64 v[16];
};

FN void barrier_init(u32 at, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(at), "r"(count) : "memory");
}
FN void barrier_expect(u32 at, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(at), "r"(bytes) : "memory");
}
FN void barrier_wait(u32 at, u32 parity) {
  u32 done;
  do
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(done)
                 : "r"(at), "r"(parity)
                 : "memory");
  while (!done);
}
FN void barrier_arrive(u32 at) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(at) : "memory"); }
FN void fence_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory"); }
FN void copy_box(u32 to, const TensorMap* map, int x, int y, u32 barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
               :
               : "r"(to), "l"(map), "r"(x), "r"(y), "r"(barrier)
               : "memory");
}
// TMA copies a box from shared memory into a matrix, and cuts off what lies outside. Who has committed such copies
// waits until all but the last `Left` groups of them have been read. Threads of a warpgroup meet at a barrier of their
// own.
FN void store_box(const TensorMap* map, u32 from, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];"
               :
               : "l"(map), "r"(from), "r"(x), "r"(y)
               : "memory");
}
FN void commit_stores() { asm volatile("cp.async.bulk.commit_group;" : : : "memory"); }
template <int Left>
FN void wait_stores() {
  asm volatile("cp.async.bulk.wait_group.read %0;" : : "n"(Left) : "memory");
}
FN void meet_warpgroup() { asm volatile("bar.sync %0, 128;" : : "r"(8 + ((int)threadIdx.x >> 7)) : "memory"); }
// Warps of a group give registers back, or take them.
template <int Registers>
FN void fewer_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(Registers));
}
template <int Registers>
FN void more_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(Registers));
}
// The barrier of the first threads of a block, which others pass by.
template <int Threads>
FN void meet_first() {
  asm volatile("bar.sync 1, %0;" : : "n"(Threads) : "memory");
}
// The barrier of a set of warpgroups that have a program of their own.
template <int Threads>
FN void meet_set(int set) {
  asm volatile("bar.sync %0, %1;" : : "r"(1 + set), "n"(Threads) : "memory");
}
// An instruction of a warpgroup: 64 rows, Columns columns; which operands are not contiguous along k. Sources define
// `wgmma` for the forms that they use: c = a b, plus c where `more` is not 0, of a matrix or of registers and a matrix.
template <class Type, int Columns, bool A, bool B>
struct Wgmma {};
struct Bf16 {};
struct F16 {};
struct Tf32 {};
struct E4m3 {};
struct E5m2 {};
struct S8 {};
struct U8 {};
// A matrix in shared memory (PTX ISA, wgmma): where it begins, and in units of 16 bytes how far apart panels and groups
// of eight lines are; lines of 128 (1), 64 (2) or 32 bytes (3), swizzled.
FN u64 matrix_at(u32 at, u32 panels, u32 groups, u32 lines) {
  return (u64)(at >> 4) | (u64)panels << 16 | (u64)groups << 32 | (u64)lines << 62;
}
FN u32 to_tf32(u32 v) {
  u32 r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(real(v)));
  return r;
}
// c + a b, with what TF32 keeps of a and b; with what three such products keep.
FN f32 fma_tf32(f32 a, f32 b, f32 c) { return fmaf(real(to_tf32(bits(a))), real(to_tf32(bits(b))), c); }
FN f32 fma_tf32x3(f32 a, f32 b, f32 c) {
  const f32 x = real(to_tf32(bits(a))), y = real(to_tf32(bits(b)));
  return fmaf(x, y, fmaf(x, real(to_tf32(bits(b - y))), fmaf(real(to_tf32(bits(a - x))), y, c)));
}
// c += a b, a of 16 rows, b of 8 columns.
FN void mma_bf16(f32* c, const u32* a, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
FN void mma_f16(f32* c, const u32* a, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
FN void mma_tf32(f32* c, const u32* a, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
FN void mma_s8(i32* c, const u32* a, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
FN void mma_u8(i32* c, const u32* a, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 890
FN void mma_e4m3(f32* c, const u32* a, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
FN void mma_e5m2(f32* c, const u32* a, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#endif

// Copies of 4 and 8 bytes, and where an element lies whose buffer is swizzled.
template <int Size>
FN void copy_few_async(u32 to, const void* from, int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
               :
               : "r"(to), "l"(from), "n"(Size), "r"(bytes)
               : "memory");
}
template <int Line, int Size>
FN int swizzled(i64 element) {
  const int byte = (int)element * Size;
  return (byte ^ (byte >> 3 & (Line - 16))) / Size;
}
// Barriers in shared memory (mbarrier). track_copies: the present phase does not end before this thread's copies are
// done. copy_bulk is the same for one thread's copy of a row, whose bytes expect_bytes announces.
FN void begin_barrier(u32 at, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" : : "r"(at), "r"(arrivals) : "memory");
}
FN void arrive_at(u32 at) {
  asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" : : "r"(at) : "memory");
}
FN void track_copies(u32 at) { asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" : : "r"(at) : "memory"); }
FN void await_parity(u32 at, u32 parity) {
  asm volatile(
      "{ .reg .pred p; again: mbarrier.test_wait.parity.shared.b64 p, [%0], %1; @p bra done; bra again; done: }"
      :
      : "r"(at), "r"(parity)
      : "memory");
}
template <int Name, int Threads>
FN void sync_role() {
  asm volatile("bar.sync %0, %1;" : : "n"(Name), "n"(Threads) : "memory");
}
#if __CUDA_ARCH__ >= 900
FN void expect_bytes(u32 at, u32 bytes) {
  asm volatile("fence.proxy.async.shared::cta; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;"
               :
               : "r"(at), "r"(bytes)
               : "memory");
}
FN void copy_bulk(u32 to, const void* from, u32 bytes, u32 barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               :
               : "r"(to), "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}
template <bool More, int Registers>
FN void set_registers() {
  if constexpr (More) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(Registers));
  else asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(Registers));
}
#endif

// Programmatic dependent launch. begin_next lets the next kernel of the stream begin, which prepares until its inputs
// are there. wait_for_previous waits for the kernel before this one; the zero that it returns is added to the addresses
// of what that kernel writes, so that the compiler moves no load before the wait.
FN void begin_next() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}
FN i64 wait_for_previous() {
  i64 zero = 0;
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait; mov.u64 %0, 0;" : "=l"(zero) : : "memory");
#endif
  return zero;
}
// Clusters: this block's rank, the barrier of all blocks (cluster_begin arrives at it without a release), and another
// block's shared memory.
#if __CUDA_ARCH__ >= 900
FN int cluster_rank() {
  u32 r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return (int)r;
}
FN void cluster_begin() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" : : : "memory"); }
FN void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" : : : "memory"); }
FN void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" : : : "memory"); }
FN u8* in_block(u8* p, int block) {
  u64 place;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(place) : "l"(p), "r"(block));
  return (u8*)place;
}
#endif
// A pointer to memory that changes while the kernel waits. The compiler would assume that nobody writes through a
// parameter that this kernel only reads.
template <class T>
FN T* changing(T* p) {
  u64 place;
  asm volatile("cvta.to.global.u64 %0, %1;" : "=l"(place) : "l"(p));
  return (T*)__cvta_global_to_generic(place);
}
// A number of which the compiler knows nothing: constants that are added to it stay in the instructions' addresses.
FN int opaque(int v) {
  asm("" : "+r"(v));
  return v;
}
// Loads that the compiler may not move to later.
FN W16 read_now(const W16* p) {
  W16 v;
  asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}
FN W8 read_now(const W8* p) {
  W8 v;
  asm volatile("ld.volatile.global.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
  return v;
}
FN W4 read_now(const W4* p) {
  W4 v;
  asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(v.x) : "l"(p));
  return v;
}
// The same through L1.
FN W16 read_cached(const W16* p) {
  W16 v;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}
FN W8 read_cached(const W8* p) {
  W8 v;
  asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
  return v;
}
FN W4 read_cached(const W4* p) {
  W4 v;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(v.x) : "l"(p));
  return v;
}
// Single elements go through L1, where neighbours in a loop find them.
FN f32 read_now(const f32* p) {
  f32 v;
  asm volatile("ld.global.f32 %0, [%1];" : "=f"(v) : "l"(p));
  return v;
}
FN u32 read_now(const u32* p) {
  u32 v;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(p));
  return v;
}
FN u16 read_now(const u16* p) {
  u16 v;
  asm volatile("ld.global.u16 %0, [%1];" : "=h"(v) : "l"(p));
  return v;
}
FN u8 read_now(const u8* p) {
  u32 v;
  asm volatile("ld.global.u8 %0, [%1];" : "=r"(v) : "l"(p));
  return (u8)v;
}

// Stores of one word, which the compiler would split.
FN void put_word(W16* p, W16 v) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}
FN void put_word(W8* p, W8 v) {
  asm volatile("st.global.v2.u32 [%0], {%1, %2};" : : "l"(p), "r"(v.x), "r"(v.y) : "memory");
}
FN void put_word(W4* p, W4 v) { *p = v; }

// Selects between two values. For c ? a[1] : a[0] the compiler would select between addresses, which registers have
// not.
template <class T>
FN T chosen(bool first, T a, T b) {
  return first ? a : b;
}
// Whether element a of a sort, number i, comes before b, number j: NaN comes last, and equal elements keep their order.
template <class T>
FN bool comes_before(T a, int i, T b, int j, bool descending) {
  const bool no_a = a != a, no_b = b != b;
  if (no_a || no_b) return no_a == no_b ? i < j : no_b;
  return a == b ? i < j : (a < b) != descending;
}
// Transposes N x N elements in registers; those of two bytes by pairs, so that the compiler sees whole words.
template <int N, class T>
FN void turn(const T* from, T* to) {
  if constexpr (sizeof(T) == 2) {
    EACH (int i = 0; i < N * N / 4; ++i) {
      const int line = i / (N / 2), pair = i % (N / 2);
      const u32 a = ((const W4*)from)[2 * pair * (N / 2) + line].x,
                b = ((const W4*)from)[(2 * pair + 1) * (N / 2) + line].x;
      ((W4*)to)[2 * line * (N / 2) + pair].x = __byte_perm(a, b, 0x5410);
      ((W4*)to)[(2 * line + 1) * (N / 2) + pair].x = __byte_perm(a, b, 0x7632);
    }
  } else {
    EACH (int r = 0; r < N * N; ++r) to[r] = from[r % N * N + r / N];
  }
}
// Returns the index of what is there, else 0, by halves: ptxas (CUDA 13.0) makes `there ? a * b : 0` of 64 bits a
// multiplication under a condition, and reads the register too soon after it cleared it (CS2R, five cycles): a lane
// where the condition does not hold gets what the register held before.
FN i64 index_if(bool there, i64 index) {
  i64 out;
  asm("{.reg .pred p; .reg .b32 low, high; setp.ne.s32 p, %2, 0; mov.b64 {low, high}, %1; selp.b32 low, low, 0, p; "
      "selp.b32 high, high, 0, p; mov.b64 %0, {low, high};}"
      : "=l"(out)
      : "l"(index), "r"((int)there));
  return out;
}
FN W4 word_if(bool there, const W4* at, u32 other) {
  const W4 w = *at;
  return {there ? w.x : other};
}
FN W8 word_if(bool there, const W8* at, u32 other) {
  const W8 w = *at;
  return {there ? w.x : other, there ? w.y : other};
}
FN W16 word_if(bool there, const W16* at, u32 other) {
  const W16 w = *at;
  return {there ? w.x : other, there ? w.y : other, there ? w.z : other, there ? w.w : other};
}
// Returns the value of the lane whose index differs in the bits of `mask`.
template <class T>
FN T lane_xor(T v, int mask) {
  if constexpr (sizeof(T) == 8) {
    W8 w = *(W8*)&v;
    w.x = __shfl_xor_sync(0xffffffffu, w.x, mask), w.y = __shfl_xor_sync(0xffffffffu, w.y, mask);
    return *(T*)&w;
  } else if constexpr (sizeof(T) == 4) {
    u32 w = __shfl_xor_sync(0xffffffffu, *(u32*)&v, mask);
    return *(T*)&w;
  } else {
    return (T)__shfl_xor_sync(0xffffffffu, (u32)v, mask);
  }
}
