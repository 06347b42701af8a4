// Exported functions that take other lengths than their example, and those that draw random numbers.
#include <doctest/doctest.h>

#include "io/folder.h"
#include "io/program/tape.h"
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

array eval_ones(int64_t n) {
  array a = ones({n, 1});
  a.eval();
  return a;
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

TEST_CASE("shapeless: means, variances and sorts along open axes") {
  const Folder folder;
  const std::string file = folder / "f.weft";
  const ArrayFunction f = [](const Args& in) {
    const array& x = in[0];
    return Args{mean(x, 0), mean(x),       var(x, 0, true, 1), weft::std(x),
                sort(x, 0), argsort(x, 1), sort(-x, 1),        take_along_axis(x, argsort(x, 0), 0)};
  };
  export_function(file, f, {zeros({3, 4})}, true);
  const ImportedFunction imported = import_function(file);
  for (const Shape& shape : {Shape{3, 4}, Shape{7, 2}, Shape{40, 33}}) {
    const array x = draw(shape, 3);
    const Args got = imported({x}), want = f({x});
    REQUIRE(got.size() == want.size());
    for (size_t k = 0; k < got.size(); ++k) {
      CAPTURE(k);
      close_to(got[k], want[k]);
    }
  }
}

TEST_CASE("shapeless: reshapes, slices, joins and sizes that are computed, along open axes") {
  const Folder folder;
  const std::string file = folder / "f.weft";
  const auto rows = [](const array& x) { return int64_t{x.shape(0)}; };
  const ArrayFunction f = [&](const Args& in) {
    const array& x = in[0];
    const array all = flatten(x);
    return Args{reshape(x, {-1}),
                index(x, Slice(1, std::nullopt)),
                index(x, Slice(std::nullopt, -1)),
                index(x, Slice(std::nullopt, std::nullopt, -1)),
                index(x, -1),
                concatenate({x, in[1]}, 0),
                pad(x, {{1, 2}, {0, 1}}),
                tile(x, {2, 3}),
                repeat(x, 3, 0),
                roll(x, 1, 0),
                topk(x, 2, 0),
                x + expand_dims(arange(static_cast<double>(rows(x))), 1),
                x + expand_dims(linspace(0, 1, static_cast<int>(rows(x))), 1),
                x / std::sqrt(static_cast<float>(rows(x))),
                mean(all) + var(all) + max(sort(all)),
                unflatten(all, 0, {static_cast<int>(rows(x)), -1}),
                conv1d(reshape(x, {1, -1, 1}), ones({2, 3, 1}), 1, 1)};
  };
  export_function(file, f, {zeros({6, 4}), zeros({5, 4})}, true);
  const ImportedFunction imported = import_function(file);
  const std::vector<std::pair<Shape, Shape>> shapes{
      {{6, 4}, {5, 4}}, {{4, 4}, {9, 4}}, {{7, 5}, {5, 5}}, {{40, 33}, {3, 33}}, {{300, 8}, {1, 8}}};
  for (const auto& [one, other] : shapes) {
    const Args arguments{draw(one, 3), draw(other, 4)};
    const Args got = imported(arguments), want = f(arguments);
    REQUIRE(got.size() == want.size());
    for (size_t k = 0; k < got.size(); ++k) {
      CAPTURE(k);
      close_to(got[k], want[k]);
    }
  }
  // Derivatives and batches of what was imported.
  const auto loss = [](const auto& h) {
    return UnaryFunction([&h](const array& v) { return sum(square(h({v, v})[1])); });
  };
  const array x = draw({7, 4}, 5);
  close_to(grad(loss(imported))(x), grad(loss(f))(x));
  const array many = draw({2, 7, 4}, 6);
  close_to(vmap(UnaryFunction([&](const array& v) {
             return imported({v, v})[3];
           }))(many),
           index(many, Slice(), Slice(std::nullopt, std::nullopt, -1)));
}

TEST_CASE("shapeless: short axes for which the function does other steps are refused") {
  const Folder folder;
  const std::string file = folder / "f.weft";
  export_function(
      file, [](const Args& in) { return Args{index(in[0], Slice(-3, std::nullopt))}; }, {zeros({8, 2})}, true);
  const ImportedFunction last = import_function(file);
  close_to(last({draw({4, 9}, 1)})[0], index(draw({4, 9}, 1), Slice(-3, std::nullopt)));
  CHECK_THROWS_WITH_AS(last({zeros({2, 9})}), doctest::Contains("n0 at least 4"), std::invalid_argument);
  // Halves need an even length: an axis of another one is refused when the function is called.
  export_function(
      file, [](const Args& in) { return split(in[0], 2, 0); }, {zeros({8, 2})}, true);
  const ImportedFunction halves = import_function(file);
  close_to(halves({draw({6, 3}, 1)})[1], index(draw({6, 3}, 1), Slice(3, std::nullopt)));
  CHECK_THROWS_WITH(halves({zeros({7, 3})}), doctest::Contains("no lengths 7 and 3"));
}

TEST_CASE("shapeless: lengths that the function fixes stay numbers; those that cannot be left open are refused") {
  const Folder folder;
  const std::string file = folder / "f.weft";
  const auto refused = [&](const ArrayFunction& f, const Args& args, const char* why) {
    CAPTURE(why);
    CHECK_THROWS_WITH_AS(export_function(file, f, args, true), doctest::Contains(why), std::invalid_argument);
  };
  const auto rows = [](const Args& in) { return int64_t{in[0].shape(0)}; };
  const ArrayFunction fixed = [](const Args&in) { return Args{in[0] + arange(5.0)}; },
                      wrong = [](const Args&in) { return Args{matmul(in[0], in[0])}; },
                      half =
                          [&](const Args&in) {
                            return Args{slice(in[0], {0, 0}, {rows(in) / 2, 3})};
                          },
                      cube =
                          [&](const Args&in) {
                            return Args{flatten(in[0]), zeros({rows(in) * rows(in) * rows(in)})};
                          },
                      fourth = [&](const Args&in) { return Args{flatten(in[0]) / (0.1f + rows(in))}; },
                      branch = [&](const Args&in) { return Args{rows(in) > 100 ? in[0] : exp(flatten(in[0]))}; },
                      table = [&](const Args&in) {
                        return Args{flatten(in[0]), in[0] + eval_ones(rows(in))};
                      };
  refused(fixed, {zeros({5})}, "no length of the arguments may change");
  refused(wrong, {zeros({2, 3})}, "[matmul]");  // the function's own error, for its example
  refused(half, {zeros({4, 3})}, "does not follow from that for 4 and 3: the function does other steps");
  refused(half, {zeros({4, 3})}, "export a signature for each length");
  refused(cube, {zeros({4, 3})}, "no polynomials of second degree of the lengths");
  refused(fourth, {zeros({4, 3})}, "number follows from the lengths by no polynomial");
  refused(fourth, {zeros({4, 3})}, "(the length 4 of axis 0 of argument 0); export a signature for each length");
  refused(branch, {zeros({4, 3})}, "the trace for lengths 2001 and 3 does not follow from that for 4 and 3");
  refused(table, {zeros({4, 3})}, "the function refers to other arrays for other lengths");
  const ArrayFunction unknown = [](const Args&) -> Args { throw std::domain_error("not today"); };
  CHECK_THROWS_AS(export_function(file, unknown, {zeros({2})}, true), std::domain_error);
}

TEST_CASE("shapeless: a function that is traced several times moves the default random sequence once") {
  const Folder folder;
  const auto draws = [](const Args& in) { return Args{flatten(in[0]) + random::uniform({6})}; };
  const auto next = [] { return random::uniform({4}); };
  random::seed(7);
  export_function(
      folder / "f.weft",
      [](const Args& in) {
        return Args{flatten(in[0]), random::uniform({6})};
      },
      {zeros({2, 3})}, true);
  const array after = next();
  random::seed(7);
  draws({zeros({2, 3})});
  CHECK(array_equal(after, next()).item<bool>());
}

TEST_CASE("shapeless: hostile patterns are refused") {
  const auto function = [](const std::string& size, const std::string& lengths) {
    return R"({"version":1,"functions":[{"arguments":1,"keywords":[],"stored":[],"shapeless":true,"lengths":)" +
           lengths +
           R"(,"inputs":[["float32",[["n0",64]]]],"entries":[{"op":"slice","of":[0],"start":[1],"step":[1],"shape":[)" +
           size + R"(]}],"outputs":[1]}]})";
  };
  const std::string good = R"({"example":[4],"least":[1]})", shorter = R"({"of_lengths":[[1,0],[-1]]})";
  const auto tape = [](const std::string& text) {
    const io::TapedFunction f = io::functions_from_json(text)[0];
    return io::tape_for(f, io::example_types(f));
  };
  CHECK(tape(function(shorter, good)).entries[0].attrs.shape == Shape{3});
  for (const char* size :
       {R"({"of_lengths":[[1,1],[-1]]})", R"({"of_lengths":[[1,-1]]})", R"({"of_lengths":7})",
        R"({"of_lengths":[[1,0,0,0]]})", R"({"of_lengths":[[]]})", R"({"of_lengths":[[1,0]],"by":2})",
        R"({"of_lengths":[[1,0]],"over":0})", R"({"of_lengths":[[1,0]],"over":3})", R"({"of_lengths":[[-1,0]]})",
        R"({"of_lengths":[["a"]]})", R"({"of_lengths":[[9223372036854775807,0,0]]})",
        R"({"real_of_lengths":[[1,0]]})"}) {
    CAPTURE(size);
    CHECK_THROWS_AS(tape(function(size, good)), std::runtime_error);
  }
  for (const char* lengths :
       {"7", "[4]", R"({"example":[4]})", R"({"example":[4],"least":[1,1]})", R"({"example":[0],"least":[1]})",
        R"({"example":["a"],"least":[1]})", R"({"example":[],"least":[]})"}) {
    CAPTURE(lengths);
    CHECK_THROWS_AS(tape(function(shorter, lengths)), std::runtime_error);
  }
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
