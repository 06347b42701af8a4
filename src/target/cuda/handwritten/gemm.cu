// C = epilogue(A · B + bias): matrices of 16-bit floats with float32 sums on tensor cores (sm_90a), whose epilogue
// costs as much as a good part of the multiplications.
//
// The algorithm is the persistent, warp-specialized one of CUTLASS's Hopper kernels (sm90_gemm_tma_warpspecialized_
// cooperative) with two differences: there is no warp that only copies, and a warpgroup of its own runs the epilogue,
// so that the epilogue of one tile overlaps the main loop of the next. One block runs on each SM and goes through tiles
// of C. The instructions are described in the PTX ISA: wgmma, cp.async.bulk.tensor (TMA), mbarrier, stmatrix,
// setmaxnreg.
//
//    A, B ── TMA ──> pipeline stages ── wgmma ──> accumulators ── stmatrix ──> staged tile ── epilogue ──> C
//   global           shared memory                registers                    shared memory               global
//                    └──────── warpgroups 1 and 2, 64 rows each ─────────┘     └──────── warpgroup 0 ────────┘
//
//   warpgroup 0                      │ epilogue of tile 0       │ epilogue of tile 1       │
//   warpgroup 1  │ main loop 0 │stage│ main loop 1 │ wait │stage│ main loop 2 │ wait │stage│
//   warpgroup 2  │ main loop 0 │stage│ main loop 1 │ wait │stage│ main loop 2 │ wait │stage│
//
// Shared memory, from the first multiple of 1024 bytes on (the period of TMA's 128-byte swizzle):
//
//   stage 0       A: tile_m x tile_k │ B: tile_k x max_tile_n      16 KiB + 32 KiB, lines of 64 elements, swizzled
//   stage 1       …
//   stage 2       …
//   staged tile   tile_m rows of max_tile_n elements + 16 bytes    the padding puts rows into different banks
//   full[3]       mbarriers: the boxes of a stage have arrived
//   reads[3]      how many warps have read a stage
//   column sums   2 buffers x 4 warps x max_tile_n floats          only with column_sums
//
// A stage is refilled by whichever of the eight main-loop warps is the last to have read it: it issues the TMA copies
// of the K-slice that comes `stages` later, which may belong to the block's next tile.
//
// Named barriers (bar.sync waits, bar.arrive does not; 128 threads on either side):
//   1, 2   a half of the tile is staged:  warpgroup 1 or 2 arrives, warpgroup 0 waits
//   3, 4   a half of the tile is free:    warpgroup 0 arrives, warpgroup 1 or 2 waits
//   5      the four warps of the epilogue among themselves
//
// Parameters, defined in front of this file (gemm.cpp):
//   bool bf16                      bfloat16 elements, else float16
//   bool a_m_major, b_n_major      A is contiguous along m (else along k), B along n (else along k)
//   int tile_n                     columns of a tile: a multiple of 8 (of 64 where b_n_major) up to max_tile_n
//   bool bias, relu, gelu, residual, column_sums, store_argument, multiply_slope       the epilogue, see finish()
//   int tile_m, tile_k, max_tile_n, stages, threads, shared_bytes
//   void wgmma(f32 (&sum)[accumulators][4], u64 a, u64 b, int accumulate)              one wgmma.m64n{tile_n}k16
#include "target/cuda/codegen/text/prelude.cuh"

// --- Layout of shared memory and of the work ---

constexpr int element_bytes = 2;
constexpr int line_elements = 64;                 // of a swizzled line: 128 bytes
constexpr int panel_bytes = line_elements * 128;  // 64 lines
constexpr int a_bytes = tile_m * tile_k * element_bytes, b_bytes = tile_k * max_tile_n * element_bytes;
constexpr int stage_bytes = a_bytes + b_bytes;
constexpr int row_bytes = max_tile_n * element_bytes + 16;
constexpr int tile_bytes = tile_m * row_bytes;
constexpr int barrier_bytes = (stages * 12 + 15) / 16 * 16;
constexpr int sums_bytes = 4 * max_tile_n * 4;  // of one buffer
static_assert(shared_bytes ==
                  1024 + stages * stage_bytes + tile_bytes + barrier_bytes + (column_sums ? 2 * sums_bytes : 0),
              "gemm.cpp asks for another amount of shared memory than this layout has");

