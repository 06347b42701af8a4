#include "target/cuda/handwritten/scatter_add_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "target/cuda/codegen/executable.h"

namespace weft::target::cuda {

namespace {

constexpr int64_t rows_of_block = 8;  // a warp each

// Devices of compute capability 9.0 add four floats at once.
constexpr const char* text = R"cuda(
typedef long long i64;
struct __align__(16) Four { float x, y, z, w; };
struct __align__(8) Low { unsigned a, b; };

__device__ __forceinline__ Four read(const float* p) { return *(const Four*)p; }
__device__ __forceinline__ Four read(const unsigned short* p) {
  const Low v = *(const Low*)p;
  return {from_low(v.a & 0xffffu), from_low(v.a >> 16), from_low(v.b & 0xffffu), from_low(v.b >> 16)};
}
__device__ __forceinline__ void add(float* to, const Four v) {
#if __CUDA_ARCH__ >= 900
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
#else
  atomicAdd(to, v.x), atomicAdd(to + 1, v.y), atomicAdd(to + 2, v.z), atomicAdd(to + 3, v.w);
#endif
}

extern "C" __global__ void __launch_bounds__(256) row_adds(const Id* const ids, const Element* const rows, float* const sums) {
  const i64 row = (i64)blockIdx.x * 8 + threadIdx.x / 32;
  if (row >= count) return;
  i64 place = (i64)ids[row];
  if (place < 0) place += places;
  if (place < 0 || place >= places) return;
  const Element* const from = rows + row * width;
  float* const to = sums + place * width;
#pragma unroll 4
  for (int i = (int)threadIdx.x % 32 * 4; i < width; i += 128) add(to + i, read(from + i));
}
)cuda";

const char* integer_name(Dtype t) {
  if (t == int32) return "int";
  if (t == uint32) return "unsigned";
  if (t == int64) return "long long";
  if (t == uint64) return "unsigned long long";
  if (t == int16) return "short";
  if (t == uint16) return "unsigned short";
  if (t == int8) return "signed char";
  return t == uint8 ? "unsigned char" : "";
}

class RowAdds final : public LibraryCall {
 public:
  RowAdds(Context& context, FunctionHandle function, const kernel::CallDesc& desc,
          std::shared_ptr<const LibraryCall> ordered)
      : context_(context), function_(function), count_(desc.inputs[0].extents[0]), what_(desc.to_string()),
        ordered_(std::move(ordered)) {}
  std::string name() const override { return "weft atomic additions"; }
  void run(std::span<void* const> operands) const override {
    weft::check(operands.size() == 3, "row adds", "number of operands");
    if ((reinterpret_cast<uintptr_t>(operands[1]) | reinterpret_cast<uintptr_t>(operands[2])) % 16 != 0)
      return ordered_->run(operands);
    context_.make_current();
    void* arguments[] = {const_cast<void**>(&operands[0]), const_cast<void**>(&operands[1]),
                         const_cast<void**>(&operands[2])};
    LaunchConfig config;
    config.grid_x = static_cast<unsigned>((count_ + rows_of_block - 1) / rows_of_block);
    config.block_x = 32 * rows_of_block;
    config.stream = context_.stream();
    check(driver().launch_kernel_ex(&config, function_, arguments, nullptr), "cuLaunchKernelEx", what_);
  }

 private:
  Context& context_;
  FunctionHandle function_;
  int64_t count_;
  std::string what_;
  std::shared_ptr<const LibraryCall> ordered_;  // for what does not begin at a multiple of 16 bytes
};

}  // namespace

std::string row_adds_source(const kernel::CallDesc& desc) {
  const Dtype from = desc.inputs[1].dtype;
  const std::string id = integer_name(desc.inputs[0].dtype);
  const int64_t count = desc.inputs[0].extents[0], positions = desc.outputs[0].extents[0],
                width = desc.outputs[0].extents[1];
  if (desc.outputs[0].dtype != float32 || (from != float32 && from != bfloat16 && from != float16) || id.empty() ||
      width % 4 != 0 || width > INT32_MAX || count == 0)
    return "";
  const std::string low =
      from == bfloat16
          ? "__device__ __forceinline__ float from_low(const unsigned v) { return __uint_as_float(v << 16); }\n"
          : "__device__ __forceinline__ float from_low(const unsigned v) { float f; asm(\"cvt.f32.f16 %0, %1;\" : "
            "\"=f\"(f) : \"h\"((unsigned short)v)); return f; }\n";
  return fmt::format(
      "typedef {} Id;\ntypedef {} Element;\nconstexpr long long count = {}, places = {};\nconstexpr int width = "
      "{};\n{}{}",
      id, from == float32 ? "float" : "unsigned short", count, positions, width, low, text);
}

std::shared_ptr<const LibraryCall> row_adds_call(const kernel::CallDesc& desc, Context& context,
                                                 const CompileSource& compile,
                                                 std::shared_ptr<const LibraryCall> ordered) {
  const std::string source = row_adds_source(desc);
  if (source.empty()) return nullptr;
  const ModuleHandle module = load_module(context, compile(source), desc.to_string());
  FunctionHandle function = nullptr;
  check(driver().module_get_function(&function, module, "row_adds"), "cuModuleGetFunction", desc.to_string());
  return std::make_shared<RowAdds>(context, function, desc, std::move(ordered));
}

}  // namespace weft::target::cuda
