// Activations, losses and starting values.
#include "weft/fast.h"
#include "base/error.h"
#include "weft/nn.h"
#include "weft/random.h"

namespace weft::nn {

array gelu(const array& x) { return fast::gelu(x); }
array gelu_approx(const array& x) { return fast::gelu_tanh(x); }
array relu(const array& x) { return maximum(x, array(0, x.dtype())); }
array silu(const array& x) { return x * sigmoid(x); }
array softmax(const array& x, int axis) { return weft::softmax(x, axis, true); }

}  // namespace weft::nn

namespace weft::nn::losses {

array cross_entropy(const array& logits, const array& targets, Reduction reduction) {
  if (!issubdtype(logits.dtype(), floating)) throw_invalid("losses.cross_entropy", "logits must be floating; they are " + std::string(dtype_name(logits.dtype())));
  const array each = fast::cross_entropy(astype(logits, logits.dtype() == float64 ? float64 : float32), targets);
  switch (reduction) {
    case Reduction::mean: return mean(each);
    case Reduction::sum: return sum(each);
    default: return each;
  }
}

}  // namespace weft::nn::losses

namespace weft::nn::init {

array normal(const Shape& shape, float mean, float std) { return random::normal(shape, float32, mean, std); }
array uniform(const Shape& shape, float low, float high) { return random::uniform(array(low), array(high), shape); }
array constant(const Shape& shape, float value) { return full(shape, array(value), float32); }

}  // namespace weft::nn::init
