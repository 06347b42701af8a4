// What a source that was rendered for a GPU needs to be compiled for the CPU: CUDA's words, and a block whose threads
// are fibers that take turns. A thread goes on until it waits for others; those that wait are asked again in each
// round. Blocks of a cluster take turns where they wait for each other. Everything else of the prelude is the GPU's own
// text, but for its instructions by name, which are here.
#include <setjmp.h>
#include <ucontext.h>

#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "base/half.h"

#define fmaximum maximum_of  // as C++23 calls functions of its own
#define fminimum minimum_of
#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __shared__
#define __align__(n)
#define __restrict__
#define __grid_constant__
#define __builtin_assume(...) ((void)0)

typedef unsigned short u16;
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
struct Index {
  int x;
};
static Index threadIdx, blockIdx, gridDim;
alignas(128) u8 memory[256 << 10];

// --- a block, and a cluster of them ---

namespace block {

/// Begun once, by a context; from then on it jumps, which no system call is needed for.
struct Fiber {
  ucontext_t context;
  jmp_buf address;
  bool begun = false, done = false;
  unsigned cluster_round = 0;  // that it has arrived in
  std::vector<char> stack = std::vector<char>(64 << 10);
};
/// Who waits for whom: a warp's lanes, all threads of a block, or those of a cluster.
struct Meeting {
  int size = 0, arrived = 0;
  unsigned round = 0;
};
struct Copy {
  u8* to;
  const u8* from;
  int bytes;      // that are copied
  int size = 16;  // and that are written
};
static void finish(const Copy& c) {
  std::memset(c.to, 0, static_cast<size_t>(c.size));
  if (c.bytes > 0) std::memcpy(c.to, c.from, static_cast<size_t>(c.bytes));
}
/// Of a thread: those that have not been committed, and the groups of those that have.
struct Copies {
  std::vector<Copy> waiting;
  std::deque<std::vector<Copy>> groups;
};
/// Of a thread: what its warpgroup multiplies.
struct Products {
  std::vector<std::function<void()>> waiting;
  std::deque<std::vector<std::function<void()>>> groups;
};
/// Of a phase: arrivals that are wanted and left, and copies that are done when it is waited for.
struct Barrier {
  int wanted = 0, left = 0;
  u32 phase = 0;
  std::vector<Copy> copies, due;
};
/// An mbarrier of a producer, and the boxes whose bytes it counts.
struct BoxBarrier {
  int count = 0, left = 0;
  i64 bytes = 0;
  u32 phase = 0;
  std::vector<std::function<void()>> copies;
};
using Words = std::array<u32, 6>[32];  // of the lanes of a warp
struct Block {
  Meeting all, warps[32], roles[16];
  std::map<u32, Barrier> barriers;  // by address
  u32 slots[2][1024];
  Words words[2][32];
  unsigned turn[1024];  // of a thread's exchanges: those that follow each other use other slots
  Copies copies[1024];
  Products products[1024], box_stores[1024];
  Meeting first;                           // threads of the block that meet without the others
  std::map<u32, BoxBarrier> box_barriers;  // by address
  std::vector<u8> shared;                  // its shared memory while another block has its turn
};
static jmp_buf scheduler;
static std::deque<Fiber> fibers;  // block by block; who is in it stays where it is
static std::deque<Block> blocks;
static Meeting cluster;
static int threads = 1, rank = 0;
static void (*kernel)();

static Block& own() { return blocks[static_cast<size_t>(rank)]; }
static Fiber& self() { return fibers[static_cast<size_t>(rank * threads + threadIdx.x)]; }
static void give_way() {
  if (_setjmp(self().address) == 0) _longjmp(scheduler, 1);
}
static void resume(Fiber& f) {
  if (_setjmp(scheduler) != 0) return;
  if (f.begun) _longjmp(f.address, 1);
  f.begun = true;
  setcontext(&f.context);
}
static void arrive(Meeting& m) {
  if (++m.arrived >= m.size) m.arrived = 0, ++m.round;
}
static void meet(Meeting& m) {
  const unsigned round = m.round;
  arrive(m);
  while (m.round == round) give_way();
}
/// A thread that has ended is not waited for.
static void leave(Meeting& m) {
  if (--m.size > 0 && m.arrived >= m.size) m.arrived = 0, ++m.round;
}
/// The same thread of one block after the other.
static void thread_main() {
  for (;;) {
    kernel();
    leave(own().all), leave(own().warps[threadIdx.x / 32]), leave(cluster);
    self().done = true;
    give_way();
  }
}
static u32 exchanged(u32 v, int lane) {
  const int me = threadIdx.x;
  Block& b = own();
  u32* const now = b.slots[b.turn[me]++ & 1];
  now[me] = v;
  meet(b.warps[me / 32]);
  return now[(me & ~31) | lane];
}
/// Returns what all lanes of the warp publish.
static const Words& published(const std::array<u32, 6>& mine) {
  const int me = threadIdx.x;
  Block& b = own();
  Words& now = b.words[b.turn[me]++ & 1][me / 32];
  now[me & 31] = mine;
  meet(b.warps[me / 32]);
  return now;
}
static bool waits_for_cluster = false;  // the thread that has just given way
static bool sleeps = false;             // a thread of the block, until another block has done something
/// All threads of a block until each has ended or waits for other blocks. True: there are some of the latter.
static bool turn_of(int block) {
  rank = block;
  if (blocks.size() > 1) std::memcpy(memory, own().shared.data(), sizeof memory);
  bool left = true, goes_on = true;
  while (goes_on) {
    left = goes_on = sleeps = false;
    for (int t = 0; t < threads; ++t) {
      threadIdx.x = t;
      if (self().done) continue;
      waits_for_cluster = false;
      resume(self());
      left = left || !self().done;
      goes_on = goes_on || (!self().done && !waits_for_cluster);
    }
    goes_on = goes_on && !sleeps;
  }
  if (blocks.size() > 1) std::memcpy(own().shared.data(), memory, sizeof memory);
  return left;
}
static void run(void (*entry)(), int of_block, i64 grid, int cluster_size) {
  kernel = entry, threads = of_block;
  blocks.resize(static_cast<size_t>(cluster_size));
  for (size_t k = fibers.size(); k < static_cast<size_t>(threads * cluster_size); ++k) {
    Fiber& f = fibers.emplace_back();
    getcontext(&f.context);
    f.context.uc_stack = {f.stack.data(), 0, f.stack.size()};
    f.context.uc_link = nullptr;
    makecontext(&f.context, thread_main, 0);
  }
  gridDim.x = static_cast<int>(grid);
  for (i64 first = 0; first < grid; first += cluster_size) {
    cluster = {threads * cluster_size};
    for (Block& b : blocks) {
      b.all = {threads};
      b.first = {}, b.box_barriers.clear();
      for (Meeting& w : b.warps) w = {32};
      for (Meeting& r : b.roles) r = {};
      b.barriers.clear();
      for (int t = 0; t < threads; ++t) b.copies[t].waiting.clear(), b.copies[t].groups.clear();
      std::memset(b.turn, 0, sizeof b.turn);
      b.shared.assign(cluster_size > 1 ? sizeof memory : 0, 0xa5);
    }
    for (Fiber& f : fibers) f.done = false;
    std::memset(memory, 0xa5, sizeof memory);
    for (bool left = true; left;) {
      left = false;
      for (int k = 0; k < cluster_size; ++k) {
        blockIdx.x = static_cast<int>(first + k);
        left = turn_of(k) || left;
      }
    }
  }
}

}  // namespace block

