// Programs with complex numbers: the graph is compiled as one of their parts, and complex buffers are seen as parts
// with one more axis of 2.
#include "compiler/ir/complex.h"

#include <deque>

#include "graph/complex/complex.h"

namespace weft::compiler {
namespace {

graph::Storage as_real(graph::Storage s) {
  s.offset *= 2;
  for (int64_t& stride : s.strides) stride *= 2;
  s.strides.push_back(1);
  return s;
}

graph::Storage as_complex(graph::Storage s) {
  s.offset /= 2;
  s.strides.pop_back();
  for (int64_t& stride : s.strides) stride /= 2;
  return s;
}

std::vector<bool> which_complex(const graph::Values& values) {
  std::vector<bool> out;
  for (const graph::Value& v : values) out.push_back(is_complex(v.dtype()));
  return out;
}

class ComplexProgram : public Program {
 public:
  ComplexProgram(const graph::Graph& graph, std::shared_ptr<const Program> inner)
      : inner_(std::move(inner)), inputs_(which_complex(graph.inputs)), outputs_(which_complex(graph.outputs)) {}

  std::vector<Output> execute(std::span<const graph::Storage* const> inputs,
                              std::span<const int64_t> symbols) const override {
    std::vector<const graph::Storage*> real(inputs.begin(), inputs.end());
    std::deque<graph::Storage> seen_as_real;
    for (size_t k = 0; k < real.size() && k < inputs_.size(); ++k)
      if (inputs_[k]) real[k] = &seen_as_real.emplace_back(as_real(*inputs[k]));
    std::vector<Output> out = inner_->execute(real, symbols);
    for (size_t k = 0; k < out.size(); ++k)
      if (outputs_[k] && out[k].input < 0) out[k].storage = as_complex(std::move(out[k].storage));
    return out;
  }
  std::unique_ptr<BoundProgram> bind(std::span<const int64_t> symbols, void* arena) const override {
    return inner_->bind(symbols, arena);
  }  // the same addresses
  int input_of(size_t output) const override { return inner_->input_of(output); }
  bool recordable() const override { return inner_->recordable(); }
  double host_seconds() const override { return inner_->host_seconds(); }
  bool outgrown() const override { return inner_->outgrown(); }
  const std::vector<const Symbol*>& symbols() const override { return inner_->symbols(); }
  const Stats& stats() const override { return inner_->stats(); }
  const std::vector<StepInfo>& steps() const override { return inner_->steps(); }
  std::vector<Prediction> predict(const target::Rates& rates) const override { return inner_->predict(rates); }
  int64_t number() const override { return inner_->number(); }
  std::string print(const std::string& stage) const override { return inner_->print(stage); }

 private:
  std::shared_ptr<const Program> inner_;
  std::vector<bool> inputs_, outputs_;
};

}  // namespace

Source split_complex(const Source& source) {
  Source out{graph::split_complex(source.graph), source.layouts, source.updates};
  for (size_t k = 0; k < out.layouts.size(); ++k) {
    Strides& strides = out.layouts[k].strides;
    const graph::Value& input = source.graph.inputs[k];
    if (!is_complex(input.dtype()) || (strides.empty() && input.type().rank() > 0)) continue;
    for (int64_t& stride : strides) stride *= 2;
    strides.push_back(1);
  }
  return out;
}

std::shared_ptr<const Program> complex_program(const graph::Graph& graph, std::shared_ptr<const Program> inner) {
  return std::make_shared<ComplexProgram>(graph, std::move(inner));
}

}  // namespace weft::compiler
