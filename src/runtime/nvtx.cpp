// The protocol between a program and a profiler, version 3. The profiler asks for tables by id; the first one gives it,
// for each module of functions, an array of pointers to the slots for its own functions.
// tests/target/cuda/cuda_declarations_test.cpp compares the ids with NVIDIA's headers where these are installed.
#include "runtime/nvtx.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>

#include "runtime/nvtx_protocol.h"

namespace weft::runtime::nvtx {

namespace {

constexpr size_t most_functions = 16;

/// The functions that the profiler set, and pointers to them.
struct Module {
  void (*functions[most_functions])() = {};
  void (**slots[most_functions + 1])() = {};
};

Module& functions_of(uint32_t number) {
  static auto* const all = new Module[std::size(module_sizes)];
  return all[number];
}

int function_table(uint32_t number, void (****table)(), unsigned* size) {
  if (number == 0 || number >= std::size(module_sizes)) return 0;
  Module& m = functions_of(number);
  for (size_t k = 1; k < module_sizes[number]; ++k) m.slots[k] = &m.functions[k];
  if (table) *table = m.slots;
  if (size) *size = module_sizes[number];
  return 1;
}

void set_version(uint32_t) {}

const void* export_table(uint32_t id) {
  static const CallbackTable callbacks{sizeof(CallbackTable), function_table};
  static const VersionTable version{sizeof(VersionTable), protocol_version, 0, set_version};
  return id == callbacks_table ? static_cast<const void*>(&callbacks) : id == version_table ? &version : nullptr;
}

/// Loads the profiler's library and leaves it open; returns false if there is none.
bool attach_profiler() {
  static const bool attached = [] {
    const char* path = std::getenv("NVTX_INJECTION64_PATH");
    void* library = path ? ::dlopen(path, RTLD_LAZY) : nullptr;
    return library && attach(reinterpret_cast<Initialize>(::dlsym(library, "InitializeInjectionNvtx2")));
  }();
  return attached;
}

const bool asked_for = [] {
  const char* wanted = std::getenv("WEFT_NVTX");
  return wanted && std::string(wanted) == "1" && enable();
}();

}  // namespace

bool attach(Initialize initialize) { return initialize && initialize(export_table) != 0; }

bool enable() {
  const auto& functions = functions_of(core_module).functions;
  if (!functions[range_push] && !attach_profiler()) return false;
  detail::enabled = functions[range_push] && functions[range_pop];
  return on();
}

void disable() { detail::enabled = false; }

void push(const char* name) {
  reinterpret_cast<int (*)(const char*)>(functions_of(core_module).functions[range_push])(name);
}
void pop() { reinterpret_cast<int (*)()>(functions_of(core_module).functions[range_pop])(); }

}  // namespace weft::runtime::nvtx
