#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convert.h"
#include "weft/kernel/erased.h"

/// The kernel language in Python: handles of the type-erased layer (weft/kernel/erased.h), and what its functions take.
namespace weft::python::kernels {

using k::Any;
using k::Line;

/// Returns the line of the Python program that is running.
Line here();
/// Throws ValueError "[kernel] file:line: what".
[[noreturn]] void refuse(Line at, const std::string& what);

/// What stands for a tile in a kernel: a tile, a variable or a slice of an array.
struct Value {
  virtual ~Value() = default;
  /// Returns the tile; a slice is loaded.
  virtual Any any(Line at) const = 0;
};
/// A tile.
struct Tile final : Value {
  explicit Tile(Any v) : tile(std::move(v)) {}
  Any any(Line) const override { return tile; }
  Any tile;
};
/// A variable, which loops and conditions carry.
struct Variable final : Value {
  Variable(const Any& initial, Line at) : cell(std::make_unique<k::Cell>(initial, at)) {}
  Any any(Line at) const override { return cell->get(at); }
  std::unique_ptr<k::Cell> cell;
};
/// A slice of an array.
struct Part final : Value {
  Part(k::AnyRef r, std::vector<k::Span> s) : ref(std::move(r)), spans(std::move(s)) {}
  Any any(Line at) const override { return k::load(ref, spans, {}, at); }
  k::AnyRef ref;
  std::vector<k::Span> spans;
};

/// An array of a kernel, or a view of one; In, Out and InOut say in annotations how it is used.
struct Ref {
  k::AnyRef ref;
};
struct In final : Ref {};
struct Out final : Ref {};
struct InOut final : Ref {};

/// A part of an axis, as `ds` and `block` make it.
struct Ds {
  k::Span span;
};

/// Returns whether an object is a Value.
bool is_value(nb::handle object);
/// Returns the tile of a Value.
Any tile_of(nb::handle object, Line at);
/// Returns an operand: the tile of a Value, or a number in a dtype. Throws TypeError for other objects, and ValueError
/// for a float beside integers.
Any operand(nb::handle object, Dtype dtype, Line at);
/// Returns an index, an int64 scalar: an int, or a Value that is an integer scalar.
Any index_of(nb::handle object, Line at);
/// Returns a number, for what is filled or compared with it. Throws TypeError.
k::Scalar scalar_of(nb::handle number);
/// Returns extents: an int, or several.
std::vector<int64_t> extents_of(const Lengths& lengths);
/// Computes an operator of two operands, of which one at least is a Value.
Any binary(const char* op, nb::handle a, nb::handle b, Line at);
/// Returns tiles as a Python object: one by itself, several as a tuple, none as None.
nb::object tiles(const std::vector<Any>& values);
/// Returns the tiles in a Python object: None, a Value, or a sequence of Values.
std::vector<Any> tiles_in(nb::handle object, Line at);

/// Returns positions along the axes of an array: ints, and integer tiles.
std::vector<Any> positions_of(const nb::args& positions, Line at);
/// Returns the number of a name among those that there are. Throws ValueError, which lists them.
uint8_t choice_of(std::span<const char* const> names, const std::string& name, const char* what, Line at);
/// Returns how an atomic operation is ordered.
k::Ordering ordering_of(const std::string& order, const std::string& scope, Line at);
/// Returns what a product of float32 may lose: "exact", "tf32", "tf32x3".
k::Precision precision_of(const std::string& name, Line at);

/// Defines values, their operators and functions.
void define_values(nb::module_& m);
/// Defines functions of tiles: reductions, movement, products, random numbers.
void define_tile_functions(nb::module_& m);
/// Defines arrays of kernels, slices and what accesses them.
void define_arrays(nb::module_& m);
/// Defines control flow, grids and programs.
void define_control(nb::module_& m);
/// Defines the explicit level: shared memory, asynchronous copies and products, barriers, roles, clusters.
void define_asynchronous(nb::module_& m);
/// Defines kernels as functions of arrays.
void define_kernel(nb::module_& m);

}  // namespace weft::python::kernels
