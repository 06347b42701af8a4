// Exported functions that take other lengths than their example, and those that draw random numbers.
#include <doctest/doctest.h>

#include "io/folder.h"
#include "io/tape.h"
#include "runtime/device.h"
#include "weft/export.h"
#include "weft/indexing.h"
#include "weft/ops.h"
#include "weft/random.h"
#include "weft/transforms.h"

using namespace weft;

namespace {

array draw(const Shape& shape, uint64_t seed) { return random::normal(shape, float32, 0, 1, random::key(seed)); }

void close_to(const array& got, const array& wanted) {
  REQUIRE(got.shape() == wanted.shape());
  CHECK(allclose(got, wanted, 1e-5, 1e-6).item<bool>());
}

}  // namespace

TEST_CASE("shapeless: an imported function takes other lengths, in values, derivatives and batches") {
  const Folder folder;
  const std::string file = folder / "f.weft";
  const array w = draw({3, 4}, 1);
  int traces = 0;
  const ArrayFunction f = [&](const Args& in) {
    ++traces;
    return Args{softmax(matmul(in[0], w), -1) * expand_dims(in[1], 1),
                sum(in[0] + 1, 0),
                argmax(in[0], 0),
                cumsum(in[1], 0),
                concatenate({in[0], in[0] * 2}, 1),
                index(in[0], Slice(), newaxis, 1)};
  };
  export_function(file, f, {zeros({5, 3}), zeros({5})}, true);
  traces = 0;
  const auto g = import_function(file);
  for (const int n : {1, 2, 5, 1000, 40000}) {
    CAPTURE(n);
    const array x = draw({n, 3}, 2), y = draw({n}, 3);
    const auto got = g({x, y});
    CHECK(traces == 0);
    const auto wanted = f({x, y});
    for (size_t k = 0; k < wanted.size(); ++k) close_to(got[k], wanted[k]);
    traces = 0;
  }
  const array x = draw({7, 3}, 4), y = draw({7}, 5);
  const auto loss = [&](const std::function<Args(const Args&)>& h) {
    return UnaryFunction([&, h](const array& v) { return sum(square(h({v, y})[0])); });
  };
  close_to(grad(loss([&](const Args& a) { return g(a); }))(x), grad(loss(f))(x));
  const array many = draw({2, 7, 3}, 6);
  close_to(vmap(UnaryFunction([&](const array& v) { return g({v, y})[1]; }))(many), sum(many + 1, 1));
  // Axes of one length in the example have one length in every call; the rank and the dtype stay.
  CHECK_THROWS_WITH_AS(g({draw({7, 3}, 1), draw({6}, 1)}), doctest::Contains("was exported for"),
                       std::invalid_argument);
  CHECK_THROWS_AS(g({draw({7, 4}, 1), draw({7}, 1)}), std::invalid_argument);
  CHECK_THROWS_AS(g({draw({1, 7, 3}, 1), draw({7}, 1)}), std::invalid_argument);
  CHECK_THROWS_AS(g({zeros({7, 3}, int32), draw({7}, 1)}), std::invalid_argument);
  CHECK_THROWS_AS(g({zeros({0, 3}), zeros({0})}), std::invalid_argument);
}

TEST_CASE("shapeless: several lengths, keywords, axes of length 1, one trace where all stay open") {
  const Folder folder;
  const std::string file = folder / "f.weft";
  int traces = 0;
  const ArgsKwargsFunction f = [&](const Args& args, const Kwargs& kwargs) {
    ++traces;
    return Args{matmul(args[0], args[1]) + kwargs.at("bias")};
  };
  export_function(file, f, {zeros({2, 3}), zeros({3, 4})}, Kwargs{{"bias", zeros({1, 4})}}, true);
  CHECK(traces == 1);
  const auto g = import_function(file);
  const array a = draw({6, 9}, 1), b = draw({9, 5}, 2), c = draw({1, 5}, 3);
  close_to(g({a, b}, {{"bias", c}})[0], matmul(a, b) + c);
  CHECK_THROWS_AS(g({a, b}, {{"bias", draw({6, 5}, 3)}}), std::invalid_argument);  // 1 stays 1
  // Options say the same, beside a text; a scalar has no length that could change.
  export_function(
      file, [](const Args& in) { return Args{exp(in[0])}; }, {zeros({3})},
      ExportOptions{.metadata = "any", .shapeless = true});
  CHECK(import_function(file).metadata() == "any");
  close_to(import_function(file)({draw({8}, 1)})[0], exp(draw({8}, 1)));
  export_function(
      file, [](const Args& in) { return Args{exp(in[0])}; }, {array(0.5f)}, true);
  CHECK(import_function(file)({array(0.0f)})[0].item<float>() == 1);
  CHECK_THROWS_WITH_AS(exporter(file, ArrayFunction([](const Args& in) { return in; }),
                                ExportOptions{.dynamic = {{0, 0, "n", 4}}, .shapeless = true})({zeros({3})}),
                       doctest::Contains("dynamic"), std::invalid_argument);
}

