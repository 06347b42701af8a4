#include "kernel/checked_memory.h"

#include <algorithm>

#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/half.h"
#include "kernel/op_info.h"

namespace weft::kernel {
namespace {

template <class T>
T get(const void* data, int64_t index) {
  T v;
  std::memcpy(&v, static_cast<const char*>(data) + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return v;
}
template <class T>
void put(void* data, int64_t index, T v) {
  std::memcpy(static_cast<char*>(data) + index * static_cast<int64_t>(sizeof(T)), &v, sizeof(T));
}

// NaN or a large odd integer: a result that depends on it is visibly wrong.
Number poison_of(Dtype t) {
  if (is_float(t)) return Number::of_real(std::numeric_limits<double>::quiet_NaN());
  return round_to(Number::of_int(0x5bd1e9955bd1e955), t);
}

}  // namespace

Number read_element(const void* data, Dtype t, int64_t k) {
  switch (t.val()) {
    case Dtype::Val::bool_: return Number::of_int(get<uint8_t>(data, k) != 0);
    case Dtype::Val::uint8: return Number::of_int(get<uint8_t>(data, k));
    case Dtype::Val::uint16: return Number::of_int(get<uint16_t>(data, k));
    case Dtype::Val::uint32: return Number::of_int(get<uint32_t>(data, k));
    case Dtype::Val::uint64: return Number::of_int(get<int64_t>(data, k));
    case Dtype::Val::int8: return Number::of_int(get<int8_t>(data, k));
    case Dtype::Val::int16: return Number::of_int(get<int16_t>(data, k));
    case Dtype::Val::int32: return Number::of_int(get<int32_t>(data, k));
    case Dtype::Val::int64: return Number::of_int(get<int64_t>(data, k));
    case Dtype::Val::float16: return Number::of_real(f16_to_float(get<uint16_t>(data, k)));
    case Dtype::Val::bfloat16: return Number::of_real(bf16_to_float(get<uint16_t>(data, k)));
    case Dtype::Val::float8_e4m3:
    case Dtype::Val::float8_e5m2: return Number::of_real(low_to_float(get<uint8_t>(data, k), t));
    case Dtype::Val::float32: return Number::of_real(get<float>(data, k));
    case Dtype::Val::float64: return Number::of_real(get<double>(data, k));
    default: throw_internal("interpret", "no element of a kernel is complex");
  }
}

void write_element(void* data, Dtype t, int64_t k, Number v) {
  switch (t.val()) {
    case Dtype::Val::float16: return put(data, k, float_to_f16(static_cast<float>(v.f)));
    case Dtype::Val::bfloat16: return put(data, k, float_to_bf16(static_cast<float>(v.f)));
    case Dtype::Val::float8_e4m3:
    case Dtype::Val::float8_e5m2: return put(data, k, static_cast<uint8_t>(float_to_low(static_cast<float>(v.f), t)));
    case Dtype::Val::float32: return put(data, k, static_cast<float>(v.f));
    case Dtype::Val::float64: return put(data, k, v.f);
    default: break;
  }
  switch (t.size()) {
    case 1: return put(data, k, static_cast<uint8_t>(v.i));
    case 2: return put(data, k, static_cast<uint16_t>(v.i));
    case 4: return put(data, k, static_cast<uint32_t>(v.i));
    default: return put(data, k, v.i);
  }
}

namespace {
/// Returns whether a block has instructions that acquire or release.
bool orders(const Block& block) {
  return std::any_of(block.insts.begin(), block.insts.end(), [](const Inst& inst) {
    return is_barrier_of_programs(inst.op) || inst.ordering.order != MemoryOrder::relaxed ||
           std::any_of(inst.blocks.begin(), inst.blocks.end(), orders);
  });
}
}  // namespace

CheckedMemory::CheckedMemory(const Kernel& kernel, std::span<const HostBuffer> buffers)
    : params_(kernel.params.size()), cluster_(kernel.cluster), orders_(kernel.cluster > 0 || orders(kernel.body)) {
  for (size_t k = 0; k < params_; ++k) {
    Region region{kernel.params[k].dtype, static_cast<char*>(buffers[k].data), buffers[k].elements};
    if (kernel.params[k].written) {
      const size_t n = static_cast<size_t>(region.elements);
      region.writer.resize(n), region.adder.resize(n), region.reader.resize(n), region.watcher.resize(n);
    }
    regions_.push_back(std::move(region));
  }
  for (size_t a = 0; a < params_; ++a)
    for (size_t b = a + 1; b < params_; ++b) {
      const Region &x = regions_[a], &y = regions_[b];
      const bool apart =
          x.data + x.elements * x.dtype.size() <= y.data || y.data + y.elements * y.dtype.size() <= x.data;
      if (!apart && (kernel.params[a].written || kernel.params[b].written))
        throw_failure("kernel " + kernel.name,
                      fmt::format("parameters {} and {} overlap in memory, and one of them is written", a, b));
    }
  for (const Local& local : kernel.locals) {
    Region region{local.dtype, nullptr, local.elements};
    const auto n = static_cast<size_t>(local.elements * std::max<int64_t>(cluster_, 1));
    region.own.resize(n * static_cast<size_t>(local.dtype.size()));
    if (cluster_ > 0)
      region.writer.resize(n), region.adder.resize(n), region.reader.resize(n), region.watcher.resize(n);
    region.data = region.own.data();
    regions_.push_back(std::move(region));  // a moved vector keeps its storage
  }
}

void CheckedMemory::begin(int64_t program) {
  program_ = program, epoch_ = 0;
  acquired_.clear();
  for (size_t k = params_; k < regions_.size(); ++k) poison(static_cast<Ref>(k));
}

void CheckedMemory::poison(Ref local) {
  Region& region = regions_[static_cast<size_t>(local)];
  for (int64_t k = 0; k < region.elements; ++k) {
    const size_t at = element(local, k, -1);
    write_element(region.data, region.dtype, static_cast<int64_t>(at), poison_of(region.dtype));
    if (region.writer.empty()) continue;
    region.writer[at] = {{program_ + 1, epoch_}};
    region.adder[at] = region.reader[at] = region.watcher[at] = {};
  }
}

/// Returns where an element lies: local buffers of a cluster lie one after the other.
size_t CheckedMemory::element(Ref ref, int64_t index, int64_t rank) const {
  if (cluster_ < 1 || static_cast<size_t>(ref) < params_) return static_cast<size_t>(index);
  if (rank < 0) rank = program_ % cluster_;
  return static_cast<size_t>(rank * regions_[static_cast<size_t>(ref)].elements + index);
}

void CheckedMemory::end() {
  for (size_t ref = params_; cluster_ > 0 && ref < regions_.size(); ++ref)
    for (int64_t index = 0; index < regions_[ref].elements; ++index) {
      const size_t k = element(static_cast<Ref>(ref), index, -1);
      if (reached(regions_[ref], k))
        throw MemoryFault(
            fmt::format("race: ends, and another program reaches element {} of l{}: let a barrier of the "
                        "cluster order them",
                        index, ref - params_));
      note(regions_[ref].writer[k]);
    }
}

CheckedMemory::Region& CheckedMemory::at(Ref ref, int64_t index) {
  Region& region = regions_[static_cast<size_t>(ref)];
  if (index < 0 || index >= region.elements)
    throw MemoryFault(fmt::format("element {} is outside the buffer's {} elements", index, region.elements));
  return region;
}

Number CheckedMemory::load(Ref ref, int64_t index, int64_t rank) {
  Region& region = at(ref, index);
  const size_t k = element(ref, index, rank);
  if (!region.writer.empty()) {
    if (others(region.writer[k]) || others(region.adder[k]))
      throw MemoryFault(fmt::format("race: reads element {}, which another program wrote", index));
    note(region.reader[k]);
  }
  return read_element(region.data, region.dtype, static_cast<int64_t>(k));
}

void CheckedMemory::store(Ref ref, int64_t index, Number v, int64_t rank) {
  Region& region = at(ref, index);
  const size_t k = element(ref, index, rank);
  if (!region.writer.empty()) {
    if (others(region.writer[k]) || others(region.adder[k]))
      throw MemoryFault(fmt::format("race: writes element {}, which another program wrote", index));
    if (others(region.reader[k]))
      throw MemoryFault(fmt::format("race: writes element {}, which another program read", index));
    if (others(region.watcher[k]))
      throw MemoryFault(
          fmt::format("race: writes element {}, for which another program waited: store it by an atomic", index));
    note(region.writer[k]);
  }
  write_element(region.data, region.dtype, static_cast<int64_t>(k), v);
}

bool CheckedMemory::others(const Accesses& all) const {
  if (all.more < 0) return others(all.first);
  const std::vector<Mark>& crowd = crowds_[static_cast<size_t>(all.more)];
  return others(all.first) || std::any_of(crowd.begin(), crowd.end(), [&](const Mark& m) { return others(m); });
}

/// Records an access of this program; those that were before it are forgotten.
void CheckedMemory::note(Accesses& all) {
  const Mark own{program_ + 1, epoch_};
  std::vector<Mark>* crowd = all.more < 0 ? nullptr : &crowds_[static_cast<size_t>(all.more)];
  if (crowd) std::erase_if(*crowd, [&](const Mark& m) { return !others(m); });
  if (!others(all.first)) {
    all.first = own;
    return;
  }
  if (!orders_) {
    all.first.program = many;
    return;
  }
  if (!crowd) {
    all.more = static_cast<int32_t>(crowds_.size());
    crowd = &crowds_.emplace_back();
  }
  crowd->push_back(own);
}

void CheckedMemory::acquire(Ref ref, int64_t index) {
  const auto found = released_.find({ref, index});
  if (found == released_.end()) return;
  for (const auto& [program, releases] : found->second) acquired_[program] = std::max(acquired_[program], releases);
}

/// What this program has done and seen is before what acquires the element from now on.
void CheckedMemory::release(Ref ref, int64_t index) {
  Clock& clock = released_[{ref, index}];
  for (const auto& [program, releases] : acquired_) clock[program] = std::max(clock[program], releases);
  clock[program_ + 1] = ++epoch_;
}

Number CheckedMemory::update(Ref ref, int64_t index, AtomicOrder how, const std::function<Number(Number)>& change) {
  Region& region = at(ref, index);
  const size_t k = element(ref, index, -1);
  if (how.acquires() && !region.writer.empty()) acquire(ref, index);
  if (!region.writer.empty()) {
    if (others(region.writer[k]))
      throw MemoryFault(fmt::format("race: adds to element {}, which another program wrote", index));
    if (others(region.reader[k]))
      throw MemoryFault(fmt::format("race: adds to element {}, which another program read", index));
    note(region.adder[k]);
  }
  const Number old = read_element(region.data, region.dtype, static_cast<int64_t>(k));
  write_element(region.data, region.dtype, static_cast<int64_t>(k), change(old));
  if (how.releases() && !region.writer.empty()) release(ref, index);
  return old;
}

Number CheckedMemory::watched(Ref ref, int64_t index) {
  const Region& region = at(ref, index);
  return read_element(region.data, region.dtype, index);
}

void CheckedMemory::found(Ref ref, int64_t index, AtomicOrder how) {
  Region& region = at(ref, index);
  if (region.writer.empty()) return;
  if (how.acquires()) acquire(ref, index);
  const size_t k = static_cast<size_t>(index);
  if (others(region.writer[k]))
    throw MemoryFault(
        fmt::format("race: waits for element {}, which another program wrote: store it by an atomic", index));
  note(region.watcher[k]);
}

void CheckedMemory::exchange(State& own) {
  std::swap(program_, own.program);
  std::swap(epoch_, own.epoch);
  acquired_.swap(own.acquired);
  if (cluster_ > 0) return;  // local buffers of all lie side by side
  own.locals.resize(regions_.size() - params_);
  for (size_t k = params_; k < regions_.size(); ++k) {
    Region& region = regions_[k];
    region.own.swap(own.locals[k - params_]);
    region.own.resize(static_cast<size_t>(region.elements) * region.dtype.size());
    region.data = region.own.data();
  }
}

int64_t CheckedMemory::first_unwritten(Ref ref) const {
  const Region& region = regions_[static_cast<size_t>(ref)];
  for (size_t k = 0; k < region.writer.size(); ++k)
    if (region.writer[k].first.program == 0 && region.adder[k].first.program == 0) return static_cast<int64_t>(k);
  return -1;
}

}  // namespace weft::kernel
