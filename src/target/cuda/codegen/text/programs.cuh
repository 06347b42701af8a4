// Programs of a launch that wait for each other. Counters are at 0 before a launch, and at 0 again behind it; launches
// that may overlap have counters of their own.
#ifndef WEFT_PROGRAMS
#define WEFT_PROGRAMS
/// Returns an element that other programs may change.
template <class T>
FN T watched(const T* place) {
  return *(const volatile T*)place;
}

/// Draws the number of this block's program: they begin in the order of their numbers.
FN i64 draw_number(u32* counter, i64 programs, u8* shared) {
  u32* const drawn = (u32*)shared;
  if (threadIdx.x == 0) *drawn = atomicInc(counter, (u32)programs - 1);
  __syncthreads();
  const u32 number = *drawn;
  __syncthreads();
  return number;
}

/// Waits for the other blocks of the launch, which do the same: state[0] counts those that have come, state[1] how
/// often all have. One thread of a block calls it, between barriers of the block.
FN void meet_blocks(u32* state, i64 blocks) {
  const u32 before = watched(state + 1);
  __threadfence();
  if (atomicInc(state, (u32)blocks - 1) == (u32)blocks - 1) {
    __threadfence();
    atomicAdd(state + 1, 1u);
  } else {
    while (watched(state + 1) == before) __nanosleep(20);
  }
  __threadfence();
}
#endif
