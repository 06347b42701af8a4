#define SYNC __syncthreads();
// dot %33: mma.sync of bfloat16 by 2 x 4 warps; copied ahead; no wgmma: it is not compiled for sm_90a
FN void dot_5_body(const int t, u8* const shared, const i64 program, const bool early, u16*  p0, const u16* __restrict__ p1, const u16* __restrict__ p2, const u16* __restrict__ p3) {
  u8* const stages = shared + 16384;
  const i64 v6 = sfloordiv<i64, u64>(program, 3ll);
  const i64 v8 = smodulo<i64>(program, 3ll);
  const i64 v9 = sfloordiv<i64, u64>(v8, 3ll);
  const i64 v10 = smodulo<i64>(v8, 3ll);
  const i64 v11 = smodulo<i64>(v10, 3ll);
  const i64 v12 = sfloordiv<i64, u64>(v10, 3ll);
  const i64 v13 = (i64)((u64)v9 * (u64)3ll);
  const i64 v14 = (i64)((u64)v13 + (u64)v11);
  const i64 v16 = (i64)((u64)v14 * (u64)128ll);
  const i64 v18 = (i64)((u64)v12 * (u64)256ll);
  alignas(16) f32 v22[128];
  EACH (int r = 0; r < 128; ++r) v22[r] = 0.0f;
  SYNC
   {
    const i64 ahead = 0ll + 64ll * 0ll;
    if (ahead < 96ll) {
      const i64 v28 = (i64)((u64)300ll - (u64)v16);
      const i64 v29 = (i64)((u64)96ll - (u64)ahead);
      const i64 v30 = (i64)((u64)v16 * (u64)96ll);
      const i64 v31 = (i64)((u64)v30 + (u64)ahead);
      const i64 v23 = (i64)((u64)96ll - (u64)ahead);
      const i64 v24 = (i64)((u64)200ll - (u64)v18);
      const i64 v25 = (i64)((u64)ahead * (u64)200ll);
      const i64 v26 = (i64)((u64)v18 + (u64)v25);
      EACH (int c = 0; c < 4; ++c) {
        const int e = c * 256 + t, line = e / 8, chunk = e % 8;
        const int bytes = line < v28 ? (int)imax<i64>(imin<i64>((v29 - chunk * 8) * 2, 16), 0) : 0;
        copy_async(shared_address(stages) + 0 + 0 * 49152 + swizzled<8>(line, chunk), p1 + (bytes > 0 ? v31 + line * 96ll + chunk * 8 : 0), bytes);
      }
      EACH (int c = 0; c < 8; ++c) {
        const int e = c * 256 + t, line = e / 32, chunk = e % 32;
        const int bytes = line < v23 ? (int)imax<i64>(imin<i64>((v24 - chunk * 8) * 2, 16), 0) : 0;
        copy_async(shared_address(stages) + 16384 + 0 * 49152 + swizzled<32>(line, chunk), p2 + (bytes > 0 ? v26 + line * 200ll + chunk * 8 : 0), bytes);
      }
    }
  }
  commit_copies();
  int slotv21 = 0;
  for (i64 v21 = 0ll; v21 < 96ll; v21 += 64ll) {
    wait_copies<0>();
    SYNC
     {
      const i64 ahead = v21 + 64ll * 1ll;
      if (ahead < 96ll) {
        const i64 v28 = (i64)((u64)300ll - (u64)v16);
        const i64 v29 = (i64)((u64)96ll - (u64)ahead);
        const i64 v30 = (i64)((u64)v16 * (u64)96ll);
        const i64 v31 = (i64)((u64)v30 + (u64)ahead);
        const i64 v23 = (i64)((u64)96ll - (u64)ahead);
        const i64 v24 = (i64)((u64)200ll - (u64)v18);
        const i64 v25 = (i64)((u64)ahead * (u64)200ll);
        const i64 v26 = (i64)((u64)v18 + (u64)v25);
        EACH (int c = 0; c < 4; ++c) {
          const int e = c * 256 + t, line = e / 8, chunk = e % 8;
          const int bytes = line < v28 ? (int)imax<i64>(imin<i64>((v29 - chunk * 8) * 2, 16), 0) : 0;
          copy_async(shared_address(stages) + 0 + (slotv21 < 1 ? slotv21 + 1 : slotv21 - 1) * 49152 + swizzled<8>(line, chunk), p1 + (bytes > 0 ? v31 + line * 96ll + chunk * 8 : 0), bytes);
        }
        EACH (int c = 0; c < 8; ++c) {
          const int e = c * 256 + t, line = e / 32, chunk = e % 32;
          const int bytes = line < v23 ? (int)imax<i64>(imin<i64>((v24 - chunk * 8) * 2, 16), 0) : 0;
          copy_async(shared_address(stages) + 16384 + (slotv21 < 1 ? slotv21 + 1 : slotv21 - 1) * 49152 + swizzled<32>(line, chunk), p2 + (bytes > 0 ? v26 + line * 200ll + chunk * 8 : 0), bytes);
        }
      }
    }
    commit_copies();
    const i64 v23 = (i64)((u64)96ll - (u64)v21);
    const i64 v24 = (i64)((u64)200ll - (u64)v18);
    const i64 v25 = (i64)((u64)v21 * (u64)200ll);
    const i64 v26 = (i64)((u64)v18 + (u64)v25);
    const i64 v28 = (i64)((u64)300ll - (u64)v16);
    const i64 v29 = (i64)((u64)96ll - (u64)v21);
    const i64 v30 = (i64)((u64)v16 * (u64)96ll);
    const i64 v31 = (i64)((u64)v30 + (u64)v21);
    alignas(16) f32 v33[128];
    EACH (int r = 0; r < 128; ++r) v33[r] = v22[r];
     {
      const u32 a = shared_address(stages) + 0 + slotv21 * 49152;
      const u32 b = shared_address(stages) + 16384 + slotv21 * 49152;
      EACH (int k = 0; k < 4; ++k) {
        u32 x[4][4], y[4][4];
        EACH (int i = 0; i < 4; ++i) {
          ldmatrix(x[i], a + swizzled<8>((t >> 5) / 4 * 64 + i * 16 + (t & 15), k * 2 + (t >> 4 & 1)));
        }
        EACH (int j = 0; j < 4; ++j) {
          ldmatrix_turned(y[j], b + swizzled<32>(k * 16 + (t & 15), ((t >> 5) % 4 * 64 + j * 16) / 8 + (t >> 4 & 1)));
        }
        EACH (int i = 0; i < 4; ++i) EACH (int j = 0; j < 8; ++j) mma_bf16(v33 + (i * 8 + j) * 4, x[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
      }
    }
    EACH (int r = 0; r < 128; ++r) v22[r] = v33[r];
    slotv21 = slotv21 == 1 ? 0 : slotv21 + 1;
  }
  wait_copies<0>();
  const i64 v35 = (i64)((u64)300ll - (u64)v16);
  const i64 v36 = (i64)((u64)200ll - (u64)v18);
  alignas(16) u16 v37[16];
  EACH (int r = 0; r < 16; ++r) v37[r] = ((t & 3) * 2 + (t >> 5) % 4 * 64 + r / 2 * 8 + (r & 1)) < v36 ? p3[v18 + ((t & 3) * 2 + (t >> 5) % 4 * 64 + r / 2 * 8 + (r & 1))] : (u16)0x0;
  alignas(16) f32 v38[16];
  EACH (int r = 0; r < 16; ++r) {
    v38[r] = from_bf16(v37, r);
  }
  alignas(16) f32 v40[128];
  alignas(16) f32 v41[128];
  const i64 v42 = (i64)((u64)v16 * (u64)200ll);
  const i64 v43 = (i64)((u64)v42 + (u64)v18);
  alignas(16) u16 v44[128];
  EACH (int r = 0; r < 128; ++r) {
    v40[r] = v38[(r / 4 % 8 * 2 + (r & 1))];
    v41[r] = v22[r] + v40[r];
    v44[r] = to_bf16(v41[r]);
  }
  const i64 arrived = early ? wait_for_previous() : 0;
  u16* const q0 = p0;
  SYNC
   {
    u8* const own = shared + (t >> 5) * 2048;
    EACH (int i = 0; i < 4; ++i) EACH (int g = 0; g < 1; ++g) {
      __syncwarp();
      EACH (int j = 0; j < 8; ++j) EACH (int h = 0; h < 2; ++h) {
        const int byte = (j * 8 + (t & 3) * 2) * 2;
        *(W4*)(own + swizzled<8>((t >> 2 & 7) + h * 8, byte / 16) + byte % 16) = ((const W4*)v44)[((i * 8 + g * 8 + j) * 4 + h * 2) / 2];
      }
      __syncwarp();
      EACH (int q = 0; q < 4; ++q) {
        const int e = q * 32 + (t & 31), line = e / 8, chunk = e % 8;
        const int row = (t >> 5) / 4 * 64 + i * 16 + line, column = (t >> 5) % 4 * 64 + g * 64 + chunk * 8;
        const u8* const chunk_at = own + swizzled<8>(line, chunk);
        u16* const to = q0 + v43 + row * 200ll + column;
        if (row < v35 && column < v36) *(W16*)to = *(const W16*)chunk_at;
      }
    }
  }
}
extern "C" __global__ void __launch_bounds__(256) dot_5(u16* p0, const u16* __restrict__ p1, const u16* __restrict__ p2, const u16* __restrict__ p3, const i64 grid) {
  extern __shared__ __align__(16) u8 memory[];
  const int t = threadIdx.x % 256;
  i64 program = blockIdx.x;
  u8* const shared = memory;
  if (program >= grid) return;
  const bool early = grid <= 32768;
  if (early) begin_next();
  dot_5_body(t, shared, program, early, changing(p0), p1, p2, p3);
}
#undef SYNC
