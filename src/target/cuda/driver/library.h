#pragma once
// CUDA's driver and libraries, opened while the program runs: one binary serves machines with and without a GPU. A
// library is looked for once, when somebody first asks for it, and why it is missing is remembered.
#include <memory>
#include <string>
#include <vector>

namespace weft::target::cuda {

class Library {
 public:
  /// `sonames` in order of preference; `costs`: what does not work, or is slower, without it; `first`: libraries that
  /// this one opens by name while it works, which are therefore opened before (theirs need not be a folder that the
  /// loader knows); `whole`: most of it is used at once, so that it is read at once.
  Library(std::string name, std::vector<std::string> sonames, std::string costs, std::vector<const Library*> first = {},
          bool whole = false);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  bool available(std::string* why = nullptr) const;
  const std::string& name() const { return name_; }  // "cuBLASLt"
  const std::string& costs() const { return costs_; }
  const std::string& path() const;         // the file that was opened, or ""
  void* symbol(const char* symbol) const;  // null where the library is missing or lacks it
  /// Sets `function`; false where it is missing.
  template <class F>
  bool bind(F*& function, const char* symbol_name) const {
    function = reinterpret_cast<F*>(symbol(symbol_name));
    return function != nullptr;
  }

 private:
  struct State;
  const State& state() const;
  std::string name_, costs_;
  std::vector<std::string> sonames_;
  std::vector<const Library*> first_;
  bool whole_;
  State* state_;
};

/// A table of functions as `for_each_function` lists them, made to be kept; null where the library lacks any of them.
template <class Api>
const Api* bind_all(const Library& library) {
  auto functions = std::make_unique<Api>();
  bool all = library.available();
  if (all)
    for_each_function(*functions,
                      [&](auto*& function, const char* name) { all = library.bind(function, name) && all; });
  return all ? functions.release() : nullptr;
}

const Library& driver_library();  // libcuda.so.1
const Library& nvrtc_library();
const Library& cublaslt_library();
const Library& cublas_library();
const Library& cudnn_library();
const Library& cufft_library();
const Library& cusolver_library();
/// "13.1.0", from the library itself; "" where it is missing or does not say.
std::string version(const Library& library);
/// All of them, in this order.
std::vector<const Library*> libraries();

/// The entries of WEFT_CUDA_PATH, which may or may not be there.
std::vector<std::string> stated_folders();
/// The folders beside the loader's own where libraries are looked for: those of WEFT_CUDA_PATH (each entry: a folder of
/// libraries, a toolkit, or a Python site-packages with NVIDIA's wheels), site-packages named by LD_LIBRARY_PATH,
/// CUDA_HOME, CUDA_PATH, and the usual ones.
std::vector<std::string> library_folders();

}  // namespace weft::target::cuda
