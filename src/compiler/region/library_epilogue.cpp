#include "compiler/region/library_epilogue.h"

#include <algorithm>
#include <array>
#include <utility>

namespace weft::compiler {

using kernel::Activation;
using kernel::DotDesc;
using kernel::EpilogueFunction;
using kernel::EpilogueOperand;
using kernel::EpilogueStep;
using kernel::PreActivation;
using kernel::ScalarOp;
using Kind = EpilogueStep::Kind;

namespace {

/// The functions of libraries that are regions of the graph, and those whose derivative they multiply with.
constexpr std::array<std::pair<std::string_view, Activation>, 2> functions{
    {{"gelu", Activation::gelu}, {"gelu_tanh", Activation::gelu_tanh}}};
constexpr std::array<std::pair<std::string_view, Activation>, 1> slopes{{{"gelu_tanh_slope", Activation::gelu_tanh}}};

template <class Table>
Activation named(const Table& table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.first == name; });
  return found == table.end() ? Activation::none : found->second;
}

/// Walks an epilogue from the matmul's result to C, and takes each step that the descriptor has a field for.
class Matcher {
 public:
  explicit Matcher(DotPlan& plan) : plan_(plan), e_(plan.epilogue), desc_(plan.desc), users_(e_.steps.size()) {
    for (size_t k = 0; k < e_.steps.size(); ++k)
      for (const int input : e_.steps[k].inputs)
        if (std::vector<int>& list = users_[static_cast<size_t>(input)];
            list.empty() || list.back() != static_cast<int>(k))
          list.push_back(static_cast<int>(k));
  }

  void run() {
    scales();
    casts();
    bias();
    casts();
    pre_activation();
    activation();
    casts();
    residual();
    casts();
    if (at_ != e_.result || used_ != e_.operands.size() || (!e_.stored.empty() && argument_ < 0)) return;
    if (bias_ >= 0 && operand(bias_).dtype != desc_.c) return;
    plan_.asked = std::move(desc_);
    plan_.asked_operands = {plan_.a, plan_.b};
    for (const int x : {bias_, residual_})
      if (x >= 0) plan_.asked_operands.push_back(plan_.operands[static_cast<size_t>(x)]);
    if (plan_.sum >= 0) plan_.asked_operands.push_back({plan_.sum, 0});
    if (argument_ >= 0) plan_.asked_operands.push_back({plan_.stored[static_cast<size_t>(argument_)], 0});
    if (slope_argument_ >= 0) plan_.asked_operands.push_back(plan_.operands[static_cast<size_t>(slope_argument_)]);
    for (const int x : scales_) plan_.asked_operands.push_back(plan_.operands[static_cast<size_t>(x)]);
  }

 private:
  const EpilogueStep& step(int k) const { return e_.steps[static_cast<size_t>(k)]; }
  const EpilogueOperand& operand(int k) const { return e_.operands[static_cast<size_t>(k)]; }
  bool is_stored(int k) const { return std::find(e_.stored.begin(), e_.stored.end(), k) != e_.stored.end(); }

  /// Returns the only step that reads the value so far, if that is not stored as it is; else -1.
  int next() const {
    const std::vector<int>& readers = users_[static_cast<size_t>(at_)];
    return readers.size() == 1 && !is_stored(at_) && at_ != e_.result ? readers[0] : -1;
  }

  void take(int to, size_t operands = 0) { at_ = to, used_ += operands; }

  /// Returns the other argument of a scalar step of two.
  int other(int k) const { return step(k).inputs[0] == at_ ? step(k).inputs[1] : step(k).inputs[0]; }

  /// Returns the operand that a step of two arguments takes besides the value so far; -1 if that is no operand.
  int operand_of(int k, ScalarOp op) const {
    if (k < 0 || step(k).kind != Kind::scalar || step(k).op != op || step(k).inputs[0] == step(k).inputs[1]) return -1;
    const EpilogueStep& second = step(other(k));
    return second.kind == Kind::operand && users_[static_cast<size_t>(other(k))].size() == 1 ? second.operand : -1;
  }

  bool is_number(int x) const {
    const EpilogueOperand& o = operand(x);
    return o.m == 0 && o.n == 0 && std::all_of(o.batch.begin(), o.batch.end(), [](int64_t s) { return s == 0; });
  }
  bool is_row(int x) const {
    const EpilogueOperand& o = operand(x);
    return o.m == 0 && o.n == 1 && std::all_of(o.batch.begin(), o.batch.end(), [](int64_t s) { return s == 0; });
  }
  /// Returns whether an operand lies like C.
  bool is_matrix(int x) const {
    const EpilogueOperand& o = operand(x);
    const bool rows = o.m == desc_.c_m || desc_.m == 1, columns = o.n == desc_.c_n || desc_.n == 1;
    return rows && columns && (desc_.m > 1 || desc_.n > 1) && o.batch == desc_.c_batch && o.dtype == desc_.c &&
           plan_.operands[static_cast<size_t>(x)].offset == 0;
  }

