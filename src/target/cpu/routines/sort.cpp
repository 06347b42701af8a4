// The call `sort` (defined in graph/calls/call_sort.cpp). Each element becomes an unsigned key of the wanted order (NaN
// last, zeros equal), paired with its position. No two pairs are equal, so the sorted sequence does not depend on the
// algorithm or the number of threads. Long rows use a radix sort, and a single long row is sorted in pieces that are
// merged; short rows use std::sort. Where only a window of the sorted positions is wanted, its items are selected
// first: a few at an end by insertion, others by partitioning.
#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
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

/// The sorted positions that are wanted of a row of n items.
struct Window {
  size_t first, count, n;
  bool whole() const { return count == n; }
  bool at_end() const { return first == 0 || first + count == n; }
};

constexpr size_t most_inserted = 16;  // items of a window that are kept sorted while the others are looked at

/// Brings the `count` first items of the order to the front, sorted. `before` is the order.
template <class Iterator, class Before>
void insert_best(Iterator items, size_t n, size_t count, Before before) {
  std::sort(items, items + static_cast<std::ptrdiff_t>(count), before);
  for (auto next = items + static_cast<std::ptrdiff_t>(count), end = items + static_cast<std::ptrdiff_t>(n);
       next != end; ++next) {
    auto to = items + static_cast<std::ptrdiff_t>(count - 1);
    if (!before(*next, *to)) continue;
    const auto item = *next;
    *next = *to;
    for (; to != items && before(item, *(to - 1)); --to) *to = *(to - 1);
    *to = item;
  }
}

/// Sorts the items of the window into its positions; the others are left in any order. The items may be in any order.
template <class Item>
void select(Item* items, const Window& w) {
  if (w.count == 0) return;
  if (w.at_end() && w.count <= most_inserted) {
    if (w.first == 0) return insert_best(items, w.n, w.count, [](const Item& a, const Item& b) { return a < b; });
    return insert_best(std::reverse_iterator(items + w.n), w.n, w.count,
                       [](const Item& a, const Item& b) { return b < a; });
  }
  Item *begin = items + w.first, *end = begin + w.count;
  if (w.first > 0) std::nth_element(items, begin, items + w.n);
  if (end != items + w.n) std::nth_element(begin, end, items + w.n);
  std::sort(begin, end);
}

/// Sorts items that are in the order of their positions, or the window of them alone. Digits sort a large share of a
/// long row sooner than comparisons.
template <class Item>
void sort_window(Item* items, Item* spare, const Window& w, int key_bytes) {
  const bool large = w.n >= shortest_radix && w.count > w.n / 8;
  if (w.whole() || large) sort_items(items, spare, w.n, key_bytes);
  else select(items, w);
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

/// Returns the length of the pieces in which threads sort a row of n items.
size_t piece_length(size_t n) {
  size_t piece = n;
  while (piece > longest_piece) piece = (piece + 1) / 2;
  return piece;
}

/// Selects a window at an end of one long row: the best of each piece, then the best of those, which end up where the
/// window is.
template <class Item>
void select_in_pieces(std::vector<Item>& items, std::vector<Item>& spare, const Window& w, int key_bytes) {
  const size_t piece = piece_length(w.n), pieces = (w.n + piece - 1) / piece;
  std::vector<Item> best(pieces * w.count);
  runtime::parallel_for(static_cast<int64_t>(pieces), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const size_t first = static_cast<size_t>(p) * piece, n = std::min(piece, w.n - first);
      const size_t count = std::min(w.count, n);
      const Window part{w.first == 0 ? 0 : n - count, count, n};
      Item* from = items.data() + first;
      sort_window(from, spare.data() + first, part, key_bytes);
      std::copy_n(from + part.first, count, best.data() + static_cast<size_t>(p) * w.count);
    }
  });
  const size_t last = w.n - (pieces - 1) * piece;  // of the last piece, which may be shorter than the window
  best.resize((pieces - 1) * w.count + std::min(w.count, last));
  const Window part{w.first == 0 ? 0 : best.size() - w.count, w.count, best.size()};
  select(best.data(), part);
  std::copy_n(best.data() + part.first, w.count, items.data() + w.first);
}

