#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/nn/module.h"

/// Convolutions, pooling and upsampling of channels-last arrays x [batch, space…, channels].
namespace weft::nn {

/// Options of one, two or three axes; a list may hold one number for all of them.
struct ConvOptions {
  std::vector<int> stride = {1};
  std::vector<int> padding = {0};
  std::vector<int> dilation = {1};
  int groups = 1;
  bool bias = true;
};

/// A convolution over `space` axes with weight [out, kernel…, in / groups] and a bias. Starts as MLX's: the weight
/// uniform in ±1/√(in / groups · kernel), the bias 0 (PyTorch's is uniform as the weight).
class WEFT_API Conv : public Layer {
 public:
  Conv(Place place, int space, int64_t in, int64_t out, const std::vector<int>& kernel, ConvOptions options);
  array operator()(const array& x) const override;
  std::string describe() const override;

  Parameter weight;
  std::optional<Parameter> bias;

 private:
  int space_;
  ConvOptions options_;
};

class WEFT_API Conv1d : public Conv {
 public:
  Conv1d(int64_t in, int64_t out, int kernel, ConvOptions options = {})
      : Conv(Place{}, 1, in, out, {kernel}, std::move(options)) {}
  Conv1d(Module& parent, std::string name, int64_t in, int64_t out, int kernel, ConvOptions options = {})
      : Conv(Place{&parent, std::move(name)}, 1, in, out, {kernel}, std::move(options)) {}
};

class WEFT_API Conv2d : public Conv {
 public:
  Conv2d(int64_t in, int64_t out, const std::vector<int>& kernel, ConvOptions options = {})
      : Conv(Place{}, 2, in, out, kernel, std::move(options)) {}
  Conv2d(Module& parent, std::string name, int64_t in, int64_t out, const std::vector<int>& kernel,
         ConvOptions options = {})
      : Conv(Place{&parent, std::move(name)}, 2, in, out, kernel, std::move(options)) {}
};

class WEFT_API Conv3d : public Conv {
 public:
  Conv3d(int64_t in, int64_t out, const std::vector<int>& kernel, ConvOptions options = {})
      : Conv(Place{}, 3, in, out, kernel, std::move(options)) {}
  Conv3d(Module& parent, std::string name, int64_t in, int64_t out, const std::vector<int>& kernel,
         ConvOptions options = {})
      : Conv(Place{&parent, std::move(name)}, 3, in, out, kernel, std::move(options)) {}
};

struct ConvTransposeOptions {
  std::vector<int> stride = {1};
  std::vector<int> padding = {0};
  std::vector<int> dilation = {1};
  std::vector<int> output_padding = {0};
  int groups = 1;
  bool bias = true;
};

/// The transpose of a convolution with these numbers, weight [out, kernel…, in / groups]. Starts as Conv does.
class WEFT_API ConvTranspose : public Layer {
 public:
  ConvTranspose(Place place, int space, int64_t in, int64_t out, const std::vector<int>& kernel,
                ConvTransposeOptions options);
  array operator()(const array& x) const override;
  std::string describe() const override;

  Parameter weight;
  std::optional<Parameter> bias;

