#include "target/cuda/codegen/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "kernel/expand/expand.h"
#include "kernel/rules.h"
#include "runtime/background.h"
#include "runtime/trace.h"
#include "target/cuda/codegen/text/source.h"
#include "target/cuda/driver/nvrtc.h"

namespace weft::target::cuda {

namespace {

constexpr size_t most_argument_words = 4090;  // a kernel's arguments have at most 32764 bytes
constexpr int64_t default_shared_bytes = 48 << 10;
constexpr int portable_cluster = 8;  // that every device with clusters supports

bool aligned(std::span<const Segment> segments) {
  return std::all_of(segments.begin(), segments.end(), [](const Segment& s) {
    return std::all_of(s.buffers.begin(), s.buffers.end(),
                       [](const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; });
  });
}

/// Returns how many segments the entry of a launch has room for: a power of two, so that few entries are compiled.
size_t capacity_for(size_t segments, size_t most) {
  return std::min(most, std::max<size_t>(8, std::bit_ceil(segments)));
}

/// Returns the description of a matrix for TMA. Lines have no end where no box passes the end of the parameter.
TensorMap tensor_map(const TensorCopy& copy, const Segment& segment) {
  TensorMap map;
  void* const address = segment.buffers[static_cast<size_t>(copy.param)];
  const auto extent = [&](const AxisEnd& end, uint64_t without) {
    if (end.symbol >= 0) return static_cast<uint64_t>(segment.symbols[static_cast<size_t>(end.symbol)]);
    return end.number > 0 ? static_cast<uint64_t>(end.number) : without;
  };
  const int64_t bytes = copy.across * copy.dtype.size();
  const uint64_t extents[] = {extent(copy.width, static_cast<uint64_t>(copy.pitch)),
                              extent(copy.end, uint64_t{1} << 31)},
                 strides[] = {static_cast<uint64_t>(copy.pitch * copy.dtype.size())};
  const uint32_t box[] = {static_cast<uint32_t>(copy.across), static_cast<uint32_t>(copy.lines)}, steps[] = {1, 1};
  const TensorMapLayout swizzle = bytes == 128  ? tensor_map_swizzle_128
                                  : bytes == 64 ? tensor_map_swizzle_64
                                                : tensor_map_swizzle_32;
  const TensorMapType type = copy.dtype.size() == 1   ? tensor_map_u8
                             : copy.dtype == float32  ? tensor_map_f32
                             : copy.dtype == bfloat16 ? tensor_map_bf16
                                                      : tensor_map_f16;
  check_result(
      driver().tensor_map_encode_tiled(&map, type, 2, address, extents, strides, box, steps, tensor_map_interleave_none,
                                       swizzle, tensor_map_promotion_256, tensor_map_fill_zero),
      "cuTensorMapEncodeTiled", fmt::format("parameter {}", copy.param));
  return map;
}

}  // namespace

ModuleHandle load_module(Context& context, const std::vector<char>& cubin, const std::string& what) {
  const runtime::Span span("compiler", "module is loaded");
  context.make_current();
  ModuleHandle module = nullptr;
  const int result = driver().module_load_data(&module, cubin.data());
  const int compiler = nvrtc_version() / 1000, known = driver_version() / 1000;
  check_result(result, "cuModuleLoadData",
               compiler > known
                   ? fmt::format("{}; NVRTC is CUDA {}'s and the driver CUDA {}'s: install a newer driver, or "
                                 "set WEFT_CUDA_PATH to a toolkit of CUDA {}",
                                 what, compiler, known, known)
                   : what);
  return module;
}

Entry find_entry(Context& context, ModuleHandle module, const Rendered& rendered) {
  context.make_current();
  const std::string what = "kernel " + rendered.symbol;
  Entry entry{nullptr,           rendered.threads, rendered.programs, rendered.shared_bytes, rendered.blocks,
              rendered.resident, rendered.maps,    rendered.ordered,  rendered.meets};
  const DeviceInfo& device = context.info();
  if (rendered.spreads)
    entry.alone_bytes = std::max(entry.shared_bytes,
                                 std::min(device.shared_bytes_per_block, device.shared_bytes_per_multiprocessor / 2));
  const int64_t most_bytes = std::max(entry.shared_bytes, entry.alone_bytes);
  check_result(driver().module_get_function(&entry.function, module, rendered.symbol.c_str()), "cuModuleGetFunction",
               what);
  if (most_bytes > default_shared_bytes)
    check_result(
        driver().func_set_attribute(entry.function, func_max_dynamic_shared_size_bytes, static_cast<int>(most_bytes)),
        "cuFuncSetAttribute", fmt::format("{}, {} bytes of shared memory", what, most_bytes));
  if (entry.cluster > portable_cluster)
    check_result(driver().func_set_attribute(entry.function, func_non_portable_cluster_size_allowed, 1),
                 "cuFuncSetAttribute", fmt::format("{}, clusters of {} blocks", what, entry.cluster));
  return entry;
}

int64_t shared_bytes_of(const Entry& entry, int64_t blocks, bool early_start, int64_t processors) {
  return early_start && blocks <= processors ? std::max(entry.shared_bytes, entry.alone_bytes) : entry.shared_bytes;
}

void launch(const Context& context, const Entry& entry, int64_t across, int64_t down, void** arguments,
            const std::string& what) {
  LaunchConfig config;
  config.grid_x = static_cast<unsigned>(across), config.grid_y = static_cast<unsigned>(down);
  config.block_x = static_cast<unsigned>(entry.threads);
  config.shared_memory_bytes = static_cast<unsigned>(entry.shared_bytes);
  config.stream = context.stream();
  check_result(driver().launch_kernel_ex(&config, entry.function, arguments, nullptr), "cuLaunchKernelEx", what);
}

Rendered CudaExecutable::rendered(const Variant& variant) const {
  Rendered code = render(kernel::expand(kernel_, operators), symbol_, variant, compiler_.features());
  if (code.shared_bytes > compiler_.shared_bytes() && (kernel_.any_size || !kernel::is_basic(kernel_)))
    throw_invalid("kernel " + kernel_.name,
                  fmt::format("its tiles need {} bytes of shared memory a block, and this device has {}: use smaller "
                              "tiles, or fewer at a time",
                              code.shared_bytes, compiler_.shared_bytes()));
  if (code.shared_bytes > compiler_.shared_bytes())
    throw_failure("kernel " + kernel_.name,
                  fmt::format("asks for {} bytes of shared memory a block, and this device has {}", code.shared_bytes,
                              compiler_.shared_bytes()));
  return code;
}

CudaExecutable::Slot& CudaExecutable::slot(const Variant& variant) const {
  std::lock_guard lock(mutex_);
  return slots_[variant];
}

bool CudaExecutable::has_code() const { return kernel::has_code(kernel_.body); }

std::vector<char> CudaExecutable::cubin(const Rendered& code) const {
  try {
    return compiler_.cubin(std::string(prelude()) + code.source);
  } catch (const std::runtime_error& e) {
    const std::string what = e.what();
    if (!has_code() || what.find("compiling for") == std::string::npos) throw;
    throw_invalid("kernel " + kernel_.name, "its code does not compile: correct the lines that NVRTC names\n" + what);
  }
}

const Entry& CudaExecutable::entry(const Variant& variant) const {
  Slot& s = slot(variant);
  if (s.made.load(std::memory_order_acquire)) return s.entry;
  std::call_once(s.once, [&] {
    const Rendered code = rendered(variant);
    s.entry = find_entry(*context_, load_module(*context_, cubin(code), "kernel " + kernel_.name), code);
    s.made.store(true, std::memory_order_release);
  });
  return s.entry;
}

void CudaExecutable::begin(size_t segments) const {
  const Variant variant{true,
                        segments == 1 || launches_alone()
                            ? 1
                            : static_cast<int>(capacity_for(std::min(segments, most_segments()), most_segments()))};
  if (slot(variant).made.load(std::memory_order_acquire)) return;
  runtime::begin_in_background([self = shared_from_this(), variant] { self->entry(variant); });
}

/// Returns the largest number of segments in a launch.
size_t CudaExecutable::most_segments() const {
  return (most_argument_words - 2) / (kernel_.params.size() + kernel_.symbols.size() + 1);
}

/// Launches into the context's stream. Blocks may start while the last ones of the preceding kernel run: the code waits
/// for that kernel's writes (render.cpp).
void CudaExecutable::launch(const Entry& entry, int64_t grid, void** arguments) const {
  const bool follows = context_->next_follows_a_kernel();
  launch_on(context_->stream(), entry, grid, arguments,
            context_->info().major >= 9 && follows && grid <= most_early_programs && !entry.counts());
}

/// Returns the number of the counters for launches into a stream, which run one after the other.
int CudaExecutable::overlapping(StreamHandle stream) const {
  std::lock_guard lock(mutex_);
  const auto [at, added] = streams_.try_emplace(stream, static_cast<int>(streams_.size()));
  if (at->second >= most_overlapping)
    throw_invalid("kernel " + kernel_.name,
                  fmt::format("its programs wait for each other, and it was launched into {} streams: use fewer",
                              streams_.size()));
  return at->second;
}

/// Refuses a launch whose blocks do not all fit the device at once, though they wait for each other.
void CudaExecutable::check_resident(const Entry& entry, int64_t blocks) const {
  int of_sm = 0;
  check_result(driver().occupancy_max_active_blocks(&of_sm, entry.function, entry.threads,
                                                    static_cast<size_t>(entry.shared_bytes)),
               "cuOccupancyMaxActiveBlocksPerMultiprocessor", "kernel " + kernel_.name);
  const int64_t most = int64_t{of_sm} * context_->info().multiprocessors;
  if (blocks > most)
    throw_invalid(
        "kernel " + kernel_.name,
        fmt::format("its {} programs wait for each other at a barrier of the grid, and {} runs {} at once ({} "
                    "SMs with {} each): give the grid {} programs at most, each with a loop over its share",
                    blocks, context_->name(), most, context_->info().multiprocessors, of_sm, most));
}

void CudaExecutable::launch_on(StreamHandle stream, const Entry& entry, int64_t grid, void** arguments,
                               bool early_start) const {
  int64_t blocks = (grid + entry.programs - 1) / entry.programs * entry.cluster;
  if (entry.resident > 0) blocks = std::min<int64_t>(blocks, entry.resident * context_->info().multiprocessors);
  if (blocks > INT32_MAX)
    throw_failure("kernel " + kernel_.name, fmt::format("{} blocks are more than a launch may have", blocks));
  LaunchConfig config;
  config.grid_x = static_cast<unsigned>(blocks);
  config.block_x = static_cast<unsigned>(entry.threads);
  config.shared_memory_bytes =
      static_cast<unsigned>(shared_bytes_of(entry, blocks, early_start, context_->info().multiprocessors));
  config.stream = stream;
  LaunchAttribute attribute{.id = LaunchAttributeId::programmatic_stream_serialization};
  attribute.value.programmatic_stream_serialization_allowed = 1;
  if (entry.meets) {
    check_resident(entry, blocks);
    attribute.id = LaunchAttributeId::cooperative;
    attribute.value.cooperative = 1;
  }
  if (early_start || entry.meets) config.attributes = &attribute, config.attribute_count = 1;
  check_result(driver().launch_kernel_ex(&config, entry.function, arguments, nullptr), "cuLaunchKernelEx",
               fmt::format("kernel {} on {}: {} blocks of {} threads, {} bytes of shared memory", kernel_.name,
                           context_->name(), blocks, entry.threads, entry.shared_bytes));
}

namespace {

/// What a launch of one segment takes: buffers, symbols, the number of programs, what TMA copies boxes of, and where
/// programs count.
class Arguments {
 public:
  Arguments(const Segment& segment, const Entry& entry, int overlapping) : overlapping_(overlapping) {
    for (void* const& p : segment.buffers) pointers_.push_back(const_cast<void**>(&p));
    for (const int64_t& s : segment.symbols) pointers_.push_back(const_cast<int64_t*>(&s));
    pointers_.push_back(const_cast<int64_t*>(&segment.grid));
    for (const TensorCopy& copy : entry.maps) maps_.push_back(tensor_map(copy, segment));
    for (TensorMap& map : maps_) pointers_.push_back(&map);
    if (entry.counts()) pointers_.push_back(&overlapping_);
  }
  void** data() { return pointers_.data(); }

