#include "target/cuda/driver/library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "runtime/trace.h"

namespace weft::target::cuda {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> entries(const char* variable) {
  std::vector<std::string> out;
  const char* value = std::getenv(variable);
  for (std::string rest = value ? value : ""; !rest.empty();) {
    const size_t colon = rest.find(':');
    if (colon != 0) out.push_back(rest.substr(0, colon));
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  return out;
}

/// Adds the library folders of NVIDIA's wheels in a site-packages folder: nvidia/cu13/lib, nvidia/cublas/lib,
/// nvidia/cudnn/lib …
void add_wheels(const fs::path& site_packages, std::vector<std::string>& out) {
  std::error_code error;
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(site_packages / "nvidia", error))
    if (fs::is_directory(entry.path() / "lib", error)) found.push_back((entry.path() / "lib").string());
  std::sort(found.begin(), found.end());
  out.insert(out.end(), found.begin(), found.end());
}

void add_toolkit(const fs::path& root, std::vector<std::string>& out) {
  for (const char* folder : {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"})
    out.push_back((root / folder).string());
}

/// Opens `soname` from the stated folders, then from where the loader looks, then from the usual folders.
void* open_anywhere(const std::string& soname, const std::vector<std::string>& folders, std::string& why) {
  void* handle = nullptr;
  const auto attempt = [&](const std::string& file) {
    const runtime::Span span("compiler", "library is opened");
    if ((handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) != nullptr) return true;
    const char* error = ::dlerror();
    const std::string text = error ? error : "unknown error";
    // "No such file" is the normal case; another error tells more.
    if (why.empty() || text.find("No such file") == std::string::npos) why = text;
    return false;
  };
  std::error_code error;
  const bool stated = std::getenv("WEFT_CUDA_PATH") != nullptr;
  if (!stated && attempt(soname)) return handle;
  for (const std::string& folder : folders)
    if (fs::exists(fs::path(folder) / soname, error) && attempt((fs::path(folder) / soname).string())) return handle;
  if (stated && attempt(soname)) return handle;
  return nullptr;
}

/// Reads a whole library into memory at once. A compiler touches most of its hundred megabytes within its first second;
/// read page by page from several threads that takes seconds on a machine that has not run it before.
void read_ahead(void* handle) {
#ifdef MADV_POPULATE_READ
  const link_map* wanted = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &wanted) != 0 || !wanted) return;
  const auto visit = [](dl_phdr_info* library, size_t, void* base) {
    if (library->dlpi_addr != *static_cast<const ElfW(Addr)*>(base)) return 0;
    constexpr uintptr_t page = 4096;
    for (int i = 0; i < library->dlpi_phnum; ++i) {
      const ElfW(Phdr)& part = library->dlpi_phdr[i];
      if (part.p_type != PT_LOAD || (part.p_flags & PF_W)) continue;
      const uintptr_t begin = (library->dlpi_addr + part.p_vaddr) / page * page,
                      end = library->dlpi_addr + part.p_vaddr + part.p_memsz;
      ::madvise(reinterpret_cast<void*>(begin), end - begin,
                MADV_POPULATE_READ);  // older systems refuse: pages are then read when touched
    }
    return 1;
  };
  ElfW(Addr) base = wanted->l_addr;
  ::dl_iterate_phdr(visit, &base);
#else
  (void)handle;
#endif
}

}  // namespace

std::vector<std::string> stated_folders() { return entries("WEFT_CUDA_PATH"); }

