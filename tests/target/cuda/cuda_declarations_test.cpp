// Weft's own declarations of CUDA's driver interface against its header, where that is installed.
#if __has_include(<cuda.h>)
#include <cuda.h>
#include <doctest/doctest.h>

#include <cstddef>
#include <map>
#include <string>

#include "runtime/nvtx_protocol.h"
#include "target/cuda/cuda_abi.h"
#include "target/cuda/driver/driver.h"
#include "target/cuda/driver/driver_functions.h"
#include "target/cuda/driver/properties.h"

namespace cuda = weft::target::cuda;

namespace {

std::map<std::string, std::string> header_functions() {
  return {
      WEFT_ABI(cuInit),
      WEFT_ABI(cuDriverGetVersion),
      WEFT_ABI(cuGetErrorName),
      WEFT_ABI(cuGetErrorString),
      WEFT_ABI(cuDeviceGetCount),
      WEFT_ABI(cuDeviceGet),
      WEFT_ABI(cuDeviceGetName),
      WEFT_ABI(cuDeviceGetAttribute),
      WEFT_ABI(cuDeviceTotalMem),
      WEFT_ABI(cuDeviceCanAccessPeer),
      WEFT_ABI(cuDevicePrimaryCtxRetain),
      WEFT_ABI(cuDevicePrimaryCtxRelease),
      WEFT_ABI(cuCtxSetCurrent),
      WEFT_ABI(cuCtxGetCurrent),
      WEFT_ABI(cuCtxSynchronize),
      WEFT_ABI(cuCtxEnablePeerAccess),
      WEFT_ABI(cuMemAlloc),
      WEFT_ABI(cuMemFree),
      WEFT_ABI(cuMemGetInfo),
      WEFT_ABI(cuMemAllocHost),
      WEFT_ABI(cuMemFreeHost),
      WEFT_ABI(cuMemcpyHtoDAsync),
      WEFT_ABI(cuMemcpyDtoHAsync),
      WEFT_ABI(cuMemcpyDtoDAsync),
      WEFT_ABI(cuMemcpyPeerAsync),
      WEFT_ABI(cuMemsetD8Async),
      WEFT_ABI(cuStreamCreate),
      WEFT_ABI(cuStreamDestroy),
      WEFT_ABI(cuStreamSynchronize),
      WEFT_ABI(cuStreamQuery),
      WEFT_ABI(cuStreamWaitEvent),
      WEFT_ABI(cuStreamBeginCapture),
      WEFT_ABI(cuStreamEndCapture),
      WEFT_ABI(cuStreamIsCapturing),
      WEFT_ABI(cuThreadExchangeStreamCaptureMode),
      WEFT_ABI(cuEventCreate),
      WEFT_ABI(cuEventDestroy),
      WEFT_ABI(cuEventRecord),
      WEFT_ABI(cuEventRecordWithFlags),
      WEFT_ABI(cuEventQuery),
      WEFT_ABI(cuEventSynchronize),
      WEFT_ABI(cuModuleLoadData),
      WEFT_ABI(cuModuleUnload),
      WEFT_ABI(cuModuleGetFunction),
      WEFT_ABI(cuModuleGetGlobal),
      WEFT_ABI(cuFuncGetAttribute),
      WEFT_ABI(cuFuncSetAttribute),
      WEFT_ABI(cuOccupancyMaxActiveBlocksPerMultiprocessor),
      WEFT_ABI(cuLaunchKernelEx),
      WEFT_ABI(cuTensorMapEncodeTiled),
      WEFT_ABI(cuLaunchHostFunc),
      WEFT_ABI(cuGraphInstantiate),
      WEFT_ABI(cuGraphUpload),
      WEFT_ABI(cuGraphLaunch),
      WEFT_ABI(cuGraphExecDestroy),
      WEFT_ABI(cuGraphDestroy),
      WEFT_ABI(cuGraphGetNodes),
  };
}

}  // namespace

TEST_CASE("driver functions have the names and parameters of cuda.h") {
  const std::map<std::string, std::string> header = header_functions();
  cuda::Driver driver{};
  size_t functions = 0;
  cuda::for_each_function(driver, [&](auto* function, const char* name) {
    ++functions;
    // cuda.h of 13.0 gives these two names newer versions; drivers keep the ones that Weft uses.
    if (name == std::string("cuEventElapsedTime") || name == std::string("cuDeviceGetUuid")) return;
    CAPTURE(name);
    REQUIRE(header.count(name) == 1);
    CHECK(weft::test::abi(function) == header.at(name));
  });
  CHECK(functions == header.size() + 2);
  CHECK(functions * sizeof(void*) == sizeof(cuda::Driver));  // every pointer has its name
}

