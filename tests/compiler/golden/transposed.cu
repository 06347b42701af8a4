#define SYNC __syncthreads();
FN void transposed_2_body(const int t, u8* const shared, const i64 program, const bool early, f32*  p0, const f32* __restrict__ p1) {
  __builtin_assume(t >= 0 && t < 256), __builtin_assume(program >= 0);
  const int line = t / 16, place = t % 16;
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
  alignas(16) f32 v24[16];
  EACH (int c = 0; c < 4; ++c) {
    const bool there = ((((c * 4) / 4 * 256 + t) * 4 + (c * 4) % 4) / 64) < v16 && ((((c * 4) / 4 * 256 + t) * 4 + (c * 4) % 4) % 64) < v18;
    ((W16*)(v24 + c * 4))[0] = word_if(there, (const W16*)(p1 + index_if(there, v23 + ((((c * 4) / 4 * 256 + t) * 4 + (c * 4) % 4) / 64) * 160ll + ((((c * 4) / 4 * 256 + t) * 4 + (c * 4) % 4) % 64))) + 0, 0x0u); 
  }
  SYNC
  EACH (int c = 0; c < 4; ++c) {
    const int chunk = c * 256 + t;
    EACH (int k = 0; k < 1; ++k) ((W16*)(((f32*)(shared + 0)) + ((chunk / 16) * 16 + ((chunk % 16) ^ (chunk / 16) / 4 % 8)) * 4))[k] = ((const W16*)(v24 + c * 4))[k];
  }
  SYNC
  alignas(16) f32 v25[16];
   {
    alignas(16) f32 square[16];
    EACH (int c = 0; c < 4; ++c) EACH (int k = 0; k < 1; ++k) ((W16*)(square + c * 4))[k] = ((W16*)(((f32*)(shared + 0)) + ((place * 4 + c) * 16 + ((line) ^ (place * 4 + c) / 4 % 8)) * 4))[k];
    turn<4>(square, v25);
  }
  alignas(16) f32 v26[16];
  const i64 v27 = (i64)((u64)v11 * (u64)200ll);
  const i64 v28 = (i64)((u64)v27 + (u64)v8);
  const i64 v29 = (i64)((u64)v22 + (u64)v28);
  EACH (int r = 0; r < 16; ++r) {
    v26[r] = v25[r] + v25[r];
  }
  const i64 arrived = early ? wait_for_previous() : 0;
  f32* const q0 = p0;
  EACH (int c = 0; c < 4; ++c) {
    if ((line * 4 + ((c * 4)) / 4) < v18 && (place * 4 + ((c * 4)) % 4) < v16) { put_word((W16*)(q0 + v29 + (line * 4 + ((c * 4)) / 4) * 200ll + (place * 4 + ((c * 4)) % 4)) + 0, ((const W16*)(v26 + c * 4))[0]); }
  }
}
extern "C" __global__ void __launch_bounds__(256) transposed_2(f32* p0, const f32* __restrict__ p1, const i64 grid) {
  extern __shared__ __align__(16) u8 memory[];
  const int t = threadIdx.x % 256;
  i64 program = blockIdx.x;
  u8* const shared = memory;
  if (program >= grid) return;
  const bool early = grid <= 32768;
  if (early) begin_next();
  transposed_2_body(t, shared, program, early, changing(p0), p1);
}
#undef SYNC