  /// Skips conversions between floats: libraries compute in float32 and round once, at the end. A conversion that a
  /// function begins with is a part of it.
  void casts() {
    const auto converts = [&](int k) {
      return k >= 0 && step(k).kind == Kind::cast && is_float(step(k).dtype) && is_float(step(at_).dtype) &&
             step(at_).dtype != float64;
    };
    for (int k = next(); converts(k) && !function_from(at_); k = next()) take(k);
  }

  void scales() {
    if (!is_float8(desc_.a)) return;
    for (int k = next(); scales_.size() < 2; k = next()) {
      const int x = operand_of(k, ScalarOp::mul);
      if (x < 0 || !is_number(x) || operand(x).dtype != float32) break;
      scales_.push_back(x);
      take(k, 1);
    }
    desc_.scales = static_cast<int64_t>(scales_.size());
  }

  void bias() {
    const int k = next(), x = operand_of(k, ScalarOp::add);
    if (x < 0 || !is_row(x) || desc_.n <= 1) return;
    bias_ = x;
    desc_.bias = true;
    take(k, 1);
  }

  /// The value so far is stored, and an activation of it is C.
  void pre_activation() {
    if (e_.stored.size() != 1 || e_.stored[0] != at_ || step(at_).dtype != desc_.c) return;
    if (function_from(at_) == nullptr) return;
    argument_ = 0;
    desc_.pre_activation = PreActivation::stored;
  }

  /// Returns the function of the value so far that all its readers are part of; null if there is none.
  const EpilogueFunction* function_from(int input) const {
    for (const EpilogueFunction& f : e_.functions)
      if (f.input == input && named(functions, f.name) != Activation::none && encloses(f)) return &f;
    return nullptr;
  }

  /// Returns whether nothing outside the function reads what it computes on the way to its result.
  bool encloses(const EpilogueFunction& f) const {
    std::vector<int> within{f.result}, pending{f.result};
    while (!pending.empty()) {
      const int k = pending.back();
      pending.pop_back();
      for (const int input : step(k).inputs) {
        if (input == f.input || std::find(within.begin(), within.end(), input) != within.end()) continue;
        if (step(input).kind == Kind::operand || step(input).kind == Kind::dot) return false;
        within.push_back(input), pending.push_back(input);
      }
    }
    const auto inside = [&](int k) { return std::find(within.begin(), within.end(), k) != within.end(); };
    const auto read_inside = [&](int k) {
      const std::vector<int>& readers = users_[static_cast<size_t>(k)];
      return std::all_of(readers.begin(), readers.end(), inside);
    };
    return read_inside(f.input) && std::all_of(within.begin(), within.end(), [&](int k) {
             return k == f.result || step(k).kind == Kind::constant ||
                    (read_inside(k) && !is_stored(k) && k != e_.result);
           });
  }

  void activation() {
    if (const EpilogueFunction* f = function_from(at_); f && (argument_ >= 0 || !is_stored(at_)) && at_ != e_.result) {
      desc_.activation = named(functions, f->name);
      at_ = f->result;
      return;
    }
    if (slope()) return;
    const int k = next();
    if (k < 0 || step(k).kind != Kind::scalar) return;
    if (step(k).op == ScalarOp::sigmoid) desc_.activation = Activation::sigmoid;
    else if (step(k).op == ScalarOp::tanh) desc_.activation = Activation::tanh;
    else if (step(k).op == ScalarOp::max && step(other(k)).kind == Kind::constant && step(other(k)).number.real() == 0)
      desc_.activation = Activation::relu;
    else return;
    take(k);
  }

  /// The value so far times the derivative of an activation at an operand: the backward pass.
  bool slope() {
    const int k = next();
    if (k < 0 || step(k).kind != Kind::scalar || step(k).op != ScalarOp::mul) return false;
    for (const EpilogueFunction& f : e_.functions) {
      if (f.result != other(k) || named(slopes, f.name) == Activation::none || !encloses(f)) continue;
      if (users_[static_cast<size_t>(f.result)].size() != 1) continue;
      int input = f.input;
      while (step(input).kind == Kind::cast && users_[static_cast<size_t>(step(input).inputs[0])].size() == 1)
        input = step(input).inputs[0];
      if (step(input).kind != Kind::operand || !is_matrix(step(input).operand)) continue;
      slope_argument_ = step(input).operand;
      desc_.activation = named(slopes, f.name);
      desc_.pre_activation = PreActivation::derivative;
      take(k, 1);
      return true;
    }
    return false;
  }

  void residual() {
    const int k = next(), x = operand_of(k, ScalarOp::add);
    if (x < 0 || !is_matrix(x)) return;
    residual_ = x;
    desc_.residual = true;
    take(k, 1);
  }

  DotPlan& plan_;
  const kernel::Epilogue& e_;
  DotDesc desc_;
  std::vector<std::vector<int>> users_;  // by step
  int at_ = 0;                           // the value so far
  size_t used_ = 0;                      // operands that are taken
  int bias_ = -1, residual_ = -1, slope_argument_ = -1, argument_ = -1;
  std::vector<int> scales_;
};

}  // namespace

void ask_library(DotPlan& plan) { Matcher(plan).run(); }

bool is_library_slope(std::string_view region) { return named(slopes, region) != Activation::none; }

}  // namespace weft::compiler
