// The call `searchsorted` as a tile kernel: a binary search in every lane.
#include <bit>

#include "kernel/routines/routine.h"
#include "kernel/routines/routine_keys.h"

namespace weft::kernel {

Routine search_routine(const CallDesc& desc, int64_t lanes) {
  const CallDesc::Array& sorted = desc.inputs[0];
  const int64_t n = sorted.extents.back();
  int64_t rows = 1, count = 1;
  for (size_t k = 0; k + 1 < sorted.extents.size(); ++k) rows *= sorted.extents[k];
  for (int64_t v : desc.inputs[1].extents) count *= v;
  Routine out;
  if (count == 0) return out;
  const int64_t per_row = count / rows;
  const bool right = desc.integers[0] != 0;

  Builder b("searchsorted");
  const Ref a = b.param("a", bits_of(sorted.dtype), false), v = b.param("v", bits_of(sorted.dtype), false),
            positions = b.param("places", uint32, true);
  const auto splat = [&](int64_t number) { return b.broadcast(b.index(number), {lanes}); };
  const Value first = b.mul(b.program_id(), b.index(lanes)), left = b.sub(b.index(count), first);
  const Value wanted = keys_of(b, b.load(v, first, {lanes}, {1}, {left}), sorted.dtype);
  const Value row = b.scalar(ScalarOp::floordiv, {b.add(b.broadcast(first, {lanes}), b.arange(lanes)), splat(per_row)}),
              base = b.mul(row, splat(n));
  const Value inside = b.lt(b.arange(lanes), b.broadcast(left, {lanes}));
  const auto halved = b.loop(
      b.index(0), b.index(static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(n)))), b.index(1),
      {splat(0), splat(n)}, [&](Value, const std::vector<Value>& range) {
        const Value low = range[0], high = range[1], open = b.scalar(ScalarOp::bit_and, {b.lt(low, high), inside});
        const Value middle = b.scalar(ScalarOp::shr, {b.add(low, high), splat(1)});
        const Value key = keys_of(b, b.gather(a, b.add(base, middle), open), sorted.dtype);
        const Value before = right ? b.scalar(ScalarOp::le, {key, wanted}) : b.lt(key, wanted);
        return std::vector<Value>{
            b.select(b.scalar(ScalarOp::bit_and, {open, before}), b.add(middle, splat(1)), low),
            b.select(b.scalar(ScalarOp::bit_and, {open, b.scalar(ScalarOp::bit_not, {before})}), middle, high)};
      });
  b.store(positions, b.cast(halved[0], uint32), first, {1}, {left});
  out.kernels.push_back(b.finish());
  out.launches.push_back({0, {0, 1, 2}, {}, (count + lanes - 1) / lanes});
  return out;
}

}  // namespace weft::kernel
