// The call `sort` (defined in graph/calls/call_sort.cpp). Each element becomes an unsigned key of the wanted order (NaN
// last, zeros equal), paired with its position. No two pairs are equal, so the sorted sequence does not depend on the
// algorithm or the number of threads. Long rows use a radix sort, and a single long row is sorted in pieces that are
// merged; short rows use std::sort.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "kernel/routines/sort_key.h"
#include "runtime/threads.h"
#include "target/cpu/routines/calls.h"

namespace weft::target {
using kernel::by_width;
using kernel::key_of;
using kernel::key_rule;
using kernel::KeyRule;

namespace {

/// A key with its position. Both share one word if the key has at most 32 bits.
struct Wide {
  uint64_t key;
  uint32_t at;
  friend bool operator<(const Wide& a, const Wide& b) { return a.key != b.key ? a.key < b.key : a.at < b.at; }
};
uint64_t pack(uint32_t key, uint32_t at, uint64_t) { return uint64_t{key} << 32 | at; }
Wide pack(uint64_t key, uint32_t at, Wide) { return {key, at}; }
uint32_t position(uint64_t item) { return static_cast<uint32_t>(item); }
uint32_t position(const Wide& item) { return item.at; }
uint64_t key_bits(uint64_t item) { return item >> 32; }
uint64_t key_bits(const Wide& item) { return item.key; }

template <class U>
struct ItemOf {
  using type = uint64_t;
};
template <>
struct ItemOf<uint64_t> {
  using type = Wide;
};

constexpr size_t shortest_radix = 1024;  // for fewer items a comparison sort is faster than counting
constexpr size_t longest_piece = size_t{1} << 17;

/// Sorts n items by radix, least significant digit first, skipping bytes that all keys share. `spare` has room for n
/// items.
template <class Item>
void radix_sort(Item* items, Item* spare, size_t n, int key_bytes) {
  std::vector<std::array<uint32_t, 256>> counts(static_cast<size_t>(key_bytes));
  for (auto& c : counts) c.fill(0);
  for (size_t k = 0; k < n; ++k) {
    const uint64_t key = key_bits(items[k]);
    for (int b = 0; b < key_bytes; ++b) ++counts[static_cast<size_t>(b)][(key >> (8 * b)) & 255];
  }
  Item *from = items, *to = spare;
  for (int b = 0; b < key_bytes; ++b) {
    auto& count = counts[static_cast<size_t>(b)];
    if (count[(key_bits(from[0]) >> (8 * b)) & 255] == n) continue;
    uint32_t start = 0;
    for (uint32_t& c : count) start += std::exchange(c, start);
    for (size_t k = 0; k < n; ++k) to[count[(key_bits(from[k]) >> (8 * b)) & 255]++] = from[k];
    std::swap(from, to);
  }
  if (from != items) std::copy(from, from + n, items);
}

template <class Item>
void sort_items(Item* items, Item* spare, size_t n, int key_bytes) {
  if (n >= shortest_radix) radix_sort(items, spare, n, key_bytes);
  else std::sort(items, items + n);
}

/// Returns how many of the first `rank` items of the merged sequence come from a.
template <class Item>
size_t split(const Item* a, size_t na, const Item* b, size_t nb, size_t rank) {
  size_t low = rank > nb ? rank - nb : 0, high = std::min(rank, na);
  while (low < high) {
    const size_t i = (low + high) / 2;
    if (a[i] < b[rank - i - 1]) low = i + 1;
    else high = i;
  }
  return low;
}

/// Sorts one long row: sorts pieces separately, then merges them in pairs, each merge divided into parts of equal
/// length.
template <class Item>
void sort_pieces(std::vector<Item>& items, std::vector<Item>& spare, int key_bytes) {
  const size_t n = items.size();
  size_t piece = n;
  while (piece > longest_piece) piece = (piece + 1) / 2;
  const size_t pieces = (n + piece - 1) / piece;
  runtime::parallel_for(static_cast<int64_t>(pieces), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const size_t first = static_cast<size_t>(p) * piece;
      sort_items(items.data() + first, spare.data() + first, std::min(piece, n - first), key_bytes);
    }
  });
  for (size_t width = piece; width < n; width *= 2) {
    runtime::parallel_for(static_cast<int64_t>(pieces), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {  // the range of the merged sequence at piece p's position
        const size_t first = static_cast<size_t>(p) * piece, last = std::min(first + piece, n),
                     base = first / (2 * width) * (2 * width);
        const Item *a = items.data() + base, *b = items.data() + std::min(base + width, n);
        const size_t na = std::min(width, n - base), nb = std::min(2 * width, n - base) - na;
        const size_t a0 = split(a, na, b, nb, first - base), a1 = split(a, na, b, nb, last - base);
        std::merge(a + a0, a + a1, b + (first - base - a0), b + (last - base - a1), spare.data() + first);
      }
    });
    items.swap(spare);
  }
}

