#define SYNC __syncwarp();
FN void column_sum_3_body(const int t, u8* const shared, const i64 program, f32*  p0, const u16* __restrict__ p1) {
  const i64 v3 = smodulo<i64>(program, 8ll);
  const i64 v4 = sfloordiv<i64, u64>(program, 8ll);
  const i64 v6 = (i64)((u64)v3 * (u64)32ll);
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
  alignas(16) f32 v18[1];
  EACH (int r = 0; r < 1; ++r) v18[r] = 0.0f;
  for (i64 v10 = 0ll; v10 < 2ll; v10 += 1ll) {
    const i64 v20 = (i64)((u64)v4 * (u64)8192ll);
    const i64 v22 = (i64)((u64)v10 * (u64)4096ll);
    const i64 v23 = (i64)((u64)v20 + (u64)v22);
    const i64 v24 = (i64)((u64)v23 + (u64)v6);
    alignas(16) u16 v25[1];
    EACH (int r = 0; r < 1; ++r) v25[r] = p1[v24 + t];
    alignas(16) f32 v26[1];
    alignas(16) f32 v27[1];
    const i64 v29 = (i64)((u64)v23 + (u64)256ll);
    const i64 v30 = (i64)((u64)v29 + (u64)v6);
    EACH (int r = 0; r < 1; ++r) {
      v26[r] = from_bf16(v25[r]);
      v27[r] = v11[r] + v26[r];
    }
    alignas(16) u16 v31[1];
    EACH (int r = 0; r < 1; ++r) v31[r] = p1[v30 + t];
    alignas(16) f32 v32[1];
    alignas(16) f32 v33[1];
    const i64 v35 = (i64)((u64)v23 + (u64)512ll);
    const i64 v36 = (i64)((u64)v35 + (u64)v6);
    EACH (int r = 0; r < 1; ++r) {
      v32[r] = from_bf16(v31[r]);
      v33[r] = v12[r] + v32[r];
    }
    alignas(16) u16 v37[1];
    EACH (int r = 0; r < 1; ++r) v37[r] = p1[v36 + t];
    alignas(16) f32 v38[1];
    alignas(16) f32 v39[1];
    const i64 v41 = (i64)((u64)v23 + (u64)768ll);
    const i64 v42 = (i64)((u64)v41 + (u64)v6);
    EACH (int r = 0; r < 1; ++r) {
      v38[r] = from_bf16(v37[r]);
      v39[r] = v13[r] + v38[r];
    }
    alignas(16) u16 v43[1];
    EACH (int r = 0; r < 1; ++r) v43[r] = p1[v42 + t];
    alignas(16) f32 v44[1];
    alignas(16) f32 v45[1];
    const i64 v47 = (i64)((u64)v23 + (u64)1024ll);
    const i64 v48 = (i64)((u64)v47 + (u64)v6);
    EACH (int r = 0; r < 1; ++r) {
      v44[r] = from_bf16(v43[r]);
      v45[r] = v14[r] + v44[r];
    }
    alignas(16) u16 v49[1];
    EACH (int r = 0; r < 1; ++r) v49[r] = p1[v48 + t];
    alignas(16) f32 v50[1];
    alignas(16) f32 v51[1];
    const i64 v53 = (i64)((u64)v23 + (u64)1280ll);
    const i64 v54 = (i64)((u64)v53 + (u64)v6);
    EACH (int r = 0; r < 1; ++r) {
      v50[r] = from_bf16(v49[r]);
      v51[r] = v15[r] + v50[r];
    }
    alignas(16) u16 v55[1];
    EACH (int r = 0; r < 1; ++r) v55[r] = p1[v54 + t];
    alignas(16) f32 v56[1];
    alignas(16) f32 v57[1];
    const i64 v59 = (i64)((u64)v23 + (u64)1536ll);
    const i64 v60 = (i64)((u64)v59 + (u64)v6);
    EACH (int r = 0; r < 1; ++r) {
      v56[r] = from_bf16(v55[r]);
      v57[r] = v16[r] + v56[r];
    }
    alignas(16) u16 v61[1];
    EACH (int r = 0; r < 1; ++r) v61[r] = p1[v60 + t];
    alignas(16) f32 v62[1];
    alignas(16) f32 v63[1];
    const i64 v65 = (i64)((u64)v23 + (u64)1792ll);
    const i64 v66 = (i64)((u64)v65 + (u64)v6);
    EACH (int r = 0; r < 1; ++r) {
      v62[r] = from_bf16(v61[r]);
      v63[r] = v17[r] + v62[r];
    }
    alignas(16) u16 v67[1];
    EACH (int r = 0; r < 1; ++r) v67[r] = p1[v66 + t];
    alignas(16) f32 v68[1];
    alignas(16) f32 v69[1];
    const i64 v71 = (i64)((u64)v23 + (u64)2048ll);
    const i64 v72 = (i64)((u64)v71 + (u64)v6);
    EACH (int r = 0; r < 1; ++r) {
      v68[r] = from_bf16(v67[r]);
      v69[r] = v18[r] + v68[r];
    }
    alignas(16) u16 v73[1];
    EACH (int r = 0; r < 1; ++r) v73[r] = p1[v72 + t];
    alignas(16) f32 v74[1];
    alignas(16) f32 v75[1];
    const i64 v77 = (i64)((u64)v23 + (u64)2304ll);
    const i64 v78 = (i64)((u64)v77 + (u64)v6);
    EACH (int r = 0; r < 1; ++r) {
      v74[r] = from_bf16(v73[r]);
      v75[r] = v27[r] + v74[r];
    }
    alignas(16) u16 v79[1];
    EACH (int r = 0; r < 1; ++r) v79[r] = p1[v78 + t];
    alignas(16) f32 v80[1];
    alignas(16) f32 v81[1];
    const i64 v83 = (i64)((u64)v23 + (u64)2560ll);
    const i64 v84 = (i64)((u64)v83 + (u64)v6);
    EACH (int r = 0; r < 1; ++r) {
      v80[r] = from_bf16(v79[r]);
      v81[r] = v33[r] + v80[r];
    }
    alignas(16) u16 v85[1];
    EACH (int r = 0; r < 1; ++r) v85[r] = p1[v84 + t];
    alignas(16) f32 v86[1];
    alignas(16) f32 v87[1];
    const i64 v89 = (i64)((u64)v23 + (u64)2816ll);
    const i64 v90 = (i64)((u64)v89 + (u64)v6);
    EACH (int r = 0; r < 1; ++r) {
      v86[r] = from_bf16(v85[r]);
      v87[r] = v39[r] + v86[r];
    }
    alignas(16) u16 v91[1];
    EACH (int r = 0; r < 1; ++r) v91[r] = p1[v90 + t];
    alignas(16) f32 v92[1];
    alignas(16) f32 v93[1];
    const i64 v95 = (i64)((u64)v23 + (u64)3072ll);
    const i64 v96 = (i64)((u64)v95 + (u64)v6);
    EACH (int r = 0; r < 1; ++r) {
      v92[r] = from_bf16(v91[r]);
      v93[r] = v45[r] + v92[r];
    }
    alignas(16) u16 v97[1];
    EACH (int r = 0; r < 1; ++r) v97[r] = p1[v96 + t];
    alignas(16) f32 v98[1];
    alignas(16) f32 v99[1];
    const i64 v101 = (i64)((u64)v23 + (u64)3328ll);
    const i64 v102 = (i64)((u64)v101 + (u64)v6);
    EACH (int r = 0; r < 1; ++r) {
      v98[r] = from_bf16(v97[r]);
      v99[r] = v51[r] + v98[r];
    }
    alignas(16) u16 v103[1];
    EACH (int r = 0; r < 1; ++r) v103[r] = p1[v102 + t];
    alignas(16) f32 v104[1];
    alignas(16) f32 v105[1];
    const i64 v107 = (i64)((u64)v23 + (u64)3584ll);
    const i64 v108 = (i64)((u64)v107 + (u64)v6);
    EACH (int r = 0; r < 1; ++r) {
      v104[r] = from_bf16(v103[r]);
      v105[r] = v57[r] + v104[r];
    }
    alignas(16) u16 v109[1];
    EACH (int r = 0; r < 1; ++r) v109[r] = p1[v108 + t];
    alignas(16) f32 v110[1];
    alignas(16) f32 v111[1];
    const i64 v113 = (i64)((u64)v23 + (u64)3840ll);
    const i64 v114 = (i64)((u64)v113 + (u64)v6);
    EACH (int r = 0; r < 1; ++r) {
      v110[r] = from_bf16(v109[r]);
      v111[r] = v63[r] + v110[r];
    }
    alignas(16) u16 v115[1];
    EACH (int r = 0; r < 1; ++r) v115[r] = p1[v114 + t];
    alignas(16) f32 v116[1];
    alignas(16) f32 v117[1];
    EACH (int r = 0; r < 1; ++r) {
      v116[r] = from_bf16(v115[r]);
      v117[r] = v69[r] + v116[r];
    }
    EACH (int r = 0; r < 1; ++r) v11[r] = v75[r];
    EACH (int r = 0; r < 1; ++r) v12[r] = v81[r];
    EACH (int r = 0; r < 1; ++r) v13[r] = v87[r];
    EACH (int r = 0; r < 1; ++r) v14[r] = v93[r];
    EACH (int r = 0; r < 1; ++r) v15[r] = v99[r];
    EACH (int r = 0; r < 1; ++r) v16[r] = v105[r];
    EACH (int r = 0; r < 1; ++r) v17[r] = v111[r];
    EACH (int r = 0; r < 1; ++r) v18[r] = v117[r];
  }
  alignas(16) f32 v126[1];
  alignas(16) f32 v127[1];
  alignas(16) f32 v128[1];
  alignas(16) f32 v129[1];
  alignas(16) f32 v130[1];
  alignas(16) f32 v131[1];
  alignas(16) f32 v132[1];
  const i64 v134 = (i64)((u64)v4 * (u64)256ll);
  const i64 v135 = (i64)((u64)v134 + (u64)v6);
  EACH (int r = 0; r < 1; ++r) {
    v126[r] = v11[r] + v12[r];
    v127[r] = v13[r] + v14[r];
    v128[r] = v15[r] + v16[r];
    v129[r] = v17[r] + v18[r];
    v130[r] = v126[r] + v127[r];
    v131[r] = v128[r] + v129[r];
    v132[r] = v130[r] + v131[r];
  }
  const i64 arrived = wait_for_previous();
  f32* const q0 = p0;
  EACH (int r = 0; r < 1; ++r) q0[v135 + t] = v132[r];
}
extern "C" __global__ void __launch_bounds__(128) column_sum_3(f32* p0, const u16* __restrict__ p1, const i64 grid) {
  extern __shared__ __align__(16) u8 memory[];
  const int t = threadIdx.x % 32;
  i64 program = (i64)blockIdx.x * 4 + threadIdx.x / 32;
  u8* const shared = memory + threadIdx.x / 32 * 0;
  if (program >= grid) return;
  begin_next();
  column_sum_3_body(t, shared, program, changing(p0), p1);
}
#undef SYNC
#define SYNC __syncwarp();
FN void row_sum_5_body(const int t, u8* const shared, const i64 program, u16*  p0, const f32* __restrict__ p1) {
  const i64 arrived = wait_for_previous();
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
  const f32 v9 = from_bf16(v8);
  const f32 v10 = from_bf16(v8);
  if (t == 0) q0[program] = v8;
}
extern "C" __global__ void __launch_bounds__(128) row_sum_5(u16* p0, const f32* p1, const i64 grid) {
  extern __shared__ __align__(16) u8 memory[];
  const int t = threadIdx.x % 32;
  i64 program = (i64)blockIdx.x * 4 + threadIdx.x / 32;
  u8* const shared = memory + threadIdx.x / 32 * 0;
  if (program >= grid) return;
  begin_next();
  row_sum_5_body(t, shared, program, changing(p0), changing(p1));
}
#undef SYNC
