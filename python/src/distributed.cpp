#include "weft/distributed.h"

#include "module.h"

namespace weft::python {

namespace {

using distributed::Group;
using OptionalGroup = std::optional<Group>;

constexpr const char* tail =
    ", *, group: Group | None = None, stream: Stream | ThreadLocalStream | Device | DeviceType | None = None) -> array";

void define_collectives(nb::module_& m) {
  const auto define = [&](const char* name, array (*operation)(const array&, const OptionalGroup&, StreamOrDevice),
                          const char* doc) {
    m.def(
        name,
        [operation](const Operand& x, const OptionalGroup& group, const StreamOrDevice& stream) {
          return operation(x.get(), group, stream);
        },
        nb::arg("x"), nb::kw_only(), nb::arg("group") = nb::none(), nb::arg("stream") = nb::none(),
        nb::sig((std::string("def ") + name + "(x: scalar | array" + tail).c_str()), doc);
  };
  define("all_sum", distributed::all_sum, "Returns the sum of the processes' arrays, in each process.");
  define("all_max", distributed::all_max, "Returns the largest elements of the processes' arrays.");
  define("all_min", distributed::all_min, "Returns the smallest elements of the processes' arrays.");
  define("all_gather", distributed::all_gather, "Returns the processes' arrays, joined along the first axis.");
  define("sum_scatter", distributed::sum_scatter, "Returns this process' part of the sum of the arrays.");
}

void define_exchanges(nb::module_& m) {
  m.def(
      "send",
      [](const Operand& x, int dst, const OptionalGroup& group, const StreamOrDevice& stream) {
        return distributed::send(x.get(), dst, group, stream);
      },
      nb::arg("x"), nb::arg("dst"), nb::kw_only(), nb::arg("group") = nb::none(), nb::arg("stream") = nb::none(),
      nb::sig((std::string("def send(x: scalar | array, dst: int") + tail).c_str()),
      "Sends an array to another process; returns it.");
  m.def(
      "recv",
      [](const Lengths& shape, Dtype dtype, int src, const OptionalGroup& group, const StreamOrDevice& stream) {
        return distributed::recv(shape.shape, dtype, src, group, stream);
      },
      nb::arg("shape"), nb::arg("dtype"), nb::arg("src"), nb::kw_only(), nb::arg("group") = nb::none(),
      nb::arg("stream") = nb::none(),
      nb::sig((std::string("def recv(shape: int | Sequence[int], dtype: Dtype, src: int") + tail).c_str()),
      "Returns an array of this shape and dtype that another process sends.");
  m.def(
      "recv_like",
      [](const Operand& x, int src, const OptionalGroup& group, const StreamOrDevice& stream) {
        return distributed::recv_like(x.get(), src, group, stream);
      },
      nb::arg("x"), nb::arg("src"), nb::kw_only(), nb::arg("group") = nb::none(), nb::arg("stream") = nb::none(),
      nb::sig((std::string("def recv_like(x: scalar | array, src: int") + tail).c_str()),
      "Returns an array of x's shape and dtype that another process sends.");
}

}  // namespace

void define_distributed(nb::module_& m) {
  nb::class_<Group>(m, "Group", "Processes that communicate.")
      .def("rank", &Group::rank, "Returns the number of this process, from 0 on.")
      .def("size", &Group::size, "Returns the number of processes.")
      .def("split", &Group::split, nb::arg("color"), nb::arg("key") = -1,
           "Returns the group of those processes that give the same color, ordered by key.");
  m.def("is_available", &distributed::is_available, nb::arg("backend") = "any",
        "Returns whether a backend is available.");
  m.def(
      "init",
      [](bool strict, const std::string& backend, nb::handle factory) {
        if (!factory.is_none())
          throw std::invalid_argument("[init] all_gather_factory: connections of the caller's own are not built yet");
        return distributed::init(strict, backend);
      },
      nb::arg("strict") = false, nb::arg("backend") = "any", nb::kw_only(), nb::arg("all_gather_factory") = nb::none(),
      nb::sig("def init(strict: bool = False, backend: str = \"any\", *, all_gather_factory: Any = None) -> Group"),
      "Returns the group of all processes of the program, this one alone where they are not connected.");
  define_collectives(m);
  define_exchanges(m);
}

}  // namespace weft::python
