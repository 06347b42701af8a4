#include "models/mnist.h"

#include <cmath>
#include <utility>

#include "base/error.h"

namespace weft::models {

MnistConv::MnistConv(nn::Module& parent, std::string name, int64_t in, int64_t out)
    : Conv2d(parent, std::move(name), in, out, {3}, {.padding = {1}}) {
  const float bound = 1 / std::sqrt(static_cast<float>(9 * in));
  *bias = nn::init::uniform({out}, -bound, bound);
}

array Mnist::logits(const array& images) const {
  if (images.ndim() != 4 || images.shape(1) != Dim(28) || images.shape(2) != Dim(28) || images.shape(3) != Dim(1))
    throw_invalid("Mnist", "the images must be [batch, 28, 28, 1]; their shape is " + to_string(images.shape()));
  const array x = images.dtype() == uint8 ? astype(images, float32) / array(255.0f) : astype(images, float32);
  // relu and max commute; after pooling, relu has a quarter of the elements.
  const auto block = [](const array& in, const nn::Conv2d& conv, const nn::BatchNorm& norm) {
    return nn::relu(nn::max_pool(norm(conv(in)), {2}));
  };
  const array features = block(block(x, c1, b1), c2, b2);
  return f2(nn::relu(f1(flatten(features, 1))));
}

array Mnist::loss(const array& images, const array& labels) const {
  return nn::losses::cross_entropy(logits(images), labels, nn::losses::Reduction::mean);
}

}  // namespace weft::models
