// Every unary, binary, reduction and scan operator, 14 dtypes, 4 layouts, against MLX's results.
#include "mlx/operators.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "mlx/differences.h"
#include "weft/ops.h"

namespace weft::test {
namespace {

constexpr int rows = 4, columns = 6;

// A (4, 6) array of 24 values that lies in memory as the layout says, as the generator's laid_out makes it.
array laid_out(const array& flat, const std::string& layout) {
  if (layout == "transposed") return transpose(reshape(flat, {columns, rows}));
  array a = reshape(flat, {rows, columns});
  if (layout == "reversed") return slice(a, {-1, -1}, {-rows - 1, -columns - 1}, {-1, -1});
  return layout == "broadcast" ? broadcast_to(slice(a, {0, 0}, {1, columns}), {rows, columns}) : a;
}

struct Attempt {
  const Case* golden;
  Arrays results;
  std::string threw, message;
};

// Builds the results of a case; nothing is computed yet.
Attempt attempt(const Case& golden, const Operator& op) {
  Attempt made{&golden, {}, "", ""};
  made.threw = thrown_by(
      [&] {
        Arrays operands = golden.inputs();
        for (size_t i = 0; i < operands.size(); ++i)
          operands[i] = laid_out(operands[i], i == 0 || golden.layout != "transposed" ? golden.layout : "contiguous");
        made.results = op.call(operands);
      },
      &made.message);
  return made;
}

std::string judge(Attempt& made, const Operator& op) {
  const Case& golden = *made.golden;
  if (made.threw.empty()) made.threw = thrown_by([&] { eval(made.results); }, &made.message);
  if (made.threw != golden.throws) {
    auto name = [](const std::string& c) { return c.empty() ? std::string("returns") : "throws " + c; };
    return name(made.threw) + (made.message.empty() ? "" : " (" + made.message + ")") + ", MLX " + name(golden.throws);
  }
  Bound bound = golden.dtype == "float16" || golden.dtype == "bfloat16" ? op.half_bound : op.bound;
  if (golden.dtype == "complex64") bound = op.complex_bound.value_or(op.bound);
  if (golden.dtype == "float64" && op.float64_factor > 1)
    bound.ulp *= op.float64_factor, bound.floor = std::max(bound.floor, 0x1p-126);  // where float32 ends
  return made.threw.empty() ? difference(made.results, golden.out, bound) : "";
}

}  // namespace

TEST_CASE("operators have MLX's values, dtypes, shapes and exceptions in every dtype and layout") {
  Golden golden("operators");
  size_t agree = 0;
  std::map<std::string, std::vector<const Case*>> by_op;
  for (const Case& c : golden.cases()) by_op[c.op].push_back(&c);
  for (const auto& [name, cases] : by_op) {
    INFO(name);
    auto found = operators().find(name);
    REQUIRE(found != operators().end());
    std::vector<Attempt> attempts;
    Arrays all;  // one evaluation computes the results of all dtypes and layouts
    for (const Case* c : cases) {
      attempts.push_back(attempt(*c, found->second));
      all.insert(all.end(), attempts.back().results.begin(), attempts.back().results.end());
    }
    thrown_by([&] { eval(all); });  // what it throws shows again in the case that it belongs to
    for (Attempt& made : attempts) {
      std::string text = judge(made, found->second);
      agree += text.empty();
      std::string title = made.golden->title();
      if (text.empty() == is_listed(title))
        FAIL_CHECK(title << ": " << (text.empty() ? "is listed as different, and agrees" : text));
    }
  }
  MESSAGE(agree << " of " << golden.cases().size() << " agree");
}

}  // namespace weft::test
