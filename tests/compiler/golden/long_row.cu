#define SYNC __syncthreads();
FN void row_max_sum_12_body(const int t, u8* const shared, const i64 program, const bool early, u16*  p0, const u16* __restrict__ p1) {
  u8* const locals = shared + 8224;
  cluster_begin();
  const i64 rank = cluster_rank();
  cluster_wait();
  const i64 v6 = (i64)((u64)rank * (u64)5000ll);
  const i64 v8 = (i64)((u64)rank * (u64)1144ll);
  const i64 v21 = (i64)((u64)v6 + (u64)4096ll);
  const i64 v22 = (i64)((u64)v21 + (u64)v8);
  const i64 v24 = (i64)((u64)program * (u64)20000ll);
  const i64 v25 = (i64)((u64)v24 + (u64)v21);
  const i64 v37 = (i64)((u64)v6 + (u64)4096ll);
  const i64 v38 = (i64)((u64)v37 + (u64)v8);
  alignas(16) bool v43[8];
  EACH (int r = 0; r < 8; ++r) {
    v43[r] = (i64)(t * 8 + r) < 904ll;
  }
  for (i64 v12 = 0ll; v12 < 4096ll; v12 += 2048ll) {
    const i64 v13 = (i64)((u64)v6 + (u64)v12);
    const i64 v14 = (i64)((u64)v13 + (u64)v8);
    const i64 v16 = (i64)((u64)program * (u64)20000ll);
    const i64 v17 = (i64)((u64)v16 + (u64)v13);
    EACH (int c = 0; c < 1; ++c) {
      copy_async(shared_address(((u16*)(locals + 0) - rank * 6144) + v14 + (t * 8 + (c * 8)) + 0), p1 + v17 + (t * 8 + (c * 8)) + 0);
    }
  }
  EACH (int c = 0; c < 1; ++c) {
    const bool there = (t * 8 + (c * 8)) < 904ll;
    copy_async(shared_address(((u16*)(locals + 0) - rank * 6144) + v22 + (t * 8 + (c * 8)) + 0), p1 + index_if(there, v25 + (t * 8 + (c * 8))) + 0, there ? 16 : 0);
  }
  alignas(16) f32 v30[8];
  EACH (int r = 0; r < 8; ++r) v30[r] = real(0xff800000u);
  commit_copies(); wait_copies<0>();
  for (i64 v29 = 0ll; v29 < 4096ll; v29 += 2048ll) {
    const i64 v31 = (i64)((u64)v6 + (u64)v29);
    const i64 v32 = (i64)((u64)v31 + (u64)v8);
    alignas(16) u16 v33[8];
    EACH (int c = 0; c < 1; ++c) {
      ((W16*)(v33 + c * 8))[0] = ((const W16*)(((u16*)(locals + 0) - rank * 6144) + v32 + (t * 8 + (c * 8))))[0]; 
    }
    alignas(16) f32 v34[8];
    alignas(16) f32 v35[8];
    EACH (int r = 0; r < 8; ++r) {
      v34[r] = from_bf16(v33, r);
      v35[r] = fmaximum(v30[r], v34[r]);
    }
    EACH (int r = 0; r < 8; ++r) v30[r] = v35[r];
  }
  alignas(16) u16 v39[8];
  EACH (int c = 0; c < 1; ++c) {
    ((W16*)(v39 + c * 8))[0] = ((const W16*)(((u16*)(locals + 0) - rank * 6144) + v38 + (t * 8 + (c * 8))))[0]; 
  }
  alignas(16) f32 v40[8];
  alignas(16) f32 v44[8];
  alignas(16) f32 v45[8];
  EACH (int r = 0; r < 8; ++r) {
    v40[r] = from_bf16(v39, r);
    v44[r] = v43[r] ? v40[r] : real(0xff800000u);
    v45[r] = fmaximum(v30[r], v44[r]);
  }
  f32 w46[8];
  EACH (int r = 0; r < 8; ++r) w46[r] = v45[r];
  EACH (int r = 0; r < 4; ++r) w46[r] = fmaximum(w46[r], w46[r + 4]);
  EACH (int r = 0; r < 2; ++r) w46[r] = fmaximum(w46[r], w46[r + 2]);
  EACH (int r = 0; r < 1; ++r) w46[r] = fmaximum(w46[r], w46[r + 1]);
  EACH (int first = 0; first < 1; first += 1) {
    SYNC
    EACH (int r = 0; r < 1; ++r) ((f32*)(shared + 0))[t + r * 256] = w46[first + r];
    SYNC
    if (t < 32) {
      EACH (int k = 0; k < 1; ++k) {
        const int r = (t >> 5) + k * 1;
        f32 x[8];
        EACH (int j = 0; j < 8; ++j) x[j] = ((f32*)(shared + 0))[j * 32 + (t & 31) + r * 256];
        EACH (int j = 0; j < 4; ++j) x[j] = fmaximum(x[j], x[j + 4]);
        EACH (int j = 0; j < 2; ++j) x[j] = fmaximum(x[j], x[j + 2]);
        EACH (int j = 0; j < 1; ++j) x[j] = fmaximum(x[j], x[j + 1]);
        x[0] = fmaximum(x[0], lane_xor(x[0], 16));
        x[0] = fmaximum(x[0], lane_xor(x[0], 8));
        x[0] = fmaximum(x[0], lane_xor(x[0], 4));
        x[0] = fmaximum(x[0], lane_xor(x[0], 2));
        x[0] = fmaximum(x[0], lane_xor(x[0], 1));
        if ((t & 31) == 0) ((f32*)(shared + 1024))[first + r] = x[0];
      }
    }
  }
  SYNC
  EACH (int r = 0; r < 1; ++r) w46[r] = ((f32*)(shared + 1024))[r];
  const f32 v46 = w46[0];
  if (t < 4) ((f32*)(in_block(locals, t) + 12288))[rank] = v46;
  cluster_arrive(), cluster_wait();
  alignas(16) f32 v47[1];
  EACH (int r = 0; r < 1; ++r) v47[r] = ((f32*)(locals + 12288))[0ll + (t & 3)];
  f32 w48[1];
  EACH (int r = 0; r < 1; ++r) w48[r] = v47[r];
  w48[0] = fmaximum(w48[0], lane_xor(w48[0], 2));
  w48[0] = fmaximum(w48[0], lane_xor(w48[0], 1));
  const f32 v48 = w48[0];
  const i64 v51 = (i64)((u64)rank * (u64)5000ll);
  const i64 v53 = (i64)((u64)rank * (u64)1144ll);
  const i64 v70 = (i64)((u64)v51 + (u64)4096ll);
  const i64 v71 = (i64)((u64)v70 + (u64)v53);
  alignas(16) bool v79[8];
  EACH (int r = 0; r < 8; ++r) {
    v79[r] = (i64)(t * 8 + r) < 904ll;
  }
  alignas(16) f32 v59[8];
  EACH (int r = 0; r < 8; ++r) v59[r] = 0.0f;
  for (i64 v58 = 0ll; v58 < 4096ll; v58 += 2048ll) {
    const i64 v60 = (i64)((u64)v51 + (u64)v58);
    const i64 v61 = (i64)((u64)v60 + (u64)v53);
    alignas(16) u16 v62[8];
    EACH (int c = 0; c < 1; ++c) {
      ((W16*)(v62 + c * 8))[0] = ((const W16*)(((u16*)(locals + 0) - rank * 6144) + v61 + (t * 8 + (c * 8))))[0]; 
    }
    alignas(16) f32 v63[8];
    alignas(16) f32 v65[8];
    alignas(16) f32 v127[8];
    alignas(16) f32 v129[8];
    alignas(16) f32 v131[8];
    alignas(16) f32 v133[8];
    alignas(16) f32 v135[8];
    alignas(16) f32 v138[8];
    alignas(16) f32 v139[8];
    alignas(16) f32 v140[8];
    alignas(16) f32 v67[8];
    EACH (int r = 0; r < 8; ++r) {
      v63[r] = from_bf16(v62, r);
      v65[r] = v63[r] - v48;
      v127[r] = fmaximum(v65[r], -104.0f);
      v129[r] = fminimum(v127[r], 89.0f);
      v131[r] = v129[r] * real(0x3fb8aa3bu)/*1.44269502*/;
      v133[r] = fmaf(v129[r], real(0xbfb8aa3bu)/*-1.44269502*/, v131[r]);
      v135[r] = fmaf(v129[r], real(0xb2a57060u)/*-1.92596303e-08*/, v133[r]);
      v138[r] = fmaf(v135[r], real(0xbf317218u)/*-0.693147182*/, 1.0f);
      v139[r] = fexp2(v131[r]);
      v140[r] = v139[r] * v138[r];
      v67[r] = v59[r] + v140[r];
    }
    EACH (int r = 0; r < 8; ++r) v59[r] = v67[r];
  }
  alignas(16) u16 v72[8];
  EACH (int c = 0; c < 1; ++c) {
    ((W16*)(v72 + c * 8))[0] = ((const W16*)(((u16*)(locals + 0) - rank * 6144) + v71 + (t * 8 + (c * 8))))[0]; 
  }
  alignas(16) f32 v73[8];
  alignas(16) f32 v75[8];
  alignas(16) f32 v142[8];
  alignas(16) f32 v144[8];
  alignas(16) f32 v146[8];
  alignas(16) f32 v148[8];
  alignas(16) f32 v150[8];
  alignas(16) f32 v153[8];
  alignas(16) f32 v154[8];
  alignas(16) f32 v155[8];
  alignas(16) f32 v80[8];
  alignas(16) f32 v81[8];
  EACH (int r = 0; r < 8; ++r) {
    v73[r] = from_bf16(v72, r);
    v75[r] = v73[r] - v48;
    v142[r] = fmaximum(v75[r], -104.0f);
    v144[r] = fminimum(v142[r], 89.0f);
    v146[r] = v144[r] * real(0x3fb8aa3bu)/*1.44269502*/;
    v148[r] = fmaf(v144[r], real(0xbfb8aa3bu)/*-1.44269502*/, v146[r]);
    v150[r] = fmaf(v144[r], real(0xb2a57060u)/*-1.92596303e-08*/, v148[r]);
    v153[r] = fmaf(v150[r], real(0xbf317218u)/*-0.693147182*/, 1.0f);
    v154[r] = fexp2(v146[r]);
    v155[r] = v154[r] * v153[r];
    v80[r] = v79[r] ? v155[r] : 0.0f;
    v81[r] = v59[r] + v80[r];
  }
  f32 w82[8];
  EACH (int r = 0; r < 8; ++r) w82[r] = v81[r];
  EACH (int first = 0; first < 8; first += 8) {
    SYNC
    EACH (int r = 0; r < 8; ++r) ((f32*)(shared + 0))[t + r * 256] = w82[first + r];
    SYNC
     {
      EACH (int k = 0; k < 1; ++k) {
        const int r = (t >> 5) + k * 8;
        f32 x[8];
        EACH (int j = 0; j < 8; ++j) x[j] = ((f32*)(shared + 0))[j * 32 + (t & 31) + r * 256];
        EACH (int j = 0; j < 4; ++j) x[j] = x[j] + x[j + 4];
        EACH (int j = 0; j < 2; ++j) x[j] = x[j] + x[j + 2];
        EACH (int j = 0; j < 1; ++j) x[j] = x[j] + x[j + 1];
        x[0] = x[0] + lane_xor(x[0], 16);
        x[0] = x[0] + lane_xor(x[0], 8);
        x[0] = x[0] + lane_xor(x[0], 4);
        x[0] = x[0] + lane_xor(x[0], 2);
        x[0] = x[0] + lane_xor(x[0], 1);
        if ((t & 31) == 0) ((f32*)(shared + 8192))[first + r] = x[0];
      }
    }
  }
  SYNC
  EACH (int r = 0; r < 8; ++r) w82[r] = ((f32*)(shared + 8192))[r];
  EACH (int r = 0; r < 4; ++r) w82[r] = w82[r] + w82[r + 4];
  EACH (int r = 0; r < 2; ++r) w82[r] = w82[r] + w82[r + 2];
  EACH (int r = 0; r < 1; ++r) w82[r] = w82[r] + w82[r + 1];
  const f32 v82 = w82[0];
  if (t < 4) ((f32*)(in_block(locals, t) + 12304))[rank] = v82;
  cluster_arrive(), cluster_wait();
  alignas(16) f32 v83[1];
  EACH (int r = 0; r < 1; ++r) v83[r] = ((f32*)(locals + 12304))[0ll + (t & 3)];
  f32 w84[1];
  EACH (int r = 0; r < 1; ++r) w84[r] = v83[r];
  w84[0] = w84[0] + lane_xor(w84[0], 2);
  w84[0] = w84[0] + lane_xor(w84[0], 1);
  const f32 v84 = w84[0];
  const i64 v87 = (i64)((u64)rank * (u64)5000ll);
  const i64 v89 = (i64)((u64)rank * (u64)1144ll);
  const f32 v157 = 1.0f / v84;
  const i64 v111 = (i64)((u64)v87 + (u64)4096ll);
  const i64 v112 = (i64)((u64)v111 + (u64)v89);
  const i64 v124 = (i64)((u64)program * (u64)20000ll);
  const i64 v125 = (i64)((u64)v124 + (u64)v111);
  const i64 arrived = early ? wait_for_previous() : 0;
  u16* const q0 = p0;
  for (i64 v94 = 0ll; v94 < 4096ll; v94 += 2048ll) {
    const i64 v95 = (i64)((u64)v87 + (u64)v94);
    const i64 v96 = (i64)((u64)v95 + (u64)v89);
    alignas(16) u16 v97[8];
    EACH (int c = 0; c < 1; ++c) {
      ((W16*)(v97 + c * 8))[0] = ((const W16*)(((u16*)(locals + 0) - rank * 6144) + v96 + (t * 8 + (c * 8))))[0]; 
    }
    alignas(16) f32 v98[8];
    alignas(16) f32 v100[8];
    alignas(16) f32 v159[8];
    alignas(16) f32 v160[8];
    alignas(16) f32 v103[8];
    alignas(16) u16 v104[8];
    const i64 v108 = (i64)((u64)program * (u64)20000ll);
    const i64 v109 = (i64)((u64)v108 + (u64)v95);
    EACH (int r = 0; r < 8; ++r) {
      v98[r] = from_bf16(v97, r);
      v100[r] = v98[r] - v48;
      v159[r] = v100[r] * real(0x3fb8aa3bu)/*1.44269502*/;
      v160[r] = fexp2(v159[r]);
      v103[r] = v160[r] * v157;
      v104[r] = to_bf16(v103[r]);
    }
    EACH (int c = 0; c < 1; ++c) {
      ((W16*)(q0 + v109 + (t * 8 + (c * 8))))[0] = ((const W16*)(v104 + c * 8))[0]; 
    }
  }
  alignas(16) u16 v113[8];
  EACH (int c = 0; c < 1; ++c) {
    ((W16*)(v113 + c * 8))[0] = ((const W16*)(((u16*)(locals + 0) - rank * 6144) + v112 + (t * 8 + (c * 8))))[0]; 
  }
  alignas(16) f32 v114[8];
  alignas(16) f32 v116[8];
  alignas(16) f32 v162[8];
  alignas(16) f32 v163[8];
  alignas(16) f32 v119[8];
  alignas(16) u16 v120[8];
  EACH (int r = 0; r < 8; ++r) {
    v114[r] = from_bf16(v113, r);
    v116[r] = v114[r] - v48;
    v162[r] = v116[r] * real(0x3fb8aa3bu)/*1.44269502*/;
    v163[r] = fexp2(v162[r]);
    v119[r] = v163[r] * v157;
    v120[r] = to_bf16(v119[r]);
  }
  EACH (int c = 0; c < 1; ++c) {
    if ((t * 8 + (c * 8)) < 904ll) { ((W16*)(q0 + v125 + (t * 8 + (c * 8))))[0] = ((const W16*)(v120 + c * 8))[0]; }
  }
}
extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(256) row_max_sum_12(u16* p0, const u16* __restrict__ p1, const i64 grid) {
  extern __shared__ __align__(16) u8 memory[];
  const int t = threadIdx.x % 256;
  i64 program = blockIdx.x / 4;
  u8* const shared = memory;
  if (program >= grid) return;
  const bool early = grid <= 32768;
  if (early) begin_next();
  row_max_sum_12_body(t, shared, program, early, changing(p0), p1);
}
#undef SYNC
