// Functions to files and back: every row of the operator table, models, dynamic lengths, what is refused.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "compiler/ir/ir.h"
#include "graph/control/control.h"
#include "graph/instances.h"
#include "graph/regions/composites.h"
#include "io/folder.h"
#include "io/program/tape.h"
#include "models/gpt.h"
#include "weft/control.h"
#include "weft/export.h"
#include "weft/io.h"
#include "weft/ops.h"
#include "weft/random.h"
#include "weft/transforms.h"

using namespace weft;

namespace {

Digest digest_of(const graph::Graph& graph) {
  compiler::Source source;
  source.graph = graph;
  return compiler::digest(source);
}

/// Through JSON and back, onto placeholders of the same types.
graph::Graph round_trip(const graph::Graph& graph) {
  io::TapedFunction f;
  f.tape = io::tape_of(graph);
  f.arguments = f.tape.inputs.size();
  const auto back = io::functions_from_json(io::functions_json({f}));
  graph::Graph out;
  for (const graph::Type& t : back.at(0).tape.inputs)
    out.inputs.push_back(graph::parameter(t, static_cast<int64_t>(out.inputs.size())));
  out.outputs = io::replay(back[0].tape, out.inputs);
  return out;
}

std::vector<float> floats(const array& a) { return a.to_vector<float>(); }

}  // namespace

TEST_CASE("export: every operator of the table comes back as the same graph") {
  int operators = 0;
  for (const graph::Row* row : graph::table()) {
    CAPTURE(std::string(row->name));
    const auto instances = graph::testing::instances(
        row->op, 1, 20);  // none of inputs, regions, control flow and complex numbers: those follow
    operators += !instances.empty();
    for (const auto& instance : instances) {
      const graph::Graph graph = graph::testing::graph_of(instance);
      CHECK(digest_of(round_trip(graph)) == digest_of(graph));
    }
  }
  CHECK(operators > 70);
}

TEST_CASE("export: control flow and complex numbers come back as the same graph") {
  const auto same = [](const graph::Graph& graph) { CHECK(digest_of(round_trip(graph)) == digest_of(graph)); };
  const graph::Value x = graph::parameter({{4, 3}, float32}, 0), c = graph::parameter({{3}, float32}, 1),
                     p = graph::parameter({{}, bool_}, 2);
  const auto doubled =
      graph::graph_over({c.type()}, [](std::span<const graph::Value> in) { return graph::Values{in[0] * 2.0}; });
  const auto negated =
      graph::graph_over({c.type()}, [](std::span<const graph::Value> in) { return graph::Values{-in[0]}; });
  same({{c, p}, graph::cond(p, {c}, doubled, negated)});
  const auto step = graph::graph_over({c.type(), c.type()}, [](std::span<const graph::Value> in) {
    return graph::Values{in[0] + in[1], graph::exp(in[0])};
  });
  same({{x, c}, graph::scan({}, {c}, {x}, step, 4, true)});
  const auto goes_on = graph::graph_over({c.type()}, [](std::span<const graph::Value> in) {
    return graph::Values{
        graph::binary(graph::Op::lt, graph::sum(in[0], {0}), graph::constant(float32, Number::of_real(INFINITY)))};
  });
  same({{c}, graph::while_loop({}, {c}, goes_on, doubled, 7)});
  const graph::Value z = graph::make(graph::Op::complex, {c, c});
  same({{c}, {z, graph::make(graph::Op::real, {z}), graph::make(graph::Op::imag, {z})}});
  const graph::Value wide = graph::cast(z, complex128), number = graph::full({3}, complex128, Number::of_real(0.1));
  same({{c}, {wide * number, graph::make(graph::Op::real, {wide})}});
}

TEST_CASE("export: composites keep their name and compute what they did") {
  graph::Graph graph;
  graph.inputs = {graph::parameter({{3, 8}, float32}, 0)};
  graph.outputs = {graph::softmax(graph::gelu(graph.inputs[0]), {1})};
  const graph::Graph back = round_trip(graph);
  CHECK(graph::print(back).find("softmax") != std::string::npos);
  CHECK(graph::print(graph::inline_composites(back)) == graph::print(graph::inline_composites(graph)));
}

