// Kernels that must not compile: tests/checks/check_must_not_compile.py says how a case is written.
#include <string>

#include "weft/kernel.h"

namespace k = weft::k;

// case mixed dtypes: the operands have one element type: cast one of them
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  auto z = f + i;  // wrong
  // instead: auto z = f + k::cast<float>(i);
}
// case mixed dtypes in a function: the operands have one element type: cast one of them
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  auto z = k::maximum(f, i);  // wrong
  // instead: auto z = k::maximum(f, k::cast<float>(i));
}
// case ranks that differ: the operands have one rank: use row, col or expand_dims
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  auto z = p + f;  // wrong
  // instead: auto z = p + k::row(f);
}
// case a slice of another rank: the operands have one rank: use row, col or expand_dims
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  auto z = x(k::all, k::all) < f;  // wrong
  // instead: auto z = x(0, k::all) < f;
}
// case if of a traced value: when, if_else or where in place of C++'s if
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  if (k::sum(f) > 0) y(0, k::all) = f;  // wrong
  // instead: k::when(k::sum(f) > 0, [&] { y(0, k::all) = f; });
}
// case if of a variable: when, if_else or where in place of C++'s if
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  if (m) y(0, k::all) = f;  // wrong
  // instead: k::when(k::sum(m) > 0, [&] { y(0, k::all) = f; });
}
// case dot of rank one: dot takes tiles of one rank, two axes at least
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  auto z = k::dot(f, f);  // wrong
  // instead: auto z = k::dot(k::row(f), k::col(f));
}
// case dot of mixed dtypes: dot takes tiles of one element type: cast one of them
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  auto z = k::dot(p, k::cast<k::bf16>(p));  // wrong
  // instead: auto z = k::dot(p, k::cast<float>(p));
}
// case a store of another dtype: has another element type than what it is assigned to: cast it
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  y(0, k::all) = h;  // wrong
  // instead: y(0, k::all) = k::cast<float>(h);
}
// case an update of another dtype: has another element type than what it is assigned to: cast it
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  y(0, k::all) += h;  // wrong
  // instead: y(0, k::all) += k::cast<float>(h);
}
// case a store of another rank: has another rank than what it is assigned to
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  y(k::all, k::all) = f;  // wrong
  // instead: y(0, k::all) = f;
}
// case wrong number of subscripts: a slice has one subscript for each axis of the array
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  auto z = x(k::all);  // wrong
  // instead: auto z = x(k::all, k::all);
}
// case too many subscripts: a slice has one subscript for each axis of the array
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  y(0, 0, k::all) = 1;  // wrong
  // instead: y(0, k::all) = 1;
}
// case five axes: a tile has zero to four axes
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  auto z = k::zeros<float>({1, 1, 1, 1, 1});  // wrong
  // instead: auto z = k::zeros<float>({1, 1, 1, 1});
}
// case tiles of text: a tile's elements are numbers
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  k::Tile<std::string, 1> z;  // wrong
  // instead: k::Tile<double, 1> z;
}
// case not of floats: ! is for tiles of bool
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  auto z = !f;  // wrong
  // instead: auto z = !(f > 0);
}
// case row of two axes: row takes a tile of one axis
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  auto z = k::row(p);  // wrong
  // instead: auto z = k::row(f);
}
// case trans of one axis: trans exchanges the last two axes
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  auto z = k::trans(f);  // wrong
  // instead: auto z = k::trans(p);
}
// case where of floats: the condition of where is a tile of bool
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  auto z = k::where(f, f, 0);  // wrong
  // instead: auto z = k::where(f > 0, f, 0);
}
// case when of a tile: the condition is a bool scalar: reduce a tile by all or any
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  k::when(f > 0, [] {});  // wrong
  // instead: k::when(k::all(f > 0), [] {});
}
// case while of a tile: the condition is a bool scalar: reduce a tile by all or any
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  k::while_([&] { return m > 0; }, [&] { m -= 1; });  // wrong
  // instead: k::while_([&] { return k::any(m > 0); }, [&] { m -= 1; });
}
// case if_else of two types: both functions return a tile of one type
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  const auto one = [&] { return f; };
  const auto other = [&] { return i; };
  auto z = k::if_else(k::Index(0) == 1, one, other);  // wrong
  // instead: auto z = k::if_else(k::Index(0) == 1, one, one);
}
// case permute of too many axes: permute names each axis of the tile once
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  auto z = k::permute(p, {0, 1, 2});  // wrong
  // instead: auto z = k::permute(p, {1, 0});
}
// case a view with too many axes: permute names each axis of the array once
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  auto z = x.permute({0, 1, 2});  // wrong
  // instead: auto z = x.permute({1, 0});
}
// case reduction of a scalar: a scalar has no axis to reduce
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  auto z = k::sum(k::Index(0), 0);  // wrong
  // instead: auto z = k::sum(f, 0);
}
// case a scalar reduced wholly: a scalar has no axis to reduce
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  auto z = k::max(k::sum(f));  // wrong
  // instead: auto z = k::max(f);
}
// case positions that are too few: give one position for each axis of the array
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  auto z = k::gather(x, k::arange(4));  // wrong
  // instead: auto z = k::gather(x, k::arange(4), k::arange(4));
}
// case positions that are floats: positions are tiles of integers
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  auto z = k::gather(x, f, f);  // wrong
  // instead: auto z = k::gather(x, i, i);
}
// case a scatter of another dtype: the value has another element type than the array: cast it
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  k::scatter(y, i, i, i);  // wrong
  // instead: k::scatter(y, f, i, i);
}
// case an input that is assigned: an In array is only read: declare it as Out or InOut
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  x(0, k::all) = f;  // wrong
  // instead: y(0, k::all) = f;
}
// case an input that is updated: an In array is only read: declare it as Out or InOut
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  x(0, k::all) += f;  // wrong
  // instead: y(0, k::all) += f;
}
// case an input assigned from itself: an In array is only read: declare it as Out or InOut
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  x(0, k::all) = x(1, k::all);  // wrong
  // instead: y(0, k::all) = x(1, k::all);
}
// case an input that is stored to: an In array is only read: declare it as Out or InOut
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  x(0, k::all).store(f);  // wrong
  // instead: y(0, k::all).store(f);
}
// case a view of an input that is assigned: an In array is only read: declare it as Out or InOut
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  x.permute({1, 0})(k::all, 0) = f;  // wrong
  // instead: y.permute({1, 0})(k::all, 0) = f;
}
// case an input that is scattered to: an In array is only read: declare it as Out or InOut
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  k::scatter(x, f, i, i);  // wrong
  // instead: k::scatter(y, f, i, i);
}
// case an input that is counted in: an In array is only read: declare it as Out or InOut
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  k::atomic("add", x, f, i, i);  // wrong
  // instead: k::atomic("add", y, f, i, i);
}
// case a variable of another rank: has another rank than what it is assigned to
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  k::Mut<float, 1> z = p;  // wrong
  // instead: k::Mut<float, 2> z = p;
}
// case a variable that changes rank: has another rank than what it is assigned to
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  m = p;  // wrong
  // instead: m = k::sum(p, 0);
}
// case a variable that changes dtype: has another element type than what it is assigned to: cast it
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  m += i;  // wrong
  // instead: m += k::cast<float>(i);
}
// case join of two dtypes: the tiles have one element type: cast one of them
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  auto z = k::cat(f, i);  // wrong
  // instead: auto z = k::cat(f, f);
}
// case take by floats: the index of take is a tile of integers
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  auto z = k::take(f, f, 0);  // wrong
  // instead: auto z = k::take(f, i, 0);
}
// case all of floats: all takes a tile of bool
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  auto z = k::all(f);  // wrong
  // instead: auto z = k::all(f > 0);
}
// case a reducer that returns another type: the function returns a scalar of the tile's element type
inline void kernel(k::In<float, 2> x, k::Out<float, 2> y, k::Tile<float, 1> f, k::Tile<int32_t, 1> i,
                   k::Tile<float, 2> p, k::Tile<k::bf16, 1> h, k::Mut<float, 1>& m) {
  auto z = k::reduce(f, 0, [](auto a, auto b) { return a < b; });  // wrong
  // instead: auto z = k::reduce(f, 0, [](auto a, auto b) { return a + b; });
}
