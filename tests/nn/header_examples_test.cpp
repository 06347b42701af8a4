// The examples in the comments of the public headers, as they stand there (tests/checks/check_headers.py compares
// them), with what they need around them.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <sstream>
#include <vector>

#include "weft/kernel_function.h"
#include "weft/weft.h"

using namespace weft;

namespace {

struct Classifier : nn::Module {
  nn::Linear out{*this, "out", 4, 3};
  array loss(const array& x, const array& y) const {
    return nn::losses::cross_entropy(out(x), y, nn::losses::Reduction::mean);
  }
};

const array& images() {
  static const array x = reshape(arange(0.0, 8.0) * array(0.1f), {2, 4});
  return x;
}
const array& labels() {
  static const array y({2, 0});
  return y;
}

/// Returns what `f` prints to std::cout.
template <class F>
std::string printed(const F& f) {
  const std::ostringstream text;
  std::streambuf* before = std::cout.rdbuf(text.rdbuf());
  f();
  std::cout.rdbuf(before);
  return text.str();
}

}  // namespace

TEST_CASE("examples of arrays: array.h, indexing.h, linalg.h") {
  const std::string text = printed([] {
    array x = {1.0f, 2.0f, 3.0f};
    array y = exp(x) + 1.0f;  // builds a graph
    std::cout << y << "\n";   // computes here
  });
  CHECK(text == "array([3.71828, 8.38906, 21.0855], dtype=float32)\n");
  {
    array x = reshape(arange(0, 12), {4, 3}) - array(5);
    x = astype(x, float32);
    const array rows({1, 1}), updates(1.0f);
    array a = index(x, 0, Slice(1, -1), newaxis);   // x[0, 1:-1, None]
    array b = index(x, ellipsis, Slice::step(-1));  // x[..., ::-1]
    array c = index(x, array({3, 0, 3}));           // x[[3, 0, 3]]
    array d = index(x, x > 0.0f);                   // x[x > 0]: evaluates the mask, as the length depends on it
    x = at(x, 2).set(0.0f);                         // x[2] = 0, as a new value
    x = at(x, rows).add(updates);                   // as MLX's x.at[rows].add(updates): repeated rows add up
    CHECK(a.shape() == Shape{1, 1});
    CHECK(b.to_vector<float>()[0] == -3);
    CHECK(c.shape() == Shape{3, 3});
    CHECK(d.shape() == Shape{6});
    CHECK(x.to_vector<float>() == std::vector<float>{-5, -4, -3, 0, 1, 2, 0, 0, 0, 4, 5, 6});
  }
  {
    const array a({4.0f, 2.0f, 2.0f, 3.0f}, {2, 2}), b({1.0f, 2.0f});
    array l = linalg::cholesky(a);  // a = l lᴴ
    array x = linalg::solve(a, b);  // a x = b
    array g = grad([](const array& m) { return linalg::slogdet(m).second; })(a);
    CHECK(allclose(matmul(l, transpose(l)), a).item<bool>());
    CHECK(allclose(matmul(a, x), b).item<bool>());
    CHECK(allclose(g, transpose(linalg::inv(a))).item<bool>());
  }
}

TEST_CASE("examples of lengths: shape.h") {
  auto total = compile([](const std::vector<array>& in) { return std::vector{sum(in[0] * in[0])}; },
                       {.dynamic = {{.argument = 0, .axis = 0, .name = "n", .bound = 4096}}});
  array few = total({ones({3})})[0], many = total({ones({1000})})[0];  // one program for both lengths
  CHECK(few.item<float>() == 3);
  CHECK(many.item<float>() == 1000);

  const Dim n = symbol("n", 4096);
  const Shape shape{n, 8};                             // "(n<=4096,8)"
  const int64_t columns = shape[1], rows = n.bound();  // int64_t{n} would throw
  CHECK(to_string(shape) == "(n<=4096,8)");
  CHECK(columns == 8);
  CHECK(rows == 4096);
  CHECK_THROWS_AS(static_cast<void>(int64_t{n}), std::invalid_argument);
}

