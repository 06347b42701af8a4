#pragma once
// What pickles of PyTorch make: storages, which lie outside of the pickle, and tensors in them.
#include <optional>
#include <unordered_map>

#include "io/torch/pickle.h"
#include "weft/dtype.h"

namespace weft::io::torch {

/// A row of PyTorch's dtypes: the name of its class of storages (none: they are bytes) and its own name.
struct TorchDtype {
  std::string_view storage, name;
  Dtype dtype;
};
/// Returns the row of a dtype; every dtype has one.
const TorchDtype& torch_dtype(Dtype dtype);

struct TorchStorage {
  std::string_view key;        // names its bytes
  std::optional<Dtype> dtype;  // none: bytes, whose tensors say what they are
  uint64_t elements = 0;
  uint64_t bytes() const { return elements * (dtype ? dtype->size() : 1); }  // below 2^63
};

struct TorchTensor {
  size_t storage = 0;
  Dtype dtype;
  uint64_t offset = 0;  // in elements, as are strides
  Ref shape = 0, strides = 0;
  uint64_t told = 0;  // the byte at which the pickle makes it
};

/// Unpickles tensors. Knows the functions that PyTorch writes for tensors, and refuses all others by name.
class TorchPickle : public Pickle {
 public:
  using Pickle::Pickle;
  const std::vector<TorchStorage>& storages() const { return storages_; }
  const std::vector<TorchTensor>& tensors() const { return tensors_; }

 protected:
  Ref global(std::string_view module, std::string_view name) override;
  Ref call(Ref function, const std::vector<Ref>& arguments) override;
  Ref outside(Ref name) override;

 private:
  enum class Action : uint8_t { dict, list, nothing, tensor, tensor_of_bytes, parameter, storage, dtype };
  struct Function {
    std::string_view module, name;
    Action action;
  };
  static const Function functions[];

  Ref make_function(Action action, std::optional<Dtype> dtype = std::nullopt);
  Ref make_dict(const std::vector<Ref>& arguments);
  Ref make_tensor(const std::vector<Ref>& arguments, bool of_bytes);
  uint64_t natural(Ref r, const char* what) const;

  struct Known {
    Action action;
    std::optional<Dtype> dtype;
  };
  std::vector<Known> known_;  // functions that the pickle names
  std::vector<TorchStorage> storages_;
  std::unordered_map<std::string_view, size_t> by_key_;
  std::vector<TorchTensor> tensors_;
  uint64_t copied_ = 0;  // items
};

}  // namespace weft::io::torch