/// An argument becomes a pointer of whatever type the entry has.
struct Argument {
  void* p;
  template <class T>
  operator T*() const {
    return static_cast<T*>(p);
  }
};

// --- what CUDA has built in ---

static void __syncthreads() { block::meet(block::own().all); }
static void __syncwarp() { block::meet(block::own().warps[threadIdx.x / 32]); }
static u32 __shfl_xor_sync(u32, u32 v, int mask) { return block::exchanged(v, (threadIdx.x & 31) ^ mask); }
static u32 __shfl_sync(u32, u32 v, int lane) { return block::exchanged(v, lane & 31); }
static u32 __shfl_up_sync(u32, u32 v, int by) {
  const int lane = threadIdx.x & 31;
  return block::exchanged(v, lane >= by ? lane - by : lane);
}
static u32 __ballot_sync(u32, bool holds) {
  u32 mask = 0;
  const auto& words = block::published({holds});
  for (u32 k = 0; k < 32; ++k) mask |= words[k][0] << k;
  return mask;
}
static u32 __match_any_sync(u32, u64 v) {
  u32 mask = 0;
  const auto& words = block::published({static_cast<u32>(v), static_cast<u32>(v >> 32)});
  const auto& own = words[threadIdx.x & 31];
  for (u32 k = 0; k < 32; ++k) mask |= u32{words[k] == own} << k;
  return mask;
}
template <class T, class F>
static T reduced(T v, F combined) {
  const auto& words = block::published({static_cast<u32>(v)});
  T out = static_cast<T>(words[0][0]);
  for (u32 k = 1; k < 32; ++k) out = combined(out, static_cast<T>(words[k][0]));
  return out;
}
template <class T>
static T __reduce_add_sync(u32, T v) {
  return reduced(v, [](T a, T b) { return static_cast<T>(static_cast<u32>(a) + static_cast<u32>(b)); });
}
template <class T>
static T __reduce_min_sync(u32, T v) {
  return reduced(v, [](T a, T b) { return b < a ? b : a; });
}
template <class T>
static T __reduce_max_sync(u32, T v) {
  return reduced(v, [](T a, T b) { return b > a ? b : a; });
}
static u32 __reduce_and_sync(u32, u32 v) {
  return reduced(v, [](u32 a, u32 b) { return a & b; });
}
static u32 __reduce_or_sync(u32, u32 v) {
  return reduced(v, [](u32 a, u32 b) { return a | b; });
}
static u32 __reduce_xor_sync(u32, u32 v) {
  return reduced(v, [](u32 a, u32 b) { return a ^ b; });
}
static int __ffs(int v) { return __builtin_ffs(v); }
template <class To, class From>
static To same_bits(From from) {
  To to;
  static_assert(sizeof to == sizeof from);
  std::memcpy(&to, &from, sizeof to);
  return to;
}
static u32 __float_as_uint(float v) { return same_bits<u32>(v); }
static float __uint_as_float(u32 v) { return same_bits<float>(v); }
static i64 __double_as_longlong(double v) { return same_bits<i64>(v); }
static double __longlong_as_double(i64 v) { return same_bits<double>(v); }
static float __fdiv_rn(float a, float b) { return a / b; }
static u32 __byte_perm(u32 a, u32 b, u32 bytes) {
  const u64 both = u64{b} << 32 | a;
  u32 r = 0;
  for (u32 k = 0; k < 4; ++k) r |= static_cast<u32>(both >> 8 * (bytes >> 4 * k & 7) & 0xff) << 8 * k;
  return r;
}
static u32 __funnelshift_lc(u32 low, u32 high, u32 n) {
  return static_cast<u32>((u64{high} << 32 | low) << std::min(n, 32u) >> 32);
}
static u32 __funnelshift_rc(u32 low, u32 high, u32 n) {
  return static_cast<u32>((u64{high} << 32 | low) >> std::min(n, 32u));
}
static u32 __umulhi(u32 a, u32 b) { return static_cast<u32>(u64{a} * b >> 32); }
static u64 __umul64hi(u64 a, u64 b) { return static_cast<u64>(static_cast<unsigned __int128>(a) * b >> 64); }
template <class T>
static T atomicCAS(T* address, T expected, T next) {
  const T old = *address;
  if (old == expected) *address = next;
  return old;
}
template <class T>
static T atomicAdd(T* address, T more) {
  const T old = *address;
  *address = old + more;
  return old;
}

