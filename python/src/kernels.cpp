// Kernels of users from CUDA C++ text.
#include "module.h"
#include "weft/fast.h"

namespace weft::python {

namespace {

using Template = std::vector<std::pair<std::string, fast::TemplateArg>>;

Template template_of(const std::optional<std::vector<std::pair<std::string, nb::object>>>& given) {
  Template out;
  if (!given) return out;
  for (const auto& [name, value] : *given) {
    if (nb::isinstance<Dtype>(value)) out.emplace_back(name, nb::cast<Dtype>(value));
    else if (PyBool_Check(value.ptr())) out.emplace_back(name, value.ptr() == Py_True);
    else if (PyLong_Check(value.ptr())) out.emplace_back(name, nb::cast<int>(value));
    else throw std::invalid_argument("[cuda_kernel] template argument " + name + " must be an int, a bool or a dtype");
  }
  return out;
}

using Threads = std::tuple<int, int, int>;

/// A kernel with MLX's keyword arguments.
struct PythonKernel {
  fast::CustomKernelFunction call;

  nb::object operator()(const std::vector<Operand>& inputs, const std::vector<Shape>& output_shapes,
                        const std::vector<Dtype>& output_dtypes, const Threads& grid, const Threads& threadgroup,
                        const std::optional<std::vector<std::pair<std::string, nb::object>>>& template_args,
                        std::optional<float> init_value, bool verbose, const StreamOrDevice& stream) const {
    return helpers::list(call(helpers::arrays(inputs), output_shapes, output_dtypes, grid, threadgroup,
                              template_of(template_args), init_value, verbose, stream));
  }
};

[[noreturn]] void no_metal() {
  throw std::runtime_error(
      "[metal_kernel] Weft does not run on Apple's GPUs; write the kernel with cuda_kernel, or in "
      "C++ with weft/kernel.h, which runs on CPUs too");
}

}  // namespace

void define_kernels(nb::module_& m) {
  nb::class_<PythonKernel>(m, "CustomKernel", "A kernel of CUDA C++: a function of its inputs.")
      .def("__call__", &PythonKernel::operator(), nb::kw_only(), nb::arg("inputs"), nb::arg("output_shapes"),
           nb::arg("output_dtypes"), nb::arg("grid"), nb::arg("threadgroup"), nb::arg("template") = nb::none(),
           nb::arg("init_value") = nb::none(), nb::arg("verbose") = false, nb::arg("stream") = nb::none(),
           nb::sig("def __call__(self, *, inputs: Sequence[scalar | array], output_shapes: Sequence[Sequence[int]], "
                   "output_dtypes: Sequence[Dtype], grid: tuple[int, int, int], threadgroup: tuple[int, int, int], "
                   "template: Sequence[tuple[str, int | bool | Dtype]] | None = None, "
                   "init_value: float | None = None, verbose: bool = False, "
                   "stream: Stream | ThreadLocalStream | Device | DeviceType | None = None) -> list[array]"));
  m.def(
      "cuda_kernel",
      [](const std::string& name, const std::vector<std::string>& input_names,
         const std::vector<std::string>& output_names, const std::string& source, const std::string& header,
         bool ensure_row_contiguous, int shared_memory) {
        return PythonKernel{
            fast::cuda_kernel(name, input_names, output_names, source, header, ensure_row_contiguous, shared_memory)};
      },
      nb::arg("name"), nb::arg("input_names"), nb::arg("output_names"), nb::arg("source"), nb::arg("header") = "",
      nb::arg("ensure_row_contiguous") = true, nb::arg("shared_memory") = 0,
      nb::sig("def cuda_kernel(name: str, input_names: Sequence[str], output_names: Sequence[str], source: str, "
              "header: str = \"\", ensure_row_contiguous: bool = True, shared_memory: int = 0) -> CustomKernel"),
      "Returns a kernel of CUDA C++, of which `source` is the body. It runs on GPUs alone.");
  m.def(
      "metal_kernel",
      [](const nb::args&, const nb::kwargs&) {
        return nb::cpp_function([](const nb::args&, const nb::kwargs&) { no_metal(); });
      },
      nb::arg("args"), nb::arg("kwargs"), nb::sig("def metal_kernel(*args: Any, **kwargs: Any) -> Callable[..., Any]"),
      "Returns a function that raises RuntimeError: kernels in Metal are of Apple's GPUs. Modules that define one can "
      "be imported.");
}

}  // namespace weft::python
