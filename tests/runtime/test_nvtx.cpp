#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "runtime/nvtx.h"
#include "runtime/nvtx_protocol.h"

using namespace weft::runtime;

namespace {

std::vector<std::string> calls;

int pushed(const char* name) {
  calls.push_back(std::string("push ") + name);
  return 0;
}
int popped() {
  calls.emplace_back("pop");
  return 0;
}

/// What a profiler does when it is attached.
int initialize(const void* (*export_table)(uint32_t)) {
  const auto* callbacks = static_cast<const nvtx::CallbackTable*>(export_table(nvtx::callbacks_table));
  const auto* version = static_cast<const nvtx::VersionTable*>(export_table(nvtx::version_table));
  if (!callbacks || !version || version->version != 3 || export_table(2)) return 0;
  for (uint32_t module = 1; module <= 6; ++module) {
    void (***table)() = nullptr;
    unsigned size = 0;
    if (callbacks->function_table(module, &table, &size) == 0 || size != nvtx::module_sizes[module] || table[0] ||
        table[size])
      return 0;
    for (unsigned k = 1; k < size; ++k)
      if (!table[k]) return 0;
    if (module != nvtx::core_module) continue;
    *table[nvtx::range_push] = reinterpret_cast<void (*)()>(pushed);
    *table[nvtx::range_pop] = reinterpret_cast<void (*)()>(popped);
  }
  return callbacks->function_table(7, nullptr, nullptr) == 0;
}

}  // namespace

TEST_CASE("nvtx: ranges reach a profiler that is attached, while they are asked for") {
  { const nvtx::Range nobody("nobody hears"); }
  CHECK_FALSE(nvtx::on());
  CHECK(nvtx::attach(initialize));
  CHECK_FALSE(nvtx::attach(nullptr));
  { const nvtx::Range unasked("not asked for"); }
  CHECK(calls.empty());
  REQUIRE(nvtx::enable());
  int made = 0;
  const auto name = [&] { return "inner " + std::to_string(++made); };
  {
    const nvtx::Range outer("outer");
    const nvtx::Range inner(name);
  }
  CHECK(calls == std::vector<std::string>{"push outer", "push inner 1", "pop", "pop"});
  nvtx::disable();
  { const nvtx::Range after(name); }
  CHECK(calls.size() == 4);
  CHECK(made == 1);
}