// --- the prelude's functions that are instructions by name ---

static float fmaximum(float a, float b) {
  return a != a ? a : b != b ? b : a == b ? __uint_as_float(__float_as_uint(a) & __float_as_uint(b)) : a > b ? a : b;
}
static float fminimum(float a, float b) {
  return a != a ? a : b != b ? b : a == b ? __uint_as_float(__float_as_uint(a) | __float_as_uint(b)) : a < b ? a : b;
}
static float fexp2(float a) { return std::exp2(a); }
static float frecip(float a) { return 1 / a; }
static float frsqrt(float a) { return 1 / std::sqrt(a); }
static void whole_product(u32 a, u32 b, u32& low, u32& high) {
  const u64 product = (u64)a * b;
  low = (u32)product, high = (u32)(product >> 32);
}
static u16 to_bf16(float v) { return weft::float_to_bf16(v); }
static float from_f16(u16 v) { return weft::f16_to_float(v); }
static u16 to_f16(float v) { return weft::float_to_f16(v); }
static float masked_to_float(u32 v, u32 mask) { return std::bit_cast<float>((v & mask) | 0x4b000000u) - 8388608.0f; }
static void begin_next() {}
static i64 wait_for_previous() { return 0; }
template <class T>
static T* changing(T* p) {
  return p;
}
static int opaque(int v) { return v; }
template <class W>
static W read_now(const W* p) {
  return *p;
}
template <class W>
static W read_cached(const W* p) {
  return *p;
}
template <class W>
static void put_word(W* p, W v) {
  *p = v;
}

