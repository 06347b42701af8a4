// Atomic additions of several neighbours in global memory at once. `place` is aligned to all of them.
#ifndef WEFT_ATOMICS
#define WEFT_ATOMICS
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
template <int N>
FN void add_vector(f32* place, const f32* v) {
  if constexpr (N == 2)
    asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};" : : "l"(place), "f"(v[0]), "f"(v[1]) : "memory");
  else
    EACH (int k = 0; k < N; k += 4)
      asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};"
                   :
                   : "l"(place + k), "f"(v[k]), "f"(v[k + 1]), "f"(v[k + 2]), "f"(v[k + 3])
                   : "memory");
}
template <int N>
FN void add_bf16(u16* place, const u16* v) {
  EACH (int k = 0; k < N; k += 2)
    asm volatile("red.relaxed.gpu.global.add.noftz.bf16x2 [%0], %1;"
                 :
                 : "l"(place + k), "r"((u32)v[k] | (u32)v[k + 1] << 16)
                 : "memory");
}
template <int N>
FN void add_f16(u16* place, const u16* v) {
  EACH (int k = 0; k < N; k += 2)
    asm volatile("red.relaxed.gpu.global.add.noftz.f16x2 [%0], %1;"
                 :
                 : "l"(place + k), "r"((u32)v[k] | (u32)v[k + 1] << 16)
                 : "memory");
}
#else
template <int N>
FN void add_vector(f32* place, const f32* v) {
  EACH (int k = 0; k < N; ++k) atomicAdd(place + k, v[k]);
}
template <int N>
FN void add_bf16(u16* place, const u16* v) {
  EACH (int k = 0; k < N; ++k)
    atomic_update(place + k, [&](u16 old) { return to_bf16(from_bf16(old) + from_bf16(v[k])); });
}
template <int N>
FN void add_f16(u16* place, const u16* v) {
  EACH (int k = 0; k < N; ++k)
    atomic_update(place + k, [&](u16 old) { return to_f16(from_f16(old) + from_f16(v[k])); });
}
#endif
#endif
