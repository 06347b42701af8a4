#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>

#include "weft/array.h"

/// Reads and writes the tensors of PyTorch's files. Part of weft/io.h.
///
/// Such a file is a pickle, a program that may name any function of Python. Nothing of it is run: what is known is the
/// functions that make tensors, storages, parameters and dictionaries, and a file that names another one is refused
/// with its name. Names of tensors are the keys on the way to them, joined by dots, where a list or tuple has the keys
/// "0", "1" …; a tensor alone has the name "".
namespace weft {

namespace io {
class WEFT_API Reader;
class WEFT_API Writer;
}  // namespace io

/// A value of a PyTorch file that is no tensor.
using TorchValue = std::variant<bool, int64_t, double, std::string>;

/// Returns the tensors of a file of torch.save by name (.pt, .pth, .bin), which may be in nested dictionaries, lists
/// and tuples; other values are left out. A tensor keeps its strides, and tensors that share a storage share its
/// memory. The formats are the zip archive that PyTorch writes since 1.6, in either byte order, and the one before it.
/// Throws std::runtime_error for other functions than those of tensors, complex128, sparse and quantised tensors, and
/// for keys that are neither texts nor integers.
WEFT_API std::unordered_map<std::string, array> load_torch(const std::string& file, StreamOrDevice s = {});
WEFT_API std::unordered_map<std::string, array> load_torch(const std::shared_ptr<io::Reader>& in,
                                                           StreamOrDevice s = {});
/// Returns the tensors, and sets `values` to the bools, integers, floats and texts beside them, named in the same way.
/// None, integers beyond 64 bits, bytes, sets, dtypes and devices are left out.
WEFT_API std::unordered_map<std::string, array> load_torch(const std::string& file,
                                                           std::unordered_map<std::string, TorchValue>& values,
                                                           StreamOrDevice s = {});
WEFT_API std::unordered_map<std::string, array> load_torch(const std::shared_ptr<io::Reader>& in,
                                                           std::unordered_map<std::string, TorchValue>& values,
                                                           StreamOrDevice s = {});
/// Writes the arrays as a dictionary of tensors on the CPU, in the zip format: torch.load(file, weights_only=True)
/// reads it. ".pt" is added to a name that ends in neither ".pt", ".pth" nor ".bin". All dtypes are written; uint16,
/// uint32, uint64 and 8-bit floats need PyTorch 2.3.
WEFT_API void save_torch(const std::string& file, const std::unordered_map<std::string, array>& arrays);
WEFT_API void save_torch(const std::shared_ptr<io::Writer>& out, const std::unordered_map<std::string, array>& arrays);

}  // namespace weft
