#include "device.h"

#include <cstdlib>
#include <string_view>

#include "weft/device.h"

namespace weft::test {

bool on_gpu() {
  static const bool gpu = [] {
    const char* name = std::getenv("WEFT_TEST_DEVICE");
    return name && std::string_view(name) == "cuda";
  }();
  return gpu;
}

target::Target& target_under_test() { return on_gpu() ? target::gpu() : target::cpu(); }

namespace {

const bool chosen = [] {
  if (on_gpu()) set_default_device(Device::gpu);
  return true;
}();

}  // namespace

}  // namespace weft::test
