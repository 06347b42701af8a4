#pragma once
// cuDNN's graphs of tensors and operations, and plans that run them. A plan is made once; a run takes addresses only.
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "target/cuda/driver/context.h"
#include "target/cuda/libraries/cudnn_api.h"

namespace weft::target::cuda::cudnn {

/// Thrown when cuDNN refuses a descriptor, or every engine refuses a graph. `what`: the step and cuDNN's message.
struct Declined {
  std::string what;
};

/// A cuDNN descriptor with its attributes; throws Declined if cuDNN refuses one.
class Descriptor {
 public:
  explicit Descriptor(DescriptorType type);
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Backend get() const { return backend_; }

  template <class T>
  void set(Attribute name, AttributeType type, const T& value) {
    set_all(name, type, 1, &value);
  }
  void set(Attribute name, const Descriptor& other) { set(name, of_backend_descriptor, other.get()); }
  void set(Attribute name, const std::vector<int64_t>& values) {
    set_all(name, of_int64, static_cast<int64_t>(values.size()), values.data());
  }
  void set_all(Attribute name, AttributeType type, int64_t count, const void* values);
  void finalize(const char* what);

 private:
  Backend backend_ = nullptr;
};

using Sizes = std::vector<int64_t>;

/// A tensor of a graph; copies refer to the same tensor.
struct Tensor {
  int64_t uid = 0;
  std::shared_ptr<Descriptor> descriptor;
};

struct ConvolutionShape {
  Sizes stride, dilation, low, high;  // by axes of space
  ConvolutionMode mode = cross_correlation;
};

struct PlanOptions {
  std::vector<NumericalNote> without;  // engines with one of these properties are excluded
  /// What the first run outside of a capture measures, in the heuristic's order; the first plan is used until then.
  enum class Search : uint8_t {
    none,
    engines,  // the first six that need no run-time compilation (half a second each)
    forms,    // two forms of the first engine
  };
  Search search = Search::none;
  size_t most_workspace = size_t{4} << 30;
};

class Plan;

class Graph {
 public:
  Tensor tensor(DataType type, const Sizes& extents, const Sizes& strides) {
    return make(type, extents, strides, false, false);
    // An intermediate tensor: it has no memory.
  }
  Tensor between(DataType type, const Sizes& extents, const Sizes& strides) {
    return make(type, extents, strides, true, false);
  }
  Tensor scalar(float value);
  Tensor scalar(int32_t value);

  void matmul(const Tensor& a, const Tensor& b, const Tensor& c);
  /// Adds y = mode(x, b, t); operands that the mode does not have are null. `axis`: of a mode that generates indices.
  void pointwise(PointwiseMode mode, const Tensor& y, const Tensor& x, const Tensor* b = nullptr,
                 const Tensor* t = nullptr, DataType compute = type_float, int64_t axis = -1);
  void reduce(Reduction how, const Tensor& x, const Tensor& y);
  void reshape(const Tensor& x, const Tensor& y);
  /// Adds one of the three convolution operations on x, w and y; `which` says which of them is computed.
  void convolution(DescriptorType which, const ConvolutionShape& shape, const Tensor& x, const Tensor& w,
                   const Tensor& y);

  std::vector<Backend> operations() const;  // in the order in which they were added

  /// Returns the plan recorded under `key`, else plans of engines in the heuristic's order: one, or several to be
  /// measured. Throws Declined if there is none. `key` covers the operations; device, versions and options are added to
  /// it.
  std::unique_ptr<Plan> plan(Context& context, const PlanOptions& options, const std::string& what, const Digest& key);

 private:
  friend class Plan;
  Tensor make(DataType type, const Sizes& extents, const Sizes& strides, bool is_virtual, bool by_value);
  void add(DescriptorType type, const std::vector<std::pair<Attribute, const Descriptor*>>& parts,
           std::shared_ptr<Descriptor> description);

  struct Scalar {
    int64_t uid;
    float real;
    int32_t integer;
    bool is_real;
  };
  int64_t next_uid_ = 1;
  std::vector<std::shared_ptr<Descriptor>> kept_;  // tensors and descriptions of operations
  std::vector<std::shared_ptr<Descriptor>> operations_;
  std::vector<Scalar> scalars_;
};

/// Runs a graph. Thread-safe: runs take turns.
class Plan {
 public:
  struct Operand {
    int64_t uid;
    void* address;
  };
  ~Plan();
  /// Enqueues the graph on the context's stream, with workspace_bytes() of scratch. Throws std::runtime_error if cuDNN
  /// fails.
  void run(std::span<const Operand> operands, void* workspace);
  size_t workspace_bytes() const;
  std::string name() const;  // "engine 2 of 5"

 private:
  friend class Graph;
  Plan();
  struct State;
  std::unique_ptr<State> state_;
};

/// A cuDNN handle, used by one thread at a time.
struct SharedHandle {
  std::mutex mutex;
  Handle handle = nullptr;
};
/// Returns one of the context's few handles in turn, bound to its stream. Throws Declined if cuDNN is missing or does
/// not start.
SharedHandle& handle(Context& context);

}  // namespace weft::target::cuda::cudnn
