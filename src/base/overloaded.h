#pragma once
// One function object of several lambdas, for std::visit: each alternative of a variant calls the one that takes it.
namespace weft {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;  // clang 14 does not deduce it for an aggregate

}  // namespace weft
