// What results may give up for speed: targets are told with each piece of work, and a program that was built for one
// answer does not serve another.
#include <vector>

#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/regions/composites.h"
#include "graph/regions/convolution.h"
#include "weft/compile.h"

using namespace weft;
using namespace weft::graph;

namespace {

/// Notes what it is asked, and has tensor cores for float32; what it compiles does nothing.
class Asked final : public weft::test::SimtTarget {
 public:
  Asked() {
    machine_.tensor_cores = true;
    machine_.shared_bytes = 163 << 10;
  }
  std::string fingerprint() const override { return "asked"; }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    return target::null().compile(kernels);
  }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc& desc) const override { return note(desc); }
  std::shared_ptr<const target::LibraryCall> attention(const kernel::AttentionDesc& desc) const override {
    return note(desc);
  }
  std::shared_ptr<const target::LibraryCall> call(const kernel::CallDesc& desc) const override { return note(desc); }
  mutable std::vector<Numerics> seen;

 private:
  template <class Desc>
  std::shared_ptr<const target::LibraryCall> note(const Desc& desc) const {
    seen.push_back(desc.numerics);
    return nullptr;
  }
};

Value param(Shape shape, Dtype dtype = float32) { return parameter({std::move(shape), dtype}); }

}  // namespace

TEST_CASE("libraries and tensor cores are told what results may give up") {
  const Value a = param({64, 64}), b = param({64, 96}), q = param({1, 2, 64, 64}, bfloat16),
              k = param({1, 2, 64, 64}, bfloat16), v = param({1, 2, 64, 64}, bfloat16);
  const Value x = param({2, 8, 8, 16}), w = param({16, 3, 3, 16});
  const std::vector<Graph> graphs{{{a, b}, {dot(a, b, {1}, {0})}},
                                  {{q, k, v}, {attention(q, k, v, 0.125, true, {})}},
                                  {{x, w}, {convolution(x, w, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1})}}};
  for (const Numerics numerics : {Numerics{}, Numerics{true, true}, Numerics{false, false}})
    for (size_t i = 0; i < graphs.size(); ++i) {
      CAPTURE(i);
      Asked target;
      compiler::Policy policy;
      policy.numerics = numerics;
      const std::string kernels = compiler::build({graphs[i], {}, {}}, target, policy)->print("kernels");
      CHECK(!target.seen.empty());
      for (const Numerics& seen : target.seen) CHECK(seen == numerics);
      if (i == 0) CHECK((kernels.find("tf32") != std::string::npos) == numerics.tf32);
    }
}

TEST_CASE("programs of other numerics are other programs") {
  const Value a = param({8, 8}), b = param({8, 8});
  const compiler::Source source{{{a, b}, {dot(a, b, {1}, {0})}}, {}, {}};
  const Numerics before = numerics();
  CHECK(before == Numerics{});
  const auto built = [&](const Numerics& n) {
    set_numerics(n);
    CHECK(numerics() == n);
    return compiler::lookup_or_build(source, target::null(), compiler::default_policy());
  };
  const auto first = built({}), tf32 = built({.tf32 = true}), any_order = built({.deterministic = false}),
             again = built({});
  set_numerics(before);
  CHECK(first == again);
  CHECK(first != tf32);
  CHECK(first != any_order);
  CHECK(tf32 != any_order);
  CHECK(compiler::default_policy().to_string().find("tf32=false deterministic=true") != std::string::npos);
}
