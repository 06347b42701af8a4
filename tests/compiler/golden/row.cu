#define SYNC __syncthreads();
FN void row_max_sum_10_body(const int t, u8* const shared, const i64 program, f32*  p0, const f32* __restrict__ p1) {
  const i64 v6 = (i64)((u64)program * (u64)1000ll);
  alignas(16) f32 v7[16];
  EACH (int c = 0; c < 4; ++c) {
    if ((((c * 4) / 4 * 64 + t) * 4 + (c * 4) % 4) < 1000ll) { ((W16*)(v7 + c * 4))[0] = ((const W16*)(p1 + v6 + (((c * 4) / 4 * 64 + t) * 4 + (c * 4) % 4)))[0]; }
    else EACH (int j = 0; j < 4; ++j) v7[c * 4 + j] = 0.0f;
  }
  alignas(16) bool v10[16];
  EACH (int r = 0; r < 16; ++r) v10[r] = (i64)((r / 4 * 64 + t) * 4 + r % 4) < 1000ll;
  alignas(16) f32 v11[16];
  EACH (int r = 0; r < 16; ++r) v11[r] = v10[r] ? v7[r] : real(0xff800000u);
  f32 w13[16];
  EACH (int r = 0; r < 16; ++r) w13[r] = v11[r];
  EACH (int r = 0; r < 8; ++r) w13[r] = fmaximum(w13[r], w13[r + 8]);
  EACH (int r = 0; r < 4; ++r) w13[r] = fmaximum(w13[r], w13[r + 4]);
  EACH (int first = 0; first < 4; first += 4) {
    SYNC
    EACH (int r = 0; r < 4; ++r) ((f32*)(shared + 0))[t + r * 64] = w13[first + r];
    SYNC
     {
      EACH (int k = 0; k < 2; ++k) {
        const int r = (t >> 5) + k * 2;
        f32 x[2];
        EACH (int j = 0; j < 2; ++j) x[j] = ((f32*)(shared + 0))[j * 32 + (t & 31) + r * 64];
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
  EACH (int r = 0; r < 4; ++r) w13[r] = ((f32*)(shared + 1024))[r];
  EACH (int r = 0; r < 2; ++r) w13[r] = fmaximum(w13[r], w13[r + 2]);
  EACH (int r = 0; r < 1; ++r) w13[r] = fmaximum(w13[r], w13[r + 1]);
  const f32 v13 = w13[0];
  alignas(16) f32 v16[16];
  EACH (int r = 0; r < 16; ++r) v16[r] = v7[r] - v13;
  alignas(16) f32 v26[16];
  EACH (int r = 0; r < 16; ++r) v26[r] = fmaximum(v16[r], -104.0f);
  alignas(16) f32 v28[16];
  EACH (int r = 0; r < 16; ++r) v28[r] = fminimum(v26[r], 89.0f);
  alignas(16) f32 v30[16];
  EACH (int r = 0; r < 16; ++r) v30[r] = v28[r] * real(0x3fb8aa3bu)/*1.44269502*/;
  alignas(16) f32 v32[16];
  EACH (int r = 0; r < 16; ++r) v32[r] = fmaf(v28[r], real(0xbfb8aa3bu)/*-1.44269502*/, v30[r]);
  alignas(16) f32 v34[16];
  EACH (int r = 0; r < 16; ++r) v34[r] = fmaf(v28[r], real(0xb2a57060u)/*-1.92596303e-08*/, v32[r]);
  alignas(16) f32 v37[16];
  EACH (int r = 0; r < 16; ++r) v37[r] = fmaf(v34[r], real(0xbf317218u)/*-0.693147182*/, 1.0f);
  alignas(16) f32 v38[16];
  EACH (int r = 0; r < 16; ++r) v38[r] = fexp2(v30[r]);
  alignas(16) f32 v39[16];
  EACH (int r = 0; r < 16; ++r) v39[r] = v38[r] * v37[r];
  alignas(16) bool v18[16];
  EACH (int r = 0; r < 16; ++r) v18[r] = (i64)((r / 4 * 64 + t) * 4 + r % 4) < 1000ll;
  alignas(16) f32 v19[16];
  EACH (int r = 0; r < 16; ++r) v19[r] = v18[r] ? v39[r] : 0.0f;
  alignas(16) f32 v20[16];
  EACH (int r = 0; r < 16; ++r) v20[r] = 0.0f + v19[r];
  f32 w21[16];
  EACH (int r = 0; r < 16; ++r) w21[r] = v20[r];
  EACH (int r = 0; r < 8; ++r) w21[r] = w21[r] + w21[r + 8];
  EACH (int r = 0; r < 4; ++r) w21[r] = w21[r] + w21[r + 4];
  EACH (int first = 0; first < 4; first += 4) {
    SYNC
    EACH (int r = 0; r < 4; ++r) ((f32*)(shared + 0))[t + r * 64] = w21[first + r];
    SYNC
     {
      EACH (int k = 0; k < 2; ++k) {
        const int r = (t >> 5) + k * 2;
        f32 x[2];
        EACH (int j = 0; j < 2; ++j) x[j] = ((f32*)(shared + 0))[j * 32 + (t & 31) + r * 64];
        EACH (int j = 0; j < 1; ++j) x[j] = x[j] + x[j + 1];
        x[0] = x[0] + lane_xor(x[0], 16);
        x[0] = x[0] + lane_xor(x[0], 8);
        x[0] = x[0] + lane_xor(x[0], 4);
        x[0] = x[0] + lane_xor(x[0], 2);
        x[0] = x[0] + lane_xor(x[0], 1);
        if ((t & 31) == 0) ((f32*)(shared + 1024))[first + r] = x[0];
      }
    }
  }
  SYNC
  EACH (int r = 0; r < 4; ++r) w21[r] = ((f32*)(shared + 1024))[r];
  EACH (int r = 0; r < 2; ++r) w21[r] = w21[r] + w21[r + 2];
  EACH (int r = 0; r < 1; ++r) w21[r] = w21[r] + w21[r + 1];
  const f32 v21 = w21[0];
  const f32 v41 = 1.0f / v21;
  alignas(16) f32 v24[16];
  EACH (int r = 0; r < 16; ++r) v24[r] = v39[r] * v41;
  EACH (int c = 0; c < 4; ++c) {
    if ((((c * 4) / 4 * 64 + t) * 4 + (c * 4) % 4) < 1000ll) { ((W16*)(p0 + v6 + (((c * 4) / 4 * 64 + t) * 4 + (c * 4) % 4)))[0] = ((const W16*)(v24 + c * 4))[0]; }
  }
}
extern "C" __global__ void __launch_bounds__(64) row_max_sum_10(f32* p0, const f32* __restrict__ p1, const i64 grid) {
  extern __shared__ __align__(16) u8 memory[];
  const int t = threadIdx.x;
  i64 program = blockIdx.x;
  u8* const shared = memory;
  if (program >= grid) return;
  row_max_sum_10_body(t, shared, program, p0, p1);
}
#undef SYNC