 private:
  std::vector<TensorMap> maps_;
  int overlapping_;
  std::vector<void*> pointers_;
};

}  // namespace

void CudaExecutable::run_one(const Segment& segment, bool is_aligned) const {
  const Entry& one = entry({is_aligned, 1});
  const int number = one.counts() ? overlapping(context_->stream()) : 0;
  launch(one, segment.grid, Arguments(segment, one, number).data());
}

void CudaExecutable::run_on(void* stream, const Segment& segment) const {
  if (!context_) throw_failure("kernel " + kernel_.name, "there is no device: this target only compiles");
  if (segment.grid == 0) return;
  context_->make_current();
  const Entry& one = entry({aligned({&segment, 1}), 1});
  const auto handle = static_cast<StreamHandle>(stream);
  const int number = one.counts() ? overlapping(handle) : 0;
  launch_on(handle, one, segment.grid, Arguments(segment, one, number).data(), false);
}

void CudaExecutable::run_many(std::span<const Segment> segments, bool is_aligned) const {
  const size_t row = kernel_.params.size() + kernel_.symbols.size(), most = most_segments();
  for (; !segments.empty(); segments = segments.subspan(std::min(segments.size(), most))) {
    const auto now = segments.first(std::min(segments.size(), most));
    const size_t capacity = capacity_for(now.size(), most);
    std::vector<int64_t> table(2 + capacity * (row + 1), 0);
    table[0] = static_cast<int64_t>(now.size());
    int64_t grid = 0;
    size_t at = 2 + now.size();
    for (size_t k = 0; k < now.size(); ++k) {
      table[1 + k] = grid;
      grid += now[k].grid;
      for (void* p : now[k].buffers) table[at++] = reinterpret_cast<int64_t>(p);
      for (int64_t s : now[k].symbols) table[at++] = s;
    }
    table[1 + now.size()] = grid;
    void* arguments[] = {table.data()};
    if (grid > 0) launch(entry({is_aligned, static_cast<int>(capacity)}), grid, arguments);
  }
}

void CudaExecutable::run(std::span<const Segment> segments, double) const {
  if (!context_) throw_failure("kernel " + kernel_.name, "there is no device: this target only compiles");
  context_->make_current();
  const bool is_aligned = aligned(segments);
  if (segments.size() == 1 || launches_alone()) {
    for (const Segment& segment : segments)
      if (segment.grid > 0) run_one(segment, is_aligned);
  } else if (!segments.empty()) {
    run_many(segments, is_aligned);
  }
}

}  // namespace weft::target::cuda