constexpr int main_loop_warps = 8;
constexpr int group_m = 16;  // tiles of one column of C that run one after the other, so that SMs share A and B in L2
constexpr bool reads_other = residual || multiply_slope;  // the epilogue reads a matrix beside the staged tile
constexpr int lanes_of_row = tile_n / 8;                  // that have 16 bytes of a row each

constexpr int staged_barrier = 1, free_barrier = 3, epilogue_barrier = 5;

// --- Instructions ---

// TMA: a box of a matrix into L2.
FN void prefetch_box(const TensorMap* map, int x, int y) {
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" : : "l"(map), "r"(x), "r"(y) : "memory");
}
FN void wait_at(int barrier) { asm volatile("bar.sync %0, 256;" : : "r"(barrier) : "memory"); }
FN void arrive_at(int barrier) { asm volatile("bar.arrive %0, 256;" : : "r"(barrier) : "memory"); }
FN u32 increment_shared(u32 at) {
  u32 before;
  asm volatile("atom.acq_rel.cta.shared::cta.add.u32 %0, [%1], 1;" : "=r"(before) : "r"(at) : "memory");
  return before;
}
FN void store_matrices(u32 to, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
               :
               : "r"(to), "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}
FN void store_shared_4(u32 to, u32 v) { asm volatile("st.shared.u32 [%0], %1;" : : "r"(to), "r"(v) : "memory"); }
FN W16 load_shared_16(u32 from) {
  W16 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(from)
               : "memory");
  return v;
}
// Streaming (.cs): evict first, because nobody reads these lines again soon. Predicated; zeros where not `wanted`.
FN W16 load_streaming(const void* from, bool wanted) {
  W16 v = {0u, 0u, 0u, 0u};
  asm volatile("{.reg .pred p; setp.ne.b32 p, %5, 0; @p ld.global.cs.v4.u32 {%0, %1, %2, %3}, [%4];}"
               : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
               : "l"(from), "r"((int)wanted));
  return v;
}
FN void store_streaming(void* to, W16 v, bool wanted) {
  asm volatile("{.reg .pred p; setp.ne.b32 p, %5, 0; @p st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};}"
               :
               : "l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"((int)wanted)
               : "memory");
}

