// Scatters that add whole rows in any order, by the routine of a target that has one: numbers that occur once, often,
// everywhere, and outside.
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "kernel/routines/routine.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

/// The CPU with the routine as tile kernels.
class Wide final : public target::Target {
 public:
  Wide() { machine_ = weft::test::as_gpu(target::cpu().machine()); }
  std::string fingerprint() const override { return "row sums " + target::cpu().fingerprint(); }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    return weft::test::compile_when_run(kernels);
  }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc&) const override { return nullptr; }
  std::shared_ptr<const target::LibraryCall> call(const kernel::CallDesc& desc) const override {
    if (desc.name != "scatter_rows") return nullptr;
    return std::make_shared<Run>(kernel::scatter_routine(desc, 64));
  }
  target::CompileStats stats() const override { return {}; }

 private:
  struct Run final : target::LibraryCall {
    explicit Run(kernel::Routine r) : routine(std::move(r)) {}
    std::string name() const override { return "row sums"; }
    void run(std::span<void* const> operands) const override {
      const auto code = target::cpu().compile(routine.kernels);
      std::vector<std::vector<char>> scratch;
      std::vector<void*> all(operands.begin(), operands.end());
      for (int64_t bytes : routine.scratch) scratch.emplace_back(static_cast<size_t>(bytes), char{0x55});
      for (auto& s : scratch) all.push_back(s.data());
      for (const auto& launch : routine.launches) {
        std::vector<void*> buffers;
        for (int b : launch.buffers) buffers.push_back(all[static_cast<size_t>(b)]);
        const target::Segment segment{buffers, launch.symbols, launch.grid};
        code[launch.kernel]->run(std::span(&segment, 1), 1);
      }
    }
    kernel::Routine routine;
  };
};

Policy any_order() {
  Policy policy;
  policy.numerics.deterministic = false;
  return policy;
}

enum class Numbers { spread, few, one, mixed };

/// Small integers: their sums are exact in any order.
HostTensor whole_numbers(const Type& type, uint64_t seed) {
  HostTensor t{type, {}};
  for (int64_t k = 0; k < num_elements(type.shape); ++k)
    t.data.push_back(
        Number::of_real(static_cast<double>((static_cast<uint64_t>(k) * 2654435761u + seed * 97) % 7) - 3));
  return t;
}

HostTensor numbers(const Type& type, Numbers kind, int64_t rows) {
  HostTensor t{type, {}};
  for (int64_t k = 0; k < num_elements(type.shape); ++k) {
    const int64_t drawn = static_cast<int64_t>(static_cast<uint64_t>(k) * 2654435761u >> 7);
    const int64_t id = kind == Numbers::spread ? drawn % rows
                       : kind == Numbers::few  ? drawn % 3
                       : kind == Numbers::one  ? rows - 1
                       : drawn % 5 == 0        ? drawn % (3 * rows) - rows - 5
                                               : drawn % 2;
    t.data.push_back(Number::of_int(id));
  }
  return t;
}

}  // namespace

TEST_CASE("rows are added up by their numbers, however often a number occurs") {
  Wide wide;
  for (const Numbers kind : {Numbers::spread, Numbers::few, Numbers::one, Numbers::mixed})
    for (const int64_t width : {32, 70, 600})
      for (const Dtype given : {float32, bfloat16}) {
        const int64_t rows =
            width == 70 && kind == Numbers::spread && given == float32 ? 70000 : 50;  // once more than 16 bits count
        const Value base = parameter({{rows, width}, float32}), ids = parameter({{41, 53}, int32}),
                    updates = parameter({{41, 53, 1, width}, given});
        const Graph g{{base, ids, updates},
                      {scatter(ScatterMode::add, base * 2, {ids + full_like(ids, 0)}, cast(updates, float32), {0})}};
        const std::vector<HostTensor> inputs{whole_numbers(base.type(), 1), numbers(ids.type(), kind, rows),
                                             whole_numbers(updates.type(), 2)};
        std::vector<graph::Storage> storages;
        for (const HostTensor& t : inputs) storages.push_back(to_storage(t));
        const auto program = build({g, {}, {}}, wide, any_order());
        CHECK(program->stats().library_calls == 1);
        const auto out = program->run(storages);
        CHECK_MESSAGE(difference(from_storage(out[0], g.outputs[0].type()), evaluate_reference(g, inputs)[0], 0) == "",
                      "kind ", static_cast<int>(kind), " width ", width);
      }
}

TEST_CASE("other scatters, and small ones, keep their kernel") {
  Wide wide;
  const auto calls = [&](const Graph& g) { return build({g, {}, {}}, wide, any_order())->stats().library_calls; };
  const Value base = parameter({{50, 64}, float32}), ids = parameter({{4096}, int32}),
              updates = parameter({{4096, 1, 64}, float32});
  CHECK(calls({{base, ids, updates}, {scatter(ScatterMode::add, base, {ids}, updates, {0})}}) == 1);
  CHECK(build({{{base, ids, updates}, {scatter(ScatterMode::add, base, {ids}, updates, {0})}}, {}, {}}, wide)
            ->stats()
            .library_calls == 0);  // a fixed order
  CHECK(calls({{base, ids, updates}, {scatter(ScatterMode::max, base, {ids}, updates, {0})}}) == 0);
  const Value part = parameter({{4096, 1, 40}, float32}), few = parameter({{100}, int32}),
              little = parameter({{100, 1, 64}, float32});
  CHECK(calls({{base, ids, part}, {scatter(ScatterMode::add, base, {ids}, part, {0})}}) == 0);
  CHECK(calls({{base, few, little}, {scatter(ScatterMode::add, base, {few}, little, {0})}}) == 0);
}
