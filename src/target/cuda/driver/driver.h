#pragma once
// CUDA's driver API as far as Weft needs it: declarations of our own (no CUDA header is included anywhere) and a table
// of the functions in libcuda.so.1. tests/target/cuda/cuda_declarations_test.cpp compares constants and layouts with
// CUDA's headers where they are installed.
#include <cstddef>
#include <cstdint>
#include <string>

namespace weft::target::cuda {

using DevicePtr = uint64_t;  // an address in device memory, or in host memory mapped into the device
using ContextHandle = struct OpaqueContext*;
using StreamHandle = struct OpaqueStream*;
using EventHandle = struct OpaqueEvent*;
using ModuleHandle = struct OpaqueModule*;
using FunctionHandle = struct OpaqueFunction*;
using GraphHandle = struct OpaqueGraph*;
using GraphNodeHandle = struct OpaqueGraphNode*;
using GraphExecHandle = struct OpaqueGraphExec*;

/// Results that code checks for; others are only reported.
enum Result : int {
  success = 0,
  error_invalid_value = 1,
  error_out_of_memory = 2,
  error_no_device = 100,
  error_no_binary_for_gpu = 209,
  error_unsupported_ptx_version = 222,
  error_not_found = 500,
  error_not_ready = 600,
  error_illegal_address = 700,
  error_launch_out_of_resources = 701,
  error_peer_access_already_enabled = 704,
  error_capture_unsupported = 900,
  error_capture_invalidated = 901,
};

enum DeviceAttribute : int {
  max_threads_per_block = 1,
  max_shared_memory_per_block = 8,
  warp_size = 10,
  clock_rate_khz = 13,
  multiprocessor_count = 16,
  pci_bus_id = 33,
  pci_device_id = 34,
  memory_clock_rate_khz = 36,
  global_memory_bus_width = 37,
  l2_cache_size = 38,
  max_threads_per_multiprocessor = 39,
  pci_domain_id = 50,
  compute_capability_major = 75,
  compute_capability_minor = 76,
  max_shared_memory_per_multiprocessor = 81,
  max_registers_per_multiprocessor = 82,
  cooperative_launch = 95,
  max_shared_memory_per_block_optin = 97,
  reserved_shared_memory_per_block = 111,
};

enum FunctionAttribute : int {
  func_max_threads_per_block = 0,
  func_shared_size_bytes = 1,
  func_local_size_bytes = 3,
  func_num_regs = 4,
  func_max_dynamic_shared_size_bytes = 8,
  func_preferred_shared_memory_carveout = 9,
  func_non_portable_cluster_size_allowed = 14,
};

enum StreamFlags : unsigned { stream_default = 0, stream_non_blocking = 1 };
enum EventFlags : unsigned { event_default = 0, event_blocking_sync = 1, event_disable_timing = 2 };
enum EventRecordFlags : unsigned { event_record_default = 0, event_record_external = 1 };
enum class CaptureMode : int { global = 0, thread_local_ = 1, relaxed = 2 };
enum class CaptureStatus : int { none = 0, active = 1, invalidated = 2 };
enum TensorMapType : int { tensor_map_u8 = 0, tensor_map_f16 = 6, tensor_map_f32 = 7, tensor_map_bf16 = 9 };
enum TensorMapLayout : int {
  tensor_map_interleave_none = 0,
  tensor_map_swizzle_none = 0,
  tensor_map_swizzle_32 = 1,
  tensor_map_swizzle_64 = 2,
  tensor_map_swizzle_128 = 3,
  tensor_map_promotion_256 = 3,
  tensor_map_fill_zero = 0
};
enum GraphInstantiateFlags : uint64_t { graph_auto_free_on_launch = 1, graph_upload = 2 };

struct Uuid {
  char bytes[16];
};

enum class LaunchAttributeId : int {
  ignore = 0,
  cooperative = 2,
  cluster_dimension = 4,
  programmatic_stream_serialization = 6,
  priority = 8,
  preferred_shared_memory_carveout = 14,
};

struct LaunchAttribute {
  LaunchAttributeId id = LaunchAttributeId::ignore;
  char pad[4] = {};
  union Value {
    char pad[64];
    int cooperative;
    struct {
      unsigned x, y, z;
    } cluster_dim;
    int programmatic_stream_serialization_allowed;
    int priority;
    unsigned shared_memory_carveout;
  } value = {};
};

/// A kernel's argument that describes a matrix and its boxes to TMA.
struct alignas(128) TensorMap {
  uint64_t words[16] = {};
};

struct LaunchConfig {
  unsigned grid_x = 1, grid_y = 1, grid_z = 1, block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_memory_bytes = 0;  // dynamic
  StreamHandle stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};

/// One pointer a function; a comment gives CUDA's name where it differs in more than style. All return a Result as int.
struct Driver {
  int (*init)(unsigned flags);
  int (*driver_get_version)(int* version);  // 13000 for CUDA 13.0
  int (*get_error_name)(int result, const char** text);
  int (*get_error_string)(int result, const char** text);

