#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/nn/module.h"

/// Convolutions, pooling and upsampling of channels-last arrays x [batch, space…, channels].
namespace weft::nn {

/// Options of convolutions over one, two or three axes; a list may hold one number for all of them.
struct ConvOptions {
  std::vector<int> stride = {1};    ///< distance between windows
  std::vector<int> padding = {0};   ///< zeros on both sides
  std::vector<int> dilation = {1};  ///< distance between the elements of the kernel
  int groups = 1;                   ///< of channels that are convolved by themselves
  bool bias = true;                 ///< whether there is a bias
};

/// A convolution over `space` axes. Starts as MLX's: the weight uniform in ±1/√(in / groups · kernel), the bias 0
/// (PyTorch's is uniform as the weight).
class WEFT_API Conv : public Layer {
 public:
  Conv(Scope scope, int space, int64_t in, int64_t out, const std::vector<int>& kernel, ConvOptions options);
  array operator()(const array& x) const override;
  std::string describe() const override;

  Parameter weight;               ///< [out, kernel…, in / groups]
  std::optional<Parameter> bias;  ///< [out]

 private:
  int space_;
  ConvOptions options_;
};

/// Convolves x [batch, length, in]: [batch, length', out].
class WEFT_API Conv1d : public Conv {
 public:
  Conv1d(int64_t in, int64_t out, int kernel, ConvOptions options = {})
      : Conv(Scope{}, 1, in, out, {kernel}, std::move(options)) {}
  Conv1d(Module& parent, std::string name, int64_t in, int64_t out, int kernel, ConvOptions options = {})
      : Conv(Scope{&parent, std::move(name)}, 1, in, out, {kernel}, std::move(options)) {}
};

/// Convolves x [batch, height, width, in]: [batch, height', width', out].
class WEFT_API Conv2d : public Conv {
 public:
  Conv2d(int64_t in, int64_t out, const std::vector<int>& kernel, ConvOptions options = {})
      : Conv(Scope{}, 2, in, out, kernel, std::move(options)) {}
  Conv2d(Module& parent, std::string name, int64_t in, int64_t out, const std::vector<int>& kernel,
         ConvOptions options = {})
      : Conv(Scope{&parent, std::move(name)}, 2, in, out, kernel, std::move(options)) {}
};

/// Convolves x [batch, depth, height, width, in]: [batch, depth', height', width', out].
class WEFT_API Conv3d : public Conv {
 public:
  Conv3d(int64_t in, int64_t out, const std::vector<int>& kernel, ConvOptions options = {})
      : Conv(Scope{}, 3, in, out, kernel, std::move(options)) {}
  Conv3d(Module& parent, std::string name, int64_t in, int64_t out, const std::vector<int>& kernel,
         ConvOptions options = {})
      : Conv(Scope{&parent, std::move(name)}, 3, in, out, kernel, std::move(options)) {}
};

/// Options of transposed convolutions: those of the convolution that is transposed.
struct ConvTransposeOptions {
  std::vector<int> stride = {1};          ///< distance between windows
  std::vector<int> padding = {0};         ///< zeros on both sides
  std::vector<int> dilation = {1};        ///< distance between the elements of the kernel
  std::vector<int> output_padding = {0};  ///< elements that are added at the end of the result
  int groups = 1;                         ///< of channels that are convolved by themselves
  bool bias = true;                       ///< whether there is a bias
};

/// The transpose of a convolution with these options. Starts as Conv does.
class WEFT_API ConvTranspose : public Layer {
 public:
  ConvTranspose(Scope scope, int space, int64_t in, int64_t out, const std::vector<int>& kernel,
                ConvTransposeOptions options);
  array operator()(const array& x) const override;
  std::string describe() const override;

  Parameter weight;               ///< [out, kernel…, in / groups]
  std::optional<Parameter> bias;  ///< [out]