// Two 16-bit floats in a word.
FN u32 pack(f32 low, f32 high) {
  u32 r;
  if constexpr (bf16) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  else asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
FN f32 low(u32 v) {
  if constexpr (bf16) return real(v << 16);
  else return from_f16((u16)v);
}
FN f32 high(u32 v) {
  if constexpr (bf16) return real(v & 0xffff0000u);
  else return from_f16((u16)(v >> 16));
}

// wgmma's descriptor of a matrix in shared memory, without its address: 128-byte swizzle (bit 62), 1024 bytes from one
// group of eight lines to the next (64 units of 16 bytes); from one panel of 64 elements to the next tile_k lines,
// where the contiguous axis is not k.
FN constexpr u64 matrix_layout(bool k_major) {
  return (u64)(k_major ? 1 : tile_k * 128 / 16) << 16 | 64ull << 32 | 1ull << 62;
}
// 16 elements of k further, in units of 16 bytes: 32 bytes of a line, or two groups of eight lines.
FN constexpr int k_step(bool k_major) { return k_major ? 2 : 128; }

// --- Tiles ---

struct Tile {
  int row, column;
};

// Groups of group_m tiles down go column by column.
FN Tile tile_at(int index, int tiles_down, int tiles_across) {
  const int group = group_m * tiles_across, first = index / group * group_m, height = imin(group_m, tiles_down - first),
            left = index % group;
  return {(first + left % height) * tile_m, left / height * tile_n};
}

// --- Epilogue ---

// tanh's gelu is x s with s = 1 / (1 + exp(-2 sqrt(2 / pi) (x + 0.044715 x^3))); the constants are in powers of two.
// Its derivative is s + s (1 - s) x times the derivative of the exponent.
FN f32 gelu_sigmoid(f32 x) { return frecip(1.0f + fexp2(x * fmaf(x * x, -0.1029432407f, -2.3022081984f))); }
FN f32 gelu_of(f32 x) { return x * gelu_sigmoid(x); }
FN f32 gelu_slope(f32 x) {
  const f32 s = gelu_sigmoid(x);
  return fmaf(fmaf(-s, s, s), x * fmaf(x * x, 0.2140644489f, 1.5957691216f), s);
}

// Of two elements v of the tile, which are rounded to 16 bits already, and two elements z of the other matrix.
FN u32 finish(u32 v, u32 z) {
  if constexpr (residual) return pack(low(v) + low(z), high(v) + high(z));
  else if constexpr (multiply_slope) return pack(low(v) * gelu_slope(low(z)), high(v) * gelu_slope(high(z)));
  else if constexpr (gelu) return pack(gelu_of(low(v)), gelu_of(high(v)));
  else if constexpr (relu) return pack(fmaximum(low(v), 0.0f), fmaximum(high(v), 0.0f));
  else return v;
}

// --- Kernel ---

// `other`: where store_argument the values before the activation go, or what the epilogue reads (through `other_map`
// into L2, ahead of time). `sums`: [m / tile_m][n] sums of the rows of a tile, as stored. `stride`: elements from one
// row of C, and of `other`, to the next.
extern "C" __global__ void __launch_bounds__(threads, 1)
    KERNEL(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
           const __grid_constant__ TensorMap other_map, u16* const c, u16* const other, const u16* const bias_row,
           f32* const sums, const int m, const int n, const int depth, const i64 stride) {
  extern __shared__ u8 memory[];
  const u32 ring = shared_address(memory) + 1023u & ~1023u, staged = ring + stages * stage_bytes,
            full = staged + tile_bytes, reads = full + stages * 8;
  const int group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0),
            warp = __shfl_sync(0xffffffffu, threadIdx.x / 32 % 4, 0), lane = threadIdx.x % 32;
  const int tiles_down = (m + tile_m - 1) / tile_m, tiles_across = (n + tile_n - 1) / tile_n,
            tiles = tiles_down * tiles_across;
  const auto tile_of = [&](const int index) { return tile_at(index, tiles_down, tiles_across); };
  if (threadIdx.x == 0) {
    EACH (int s = 0; s < stages; ++s) barrier_init(full + s * 8, 1), store_shared_4(reads + s * 4, 0u);
    asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
  }
  fence_for_wgmma();
  __syncthreads();

  if (group == 0) {
    // --- Warpgroup 0: the epilogue ---
    // A warp has every fourth row of the tile, a lane eight elements of it. Four rows are on their way from shared
    // memory, and eight rows of `other` from global memory, across the ends of halves and tiles.
    asm volatile("setmaxnreg.dec.sync.aligned.u32 120;");
    if (blockIdx.x < tiles) arrive_at(free_barrier), arrive_at(free_barrier + 1);
    Tile next = tile_of(blockIdx.x);
    const i64 down = 4 * stride;

    const u16* other_row = other;
    int other_left = 0;  // rows of the tile from other_row on
    const auto begin_other = [&](const Tile tile, const bool exists) {
      const int column = tile.column + lane * 8;
      other_row = other + (i64)(tile.row + warp) * stride + column;
      other_left = exists && column < n && lane < lanes_of_row ? imin(tile_m, m - tile.row) - warp : 0;
    };
    const auto next_other = [&] {
      const W16 row = load_streaming(other_row, other_left > 0);
      other_row += 4 * stride, other_left -= 4;
      return row;
    };
    W16 z[8]{};
    if constexpr (reads_other) {
      begin_other(next, blockIdx.x < tiles);
      EACH (int i = 0; i < 8; ++i) z[i] = next_other();
    }

    u32 buffer = 0;  // of the column sums
    for (int index = blockIdx.x; index < tiles; index += gridDim.x) {
      const Tile tile = next;
      next = tile_of(index + gridDim.x);
      const int column = tile.column + lane * 8, rows = m - tile.row - warp;
      const bool inside = column < n && lane < lanes_of_row;
      const i64 at = (i64)(tile.row + warp) * stride + column;
      u16 *to = c + at, *argument_to = other + at;
      u32 from = staged + warp * row_bytes + lane * 16;
      W16 v[4];
      f32 total[8]{};
      _Pragma("unroll 1")
      for (int quarter = 0; quarter < 4; ++quarter) {  // of the tile's rows
        if (quarter % 2 == 0) {
          wait_at(staged_barrier + quarter / 2);
          EACH (int i = 0; i < 4; ++i) v[i] = load_shared_16(from + i * (4 * row_bytes));
        }
        if constexpr (reads_other) {
          if (quarter == 3) begin_other(next, index + gridDim.x < tiles);
        }
        EACH (int i = 0; i < 8; ++i) {
          W16& x = v[i % 4];
          const bool there = inside && quarter * 32 + i * 4 < rows;
          if constexpr (store_argument) {
            store_streaming(argument_to, x, there);
            argument_to += down;
          }
          x.x = finish(x.x, z[i].x), x.y = finish(x.y, z[i].y), x.z = finish(x.z, z[i].z), x.w = finish(x.w, z[i].w);
          if constexpr (reads_other) z[i] = next_other();
          if constexpr (column_sums) {
            total[0] += low(x.x), total[1] += high(x.x), total[2] += low(x.y), total[3] += high(x.y);
            total[4] += low(x.z), total[5] += high(x.z), total[6] += low(x.w), total[7] += high(x.w);
          }
          store_streaming(to, x, there);
          to += down;
          if (quarter % 2 == 0 || i < 4) x = load_shared_16(from + (i + 4) * (4 * row_bytes));
        }
        from += 8 * (4 * row_bytes);
        if (quarter % 2 == 1 && index + gridDim.x < tiles) arrive_at(free_barrier + quarter / 2);
      }
      if constexpr (column_sums) {
        // The four warps' sums, added in a fixed order. Two buffers in turns: no warp writes to one before all have
        // read what it held two tiles ago.
        const u32 partial = full + barrier_bytes + buffer * sums_bytes;
        buffer ^= 1;
        EACH (int i = 0; i < 8; i += 4)
          store_shared(partial + (warp * max_tile_n + lane * 8 + i) * 4,
                       {bits(total[i]), bits(total[i + 1]), bits(total[i + 2]), bits(total[i + 3])});
        asm volatile("bar.sync %0, 128;" : : "n"(epilogue_barrier) : "memory");
        EACH (int i = 0; i < 2; ++i) {
          const int at = warp * 32 + lane + i * 128;
          f32 all = 0.0f;
          EACH (int w = 0; w < 4; ++w) all += real(load_shared(partial + (w * max_tile_n + at) * 4));
          if (at < tile_n && tile.column + at < n) sums[(i64)(tile.row / tile_m) * n + tile.column + at] = all;
        }
      }
    }
  } else {
    // --- Warpgroups 1 and 2: the main loop, 64 rows of the tile each, all sums in registers ---
    asm volatile("setmaxnreg.inc.sync.aligned.u32 192;");
    const int half = group - 1;
    f32 sum[accumulators][4];
    EACH (int j = tile_n / 8; j < accumulators; ++j)
      EACH (int q = 0; q < 4; ++q) sum[j][q] = 0.0f;
    const u32 to = staged + (half * 64 + warp * 16 + lane % 16) * row_bytes + lane / 16 * 16;

    // The next K-slice that has not been requested: of which tile, and where along k.
    int requested = blockIdx.x, requested_k = 0;
    Tile requested_tile = tile_of(requested);
    const auto request = [&](const u32 stage) {
      const u32 at = ring + stage * stage_bytes, barrier = full + stage * 8;
      barrier_expect(barrier, stage_bytes);
      if constexpr (a_m_major) {
        EACH (int i = 0; i < tile_m / line_elements; ++i)
          copy_box(at + i * panel_bytes, &a, requested_tile.row + i * line_elements, requested_k, barrier);
      } else {
        copy_box(at, &a, requested_k, requested_tile.row, barrier);
      }
      if constexpr (b_n_major) {
        EACH (int i = 0; i < max_tile_n / line_elements; ++i)
          copy_box(at + a_bytes + i * panel_bytes, &b, requested_tile.column + i * line_elements, requested_k, barrier);
      } else {
        copy_box(at + a_bytes, &b, requested_k, requested_tile.column, barrier);
      }
      if constexpr (reads_other) {
        if (requested_k == 0) prefetch_box(&other_map, requested_tile.column, requested_tile.row);
      }
    };
    const auto advance_request = [&] {
      requested_k += tile_k;
      if (requested_k >= depth) requested_k = 0, requested += gridDim.x, requested_tile = tile_of(requested);
    };
    const auto release = [&](const u32 stage) {
      if (requested >= tiles) return;
      if (lane == 0 && increment_shared(reads + stage * 4) % main_loop_warps == main_loop_warps - 1) request(stage);
      advance_request();
    };
    for (u32 stage = 0; stage < stages && requested < tiles; ++stage) {
      if (half == 0 && warp == 0 && lane == 0) request(stage);
      advance_request();
    }

    u32 stage = 0, parity = 0;
    for (int index = blockIdx.x; index < tiles; index += gridDim.x) {
      u32 before = 0;  // the stage that the products in flight read
      for (int k = 0; k < depth; k += tile_k) {
        barrier_wait(full + stage * 8, parity);
        const u32 at = ring + stage * stage_bytes;
        wgmma_fence();
        const u64 a_matrix = (u64)((at + half * panel_bytes) >> 4) | matrix_layout(!a_m_major),
                  b_matrix = (u64)((at + a_bytes) >> 4) | matrix_layout(!b_n_major);
        EACH (int step = 0; step < tile_k / 16; ++step)
          wgmma(sum, a_matrix + step * k_step(!a_m_major), b_matrix + step * k_step(!b_n_major), k + step);
        wgmma_commit();
        wgmma_wait<1>();
        if (k > 0) release(before);
        before = stage;
        stage = stage == stages - 1 ? 0 : stage + 1, parity ^= stage == 0;
      }

      const Tile tile = tile_of(index);
      u32 added[accumulators]{};
      if constexpr (bias) {
        EACH (int j = 0; j < tile_n / 8; ++j) {
          const int column = tile.column + j * 8 + lane % 4 * 2;
          added[j] = column < n ? *(const u32*)(bias_row + column) : 0u;
        }
      }
      wgmma_wait<0>();
      release(before);
      if constexpr (bias) {
        EACH (int j = 0; j < tile_n / 8; ++j)
          sum[j][0] += low(added[j]), sum[j][1] += high(added[j]), sum[j][2] += low(added[j]),
              sum[j][3] += high(added[j]);
      }
      wait_at(free_barrier + half);
      EACH (int j = 0; j < tile_n / 8; j += 2)
        store_matrices(to + j * 16, pack(sum[j][0], sum[j][1]), pack(sum[j][2], sum[j][3]),
                       pack(sum[j + 1][0], sum[j + 1][1]), pack(sum[j + 1][2], sum[j + 1][3]));
      arrive_at(staged_barrier + half);
    }
  }
}
