#pragma once
// An oracle for arrays: their graph through the reference evaluation, without the compiler.
#include <mutex>
#include <vector>

#include "array/host.h"
#include "graph/build.h"
#include "weft/array.h"

inline std::vector<double> reference_values(const weft::array& a) {
  using namespace weft;
  graph::Values leaves, parameters;
  std::vector<graph::HostTensor> inputs;
  graph::Graph g;
  {
    std::shared_lock lock(graph::structure());
    const graph::Value root = a.value();
    for (const auto& node : graph::topological(std::span(&root, 1))) {
      if (!node->storage(0)) continue;
      for (int k = 0; k < node->outputs(); ++k) {
        const graph::Value leaf{node, k};
        const graph::Storage& storage = *node->storage(k);
        const Strides packed = row_major_strides(leaf.shape());
        const int64_t n = num_elements(leaf.shape());
        std::vector<std::byte> bytes(static_cast<size_t>(n) * leaf.dtype().size() + 1);
        if (n > 0)
          detail::copy_strided(detail::address(storage, leaf.dtype()), storage.strides, bytes.data(), packed,
                               leaf.shape(), leaf.dtype().size());
        graph::HostTensor tensor{leaf.type(), {}};
        for (int64_t i = 0; i < n; ++i) tensor.data.push_back(detail::load_element(bytes.data(), leaf.dtype(), i));
        leaves.push_back(leaf);
        parameters.push_back(graph::parameter(leaf.type()));
        inputs.push_back(std::move(tensor));
      }
    }
    g.outputs = graph::substitute(std::span(&root, 1), leaves, parameters);
    g.inputs = parameters;
  }
  std::vector<double> values;
  const std::vector<graph::HostTensor> results = graph::evaluate_reference(g, inputs);
  for (const Number& n : results[0].data) values.push_back(n.real());
  return values;
}
