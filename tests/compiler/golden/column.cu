#define SYNC __syncwarp();
FN void column_sum_3_body(const int t, u8* const shared, const i64 program, const bool early, f32*  p0, const u16* __restrict__ p1) {
  const i64 v3 = smodulo<i64>(program, 8ll);
  const i64 v4 = sfloordiv<i64, u64>(program, 8ll);
  const i64 v6 = (i64)((u64)v3 * (u64)32ll);
  alignas(16) f32 v10[1];
  EACH (int r = 0; r < 1; ++r) v10[r] = 0.0f;
  alignas(16) f32 v11[1];
  EACH (int r = 0; r < 1; ++r) v11[r] = 0.0f;
  alignas(16) f32 v12[1];
  EACH (int r = 0; r < 1; ++r) v12[r] = 0.0f;
  alignas(16) f32 v13[1];
  EACH (int r = 0; r < 1; ++r) v13[r] = 0.0f;
  alignas(16) f32 v14[1];
  EACH (int r = 0; r < 1; ++r) v14[r] = 0.0f;
  alignas(16) f32 v15[1];
  EACH (int r = 0; r < 1; ++r) v15[r] = 0.0f;
  alignas(16) f32 v16[1];
  EACH (int r = 0; r < 1; ++r) v16[r] = 0.0f;
  alignas(16) f32 v17[1];
  EACH (int r = 0; r < 1; ++r) v17[r] = 0.0f;
  for (i64 v9 = 0ll; v9 < 32ll; v9 += 8ll) {
    const i64 v20 = (i64)((u64)v4 * (u64)8192ll);
    const i64 v22 = (i64)((u64)v9 * (u64)256ll);
    const i64 v23 = (i64)((u64)v20 + (u64)v22);
    const i64 v24 = (i64)((u64)v23 + (u64)v6);
    alignas(16) u16 v25[1];
    EACH (int r = 0; r < 1; ++r) v25[r] = p1[v24 + t];
    alignas(16) f32 v26[1];
    alignas(16) f32 v27[1];
    const i64 v28 = (i64)((u64)v9 + (u64)1ll);
    const i64 v29 = (i64)((u64)v4 * (u64)8192ll);
    const i64 v30 = (i64)((u64)v28 * (u64)256ll);
    const i64 v31 = (i64)((u64)v29 + (u64)v30);
    const i64 v32 = (i64)((u64)v31 + (u64)v6);
    EACH (int r = 0; r < 1; ++r) {
      v26[r] = from_bf16(v25[r]);
      v27[r] = v10[r] + v26[r];
    }
    alignas(16) u16 v33[1];
    EACH (int r = 0; r < 1; ++r) v33[r] = p1[v32 + t];
    alignas(16) f32 v34[1];
    alignas(16) f32 v35[1];
    const i64 v37 = (i64)((u64)v9 + (u64)2ll);
    const i64 v38 = (i64)((u64)v4 * (u64)8192ll);
    const i64 v39 = (i64)((u64)v37 * (u64)256ll);
    const i64 v40 = (i64)((u64)v38 + (u64)v39);
    const i64 v41 = (i64)((u64)v40 + (u64)v6);
    EACH (int r = 0; r < 1; ++r) {
      v34[r] = from_bf16(v33[r]);
      v35[r] = v11[r] + v34[r];
    }
    alignas(16) u16 v42[1];
    EACH (int r = 0; r < 1; ++r) v42[r] = p1[v41 + t];
    alignas(16) f32 v43[1];
    alignas(16) f32 v44[1];
    const i64 v46 = (i64)((u64)v9 + (u64)3ll);
    const i64 v47 = (i64)((u64)v4 * (u64)8192ll);
    const i64 v48 = (i64)((u64)v46 * (u64)256ll);
    const i64 v49 = (i64)((u64)v47 + (u64)v48);
    const i64 v50 = (i64)((u64)v49 + (u64)v6);
    EACH (int r = 0; r < 1; ++r) {
      v43[r] = from_bf16(v42[r]);
      v44[r] = v12[r] + v43[r];
    }
    alignas(16) u16 v51[1];
    EACH (int r = 0; r < 1; ++r) v51[r] = p1[v50 + t];
    alignas(16) f32 v52[1];
    alignas(16) f32 v53[1];
    const i64 v54 = (i64)((u64)v9 + (u64)4ll);
    const i64 v55 = (i64)((u64)v4 * (u64)8192ll);
    const i64 v56 = (i64)((u64)v54 * (u64)256ll);
    const i64 v57 = (i64)((u64)v55 + (u64)v56);
    const i64 v58 = (i64)((u64)v57 + (u64)v6);
    EACH (int r = 0; r < 1; ++r) {
      v52[r] = from_bf16(v51[r]);
      v53[r] = v13[r] + v52[r];
    }
    alignas(16) u16 v59[1];
    EACH (int r = 0; r < 1; ++r) v59[r] = p1[v58 + t];
    alignas(16) f32 v60[1];
    alignas(16) f32 v61[1];
    const i64 v63 = (i64)((u64)v9 + (u64)5ll);
    const i64 v64 = (i64)((u64)v4 * (u64)8192ll);
    const i64 v65 = (i64)((u64)v63 * (u64)256ll);
    const i64 v66 = (i64)((u64)v64 + (u64)v65);
    const i64 v67 = (i64)((u64)v66 + (u64)v6);
    EACH (int r = 0; r < 1; ++r) {
      v60[r] = from_bf16(v59[r]);
      v61[r] = v14[r] + v60[r];
    }
    alignas(16) u16 v68[1];
    EACH (int r = 0; r < 1; ++r) v68[r] = p1[v67 + t];
    alignas(16) f32 v69[1];
    alignas(16) f32 v70[1];
    const i64 v72 = (i64)((u64)v9 + (u64)6ll);
    const i64 v73 = (i64)((u64)v4 * (u64)8192ll);
    const i64 v74 = (i64)((u64)v72 * (u64)256ll);
    const i64 v75 = (i64)((u64)v73 + (u64)v74);
    const i64 v76 = (i64)((u64)v75 + (u64)v6);
    EACH (int r = 0; r < 1; ++r) {
      v69[r] = from_bf16(v68[r]);
      v70[r] = v15[r] + v69[r];
    }
    alignas(16) u16 v77[1];
    EACH (int r = 0; r < 1; ++r) v77[r] = p1[v76 + t];
    alignas(16) f32 v78[1];
    alignas(16) f32 v79[1];
    const i64 v81 = (i64)((u64)v9 + (u64)7ll);
    const i64 v82 = (i64)((u64)v4 * (u64)8192ll);
    const i64 v83 = (i64)((u64)v81 * (u64)256ll);
    const i64 v84 = (i64)((u64)v82 + (u64)v83);
    const i64 v85 = (i64)((u64)v84 + (u64)v6);
    EACH (int r = 0; r < 1; ++r) {
      v78[r] = from_bf16(v77[r]);
      v79[r] = v16[r] + v78[r];
    }
    alignas(16) u16 v86[1];
    EACH (int r = 0; r < 1; ++r) v86[r] = p1[v85 + t];
    alignas(16) f32 v87[1];
    alignas(16) f32 v88[1];
    EACH (int r = 0; r < 1; ++r) {
      v87[r] = from_bf16(v86[r]);
      v88[r] = v17[r] + v87[r];
    }
    EACH (int r = 0; r < 1; ++r) v10[r] = v27[r];
    EACH (int r = 0; r < 1; ++r) v11[r] = v35[r];
    EACH (int r = 0; r < 1; ++r) v12[r] = v44[r];
    EACH (int r = 0; r < 1; ++r) v13[r] = v53[r];
    EACH (int r = 0; r < 1; ++r) v14[r] = v61[r];
    EACH (int r = 0; r < 1; ++r) v15[r] = v70[r];
    EACH (int r = 0; r < 1; ++r) v16[r] = v79[r];
    EACH (int r = 0; r < 1; ++r) v17[r] = v88[r];
  }
  alignas(16) f32 v97[1];
  alignas(16) f32 v98[1];
  alignas(16) f32 v99[1];
  alignas(16) f32 v100[1];
  alignas(16) f32 v101[1];
  alignas(16) f32 v102[1];
  alignas(16) f32 v103[1];
  const i64 v106 = (i64)((u64)v4 * (u64)256ll);
  const i64 v107 = (i64)((u64)v106 + (u64)v6);
  EACH (int r = 0; r < 1; ++r) {
    v97[r] = v10[r] + v11[r];
    v98[r] = v12[r] + v13[r];
    v99[r] = v14[r] + v15[r];
    v100[r] = v16[r] + v17[r];
    v101[r] = v97[r] + v98[r];
    v102[r] = v99[r] + v100[r];
    v103[r] = v101[r] + v102[r];
  }
  const i64 arrived = early ? wait_for_previous() : 0;
  f32* const q0 = p0;
  EACH (int r = 0; r < 1; ++r) q0[v107 + t] = v103[r];
}
extern "C" __global__ void __launch_bounds__(128) column_sum_3(f32* p0, const u16* __restrict__ p1, const i64 grid) {
  extern __shared__ __align__(16) u8 memory[];
  const int t = threadIdx.x % 32;
  i64 program = (i64)blockIdx.x * 4 + threadIdx.x / 32;
  u8* const shared = memory + threadIdx.x / 32 * 0;
  if (program >= grid) return;
  const bool early = grid <= 32768;
  if (early) begin_next();
  column_sum_3_body(t, shared, program, early, changing(p0), p1);
}
#undef SYNC
#define SYNC __syncwarp();
FN void row_sum_5_body(const int t, u8* const shared, const i64 program, const bool early, u16*  p0, const f32* __restrict__ p1) {
  const i64 arrived = early ? wait_for_previous() : 0;
  u16* const q0 = p0;
  const f32* const q1 = p1 + arrived;
  alignas(16) f32 v4[2];
  EACH (int r = 0; r < 2; ++r) v4[r] = q1[program + (t * 2 + r) * 256ll];
  alignas(16) f32 v6[2];
  EACH (int r = 0; r < 2; ++r) {
    v6[r] = 0.0f + v4[r];
  }
  f32 w7[2];
  EACH (int r = 0; r < 2; ++r) w7[r] = v6[r];
  EACH (int r = 0; r < 1; ++r) { const auto kept = chosen(t & 16, w7[r + 1], w7[r]), given = chosen(t & 16, w7[r], w7[r + 1]); w7[r] = kept + lane_xor(given, 16); }
  w7[0] = w7[0] + lane_xor(w7[0], 8);
  w7[0] = w7[0] + lane_xor(w7[0], 4);
  w7[0] = w7[0] + lane_xor(w7[0], 2);
  w7[0] = w7[0] + lane_xor(w7[0], 1);
  EACH (int r = 0; r < 1; ++r) w7[r] = w7[r] + lane_xor(w7[r], 16);
  const f32 v7 = w7[0];
  const u16 v8 = to_bf16(v7);
  if (t == 0) q0[program] = v8;
}
extern "C" __global__ void __launch_bounds__(128) row_sum_5(u16* p0, const f32* p1, const i64 grid) {
  extern __shared__ __align__(16) u8 memory[];
  const int t = threadIdx.x % 32;
  i64 program = (i64)blockIdx.x * 4 + threadIdx.x / 32;
  u8* const shared = memory + threadIdx.x / 32 * 0;
  if (program >= grid) return;
  const bool early = grid <= 32768;
  if (early) begin_next();
  row_sum_5_body(t, shared, program, early, changing(p0), changing(p1));
}
#undef SYNC