static int cluster_rank() { return block::rank; }
static void cluster_begin() { block::self().cluster_round = block::cluster.round, block::arrive(block::cluster); }
static void cluster_arrive() { cluster_begin(); }
static void cluster_wait() {
  const unsigned round = block::self().cluster_round;
  while (block::cluster.round == round) block::waits_for_cluster = true, block::give_way();
}
static void __nanosleep(u32) { block::sleeps = true, block::give_way(); }
static u32 atomicInc(u32* place, u32 last) {
  const u32 old = *place;
  *place = old >= last ? 0 : old + 1;
  return old;
}
static u8* in_block(u8* p, int rank) {
  return rank == block::rank ? p : block::blocks[static_cast<size_t>(rank)].shared.data() + (p - memory);
}

/// Addresses of shared memory count from its begin, as on a GPU.
static u32 shared_address(const void* p) { return static_cast<u32>(static_cast<const u8*>(p) - memory); }
template <class T>
static T& shared_at(u32 at) {
  return *reinterpret_cast<T*>(memory + at);
}
template <class W>
static void store_shared(u32 to, W v) {
  shared_at<W>(to) = v;
}
static u32 load_shared(u32 from) { return shared_at<u32>(from); }
static void prefetch_line(const void*) {}
static i64 index_if(bool there, i64 index) { return there ? index : 0; }

/// Copies into shared memory are done when their group is waited for, and not before.
static void copy_async(u32 to, const void* from, int bytes = 16) {
  block::own().copies[threadIdx.x].waiting.push_back({memory + to, static_cast<const u8*>(from), bytes});
}
static void commit_copies() {
  block::Copies& c = block::own().copies[threadIdx.x];
  c.groups.push_back(std::move(c.waiting));
  c.waiting.clear();
}
template <int Left>
static void wait_copies() {
  std::deque<std::vector<block::Copy>>& groups = block::own().copies[threadIdx.x].groups;
  for (; groups.size() > static_cast<size_t>(Left); groups.pop_front())
    for (const block::Copy& c : groups.front()) block::finish(c);
}

template <int Size>
static void copy_few_async(u32 to, const void* from, int bytes) {
  block::own().copies[threadIdx.x].waiting.push_back({memory + to, static_cast<const u8*>(from), bytes, Size});
}

// --- barriers, and the copies that they wait for ---

static void begin_barrier(u32 at, int arrivals) { block::own().barriers[at] = {arrivals, arrivals}; }
static void arrive_at(u32 at) {
  block::Barrier& b = block::own().barriers[at];
  if (--b.left > 0) return;
  b.left = b.wanted, ++b.phase;
  b.due.insert(b.due.end(), b.copies.begin(), b.copies.end());
  b.copies.clear();
}
static void track_copies(u32 at) {
  std::vector<block::Copy>& waiting = block::own().copies[threadIdx.x].waiting;
  std::vector<block::Copy>& copies = block::own().barriers[at].copies;
  copies.insert(copies.end(), waiting.begin(), waiting.end());
  waiting.clear();
}
static void expect_bytes(u32, u32) {}
static void barrier_step(block::BoxBarrier& b);
static void copy_bulk(u32 to, const void* from, u32 bytes, u32 barrier) {
  const auto own = block::own().box_barriers.find(barrier);
  if (own != block::own().box_barriers.end()) {
    block::BoxBarrier* const b = &own->second;
    return b->copies.push_back([=] {
      std::memcpy(memory + to, from, bytes);
      b->bytes -= bytes;
      barrier_step(*b);
    });
  }
  for (u32 k = 0; k < bytes; k += 16)
    block::own().barriers[barrier].copies.push_back({memory + to + k, static_cast<const u8*>(from) + k, 16});
}
static void await_parity(u32 at, u32 parity) {
  block::Barrier& b = block::own().barriers[at];
  while ((b.phase & 1) == parity) block::give_way();
  for (const block::Copy& c : b.due) block::finish(c);
  b.due.clear();
}
template <int Name, int Threads>
static void sync_role() {
  block::own().roles[Name].size = Threads;
  block::meet(block::own().roles[Name]);
}
template <bool More, int Registers>
static void set_registers() {}

// --- tensor cores: what a warp's lanes hold together ---

static u32 to_bf16_pair(float low, float high) { return to_bf16(low) | u32{to_bf16(high)} << 16; }
static u32 to_f16_pair(float low, float high) { return to_f16(low) | u32{to_f16(high)} << 16; }
static u32 to_tf32(u32 v) { return __float_as_uint(weft::float_to_tf32(__uint_as_float(v))); }