TEST_CASE("examples of functions: transforms.h, compile.h, control.h, export.h") {
  {
    const array x = images(), y({1.0f, 2.0f});
    const auto loss = [](const std::vector<array>& p, const array& in, const array& out) {
      return sum(square(matmul(in, p[0]) + p[1] - out));
    };
    auto loss_and_grads = value_and_grad([&](const std::vector<array>& p) { return loss(p, x, y); }, {0, 1});
    const auto [value, grads] = loss_and_grads({zeros({4}), zeros({})});
    CHECK(value.item<float>() == 5);
    CHECK(grads[1].item<float>() == -6);
  }
  {
    Classifier model;
    const array x = images(), y = labels();
    const auto loss = [&](const array& in, const array& classes) { return model.loss(in, classes); };
    auto step = compile([&](const std::vector<array>& batch) { return std::vector{loss(batch[0], batch[1])}; },
                        {.state = model.state()});
    array value = step({x, y})[0];
    CHECK(value.item<float>() == doctest::Approx(model.loss(x, y).item<float>()));
  }
  {
    const array w = array(0.5f) * eye(2), u = eye(2), h0 = zeros({2}), xs = ones({3, 2});
    const ScanFunction cell = [&](const std::vector<array>& carry, const std::vector<array>& x) {
      const array h = tanh(matmul(x[0], w) + matmul(carry[0], u));
      return std::pair{std::vector{h}, std::vector{h}};
    };
    auto [last, all] = scan(cell, {h0}, {xs});
    CHECK(all[0].shape() == Shape{3, 2});
    CHECK(array_equal(last[0], index(all[0], -1)).item<bool>());
  }
  {
    const auto before = std::filesystem::current_path();
    const auto folder = std::filesystem::temp_directory_path() / "weft_header_examples";
    std::filesystem::create_directories(folder);
    std::filesystem::current_path(folder);
    const nn::Linear model(4, 3);
    const array x = images();
    export_function("f.weft", [&](const Args& in) { return Args{model(in[0])}; }, {x});
    auto f = import_function("f.weft");
    array y = f({x})[0];
    CHECK(array_equal(y, model(x)).item<bool>());
    std::filesystem::current_path(before);
    std::filesystem::remove_all(folder);
  }
}

TEST_CASE("examples of einsum.h and nn/distributed.h") {
  {
    array x = ones({1, 9, 9, 3}), w = ones({3, 3, 3, 8});
    array y = einsum("b (2*oh+kh) (2*ow+kw) c, kh kw c o -> b oh ow o", {x, w});  // [1, 4, 4, 8]
    array same = einsum("b(2*i+k)(2*j+l)c,klco->bijo", {x, w});
    CHECK(y.shape() == Shape{1, 4, 4, 8});
    CHECK(array_equal(y, same).item<bool>());
  }
  {
    nn::FullyShardedModule layer(std::make_unique<nn::Linear>(8, 8));
    array y = layer(ones({2, 8}));  // parameters "module.weight" and "module.bias"
    CHECK(y.shape() == Shape{2, 8});
    CHECK(layer.parameters()[1].first == "module.bias");
  }
}

TEST_CASE("example of decoding with a key-value cache: fast.h") {
  const int tokens = 4;
  const float scale = 0.5f;
  array keys = zeros({1, 2, 8, 4}), values = zeros({1, 2, 8, 4}), out = zeros({1, 2, 1, 4});
  const array q = random::normal({1, 2, 1, 4}, random::key(0)), k = random::normal({1, 2, 1, 4}, random::key(1)),
              v = random::normal({1, 2, 1, 4}, random::key(2));
  auto decode = compile(
      [&](const std::vector<array>& in) {  // q, k, v of one token [1, heads, 1, width]; its position, int32 [1]
        keys = slice_update(keys, in[1], in[3], {2});  // both caches are [1, heads, context, width]
        values = slice_update(values, in[2], in[3], {2});
        return std::vector{fast::cached_attention(in[0], keys, values, scale, in[3] + array(1))};
      },
      {.state = {&keys, &values}});
  for (int t = 0; t < tokens; ++t) out = decode({q, k, v, array({t})})[0];
  CHECK(allclose(out, v, 1e-5, 1e-6).item<bool>());  // all tokens have the same value
  CHECK(array_equal(slice(keys, {0, 0, 3, 0}, {1, 2, 4, 4}), k).item<bool>());
  CHECK(all(equal(slice(keys, {0, 0, 4, 0}, {1, 2, 8, 4}), array(0.0f))).item<bool>());
}

