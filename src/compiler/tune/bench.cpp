#include "compiler/tune/bench.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "runtime/threads.h"

namespace weft::compiler {

namespace {

constexpr int64_t period = 65521;  // elements of a pattern: a prime, so that no two rows of an array begin alike
constexpr int64_t evicted_bytes_a_thread = int64_t{4} << 20;  // more than a core's own caches hold
constexpr int64_t uncached_bytes = int64_t{64} << 20;         // data of this size is not in a cache in any case
constexpr int64_t most_sets = 64;

uint64_t random_word(uint64_t at, uint64_t seed) {
  uint64_t h = (at + 1) * 0x9e3779b97f4a7c15ull ^ (seed + 1) * 0xd1342543de82ef95ull;
  h = (h ^ (h >> 31)) * 0xbf58476d1ce4e5b9ull;
  return h ^ (h >> 29);
}

/// Writes a value of dtype t: a float from `real`, an integer from `whole`.
void put(char* to, Dtype t, double real, int64_t whole) {
  const auto write = [&](auto v) { std::memcpy(to, &v, sizeof v); };
  switch (t.val()) {
    case Dtype::Val::float32: return write(static_cast<float>(real));
    case Dtype::Val::float64: return write(real);
    case Dtype::Val::bfloat16: return write(float_to_bf16(static_cast<float>(real)));
    case Dtype::Val::float16: return write(float_to_f16(static_cast<float>(real)));
    case Dtype::Val::float8_e4m3:
    case Dtype::Val::float8_e5m2: return write(static_cast<uint8_t>(float_to_low(static_cast<float>(real), t)));
    case Dtype::Val::bool_: return write(static_cast<uint8_t>(whole & 1));
    default: std::memcpy(to, &whole, t.size());
  }
}

/// Calls f(read), where read(p) returns the element of dtype t at p as a double. The dtype is chosen once a loop, not
/// once an element.
template <class F>
auto with_reader(Dtype t, F f) {
  const auto plain = []<class T>(T) {
    return [](const char* p) {
      T v;
      std::memcpy(&v, p, sizeof v);
      return static_cast<double>(v);
    };
  };
  const auto word = [](const char* p) {
    uint16_t v = 0;
    std::memcpy(&v, p, sizeof v);
    return v;
  };
  switch (t.val()) {
    case Dtype::Val::float32: return f(plain(float()));
    case Dtype::Val::float64: return f(plain(double()));
    case Dtype::Val::bfloat16: return f([word](const char* p) { return static_cast<double>(bf16_to_float(word(p))); });
    case Dtype::Val::float16: return f([word](const char* p) { return static_cast<double>(f16_to_float(word(p))); });
    case Dtype::Val::float8_e4m3:
    case Dtype::Val::float8_e5m2:
      return f([t](const char* p) { return static_cast<double>(low_to_float(static_cast<uint8_t>(*p), t)); });
    default: break;
  }
  switch (t.size()) {
    case 1: return f(plain(int8_t()));
    case 2: return f(plain(int16_t()));
    case 4: return f(plain(int32_t()));
    default: return f(plain(int64_t()));
  }
}

/// Returns the relative difference that another order of summation, and roundings in the other direction, may cause.
double tolerance(Dtype t) {
  switch (t.val()) {
    case Dtype::Val::float64: return 0x1p-40;
    case Dtype::Val::float32: return 0x1p-13;
    case Dtype::Val::float16: return 0x1p-8;
    case Dtype::Val::bfloat16: return 0x1p-5;
    case Dtype::Val::float8_e4m3: return 0x1p-2;
    case Dtype::Val::float8_e5m2: return 0x1p-1;
    default: return 0;
  }
}

}  // namespace

TuneBench::TuneBench(const TuneItem& item, runtime::Accelerator* device) : device_(device), length_(item.length) {
  for (const auto& [node, about] : item.buffers) total_ += about.used;
  const bool rotates = device && item.rotates;
  sets_.resize(
      rotates ? static_cast<size_t>(std::clamp<int64_t>(uncached_bytes / std::max<int64_t>(total_, 1), 1, most_sets))
              : 1);
  for (std::map<int, Memory>& set : sets_)
    for (const auto& [node, about] : item.buffers)
      set[node] = {about, runtime::allocate(static_cast<size_t>(about.bytes) + 64), {}};
}

void TuneBench::fill(bool positive) {
  for (std::map<int, Memory>& set : sets_) {
    uint64_t seed = 0;
    for (auto& [node, m] : set) {
      set_pattern(m, positive, seed++);
      fill(m);
    }
  }
}

void TuneBench::set_pattern(Memory& m, bool positive, uint64_t seed) {
  const int64_t size = m.about.dtype.size(), count = std::clamp<int64_t>(m.about.used / size, 1, period);
  const uint64_t range = m.about.range > 0 ? static_cast<uint64_t>(m.about.range) : 100;
  m.pattern.resize(static_cast<size_t>(count * size));
  for (int64_t k = 0; k < count; ++k) {
    const uint64_t word = random_word(static_cast<uint64_t>(k), seed);
    const double unit = static_cast<double>(word >> 11) * 0x1p-53;
    const double real = m.about.constant.value_or(positive ? 0.0625 + unit * 0.9375 : 2 * unit - 1);
    const auto whole =
        m.about.constant ? static_cast<int64_t>(*m.about.constant) : static_cast<int64_t>((word >> 8) % range);
    put(m.pattern.data() + k * size, m.about.dtype, real, whole);
  }
}

void TuneBench::fill(Memory& m) const {
  const auto bytes = static_cast<size_t>(m.about.used), step = m.pattern.size();
  runtime::parallel_for(static_cast<int64_t>((bytes + step - 1) / step), [&](int64_t begin, int64_t end) {
    for (auto k = static_cast<size_t>(begin); k < static_cast<size_t>(end); ++k)
      std::memcpy(static_cast<char*>(m.data->data()) + k * step, m.pattern.data(), std::min(step, bytes - k * step));
  });
  m.data->overwritten_on(nullptr);
}

/// Evicts the caches: each thread writes over what its core may hold.
void TuneBench::evict() const {
  if (device_ || total_ >= uncached_bytes) return;
  static auto& junk = *new std::vector<char>(static_cast<size_t>(evicted_bytes_a_thread * runtime::num_threads()));
  runtime::parallel_for(static_cast<int64_t>(junk.size()) / 4096, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin * 4096; at < end * 4096; at += 64) ++junk[static_cast<size_t>(at)];
  });
}

