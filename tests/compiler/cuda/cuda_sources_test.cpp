// What is rendered for a GPU, word for word: a kernel of each kind beside its golden file in tests/compiler/golden. A
// change there is to be looked at and wanted: WEFT_UPDATE_GOLDEN=1 writes the files anew.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/regions/composites.h"
#include "kernel/expand/expand.h"
#include "target/cuda/codegen/render.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

/// Keeps the sources of what would be compiled for a GPU.
class Sources final : public target::Target {
 public:
  explicit Sources(int64_t cluster) {
    machine_ = weft::test::as_gpu({}, cluster);
    machine_.vector_bytes = 1024;
    machine_.shared_bytes = 163 << 10;
    machine_.tensor_cores = true;
  }
  explicit Sources(target::Machine machine) { machine_ = std::move(machine); }
  std::string text;

  std::string fingerprint() const override { return "sources"; }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    for (const kernel::Kernel& k : kernels)
      text += target::cuda::render(kernel::expand(k, target::cuda::operators), k.name, {},
                                   target::cuda::features_of(machine_))
                  .source;
    return target::null().compile(kernels);
  }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc&) const override { return nullptr; }
  target::CompileStats stats() const override { return {}; }
};

std::string source_of(const Graph& g, int64_t cluster = 1) {
  Sources target(cluster);
  build({g, {}, {}}, target);
  return target.text;
}

Value parameter_of(Shape shape, Dtype t) { return parameter({std::move(shape), t}); }

Graph map() {
  const Value x = parameter_of({64, 1000}, bfloat16), y = parameter_of({1000}, bfloat16);
  return {{x, y}, {binary(Op::max, x * broadcast(y, {64, 1000}), zeros_like(x))}};
}
Graph row() {
  const Value x = parameter_of({64, 1000}, float32);
  return {{x}, {softmax(x, {1})}};
}
Graph long_row() {
  const Value x = parameter_of({64, 20000}, bfloat16);
  return {{x}, {softmax(x, {1})}};
}
Graph column() {
  const Value x = parameter_of({2048, 256}, bfloat16);
  return {{x}, {sum(x, {0})}};
}
Graph shared_columns() {
  const Value x = parameter_of({8192, 1024}, bfloat16);
  return {{x}, {sum(x, {0})}};
}
Graph transposed() {
  const Value x = parameter_of({96, 200, 160}, float32);
  return {{x}, {permute(x, {0, 2, 1}) + permute(x, {0, 2, 1})}};
}
/// The pixels of windows side by side.
Graph patches() {
  const Value x = parameter_of({8, 32, 32, 3}, float32);
  const Value moved = permute(reshape(x, {8, 2, 16, 2, 16, 3}), {0, 1, 3, 2, 4, 5});
  return {{x}, {cast(reshape(moved, {32, 768}), bfloat16)}};
}
Graph product() {
  const Value a = parameter_of({300, 96}, bfloat16), b = parameter_of({96, 200}, bfloat16),
              bias = parameter_of({200}, bfloat16);
  return {{a, b, bias}, {dot(a, b, {1}, {0}) + broadcast(bias, {300, 200})}};
}

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// The first line that differs, of both.
std::string first_difference(const std::string& got, const std::string& expected) {
  std::istringstream a(got), b(expected);
  std::string x, y;
  for (int line = 1;; ++line) {
    const bool more = static_cast<bool>(std::getline(a, x)), wanted = static_cast<bool>(std::getline(b, y));
    if (!more && !wanted) return {};
    if (more != wanted || x != y)
      return fmt::format("line {}:\n  {}\nwas\n  {}", line, more ? x : "(end)", wanted ? y : "(end)");
  }
}

}  // namespace

TEST_CASE("kernels of each kind are rendered for a GPU as their golden files say") {
#ifdef __clang__
  MESSAGE("skipped: the order in which arguments are evaluated, and with it the order of instructions, is that of g++");
  return;
#endif
  const std::filesystem::path folder = std::filesystem::path(WEFT_SOURCE_DIR) / "tests/compiler/golden";
  if (!std::filesystem::exists(folder)) {
    MESSAGE("skipped: the source tree is not here");
    return;
  }
  struct Case {
    std::string name;
    Graph (*graph)();
    int64_t cluster = 1;
  };
  const Case cases[] = {{"map", map},
                        {"row", row},
                        {"long_row", long_row, 4},
                        {"column", column},
                        {"shared_columns", shared_columns, 8},
                        {"transposed", transposed},
                        {"patches", patches},
                        {"product", product}};
  const char* update = std::getenv("WEFT_UPDATE_GOLDEN");
  for (const Case& c : cases) {
    const std::filesystem::path path = folder / (c.name + ".cu");
    const std::string source = source_of(c.graph(), c.cluster);
    CAPTURE(path.string());
    CHECK(source.find("@") == std::string::npos);
    if (update && std::string(update) == "1") std::ofstream(path, std::ios::binary) << source;
    const std::string difference = first_difference(source, read(path));
    CHECK_MESSAGE(difference.empty(), difference);
  }
}

TEST_CASE("products of 8 bits are multiplied on tensor cores where a GPU has them for these") {
  constexpr int64_t m = 256, n = 384, k = 512;
  for (const char* arch : {"sm_80", "sm_89", "sm_90a"})
    for (const Dtype t : {int8, float8_e4m3})
      for (const bool across : {false, true}) {
        CAPTURE(arch);
        CAPTURE(std::string(dtype_name(t)));
        CAPTURE(across);
        Sources target(target::gpu_of(arch));
        const Value a = parameter_of({m, k}, t), b = parameter_of(across ? Shape{k, n} : Shape{n, k}, t);
        build({{{a, b}, {dot(a, b, {1}, {across ? 0 : 1})}}, {}, {}}, target);
        const bool warpgroups = arch == std::string("sm_90a"), none = t != int8 && arch == std::string("sm_80");
        const std::string by = fmt::format("{} of {} by ", warpgroups ? "wgmma" : "mma.sync", dtype_name(t));
        CHECK((target.text.find(by) == std::string::npos) == none);
      }
}
