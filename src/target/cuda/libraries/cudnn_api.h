#pragma once
// The part of cuDNN's backend interface (graphs of operations) that Weft needs, in declarations of our own.
// tests/target/cuda/cuda_libraries_test.cpp compares them with its header.
#include <cstddef>
#include <cstdint>

#include "target/cuda/driver/driver.h"

namespace weft::target::cuda::cudnn {

using Handle = struct OpaqueCudnn*;
using Backend = void*;  // a descriptor

enum DataType : int {
  type_float = 0,
  type_double = 1,
  type_half = 2,
  type_int32 = 4,
  type_bfloat16 = 9,
  type_boolean = 11
};

enum DescriptorType : int {
  pointwise_descriptor = 0,
  convolution_descriptor = 1,
  engine_descriptor = 2,
  enginecfg_descriptor = 3,
  engineheur_descriptor = 4,
  execution_plan_descriptor = 5,
  operation_convolution_forward = 10,
  operation_convolution_backward_filter = 11,
  operation_convolution_backward_data = 12,
  operation_pointwise = 13,
  operationgraph_descriptor = 15,
  variant_pack_descriptor = 16,
  tensor_descriptor = 17,
  matmul_descriptor = 18,
  operation_matmul = 19,
  reduction_descriptor = 21,
  operation_reduction = 22,
  operation_reshape = 31,
};

enum AttributeType : int {
  of_handle = 0,
  of_data_type = 1,
  of_boolean = 2,
  of_int64 = 3,
  of_float = 4,
  of_void_ptr = 6,
  of_convolution_mode = 7,
  of_heur_mode = 8,
  of_numerical_note = 11,
  of_pointwise_mode = 14,
  of_backend_descriptor = 15,
  of_reduction_operator = 18,
  of_behavior_note = 19,
  of_char = 24,
};

enum Attribute : int {
  pointwise_mode = 0,
  pointwise_math_prec = 1,
  pointwise_axis = 9,
  convolution_comp_type = 100,
  convolution_conv_mode = 101,
  convolution_dilations = 102,
  convolution_filter_strides = 103,
  convolution_post_paddings = 104,
  convolution_pre_paddings = 105,
  convolution_spatial_dims = 106,
  engineheur_mode = 200,
  engineheur_operation_graph = 201,
  engineheur_results = 202,
  enginecfg_engine = 300,
  execution_plan_handle = 400,
  execution_plan_engine_config = 401,
  execution_plan_workspace_size = 402,
  execution_plan_json_representation = 405,
  convolution_forward_alpha = 700,
  convolution_forward_beta = 701,
  convolution_forward_conv_desc = 702,
  convolution_forward_w = 703,
  convolution_forward_x = 704,
  convolution_forward_y = 705,
  convolution_bwd_data_alpha = 706,
  convolution_bwd_data_beta = 707,
  convolution_bwd_data_conv_desc = 708,
  convolution_bwd_data_w = 709,
  convolution_bwd_data_dx = 710,
  convolution_bwd_data_dy = 711,
  convolution_bwd_filter_alpha = 712,
  convolution_bwd_filter_beta = 713,
  convolution_bwd_filter_conv_desc = 714,
  convolution_bwd_filter_dw = 715,
  convolution_bwd_filter_x = 716,
  convolution_bwd_filter_dy = 717,
  pointwise_pw_descriptor = 750,
  pointwise_xdesc = 751,
  pointwise_bdesc = 752,
  pointwise_ydesc = 753,
  pointwise_alpha1 = 754,
  pointwise_alpha2 = 755,
  pointwise_tdesc = 758,
  operationgraph_handle = 800,
  operationgraph_ops = 801,
  tensor_byte_alignment = 900,
  tensor_data_type = 901,
  tensor_dimensions = 902,
  tensor_strides = 903,
  tensor_unique_id = 906,
  tensor_is_virtual = 907,
  tensor_is_by_value = 908,
  variant_pack_unique_ids = 1000,
  variant_pack_data_pointers = 1001,
  variant_pack_workspace = 1003,
  engine_global_index = 1301,
  engine_numerical_note = 1303,
  engine_behavior_note = 1305,
  matmul_comp_type = 1500,
  matmul_adesc = 1520,
  matmul_bdesc = 1521,
  matmul_cdesc = 1522,
  matmul_desc = 1523,
  reduction_operator = 1600,
  reduction_comp_type = 1601,
  reduction_xdesc = 1610,
  reduction_ydesc = 1611,
  reduction_desc = 1612,
  reshape_xdesc = 2200,
  reshape_ydesc = 2201,
};

enum PointwiseMode : int {
  pointwise_add = 0,
  pointwise_mul = 1,
  pointwise_div = 6,
  pointwise_sub = 9,
  pointwise_exp = 13,
  pointwise_log = 15,
  pointwise_identity = 21,
  pointwise_cmp_ge = 303,
  pointwise_gen_index = 501,
  pointwise_binary_select = 601,
};
enum Reduction : int { reduce_add = 0, reduce_max = 3 };
enum HeurMode : int { heur_fallback = 2, heur_a = 3 };
enum NumericalNote : int {
  note_tensor_core = 0,
  note_down_convert_inputs = 1,
  note_reduced_precision_reduction = 2,
  note_nondeterministic = 4,
  note_count = 10
};
enum BehaviorNote : int { note_runtime_compilation = 0, behavior_count = 5 };
enum ConvolutionMode : int { true_convolution = 0, cross_correlation = 1 };  // with the kernel reversed; as stored

struct Api {
  size_t (*version)();
  const char* (*error_string)(int status);
  void (*last_error)(char* message, size_t bytes);
  int (*create)(Handle* handle);
  int (*set_stream)(Handle handle, StreamHandle stream);
  int (*create_descriptor)(int type, Backend* descriptor);
  int (*destroy_descriptor)(Backend descriptor);
  int (*finalize)(Backend descriptor);
  int (*set_attribute)(Backend descriptor, int name, int type, int64_t count, const void* elements);
  int (*get_attribute)(Backend descriptor, int name, int type, int64_t wanted, int64_t* count, void* elements);
  int (*execute)(Handle handle, Backend plan, Backend variant_pack);
};

/// Calls visit(pointer, name) for each function.
template <class Visit>
void for_each_function(Api& api, Visit&& visit) {
  visit(api.version, "cudnnGetVersion");
  visit(api.error_string, "cudnnGetErrorString");
  visit(api.last_error, "cudnnGetLastErrorString");
  visit(api.create, "cudnnCreate");
  visit(api.set_stream, "cudnnSetStream");
  visit(api.create_descriptor, "cudnnBackendCreateDescriptor");
  visit(api.destroy_descriptor, "cudnnBackendDestroyDescriptor");
  visit(api.finalize, "cudnnBackendFinalize");
  visit(api.set_attribute, "cudnnBackendSetAttribute");
  visit(api.get_attribute, "cudnnBackendGetAttribute");
  visit(api.execute, "cudnnBackendExecute");
}

/// Returns the functions; null if the library is missing (library.h says why), lacks one, or is older than 9.0.
const Api* api();

}  // namespace weft::target::cuda::cudnn
