#pragma once
// The part of the shim for what only devices with warpgroups have: their products, mbarriers and TMA.

// --- warpgroups: products are computed when their group is waited for, and not before ---

static void fence_for_wgmma() {}
static void wgmma_fence() {}
static void wgmma_commit() {
  block::Products& p = block::own().products[threadIdx.x];
  p.groups.push_back(std::move(p.waiting));
  p.waiting.clear();
}
template <int Left>
static void wgmma_wait() {
  auto& groups = block::own().products[threadIdx.x].groups;
  for (; groups.size() > static_cast<size_t>(Left); groups.pop_front())
    for (const auto& multiply : groups.front()) multiply();
}

template <int Count, class Sum>
static void wgmma_settle(Sum*) {}

struct Bf16;
struct F16;
struct Tf32;
struct E4m3;
struct E5m2;
struct S8;
struct U8;
template <class Type, int Columns, bool A, bool B>
struct Wgmma;
inline float number_of(Bf16*, u16 v) { return weft::bf16_to_float(v); }
inline float number_of(F16*, u16 v) { return weft::f16_to_float(v); }
inline float number_of(Tf32*, u32 v) { return std::bit_cast<float>(v & 0xffffe000u); }  // the other bits are not read
inline float number_of(E4m3*, u8 v) { return weft::low_to_float(v, weft::float8_e4m3); }
inline float number_of(E5m2*, u8 v) { return weft::low_to_float(v, weft::float8_e5m2); }
inline int number_of(S8*, u8 v) { return static_cast<signed char>(v); }
inline int number_of(U8*, u8 v) { return v; }
inline u16 element_of(Bf16*) { return 0; }
inline u16 element_of(F16*) { return 0; }
inline u32 element_of(Tf32*) { return 0; }
inline u8 element_of(E4m3*) { return 0; }
inline u8 element_of(E5m2*) { return 0; }
inline u8 element_of(S8*) { return 0; }
inline u8 element_of(U8*) { return 0; }
template <class Type>
using MatrixElement = decltype(element_of((Type*)nullptr));

/// Returns the element at `line` (a row of A, a column of B) and k of a matrix that a descriptor describes.
template <class T>
static T matrix_element(u64 matrix, bool turned, int line, int k) {
  const auto field = [&](int first) { return static_cast<u32>(matrix >> first & 0x3fff) * 16; };
  const u32 form = static_cast<u32>(matrix >> 62), width = form == 1 ? 128 : form == 2 ? 64 : 32;
  const u32 i = static_cast<u32>(line), d = static_cast<u32>(k), of_panel = width / 2;
  assert(sizeof(T) == 2 || !turned);
  const u32 at = field(0) + (turned ? i / of_panel * field(16) + i % of_panel * 2 + d / 8 * field(32) + d % 8 * width
                                    : i / 8 * field(32) + i % 8 * width + d * sizeof(T));
  return shared_at<T>(at ^ ((at >> 7 & (width / 16 - 1)) << 4));
}
template <class Type, int Columns, bool A, bool B, class Sum, class Left>
static void multiply_by_warpgroup(Sum* c, u64 b, int more, Left left) {
  const int lane = threadIdx.x & 31, row = threadIdx.x / 32 % 4 * 16 + lane / 4;
  block::own().products[threadIdx.x].waiting.push_back([=] {
    for (int e = 0; e < Columns / 2; ++e) {
      const int i = row + e / 2 % 2 * 8, j = e / 4 * 8 + lane % 4 * 2 + e % 2;
      Sum sum = more ? c[e] : 0;
      for (int k = 0; k < 32 / static_cast<int>(sizeof(MatrixElement<Type>)); ++k)
        sum = multiply_add(number_of((Type*)nullptr, left(i, k)),
                           number_of((Type*)nullptr, matrix_element<MatrixElement<Type>>(b, B, j, k)), sum);
      c[e] = sum;
    }
  });
}
template <class Type, int Columns, bool A, bool B, class Sum>
static void wgmma(Wgmma<Type, Columns, A, B>, Sum* c, u64 a, u64 b, int more) {
  multiply_by_warpgroup<Type, Columns, A, B>(
      c, b, more, [=](int i, int k) { return matrix_element<MatrixElement<Type>>(a, A, i, k); });
}
template <class Type, int Columns, bool A, bool B>
static void wgmma(Wgmma<Type, Columns, A, B>, float* c, const u32* a, u64 b, int more) {
  const block::Words& published = block::published({a[0], a[1], a[2], a[3]});
  std::array<std::array<u32, 4>, 32> words;
  for (int lane = 0; lane < 32; ++lane)
    for (int q = 0; q < 4; ++q) words[lane][q] = published[lane][q];
  multiply_by_warpgroup<Type, Columns, A, B>(c, b, more, [=](int i, int k) {
    return static_cast<u16>(words[i % 8 * 4 + k / 2 % 4][i % 16 / 8 + 2 * (k / 8)] >> 16 * (k % 2));
  });
}

// --- mbarriers and TMA: boxes arrive when somebody waits for them, and not before ---