template <class U>
class Sort final : public LibraryCall {
 public:
  Sort(Dtype dtype, int64_t outer, int64_t n, int64_t inner, bool values, bool order)
      : rule_(key_rule(dtype)), outer_(outer), n_(n), inner_(inner), values_(values), order_(order) {}
  std::string name() const override {
    return n_ >= static_cast<int64_t>(shortest_radix) ? "radix sort" : "comparison sort";
  }

  void run(std::span<void* const> operands) const override {
    const U* in = static_cast<const U*>(operands[0]);
    U* values = values_ ? static_cast<U*>(operands[1]) : nullptr;
    uint32_t* order = order_ ? static_cast<uint32_t*>(operands[2]) : nullptr;
    if (n_ * outer_ * inner_ == 0) return;
    if (outer_ * inner_ == 1) return one_row(in, values, order);
    const int64_t blocks = (inner_ + columns - 1) / columns;
    const int64_t grain = std::max<int64_t>(1, 4096 / (n_ * std::min(columns, inner_)));  // a task has many short rows
    const int64_t tasks = (outer_ * blocks + grain - 1) / grain;
    runtime::parallel_for(tasks, [&](int64_t begin, int64_t end) {
      std::vector<Item> items(static_cast<size_t>(n_ * std::min(columns, inner_))), spare(static_cast<size_t>(n_));
      for (int64_t t = begin * grain; t < std::min(end * grain, outer_ * blocks); ++t)
        block(in, values, order, t / blocks, t % blocks, items, spare);
    });
  }

 private:
  using Item = typename ItemOf<U>::type;
  // Rows with a stride are gathered this many at a time, to use whole cache lines.
  static constexpr int64_t columns = 16;

  Item item(const U* in, int64_t offset, int64_t k) const {
    return pack(key_of(in[offset], rule_), static_cast<uint32_t>(k), Item{});
  }

  void one_row(const U* in, U* values, uint32_t* order) const {
    std::vector<Item> items(static_cast<size_t>(n_)), spare(static_cast<size_t>(n_));
    for (int64_t k = 0; k < n_; ++k) items[static_cast<size_t>(k)] = item(in, k, k);
    sort_pieces(items, spare, static_cast<int>(sizeof(U)));
    for (size_t k = 0; k < items.size(); ++k) {
      if (values) values[k] = in[position(items[k])];
      if (order) order[k] = position(items[k]);
    }
  }

  void block(const U* in, U* values, uint32_t* order, int64_t o, int64_t b, std::vector<Item>& items,
             std::vector<Item>& spare) const {
    const int64_t first = o * n_ * inner_ + b * columns, width = std::min(columns, inner_ - b * columns);
    for (int64_t k = 0; k < n_; ++k)
      for (int64_t c = 0; c < width; ++c) items[static_cast<size_t>(c * n_ + k)] = item(in, first + k * inner_ + c, k);
    for (int64_t c = 0; c < width; ++c)
      sort_items(items.data() + c * n_, spare.data(), static_cast<size_t>(n_), static_cast<int>(sizeof(U)));
    for (int64_t k = 0; k < n_; ++k)
      for (int64_t c = 0; c < width; ++c) {
        const int64_t to = first + k * inner_ + c, at = position(items[static_cast<size_t>(c * n_ + k)]);
        if (values) values[to] = in[first + at * inner_ + c];
        if (order) order[to] = static_cast<uint32_t>(at);
      }
  }

  KeyRule rule_;
  int64_t outer_, n_, inner_;
  bool values_, order_;
};

template <class U>
std::shared_ptr<const LibraryCall> make_sort(const kernel::CallDesc& d) {
  const kernel::CallDesc::Array& v = d.inputs[0];
  const size_t axis = static_cast<size_t>(d.integers[0]);
  int64_t outer = 1, inner = 1;
  for (size_t k = 0; k < v.extents.size(); ++k) (k < axis ? outer : inner) *= k == axis ? 1 : v.extents[k];
  return std::make_shared<Sort<U>>(v.dtype, outer, v.extents[axis], inner, d.outputs[0].used, d.outputs[1].used);
}

}  // namespace

std::shared_ptr<const LibraryCall> cpu_sort(const kernel::CallDesc& desc) {
  return by_width(desc.inputs[0].dtype, [&]<class U>(U) { return make_sort<U>(desc); });
}

}  // namespace weft::target