TEST_CASE("examples of modules: module.h, precision.h") {
  {
    struct Mlp : nn::Module {
      using Module::Module;  // Mlp m;  or as a part: Mlp mlp{*this, "mlp"};
      nn::Linear up{*this, "up", 64, 256};
      nn::Linear down{*this, "down", 256, 64};
      nn::Parameter scale{*this, "scale", ones({64})};
      array operator()(const array& x) const { return down(nn::gelu(up(x))) * scale; }
    };
    struct Block : Mlp {
      using Mlp::Mlp;
    };
    struct Model : nn::Module {
      nn::List<Block> blocks{*this, "blocks"};  // a member of a model; blocks.add(config) in its constructor
    };
    Model model;
    model.blocks.add();
    CHECK(model.blocks[0](ones({2, 64})).shape() == Shape{2, 64});
    CHECK(model.parameters().back().first == "blocks.0.scale");
  }
  {
    const array x = zeros({2, 784});
    nn::Sequential net;
    net.add<nn::Linear>(784, 128);
    net.add<nn::ReLU>();
    net.add<nn::Linear>(128, 10);
    array scores = net(x);
    CHECK(scores.shape() == Shape{2, 10});
  }
  {
    Classifier model;
    const array x = images(), y = labels();
    auto loss_and_grads =
        nn::value_and_grad(model, [&](const std::vector<array>& b) { return model.loss(b[0], b[1]); });
    auto [loss, grads] = loss_and_grads({x, y});
    CHECK(std::isfinite(loss.item<float>()));
    CHECK(grads.size() == 2);
  }
  {
    const nn::Precision single{};                    // float32 throughout
    const nn::Precision half = nn::mixed(bfloat16);  // products in bfloat16, everything that is kept in float32
    const nn::Precision eight{.compute = bfloat16, .float8 = true};  // linear layers of blocks in 8-bit floats
    const nn::Precision all{.parameters = bfloat16, .compute = bfloat16, .residual = bfloat16};  // half the bytes
    CHECK(single.compute == float32);
    CHECK(half.parameters == float32);
    CHECK(eight.float8);
    CHECK(all.residual == bfloat16);
  }
}

TEST_CASE("examples of optimizers: optimizer.h, loss_scale.h") {
  Classifier model;
  const std::vector<array> batch{images(), labels()};
  const auto schedule = optim::linear_schedule(1e-3f, 0, 10);
  const int64_t k = 0;
  {
    const auto gradients =
        nn::value_and_grad(model, [&](const std::vector<array>& in) { return model.loss(in[0], in[1]); })(batch).second;
    optim::AdamW optimizer(model.trainable_parameters(), {.weight_decay = 0.1});
    optimizer.set_learning_rate(schedule(k));  // writes one number; nothing is traced again
    optimizer.update(gradients);               // in the order of the parameters
    CHECK(optimizer.step.item<int>() == 1);
  }
  {
    optim::AdamW optimizer(model.trainable_parameters());
    optim::LossScale scale;  // list scale.state() with the model's and the optimizer's
    const auto loss_and_grads =
        nn::value_and_grad(model, [&](const std::vector<array>& in) { return scale(model.loss(in[0], in[1])); });
    auto [scaled, gradients] = loss_and_grads(batch);
    array loss = scale.unscaled(scaled);     // before the scale changes
    scale.step(optimizer, gradients, 1.0f);  // clipped to a norm of 1
    CHECK(loss.item<float>() * 65536 == doctest::Approx(scaled.item<float>()));
    CHECK(optimizer.step.item<int>() == 1);
  }
  {
    const auto muon = [](optim::Parameters p) { return std::make_unique<optim::Muon>(std::move(p)); };
    const auto adamw = [](optim::Parameters p) { return std::make_unique<optim::AdamW>(std::move(p)); };
    optim::MultiOptimizer optimizer(model.trainable_parameters(), {{optim::is_matrix, muon}, {optim::every, adamw}});
    CHECK(optimizer.share(0).parameters().size() == 1);
  }
  {
    optim::MultiOptimizer both({std::make_shared<optim::Muon>(), std::make_shared<optim::AdamW>()}, {optim::is_matrix});
    CHECK(both.state_tree()["states"].size() == 2);
    Tree parameters = Tree::dict({{"w", ones({2})}});
    const Tree slopes = Tree::dict({{"w", zeros({2})}});
    optim::Adam adam({.learning_rate = optim::exponential_decay(0.1f, 0.9f)});
    parameters = adam.apply_gradients(slopes, parameters);
    CHECK(parameters["w"].leaf().to_vector<float>() == std::vector<float>{1, 1});
  }
  {
    const auto precise = model.set_dtype(bfloat16);
    optim::AdamW optimizer(model.trainable_parameters());
    optimizer.set_masters(precise);
    CHECK(optimizer.precise_parameters().at("out.weight").dtype() == float32);
  }
}

TEST_CASE("examples of profiles: profile.h") {
  Classifier model;
  const array x = images(), y = labels();
  const auto train = [&](const std::vector<array>& batch) { return std::vector{model.loss(batch[0], batch[1])}; };
  const std::string text = printed([&] {
    auto step = compile(train, {.state = model.state()});
    std::cout << explain(step, {x, y});
    std::cout << profile(step, {x, y}).by_work();
  });
  CHECK(text.find("predicted") != std::string::npos);
}

