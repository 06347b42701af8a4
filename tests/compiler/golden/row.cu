#define SYNC __syncwarp();
FN void row_max_sum_10_body(const int t, u8* const shared, const i64 program, const bool early, f32*  p0, const f32* __restrict__ p1) {
  const i64 v5 = (i64)((u64)program * (u64)1000ll);
  alignas(16) f32 v6[32];
  EACH (int c = 0; c < 8; ++c) {
    const bool there = (((c * 4) / 4 * 32 + t) * 4 + (c * 4) % 4) < 1000ll;
    ((W16*)(v6 + c * 4))[0] = word_if(there, (const W16*)(p1 + index_if(there, v5 + (((c * 4) / 4 * 32 + t) * 4 + (c * 4) % 4))) + 0, 0x0u); 
  }
  alignas(16) bool v10[32];
  alignas(16) f32 v11[32];
  EACH (int r = 0; r < 32; ++r) {
    v10[r] = (i64)((r / 4 * 32 + t) * 4 + r % 4) < 1000ll;
    v11[r] = v10[r] ? v6[r] : real(0xff800000u);
  }
  f32 w13[32];
  EACH (int r = 0; r < 32; ++r) w13[r] = v11[r];
  EACH (int r = 0; r < 16; ++r) w13[r] = fmaximum(w13[r], w13[r + 16]);
  EACH (int r = 0; r < 8; ++r) w13[r] = fmaximum(w13[r], w13[r + 8]);
  EACH (int r = 0; r < 4; ++r) w13[r] = fmaximum(w13[r], w13[r + 4]);
  EACH (int r = 0; r < 2; ++r) w13[r] = fmaximum(w13[r], w13[r + 2]);
  EACH (int r = 0; r < 1; ++r) w13[r] = fmaximum(w13[r], w13[r + 1]);
  w13[0] = fmaximum(w13[0], lane_xor(w13[0], 16));
  w13[0] = fmaximum(w13[0], lane_xor(w13[0], 8));
  w13[0] = fmaximum(w13[0], lane_xor(w13[0], 4));
  w13[0] = fmaximum(w13[0], lane_xor(w13[0], 2));
  w13[0] = fmaximum(w13[0], lane_xor(w13[0], 1));
  const f32 v13 = w13[0];
  alignas(16) f32 v16[32];
  alignas(16) f32 v26[32];
  alignas(16) f32 v28[32];
  alignas(16) f32 v30[32];
  alignas(16) f32 v32[32];
  alignas(16) f32 v34[32];
  alignas(16) f32 v37[32];
  alignas(16) f32 v38[32];
  alignas(16) f32 v39[32];
  alignas(16) bool v18[32];
  alignas(16) f32 v19[32];
  alignas(16) f32 v20[32];
  EACH (int r = 0; r < 32; ++r) {
    v16[r] = v6[r] - v13;
    v26[r] = fmaximum(v16[r], -104.0f);
    v28[r] = fminimum(v26[r], 89.0f);
    v30[r] = v28[r] * real(0x3fb8aa3bu)/*1.44269502*/;
    v32[r] = fmaf(v28[r], real(0xbfb8aa3bu)/*-1.44269502*/, v30[r]);
    v34[r] = fmaf(v28[r], real(0xb2a57060u)/*-1.92596303e-08*/, v32[r]);
    v37[r] = fmaf(v34[r], real(0xbf317218u)/*-0.693147182*/, 1.0f);
    v38[r] = fexp2(v30[r]);
    v39[r] = v38[r] * v37[r];
    v18[r] = (i64)((r / 4 * 32 + t) * 4 + r % 4) < 1000ll;
    v19[r] = v18[r] ? v39[r] : 0.0f;
    v20[r] = 0.0f + v19[r];
  }
  f32 w21[32];
  EACH (int r = 0; r < 32; ++r) w21[r] = v20[r];
  EACH (int r = 0; r < 16; ++r) w21[r] = w21[r] + w21[r + 16];
  EACH (int r = 0; r < 8; ++r) w21[r] = w21[r] + w21[r + 8];
  EACH (int r = 0; r < 4; ++r) w21[r] = w21[r] + w21[r + 4];
  EACH (int r = 0; r < 2; ++r) { const auto kept = chosen(t & 16, w21[r + 2], w21[r]), given = chosen(t & 16, w21[r], w21[r + 2]); w21[r] = kept + lane_xor(given, 16); }
  EACH (int r = 0; r < 1; ++r) { const auto kept = chosen(t & 8, w21[r + 1], w21[r]), given = chosen(t & 8, w21[r], w21[r + 1]); w21[r] = kept + lane_xor(given, 8); }
  w21[0] = w21[0] + lane_xor(w21[0], 4);
  w21[0] = w21[0] + lane_xor(w21[0], 2);
  w21[0] = w21[0] + lane_xor(w21[0], 1);
  EACH (int r = 0; r < 1; ++r) w21[r] = w21[r] + lane_xor(w21[r], 16);
  EACH (int r = 0; r < 1; ++r) w21[r] = w21[r] + lane_xor(w21[r], 8);
  const f32 v21 = w21[0];
  const f32 v41 = 1.0f / v21;
  alignas(16) f32 v24[32];
  EACH (int r = 0; r < 32; ++r) {
    v24[r] = v39[r] * v41;
  }
  const i64 arrived = early ? wait_for_previous() : 0;
  f32* const q0 = p0;
  EACH (int c = 0; c < 8; ++c) {
    if ((((c * 4) / 4 * 32 + t) * 4 + (c * 4) % 4) < 1000ll) { ((W16*)(q0 + v5 + (((c * 4) / 4 * 32 + t) * 4 + (c * 4) % 4)))[0] = ((const W16*)(v24 + c * 4))[0]; }
  }
}
extern "C" __global__ void __launch_bounds__(64) row_max_sum_10(f32* p0, const f32* __restrict__ p1, const i64 grid) {
  extern __shared__ __align__(16) u8 memory[];
  const int t = threadIdx.x % 32;
  i64 program = (i64)blockIdx.x * 2 + threadIdx.x / 32;
  u8* const shared = memory + threadIdx.x / 32 * 0;
  if (program >= grid) return;
  const bool early = grid <= 32768;
  if (early) begin_next();
  row_max_sum_10_body(t, shared, program, early, changing(p0), p1);
}
#undef SYNC