template <int Threads>
static void meet_first() {
  block::own().first.size = Threads;
  block::meet(block::own().first);
}
template <int Threads>
static void meet_set(int set) {
  block::Meeting& group = block::own().roles[1 + set];
  group.size = Threads;
  block::meet(group);
}
static void fence_barriers() {}
template <int>
static void fewer_registers() {}
template <int>
static void more_registers() {}
static void barrier_init(u32 at, u32 count) {
  block::own().box_barriers[at] = {static_cast<int>(count), static_cast<int>(count)};
}
static void barrier_step(block::BoxBarrier& b) {
  if (b.left == 0 && b.bytes == 0) b.left = b.count, ++b.phase;
}
static void barrier_arrive(u32 at) {
  block::BoxBarrier& b = block::own().box_barriers.at(at);
  --b.left;
  barrier_step(b);
}
static void barrier_expect(u32 at, u32 bytes) {
  block::own().box_barriers.at(at).bytes += bytes;
  barrier_arrive(at);
}
static void barrier_wait(u32 at, u32 parity) {
  block::BoxBarrier& b = block::own().box_barriers.at(at);
  while ((b.phase & 1) == parity) {
    std::vector<std::function<void()>> copies;
    std::swap(copies, b.copies);
    for (const auto& copy : copies) copy();
    if (copies.empty()) block::give_way();
  }
}
// Stores read shared memory, and arrive, when somebody waits for them or the kernel ends.
static void meet_warpgroup() {
  block::Meeting& group = block::own().roles[8 + threadIdx.x / 128];
  group.size = 128;
  block::meet(group);
}
static void commit_stores() {
  auto& stores = block::own().box_stores[threadIdx.x];
  stores.groups.push_back(std::move(stores.waiting));
  stores.waiting.clear();
}
template <int Left>
static void wait_stores() {
  auto& groups = block::own().box_stores[threadIdx.x].groups;
  for (; groups.size() > static_cast<size_t>(Left); groups.pop_front())
    for (const auto& copy : groups.front()) copy();
}
template <class Map>
static void store_box(const Map* map, u32 from, int x, int y) {
  const u64 v[] = {map->v[0], map->v[1], map->v[2], map->v[3], map->v[4], map->v[5], map->v[6]};
  block::own().box_stores[threadIdx.x].waiting.push_back([=] {
    const i64 size = static_cast<i64>(v[4]), columns = static_cast<i64>(v[5]), rows = static_cast<i64>(v[6]);
    for (u32 line = 0; line < v[3]; ++line)
      for (u32 byte = 0; byte < v[2]; byte += static_cast<u32>(size)) {
        const i64 row = y + line, column = x + static_cast<i64>(byte) / size;
        if (row < 0 || (rows > 0 && row >= rows) || column < 0 || column >= columns) continue;
        const u32 at = from + line * static_cast<u32>(v[2]) + byte;
        std::memcpy(reinterpret_cast<u8*>(v[0]) + row * static_cast<i64>(v[1]) + column * size,
                    memory + (at ^ ((at >> 7 & (static_cast<u32>(v[2]) / 16 - 1)) << 4)), static_cast<size_t>(size));
      }
  });
}
/// A matrix is described by its begin, the bytes between lines, the bytes and the lines of a box, and an element's
/// size.
template <class Map>
static void copy_box(u32 to, const Map* map, int x, int y, u32 barrier) {
  const u64 *v = map->v, width = v[2], lines = v[3];
  const i64 size = static_cast<i64>(v[4]), columns = static_cast<i64>(v[5]), rows = static_cast<i64>(v[6]);
  const u8* const from = reinterpret_cast<const u8*>(v[0]) + static_cast<i64>(y) * static_cast<i64>(v[1]) +
                         static_cast<i64>(x) * static_cast<i64>(v[4]);
  const u64 pitch = v[1];
  if (const auto own = block::own().barriers.find(barrier); own != block::own().barriers.end()) {
    for (u32 line = 0; line < lines; ++line)
      for (u32 byte = 0; byte < width; byte += 16) {
        const u32 at = to + line * static_cast<u32>(width) + byte;
        u8* const chunk = memory + (at ^ ((at >> 7 & (static_cast<u32>(width) / 16 - 1)) << 4));
        const i64 row = y + line, left = (columns - x) * size - static_cast<i64>(byte);
        const bool inside = row >= 0 && (rows == 0 || row < rows) && x >= 0;
        own->second.copies.push_back({chunk, from + line * pitch + byte,
                                      inside ? static_cast<int>(left < 0    ? 0
                                                                : left < 16 ? left
                                                                            : 16)
                                             : 0});
      }
    return;
  }
  block::BoxBarrier* const b = &block::own().box_barriers.at(barrier);
  b->copies.push_back([=] {
    for (u32 line = 0; line < lines; ++line)
      for (u32 byte = 0; byte < width; byte += 16) {
        const u32 at = to + line * static_cast<u32>(width) + byte;
        u8* const chunk = memory + (at ^ ((at >> 7 & (static_cast<u32>(width) / 16 - 1)) << 4));
        for (i64 k = 0; k < 16 / size; ++k) {  // zeros outside of the matrix
          const i64 row = y + line, column = x + static_cast<i64>(byte) / size + k;
          const bool inside = row >= 0 && (rows == 0 || row < rows) && column >= 0 && column < columns;
          if (inside) std::memcpy(chunk + k * size, from + line * pitch + byte + k * size, static_cast<size_t>(size));
          else std::memset(chunk + k * size, 0, static_cast<size_t>(size));
        }
      }
    b->bytes -= static_cast<i64>(width * lines);
    barrier_step(*b);
  });
}
