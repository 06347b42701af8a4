#pragma once
// The names by which libcuda.so.1 exports the functions of `Driver`, in the versions that driver.h declares.
#include "target/cuda/driver/driver.h"

namespace weft::target::cuda {

/// Calls visit(pointer, name) for each function.
template <class Visit>
void for_each_function(Driver& d, Visit&& visit) {
  visit(d.init, "cuInit");
  visit(d.driver_get_version, "cuDriverGetVersion");
  visit(d.get_error_name, "cuGetErrorName");
  visit(d.get_error_string, "cuGetErrorString");
  visit(d.device_get_count, "cuDeviceGetCount");
  visit(d.device_get, "cuDeviceGet");
  visit(d.device_get_name, "cuDeviceGetName");
  visit(d.device_get_uuid, "cuDeviceGetUuid");
  visit(d.device_get_attribute, "cuDeviceGetAttribute");
  visit(d.device_total_mem, "cuDeviceTotalMem_v2");
  visit(d.device_can_access_peer, "cuDeviceCanAccessPeer");
  visit(d.primary_ctx_retain, "cuDevicePrimaryCtxRetain");
  visit(d.primary_ctx_release, "cuDevicePrimaryCtxRelease_v2");
  visit(d.ctx_set_current, "cuCtxSetCurrent");
  visit(d.ctx_get_current, "cuCtxGetCurrent");
  visit(d.ctx_synchronize, "cuCtxSynchronize");
  visit(d.ctx_enable_peer_access, "cuCtxEnablePeerAccess");
  visit(d.mem_alloc, "cuMemAlloc_v2");
  visit(d.mem_free, "cuMemFree_v2");
  visit(d.mem_get_info, "cuMemGetInfo_v2");
  visit(d.mem_alloc_host, "cuMemAllocHost_v2");
  visit(d.mem_free_host, "cuMemFreeHost");
  visit(d.memcpy_htod_async, "cuMemcpyHtoDAsync_v2");
  visit(d.memcpy_dtoh_async, "cuMemcpyDtoHAsync_v2");
  visit(d.memcpy_dtod_async, "cuMemcpyDtoDAsync_v2");
  visit(d.memcpy_peer_async, "cuMemcpyPeerAsync");
  visit(d.memset_d8_async, "cuMemsetD8Async");
  visit(d.stream_create, "cuStreamCreate");
  visit(d.stream_destroy, "cuStreamDestroy_v2");
  visit(d.stream_synchronize, "cuStreamSynchronize");
  visit(d.stream_query, "cuStreamQuery");
  visit(d.stream_wait_event, "cuStreamWaitEvent");
  visit(d.stream_begin_capture, "cuStreamBeginCapture_v2");
  visit(d.stream_end_capture, "cuStreamEndCapture");
  visit(d.stream_is_capturing, "cuStreamIsCapturing");
  visit(d.thread_exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
  visit(d.event_create, "cuEventCreate");
  visit(d.event_destroy, "cuEventDestroy_v2");
  visit(d.event_record, "cuEventRecord");
  visit(d.event_record_with_flags, "cuEventRecordWithFlags");
  visit(d.event_query, "cuEventQuery");
  visit(d.event_synchronize, "cuEventSynchronize");
  visit(d.event_elapsed_time, "cuEventElapsedTime");
  visit(d.module_load_data, "cuModuleLoadData");
  visit(d.module_unload, "cuModuleUnload");
  visit(d.module_get_function, "cuModuleGetFunction");
  visit(d.module_get_global, "cuModuleGetGlobal_v2");
  visit(d.func_get_attribute, "cuFuncGetAttribute");
  visit(d.func_set_attribute, "cuFuncSetAttribute");
  visit(d.occupancy_max_active_blocks, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  visit(d.launch_kernel_ex, "cuLaunchKernelEx");
  visit(d.tensor_map_encode_tiled, "cuTensorMapEncodeTiled");
  visit(d.launch_host_func, "cuLaunchHostFunc");
  visit(d.graph_instantiate, "cuGraphInstantiateWithFlags");
  visit(d.graph_upload, "cuGraphUpload");
  visit(d.graph_launch, "cuGraphLaunch");
  visit(d.graph_exec_destroy, "cuGraphExecDestroy");
  visit(d.graph_destroy, "cuGraphDestroy");
  visit(d.graph_get_nodes, "cuGraphGetNodes");
}

}  // namespace weft::target::cuda
