#include "array/routines/einsum_parse.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>

#include "base/error.h"

namespace weft::detail {
namespace {

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {
    for (char c : text)
      if (!std::isspace(static_cast<unsigned char>(c))) s_ += c;
  }

  EinsumText parse() {
    EinsumText result;
    do result.operands.push_back(operand());
    while (take(","));
    if (take("->")) result.output = output(operand());
    else result.output = implicit_output(result.operands);
    if (at_ != s_.size()) refuse("unexpected '" + s_.substr(at_, 1) + "'");
    return result;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { throw_invalid("einsum", what + " in \"" + text_ + "\""); }
  char peek() const { return at_ < s_.size() ? s_[at_] : '\0'; }
  bool is_letter() const { return std::isalpha(static_cast<unsigned char>(peek())) != 0; }
  bool take(const std::string& token) {
    if (s_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }
  int letter() {
    if (!is_letter()) refuse("a letter is missing at '" + s_.substr(at_, 8) + "'");
    return s_[at_++];
  }

  // "o", "2*o"
  void part(EinsumTerm& term, size_t which) {
    if (std::isdigit(static_cast<unsigned char>(peek())) != 0) {
      int64_t n = 0;
      while (std::isdigit(static_cast<unsigned char>(peek())) != 0) {
        n = 10 * n + (s_[at_++] - '0');
        if (n > INT32_MAX) refuse("a factor is too large");
      }
      if (n == 0) refuse("a factor must not be 0");
      if (!take("*")) refuse("a factor is followed by '*'");
      term.scale[which] = n;
    }
    term.label[which] = letter();
  }

  EinsumTerm affine() {
    EinsumTerm term;
    part(term, 0);
    if (take("+")) part(term, 1);
    if (!take(")")) refuse("')' is missing");
    if (term.label[0] == term.label[1]) refuse("one letter twice in an affine term");
    return term;
  }

  EinsumOperand operand() {
    EinsumOperand result;
    for (;;) {
      if (take("...")) {
        if (result.ellipsis >= 0) refuse("two ellipses in one operand");
        result.ellipsis = static_cast<int>(result.terms.size());
      } else if (take("(")) {
        result.terms.push_back(affine());
      } else if (is_letter()) {
        result.terms.push_back({{letter(), 0}, {1, 1}});
      } else {
        return result;
      }
    }
  }

  std::vector<int> output(const EinsumOperand& given) const {
    std::vector<int> labels;
    for (size_t k = 0; k <= given.terms.size(); ++k) {
      if (given.ellipsis == static_cast<int>(k)) labels.push_back(ellipsis_label);
      if (k == given.terms.size()) break;
      if (given.terms[k].affine()) refuse("an affine term in the result");
      if (std::count(labels.begin(), labels.end(), given.terms[k].label[0]) > 0) refuse("a letter twice in the result");
      labels.push_back(given.terms[k].label[0]);
    }
    return labels;
  }

  static std::vector<int> implicit_output(const std::vector<EinsumOperand>& operands) {
    std::map<int, int> times;
    std::vector<int> labels;
    for (const EinsumOperand& operand : operands) {
      if (operand.ellipsis >= 0 && labels.empty()) labels.push_back(ellipsis_label);
      for (const EinsumTerm& term : operand.terms)
        for (int label : term.label)
          if (label != 0) ++times[label];
    }
    for (const auto& [label, n] : times)
      if (n == 1) labels.push_back(label);
    return labels;
  }

  const std::string& text_;
  std::string s_;
  size_t at_ = 0;
};

}  // namespace

EinsumText parse_einsum(const std::string& subscripts) { return Parser(subscripts).parse(); }

}  // namespace weft::detail