TEST_CASE("export: attention with dropout comes back as such; rates and keys that cannot be are refused") {
  graph::Graph graph;
  graph.inputs = {graph::parameter({{2, 16, 8}, float32}, 0), graph::parameter({{2}, uint32}, 1)};
  const graph::Value& x = graph.inputs[0];
  graph.outputs = {graph::attention(x, x, x, 0.5, true, {}, {}, {0.25, graph.inputs[1]})};
  const graph::Graph back = round_trip(graph);
  const auto& region = back.outputs[0].node->attrs().composite;
  REQUIRE(region->attention);
  CHECK(region->attention->dropout == 0.25);
  CHECK(graph::print(graph::inline_composites(back)) == graph::print(graph::inline_composites(graph)));
  io::TapedFunction f;
  f.tape = io::tape_of(graph);
  f.arguments = 2;
  const auto refused = [&](std::string_view what) {
    CHECK_THROWS_WITH_AS(io::replay(f.tape, graph.inputs), doctest::Contains(std::string(what).c_str()),
                         std::invalid_argument);
  };
  for (io::Tape::Entry& entry : f.tape.entries)
    if (entry.attention) entry.attention->dropout = 1;
  refused("the rate of dropout is from 0 to 1");
  for (io::Tape::Entry& entry : f.tape.entries)
    if (entry.attention) entry.attention->dropout = 0;
  refused("takes q, k, v, perhaps a mask and a key of dropout");
}

TEST_CASE("export: a function with what it refers to") {
  const Folder folder;
  const std::string file = folder / "f.weft";
  const array w = random::normal({3, 4}, float32, 0, 1, random::key(1)), b = arange(0, 4, float32) * 0.5f;
  const ArrayFunction f = [&](const std::vector<array>& in) {
    return std::vector<array>{tanh(matmul(in[0], w) + b), in[0], b, sum(in[0]) * INFINITY};
  };
  const array x = random::normal({2, 3}, float32, 0, 1, random::key(2));
  export_function(file, f, {x});
  const auto g = import_function(file);
  const auto wanted = f({x}), got = g({x});
  REQUIRE(got.size() == 4);
  for (size_t k = 0; k < 4; ++k) CHECK(floats(got[k]) == floats(wanted[k]));
  CHECK_THROWS_WITH_AS(g({w}), doctest::Contains("was exported for (f32(2,3)), and called with (f32(3,4))"),
                       std::invalid_argument);
  CHECK_THROWS_AS(g({x, x}), std::invalid_argument);
  // Derivatives and batches go through it.
  const auto by_file = grad(UnaryFunction([&](const array&v) { return sum(g({v})[0]); })),
             direct = grad(UnaryFunction([&](const array&v) { return sum(f({v})[0]); }));
  CHECK(floats(by_file(x)) == floats(direct(x)));
  const array many = random::normal({5, 2, 3}, float32, 0, 1, random::key(3));
  const auto batched = vmap(UnaryFunction([&](const array& v) { return g({v})[0]; }))(many);
  CHECK(batched.shape() == Shape{5, 2, 4});
  // The file is safetensors: its arrays can be read by anybody.
  CHECK(load_safetensors(file).first.size() == 2);
}

TEST_CASE("export: dynamic lengths stay so") {
  const Folder folder;
  const std::string file = folder / "d.weft";
  const ArrayFunction f = [](const std::vector<array>& in) {
    const auto step = [](const std::vector<array>& c, const std::vector<array>& x) {
      return std::pair(std::vector<array>{sin(c[0]) + x[0]}, std::vector<array>{});
    };
    return std::vector<array>{softmax(in[0] * 2.0f, 1), sum(in[0] + expand_dims(in[1], 0), 1) +
                                                            scan(step, {zeros({3})}, {transpose(in[0])}).first[0]};
  };
  export_function(file, f, {zeros({3, 5}), zeros({5})}, ExportOptions{.dynamic = {{0, 1, "n", 16}, {1, 0, "n", 16}}});
  const auto g = import_function(file);
  for (const int n : {1, 2, 7, 16}) {
    CAPTURE(n);
    const array x = random::normal({3, n}, float32, 0, 1, random::key(4)),
                y = random::normal({n}, float32, 0, 1, random::key(5));
    const auto wanted = f({x, y}), got = g({x, y});
    CHECK(got[0].shape() == Shape{3, n});
    CHECK(allclose(got[0], wanted[0]).item<bool>());
    CHECK(allclose(got[1], wanted[1]).item<bool>());
    // Inside a derivative the lengths are the numbers of the call.
    const auto by_file = grad(UnaryFunction([&](const array&v) {
      return sum(square(g({v, y})[0])) + sum(g({v, y})[1]);
    })),
               direct = grad(UnaryFunction([&](const array&v) {
                 return sum(square(f({v, y})[0])) + sum(f({v, y})[1]);
               }));
    CHECK(allclose(by_file(x), direct(x), 1e-4, 1e-6).item<bool>());
  }
  CHECK_THROWS_WITH_AS(g({zeros({3, 17}), zeros({17})}), doctest::Contains("n<=16"), std::invalid_argument);
  CHECK_THROWS_AS(g({zeros({3, 2}), zeros({3})}), std::invalid_argument);
}

