// The reference evaluation: applies each operator's rule on the host, one after the other, slowly. Every other way to
// compute is tested against it.
#include <bit>
#include <cstring>
#include <unordered_map>

#include "base/error.h"
#include "base/half.h"
#include "graph/complex/complex.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

/// Reads the elements of a leaf with storage.
HostTensor read(const Type& type, const Storage& storage) {
  HostTensor out = host(type);
  const auto* bytes = static_cast<const unsigned char*>(storage.buffer->data());
  each_index(bounds(type.shape), [&](const auto& index, int64_t at) {
    int64_t element = storage.offset;
    for (size_t k = 0; k < index.size(); ++k) element += index[k] * storage.strides[k];
    uint64_t bits = 0;
    std::memcpy(&bits, bytes + element * type.dtype.size(),
                type.dtype.size());  // little-endian, as every machine Weft runs on
    out.data[static_cast<size_t>(at)] = number_of_bits(bits, type.dtype);
  });
  return out;
}

}  // namespace

HostTensor host(const Type& type) {
  const Number zero = is_float(type.dtype) ? Number::of_real(0) : Number::of_int(0);
  return {type, std::vector<Number>(static_cast<size_t>(num_elements(type.shape)), zero)};
}

std::vector<int64_t> bounds(const Shape& shape) {
  std::vector<int64_t> out;
  for (const Dim& d : shape) out.push_back(d.bound());
  return out;
}

int64_t position(const std::vector<int64_t>& shape, const std::vector<int64_t>& index) {
  int64_t at = 0;
  for (size_t k = 0; k < shape.size(); ++k) at = at * shape[k] + index[k];
  return at;
}

uint64_t bits_of_number(Number n, Dtype t) {
  if (t == float64) return std::bit_cast<uint64_t>(n.real());
  if (t == float32) return std::bit_cast<uint32_t>(static_cast<float>(n.real()));
  if (is_low_float(t)) return float_to_low(static_cast<float>(n.real()), t);
  const uint64_t bits = static_cast<uint64_t>(n.i);
  return t.size() == 8 ? bits : bits & ((uint64_t{1} << (8 * t.size())) - 1);
}

Number number_of_bits(uint64_t bits, Dtype t) {
  if (t == float64) return Number::of_real(std::bit_cast<double>(bits));
  if (t == float32) return Number::of_real(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  if (is_low_float(t)) return Number::of_real(low_to_float(static_cast<uint16_t>(bits), t));
  if (is_complex(t)) throw_invalid("reference", "a complex number has no bits of one word");
  if (is_signed(t) && t.size() < 8) {
    const int shift = 64 - 8 * t.size();
    return Number::of_int(static_cast<int64_t>(bits << shift) >> shift);
  }
  return Number::of_int(static_cast<int64_t>(bits));
}

/// Complex tensors interleave both parts of an element, so they equal tensors of the parts with an additional last
/// axis.
std::vector<HostTensor> evaluate_complex(const Graph& graph, std::span<const HostTensor> inputs) {
  std::vector<HostTensor> parts(inputs.begin(), inputs.end());
  for (HostTensor& t : parts) t.type = memory_type(t.type);
  std::vector<HostTensor> out = evaluate_reference(split_complex(graph), parts);
  for (size_t k = 0; k < out.size(); ++k) out[k].type = graph.outputs[k].type();
  return out;
}

std::vector<HostTensor> evaluate_reference(const Graph& graph, std::span<const HostTensor> inputs) {
  if (has_complex(graph)) return evaluate_complex(graph, inputs);
  check(inputs.size() == graph.inputs.size(), "reference", "one tensor for each input of the graph");
  std::unordered_map<const Node*, std::vector<HostTensor>> done;
  for (size_t k = 0; k < inputs.size(); ++k) {
    check(inputs[k].type == graph.inputs[k].type(), "reference",
          "an input of type " + to_string(inputs[k].type) + " for " + to_string(graph.inputs[k].type()));
    done[graph.inputs[k].node.get()] = {inputs[k]};
  }
  for (const auto& node : topological(graph.outputs)) {
    std::vector<HostTensor>& results = done[node.get()];
    if (!results.empty()) continue;
    if (node->storage(0)) {
      for (int k = 0; k < node->outputs(); ++k)
        results.push_back(read(node->types()[static_cast<size_t>(k)], *node->storage(k)));
      continue;
    }
    std::vector<HostTensor> arguments;
    for (const Value& v : node->inputs()) arguments.push_back(done.at(v.node.get())[static_cast<size_t>(v.index)]);
    std::vector<HostTensor> computed = row(node->op()).reference(node->attrs(), arguments, node->types());
    done[node.get()] = std::move(computed);
  }
  std::vector<HostTensor> out;
  for (const Value& v : graph.outputs) out.push_back(done.at(v.node.get())[static_cast<size_t>(v.index)]);
  return out;
}

}  // namespace weft::graph
