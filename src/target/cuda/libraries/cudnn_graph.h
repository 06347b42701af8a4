#pragma once
// cuDNN's graphs: tensors and operations on them, and plans that run them. A plan is made once; running it takes
// addresses only.
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

/// cuDNN says no: to a descriptor, or to every engine for a graph. `what` names the step and cuDNN's own words.
struct Declined {
  std::string what;
};

/// A descriptor of cuDNN's with its attributes; throws Declined where one of them is not taken.
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

/// A tensor of a graph; copies speak of the same one.
struct Tensor {
  int64_t uid = 0;
  std::shared_ptr<Descriptor> descriptor;
};

struct ConvolutionShape {
  Sizes stride, dilation, low, high;  // by axes of space
  ConvolutionMode mode = cross_correlation;
};

struct PlanOptions {
  std::vector<NumericalNote> without;  // engines with one of these properties are left out
  /// What the first run outside of a capture measures, in the heuristic's order; its first is taken unless there are
  /// several.
  enum class Search : uint8_t {
    none,
    engines,  // the first six that need no compilation of their own (half a second each)
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
  }
  Tensor between(DataType type, const Sizes& extents, const Sizes& strides) {
    return make(type, extents, strides, true, false);
  }  // has no memory of its own
  Tensor scalar(float value);
  Tensor scalar(int32_t value);

  void matmul(const Tensor& a, const Tensor& b, const Tensor& c);
  /// y = mode(x, b, t); null for operands that the mode does not have. `axis`: of an index.
  void pointwise(PointwiseMode mode, const Tensor& y, const Tensor& x, const Tensor* b = nullptr,
                 const Tensor* t = nullptr, DataType compute = type_float, int64_t axis = -1);
  void reduce(Reduction how, const Tensor& x, const Tensor& y);
  void reshape(const Tensor& x, const Tensor& y);
  /// One of the three operations on x, w and y, of which it computes one.
  void convolution(DescriptorType which, const ConvolutionShape& shape, const Tensor& x, const Tensor& w,
                   const Tensor& y);

  std::vector<Backend> operations() const;  // in the order in which they were added

  /// The plan that the cache folder has under `key`, else those of engines in the heuristic's order: one, or several
  /// where a search is wanted. Throws Declined where there is none. `key`: of the operations; device, versions and
  /// options are added to it.
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

/// What runs a graph. May be run from several threads, one at a time.
class Plan {
 public:
  struct Operand {
    int64_t uid;
    void* address;
  };
  ~Plan();
  /// Enqueues on the context's stream, with workspace_bytes() of scratch. Throws std::runtime_error where cuDNN fails.
  void run(std::span<const Operand> operands, void* workspace);
  size_t workspace_bytes() const;
  std::string name() const;  // "engine 2 of 5"

 private:
  friend class Graph;
  Plan();
  struct State;
  std::unique_ptr<State> state_;
};

/// A handle is for one thread at a time.
struct SharedHandle {
  std::mutex mutex;
  Handle handle = nullptr;
};
/// One of the few handles of a context, each in its turn, bound to its stream; throws Declined where cuDNN is missing
/// or does not start.
SharedHandle& handle(Context& context);

}  // namespace weft::target::cuda::cudnn