  int (*device_get_count)(int* count);
  int (*device_get)(int* device, int ordinal);
  int (*device_get_name)(char* name, int bytes, int device);
  int (*device_get_uuid)(Uuid* uuid, int device);
  int (*device_get_attribute)(int* value, int attribute, int device);
  int (*device_total_mem)(size_t* bytes, int device);
  int (*device_can_access_peer)(int* can, int device, int peer);

  int (*primary_ctx_retain)(ContextHandle* context, int device);
  int (*primary_ctx_release)(int device);
  int (*ctx_set_current)(ContextHandle context);
  int (*ctx_get_current)(ContextHandle* context);
  int (*ctx_synchronize)();
  int (*ctx_enable_peer_access)(ContextHandle peer, unsigned flags);

  int (*mem_alloc)(DevicePtr* pointer, size_t bytes);
  int (*mem_free)(DevicePtr pointer);
  int (*mem_get_info)(size_t* free, size_t* total);
  int (*mem_alloc_host)(void** pointer, size_t bytes);
  int (*mem_free_host)(void* pointer);
  int (*memcpy_htod_async)(DevicePtr to, const void* from, size_t bytes, StreamHandle stream);
  int (*memcpy_dtoh_async)(void* to, DevicePtr from, size_t bytes, StreamHandle stream);
  int (*memcpy_dtod_async)(DevicePtr to, DevicePtr from, size_t bytes, StreamHandle stream);
  int (*memcpy_peer_async)(DevicePtr to, ContextHandle to_context, DevicePtr from, ContextHandle from_context,
                           size_t bytes, StreamHandle stream);
  int (*memset_d8_async)(DevicePtr to, unsigned char value, size_t bytes, StreamHandle stream);

  int (*stream_create)(StreamHandle* stream, unsigned flags);
  int (*stream_destroy)(StreamHandle stream);
  int (*stream_synchronize)(StreamHandle stream);
  int (*stream_query)(StreamHandle stream);
  int (*stream_wait_event)(StreamHandle stream, EventHandle event, unsigned flags);
  int (*stream_begin_capture)(StreamHandle stream, CaptureMode mode);
  int (*stream_end_capture)(StreamHandle stream, GraphHandle* graph);
  int (*stream_is_capturing)(StreamHandle stream, CaptureStatus* status);
  int (*thread_exchange_capture_mode)(CaptureMode* mode);

  int (*event_create)(EventHandle* event, unsigned flags);
  int (*event_destroy)(EventHandle event);
  int (*event_record)(EventHandle event, StreamHandle stream);
  int (*event_record_with_flags)(EventHandle event, StreamHandle stream, unsigned flags);
  int (*event_query)(EventHandle event);
  int (*event_synchronize)(EventHandle event);
  int (*event_elapsed_time)(float* milliseconds, EventHandle start, EventHandle end);

  int (*module_load_data)(ModuleHandle* module, const void* image);
  int (*module_unload)(ModuleHandle module);
  int (*module_get_function)(FunctionHandle* function, ModuleHandle module, const char* name);
  int (*module_get_global)(DevicePtr* pointer, size_t* bytes, ModuleHandle module, const char* name);
  int (*func_get_attribute)(int* value, int attribute, FunctionHandle function);
  int (*func_set_attribute)(FunctionHandle function, int attribute, int value);
  int (*occupancy_max_active_blocks)(int* blocks, FunctionHandle function, int block_size,
                                     size_t dynamic_shared_bytes);  // …PerMultiprocessor
  int (*launch_kernel_ex)(const LaunchConfig* config, FunctionHandle function, void** parameters, void** extra);
  int (*tensor_map_encode_tiled)(TensorMap* map, int type, uint32_t rank, void* address, const uint64_t* extents,
                                 const uint64_t* strides, const uint32_t* box, const uint32_t* steps, int interleave,
                                 int swizzle, int promotion, int fill);  // strides in bytes, of all axes but the first
  int (*launch_host_func)(StreamHandle stream, void (*function)(void*), void* data);

  int (*graph_instantiate)(GraphExecHandle* exec, GraphHandle graph, unsigned long long flags);  // …WithFlags
  int (*graph_upload)(GraphExecHandle exec, StreamHandle stream);
  int (*graph_launch)(GraphExecHandle exec, StreamHandle stream);
  int (*graph_exec_destroy)(GraphExecHandle exec);
  int (*graph_destroy)(GraphHandle graph);
  int (*graph_get_nodes)(GraphHandle graph, GraphNodeHandle* nodes, size_t* count);
};

/// Returns whether there is a working driver and at least one device; `why` gets what is missing.
bool available(std::string* why = nullptr);
/// Returns the functions; throws std::runtime_error "[cuda] …" without a working driver.
const Driver& driver();
/// Returns the driver's version (not the toolkit's): 13000 for CUDA 13.0, 0 without a driver.
int driver_version();
/// Throws std::runtime_error "[cuda] <call> failed: <name>: <text> (<what>)" unless `result` is success. `what` names
/// the kernel and its shapes.
void check_result(int result, const char* call, const std::string& what = "");
/// Returns the text of a result: "CUDA_ERROR_OUT_OF_MEMORY: out of memory".
std::string error_text(int result);

}  // namespace weft::target::cuda