 private:
  int space_;
  ConvTransposeOptions options_;
};

/// Makes x [batch, length, in] longer: [batch, length', out].
class WEFT_API ConvTranspose1d : public ConvTranspose {
 public:
  ConvTranspose1d(int64_t in, int64_t out, int kernel, ConvTransposeOptions options = {})
      : ConvTranspose(Scope{}, 1, in, out, {kernel}, std::move(options)) {}
  ConvTranspose1d(Module& parent, std::string name, int64_t in, int64_t out, int kernel,
                  ConvTransposeOptions options = {})
      : ConvTranspose(Scope{&parent, std::move(name)}, 1, in, out, {kernel}, std::move(options)) {}
};

/// Makes x [batch, height, width, in] larger: [batch, height', width', out].
class WEFT_API ConvTranspose2d : public ConvTranspose {
 public:
  ConvTranspose2d(int64_t in, int64_t out, const std::vector<int>& kernel, ConvTransposeOptions options = {})
      : ConvTranspose(Scope{}, 2, in, out, kernel, std::move(options)) {}
  ConvTranspose2d(Module& parent, std::string name, int64_t in, int64_t out, const std::vector<int>& kernel,
                  ConvTransposeOptions options = {})
      : ConvTranspose(Scope{&parent, std::move(name)}, 2, in, out, kernel, std::move(options)) {}
};

/// Makes x [batch, depth, height, width, in] larger: [batch, depth', height', width', out].
class WEFT_API ConvTranspose3d : public ConvTranspose {
 public:
  ConvTranspose3d(int64_t in, int64_t out, const std::vector<int>& kernel, ConvTransposeOptions options = {})
      : ConvTranspose(Scope{}, 3, in, out, kernel, std::move(options)) {}
  ConvTranspose3d(Module& parent, std::string name, int64_t in, int64_t out, const std::vector<int>& kernel,
                  ConvTransposeOptions options = {})
      : ConvTranspose(Scope{&parent, std::move(name)}, 3, in, out, kernel, std::move(options)) {}
};

/// Options of pooling; a list may hold one number for all axes.
struct PoolOptions {
  std::vector<int> kernel = {2};   ///< sizes of a window
  std::vector<int> stride = {};    ///< distance between windows; empty: the kernel, so that they do not overlap
  std::vector<int> padding = {0};  ///< on both sides; at most half of the kernel
};

/// Computes the largest element (padding is never the largest) or the mean (padding counts as zeros) of each window
/// over `space` axes. Equal largest elements share the gradient evenly, as in MLX (PyTorch gives all of it to the
/// first).
class WEFT_API Pool : public Layer {
 public:
  /// What is computed of a window.
  enum class Kind { max, mean };
  Pool(Scope scope, Kind kind, int space, PoolOptions options);
  array operator()(const array& x) const override;
  std::string describe() const override;

 private:
  Kind kind_;
  int space_;
  PoolOptions options_;
};

/// Pooling of one kind over a number of axes.
template <Pool::Kind kind, int space>
class PoolOf : public Pool {
 public:
  explicit PoolOf(PoolOptions options = {}) : Pool(Scope{}, kind, space, std::move(options)) {}
  PoolOf(Module& parent, std::string name, PoolOptions options = {})
      : Pool(Scope{&parent, std::move(name)}, kind, space, std::move(options)) {}
};
/// The pooling layers.
using MaxPool1d = PoolOf<Pool::Kind::max, 1>;
using MaxPool2d = PoolOf<Pool::Kind::max, 2>;
using MaxPool3d = PoolOf<Pool::Kind::max, 3>;
using AvgPool1d = PoolOf<Pool::Kind::mean, 1>;
using AvgPool2d = PoolOf<Pool::Kind::mean, 2>;
using AvgPool3d = PoolOf<Pool::Kind::mean, 3>;

/// Returns the largest element of each window over axes 1 … kernel.size() of x [batch, space…, channels]. Throws
/// std::invalid_argument for more padding than half of the kernel.
WEFT_API array max_pool(const array& x, const std::vector<int>& kernel, const std::vector<int>& stride = {},
                        const std::vector<int>& padding = {});
/// Returns the mean of each window, as max_pool.
WEFT_API array avg_pool(const array& x, const std::vector<int>& kernel, const std::vector<int>& stride = {},
                        const std::vector<int>& padding = {});

/// Options of Upsample.
struct UpsampleOptions {
  std::vector<double> scale = {2};  ///< factor of each axis, or of all
  /// How elements are interpolated.
  enum class Mode { nearest, linear, cubic } mode = Mode::nearest;
  bool align_corners = false;  ///< linear and cubic: the first and last elements stay where they are
  /// Whether the kernel is as wide as 1 / scale where an axis shrinks, which removes frequencies that the result cannot
  /// hold; a cubic one is Pillow's. For linear and cubic without align_corners.
  bool antialias = false;
};

/// Makes every space axis of x [batch, space…, channels] longer or shorter: ⌊n · scale⌋ elements of n, with MLX's
/// values. nearest keeps the dtype of x, linear and cubic make float32 of integers.
class WEFT_API Upsample : public Layer {
 public:
  explicit Upsample(UpsampleOptions options = {}) : Upsample(Scope{}, std::move(options)) {}
  Upsample(Module& parent, std::string name, UpsampleOptions options = {})
      : Upsample(Scope{&parent, std::move(name)}, std::move(options)) {}
  Upsample(Scope scope, UpsampleOptions options);
  array operator()(const array& x) const override;
  std::string describe() const override;

 private:
  UpsampleOptions options_;
};

}  // namespace weft::nn
