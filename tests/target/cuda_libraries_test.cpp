// Weft's own declarations of CUDA's libraries against their headers, where those are installed.
#if __has_include(<cublasLt.h>) && __has_include(<cuda.h>)
#include <cublasLt.h>
#include <doctest/doctest.h>

#include <map>
#include <string>

#include "cuda_abi.h"
#include "target/cuda/cublaslt_api.h"

namespace lt = weft::target::cuda::lt;

TEST_CASE("cublaslt: functions have the names and parameters of cublasLt.h") {
  const std::map<std::string, std::string> header = {
      WEFT_ABI(cublasLtCreate), WEFT_ABI(cublasLtGetVersion), WEFT_ABI(cublasLtGetStatusString), WEFT_ABI(cublasLtMatmulDescCreate),
      WEFT_ABI(cublasLtMatmulDescDestroy), WEFT_ABI(cublasLtMatmulDescSetAttribute), WEFT_ABI(cublasLtMatrixLayoutCreate), WEFT_ABI(cublasLtMatrixLayoutDestroy),
      WEFT_ABI(cublasLtMatrixLayoutSetAttribute), WEFT_ABI(cublasLtMatmulPreferenceCreate), WEFT_ABI(cublasLtMatmulPreferenceDestroy),
      WEFT_ABI(cublasLtMatmulPreferenceSetAttribute), WEFT_ABI(cublasLtMatmulAlgoGetHeuristic), WEFT_ABI(cublasLtMatmulAlgoCheck),
      WEFT_ABI(cublasLtMatmulAlgoConfigGetAttribute), WEFT_ABI(cublasLtMatmul),
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
  const auto same = [](auto ours, auto theirs) { CHECK(static_cast<long long>(ours) == static_cast<long long>(theirs)); };
  same(lt::r_32f, CUDA_R_32F), same(lt::r_64f, CUDA_R_64F), same(lt::r_16f, CUDA_R_16F), same(lt::r_16bf, CUDA_R_16BF), same(lt::r_8i, CUDA_R_8I);
  same(lt::r_32i, CUDA_R_32I), same(lt::r_8f_e4m3, CUDA_R_8F_E4M3), same(lt::r_8f_e5m2, CUDA_R_8F_E5M2);
  same(lt::compute_32f, CUBLAS_COMPUTE_32F), same(lt::compute_64f, CUBLAS_COMPUTE_64F), same(lt::compute_32i, CUBLAS_COMPUTE_32I);
  same(lt::compute_32f_fast_tf32, CUBLAS_COMPUTE_32F_FAST_TF32);
  same(lt::op_n, CUBLAS_OP_N), same(lt::op_t, CUBLAS_OP_T);
  same(lt::epilogue_default, CUBLASLT_EPILOGUE_DEFAULT), same(lt::epilogue_relu, CUBLASLT_EPILOGUE_RELU), same(lt::epilogue_bias, CUBLASLT_EPILOGUE_BIAS);
  same(lt::epilogue_gelu, CUBLASLT_EPILOGUE_GELU), same(lt::epilogue_bgrad_a, CUBLASLT_EPILOGUE_BGRADA), same(lt::epilogue_bgrad_b, CUBLASLT_EPILOGUE_BGRADB);
  same(lt::epilogue_relu | lt::epilogue_bias, CUBLASLT_EPILOGUE_RELU_BIAS), same(lt::epilogue_gelu | lt::epilogue_bias, CUBLASLT_EPILOGUE_GELU_BIAS);
  same(lt::reduction_in_place, CUBLASLT_REDUCTION_SCHEME_INPLACE), same(lt::reduction_compute_type, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  same(lt::matmul_transa, CUBLASLT_MATMUL_DESC_TRANSA), same(lt::matmul_transb, CUBLASLT_MATMUL_DESC_TRANSB), same(lt::matmul_epilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
  same(lt::matmul_bias_pointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER), same(lt::matmul_bias_data_type, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
  same(lt::layout_batch_count, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT), same(lt::layout_strided_batch_offset, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
  same(lt::preference_max_workspace_bytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  same(lt::preference_reduction_scheme_mask, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
  same(lt::preference_min_alignment_a, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES), same(lt::preference_min_alignment_b, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
  same(lt::preference_min_alignment_c, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES), same(lt::preference_min_alignment_d, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
  same(lt::algorithm_tile_id, CUBLASLT_ALGO_CONFIG_TILE_ID), same(lt::algorithm_splitk, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
  same(sizeof(lt::Algorithm), sizeof(cublasLtMatmulAlgo_t)), same(sizeof(lt::HeuristicResult), sizeof(cublasLtMatmulHeuristicResult_t));
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
