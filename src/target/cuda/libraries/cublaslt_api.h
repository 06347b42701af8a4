#pragma once
// The part of cuBLASLt's interface that Weft needs, in declarations of our own.
// tests/target/cuda/cuda_libraries_test.cpp compares them with its header.
#include <cstddef>
#include <cstdint>
#include <string>

#include "target/cuda/driver/driver.h"

namespace weft::target::cuda::lt {

using Handle = struct OpaqueLt*;
using MatmulDesc = struct OpaqueMatmulDesc*;
using Layout = struct OpaqueLayout*;
using Preference = struct OpaquePreference*;

/// CUDA's element types (cudaDataType).
enum DataType : int32_t {
  r_32f = 0,
  r_64f = 1,
  r_16f = 2,
  r_8i = 3,
  r_32i = 10,
  r_16bf = 14,
  r_8f_e4m3 = 28,
  r_8f_e5m2 = 29
};
enum ComputeType : int32_t { compute_32f = 68, compute_64f = 70, compute_32i = 72, compute_32f_fast_tf32 = 77 };
enum Operation : int32_t { op_n = 0, op_t = 1 };
enum Epilogue : uint32_t {
  epilogue_default = 1,
  epilogue_relu = 2,
  epilogue_bias = 4,
  epilogue_gelu = 32,
  epilogue_gelu_aux = 160,
  epilogue_dgelu = 192
};
enum ReductionScheme : uint32_t { reduction_in_place = 1, reduction_compute_type = 2 };

enum MatmulAttribute : int {
  matmul_transa = 3,
  matmul_transb = 4,
  matmul_epilogue = 7,
  matmul_bias_pointer = 8,
  matmul_aux_pointer = 11,
  matmul_aux_leading = 12,
  matmul_a_scale_pointer = 17,
  matmul_b_scale_pointer = 18,
  matmul_bias_data_type = 26,
};
enum LayoutAttribute : int { layout_batch_count = 5, layout_strided_batch_offset = 6 };
enum PreferenceAttribute : int {
  preference_max_workspace_bytes = 1,
  preference_reduction_scheme_mask = 3,
  preference_min_alignment_a = 5,
  preference_min_alignment_b = 6,
  preference_min_alignment_c = 7,
  preference_min_alignment_d = 8,
};
enum AlgorithmAttribute : int { algorithm_tile_id = 1, algorithm_splitk = 2 };

/// Plain data; it may be stored on disk for the same version of the library.
struct Algorithm {
  uint64_t data[8];
};

struct HeuristicResult {
  Algorithm algorithm;
  size_t workspace_bytes;
  int state;  // 0: the other fields are valid
  float waves;
  int reserved[4];
};

struct Api {
  int (*create)(Handle* handle);
  size_t (*version)();
  const char* (*status_string)(int status);
  int (*desc_create)(MatmulDesc* desc, int compute, int scale);
  int (*desc_destroy)(MatmulDesc desc);
  int (*desc_set)(MatmulDesc desc, int attribute, const void* value, size_t bytes);
  int (*layout_create)(Layout* layout, int type, uint64_t rows, uint64_t columns, int64_t leading);
  int (*layout_destroy)(Layout layout);
  int (*layout_set)(Layout layout, int attribute, const void* value, size_t bytes);
  int (*preference_create)(Preference* preference);
  int (*preference_destroy)(Preference preference);
  int (*preference_set)(Preference preference, int attribute, const void* value, size_t bytes);
  int (*heuristic)(Handle handle, MatmulDesc desc, Layout a, Layout b, Layout c, Layout d, Preference preference,
                   int wanted, HeuristicResult* results, int* count);
  int (*check)(Handle handle, MatmulDesc desc, Layout a, Layout b, Layout c, Layout d, const Algorithm* algorithm,
               HeuristicResult* result);
  int (*algorithm_get)(const Algorithm* algorithm, int attribute, void* value, size_t bytes, size_t* written);
  int (*matmul)(Handle handle, MatmulDesc desc, const void* alpha, const void* a, Layout a_layout, const void* b,
                Layout b_layout, const void* beta, const void* c, Layout c_layout, void* d, Layout d_layout,
                const Algorithm* algorithm, void* workspace, size_t workspace_bytes, StreamHandle stream);
};

/// Calls visit(pointer, name) for each function.
template <class Visit>
void for_each_function(Api& api, Visit&& visit) {
  visit(api.create, "cublasLtCreate");
  visit(api.version, "cublasLtGetVersion");
  visit(api.status_string, "cublasLtGetStatusString");
  visit(api.desc_create, "cublasLtMatmulDescCreate");
  visit(api.desc_destroy, "cublasLtMatmulDescDestroy");
  visit(api.desc_set, "cublasLtMatmulDescSetAttribute");
  visit(api.layout_create, "cublasLtMatrixLayoutCreate");
  visit(api.layout_destroy, "cublasLtMatrixLayoutDestroy");
  visit(api.layout_set, "cublasLtMatrixLayoutSetAttribute");
  visit(api.preference_create, "cublasLtMatmulPreferenceCreate");
  visit(api.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  visit(api.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  visit(api.heuristic, "cublasLtMatmulAlgoGetHeuristic");
  visit(api.check, "cublasLtMatmulAlgoCheck");
  visit(api.algorithm_get, "cublasLtMatmulAlgoConfigGetAttribute");
  visit(api.matmul, "cublasLtMatmul");
}

/// Returns the functions; null if the library is missing (library.h says why) or lacks one.
const Api* api();
/// Returns "128x256" for a tile of this id, "tile 99" for an unknown id.
std::string tile_name(uint32_t id);

}  // namespace weft::target::cuda::lt
