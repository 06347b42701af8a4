// Functions of scores that models have.
#include "kernels/attention.h"

namespace weft::kernels {

using Scores = ScoreFunction::Scores;

ScoreFunction soft_cap(double cap) {
  return {[cap](const Scores& s, const ScoreIndex&) -> Scores { return k::tanh(s * (1 / cap)) * cap; },
          [cap](const Scores& s, const Scores& cotangent, const ScoreIndex&) -> Scores {
            return cotangent * (1.0 - k::square(k::tanh(s * (1 / cap))));
          }};
}

ScoreFunction alibi(size_t axis, int64_t heads) {
  return {[axis, heads](const Scores& s, const ScoreIndex& at) -> Scores {
            const auto head = k::cast<float>(at.batch[axis]);
            const auto slope = k::exp2((head + 1.0) * (-8.0 / static_cast<double>(heads)));
            return s - k::cast<float>(k::abs(at.query - at.key)) * slope;
          },
          {}};
}

}  // namespace weft::kernels
