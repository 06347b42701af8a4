// Weft's own declarations of CUDA's libraries against their headers, where those are installed.
#if __has_include(<cublasLt.h>) && __has_include(<cuda.h>)
#include <cublasLt.h>
#include <doctest/doctest.h>

#include <map>
#include <string>

#include "target/cuda/cuda_abi.h"
#include "target/cuda/libraries/cublaslt_api.h"

namespace lt = weft::target::cuda::lt;

TEST_CASE("cublaslt: functions have the names and parameters of cublasLt.h") {
  const std::map<std::string, std::string> header = {
      WEFT_ABI(cublasLtCreate),
      WEFT_ABI(cublasLtGetVersion),
      WEFT_ABI(cublasLtGetStatusString),
      WEFT_ABI(cublasLtMatmulDescCreate),
      WEFT_ABI(cublasLtMatmulDescDestroy),
      WEFT_ABI(cublasLtMatmulDescSetAttribute),
      WEFT_ABI(cublasLtMatrixLayoutCreate),
      WEFT_ABI(cublasLtMatrixLayoutDestroy),
      WEFT_ABI(cublasLtMatrixLayoutSetAttribute),
      WEFT_ABI(cublasLtMatmulPreferenceCreate),
      WEFT_ABI(cublasLtMatmulPreferenceDestroy),
      WEFT_ABI(cublasLtMatmulPreferenceSetAttribute),
      WEFT_ABI(cublasLtMatmulAlgoGetHeuristic),
      WEFT_ABI(cublasLtMatmulAlgoCheck),
      WEFT_ABI(cublasLtMatmulAlgoConfigGetAttribute),
      WEFT_ABI(cublasLtMatmul),
  };
  lt::Api api{};
  size_t functions = 0;
  lt::for_each_function(api, [&](auto* function, const char* name) {
    ++functions;
    CAPTURE(name);
    REQUIRE(header.count(name) == 1);
    CHECK(weft::test::abi(function) == header.at(name));
  });
  CHECK(functions == header.size());
  CHECK(functions * sizeof(void*) == sizeof(lt::Api));
}

