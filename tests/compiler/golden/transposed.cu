#define SYNC __syncthreads();
FN void transposed_2_body(const int t, u8* const shared, const i64 program, const bool early, f32*  p0, const f32* __restrict__ p1) {
  const i64 v2 = smodulo<i64>(program, 3ll);
  const i64 v3 = sfloordiv<i64, u64>(program, 3ll);
  const i64 v6 = smodulo<i64>(v3, 4ll);
  const i64 v7 = sfloordiv<i64, u64>(v3, 4ll);
  const i64 v8 = (i64)((u64)v6 * (u64)64ll);
  const i64 v11 = (i64)((u64)v2 * (u64)64ll);
  const i64 v13 = smodulo<i64>(v7, 96ll);
  const i64 v14 = sfloordiv<i64, u64>(v7, 96ll);
  const i64 v16 = (i64)((u64)200ll - (u64)v8);
  const i64 v18 = (i64)((u64)160ll - (u64)v11);
  const i64 v19 = (i64)((u64)v8 * (u64)160ll);
  const i64 v20 = (i64)((u64)v11 + (u64)v19);
  const i64 v22 = (i64)((u64)v13 * (u64)32000ll);
  const i64 v23 = (i64)((u64)v22 + (u64)v20);
  alignas(16) f32 v24[8];
  EACH (int c = 0; c < 2; ++c) {
    const bool there = ((((c * 4) / 4 * 512 + t) * 4 + (c * 4) % 4) / 64) < v16 && ((((c * 4) / 4 * 512 + t) * 4 + (c * 4) % 4) % 64) < v18;
    ((W16*)(v24 + c * 4))[0] = word_if(there, (const W16*)(p1 + (there ? v23 + ((((c * 4) / 4 * 512 + t) * 4 + (c * 4) % 4) / 64) * 160ll + ((((c * 4) / 4 * 512 + t) * 4 + (c * 4) % 4) % 64) : 0)) + 0, 0x0u); 
  }
  SYNC
  EACH (int r = 0; r < 8; ++r) ((f32*)(shared + 0))[((r / 4 * 512 + t) * 4 + r % 4) % 64 * 65 + ((r / 4 * 512 + t) * 4 + r % 4) / 64] = v24[r];
  SYNC
  alignas(16) f32 v25[8];
  EACH (int c = 0; c < 2; ++c) {
    const W4* const line = (const W4*)(((f32*)(shared + 0)) + (((c * 4) / 4 * 512 + t) * 4 + (c * 4) % 4) / 64 * 65 + (((c * 4) / 4 * 512 + t) * 4 + (c * 4) % 4) % 64);
    EACH (int k = 0; k < 4; ++k) ((W4*)(v25 + c * 4))[k] = line[k];
  }
  alignas(16) f32 v26[8];
  const i64 v27 = (i64)((u64)v11 * (u64)200ll);
  const i64 v28 = (i64)((u64)v27 + (u64)v8);
  const i64 v29 = (i64)((u64)v22 + (u64)v28);
  EACH (int r = 0; r < 8; ++r) {
    v26[r] = v25[r] + v25[r];
  }
  const i64 arrived = early ? wait_for_previous() : 0;
  f32* const q0 = p0;
  EACH (int c = 0; c < 2; ++c) {
    if (((((c * 4) / 4 * 512 + t) * 4 + (c * 4) % 4) / 64) < v18 && ((((c * 4) / 4 * 512 + t) * 4 + (c * 4) % 4) % 64) < v16) { ((W16*)(q0 + v29 + ((((c * 4) / 4 * 512 + t) * 4 + (c * 4) % 4) / 64) * 200ll + ((((c * 4) / 4 * 512 + t) * 4 + (c * 4) % 4) % 64)))[0] = ((const W16*)(v26 + c * 4))[0]; }
  }
}
extern "C" __global__ void __launch_bounds__(512) transposed_2(f32* p0, const f32* __restrict__ p1, const i64 grid) {
  extern __shared__ __align__(16) u8 memory[];
  const int t = threadIdx.x;
  i64 program = blockIdx.x;
  u8* const shared = memory;
  if (program >= grid) return;
  const bool early = grid <= 32768;
  if (early) begin_next();
  transposed_2_body(t, shared, program, early, changing(p0), p1);
}
#undef SYNC