/// Four matrices of 8 x 8 elements of 16 bits. Lane l says where row l % 8 of matrix l / 8 lies, and gets two
/// neighbours of row l / 4 of each matrix; transposed, of each column.
static void ldmatrix(u32* r, u32 from, bool transposed = false) {
  const int lane = threadIdx.x & 31;
  const block::Words& rows = block::published({from});
  for (int matrix = 0; matrix < 4; ++matrix) {
    r[matrix] = 0;
    for (int half = 0; half < 2; ++half) {
      const int i = lane / 4, j = lane % 4 * 2 + half, row = transposed ? j : i, column = transposed ? i : j;
      const u32 at = rows[matrix * 8 + row][0] + static_cast<u32>(column) * 2;
      r[matrix] |= u32{shared_at<u16>(at)} << 16 * half;
    }
  }
}
static void ldmatrix_turned(u32* r, u32 from) { ldmatrix(r, from, true); }
static void store_turned(u32 to, const u32* r) {
  const int lane = threadIdx.x & 31;
  const block::Words& lines = block::published({to});
  for (int matrix = 0; matrix < 4; ++matrix)
    for (int half = 0; half < 2; ++half) {
      const int row = lane / 4, column = lane % 4 * 2 + half;
      const u32 at = lines[matrix * 8 + column][0] + static_cast<u32>(row) * 2;
      shared_at<u16>(at) = static_cast<u16>(r[matrix] >> 16 * half);
    }
}

static float multiply_add(float a, float b, float c) { return std::fma(a, b, c); }
static int multiply_add(int a, int b, int c) { return static_cast<int>(u32(c) + u32(a * b)); }

/// c += a b, of 16 rows and 8 columns, k in ascending order. A word holds PerWord elements that are neighbours along k.
/// Lane i % 8 · 4 + l has elements (i, k) of a, lane j · 4 + l elements (k, j) of b: word l of the four words of a half
/// of k. Its registers are those of the upper and the lower half of i, for each half of k.
template <int PerWord, class Sum, class Element>
static void multiply(Sum* c, const u32* a, u32 b0, u32 b1, Element element) {
  const int lane = threadIdx.x & 31;
  const block::Words& words = block::published({a[0], a[1], a[2], a[3], b0, b1});
  for (int q = 0; q < 4; ++q) {
    const int i = lane / 4 + q / 2 * 8, j = lane % 4 * 2 + q % 2;
    for (int k = 0; k < 8 * PerWord; ++k) {
      const int half = k / (4 * PerWord), word = k / PerWord % 4, part = k % PerWord;
      c[q] = multiply_add(element(words[i % 8 * 4 + word][i / 8 + 2 * half], part),
                          element(words[j * 4 + word][4 + half], part), c[q]);
    }
  }
}
static void mma_bf16(float* c, const u32* a, u32 b0, u32 b1) {
  multiply<2>(c, a, b0, b1,
              [](u32 word, int part) { return weft::bf16_to_float(static_cast<u16>(word >> 16 * part)); });
}
static void mma_f16(float* c, const u32* a, u32 b0, u32 b1) {
  multiply<2>(c, a, b0, b1, [](u32 word, int part) { return weft::f16_to_float(static_cast<u16>(word >> 16 * part)); });
}
static void mma_tf32(float* c, const u32* a, u32 b0, u32 b1) {
  multiply<1>(c, a, b0, b1, [](u32 word, int) { return __uint_as_float(word); });
}
static void mma_e4m3(float* c, const u32* a, u32 b0, u32 b1) {
  multiply<4>(c, a, b0, b1, [](u32 word, int part) {
    return weft::low_to_float(static_cast<u8>(word >> 8 * part), weft::float8_e4m3);
  });
}
static void mma_e5m2(float* c, const u32* a, u32 b0, u32 b1) {
  multiply<4>(c, a, b0, b1, [](u32 word, int part) {
    return weft::low_to_float(static_cast<u8>(word >> 8 * part), weft::float8_e5m2);
  });
}
static void mma_s8(int* c, const u32* a, u32 b0, u32 b1) {
  multiply<4>(c, a, b0, b1, [](u32 word, int part) { return int{static_cast<signed char>(word >> 8 * part)}; });
}
static void mma_u8(int* c, const u32* a, u32 b0, u32 b1) {
  multiply<4>(c, a, b0, b1, [](u32 word, int part) { return int{static_cast<u8>(word >> 8 * part)}; });
}

#include "compiler/host_cuda/shim_warpgroups.h"