TEST_CASE("export: keywords, several signatures, one file") {
  const Folder folder;
  const std::string file = folder / "k.weft";
  const array w = ones({1000});
  eval(w);
  const ArgsKwargsFunction f = [&](const Args& args, const Kwargs& kwargs) {
    array out = args[0] * sum(w);
    if (kwargs.contains("minus")) out = out - kwargs.at("minus");
    return std::vector<array>{out};
  };
  {
    FunctionExporter e = exporter(file, f);
    e({array(2.0f)});
    e(Args{array(2.0f)}, Kwargs{{"minus", array(1.0f)}});
    e(Args{array({1, 2})}, Kwargs{});
    e.close();
    CHECK_THROWS_AS(e({array(1.0f)}), std::runtime_error);
  }
  const auto g = import_function(file);
  CHECK(g({array(2.0f)})[0].item<float>() == 2000);
  CHECK(g(Args{array(2.0f)}, Kwargs{{"minus", array(1.0f)}})[0].item<float>() == 1999);
  CHECK(g({array({3, 4})})[0].to_vector<int>() == std::vector<int>{3000, 4000});
  CHECK(load_safetensors(file).first.size() == 1);  // stored once
  export_function(file, KwargsFunction([](const Kwargs& k) { return std::vector<array>{k.at("a") - k.at("b")}; }),
                  Kwargs{{"b", array(1.0f)}, {"a", array(5.0f)}});
  CHECK(import_function(file)(Kwargs{{"a", array(7.0f)}, {"b", array(1.0f)}})[0].item<float>() == 6);
}

TEST_CASE("export: a text goes with the functions") {
  const Folder folder;
  const std::string file = folder / "m.weft";
  const ArrayFunction f = [](const Args& in) { return Args{exp(in[0])}; };
  const KwargsFunction by_name = [](const Kwargs& in) { return Args{exp(in.at("x"))}; };
  const ArgsKwargsFunction both = [](const Args& in, const Kwargs&) { return in; };
  const array x({1.0f, 2.0f});
  export_function(file, f, {x}, false, "{\"made\": \"by a test, ünïcode\"}");
  CHECK(import_function(file).metadata() == "{\"made\": \"by a test, ünïcode\"}");
  CHECK(floats(import_function(file)({x})[0]) == floats(exp(x)));
  export_function(file, by_name, Kwargs{{"x", x}}, false, "named");
  CHECK(import_function(file).metadata() == "named");
  exporter(file, both, false, "both")({x});
  CHECK(import_function(file).metadata() == "both");
  export_function(file, f, {x}, ExportOptions{.metadata = "options"});
  CHECK(import_function(file).metadata() == "options");
  export_function(file, f, {x});
  CHECK(import_function(file).metadata().empty());
  CHECK_THROWS_AS(export_function(file, f, {x}, false, "\xff"), std::invalid_argument);  // not UTF-8
}

namespace {

using Described = std::vector<std::tuple<std::string, Shape, Dtype>>;
using Fields = std::vector<StateT>;

/// Computes what a callback is told, for the operations of the test below.
struct Listener {
  std::vector<std::string> types;
  std::unordered_map<std::string, array> values;
  std::vector<array> arguments;
  Described inputs, outputs;
  std::vector<std::pair<std::string, std::string>> keywords;
  size_t constants = 0;
  std::unordered_map<std::string, Fields> fields;