/// Sorts one long row: sorts pieces separately, then merges them in pairs, each merge divided into parts of equal
/// length.
template <class Item>
void sort_pieces(std::vector<Item>& items, std::vector<Item>& spare, int key_bytes) {
  const size_t n = items.size(), piece = piece_length(n), pieces = (n + piece - 1) / piece;
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
  Sort(Dtype dtype, int64_t outer, const Window& window, int64_t inner, bool values, bool order)
      : rule_(key_rule(dtype)), window_(window), outer_(outer), n_(static_cast<int64_t>(window.n)), inner_(inner),
        first_(static_cast<int64_t>(window.first)), count_(static_cast<int64_t>(window.count)), values_(values),
        order_(order) {}
  std::string name() const override {
    if (!window_.whole()) return "selection";
    return n_ >= static_cast<int64_t>(shortest_radix) ? "radix sort" : "comparison sort";
  }

  void run(std::span<void* const> operands) const override {
    const U* in = static_cast<const U*>(operands[0]);
    U* values = values_ ? static_cast<U*>(operands[1]) : nullptr;
    uint32_t* order = order_ ? static_cast<uint32_t*>(operands[2]) : nullptr;
    if (count_ * outer_ * inner_ == 0) return;
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
    if (!window_.whole() && window_.at_end() && 2 * window_.count <= piece_length(window_.n))
      select_in_pieces(items, spare, window_, static_cast<int>(sizeof(U)));
    else sort_pieces(items, spare, static_cast<int>(sizeof(U)));
    for (size_t k = 0; k < window_.count; ++k) {
      const uint32_t at = position(items[window_.first + k]);
      if (values) values[k] = in[at];
      if (order) order[k] = at;
    }
  }

  void block(const U* in, U* values, uint32_t* order, int64_t o, int64_t b, std::vector<Item>& items,
             std::vector<Item>& spare) const {
    const int64_t first = o * n_ * inner_ + b * columns, width = std::min(columns, inner_ - b * columns);
    for (int64_t k = 0; k < n_; ++k)
      for (int64_t c = 0; c < width; ++c) items[static_cast<size_t>(c * n_ + k)] = item(in, first + k * inner_ + c, k);
    for (int64_t c = 0; c < width; ++c)
      sort_window(items.data() + c * n_, spare.data(), window_, static_cast<int>(sizeof(U)));
    const int64_t written = o * count_ * inner_ + b * columns;
    for (int64_t k = 0; k < count_; ++k)
      for (int64_t c = 0; c < width; ++c) {
        const int64_t to = written + k * inner_ + c, at = position(items[static_cast<size_t>(c * n_ + first_ + k)]);
        if (values) values[to] = in[first + at * inner_ + c];
        if (order) order[to] = static_cast<uint32_t>(at);
      }
  }

  KeyRule rule_;
  Window window_;
  int64_t outer_, n_, inner_, first_, count_;
  bool values_, order_;
};

template <class U>
std::shared_ptr<const LibraryCall> make_sort(const kernel::CallDesc& d) {
  const kernel::CallDesc::Array& v = d.inputs[0];
  const kernel::SortSizes rows = kernel::sort_sizes(d);
  const Window window{static_cast<size_t>(rows.first), static_cast<size_t>(rows.count), static_cast<size_t>(rows.n)};
  return std::make_shared<Sort<U>>(v.dtype, rows.outer, window, rows.inner, d.outputs[0].used, d.outputs[1].used);
}

}  // namespace

std::shared_ptr<const LibraryCall> cpu_sort(const kernel::CallDesc& desc) {
  return by_width(desc.inputs[0].dtype, [&]<class U>(U) { return make_sort<U>(desc); });
}

}  // namespace weft::target