TEST_CASE("shapeless: lengths that the function fixes stay numbers; those that cannot be left open are refused") {
  const Folder folder;
  const std::string file = folder / "f.weft";
  const auto refused = [&](const ArrayFunction& f, const Args& args, const char* why) {
    CAPTURE(why);
    CHECK_THROWS_WITH_AS(export_function(file, f, args, true), doctest::Contains(why), std::invalid_argument);
  };
  const ArrayFunction flattened = [](const Args&in) { return Args{reshape(in[0], {-1})}; },
                      shorter = [](const Args&in) { return Args{slice(in[0], {1}, {in[0].shape(0).bound()})}; },
                      fixed = [](const Args&in) { return Args{in[0] + arange(5.0)}; },
                      wrong = [](const Args&in) { return Args{matmul(in[0], in[0])}; };
  refused(flattened, {zeros({2, 3})},
          "the length 2 of axis 0 of argument 0 may change, but not as a symbol: [reshape]");
  refused(flattened, {zeros({2, 3})}, "ExportOptions::dynamic");
  refused(shorter, {zeros({4})}, "export a signature for each length");
  refused(fixed, {zeros({5})}, "no length of the arguments may change");
  refused(wrong, {zeros({2, 3})}, "[matmul]");  // the function's own error, for its example
  refused([](const Args& in) { return Args{sort(in[0])}; }, {zeros({2})}, "[sort]");
  refused([](const Args& in) { return Args{concatenate({in[0], in[1]}, 0)}; }, {zeros({2}), zeros({3})}, "joined");
  const ArrayFunction unknown = [](const Args&) -> Args { throw std::domain_error("not today"); };
  CHECK_THROWS_AS(export_function(file, unknown, {zeros({2})}, true), std::domain_error);
}

TEST_CASE("shapeless: the file says so, and no program is laid out at a bound") {
  const Folder folder;
  const std::string file = folder / "f.weft";
  export_function(
      file, [](const Args& in) { return Args{in[0] * 2.0f}; }, {zeros({3, 4, 5, 6})}, true);
  const io::ProgramFile program = io::read_program(file);
  REQUIRE(program.functions.size() == 1);
  CHECK(program.functions[0].shapeless);
  CHECK(program.functions[0].tape.inputs[0].shape[3].symbol() != nullptr);
  const auto again = io::functions_from_json(io::functions_json(program.functions));
  CHECK(again[0].shapeless);
  CHECK(import_function(file)({ones({2, 2, 2, 2})})[0].shape() == Shape{2, 2, 2, 2});
  for (const char* bad : {"{\"version\":1,\"functions\":[{\"inputs\":[],\"entries\":[],\"outputs\":[],"
                          "\"arguments\":0,\"keywords\":[],\"stored\":[],\"shapeless\":1}]}"})
    CHECK_THROWS_WITH_AS(io::functions_from_json(bad), doctest::Contains("shapeless"), std::runtime_error);
}

TEST_CASE("export: draws from the default random sequence are those of the export, in every call") {
  const Folder folder;
  const std::string file = folder / "f.weft";
  const ArrayFunction f = [](const Args& in) { return Args{in[0] + random::normal({2}), random::uniform({3})}; };
  random::seed(3);
  export_function(file, f, {zeros({2})});
  const array next = random::normal({2});
  random::seed(3);
  const Args direct = f({zeros({2})});
  eval(direct);
  CHECK(array_equal(random::normal({2}), next).item<bool>());  // the export drew as much as a call does
  const auto g = import_function(file);
  for (const uint64_t seed : {3, 4}) {
    random::seed(seed);
    const auto got = g({zeros({2})});
    CHECK(array_equal(got[0], direct[0]).item<bool>());
    CHECK(array_equal(got[1], direct[1]).item<bool>());
  }
  // A seed that the function sets itself; and no trace that was tried draws.
  export_function(
      file,
      [](const Args& in) {
        random::seed(7);
        return Args{in[0] + random::normal({2, 1})};
      },
      {zeros({2, 5})}, true);
  random::seed(7);
  const array drawn = random::normal({2, 1});
  close_to(import_function(file)({zeros({2, 9})})[0], broadcast_to(drawn, {2, 9}));
}
