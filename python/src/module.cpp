// The module weft.core: MLX's names and behaviours over libweft.
#include "module.h"
#include "transforms.h"
#include "tree.h"
#include "weft/backends.h"
#include "weft/evaluation.h"
#include "weft/utils.h"

namespace weft::python {

namespace {

void define_random_state(nb::module_& random) {
  nb::class_<RandomState>(random, "_RandomState",
                          "The state of the calling thread's default random sequence: a list "
                          "of one array, to capture in compile.")
      .def("__len__", [](const RandomState&) { return 1; })
      .def("__getitem__",
           [](const RandomState&, int at) {
             if (at != 0 && at != -1) throw nb::index_error("the random state has one array");
             return random::default_key();
           })
      .def("__setitem__",
           [](const RandomState&, int at, const array& key) {
             if (at != 0 && at != -1) throw nb::index_error("the random state has one array");
             random::default_key() = key;
           })
      .def("__iter__", [](const RandomState&) { return helpers::list({random::default_key()}).attr("__iter__")(); });
  random.attr("state") = RandomState{};
  random.def("seed", &random::seed, nb::arg("seed"), "Restarts the calling thread's default sequence.");
}

unsigned long main_thread = 0;

/// Returns whether a signal has arrived whose handler raises, as that of Ctrl-C does: the error is then set. Python
/// runs handlers on its main thread alone.
bool signal_raises() {
  if (PyThread_get_thread_ident() != main_thread) return false;
  const nb::gil_scoped_acquire held;
  return PyErr_CheckSignals() != 0;
}

/// Lets Ctrl-C end evaluations, which then raise what the signal's handler raised.
void define_interrupts() {
  main_thread = nb::cast<unsigned long>(nb::module_::import_("threading").attr("main_thread")().attr("ident"));
  set_interrupt_check(signal_raises);
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const interrupted&) {
      if (!PyErr_Occurred()) PyErr_SetNone(PyExc_KeyboardInterrupt);
    }
  });
}

}  // namespace

}  // namespace weft::python

NB_MODULE(core, m) {
  namespace p = weft::python;
  weft::get_global_formatter().capitalize_bool = true;  // as Python prints them
  weft::set_keep_referenced(true);                      // Python's temporaries end before an evaluation begins
  p::nb::set_leak_warnings(false);  // objects that live to the end of the program are no fault of its user
  m.attr("__version__") = weft::version();
  m.doc() = "Arrays, their operations, and transforms of functions.";
  p::define_dtypes(m);
  p::define_devices(m);
  p::define_lengths(m);
  p::define_array(m);
  p::nb::module_ linalg = m.def_submodule("linalg", "Linear algebra."),
                 fft = m.def_submodule("fft", "Fourier transforms."),
                 random = m.def_submodule("random", "Random numbers."),
                 fast = m.def_submodule("fast", "Composites with kernels of their own.");
  p::define_operations_a(m);
  p::define_operations_b(m);
  p::define_linalg(linalg);
  p::define_fft(fft);
  p::define_random(random);
  p::define_random_state(random);
  p::define_fast(fast);
  p::define_kernels(fast);
  p::define_functions(m);
  p::define_transforms(m);
  p::define_files(m);
  p::nb::module_ kernel = m.def_submodule("kernel", "Kernels on tiles: one function for CPUs and GPUs.");
  p::define_kernel_language(kernel);
  p::nb::module_ distributed = m.def_submodule("distributed", "Collective operations on arrays of several processes.");
  p::define_distributed(distributed);
  p::define_interrupts();
}
