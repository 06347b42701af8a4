#pragma once
// States of reducers in tile IR: tiles of one shape, one for each component (kernel/reducer.h). All of it is written in
// scalar operators and in reductions of single tiles, so that every target gives the interpreter's bits.
#include <span>
#include <vector>

#include "kernel/tile.h"

namespace weft::kernel {

using State = std::vector<Value>;

/// Returns tiles that change no state they are combined with; `dtypes`: of the components.
State identity_state(Builder& b, Reducer r, std::span<const Dtype> dtypes, const std::vector<int64_t>& dims);
/// Combines states lane by lane: each is brought to the frame of all of them once.
State combine_states(Builder& b, Reducer r, std::span<const State> states);
State combine_states(Builder& b, Reducer r, const State& x, const State& y);
/// Reduces a state's tiles along an axis: each component in turn is brought to the frame that the ones before it have
/// over the whole axis, and is then reduced by its own operator.
State reduce_state(Builder& b, Reducer r, const State& tiles, int axis);
/// Returns two states combined as the reference evaluation does, in double; `dtypes`: of the components.
std::vector<Number> combine_reference(Reducer r, std::span<const Dtype> dtypes, std::span<const Number> x,
                                      std::span<const Number> y);

}  // namespace weft::kernel
