// Control flow of kernels in Python, their programs and grids.
#include <array>
#include <utility>

#include "kernel_language.h"
#include "weft/kernel.h"
#include "weft/kernel/lanes.h"

namespace weft::python::kernels {

namespace {

/// The iterator of a loop: Python runs its body once, between the first `__next__`, which opens the loop, and the
/// second one, which closes it.
class Loop {
 public:
  Loop(Any lo, Any hi, int64_t step, Line at) : lo_(std::move(lo)), hi_(std::move(hi)), step_(step), line_(at) {}
  Loop(int64_t iterations, Line at) : step_(iterations), parallel_(true), line_(at) {}

  Tile next() {
    if (!scope_) {
      scope_.emplace(parallel_ ? k::Scope::parallel(step_, line_) : k::Scope::loop(lo_, hi_, step_, line_));
      if (scope_->runs()) return Tile(scope_->index());
    }
    scope_->close(line_);
    throw nb::stop_iteration();
  }

 private:
  Any lo_, hi_;
  int64_t step_;  // of a parallel loop the number of iterations
  bool parallel_ = false;
  Line line_;
  std::optional<k::Scope> scope_;
};

/// A condition, as a context.
class When {
 public:
  When(Any condition, Line at) : condition_(std::move(condition)), line_(at) {}
  void enter() { scope_.emplace(k::Scope::when(condition_, line_)); }
  void exit(nb::handle error) {
    if (error.is_none()) scope_->close(line_);  // an error in the body ends the trace
  }

