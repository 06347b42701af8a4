// Code of GPUs in kernels: counterparts, dumps, keys, and what is refused.
#include "kernel/language/code_programs.h"

#include <doctest/doctest.h>

#include "kernel/language/atomic_programs.h"
#include "kernel/language/errors.h"
#include "kernel/language/lane_programs.h"
#include "kernel/language/run.h"
#include "kernel/text/text.h"

namespace {

using namespace test_kernels;
using k::AnyRef;

TEST_CASE("the interpreter and CPUs run the counterparts of code") {
  std::vector<float> x(1200), y(1200), one(1);
  std::vector<int32_t> n(77), sum(77), product(77);
  for (size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k) * 0.5f;
  for (size_t k = 0; k < n.size(); ++k) n[k] = static_cast<int32_t>(k) - 30;
  run(coded(1), x, y, n, sum, product, one);
  for (size_t k = 0; k < x.size(); ++k) CHECK(y[k] == x[k] * 2 + 3);
  for (size_t k = 0; k < n.size(); ++k) CHECK((sum[k] == 2 * n[k] && product[k] == n[k] * n[k]));
  CHECK(one[0] == 7);
}

k::Program squared(const k::Code& code) {
  return k::trace("squared", {{k::Use::in, float32, {8}}, {k::Use::out, float32, {8}}}, {1},
                  [&](std::span<const AnyRef> r) {
                    const auto by = [](auto v) { return v * v; };
                    k::store(r[1], std::array{whole}, k::cuda<float>(code, by, k::In<float, 1>(r[0])(k::all)).any());
                  });
}

TEST_CASE("code is named in dumps and part of a kernel's digest") {
  const k::Code code("square", {"x"}, {"y"}, "y = x * x;");
  const auto digest_of = [](const k::Program& p) { return weft::kernel::digest(p.data().kernel); };
  const auto program = squared(code);
  CHECK(program.to_string().find("code(\"square\"") != std::string::npos);
  CHECK(digest_of(program) == digest_of(squared(k::Code("square", {"x"}, {"y"}, "y = x * x;"))));  // another line
  CHECK(digest_of(program) != digest_of(squared(k::Code("square", {"x"}, {"y"}, "y = x*x;"))));
  CHECK(digest_of(program) != digest_of(squared(k::Code("cube", {"x"}, {"y"}, "y = x * x;"))));
  CHECK(digest_of(program) != digest_of(squared(code.with_effects())));
  CHECK(digest_of(program) != digest_of(squared(k::Code("square", "=f,f", "mul.f32 $0, $1, $1;"))));
}

TEST_CASE("lanes, ordered atomics and code are read back from their text") {
  const auto same = [](const weft::kernel::Kernel& kernel) {
    const std::string text = weft::kernel::print(kernel);
    const weft::kernel::Kernel read = weft::kernel::parse(text).kernel;
    CHECK(weft::kernel::digest(read) == weft::kernel::digest(kernel));
    CHECK(weft::kernel::print(read) == text);
  };
  same(coded(1).data().kernel);
  same(coded(4).data().kernel);
  same(agreed().data().kernel);
  same(LaneProgram(float32).make().data().kernel);
  same(squared(k::Code("square", "=f,f", "mul.f32 $0, $1, $1; // \"twice\"\n").with_effects()).data().kernel);
  weft::kernel::Builder b("whole");
  b.param("x", float32, true);
  b.source({.name = "whole", .text = "x[0] = 1;\n", .constraints = {}, .outputs = {"x"}, .block = {32, 2, 1}});
  same(b.finish());
}

TEST_CASE("code whose results nobody reads is left out unless it has effects") {
  const auto traced = [](const k::Code& code) {
    return k::trace("unread", {{k::Use::in, float32, {8}}, {k::Use::out, float32, {8}}}, {1},
                    [&](std::span<const AnyRef> r) {
                      const auto v = k::In<float, 1>(r[0])(k::all).load();
                      k::cuda<float>(
                          code, [](auto x) { return x; }, v);
                      k::Out<float, 1> y(r[1]);
                      y(k::all) = v;
                    })
        .to_string();
  };
  const k::Code code("look", {"x"}, {"y"}, "y = x;");
  CHECK(traced(code).find("inline") == std::string::npos);
  CHECK(traced(code.with_effects()).find("code(\"look\"") != std::string::npos);
}

TEST_CASE("code for GPUs alone is refused by the interpreter and CPUs, at its line") {
  int line = 0;
  const auto program =
      k::trace("alone", {{k::Use::in, float32, {8}}, {k::Use::out, float32, {8}}}, {1}, [&](std::span<const AnyRef> r) {
        k::Out<float, 1> y(r[1]);
        line = __LINE__ + 1;
        const k::Code code("warp", {"x"}, {"y"}, "y = x;");
        y(k::all) = k::cuda<float>(code, k::gpu_only, k::In<float, 1>(r[0])(k::all));
      });
  std::vector<float> x(8), y(8);
  void* const pointers[] = {x.data(), y.data()};
  const std::string beginning = "[kernel alone] " + std::string(__FILE__) + ":" + std::to_string(line) + ": ";
  check_message<std::invalid_argument>([&] { program.interpret(pointers); }, beginning,
                                       {"'warp' is code for GPUs alone", "give it a counterpart"});
  check_message<std::invalid_argument>(
      [&] {
        weft::kernel::legalize(program.data().kernel, {32, 16});
      },
      beginning, {"'warp' is code for GPUs alone"});
}

TEST_CASE("code that does not fit its tiles is refused") {
  const auto same = [](const std::vector<Any>& v) { return v; };
  const Dtype real[] = {float32}, halves[] = {bfloat16};
  const auto of = [&](Test& t, const k::Code& code, std::span<const Dtype> results, const k::Counterpart& f = {},
                      const Any& tile = v({8})) {
    t.line = code.line.number;
    k::inline_code(code, std::array{tile}, results, f, code.line);
  };
  refused({"code 'f': it names 2 arguments and 1 results, and has 1 and 1: name each"}, [&](Test& t) {
    of(t, k::Code("f", {"x", "z"}, {"y"}, "y = x;"), real);
  });
  refused({"code 'f': 'x y' is no name of its own"}, [&](Test& t) { of(t, k::Code("f", {"x y"}, {"y"}, ""), real); });
  refused({"code 'f': 'x' is no name of its own"}, [&](Test& t) { of(t, k::Code("f", {"x"}, {"x"}, ""), real); });
  refused({"code 'f': it runs for 1, 2, 4, 8 or 16 elements at once, not 3"},
          [&](Test& t) { of(t, k::Code("f", {"x"}, {"y"}, "", 3), real); });
  refused({"code 'f': 3 constraints in \"=f,f,f\": its results take 1 registers and its arguments 1"},
          [&](Test& t) { of(t, k::Code("f", "=f,f,f", "mov.f32 $0, $1;"), real); });
  refused({"code 'f': the constraint 'f' of operand 0: give = and r, h, l, f or d"},
          [&](Test& t) { of(t, k::Code("f", "f,f", "mov.f32 $0, $1;"), real); });
  refused({"code 'f': the constraint 'x' of operand 1: give r, h, l, f or d"},
          [&](Test& t) { of(t, k::Code("f", "=f,x", "mov.f32 $0, $1;"), real); });
  refused({"code 'f': 2 constraints", "its results take 2 registers and its arguments 2"},
          [&](Test& t) { of(t, k::Code("f", "=r,r", "mov.b32 $0, $1;", 4), halves, {}, v({8}, bfloat16)); });
  refused({"code 'f': value 0 of its counterpart is f32[8]: return bf16[8]"},
          [&](Test& t) { of(t, k::Code("f", {"x"}, {"y"}, ""), halves, same); });
  refused({"code 'f': its counterpart returns 0 values: return 1"}, [&](Test& t) {
    of(t, k::Code("f", {"x"}, {"y"}, ""), real, [](const std::vector<Any>&) { return std::vector<Any>{}; });
  });
  refused({"code 'f': its counterpart assigns to a variable: return the value"}, [&](Test& t) {
    k::Mut sum = line(8);
    of(t, k::Code("f", {"x"}, {"y"}, ""), real, [&](const std::vector<Any>& x) {
      sum += tile<float, 1>(x[0]);
      return x;
    });
  });
}

}  // namespace
