// Groups of W lanes, each within one warp (kernel/forms/lane_op.h). All lanes of the warp take part in each call.
#ifndef WEFT_LANES
#define WEFT_LANES
FN u32 lane_of_warp() { return threadIdx.x & 31; }
template <int W>
FN u32 lane_of_group() {
  return threadIdx.x & (W - 1);
}
template <int W>
FN u32 all_of_group() {
  return W == 32 ? 0xffffffffu : (1u << (W & 31)) - 1;
}
template <int W>
FN u32 first_of_group() {
  return threadIdx.x & 31 & ~(W - 1);
}

/// The element of a lane of the group.
template <int W, class T>
FN T from_lane(T v, u32 lane) {
  const int from = (int)(first_of_group<W>() + lane);
  if constexpr (sizeof(T) == 8) {
    W8 w = *(W8*)&v;
    w.x = __shfl_sync(0xffffffffu, w.x, from), w.y = __shfl_sync(0xffffffffu, w.y, from);
    return *(T*)&w;
  } else if constexpr (sizeof(T) == 4) {
    const u32 w = __shfl_sync(0xffffffffu, *(u32*)&v, from);
    return *(T*)&w;
  } else {
    return (T)__shfl_sync(0xffffffffu, (u32)v, from);
  }
}
template <int W, class T>
FN T lanes_shuffle(T v, i32 lane) {
  return from_lane<W>(v, (u32)lane & (W - 1));
}
template <int W, class T>
FN T lanes_shuffle_up(T v, i32 by) {
  const u32 own = lane_of_group<W>();
  return from_lane<W>(v, (u32)by <= own ? own - (u32)by : own);
}
template <int W, class T>
FN T lanes_shuffle_down(T v, i32 by) {
  const u32 own = lane_of_group<W>();
  return from_lane<W>(v, (u32)by <= W - 1 - own ? own + (u32)by : own);
}
template <int W, class T>
FN T lanes_shuffle_xor(T v, i32 bits) {
  return from_lane<W>(v, lane_of_group<W>() ^ ((u32)bits & (W - 1)));
}

template <int W>
FN u32 lanes_ballot(bool holds) {
  return __ballot_sync(0xffffffffu, holds) >> first_of_group<W>() & all_of_group<W>();
}
template <int W>
FN bool lanes_all(bool holds) {
  return lanes_ballot<W>(holds) == all_of_group<W>();
}
template <int W>
FN bool lanes_any(bool holds) {
  return lanes_ballot<W>(holds) != 0;
}
template <int W>
FN bool lanes_uniform(bool holds) {
  const u32 mask = lanes_ballot<W>(holds);
  return mask == 0 || mask == all_of_group<W>();
}
template <class T>
FN auto word_of(T v) {
  if constexpr (sizeof(T) == 8) return *(u64*)&v;
  else if constexpr (sizeof(T) == 4) return *(u32*)&v;
  else return (u32)v;
}
template <int W, class T>
FN u32 lanes_match_any(T v) {
  return __match_any_sync(0xffffffffu, word_of(v)) >> first_of_group<W>() & all_of_group<W>();
}
template <int W, class T>
FN u32 lanes_match_all(T v) {
  const auto own = word_of(v), first = word_of(from_lane<W>(v, 0));
  return lanes_ballot<W>(own == first) == all_of_group<W>() ? all_of_group<W>() : 0;
}

/// The order is that of a reduction of an axis: the upper half is combined onto the lower one.
template <int W, class T, class F>
FN T lanes_reduce(T v, F combined) {
  EACH (u32 half = W / 2; half > 0; half /= 2) {
    const T other = lanes_shuffle_xor<W>(v, (i32)half);
    v = lane_of_group<W>() & half ? combined(other, v) : combined(v, other);
  }
  return v;
}
/// Reductions of a whole warp's integers of 32 bits, one instruction each (sm_80 and later).
template <class T>
FN T warp_add(T v) {
  return __reduce_add_sync(0xffffffffu, v);
}
template <class T>
FN T warp_min(T v) {
  return __reduce_min_sync(0xffffffffu, v);
}
template <class T>
FN T warp_max(T v) {
  return __reduce_max_sync(0xffffffffu, v);
}
template <class T>
FN T warp_bit_and(T v) {
  return (T)__reduce_and_sync(0xffffffffu, (u32)v);
}
template <class T>
FN T warp_bit_or(T v) {
  return (T)__reduce_or_sync(0xffffffffu, (u32)v);
}
template <class T>
FN T warp_bit_xor(T v) {
  return (T)__reduce_xor_sync(0xffffffffu, (u32)v);
}
template <int W, class T, class F>
FN T lanes_scan(T v, F combined) {
  EACH (u32 d = 1; d < W; d *= 2) {
    const T before = lanes_shuffle_up<W>(v, (i32)d);
    if (lane_of_group<W>() >= d) v = combined(before, v);
  }
  return v;
}
template <int W, class T, class F>
FN T lanes_scan_exclusive(T v, T neutral, F combined) {
  const T before = lanes_shuffle_up<W>(lanes_scan<W>(v, combined), 1);
  return lane_of_group<W>() == 0 ? neutral : before;
}
/// Calls one(v) for the lanes that belong together, one set after the other: v is `neutral` in all other lanes.
template <int W, class T, class F>
FN T lanes_apart(T v, u32 members, T neutral, F one) {
  const u32 own = lane_of_group<W>();
  bool waits = members >> own & 1;
  T out = v;
  while (__ballot_sync(0xffffffffu, waits) != 0) {
    const u32 left = lanes_ballot<W>(waits);
    const u32 together = from_lane<W>(members, left ? (u32)__ffs((int)left) - 1 : 0);
    const bool takes_part = left != 0 && (together >> own & 1);
    const T made = one(takes_part ? v : neutral);
    if (takes_part && waits) out = made, waits = false;
  }
  return out;
}
#endif
