#pragma once
// What a graph between two passes computes, by the reference rule of each operator: what types cannot show, such as two
// operands changed about, shows here. (Slow, and only as good as the numbers tried: passes are run through it in tests,
// not in builds.)
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"
#include "graph/instances.h"
#include "graph/rows.h"

namespace weft::compiler::testing {

using graph::HostTensor;

/// A piece of attention of one query, or what joins the pieces (schedule/splits.h), of the plainest kind:
/// equal leading axes, no mask, every key seen.
inline std::vector<HostTensor> attention_part(const IrNode& n, const std::vector<HostTensor>& in) {
  std::vector<HostTensor> out;
  for (const graph::Type& t : n.results) out.push_back(graph::host(t));
  const std::vector<int64_t>& part = n.attrs->integers;
  const auto at = [](const HostTensor& t, int64_t k) { return t.data[static_cast<size_t>(k)].real(); };
  const auto set = [](HostTensor& t, int64_t k, double v) { t.data[static_cast<size_t>(k)] = Number::of_real(v); };
  if (part[0] == static_cast<int64_t>(AttentionPart::join)) {
    const int64_t pieces = in[1].type.shape.back().bound(), width = in[0].type.shape.back().bound(),
                  rows = num_elements(in[1].type.shape) / pieces;
    for (int64_t r = 0; r < rows; ++r) {
      double most = -INFINITY, total = 0;
      for (int64_t p = 0; p < pieces; ++p) most = std::max(most, at(in[1], r * pieces + p));
      for (int64_t p = 0; p < pieces; ++p) total += std::exp(at(in[1], r * pieces + p) - most);
      for (int64_t w = 0; w < width; ++w) {
        double sum = 0;
        for (int64_t p = 0; p < pieces; ++p)
          sum += std::exp(at(in[1], r * pieces + p) - most) * at(in[0], (r * pieces + p) * width + w);
        set(out[0], r * width + w, sum / total);
      }
    }
    return out;
  }
  const Shape &k = in[1].type.shape, &v = in[2].type.shape;
  const int64_t keys = (k.end() - 2)->bound(), width = k.back().bound(), values = v.back().bound(),
                rows = num_elements(k) / keys / width, pieces = part[1], length = part[2];
  const double scale = n.attrs->composite->attention->scale;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t p = 0; p < pieces; ++p) {
      const int64_t begin = p * length, end = std::min(keys, begin + length);
      std::vector<double> scores;
      for (int64_t j = begin; j < end; ++j) {
        double score = 0;
        for (int64_t w = 0; w < width; ++w) score += at(in[0], r * width + w) * at(in[1], (r * keys + j) * width + w);
        scores.push_back(score * scale);
      }
      const double most = *std::max_element(scores.begin(), scores.end());
      double total = 0;
      for (const double s : scores) total += std::exp(s - most);
      for (int64_t w = 0; w < values; ++w) {
        double sum = 0;
        for (int64_t j = begin; j < end; ++j)
          sum += std::exp(scores[static_cast<size_t>(j - begin)] - most) * at(in[2], (r * keys + j) * values + w);
        set(out[0], (r * pieces + p) * values + w, sum / total);
      }
      set(out[1], r * pieces + p, most + std::log(total));
    }
  return out;
}

/// The outputs of a graph.
inline std::vector<HostTensor> evaluate(const Ir& ir, const std::vector<HostTensor>& inputs) {
  std::vector<HostTensor> done(ir.nodes.size());
  for (size_t k = 0; k < inputs.size(); ++k) done[static_cast<size_t>(ir.inputs[k])] = inputs[k];
  std::map<std::string, std::vector<HostTensor>> calls;  // by key: all results
  for (NodeId id = 0; id < ir.size(); ++id) {
    const IrNode& n = ir[id];
    if (n.op == graph::Op::parameter) continue;
    std::vector<HostTensor> in;
    for (const int input : n.inputs) in.push_back(done[static_cast<size_t>(input)]);
    if (!is_call(n.op)) {
      const std::vector<graph::Type> types = has_results(n) ? n.results : std::vector{n.type};
      done[static_cast<size_t>(id)] = graph::row(n.op).reference(n.attrs, in, types)[static_cast<size_t>(n.output)];
      continue;
    }
    auto [known, fresh] = calls.try_emplace(call_key(n));
    if (fresh)
      known->second = is_attention(n) && !n.attrs->integers.empty()
                          ? attention_part(n, in)
                          : graph::row(n.op).reference(n.attrs, in, n.results);
    done[static_cast<size_t>(id)] = known->second[static_cast<size_t>(n.output)];
  }
  std::vector<HostTensor> out;
  for (const NodeId id : ir.outputs) out.push_back(done[static_cast<size_t>(id)]);
  return out;
}

inline std::vector<HostTensor> random_inputs(const Ir& ir) {
  graph::testing::Random r(3);
  std::vector<HostTensor> out;
  for (const NodeId id : ir.inputs) out.push_back(graph::testing::random_tensor(r, ir[id].type));
  return out;
}

/// Nothing where the outputs agree; else the first that does not, with the largest difference in terms of the largest
/// element. `tolerance`: of float32 and float64; of narrower floats as many of their last positions as float32 has in
/// it.
inline std::string disagreement(const std::vector<HostTensor>& got, const std::vector<HostTensor>& expected,
                                double tolerance) {
  for (size_t k = 0; k < expected.size(); ++k) {
    if (!(got[k].type == expected[k].type)) return "output " + std::to_string(k) + " has another type";
    double worst = 0, largest = 1e-30;
    for (size_t e = 0; e < expected[k].data.size(); ++e) {
      const double a = got[k].data[e].real(), b = expected[k].data[e].real();
      if (std::isnan(a) && std::isnan(b)) continue;
      largest = std::max(largest, std::abs(b));
      worst = std::isnan(a) != std::isnan(b) ? INFINITY : std::max(worst, a == b ? 0 : std::abs(a - b));
    }
    const Dtype t = expected[k].type.dtype;
    const double allowed = !is_float(t)    ? 0
                           : t.size() >= 4 ? tolerance
                           : t == float16  ? 4e-3
                           : t == bfloat16 ? 3e-2
                                           : 0.3;
    if (worst > allowed * largest) return fmt::format("output {} differs by {} of {}", k, worst, largest);
  }
  return "";
}

}  // namespace weft::compiler::testing