TEST_CASE("weft/schedule.h") {
  const array x = ones({4, 300});
  {
    const schedule::Steps rows = schedule::parse("split(r0, 16, {step, lane}); vectorize(lane)");
    const schedule::Steps same = schedule::Steps().split("r0", 16, {"step", "lane"}).vectorize("lane");
    CHECK(rows == same);
  }
  array p = scheduled(softmax(x, -1), schedule::parse("split(r0, 16, {step, lane}); vectorize(lane)"));
  CHECK(allclose(p, softmax(x, -1)).item<bool>());
}

TEST_CASE("examples of kernels: kernel_function.h") {
  const array logits = reshape(sin(arange(0.0, 24.0)), {3, 8});
  auto softmax = k::kernel("softmax", [](k::In<float, 2> x, k::Out<float, 2> y) {
                   const int64_t n = x.dim(1);
                   auto row = k::program_id(0);
                   auto v = x(row, k::ds(0, n)).load(-INFINITY);
                   auto e = k::exp(v - k::max(v, 0));
                   y(row, k::ds(0, n)) = e / k::sum(e, 0);
                 }).grid([](auto x, auto) { return k::Grid{x.dim(0)}; });
  array p = softmax(logits);  // builds a graph; nothing runs yet
  CHECK(allclose(p, weft::softmax(logits, -1)).item<bool>());
}

TEST_CASE("examples of kernels: launches with run-time extents") {
  const auto rows = k::kernel("rows", [](k::In<float, 2> from, k::Out<float, 2> to) {
                      const auto row = k::program_id(0);
                      to(row, k::all) = from(row, k::all) + 1.0f;
                    }).grid([](auto from, auto) { return k::Grid{from.extent(0)}; });
  const k::RawStream stream;
  std::vector<float> given(4096 * 64, 1), made(4096 * 64, 0);
  void *const x = given.data(), *const y = made.data();
  const Dim n = symbol("n", 4096);
  rows.launch(stream, {{.data = x, .shape = {n, 64}, .extents = {77, 64}}, {.data = y, .shape = {n, 64}}});
  rows.launch(stream, {{x, {n, 64}}, {y, {n, 64}}}, {{n, 1000}});  // the same code
  CHECK(made[999 * 64] == 2);
  CHECK(made[1000 * 64] == 0);
}

TEST_CASE("examples of memory of other libraries: interop.h") {
  const auto owner = std::make_shared<std::vector<float>>(64 * 8, 1.0f);
  const RawStream stream{Device::cpu, nullptr};
  array x = borrow({.data = owner->data(), .shape = {64, 8}, .stream = stream, .release = [owner] {}});
  const LentArray y = lend(exp(x), stream);  // what follows in the stream may read y.data()
  CHECK(owner.use_count() == 2);
  CHECK(static_cast<const float*>(y.data())[511] == doctest::Approx(std::exp(1.0f)));
}

TEST_CASE("examples of trees of parameters: module.h") {
  nn::Linear model(3, 2);
  optim::SGD optimizer({.learning_rate = 1});
  const Tree gradients = Tree::dict({{"bias", model.bias->value()}});
  model.update(optimizer.apply_gradients(gradients, model.parameter_tree()));
  CHECK(model.bias->value().to_vector<float>() == std::vector<float>{0, 0});
  Tree sizes = model.filter_and_map(nn::Module::valid_parameter_filter,
                                    [](const nn::Item& item) { return Tree(array(item.parameter->value().size())); });
  CHECK(sizes["weight"].leaf().item<int>() == 6);
  CHECK(sizes["bias"].leaf().item<int>() == 2);
}

TEST_CASE("examples of trees: tree.h") {
  Tree tree = Tree::dict({{"layers", Tree::list({Tree::dict({{"weight", ones({2, 3})}})})}});
  array w = tree["layers"][0]["weight"];
  tree["bias"] = zeros({3});  // adds a key
  CHECK(w.shape() == Shape{2, 3});
  Tree halves = tree_map([](const array& x) { return x * 0.5f; }, tree);
  CHECK(halves["layers"][0]["weight"].leaf().to_vector<float>() == std::vector<float>(6, 0.5f));
  const std::string text = printed([&] {
    for (const auto& [path, leaf] : tree_flatten(tree)) std::cout << path << " " << leaf.leaf().shape() << "\n";
  });
  CHECK(text == "layers.0.weight (2,3)\nbias (3)\n");
  const Tree parameters = Tree::dict({{"w", array({2.0f}, {1, 1})}});
  const array x({1.0f, 2.0f}, {2, 1}), y({3.0f, 3.0f}, {2, 1});
  auto loss_and_grads = tree_value_and_grad([&](const Tree& p) { return mean(square(matmul(x, p["w"]) - y)); });
  auto [loss, slopes] = loss_and_grads(parameters);
  CHECK(loss.item<float>() == 1);
  CHECK(slopes["w"].leaf().item<float>() == 1);
}
