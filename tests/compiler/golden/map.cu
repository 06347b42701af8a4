#define SYNC __syncwarp();
FN void map_6_body(const int t, u8* const shared, const i64 program, const bool early, u16*  p0, const u16* __restrict__ p1, const u16* __restrict__ p2) {
  const i64 v3 = smodulo<i64>(program, 8ll);
  const i64 v4 = sfloordiv<i64, u64>(program, 8ll);
  const i64 v6 = (i64)((u64)v3 * (u64)128ll);
  const i64 v8 = (i64)((u64)v6 + (u64)128ll);
  const i64 v9 = imin<i64>(1000ll, v8);
  const i64 v10 = (i64)((u64)v9 - (u64)v6);
  const i64 v11 = sfloordiv<i64, u64>(v10, 128ll);
  const i64 v12 = (i64)((u64)v11 * (u64)128ll);
  const i64 v13 = (i64)((u64)v6 + (u64)v12);
  const i64 arrived = early ? wait_for_previous() : 0;
  u16* const q0 = p0;
  for (i64 v14 = v6; v14 < v13; v14 += 128ll) {
    const i64 v16 = (i64)((u64)v4 * (u64)1000ll);
    const i64 v17 = (i64)((u64)v16 + (u64)v14);
    alignas(16) u16 v18[4];
    EACH (int c = 0; c < 1; ++c) {
      ((W8*)(v18 + c * 4))[0] = ((const W8*)(p1 + v17 + (t * 4 + (c * 4))))[0]; 
    }
    alignas(16) f32 v19[4];
    EACH (int r = 0; r < 4; ++r) {
      v19[r] = from_bf16(v18, r);
    }
    alignas(16) u16 v20[4];
    EACH (int c = 0; c < 1; ++c) {
      ((W8*)(v20 + c * 4))[0] = ((const W8*)(p2 + v14 + (t * 4 + (c * 4))))[0]; 
    }
    alignas(16) f32 v21[4];
    alignas(16) f32 v22[4];
    alignas(16) f32 v25[4];
    alignas(16) u16 v26[4];
    const i64 v28 = (i64)((u64)v16 + (u64)v14);
    EACH (int r = 0; r < 4; ++r) {
      v21[r] = from_bf16(v20, r);
      v22[r] = v19[r] * v21[r];
      v25[r] = fmaximum(v22[r], 0.0f);
      v26[r] = to_bf16(v25[r]);
    }
    EACH (int c = 0; c < 1; ++c) {
      ((W8*)(q0 + v28 + (t * 4 + (c * 4))))[0] = ((const W8*)(v26 + c * 4))[0]; 
    }
  }
  const i64 v29 = (i64)((u64)v9 - (u64)v13);
  const bool v30 = v13 < v9;
  if (v30) {
    const i64 v32 = (i64)((u64)v4 * (u64)1000ll);
    const i64 v33 = (i64)((u64)v32 + (u64)v13);
    alignas(16) u16 v34[4];
    EACH (int c = 0; c < 1; ++c) {
      const bool there = (t * 4 + (c * 4)) < v29;
      ((W8*)(v34 + c * 4))[0] = word_if(there, (const W8*)(p1 + index_if(there, v33 + (t * 4 + (c * 4)))) + 0, 0x0u); 
    }
    alignas(16) f32 v35[4];
    EACH (int r = 0; r < 4; ++r) {
      v35[r] = from_bf16(v34, r);
    }
    alignas(16) u16 v36[4];
    EACH (int c = 0; c < 1; ++c) {
      const bool there = (t * 4 + (c * 4)) < v29;
      ((W8*)(v36 + c * 4))[0] = word_if(there, (const W8*)(p2 + index_if(there, v13 + (t * 4 + (c * 4)))) + 0, 0x0u); 
    }
    alignas(16) f32 v37[4];
    alignas(16) f32 v38[4];
    alignas(16) f32 v41[4];
    alignas(16) u16 v42[4];
    const i64 v44 = (i64)((u64)v32 + (u64)v13);
    EACH (int r = 0; r < 4; ++r) {
      v37[r] = from_bf16(v36, r);
      v38[r] = v35[r] * v37[r];
      v41[r] = fmaximum(v38[r], 0.0f);
      v42[r] = to_bf16(v41[r]);
    }
    EACH (int c = 0; c < 1; ++c) {
      if ((t * 4 + (c * 4)) < v29) { ((W8*)(q0 + v44 + (t * 4 + (c * 4))))[0] = ((const W8*)(v42 + c * 4))[0]; }
    }
  }
}
extern "C" __global__ void __launch_bounds__(128) map_6(u16* p0, const u16* __restrict__ p1, const u16* __restrict__ p2, const i64 grid) {
  extern __shared__ __align__(16) u8 memory[];
  const int t = threadIdx.x % 32;
  i64 program = (i64)blockIdx.x * 4 + threadIdx.x / 32;
  u8* const shared = memory + threadIdx.x / 32 * 0;
  if (program >= grid) return;
  const bool early = grid <= 32768;
  if (early) begin_next();
  map_6_body(t, shared, program, early, changing(p0), p1, p2);
}
#undef SYNC