TEST_CASE("driver constants are those of cuda.h") {
  CHECK(cuda::success == CUDA_SUCCESS);
  CHECK(cuda::error_invalid_value == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuda::error_out_of_memory == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuda::error_no_device == CUDA_ERROR_NO_DEVICE);
  CHECK(cuda::error_no_binary_for_gpu == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(cuda::error_unsupported_ptx_version == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  CHECK(cuda::error_not_found == CUDA_ERROR_NOT_FOUND);
  CHECK(cuda::error_not_ready == CUDA_ERROR_NOT_READY);
  CHECK(cuda::error_illegal_address == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(cuda::error_launch_out_of_resources == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  CHECK(cuda::error_peer_access_already_enabled == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  CHECK(cuda::error_capture_unsupported == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(cuda::error_capture_invalidated == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(cuda::max_threads_per_block == static_cast<int>(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
  CHECK(cuda::max_shared_memory_per_block == static_cast<int>(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
  CHECK(cuda::warp_size == static_cast<int>(CU_DEVICE_ATTRIBUTE_WARP_SIZE));
  CHECK(cuda::clock_rate_khz == static_cast<int>(CU_DEVICE_ATTRIBUTE_CLOCK_RATE));
  CHECK(cuda::multiprocessor_count == static_cast<int>(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  CHECK(cuda::pci_bus_id == static_cast<int>(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID));
  CHECK(cuda::pci_device_id == static_cast<int>(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID));
  CHECK(cuda::pci_domain_id == static_cast<int>(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID));
  CHECK(cuda::memory_clock_rate_khz == static_cast<int>(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE));
  CHECK(cuda::global_memory_bus_width == static_cast<int>(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH));
  CHECK(cuda::l2_cache_size == static_cast<int>(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
  CHECK(cuda::max_threads_per_multiprocessor == static_cast<int>(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR));
  CHECK(cuda::compute_capability_major == static_cast<int>(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  CHECK(cuda::compute_capability_minor == static_cast<int>(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  CHECK(cuda::max_shared_memory_per_multiprocessor ==
        static_cast<int>(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
  CHECK(cuda::max_registers_per_multiprocessor ==
        static_cast<int>(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR));
  CHECK(cuda::cooperative_launch == static_cast<int>(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH));
  CHECK(cuda::max_shared_memory_per_block_optin ==
        static_cast<int>(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  CHECK(cuda::reserved_shared_memory_per_block ==
        static_cast<int>(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK));
  CHECK(cuda::func_max_threads_per_block == static_cast<int>(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
  CHECK(cuda::func_shared_size_bytes == static_cast<int>(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
  CHECK(cuda::func_local_size_bytes == static_cast<int>(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
  CHECK(cuda::func_num_regs == static_cast<int>(CU_FUNC_ATTRIBUTE_NUM_REGS));
  CHECK(cuda::func_max_dynamic_shared_size_bytes == static_cast<int>(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
  CHECK(cuda::func_preferred_shared_memory_carveout ==
        static_cast<int>(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT));
  CHECK(cuda::func_non_portable_cluster_size_allowed ==
        static_cast<int>(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED));
  CHECK(cuda::stream_non_blocking == static_cast<unsigned>(CU_STREAM_NON_BLOCKING));
  CHECK(cuda::event_blocking_sync == static_cast<unsigned>(CU_EVENT_BLOCKING_SYNC));
  CHECK(cuda::event_disable_timing == static_cast<unsigned>(CU_EVENT_DISABLE_TIMING));
  CHECK(static_cast<int>(cuda::CaptureMode::thread_local_) == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  CHECK(static_cast<int>(cuda::CaptureMode::relaxed) == CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK(static_cast<int>(cuda::CaptureStatus::active) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CHECK(static_cast<int>(cuda::CaptureStatus::invalidated) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CHECK(static_cast<int>(cuda::tensor_map_f16) == CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
  CHECK(static_cast<int>(cuda::tensor_map_bf16) == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  CHECK(static_cast<int>(cuda::tensor_map_interleave_none) == CU_TENSOR_MAP_INTERLEAVE_NONE);
  CHECK(static_cast<int>(cuda::tensor_map_swizzle_none) == CU_TENSOR_MAP_SWIZZLE_NONE);
  CHECK(static_cast<int>(cuda::tensor_map_swizzle_128) == CU_TENSOR_MAP_SWIZZLE_128B);
  CHECK(static_cast<int>(cuda::tensor_map_promotion_256) == CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
  CHECK(static_cast<int>(cuda::tensor_map_fill_zero) == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  CHECK(cuda::graph_auto_free_on_launch == static_cast<uint64_t>(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
  CHECK(cuda::graph_upload == static_cast<uint64_t>(CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD));
}

TEST_CASE("driver structures are laid out as those of cuda.h") {
  using cuda::LaunchAttribute;
  using cuda::LaunchConfig;
  CHECK(sizeof(cuda::DevicePtr) == sizeof(CUdeviceptr));
  CHECK(sizeof(cuda::TensorMap) == sizeof(CUtensorMap));
  CHECK(alignof(cuda::TensorMap) % alignof(CUtensorMap) == 0);
  CHECK(sizeof(cuda::Uuid) == sizeof(CUuuid));
  CHECK(sizeof(LaunchConfig) == sizeof(CUlaunchConfig));
  CHECK(offsetof(LaunchConfig, grid_z) == offsetof(CUlaunchConfig, gridDimZ));
  CHECK(offsetof(LaunchConfig, block_x) == offsetof(CUlaunchConfig, blockDimX));
  CHECK(offsetof(LaunchConfig, shared_memory_bytes) == offsetof(CUlaunchConfig, sharedMemBytes));
  CHECK(offsetof(LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
  CHECK(offsetof(LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
  CHECK(offsetof(LaunchConfig, attribute_count) == offsetof(CUlaunchConfig, numAttrs));
  CHECK(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute));
  CHECK(offsetof(LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
  CHECK(sizeof(LaunchAttribute::Value) == sizeof(CUlaunchAttributeValue));
  CHECK(static_cast<int>(cuda::LaunchAttributeId::cooperative) == CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  CHECK(static_cast<int>(cuda::LaunchAttributeId::cluster_dimension) == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  CHECK(static_cast<int>(cuda::LaunchAttributeId::programmatic_stream_serialization) ==
        CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
  CHECK(static_cast<int>(cuda::LaunchAttributeId::priority) == CU_LAUNCH_ATTRIBUTE_PRIORITY);
  CHECK(static_cast<int>(cuda::LaunchAttributeId::preferred_shared_memory_carveout) ==
        CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
}

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

TEST_CASE("the profilers' protocol has the numbers and tables of NVTX") {
  namespace nvtx = weft::runtime::nvtx;
  CHECK(nvtx::protocol_version == NVTX_VERSION);
  CHECK(nvtx::callbacks_table == NVTX_ETID_CALLBACKS);
  CHECK(nvtx::version_table == NVTX_ETID_VERSIONINFO);
  CHECK(nvtx::range_push == NVTX_CBID_CORE_RangePushA);
  CHECK(nvtx::range_pop == NVTX_CBID_CORE_RangePop);
  const unsigned sizes[] = {0,
                            NVTX_CBID_CORE_SIZE,
                            NVTX_CBID_CUDA_SIZE,
                            NVTX_CBID_OPENCL_SIZE,
                            NVTX_CBID_CUDART_SIZE,
                            NVTX_CBID_CORE2_SIZE,
                            NVTX_CBID_SYNC_SIZE};
  REQUIRE(std::size(sizes) == NVTX_CB_MODULE_SIZE);
  for (size_t k = 1; k < std::size(sizes); ++k) CHECK(nvtx::module_sizes[k] == sizes[k]);
  CHECK(sizeof(nvtx::CallbackTable) == sizeof(NvtxExportTableCallbacks));
  CHECK(sizeof(nvtx::VersionTable) == sizeof(NvtxExportTableVersionInfo));
  CHECK(offsetof(nvtx::VersionTable, set_version) == offsetof(NvtxExportTableVersionInfo, SetInjectionNvtxVersion));
}
#endif

TEST_CASE("CUDA declarations: attributes that reports ask for have the header's numbers") {
  using cuda::Reported;
  const auto same = [](Reported ours, CUdevice_attribute theirs) { CHECK(static_cast<int>(ours) == theirs); };
  same(Reported::max_block_x, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  same(Reported::max_block_y, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
  same(Reported::max_block_z, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  same(Reported::max_grid_x, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  same(Reported::max_grid_y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  same(Reported::max_grid_z, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  same(Reported::constant_memory_size, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  same(Reported::max_registers_per_block, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  same(Reported::kernel_time_limit, CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT);
  same(Reported::integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED);
  same(Reported::can_map_host_memory, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
  same(Reported::concurrent_kernels, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS);
  same(Reported::ecc_enabled, CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
  same(Reported::copy_engines, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
  same(Reported::unified_addressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
  same(Reported::stream_priorities, CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED);
  same(Reported::managed_memory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
  same(Reported::native_host_atomics, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED);
  same(Reported::single_to_double_ratio, CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO);
  same(Reported::pageable_memory_access, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
  same(Reported::compute_preemption, CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED);
  same(Reported::max_blocks_per_sm, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  same(Reported::max_persisting_l2, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE);
  same(Reported::memory_pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
  same(Reported::cluster_launch, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
#if CUDA_VERSION >= 12010
  same(Reported::tensor_map_access, CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED);
  same(Reported::multicast, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED);
#endif
}

#endif