void* TuneBench::address(NodeId node) const {
  const Memory& m = memory().at(node);
  return static_cast<char*>(m.data->on(device_)) + m.about.offset;
}

double TuneBench::run(const TuneCandidate& candidate, const target::Executable* executable) {
  using Clock = std::chrono::steady_clock;
  turn_ = (turn_ + 1) % sets_.size();
  for (auto& [node, m] : memory())
    if (m.about.updated) fill(m);
  evict();
  std::vector<void*> pointers;
  if (candidate.call) {
    for (const auto& [node, offset] : candidate.operands)
      pointers.push_back(static_cast<char*>(address(node)) + offset);
    start();
    const auto from = Clock::now();
    candidate.call->run(pointers);
    return stop(from);
  }
  std::vector<int64_t> symbols;
  for (const NodeId node : candidate.params) pointers.push_back(address(node));
  const Lowered& code = *candidate.code;
  const bool part = length_ > 0 && code.block > 0;
  for (const SymbolArgument& s : code.symbols) symbols.push_back(s.symbol ? s.symbol->bound : part ? length_ : s.value);
  const int64_t grid = code.count ? std::clamp<int64_t>(code.count.value(symbols), 1, code.grid) : code.grid;
  const target::Segment segment{pointers, symbols, part ? (length_ + code.block - 1) / code.block : grid};
  start();
  const auto from = Clock::now();
  executable->run(std::span<const target::Segment>(&segment, 1), candidate.code->work);
  return stop(from);
}

void TuneBench::start() const {
  if (device_) device_->synchronize();
}

/// Waits for the device and returns the seconds since `from`.
double TuneBench::stop(std::chrono::steady_clock::time_point from) {
  if (device_) device_->synchronize();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
  for (auto& [node, m] : memory())
    if (device_ && m.about.written) m.data->overwritten_on(device_);
  return seconds;
}

std::vector<char> TuneBench::contents(NodeId node) const {
  const Memory& m = memory().at(node);
  const char* data = static_cast<const char*>(m.data->data());
  return {data, data + m.about.used};
}

std::vector<std::vector<char>> TuneBench::results() const {
  std::vector<std::vector<char>> all;
  for (const auto& [node, m] : memory()) {
    if (!m.about.written) continue;
    const char* data = static_cast<const char*>(m.data->data());
    all.emplace_back(data, data + m.about.used);
  }
  return all;
}

bool TuneBench::mostly_finite(const std::vector<std::vector<char>>& results) const {
  int64_t finite = 0, all = 0;
  size_t at = 0;
  for (const auto& [node, m] : memory()) {
    if (!m.about.written) continue;
    const char* data = results[at++].data();
    const int64_t size = m.about.dtype.size(), count = m.about.used / size, step = std::max<int64_t>(1, count / period);
    with_reader(m.about.dtype, [&](auto read) {
      for (int64_t k = 0; k < count; k += step, ++all) finite += std::isfinite(read(data + k * size));
    });
  }
  return 2 * finite > all;
}

bool TuneBench::agree(const std::vector<std::vector<char>>& expected, const std::vector<std::vector<char>>& got,
                      bool same_bits) const {
  if (same_bits) return expected == got;
  std::atomic<bool> same = true;
  size_t at = 0;
  for (const auto& [node, m] : memory()) {
    if (!m.about.written) continue;
    const char *a = expected[at].data(), *b = got[at].data();
    ++at;
    const int64_t size = m.about.dtype.size(), count = m.about.used / size, step = std::max<int64_t>(1, count / period);
    const double relative = tolerance(m.about.dtype);
    with_reader(m.about.dtype, [&](auto read) {
      double scale = 0;
      for (int64_t k = 0; k < count; k += step)
        if (const double v = std::abs(read(a + k * size)); std::isfinite(v)) scale = std::max(scale, v);
      runtime::parallel_for((count + period - 1) / period, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin * period; k < std::min(count, end * period); ++k) {
          const double x = read(a + k * size), y = read(b + k * size);
          if (!(x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= relative * (std::abs(x) + scale / 16)))
            same = false;
        }
      });
    });
  }
  return same;
}

}  // namespace weft::compiler
