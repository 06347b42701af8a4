#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "weft/array.h"

/// Reads and writes GGUF, the files of GGML and llama.cpp. Part of weft/io.h.
///
///   | tensors                                         | as arrays                                                  |
///   | ----------------------------------------------- | ---------------------------------------------------------- |
///   | F16, F32, F64, BF16, I8, I16, I32, I64          | of that dtype, in the file where it is aligned             |
///   | Q4_0, Q4_1, Q8_0                                | still in 4 or 8 bits: codes, scales and biases (see below) |
///   | Q5_0, Q5_1, Q2_K to Q6_K, Q8_K, IQ4_NL, IQ4_XS, | float16                                                    |
///   | MXFP4                                           |                                                            |
///
/// A tensor of Q4_0, Q4_1 or Q8_0 with shape [..., k] and the name "layer.weight" becomes three arrays that
/// quantized_matmul takes, "affine" with groups of 32: "layer.weight", uint32 [..., k · bits / 32], and "layer.scales"
/// and "layer.biases", float16 [..., k / 32]. Shapes are those of arrays: the file lists lengths from the last axis on.
namespace weft {

namespace io {
class WEFT_API Reader;
class WEFT_API Writer;
}  // namespace io

/// A value of a GGUF file's metadata. A number or bool is an array without axes, a list of them has one axis, and a
/// list of lists of equal lengths one for each level; texts and lists of texts are strings.
using GGUFMetaData = std::variant<std::monostate, array, std::string, std::vector<std::string>>;
/// Tensors by name, and the file's metadata.
using GGUFLoad = std::pair<std::unordered_map<std::string, array>, std::unordered_map<std::string, GGUFMetaData>>;

/// Returns the tensors and metadata of a GGUF file, versions 1 to 3; of either byte order where no tensor is quantised.
/// Throws std::invalid_argument where there is no such file, and std::runtime_error for other tensor types, lists of
/// lists that differ in length or hold texts, names that occur twice, and tensors that share bytes.
WEFT_API GGUFLoad load_gguf(const std::string& file, StreamOrDevice s = {});
WEFT_API GGUFLoad load_gguf(const std::shared_ptr<io::Reader>& in, StreamOrDevice s = {});
/// Writes a GGUF file of version 3, tensors and metadata by name. ".gguf" is added to a name without it. Tensors are
/// float16, bfloat16, float32, float64 or a signed integer (others throw std::runtime_error), of 8 axes at most. Codes,
/// scales and biases as load_gguf makes them are one tensor again, Q4_0, Q4_1 or Q8_0. Metadata are bools, integers,
/// float32 and float64 (other dtypes throw std::invalid_argument), without an axis of length 0 (std::runtime_error).
/// "general.alignment", a power of two, says where tensors begin; else 32.
WEFT_API void save_gguf(std::string file, std::unordered_map<std::string, array> array_map,
                        std::unordered_map<std::string, GGUFMetaData> meta_data = {});
WEFT_API void save_gguf(const std::shared_ptr<io::Writer>& out, std::unordered_map<std::string, array> array_map,
                        std::unordered_map<std::string, GGUFMetaData> meta_data = {});

}  // namespace weft
