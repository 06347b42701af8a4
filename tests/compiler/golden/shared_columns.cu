#define SYNC __syncthreads();
FN void column_sum_1_body(int t, u8* shared, const i64 program, const bool early, u16*  p0, const u16* __restrict__ p1) {
  u8* const locals = shared + 0;
  cluster_begin();
  const i64 v3 = (i64)((u64)program * (u64)128ll);
  const i64 rank = cluster_rank() + (t >> 5) * 8;
  const int block_t = t;
  u8* const block_shared = shared;
  t = block_t & 31, shared = block_shared + (block_t >> 5) * 0;
  const i64 v9 = (i64)((u64)rank * (u64)2ll);
  const i64 v10 = (i64)((u64)v9 + (u64)2ll);
  const i64 v135 = (i64)((u64)rank * (u64)128ll);
  alignas(16) f32 v12[4];
  EACH (int r = 0; r < 4; ++r) v12[r] = 0.0f;
  alignas(16) f32 v13[4];
  EACH (int r = 0; r < 4; ++r) v13[r] = 0.0f;
  alignas(16) f32 v14[4];
  EACH (int r = 0; r < 4; ++r) v14[r] = 0.0f;
  alignas(16) f32 v15[4];
  EACH (int r = 0; r < 4; ++r) v15[r] = 0.0f;
  for (i64 v11 = v9; v11 < v10; v11 += 1ll) {
    const i64 v17 = (i64)((u64)v11 * (u64)16384ll);
    const i64 v18 = (i64)((u64)v17 + (u64)v3);
    alignas(16) u16 v19[4];
    EACH (int c = 0; c < 1; ++c) {
      ((W8*)(v19 + c * 4))[0] = read_now((const W8*)(p1 + v18 + (t * 4 + (c * 4))) + 0); 
    }
    const i64 v22 = (i64)((u64)v17 + (u64)1024ll);
    const i64 v23 = (i64)((u64)v22 + (u64)v3);
    alignas(16) u16 v24[4];
    EACH (int c = 0; c < 1; ++c) {
      ((W8*)(v24 + c * 4))[0] = read_now((const W8*)(p1 + v23 + (t * 4 + (c * 4))) + 0); 
    }
    const i64 v27 = (i64)((u64)v17 + (u64)2048ll);
    const i64 v28 = (i64)((u64)v27 + (u64)v3);
    alignas(16) u16 v29[4];
    EACH (int c = 0; c < 1; ++c) {
      ((W8*)(v29 + c * 4))[0] = read_now((const W8*)(p1 + v28 + (t * 4 + (c * 4))) + 0); 
    }
    const i64 v32 = (i64)((u64)v17 + (u64)3072ll);
    const i64 v33 = (i64)((u64)v32 + (u64)v3);
    alignas(16) u16 v34[4];
    EACH (int c = 0; c < 1; ++c) {
      ((W8*)(v34 + c * 4))[0] = read_now((const W8*)(p1 + v33 + (t * 4 + (c * 4))) + 0); 
    }
    const i64 v37 = (i64)((u64)v17 + (u64)4096ll);
    const i64 v38 = (i64)((u64)v37 + (u64)v3);
    alignas(16) u16 v39[4];
    EACH (int c = 0; c < 1; ++c) {
      ((W8*)(v39 + c * 4))[0] = read_now((const W8*)(p1 + v38 + (t * 4 + (c * 4))) + 0); 
    }
    const i64 v42 = (i64)((u64)v17 + (u64)5120ll);
    const i64 v43 = (i64)((u64)v42 + (u64)v3);
    alignas(16) u16 v44[4];
    EACH (int c = 0; c < 1; ++c) {
      ((W8*)(v44 + c * 4))[0] = read_now((const W8*)(p1 + v43 + (t * 4 + (c * 4))) + 0); 
    }
    const i64 v47 = (i64)((u64)v17 + (u64)6144ll);
    const i64 v48 = (i64)((u64)v47 + (u64)v3);
    alignas(16) u16 v49[4];
    EACH (int c = 0; c < 1; ++c) {
      ((W8*)(v49 + c * 4))[0] = read_now((const W8*)(p1 + v48 + (t * 4 + (c * 4))) + 0); 
    }
    const i64 v52 = (i64)((u64)v17 + (u64)7168ll);
    const i64 v53 = (i64)((u64)v52 + (u64)v3);
    alignas(16) u16 v54[4];
    EACH (int c = 0; c < 1; ++c) {
      ((W8*)(v54 + c * 4))[0] = read_now((const W8*)(p1 + v53 + (t * 4 + (c * 4))) + 0); 
    }
    const i64 v57 = (i64)((u64)v17 + (u64)8192ll);
    const i64 v58 = (i64)((u64)v57 + (u64)v3);
    alignas(16) u16 v59[4];
    EACH (int c = 0; c < 1; ++c) {
      ((W8*)(v59 + c * 4))[0] = read_now((const W8*)(p1 + v58 + (t * 4 + (c * 4))) + 0); 
    }
    const i64 v62 = (i64)((u64)v17 + (u64)9216ll);
    const i64 v63 = (i64)((u64)v62 + (u64)v3);
    alignas(16) u16 v64[4];
    EACH (int c = 0; c < 1; ++c) {
      ((W8*)(v64 + c * 4))[0] = read_now((const W8*)(p1 + v63 + (t * 4 + (c * 4))) + 0); 
    }
    const i64 v67 = (i64)((u64)v17 + (u64)10240ll);
    const i64 v68 = (i64)((u64)v67 + (u64)v3);
    alignas(16) u16 v69[4];
    EACH (int c = 0; c < 1; ++c) {
      ((W8*)(v69 + c * 4))[0] = read_now((const W8*)(p1 + v68 + (t * 4 + (c * 4))) + 0); 
    }
    const i64 v72 = (i64)((u64)v17 + (u64)11264ll);
    const i64 v73 = (i64)((u64)v72 + (u64)v3);
    alignas(16) u16 v74[4];
    EACH (int c = 0; c < 1; ++c) {
      ((W8*)(v74 + c * 4))[0] = read_now((const W8*)(p1 + v73 + (t * 4 + (c * 4))) + 0); 
    }
    const i64 v77 = (i64)((u64)v17 + (u64)12288ll);
    const i64 v78 = (i64)((u64)v77 + (u64)v3);
    alignas(16) u16 v79[4];
    EACH (int c = 0; c < 1; ++c) {
      ((W8*)(v79 + c * 4))[0] = read_now((const W8*)(p1 + v78 + (t * 4 + (c * 4))) + 0); 
    }
    const i64 v82 = (i64)((u64)v17 + (u64)13312ll);
    const i64 v83 = (i64)((u64)v82 + (u64)v3);
    alignas(16) u16 v84[4];
    EACH (int c = 0; c < 1; ++c) {
      ((W8*)(v84 + c * 4))[0] = read_now((const W8*)(p1 + v83 + (t * 4 + (c * 4))) + 0); 
    }
    const i64 v87 = (i64)((u64)v17 + (u64)14336ll);
    const i64 v88 = (i64)((u64)v87 + (u64)v3);
    alignas(16) u16 v89[4];
    EACH (int c = 0; c < 1; ++c) {
      ((W8*)(v89 + c * 4))[0] = read_now((const W8*)(p1 + v88 + (t * 4 + (c * 4))) + 0); 
    }
    const i64 v92 = (i64)((u64)v17 + (u64)15360ll);
    const i64 v93 = (i64)((u64)v92 + (u64)v3);
    alignas(16) u16 v94[4];
    EACH (int c = 0; c < 1; ++c) {
      ((W8*)(v94 + c * 4))[0] = read_now((const W8*)(p1 + v93 + (t * 4 + (c * 4))) + 0); 
    }
    alignas(16) f32 v96[4];
    alignas(16) f32 v97[4];
    alignas(16) f32 v98[4];
    alignas(16) f32 v99[4];
    alignas(16) f32 v100[4];
    alignas(16) f32 v101[4];
    alignas(16) f32 v102[4];
    alignas(16) f32 v103[4];
    alignas(16) f32 v104[4];
    alignas(16) f32 v105[4];
    alignas(16) f32 v106[4];
    alignas(16) f32 v107[4];
    alignas(16) f32 v108[4];
    alignas(16) f32 v109[4];
    alignas(16) f32 v110[4];
    alignas(16) f32 v111[4];
    alignas(16) f32 v112[4];
    alignas(16) f32 v113[4];
    alignas(16) f32 v114[4];
    alignas(16) f32 v115[4];
    alignas(16) f32 v116[4];
    alignas(16) f32 v117[4];
    alignas(16) f32 v118[4];
    alignas(16) f32 v119[4];
    alignas(16) f32 v120[4];
    alignas(16) f32 v121[4];
    alignas(16) f32 v122[4];
    alignas(16) f32 v123[4];
    alignas(16) f32 v124[4];
    alignas(16) f32 v125[4];
    alignas(16) f32 v126[4];
    alignas(16) f32 v127[4];
    EACH (int r = 0; r < 4; ++r) {
      v96[r] = from_bf16(v19, r);
      v97[r] = from_bf16(v24, r);
      v98[r] = from_bf16(v29, r);
      v99[r] = from_bf16(v34, r);
      v100[r] = from_bf16(v39, r);
      v101[r] = from_bf16(v44, r);
      v102[r] = from_bf16(v49, r);
      v103[r] = from_bf16(v54, r);
      v104[r] = from_bf16(v59, r);
      v105[r] = from_bf16(v64, r);
      v106[r] = from_bf16(v69, r);
      v107[r] = from_bf16(v74, r);
      v108[r] = from_bf16(v79, r);
      v109[r] = from_bf16(v84, r);
      v110[r] = from_bf16(v89, r);
      v111[r] = from_bf16(v94, r);
      v112[r] = v12[r] + v96[r];
      v113[r] = v13[r] + v97[r];
      v114[r] = v14[r] + v98[r];
      v115[r] = v15[r] + v99[r];
      v116[r] = v112[r] + v100[r];
      v117[r] = v113[r] + v101[r];
      v118[r] = v114[r] + v102[r];
      v119[r] = v115[r] + v103[r];
      v120[r] = v116[r] + v104[r];
      v121[r] = v117[r] + v105[r];
      v122[r] = v118[r] + v106[r];
      v123[r] = v119[r] + v107[r];
      v124[r] = v120[r] + v108[r];
      v125[r] = v121[r] + v109[r];
      v126[r] = v122[r] + v110[r];
      v127[r] = v123[r] + v111[r];
    }
    EACH (int r = 0; r < 4; ++r) v12[r] = v124[r];
    EACH (int r = 0; r < 4; ++r) v13[r] = v125[r];
    EACH (int r = 0; r < 4; ++r) v14[r] = v126[r];
    EACH (int r = 0; r < 4; ++r) v15[r] = v127[r];
  }
  alignas(16) f32 v132[4];
  alignas(16) f32 v133[4];
  alignas(16) f32 v134[4];
  EACH (int r = 0; r < 4; ++r) {
    v132[r] = v12[r] + v13[r];
    v133[r] = v14[r] + v15[r];
    v134[r] = v132[r] + v133[r];
  }
  EACH (int c = 0; c < 1; ++c) {
    ((W16*)((((f32*)(locals + 0)) + ((block_t >> 5) - rank) * 128) + v135 + (t * 4 + (c * 4))))[0] = ((const W16*)(v134 + c * 4))[0]; 
  }
  t = block_t, shared = block_shared;
  SYNC
  cluster_wait();
  for (int k = t; k < 128; k += 1024) {
    f32 x[32];
    EACH (int j = 0; j < 32; ++j) x[j] = ((f32*)(locals + 0))[j * 128 + k];
    EACH (int j = 0; j < 16; ++j) x[j] = x[j] + x[j + 16];
    EACH (int j = 0; j < 8; ++j) x[j] = x[j] + x[j + 8];
    EACH (int j = 0; j < 4; ++j) x[j] = x[j] + x[j + 4];
    EACH (int j = 0; j < 2; ++j) x[j] = x[j] + x[j + 2];
    EACH (int j = 0; j < 1; ++j) x[j] = x[j] + x[j + 1];
    ((f32*)(in_block(locals, 0) + 0))[(cluster_rank() + 32) * 128 + k] = x[0];
  }
  cluster_arrive(), cluster_wait();
  if (cluster_rank() != 0) return;
  alignas(16) f32 v137[1];
  EACH (int r = 0; r < 1; ++r) {
    const int k = (t & 127);
    f32 x[8];
    EACH (int j = 0; j < 8; ++j) x[j] = (((f32*)(locals + 0)) + 4096)[j * 128 + k];
    EACH (int j = 0; j < 4; ++j) x[j] = x[j] + x[j + 4];
    EACH (int j = 0; j < 2; ++j) x[j] = x[j] + x[j + 2];
    EACH (int j = 0; j < 1; ++j) x[j] = x[j] + x[j + 1];
    v137[r] = x[0];
  }
  alignas(16) u16 v138[1];
  EACH (int r = 0; r < 1; ++r) {
    v138[r] = to_bf16(v137[r]);
  }
  const i64 arrived = early ? wait_for_previous() : 0;
  u16* const q0 = p0;
  EACH (int r = 0; r < 1; ++r) if (t < 128) q0[v3 + (t & 127)] = v138[r];
}
extern "C" __global__ void __cluster_dims__(8, 1, 1) __launch_bounds__(1024, 1) column_sum_1(u16* p0, const u16* __restrict__ p1, const i64 grid) {
  extern __shared__ __align__(16) u8 memory[];
  const int t = threadIdx.x % 1024;
  i64 program = blockIdx.x / 8;
  u8* const shared = memory;
  if (program >= grid) return;
  const bool early = grid <= 32768;
  if (early) begin_next();
  column_sum_1_body(t, shared, program, early, changing(p0), p1);
}
#undef SYNC
