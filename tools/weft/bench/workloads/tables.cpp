// Models of rows, graphs and equations: recommendation, a graph network, tabular data, a network that solves an
// equation.
#include "tools/weft/bench/workloads/model.h"
#include "weft/ops.h"
#include "weft/random.h"

namespace weft::tool {

namespace {

/// Deep learning recommendation (Naumov et al. 2019): dense features through an MLP, the mean of a bag of rows of each
/// table, products of all pairs, another MLP.
struct Recommendation : nn::Module {
  explicit Recommendation(const Sizes& s)
      : tables(*this, "tables"), b1(*this, "b1", s("dense"), s("hidden")), b2(*this, "b2", s("hidden"), s("width")),
        t1(*this, "t1", s("width") + (s("tables") + 1) * s("tables") / 2, s("hidden")), t2(*this, "t2", s("hidden"), 1),
        pairs(pairs_below(s("tables") + 1)) {
    for (int i = 0; i < s("tables"); ++i) tables.add(s("rows"), s("width"));
  }
  /// Positions of the pairs (i, j), j < i, in a flattened matrix of n rows.
  static array pairs_below(int n) {
    std::vector<int> out;
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < i; ++j) out.push_back(i * n + j);
    return array::from_data(out.data(), {static_cast<int>(out.size())}, int32);
  }
  std::vector<array> batch(const Sizes& s) const {
    return {random::normal({s("batch"), s("dense")}, s.dtype()),
            random_ids(s("rows"), {s("tables"), s("batch"), s("bag")}),
            astype(random_ids(2, {s("batch"), 1}), float32)};
  }
  array loss(const std::vector<array>& in) const {
    const array dense = nn::relu(b2(nn::relu(b1(in[0]))));
    std::vector<array> vectors{dense};
    for (size_t i = 0; i < tables.size(); ++i)
      vectors.push_back(mean(tables[i](take(in[1], static_cast<int>(i), 0)), 1));
    const array x = stack(vectors, 1);  // [batch, vectors, width]
    const array products = reshape(matmul(x, swapaxes(x, 1, 2)), {x.shape(0), -1});
    const array y = t2(nn::relu(t1(concatenate({dense, take(products, pairs, 1)}, 1))));
    return nn::losses::binary_cross_entropy(y, in[2]);
  }
  nn::List<nn::Embedding> tables;
  nn::Linear b1, b2, t1, t2;
  array pairs;
};

/// Graph convolutions (Kipf and Welling 2017): each node adds up what its neighbours send along the edges.
struct GraphNetwork : nn::Module {
  explicit GraphNetwork(const Sizes& s) : layers(*this, "layers"), head(*this, "head", s("width"), s("classes")) {
    for (int i = 0; i < s("layers"); ++i) layers.add(s("width"), s("width"));
  }
  std::vector<array> batch(const Sizes& s) const {
    const int nodes = s("nodes"), edges = s("edges");
    return {random::normal({nodes, s("width")}, s.dtype()), random_ids(nodes, {edges}), random_ids(nodes, {edges}),
            random::uniform({edges, 1}, s.dtype()), random_ids(s("classes"), {nodes})};
  }
  array loss(const std::vector<array>& in) const {  // features, sources, destinations, weights of edges, labels
    array x = in[0];
    for (size_t i = 0; i < layers.size(); ++i) {
      const array sent = take(layers[i](x), in[1], 0) * in[3];  // [edges, width]
      x = nn::relu(scatter_add(zeros(x.shape(), x.dtype()), in[2], expand_dims(sent, 1), 0));
    }
    return mean_cross_entropy(head(x), in[4]);
  }
  nn::List<nn::Linear> layers;
  nn::Linear head;
};

struct TabularLayer : nn::Module {
  TabularLayer(nn::Module& parent, std::string name, int in, int out, float rate)
      : Module(parent, std::move(name)), linear(*this, "linear", in, out), bn(*this, "bn", out),
        drop(*this, "drop", rate) {}
  array operator()(const array& x) const { return drop(nn::relu(bn(linear(x)))); }
  nn::Linear linear;
  nn::BatchNorm bn;
  nn::Dropout drop;
};

struct Tabular : nn::Module {
  explicit Tabular(const Sizes& s) : layers(*this, "layers"), head(*this, "head", s("width"), s("classes")) {
    for (int i = 0; i < s("layers"); ++i)
      layers.add(i == 0 ? s("inputs") : s("width"), s("width"), s.number("dropout"));
  }
  std::vector<array> batch(const Sizes& s) const {
    return {random::normal({s("batch"), s("inputs")}, s.dtype()), random_ids(s("classes"), {s("batch")})};
  }
  array loss(const std::vector<array>& in) const {
    array x = in[0];
    for (size_t i = 0; i < layers.size(); ++i) x = layers[i](x);
    return mean_cross_entropy(head(x), in[1]);
  }
  nn::List<TabularLayer> layers;
  nn::Linear head;
};

/// Solves Burgers' equation u_t + u u_x = ν u_xx (Raissi et al. 2019): derivatives of the network by its inputs stand
/// in the loss, and the loss is differentiated by the parameters.
struct EquationSolver : nn::Module {
  explicit EquationSolver(const Sizes& s) : layers(*this, "layers"), head(*this, "head", s("width"), 1) {
    for (int i = 0; i < s("layers"); ++i) layers.add(i == 0 ? 2 : s("width"), s("width"));
  }
  std::vector<array> batch(const Sizes& s) const { return {random::uniform({s("batch"), 2}, s.dtype())}; }
  array network(const array& points) const {  // [batch, 2]: x and t
    array y = points;
    for (size_t i = 0; i < layers.size(); ++i) y = tanh(layers[i](y));
    return head(y);
  }
  array loss(const std::vector<array>& in) const {
    const auto slopes = [this](const std::vector<array>& p) {
      return grad([this](const std::vector<array>& q) { return sum(network(q[0])); })(p)[0];
    };
    const auto column = [](const array& a, int i) { return take(a, i, 1); };
    const array first = slopes(in), u = column(network(in[0]), 0);
    const array second = grad([&](const std::vector<array>& p) { return sum(column(slopes(p), 0)); })(in)[0];
    const array rest = column(first, 1) + u * column(first, 0) - array(0.01f) * column(second, 0);
    return mean(square(rest)) + mean(square(u - sin(column(in[0], 0))));
  }
  nn::List<nn::Linear> layers;
  nn::Linear head;
};

}  // namespace

void add_table_models(WorkloadMakers& makers) {
  makers["dlrm"] = workload_of<Recommendation>;
  makers["gcn"] = workload_of<GraphNetwork>;
  makers["tabular"] = workload_of<Tabular>;
  makers["pinn"] = workload_of<EquationSolver>;
}

}  // namespace weft::tool