TEST_CASE("cublaslt: constants and structures are those of cublasLt.h") {
  const auto same = [](auto ours, auto theirs) {
    CHECK(static_cast<long long>(ours) == static_cast<long long>(theirs));
  };
  same(lt::r_32f, CUDA_R_32F), same(lt::r_64f, CUDA_R_64F), same(lt::r_16f, CUDA_R_16F), same(lt::r_16bf, CUDA_R_16BF),
      same(lt::r_8i, CUDA_R_8I);
  same(lt::r_32i, CUDA_R_32I), same(lt::r_8f_e4m3, CUDA_R_8F_E4M3), same(lt::r_8f_e5m2, CUDA_R_8F_E5M2);
  same(lt::compute_32f, CUBLAS_COMPUTE_32F), same(lt::compute_64f, CUBLAS_COMPUTE_64F),
      same(lt::compute_32i, CUBLAS_COMPUTE_32I);
  same(lt::compute_32f_fast_tf32, CUBLAS_COMPUTE_32F_FAST_TF32);
  same(lt::op_n, CUBLAS_OP_N), same(lt::op_t, CUBLAS_OP_T);
  same(lt::epilogue_default, CUBLASLT_EPILOGUE_DEFAULT), same(lt::epilogue_relu, CUBLASLT_EPILOGUE_RELU),
      same(lt::epilogue_bias, CUBLASLT_EPILOGUE_BIAS);
  same(lt::epilogue_gelu, CUBLASLT_EPILOGUE_GELU);
  same(lt::epilogue_gelu_aux, CUBLASLT_EPILOGUE_GELU_AUX), same(lt::epilogue_dgelu, CUBLASLT_EPILOGUE_DGELU);
  same(lt::epilogue_gelu_aux | lt::epilogue_bias, CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
  same(lt::matmul_aux_pointer, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER),
      same(lt::matmul_aux_leading, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
  same(lt::matmul_a_scale_pointer, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER),
      same(lt::matmul_b_scale_pointer, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
  same(lt::epilogue_relu | lt::epilogue_bias, CUBLASLT_EPILOGUE_RELU_BIAS),
      same(lt::epilogue_gelu | lt::epilogue_bias, CUBLASLT_EPILOGUE_GELU_BIAS);
  same(lt::reduction_in_place, CUBLASLT_REDUCTION_SCHEME_INPLACE),
      same(lt::reduction_compute_type, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  same(lt::matmul_transa, CUBLASLT_MATMUL_DESC_TRANSA), same(lt::matmul_transb, CUBLASLT_MATMUL_DESC_TRANSB),
      same(lt::matmul_epilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
  same(lt::matmul_bias_pointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER),
      same(lt::matmul_bias_data_type, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
  same(lt::layout_batch_count, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT),
      same(lt::layout_strided_batch_offset, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
  same(lt::preference_max_workspace_bytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  same(lt::preference_reduction_scheme_mask, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
  same(lt::preference_min_alignment_a, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES),
      same(lt::preference_min_alignment_b, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
  same(lt::preference_min_alignment_c, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES),
      same(lt::preference_min_alignment_d, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
  same(lt::algorithm_tile_id, CUBLASLT_ALGO_CONFIG_TILE_ID),
      same(lt::algorithm_splitk, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
  same(sizeof(lt::Algorithm), sizeof(cublasLtMatmulAlgo_t)),
      same(sizeof(lt::HeuristicResult), sizeof(cublasLtMatmulHeuristicResult_t));
  same(offsetof(lt::HeuristicResult, workspace_bytes), offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
  same(offsetof(lt::HeuristicResult, state), offsetof(cublasLtMatmulHeuristicResult_t, state));
}

TEST_CASE("cublaslt: tiles have the names of their numbers") {
  CHECK(lt::tile_name(CUBLASLT_MATMUL_TILE_UNDEFINED) == "auto");
  CHECK(lt::tile_name(CUBLASLT_MATMUL_TILE_8x8) == "8x8");
  CHECK(lt::tile_name(CUBLASLT_MATMUL_TILE_64x64) == "64x64");
  CHECK(lt::tile_name(CUBLASLT_MATMUL_TILE_128x128) == "128x128");
  CHECK(lt::tile_name(CUBLASLT_MATMUL_TILE_128x256) == "128x256");
  CHECK(lt::tile_name(CUBLASLT_MATMUL_TILE_512x64) == "512x64");
  CHECK(lt::tile_name(CUBLASLT_MATMUL_TILE_128x192) == "128x192");
  CHECK(lt::tile_name(CUBLASLT_MATMUL_TILE_256x32) == "256x32");
  CHECK(lt::tile_name(60000) == "tile 60000");
}
#endif

#if __has_include(<cufft.h>) && __has_include(<cuda.h>)
#include <cufft.h>
#include <doctest/doctest.h>

#include <map>
#include <string>

#include "target/cuda/cuda_abi.h"
#include "target/cuda/libraries/cufft_api.h"

TEST_CASE("cufft: functions and constants are those of cufft.h") {
  namespace cufft = weft::target::cuda::cufft;
  const std::map<std::string, std::string> header = {
      WEFT_ABI(cufftCreate),         WEFT_ABI(cufftDestroy),     WEFT_ABI(cufftSetAutoAllocation),
      WEFT_ABI(cufftMakePlanMany64), WEFT_ABI(cufftSetWorkArea), WEFT_ABI(cufftSetStream),
      WEFT_ABI(cufftExecC2C),        WEFT_ABI(cufftExecR2C),     WEFT_ABI(cufftExecC2R),
      WEFT_ABI(cufftExecZ2Z),        WEFT_ABI(cufftExecD2Z),     WEFT_ABI(cufftExecZ2D),
  };
  cufft::Api api{};
  size_t functions = 0;
  cufft::for_each_function(api, [&](auto* function, const char* name) {
    ++functions;
    CAPTURE(name);
    REQUIRE(header.count(name) == 1);
    CHECK(weft::test::abi(function) == header.at(name));
  });
  CHECK(functions == header.size());
  CHECK(functions * sizeof(void*) == sizeof(cufft::Api));
  const auto same = [](auto ours, auto theirs) { CHECK(static_cast<int>(ours) == static_cast<int>(theirs)); };
  same(cufft::r2c, CUFFT_R2C), same(cufft::c2r, CUFFT_C2R), same(cufft::c2c, CUFFT_C2C), same(cufft::d2z, CUFFT_D2Z),
      same(cufft::z2d, CUFFT_Z2D);
  same(cufft::z2z, CUFFT_Z2Z), same(cufft::forward, CUFFT_FORWARD), same(cufft::inverse, CUFFT_INVERSE);
}
#endif

#if __has_include(<cusolverDn.h>) && __has_include(<cublas_v2.h>) && __has_include(<cuda.h>)
#include <cublas_v2.h>
#include <cusolverDn.h>
#include <doctest/doctest.h>

#include <map>
#include <string>

#include "target/cuda/cuda_abi.h"
#include "target/cuda/libraries/cusolver_api.h"

TEST_CASE("cusolver: functions and constants are those of cusolverDn.h and cublas_v2.h") {
  namespace cusolver = weft::target::cuda::cusolver;
#define WEFT_EACH(real, complex)                                                            \
  WEFT_ABI(cusolverDnS##real), WEFT_ABI(cusolverDnD##real), WEFT_ABI(cusolverDnC##complex), \
      WEFT_ABI(cusolverDnZ##complex)
#define WEFT_SOLVER(name) WEFT_EACH(name, name)
#define WEFT_BLAS(name) \
  WEFT_ABI(cublasS##name), WEFT_ABI(cublasD##name), WEFT_ABI(cublasC##name), WEFT_ABI(cublasZ##name)
  const std::map<std::string, std::string> header = {
    WEFT_ABI(cusolverDnCreate),
    WEFT_ABI(cusolverDnSetStream),
    WEFT_ABI(cusolverDnCreateGesvdjInfo),
    WEFT_ABI(cublasCreate),
    WEFT_ABI(cublasSetStream),
    WEFT_BLAS(trsm),
    WEFT_SOLVER(potrf_bufferSize),
    WEFT_SOLVER(potrf),
    WEFT_SOLVER(getrf_bufferSize),
    WEFT_SOLVER(getrf),
    WEFT_SOLVER(laswp),
    WEFT_SOLVER(geqrf_bufferSize),
    WEFT_SOLVER(geqrf),
    WEFT_EACH(orgqr_bufferSize, ungqr_bufferSize),
    WEFT_EACH(orgqr, ungqr),
    WEFT_EACH(syevd_bufferSize, heevd_bufferSize),
    WEFT_EACH(syevd, heevd),
    WEFT_SOLVER(gesvdj_bufferSize),
    WEFT_SOLVER(gesvdj),
    WEFT_SOLVER(potrfBatched),
    WEFT_EACH(syevjBatched_bufferSize, heevjBatched_bufferSize),
    WEFT_EACH(syevjBatched, heevjBatched),
    WEFT_SOLVER(gesvdjBatched_bufferSize),
    WEFT_SOLVER(gesvdjBatched),
    WEFT_ABI(cusolverDnCreateSyevjInfo),
    WEFT_BLAS(trsmBatched),
    WEFT_BLAS(getrfBatched),
    WEFT_BLAS(geqrfBatched),
#if CUSOLVER_VERSION >= 11701
    WEFT_ABI(cusolverDnCreateParams),
    WEFT_ABI(cusolverDnXsyevBatched_bufferSize),
    WEFT_ABI(cusolverDnXsyevBatched),
#endif
  };
#undef WEFT_EACH
#undef WEFT_SOLVER
#undef WEFT_BLAS
  cusolver::Api api{};
  size_t functions = 0;
  const auto visit = [&](auto* function, const char* name) {
    ++functions;
    CAPTURE(name);
    REQUIRE(header.count(name) == 1);
    CHECK(weft::test::abi(function) == header.at(name));
  };
  cusolver::for_each_function(api, visit);
  CHECK(functions * sizeof(void*) + sizeof(cusolver::Newer) == sizeof(cusolver::Api));
#if CUSOLVER_VERSION >= 11701
  cusolver::for_each_function(api.newer, visit);
  CHECK(static_cast<int>(cusolver::real_32) == static_cast<int>(CUDA_R_32F));
  CHECK(static_cast<int>(cusolver::real_64) == static_cast<int>(CUDA_R_64F));
  CHECK(static_cast<int>(cusolver::complex_32) == static_cast<int>(CUDA_C_32F));
  CHECK(static_cast<int>(cusolver::complex_64) == static_cast<int>(CUDA_C_64F));
#endif
  CHECK(functions == header.size());
  const auto same = [](auto ours, auto theirs) { CHECK(static_cast<int>(ours) == static_cast<int>(theirs)); };
  same(cusolver::lower, CUBLAS_FILL_MODE_LOWER), same(cusolver::upper, CUBLAS_FILL_MODE_UPPER),
      same(cusolver::right, CUBLAS_SIDE_RIGHT), same(cusolver::left, CUBLAS_SIDE_LEFT);
  same(cusolver::plain, CUBLAS_OP_N), same(cusolver::adjoint, CUBLAS_OP_C),
      same(cusolver::stored, CUBLAS_DIAG_NON_UNIT), same(cusolver::ones, CUBLAS_DIAG_UNIT);
  same(cusolver::no_vectors, CUSOLVER_EIG_MODE_NOVECTOR), same(cusolver::vectors, CUSOLVER_EIG_MODE_VECTOR);
}
#endif

#if __has_include(<cudnn_graph.h>) && __has_include(<cuda.h>)
#include <cudnn_graph.h>
#include <doctest/doctest.h>

#include <map>
#include <string>

#include "target/cuda/cuda_abi.h"
#include "target/cuda/libraries/cudnn_api.h"

namespace cudnn = weft::target::cuda::cudnn;

TEST_CASE("cudnn: functions have the names and parameters of cudnn_graph.h") {
  const std::map<std::string, std::string> header = {
      WEFT_ABI(cudnnGetVersion),
      WEFT_ABI(cudnnGetErrorString),
      WEFT_ABI(cudnnGetLastErrorString),
      WEFT_ABI(cudnnCreate),
      WEFT_ABI(cudnnSetStream),
      WEFT_ABI(cudnnBackendCreateDescriptor),
      WEFT_ABI(cudnnBackendDestroyDescriptor),
      WEFT_ABI(cudnnBackendFinalize),
      WEFT_ABI(cudnnBackendSetAttribute),
      WEFT_ABI(cudnnBackendGetAttribute),
      WEFT_ABI(cudnnBackendExecute),
  };
  cudnn::Api api{};
  size_t functions = 0;
  cudnn::for_each_function(api, [&](auto* function, const char* name) {
    ++functions;
    CAPTURE(name);
    REQUIRE(header.count(name) == 1);
    CHECK(weft::test::abi(function) == header.at(name));
  });
  CHECK(functions == header.size());
  CHECK(functions * sizeof(void*) == sizeof(cudnn::Api));
}

TEST_CASE("cudnn: constants are those of cudnn_graph.h") {
  const auto same = [](auto ours, auto theirs) { CHECK(static_cast<int>(ours) == static_cast<int>(theirs)); };
  same(cudnn::type_float, CUDNN_DATA_FLOAT), same(cudnn::type_double, CUDNN_DATA_DOUBLE),
      same(cudnn::type_half, CUDNN_DATA_HALF);
  same(cudnn::type_int32, CUDNN_DATA_INT32), same(cudnn::type_bfloat16, CUDNN_DATA_BFLOAT16),
      same(cudnn::type_boolean, CUDNN_DATA_BOOLEAN);
  same(cudnn::pointwise_descriptor, CUDNN_BACKEND_POINTWISE_DESCRIPTOR),
      same(cudnn::convolution_descriptor, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  same(cudnn::engine_descriptor, CUDNN_BACKEND_ENGINE_DESCRIPTOR),
      same(cudnn::enginecfg_descriptor, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  same(cudnn::engineheur_descriptor, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR),
      same(cudnn::execution_plan_descriptor, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  same(cudnn::operation_convolution_forward, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  same(cudnn::operation_convolution_backward_filter, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
  same(cudnn::operation_convolution_backward_data, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
  same(cudnn::operation_pointwise, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR),
      same(cudnn::operationgraph_descriptor, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  same(cudnn::variant_pack_descriptor, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR),
      same(cudnn::tensor_descriptor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  same(cudnn::matmul_descriptor, CUDNN_BACKEND_MATMUL_DESCRIPTOR),
      same(cudnn::operation_matmul, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  same(cudnn::reduction_descriptor, CUDNN_BACKEND_REDUCTION_DESCRIPTOR),
      same(cudnn::operation_reduction, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  same(cudnn::operation_reshape, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  same(cudnn::of_handle, CUDNN_TYPE_HANDLE), same(cudnn::of_data_type, CUDNN_TYPE_DATA_TYPE),
      same(cudnn::of_boolean, CUDNN_TYPE_BOOLEAN);
  same(cudnn::of_int64, CUDNN_TYPE_INT64), same(cudnn::of_float, CUDNN_TYPE_FLOAT),
      same(cudnn::of_void_ptr, CUDNN_TYPE_VOID_PTR);
  same(cudnn::of_convolution_mode, CUDNN_TYPE_CONVOLUTION_MODE), same(cudnn::of_heur_mode, CUDNN_TYPE_HEUR_MODE);
  same(cudnn::of_numerical_note, CUDNN_TYPE_NUMERICAL_NOTE), same(cudnn::of_pointwise_mode, CUDNN_TYPE_POINTWISE_MODE);
  same(cudnn::of_backend_descriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR),
      same(cudnn::of_reduction_operator, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);
  same(cudnn::of_behavior_note, CUDNN_TYPE_BEHAVIOR_NOTE), same(cudnn::of_char, CUDNN_TYPE_CHAR);
  same(cudnn::execution_plan_json_representation, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
  same(cudnn::pointwise_mode, CUDNN_ATTR_POINTWISE_MODE),
      same(cudnn::pointwise_math_prec, CUDNN_ATTR_POINTWISE_MATH_PREC);
  same(cudnn::pointwise_axis, CUDNN_ATTR_POINTWISE_AXIS),
      same(cudnn::convolution_comp_type, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
  same(cudnn::convolution_conv_mode, CUDNN_ATTR_CONVOLUTION_CONV_MODE),
      same(cudnn::convolution_dilations, CUDNN_ATTR_CONVOLUTION_DILATIONS);
  same(cudnn::convolution_filter_strides, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  same(cudnn::convolution_post_paddings, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS),
      same(cudnn::convolution_pre_paddings, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  same(cudnn::convolution_spatial_dims, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS),
      same(cudnn::engineheur_mode, CUDNN_ATTR_ENGINEHEUR_MODE);
  same(cudnn::engineheur_operation_graph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH),
      same(cudnn::engineheur_results, CUDNN_ATTR_ENGINEHEUR_RESULTS);
  same(cudnn::enginecfg_engine, CUDNN_ATTR_ENGINECFG_ENGINE),
      same(cudnn::execution_plan_engine_config, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  same(cudnn::execution_plan_workspace_size, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  same(cudnn::convolution_forward_alpha, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
  same(cudnn::convolution_forward_beta, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
  same(cudnn::convolution_forward_conv_desc, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
  same(cudnn::convolution_forward_w, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
  same(cudnn::convolution_forward_x, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
  same(cudnn::convolution_forward_y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
  same(cudnn::convolution_bwd_data_alpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA);
  same(cudnn::convolution_bwd_data_beta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
  same(cudnn::convolution_bwd_data_conv_desc, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC);
  same(cudnn::convolution_bwd_data_w, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
  same(cudnn::convolution_bwd_data_dx, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
  same(cudnn::convolution_bwd_data_dy, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
  same(cudnn::convolution_bwd_filter_alpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA);
  same(cudnn::convolution_bwd_filter_beta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
  same(cudnn::convolution_bwd_filter_conv_desc, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
  same(cudnn::convolution_bwd_filter_dw, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
  same(cudnn::convolution_bwd_filter_x, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X);
  same(cudnn::convolution_bwd_filter_dy, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
  same(cudnn::pointwise_pw_descriptor, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR),
      same(cudnn::pointwise_xdesc, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
  same(cudnn::pointwise_bdesc, CUDNN_ATTR_OPERATION_POINTWISE_BDESC),
      same(cudnn::pointwise_ydesc, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  same(cudnn::pointwise_alpha1, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1),
      same(cudnn::pointwise_alpha2, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2);
  same(cudnn::pointwise_tdesc, CUDNN_ATTR_OPERATION_POINTWISE_TDESC),
      same(cudnn::operationgraph_ops, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  same(cudnn::tensor_byte_alignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT),
      same(cudnn::tensor_data_type, CUDNN_ATTR_TENSOR_DATA_TYPE);
  same(cudnn::tensor_dimensions, CUDNN_ATTR_TENSOR_DIMENSIONS), same(cudnn::tensor_strides, CUDNN_ATTR_TENSOR_STRIDES);
  same(cudnn::tensor_unique_id, CUDNN_ATTR_TENSOR_UNIQUE_ID),
      same(cudnn::tensor_is_virtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  same(cudnn::tensor_is_by_value, CUDNN_ATTR_TENSOR_IS_BY_VALUE),
      same(cudnn::variant_pack_unique_ids, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  same(cudnn::variant_pack_data_pointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS),
      same(cudnn::variant_pack_workspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  same(cudnn::engine_global_index, CUDNN_ATTR_ENGINE_GLOBAL_INDEX),
      same(cudnn::engine_numerical_note, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE),
      same(cudnn::engine_behavior_note, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE);
  same(cudnn::matmul_comp_type, CUDNN_ATTR_MATMUL_COMP_TYPE),
      same(cudnn::matmul_adesc, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
  same(cudnn::matmul_bdesc, CUDNN_ATTR_OPERATION_MATMUL_BDESC),
      same(cudnn::matmul_cdesc, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
  same(cudnn::matmul_desc, CUDNN_ATTR_OPERATION_MATMUL_DESC),
      same(cudnn::reduction_operator, CUDNN_ATTR_REDUCTION_OPERATOR);
  same(cudnn::reduction_comp_type, CUDNN_ATTR_REDUCTION_COMP_TYPE),
      same(cudnn::reduction_xdesc, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
  same(cudnn::reduction_ydesc, CUDNN_ATTR_OPERATION_REDUCTION_YDESC),
      same(cudnn::reduction_desc, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
  same(cudnn::reshape_xdesc, CUDNN_ATTR_OPERATION_RESHAPE_XDESC),
      same(cudnn::reshape_ydesc, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
  same(cudnn::pointwise_add, CUDNN_POINTWISE_ADD), same(cudnn::pointwise_mul, CUDNN_POINTWISE_MUL),
      same(cudnn::pointwise_div, CUDNN_POINTWISE_DIV);
  same(cudnn::pointwise_sub, CUDNN_POINTWISE_SUB), same(cudnn::pointwise_exp, CUDNN_POINTWISE_EXP),
      same(cudnn::pointwise_log, CUDNN_POINTWISE_LOG);
  same(cudnn::pointwise_identity, CUDNN_POINTWISE_IDENTITY), same(cudnn::pointwise_cmp_ge, CUDNN_POINTWISE_CMP_GE);
  same(cudnn::pointwise_gen_index, CUDNN_POINTWISE_GEN_INDEX),
      same(cudnn::pointwise_binary_select, CUDNN_POINTWISE_BINARY_SELECT);
  same(cudnn::reduce_add, CUDNN_REDUCE_TENSOR_ADD), same(cudnn::reduce_max, CUDNN_REDUCE_TENSOR_MAX);
  same(cudnn::heur_fallback, CUDNN_HEUR_MODE_FALLBACK), same(cudnn::heur_a, CUDNN_HEUR_MODE_A);
  same(cudnn::note_tensor_core, CUDNN_NUMERICAL_NOTE_TENSOR_CORE),
      same(cudnn::note_down_convert_inputs, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
  same(cudnn::note_reduced_precision_reduction, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
  same(cudnn::note_nondeterministic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC),
      same(cudnn::note_count, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  same(cudnn::note_runtime_compilation, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
  CHECK(cudnn::behavior_count >=
        CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);  // room for all; versions differ in how many there are
  same(cudnn::true_convolution, CUDNN_CONVOLUTION), same(cudnn::cross_correlation, CUDNN_CROSS_CORRELATION);
}
#endif