 private:
  Any condition_;
  Line line_;
  std::optional<k::Scope> scope_;
};

/// Returns a Python function of a condition as one of tiles.
std::function<std::vector<Any>()> branch_of(const nb::callable& f, Line at) {
  return [f, at] { return tiles_in(f(), at); };
}

void define_loops(nb::module_& m) {
  nb::class_<Loop>(m, "Loop", "A loop of a kernel: Python's `for` traces its body once.")
      .def(
          "__iter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __iter__(self) -> Loop"))
      .def("__next__", &Loop::next);
  m.def(
      "range",
      [](nb::handle lo, nb::handle hi, int64_t step) {
        const Line at = here();
        if (hi.is_none()) return Loop(k::constant(int64, 0, {}, at), index_of(lo, at), step, at);
        return Loop(index_of(lo, at), index_of(hi, at), step, at);
      },
      nb::arg("start"), nb::arg("stop") = nb::none(), nb::arg("step") = 1,
      nb::sig("def range(start: Value | int, stop: Value | int | None = None, step: int = 1) -> Loop"),
      "Returns a loop over start, start + step, … below stop, or over 0 … start-1: `for i in range(n):`. What its body "
      "makes stays in it; variables (var) carry values on.");
  m.def(
      "parallel", [](int64_t iterations) { return Loop(iterations, here()); }, nb::arg("n"),
      "Returns a loop over 0 … n-1 whose iterations may run at once: none reads what another one writes. Behind it all "
      "see what they stored in scratch.");
  nb::class_<When>(m, "When", "A condition of a kernel, as a context.")
      .def("__enter__", &When::enter)
      .def(
          "__exit__", [](When& w, nb::handle type, nb::handle, nb::handle) { w.exit(type); }, nb::arg("type").none(),
          nb::arg("value").none(), nb::arg("traceback").none(),
          nb::sig("def __exit__(self, type: object, value: object, traceback: object) -> None"));
  m.def(
      "when",
      [](nb::handle condition) {
        const Line at = here();
        return When(tile_of(condition, at), at);
      },
      nb::arg("condition"), nb::sig("def when(condition: Value) -> When"),
      "Returns a context whose body runs if a bool scalar holds: `with when(i > 0):`.");
  m.def(
      "if_else",
      [](nb::handle condition, const nb::callable& then, const nb::callable& otherwise) {
        const Line at = here();
        return tiles(k::if_else(tile_of(condition, at), branch_of(then, at), branch_of(otherwise, at), at));
      },
      nb::arg("condition"), nb::arg("then"), nb::arg("otherwise"),
      nb::sig("def if_else(condition: Value, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any"),
      "Returns what one of two functions returns: a tile, or several of the same types, or None.");
  m.def(
      "while_",
      [](const nb::callable& condition, const nb::callable& body) {
        const Line at = here();
        k::while_([&] { return tile_of(condition(), at); }, [&] { body(); }, at);
      },
      nb::arg("condition"), nb::arg("body"),
      nb::sig("def while_(condition: Callable[[], Value], body: Callable[[], object]) -> None"),
      "Runs the body as long as the condition, computed before each iteration, holds.");
}

k::Order order_of(const std::string& name) {
  constexpr std::array orders{"parallel", "sequential", "ordered", "cluster"};
  for (size_t n = 0; n < orders.size(); ++n)
    if (name == orders[n]) return static_cast<k::Order>(n);
  throw std::invalid_argument(
      "[kernel] the order of an axis is \"parallel\", \"sequential\", \"ordered\" or "
      "\"cluster\", not \"" +
      name + "\"");
}

void define_programs(nb::module_& m) {
  nb::class_<k::GridAxis>(m, "Axis", "An axis of a grid: a number of programs, and how they run.")
      .def(
          "__init__",
          [](k::GridAxis* self, nb::handle n, const std::string& order) {
            int64_t number = 0;
            if (!is_value(n) && read_int(n, number)) new (self) k::GridAxis(number, order_of(order));
            else new (self) k::GridAxis(index_of(n, here()), order_of(order));
          },
          nb::arg("n"), nb::arg("order") = "parallel",
          nb::sig("def __init__(self, n: Value | int, "
                  "order: Literal[\"parallel\", \"sequential\", \"ordered\", \"cluster\"] = \"parallel\") -> None"),
          "order: parallel (in any order and at once); sequential (one after another, each seeing what those before it "
          "stored); ordered (begun in order, so that one may wait for those before it); cluster (1 to 8 along the last "
          "axis, which reach each other's shared memory).");
  m.def(
      "program_id", [](int axis) { return Tile(k::program(axis, here())); }, nb::arg("axis"),
      "Returns the number of this program along an axis of the grid.");
  m.def(
      "num_programs", [](int axis) { return k::num_programs(axis, here()); }, nb::arg("axis"),
      "Returns the number of programs along an axis of the grid; throws where it is known at run time alone.");
  m.def(
      "program_count", [](int axis) { return Tile(k::programs_along(axis, here())); }, nb::arg("axis"),
      "Returns the number of programs along an axis of the grid as an int64 scalar.");
  m.def(
      "cdiv",
      [](nb::handle a, int64_t b) -> nb::object {
        int64_t number = 0;
        if (!is_value(a) && read_int(a, number)) return nb::int_(k::cdiv(number, b));
        const Line at = here();
        return nb::cast(Tile(k::cdiv(k::Index(index_of(a, at)), b, at).any()));
      },
      nb::arg("a"), nb::arg("b"),
      nb::sig("@overload\ndef cdiv(a: int, b: int) -> int: ...\n"
              "@overload\ndef cdiv(a: Value, b: int) -> Tile"),
      "Returns a / b rounded up, b positive: an int of ints.");
  m.def(
      "swizzle2d",
      [](nb::handle i, nb::handle j, int64_t rows, int64_t columns, int64_t group) {
        const Line at = here();
        const auto [a, b] = k::swizzle2d(index_of(i, at), index_of(j, at), rows, columns, group, at);
        return std::pair(Tile(a), Tile(b));
      },
      nb::arg("i"), nb::arg("j"), nb::arg("m"), nb::arg("n"), nb::arg("group"),
      nb::sig("def swizzle2d(i: Value, j: Value, m: int, n: int, group: int) -> tuple[Tile, Tile]"),
      "Returns the tile of an m x n grid of tiles that program (i, j) takes, by bands of `group` rows.");
}

void define_checks(nb::module_& m) {
  m.def(
      "assume_multiple",
      [](nb::handle v, int64_t divisor) {
        const Line at = here();
        return Tile(k::assume_multiple(index_of(v, at), divisor, at));
      },
      nb::arg("v"), nb::arg("divisor"), nb::sig("def assume_multiple(v: Value, divisor: int) -> Tile"),
      "Returns v, an int64 scalar that `divisor` divides: guards that this makes superfluous are left out.");
  m.def(
      "assume_range",
      [](nb::handle v, int64_t low, int64_t high) {
        const Line at = here();
        return Tile(k::assume_range(index_of(v, at), low, high, at));
      },
      nb::arg("v"), nb::arg("low"), nb::arg("high"), nb::sig("def assume_range(v: Value, low: int, high: int) -> Tile"),
      "Returns v, an int64 scalar that lies within bounds.");
  m.def(
      "print",
      [](const std::string& text, const nb::args& values) {
        const Line at = here();
        std::vector<Any> list;
        for (const nb::handle v : values) list.push_back(tile_of(v, at));
        k::print(text, list, at);
      },
      nb::arg("text"), nb::arg("values"), nb::sig("def print(text: str, *values: Value) -> None"),
      "Prints text and values, once a program.");
  m.def(
      "check",
      [](nb::handle condition, const std::string& text) {
        const Line at = here();
        k::assert_(tile_of(condition, at), text, at);
      },
      nb::arg("condition"), nb::arg("text"), nb::sig("def check(condition: Value, text: str) -> None"),
      "Fails the launch where the condition does not hold.");
  m.def(
      "lanes",
      [](const std::string& what, nb::handle v, int64_t width, nb::handle other, const std::string& op) {
        const Line at = here();
        const Any second = other.is_none() ? Any() : operand(other, int32, at);
        return Tile(k::lanes(what, tile_of(v, at), width, second, op, at));
      },
      nb::arg("what"), nb::arg("v"), nb::arg("width") = 32, nb::arg("other") = nb::none(), nb::arg("op") = "add",
      nb::sig("def lanes(what: str, v: Value, width: int = 32, other: Value | int | None = None, op: str = \"add\") -> "
              "Tile"),
      "Computes a function of groups of lanes along the last axis: shuffle, shuffle_up, shuffle_down, shuffle_xor "
      "(`other`: lanes); all, any, uniform, ballot; match_any, match_all; reduce, scan, scan_exclusive by `op`.");
}

}  // namespace

void define_control(nb::module_& m) {
  define_loops(m);
  define_programs(m);
  define_checks(m);
}

}  // namespace weft::python::kernels