 private:
  int space_;
  ConvTransposeOptions options_;
};

class WEFT_API ConvTranspose1d : public ConvTranspose {
 public:
  ConvTranspose1d(int64_t in, int64_t out, int kernel, ConvTransposeOptions options = {})
      : ConvTranspose(Place{}, 1, in, out, {kernel}, std::move(options)) {}
  ConvTranspose1d(Module& parent, std::string name, int64_t in, int64_t out, int kernel,
                  ConvTransposeOptions options = {})
      : ConvTranspose(Place{&parent, std::move(name)}, 1, in, out, {kernel}, std::move(options)) {}
};

class WEFT_API ConvTranspose2d : public ConvTranspose {
 public:
  ConvTranspose2d(int64_t in, int64_t out, const std::vector<int>& kernel, ConvTransposeOptions options = {})
      : ConvTranspose(Place{}, 2, in, out, kernel, std::move(options)) {}
  ConvTranspose2d(Module& parent, std::string name, int64_t in, int64_t out, const std::vector<int>& kernel,
                  ConvTransposeOptions options = {})
      : ConvTranspose(Place{&parent, std::move(name)}, 2, in, out, kernel, std::move(options)) {}
};

class WEFT_API ConvTranspose3d : public ConvTranspose {
 public:
  ConvTranspose3d(int64_t in, int64_t out, const std::vector<int>& kernel, ConvTransposeOptions options = {})
      : ConvTranspose(Place{}, 3, in, out, kernel, std::move(options)) {}
  ConvTranspose3d(Module& parent, std::string name, int64_t in, int64_t out, const std::vector<int>& kernel,
                  ConvTransposeOptions options = {})
      : ConvTranspose(Place{&parent, std::move(name)}, 3, in, out, kernel, std::move(options)) {}
};

struct PoolOptions {
  std::vector<int> kernel = {2};
  std::vector<int> stride = {};  ///< empty: the kernel, so that windows do not overlap
  std::vector<int> padding = {0};
};

/// The largest (padding never wins) or the mean (padding counts as zeros) of each window over `space` axes. Equal
/// largest elements share the gradient evenly, as in MLX (PyTorch gives all of it to the first).
class WEFT_API Pool : public Layer {
 public:
  enum class Kind { max, mean };
  Pool(Place place, Kind kind, int space, PoolOptions options);
  array operator()(const array& x) const override;
  std::string describe() const override;

 private:
  Kind kind_;
  int space_;
  PoolOptions options_;
};

template <Pool::Kind kind, int space>
class PoolOf : public Pool {
 public:
  explicit PoolOf(PoolOptions options = {}) : Pool(Place{}, kind, space, std::move(options)) {}
  PoolOf(Module& parent, std::string name, PoolOptions options = {})
      : Pool(Place{&parent, std::move(name)}, kind, space, std::move(options)) {}
};
using MaxPool1d = PoolOf<Pool::Kind::max, 1>;
using MaxPool2d = PoolOf<Pool::Kind::max, 2>;
using MaxPool3d = PoolOf<Pool::Kind::max, 3>;
using AvgPool1d = PoolOf<Pool::Kind::mean, 1>;
using AvgPool2d = PoolOf<Pool::Kind::mean, 2>;
using AvgPool3d = PoolOf<Pool::Kind::mean, 3>;

/// The functions behind the layers: windows over the axes 1 … space of x.
WEFT_API array max_pool(const array& x, const std::vector<int>& kernel, const std::vector<int>& stride = {},
                        const std::vector<int>& padding = {});
WEFT_API array avg_pool(const array& x, const std::vector<int>& kernel, const std::vector<int>& stride = {},
                        const std::vector<int>& padding = {});

struct UpsampleOptions {
  std::vector<double> scale = {2};  ///< of each axis, or of all
  enum class Mode { nearest, linear, cubic } mode = Mode::nearest;
  bool align_corners = false;  ///< linear and cubic: the first and last elements stay where they are
  /// Where an axis shrinks, the kernel is as wide as 1 / scale, which keeps out what the result is too coarse for; a
  /// cubic one is Pillow's. For linear and cubic without align_corners.
  bool antialias = false;
};

/// Every axis of space of x [batch, space…, channels] made longer or shorter: ⌊n · scale⌋ elements of n, with MLX's
/// values. nearest keeps the dtype of x, linear and cubic make float32 of integers.
class WEFT_API Upsample : public Layer {
 public:
  explicit Upsample(UpsampleOptions options = {}) : Upsample(Place{}, std::move(options)) {}
  Upsample(Module& parent, std::string name, UpsampleOptions options = {})
      : Upsample(Place{&parent, std::move(name)}, std::move(options)) {}
  Upsample(Place place, UpsampleOptions options);
  array operator()(const array& x) const override;
  std::string describe() const override;

 private:
  UpsampleOptions options_;
};

}  // namespace weft::nn
