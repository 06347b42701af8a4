// The explicit level of the kernel language in Python: shared memory, asynchronous copies and products, barriers,
// roles, programs that wait for each other.
#include "weft/kernel/erased_async.h"

#include <array>

#include "kernel_language.h"

namespace weft::python::kernels {

namespace {

k::SharedLayout layout_of(const std::string& name, Line at) {
  constexpr const char* layouts[] = {"row_major", "padded", "swizzle32", "swizzle64", "swizzle128"};
  return static_cast<k::SharedLayout>(choice_of(layouts, name, "layout of shared memory", at));
}

void define_copies(nb::module_& m) {
  m.def(
      "shared",
      [](const Lengths& shape, const std::optional<Dtype>& dtype, const std::string& layout) {
        const Line at = here();
        return Ref{k::shared(dtype.value_or(float32), extents_of(shape), layout_of(layout, at), at)};
      },
      nb::arg("shape"), nb::arg("dtype") = nb::none(), nb::arg("layout") = "row_major",
      "Returns memory that the threads of a program share, not initialised (float32). layout: row_major, padded, "
      "swizzle32, swizzle64, swizzle128.");
  m.def(
      "copy_async",
      [](const Part& to, const Part& from, nb::handle other) {
        k::copy_async(to.ref, to.spans, from.ref, from.spans, scalar_of(other), {}, {}, here());
      },
      nb::arg("to"), nb::arg("x"), nb::arg("other") = 0,
      nb::sig("def copy_async(to: Slice, x: Slice, other: float = 0) -> None"),
      "Copies a slice of an array into one of shared memory, at any time before the wait for it.");
  m.def(
      "commit_copies", [] { k::commit_copies(here()); }, "Makes a group of the copies since the last one.");
  m.def(
      "wait_copies", [](int64_t left) { k::wait_copies(left, here()); }, nb::arg("left") = 0,
      "Waits until all groups of copies but the last `left` ones are done.");
  m.def(
      "dot_async",
      [](nb::handle a, nb::handle b, nb::handle c, const std::string& precision) {
        const Line at = here();
        return Tile(k::dot_async(tile_of(a, at), tile_of(b, at), c.is_none() ? Any() : tile_of(c, at),
                                 precision_of(precision, at), at));
      },
      nb::arg("a"), nb::arg("b"), nb::arg("c") = nb::none(), nb::arg("precision") = "exact",
      nb::sig("def dot_async(a: Value, b: Value, c: Value | None = None, "
              "precision: Literal[\"exact\", \"tf32\", \"tf32x3\"] = \"exact\") -> Tile"),
      "Begins a product, as dot makes it, and returns it under way: wait_dot alone reads it.");
  m.def(
      "wait_dot", [](const Tile& flight) { return Tile(k::wait_dot(flight.tile, here())); }, nb::arg("flight"),
      "Waits for a product under way, and returns it.");
}

void define_barriers(nb::module_& m) {
  nb::class_<k::AnyBarriers>(
      m, "Barriers",
      "Barriers of a program. A phase of one, counted from 0 on, ends with so many arrivals, and "
      "when the copies that report to it are done.")
      .def(
          "__init__",
          [](k::AnyBarriers* self, int64_t count, int64_t arrivals) {
            new (self) k::AnyBarriers(k::barriers(count, arrivals, here()));
          },
          nb::arg("count") = 1, nb::arg("arrivals") = 1)
      .def(
          "arrive",
          [](const k::AnyBarriers& b, nb::handle index) {
            const Line at = here();
            k::arrive(b, index_of(index, at), at);
          },
          nb::arg("index") = 0, nb::sig("def arrive(self, index: Value | int = 0) -> None"),
          "Counts as one arrival, after all that this program or role did before.")
      .def(
          "wait",
          [](const k::AnyBarriers& b, nb::handle phase, nb::handle index) {
            const Line at = here();
            k::wait(b, index_of(index, at), index_of(phase, at), at);
          },
          nb::arg("phase"), nb::arg("index") = 0,
          nb::sig("def wait(self, phase: Value | int, index: Value | int = 0) -> None"),
          "Waits for the end of a phase: the present one, or the one before it, at the beginning -1.")
      .def(
          "copy",
          [](const k::AnyBarriers& b, const Part& to, const Part& from, nb::handle index, nb::handle other) {
            const Line at = here();
            k::copy_async(to.ref, to.spans, from.ref, from.spans, scalar_of(other), b, index_of(index, at), at);
          },
          nb::arg("to"), nb::arg("x"), nb::arg("index") = 0, nb::arg("other") = 0,
          nb::sig("def copy(self, to: Slice, x: Slice, index: Value | int = 0, other: float = 0) -> None"),
          "Copies a slice, and the present phase does not end before the copy is done.");
  m.def(
      "roles",
      [](const nb::args& given) {
        std::vector<k::Role> roles;
        for (const nb::handle r : given) {
          const nb::object body = nb::borrow(r[1]);
          roles.push_back({.warps = nb::cast<int64_t>(nb::object(r[0])), .body = [body] { body(); }});
          if (nb::len(r) > 2) roles.back().registers = nb::cast<int64_t>(nb::object(r[2]));
        }
        k::roles(roles, here());
      },
      nb::arg("roles"),
      nb::sig("def roles(*roles: tuple[int, Callable[[], object]] | tuple[int, Callable[[], object], int]) -> None"),
      "Runs functions at once, each by warps of its own: (warps, f) or (warps, f, registers of a thread). They "
      "communicate by shared memory and barriers, and end together.");
}

void define_waits(nb::module_& m) {
  m.def(
      "wait_until",
      [](const Ref& x, nb::handle condition, const nb::args& position, const std::string& order,
         const std::string& scope) {
        const Line at = here();
        const std::function<Any(Any)> holds = [&](Any found) {
          if (!is_value(condition) && PyCallable_Check(condition.ptr()))
            return tile_of(nb::borrow(condition)(Tile(found)), at);
          return k::apply("eq", std::array{found, operand(condition, x.ref.dtype, at)}, at);
        };
        return Tile(k::wait_until(x.ref, positions_of(position, at), holds, ordering_of(order, scope, at), at));
      },
      nb::arg("x"), nb::arg("condition"), nb::arg("position"), nb::kw_only(), nb::arg("order") = "acquire",
      nb::arg("scope") = "device",
      nb::sig("def wait_until(x: Ref, condition: Value | float | Callable[[Tile], Value], *position: Value | int, "
              "order: str = \"acquire\", scope: str = \"device\") -> Tile"),
      "Waits until an element of an array is a value, or a function of it is true, and returns it: programs of an "
      "ordered grid wait so for those before them, which change it by atomics.");
  m.def(
      "grid_barrier", [] { k::grid_barrier(here()); }, "Waits until all programs of the launch have come here.");
  m.def(
      "cluster_barrier", [] { k::cluster_barrier(here()); }, "Waits until all programs of the cluster have come here.");
  m.def(
      "cluster_size", [] { return k::cluster_size(here()); }, "Returns the number of programs of a cluster.");
  m.def(
      "cluster_rank", [] { return Tile(k::cluster_rank(here())); },
      "Returns the number of this program among those of its cluster.");
  m.def(
      "load_neighbour",
      [](const Part& slice, nb::handle rank) {
        const Line at = here();
        return Tile(k::load_neighbour(slice.ref, slice.spans, index_of(rank, at), at));
      },
      nb::arg("slice"), nb::arg("rank"), nb::sig("def load_neighbour(slice: Slice, rank: Value | int) -> Tile"),
      "Returns a slice of the shared memory, or scratch, of another program of the cluster.");
  m.def(
      "store_neighbour",
      [](const Part& slice, nb::handle rank, nb::handle value) {
        const Line at = here();
        k::store_neighbour(slice.ref, slice.spans, index_of(rank, at), operand(value, slice.ref.dtype, at), at);
      },
      nb::arg("slice"), nb::arg("rank"), nb::arg("value"),
      nb::sig("def store_neighbour(slice: Slice, rank: Value | int, value: Value | float) -> None"),
      "Stores a tile into a slice of the memory of another program of the cluster.");
}

}  // namespace

void define_asynchronous(nb::module_& m) {
  define_copies(m);
  define_barriers(m);
  define_waits(m);
}

}  // namespace weft::python::kernels