  void operator()(const ExportCallbackInput& told) {
    types.push_back(std::get<std::string>(told.at("type")));
    if (types.back() == "inputs") {
      inputs = std::get<Described>(told.at("inputs"));
      for (size_t k = 0; k < arguments.size(); ++k) values.insert_or_assign(std::get<0>(inputs[k]), arguments[k]);
    } else if (types.back() == "keyword_inputs") {
      keywords = std::get<std::vector<std::pair<std::string, std::string>>>(told.at("keywords"));
    } else if (types.back() == "outputs") {
      outputs = std::get<Described>(told.at("outputs"));
    } else if (types.back() == "constants") {
      for (const auto& [name, value] : std::get<std::vector<std::pair<std::string, array>>>(told.at("constants")))
        values.insert_or_assign(name, value), ++constants;
    } else {
      compute(told);
    }
  }
  void compute(const ExportCallbackInput& told) {
    const std::string& name = std::get<std::string>(told.at("name"));
    const auto& of = std::get<Described>(told.at("inputs"));
    const auto [result, shape, dtype] = std::get<Described>(told.at("outputs")).at(0);
    fields.insert_or_assign(name, std::get<Fields>(told.at("arguments")));
    const auto in = [&](size_t k) { return values.at(std::get<0>(of[k])); };
    const array y = name == "mul"         ? in(0) * in(1)
                    : name == "exp"       ? exp(in(0))
                    : name == "broadcast" ? broadcast_to(in(0), shape)
                    : name == "reduce"    ? sum(in(0), 1)
                                          : array(NAN);
    CHECK(y.shape() == shape);
    CHECK(y.dtype() == dtype);
    values.insert_or_assign(result, y);
  }
  array output() const { return values.at(std::get<0>(outputs.at(0))); }
};

}  // namespace

TEST_CASE("export: a callback is told enough to compute the function") {
  const array w({2.0f, 3.0f, 4.0f}), x = reshape(arange(6.0), {2, 3}) * 0.1f, y = reshape(arange(3.0), {1, 3});
  eval(w, x, y);
  const ArgsKwargsFunction f = [&](const Args& args, const Kwargs& kwargs) {
    array out = exp(args[0] * w);
    if (kwargs.contains("by")) out = out * kwargs.at("by");
    return Args{sum(out, 1)};
  };
  Listener listener;
  listener.arguments = {x};
  const ExportCallback callback = [&](const ExportCallbackInput& told) { listener(told); };
  FunctionExporter e = exporter(callback, f);
  e({x});
  CHECK(listener.types == std::vector<std::string>{"inputs", "keyword_inputs", "outputs", "constants", "primitive",
                                                   "primitive", "primitive", "primitive"});
  CHECK(listener.constants == 1);
  CHECK(listener.keywords.empty());
  CHECK(floats(listener.output()) == floats(f({x}, {})[0]));
  const Fields& reduction = listener.fields.at("reduce");
  REQUIRE(reduction.size() == 2);
  CHECK(std::get<std::string>(reduction[0]) == "axes");
  CHECK(std::get<Strides>(reduction[1]) == Strides{1});
  // A second signature: w is known by now, under the same name.
  listener.types.clear();
  listener.arguments = {x, y};
  e(Args{x}, Kwargs{{"by", y}});
  CHECK(listener.constants == 1);
  CHECK(listener.inputs.size() == 2);
  REQUIRE(listener.keywords.size() == 1);
  CHECK(listener.keywords[0] == std::pair<std::string, std::string>{"by", std::get<0>(listener.inputs[1])});
  CHECK(floats(listener.output()) == floats(f({x}, {{"by", y}})[0]));
  e.close();
  CHECK_THROWS_AS(e({x}), std::runtime_error);
  // Regions are written out; control flow and shapeless functions are refused.
  std::vector<std::string> names;
  const ExportCallback names_of = [&](const ExportCallbackInput& told) {
    if (told.contains("name")) names.push_back(std::get<std::string>(told.at("name")));
  };
  export_function(names_of, [](const Args& in) { return Args{softmax(in[0], -1)}; }, {x});
  CHECK(std::find(names.begin(), names.end(), "exp") != names.end());
  CHECK(std::find(names.begin(), names.end(), "composite") == names.end());
  const ArrayFunction loop = [](const Args& in) {
    return cond(
        array(true), [](const Args& a) { return a; }, [](const Args& a) { return Args{-a[0]}; }, in);
  };
  CHECK_THROWS_WITH_AS(export_function(names_of, loop, {x}), doctest::Contains("cond"), std::invalid_argument);
  CHECK_THROWS_AS(export_function(names_of, loop, {x}, true), std::invalid_argument);
  CHECK_THROWS_AS(exporter(ExportCallback{}, loop), std::invalid_argument);
}

