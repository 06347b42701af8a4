#include "target/cuda/driver/driver.h"

#include <fmt/format.h>

#include "base/error.h"
#include "target/cuda/driver/driver_functions.h"
#include "target/cuda/driver/library.h"

namespace weft::target::cuda {
namespace {

/// Binds all functions; returns the first one that libcuda.so.1 lacks, or "".
std::string bind_all(Driver& d) {
  std::string missing;
  for_each_function(d, [&missing](auto*& function, const char* name) {
    if (!driver_library().bind(function, name) && missing.empty()) missing = name;
  });
  return missing;
}

std::string text_of(const Driver& d, int result) {
  const char *name = nullptr, *text = nullptr;
  if (d.get_error_name) d.get_error_name(result, &name);
  if (d.get_error_string) d.get_error_string(result, &text);
  if (!name) return fmt::format("result {}", result);
  return text ? fmt::format("{}: {}", name, text) : std::string(name);
}

struct Loaded {
  Driver functions{};
  int version = 0;
  std::string why;  // why the driver does not work; empty if it does

  Loaded() {
    std::string reason;
    if (!driver_library().available(&reason)) {
      why = fmt::format(
          "no CUDA driver ({}); install NVIDIA's driver, or set WEFT_CUDA_PATH to the folder of libcuda.so.1", reason);
      return;
    }
    const std::string missing = bind_all(functions);
    if (functions.driver_get_version && functions.driver_get_version(&version) != success) version = 0;
    if (!missing.empty()) {
      why = fmt::format("the CUDA driver in {} (CUDA {}.{}) lacks {}; a driver for CUDA 12.0 or later is needed",
                        driver_library().path(), version / 1000, version % 1000 / 10, missing);
      return;
    }
    int count = 0;
    if (const int result = functions.init(0); result != success) {
      why = fmt::format("the CUDA driver does not start (cuInit: {})", text_of(functions, result));
    } else if (const int listed = functions.device_get_count(&count); listed != success) {
      why = fmt::format("the CUDA driver names no devices (cuDeviceGetCount: {})", text_of(functions, listed));
    } else if (count == 0) {
      why = "the CUDA driver works and sees no device (CUDA_VISIBLE_DEVICES may hide them)";
    }
  }
};

const Loaded& loaded() {
  static const Loaded* instance = new Loaded;  // never destroyed: buffers may be freed while the process ends
  return *instance;
}

}  // namespace

bool available(std::string* why) {
  if (why) *why = loaded().why;
  return loaded().why.empty();
}

const Driver& driver() {
  if (!loaded().why.empty()) throw_failure("cuda", loaded().why + "; or compute on the CPU");
  return loaded().functions;
}

int driver_version() { return loaded().version; }

std::string error_text(int result) { return text_of(loaded().functions, result); }

void check_result(int result, const char* call, const std::string& what) {
  if (result == success) return;
  throw_failure("cuda",
                fmt::format("{} failed: {}{}", call, error_text(result), what.empty() ? "" : " (" + what + ")"));
}

}  // namespace weft::target::cuda