std::vector<std::string> library_folders() {
  std::vector<std::string> out;
  for (const std::string& entry : stated_folders()) {
    out.push_back(entry);
    add_toolkit(entry, out);
    add_wheels(entry, out);
  }
  for (const std::string& entry : entries("LD_LIBRARY_PATH")) add_wheels(entry, out);
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    for (const std::string& entry : entries(variable)) add_toolkit(entry, out);
  add_toolkit("/usr/local/cuda", out);
  for (const char* folder :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib/wsl/lib"})
    out.emplace_back(folder);
  return out;
}

struct Library::State {
  std::once_flag once;
  void* handle = nullptr;
  std::string path, why;
};

Library::Library(std::string name, std::vector<std::string> sonames, std::string costs,
                 std::vector<const Library*> first, bool whole)
    : name_(std::move(name)), costs_(std::move(costs)), sonames_(std::move(sonames)), first_(std::move(first)),
      whole_(whole), state_(new State) {}

Library::~Library() {
  if (state_->handle) ::dlclose(state_->handle);
  delete state_;
}

const Library::State& Library::state() const {
  std::call_once(state_->once, [this] {
    for (const Library* library : first_) library->available();
    const std::vector<std::string> folders = library_folders();
    std::string found;
    for (const std::string& soname : sonames_) {
      std::string why;
      if ((state_->handle = open_anywhere(soname, folders, why)) != nullptr) {
        found = soname;
        break;
      }
      state_->why += (state_->why.empty() ? "" : "; ") + why;
    }
    if (!state_->handle) return;
    if (whole_) read_ahead(state_->handle);
    // Any symbol of a library gives its file; dlinfo gives it from the handle.
    char origin[4096] = "";
    state_->path = ::dlinfo(state_->handle, RTLD_DI_ORIGIN, origin) == 0 ? std::string(origin) + "/" + found : found;
  });
  return *state_;
}

bool Library::available(std::string* why) const {
  const State& s = state();
  if (!s.handle && why) *why = s.why;
  return s.handle != nullptr;
}

const std::string& Library::path() const { return state().path; }

void* Library::symbol(const char* symbol) const {
  const State& s = state();
  return s.handle ? ::dlsym(s.handle, symbol) : nullptr;
}

// The libraries are never closed: their clean-up at the end of the process may run after ours.
const Library& driver_library() {
  static const Library* library = new Library("CUDA driver", {"libcuda.so.1"}, "nothing runs on a GPU");
  return *library;
}

const Library& nvrtc_library() {
  static const Library* library =
      new Library("NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12"}, "no kernel can be compiled for a GPU", {}, true);
  return *library;
}

const Library& cublaslt_library() {
  static const Library* library =
      new Library("cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12"},
                  "matrix products run through generated kernels, at a fraction of the speed where they are large");
  return *library;
}

const Library& cudnn_library() {
  static const Library* library =
      new Library("cuDNN", {"libcudnn.so.9"},
                  "attention and convolutions run through generated kernels, at a fraction of the speed",
                  {&nvrtc_library(), &cublaslt_library()});
  return *library;
}

const Library& cufft_library() {
  static const Library* library = new Library("cuFFT", {"libcufft.so.12", "libcufft.so.11"},
                                              "Fourier transforms run on the processor, with copies to and fro");
  return *library;
}

const Library& cublas_library() {
  static const Library* library =
      new Library("cuBLAS", {"libcublas.so.13", "libcublas.so.12"},
                  "matrix decompositions run on the processor, with copies to and fro", {&cublaslt_library()});
  return *library;
}

const Library& cusolver_library() {
  static const Library* library = new Library("cuSOLVER", {"libcusolver.so.12", "libcusolver.so.11"},
                                              "matrix decompositions run on the processor, with copies to and fro",
                                              {&cublaslt_library(), &cublas_library()});
  return *library;
}

std::string version(const Library& library) {
  // How each library reports its version: major * unit + minor * step + patch.
  const auto text = [](long long number, long long unit, long long step) {
    return fmt::format("{}.{}.{}", number / unit, number % unit / step, number % step);
  };
  size_t (*whole)() = nullptr;
  int (*into)(int* number) = nullptr;
  int (*parts)(int* major, int* minor) = nullptr;
  int major = 0, minor = 0;
  if (library.bind(parts, "nvrtcVersion") && parts(&major, &minor) == 0) return fmt::format("{}.{}", major, minor);
  if (library.bind(into, "cuDriverGetVersion") && into(&major) == 0)
    return fmt::format("{}.{}", major / 1000, major % 1000 / 10);
  if ((library.bind(into, "cufftGetVersion") || library.bind(into, "cusolverGetVersion")) && into(&major) == 0)
    return text(major, 1000, 100);
  // These come last, because a lookup also finds symbols of a library's dependencies, and cuBLAS and cuSOLVER depend on
  // cuBLASLt.
  if (library.bind(whole, "cublasLtGetVersion") || library.bind(whole, "cudnnGetVersion"))
    return text(static_cast<long long>(whole()), 10000, 100);
  return "";
}

std::vector<const Library*> libraries() {
  return {&driver_library(), &nvrtc_library(),  &cublaslt_library(), &cudnn_library(),
          &cufft_library(),  &cublas_library(), &cusolver_library()};
}

}  // namespace weft::target::cuda
