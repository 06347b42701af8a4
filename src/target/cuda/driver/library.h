#pragma once
// CUDA's driver and libraries, opened at run time: one binary serves machines with and without a GPU. A library is
// searched for once, at its first use; the reason why it is missing is kept.
#include <memory>
#include <string>
#include <vector>

namespace weft::target::cuda {

class Library {
 public:
  /// `sonames`: in order of preference. `costs`: what does not work, or is slower, without it. `first`: libraries that
  /// this one opens by name while it works; they are opened before it, because the loader may not know their folder.
  /// `whole`: most of it is used at once, so it is read at once.
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
  /// Sets `function`; returns false if the library lacks the symbol.
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

/// Returns a table of the functions that `for_each_function` lists, never freed; null if the library lacks any of them.
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
/// Returns the version that the library itself reports, "13.1.0"; "" if it is missing or reports none.
std::string version(const Library& library);
/// Returns all libraries, in this order.
std::vector<const Library*> libraries();

/// Returns the entries of WEFT_CUDA_PATH, whether they exist or not.
std::vector<std::string> stated_folders();
/// Returns the folders that are searched in addition to the loader's: those of WEFT_CUDA_PATH (each entry a folder of
/// libraries, a toolkit, or a Python site-packages with NVIDIA's wheels), site-packages named by LD_LIBRARY_PATH,
/// CUDA_HOME, CUDA_PATH, and the usual ones.
std::vector<std::string> library_folders();

}  // namespace weft::target::cuda