TEST_CASE("export: a GPT's forward pass") {
  const Folder folder;
  const std::string file = folder / "gpt.weft";
  random::seed(3);
  models::Gpt model({.vocab = 17, .context = 8, .layers = 2, .heads = 2, .width = 16});
  const nn::EvalMode mode(model);
  const array ids = astype(random::randint(0, 17, {2, 8}, int32, random::key(1)), int32);
  export_function(file, [&](const std::vector<array>& in) { return std::vector<array>{model.logits(in[0])}; }, {ids});
  const auto g = import_function(file);
  CHECK(floats(g({ids})[0]) ==
        floats(compile([&](const std::vector<array>& in) { return std::vector<array>{model.logits(in[0])}; },
                       CompileOptions{})({ids})[0]));
}

TEST_CASE("export: what cannot be exported, and files that hold no function") {
  const Folder folder;
  const std::string file = folder / "x.weft";
  const ArrayFunction plain = [](const std::vector<array>& in) { return in; };
  CHECK_THROWS_AS(export_function(file, plain, {zeros({2})}, ExportOptions{.dynamic = {{1, 0, "n", 4}}}),
                  std::invalid_argument);
  CHECK_FALSE(std::filesystem::exists(file));
  CHECK_THROWS_WITH_AS(import_function(file), doctest::Contains("No such file"), std::runtime_error);
  save_safetensors(folder / "w.safetensors", {{"a", zeros({2})}});
  CHECK_THROWS_WITH_AS(import_function(folder / "w.safetensors"), doctest::Contains("holds no exported function"),
                       std::runtime_error);
  const auto refused = [&](const std::string& program, const char* why) {
    CAPTURE(why);
    save_safetensors(folder / "p.safetensors", {}, {{"format", "weft.program"}, {"program", program}});
    CHECK_THROWS_WITH_AS(import_function(folder / "p.safetensors"), doctest::Contains(why), std::runtime_error);
  };
  const auto with = [](const std::string& entry) {
    return "{\"version\":1,\"functions\":[{\"inputs\":[[\"float32\",[2,3]]],\"entries\":[" + entry +
           "],\"outputs\":[1],\"arguments\":1,\"keywords\":[],\"stored\":[]}]}";
  };
  refused("{", "not JSON");
  refused("{\"version\":2,\"functions\":[]}", "has version 2; this library reads version 1");
  refused("{\"version\":1}", "lacks \"functions\"");
  refused(with("{\"op\":\"frob\",\"of\":[0]}"), "entry 0: the operator \"frob\" is not known");
  refused(with("{\"op\":\"exp\",\"of\":[1]}"), "value 1.0 is not there yet");
  refused(with("{\"op\":\"exp\",\"of\":[0],\"x\":1}"), "unknown field \"x\"");
  refused(with("{\"op\":\"add\",\"of\":[0]}"), "entry 0: [add]");
  refused(with("{\"op\":\"reshape\",\"of\":[0],\"shape\":[7]}"), "entry 0: [reshape]");
  refused(with("{\"op\":\"reduce\",\"of\":[0],\"axes\":[5]}"), "entry 0: [sum]");
  refused(with("{\"op\":\"parameter\",\"of\":[]}"), "is not known");
}

TEST_CASE("export: files with the former names of reduce and cumulative are read") {
  const Folder folder;
  const std::string file = folder / "old.safetensors";
  const auto computed = [&](const std::string& entry) {
    save_safetensors(file, {},
                     {{"format", "weft.program"},
                      {"program", "{\"version\":1,\"functions\":[{\"inputs\":[[\"float32\",[2,3]]],\"entries\":[" +
                                      entry + "],\"outputs\":[1],\"arguments\":1,\"keywords\":[],\"stored\":[]}]}"}});
    return floats(import_function(file)(Args{reshape(arange(6.0, float32), {2, 3})}).at(0));
  };
  CHECK(computed(R"({"op":"fold","of":[0],"axes":[1]})") == std::vector<float>{3, 12});
  CHECK(computed(R"({"op":"prefix","of":[0],"axes":[1],"integers":[0,0,0]})") == std::vector<float>{0, 1, 3, 3, 7, 12});
}
