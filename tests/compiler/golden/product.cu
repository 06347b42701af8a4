#define SYNC __syncthreads();
FN void dot_5_body(const int t, u8* const shared, const i64 program, const bool early, u16*  p0, const u16* __restrict__ p1, const u16* __restrict__ p2, const u16* __restrict__ p3) {
  u8* const locals = shared + 256;
  const i64 v5 = sfloordiv<i64, u64>(program, 20ll);
  const i64 v6 = smodulo<i64>(program, 20ll);
  const i64 v9 = sfloordiv<i64, u64>(v6, 16ll);
  const i64 v10 = (i64)((u64)v9 * (u64)4ll);
  const i64 v11 = smodulo<i64>(v6, 16ll);
  const i64 v13 = (i64)((u64)5ll - (u64)v10);
  const i64 v14 = imin<i64>(4ll, v13);
  const i64 v15 = smodulo<i64>(v11, v14);
  const i64 v16 = (i64)((u64)v10 + (u64)v15);
  const i64 v17 = sfloordiv<i64, u64>(v11, v14);
  const i64 v19 = (i64)((u64)v16 * (u64)64ll);
  const i64 v20 = (i64)((u64)v17 * (u64)64ll);
  const i64 v22 = (i64)((u64)300ll - (u64)v19);
  const i64 v23 = (i64)((u64)200ll - (u64)v20);
  const i64 v25 = (i64)((u64)v19 * (u64)96ll);
   {
    const u32 ring = shared_address(((f32*)(locals + 0)));
    const int depth = (int)96ll, lane = t & 31;
    const int row = t / 64 * 32, column = t / 32 % 2 * 32;
    const int a_line = t / 8, a_chunk = t % 8;
    const u16* a_from = p1 + v25 + a_line * 96ll + a_chunk * 8ll;
    const int a_limit = (int)imin<i64>(v22, 64);
    const int b_line = t / 8, b_chunk = t % 8;
    const u16* b_from = p2 + v20 + b_line * 200ll + b_chunk * 8ll;
    const int b_limit = (int)imin<i64>(v23, 64);
    const auto fill = [&](const int k, const u32 slot) {
      const int a_bytes = imax(0, imin(16, (depth - k - a_chunk * 8) * 2));
      EACH (int i = 0; i < 4; ++i) copy_async(slot + 0 + swizzled<8>((a_line + i * 16), a_chunk), a_from + i * 1536ll, (a_line + i * 16) < a_limit ? a_bytes : 0);
      a_from += 64ll;
      const int b_bytes = imax(0, imin(16, (b_limit - b_chunk * 8) * 2));
      EACH (int i = 0; i < 4; ++i) copy_async(slot + 8192 + swizzled<8>((b_line + i * 16), b_chunk), b_from + i * 3200ll, (b_line + i * 16) < depth - k ? b_bytes : 0);
      b_from += 12800ll;
    };
    f32 sum[2][4][4];
    EACH (int i = 0; i < 2; ++i) EACH (int j = 0; j < 4; ++j) EACH (int q = 0; q < 4; ++q) sum[i][j][q] = 0.0f;
    SYNC
    EACH (int s = 0; s < 4; ++s) {
      if (s * 64 < depth) fill(s * 64, ring + s * 16384);
      commit_copies();
    }
    u32 slot = ring, next = ring + 65536;
    for (int k = 0; k < depth; k += 64) {
      wait_copies<3>();
      SYNC
      if (k + 256 < depth) fill(k + 256, next);
      commit_copies();
      u32 a_part[2][2][4], b_part[2][2][4];
      const auto fragments = [&](const int step) {
        EACH (int i = 0; i < 2; ++i) {
          ldmatrix(a_part[step & 1][i], slot + 0 + swizzled<8>(row + i * 16 + (lane >> 3 & 1) * 8 + (lane & 7), step * 2 + (lane >> 4)));
        }
        EACH (int i = 0; i < 2; ++i) {
          ldmatrix_turned(b_part[step & 1][i], slot + 8192 + swizzled<8>(step * 16 + (lane >> 3 & 1) * 8 + (lane & 7), column / 8 + i * 2 + (lane >> 4)));
        }
      };
      fragments(0);
      EACH (int step = 0; step < 4; ++step) {
        if (step + 1 < 4) fragments(step + 1);
        EACH (int i = 0; i < 2; ++i) EACH (int j = 0; j < 4; ++j) mma_bf16(sum[i][j], a_part[step & 1][i], b_part[step & 1][j >> 1][j % 2 * 2], b_part[step & 1][j >> 1][j % 2 * 2 + 1]);
      }
      slot = slot == ring + 65536 ? ring : slot + 16384, next = next == ring + 65536 ? ring : next + 16384;
    }
    wait_copies<0>();
    SYNC
    EACH (int i = 0; i < 2; ++i) EACH (int j = 0; j < 4; ++j) EACH (int h = 0; h < 2; ++h) {
      *(W8*)(((f32*)(locals + 0)) + (row + i * 16 + h * 8 + (lane >> 2)) * 72 + column + j * 8 + (lane & 3) * 2) = *(const W8*)(sum[i][j] + h * 2);
    }
    SYNC
  }
  const i64 v26 = imin<i64>(64ll, v22);
  const i64 arrived = early ? wait_for_previous() : 0;
  u16* const q0 = p0;
  for (i64 v27 = 0ll; v27 < v26; v27 += 64ll) {
    const i64 v29 = (i64)((u64)v27 * (u64)72ll);
    alignas(16) f32 v30[32];
    EACH (int c = 0; c < 4; ++c) {
      ((W16*)(v30 + c * 8))[0] = ((const W16*)(((f32*)(locals + 0)) + v29 + ((((c * 8) / 8 * 128 + t) * 8 + (c * 8) % 8) / 64) * 72ll + ((((c * 8) / 8 * 128 + t) * 8 + (c * 8) % 8) % 64)))[0]; ((W16*)(v30 + c * 8))[1] = ((const W16*)(((f32*)(locals + 0)) + v29 + ((((c * 8) / 8 * 128 + t) * 8 + (c * 8) % 8) / 64) * 72ll + ((((c * 8) / 8 * 128 + t) * 8 + (c * 8) % 8) % 64)))[1]; 
    }
    const i64 v31 = (i64)((u64)v19 + (u64)v27);
    const i64 v32 = (i64)((u64)v22 - (u64)v27);
    alignas(16) u16 v33[1];
    EACH (int r = 0; r < 1; ++r) v33[r] = (t & 63) < v23 ? p3[v20 + (t & 63)] : (u16)0x0;
    alignas(16) f32 v34[1];
    EACH (int r = 0; r < 1; ++r) {
      v34[r] = from_bf16(v33[r]);
    }
    SYNC
    EACH (int r = 0; r < 1; ++r) if (t < 64) ((f32*)(shared + 0))[(t & 63)] = v34[r];
    SYNC
    alignas(16) f32 v36[32];
    EACH (int r = 0; r < 32; ++r) v36[r] = ((f32*)(shared + 0))[((r / 8 * 128 + t) * 8 + r % 8) % 64];
    alignas(16) f32 v37[32];
    const i64 v38 = (i64)((u64)v31 * (u64)200ll);
    const i64 v39 = (i64)((u64)v38 + (u64)v20);
    alignas(16) u16 v40[32];
    EACH (int r = 0; r < 32; ++r) {
      v37[r] = v30[r] + v36[r];
      v40[r] = to_bf16(v37[r]);
    }
    EACH (int c = 0; c < 4; ++c) {
      if (((((c * 8) / 8 * 128 + t) * 8 + (c * 8) % 8) / 64) < v32 && ((((c * 8) / 8 * 128 + t) * 8 + (c * 8) % 8) % 64) < v23) { ((W16*)(q0 + v39 + ((((c * 8) / 8 * 128 + t) * 8 + (c * 8) % 8) / 64) * 200ll + ((((c * 8) / 8 * 128 + t) * 8 + (c * 8) % 8) % 64)))[0] = ((const W16*)(v40 + c * 8))[0]; }
    }
  }
}
extern "C" __global__ void __launch_bounds__(128) dot_5(u16* p0, const u16* __restrict__ p1, const u16* __restrict__ p2, const u16* __restrict__ p3, const i64 grid) {
  extern __shared__ __align__(16) u8 memory[];
  const int t = threadIdx.x % 128;
  i64 program = blockIdx.x;
  u8* const shared = memory;
  if (program >= grid) return;
  const bool early = grid <= 32768;
  if (early) begin_next();
  dot_5_body(t, shared, program, early, changing(p0), p1, p2, p3);
}
#undef SYNC
