#pragma once
// A small convolutional network for images of 28 × 28: two blocks of convolution, batch norm, relu and pooling, then
// two linear layers.
#include <cstdint>
#include <string>

#include "weft/nn.h"

namespace weft::models {

/// A convolution of 3 × 3 with PyTorch's initial values, so that training curves can be compared: the bias too is
/// uniform in ±1/√(9 in).
class WEFT_API MnistConv : public nn::Conv2d {
 public:
  MnistConv(nn::Module& parent, std::string name, int64_t in, int64_t out);
};

/// The network: conv 1 → 32, batch norm (of the batch, no running statistics), relu, max pool 2; conv 32 → 64, the
/// same; linear 3136 → 128, relu, linear 128 → 10.
class WEFT_API Mnist : public nn::Module {
 public:
  Mnist() = default;
  /// Returns logits, float32 [batch, 10], of images [batch, 28, 28, 1], uint8 (0 … 255) or floating (0 … 1).
  array logits(const array& images) const;
  /// Returns the mean cross-entropy for labels [batch].
  array loss(const array& images, const array& labels) const;

  MnistConv c1{*this, "c1", 1, 32};
  nn::BatchNorm b1{*this, "b1", 32, {.track_running_stats = false}};
  MnistConv c2{*this, "c2", 32, 64};
  nn::BatchNorm b2{*this, "b2", 64, {.track_running_stats = false}};
  nn::Linear f1{*this, "f1", 64 * 7 * 7, 128};
  nn::Linear f2{*this, "f2", 128, 10};
};

}  // namespace weft::models
