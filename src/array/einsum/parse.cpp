#include "array/einsum/parse.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "base/error.h"

namespace weft::detail {
namespace {

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// Returns whether names may have several letters: there are terms in parentheses, and a space stands between two axes
/// or letters stand side by side in a term. Subscripts without parentheses are NumPy's, whose spaces mean nothing.
bool spaces_separate(const std::string& text) {
  int depth = 0;
  bool parentheses = false, apart = false, adjacent = false, space = false;
  char last = ',';
  for (char c : text) {
    if (is_space(c)) {
      space = true;
      continue;
    }
    if (c == '(') parentheses = true;
    const bool begins = is_letter(c) || c == '(' || c == '.', ends = is_letter(last) || last == ')' || last == '.';
    if (depth == 0 && space && begins && ends) apart = true;
    if (depth > 0 && !space && is_letter(c) && is_letter(last)) adjacent = true;
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    last = c;
    space = false;
  }
  return parentheses && (apart || adjacent);
}

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text), spaced_(spaces_separate(text)) {}

  EinsumText parse() {
    do result_.operands.push_back(operand());
    while (take(","));
    const bool explicit_output = take("->");
    const EinsumOperand output = explicit_output ? operand() : EinsumOperand{};
    if (peek() != '\0') refuse("unexpected '" + std::string(1, peek()) + "'");
    sort_names();
    result_.output = explicit_output ? output_labels(output) : implicit_output();
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    const std::string rest = at_ < text_.size() ? " at \"" + text_.substr(at_, 12) + "\"" : std::string();
    throw_invalid("einsum", what + rest + " in \"" + text_ + "\"");
  }
  [[noreturn]] void refuse_not_affine() const {
    refuse("an axis in parentheses is a sum of index names, of positive integers times index names, and of integers");
  }

  char peek() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(const std::string& token) {
    if (peek() == '\0' || text_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }

  // Returns the label of the name here: one letter, or where spaces separate, a letter with letters, digits and "_".
  int name() {
    const size_t begin = at_++;
    const auto continues = [](char c) { return is_letter(c) || is_digit(c) || c == '_'; };
    while (spaced_ && at_ < text_.size() && continues(text_[at_])) ++at_;
    const std::string found = text_.substr(begin, at_ - begin);
    std::vector<std::string>& names = result_.names;
    const auto at = std::find(names.begin(), names.end(), found);
    if (at != names.end()) return static_cast<int>(at - names.begin());
    names.push_back(found);
    return static_cast<int>(names.size()) - 1;
  }

  int64_t integer() {
    int64_t n = 0;
    for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) {
      n = 10 * n + (text_[at_] - '0');
      if (n > INT32_MAX) refuse("a number is too large");
    }
    return n;
  }

  // "o", "2*o", "o*2" or "3"
  void summand(EinsumTerm& term) {
    EinsumTerm::Part part;
    const bool number_first = is_digit(peek());
    if (number_first) part.factor = integer();
    if (number_first && !take("*")) {
      if (is_letter(peek())) refuse("a factor is followed by '*'");
      term.offset += part.factor;
      return;
    }
    if (!is_letter(peek())) refuse_not_affine();
    part.label = name();
    if (!number_first && take("*")) {
      if (!is_digit(peek())) refuse_not_affine();
      part.factor = integer();
    }
    if (part.factor == 0) refuse("a factor must not be 0");
    for (const EinsumTerm::Part& other : term.parts)
      if (other.label == part.label)
        refuse("index " + result_.names[static_cast<size_t>(part.label)] + " twice in one term");
    term.parts.push_back(part);
  }

  EinsumTerm affine() {
    EinsumTerm term;
    do summand(term);
    while (take("+"));
    if (peek() == '-') refuse("factors and offsets must be positive: reverse or pad the operand instead,");
    if (is_letter(peek()) || is_digit(peek())) refuse("'+' is missing");
    if (peek() != ')' && peek() != '\0') refuse_not_affine();
    if (!take(")")) refuse("')' is missing");
    if (term.parts.empty()) refuse("a term without an index: slice the operand instead,");
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
      } else if (is_letter(peek())) {
        result.terms.push_back({{{name(), 1}}, 0});
      } else {
        return result;
      }
    }
  }

  // Labels were given in the order of their names' first places; from here on they are in alphabetical order.
  void sort_names() {
    std::vector<std::string> sorted = result_.names;
    std::sort(sorted.begin(), sorted.end());
    for (const std::string& found : result_.names)
      new_label_.push_back(static_cast<int>(std::find(sorted.begin(), sorted.end(), found) - sorted.begin()));
    for (EinsumOperand& operand : result_.operands)
      for (EinsumTerm& term : operand.terms)
        for (EinsumTerm::Part& part : term.parts) part.label = new_label_[static_cast<size_t>(part.label)];
    result_.names = std::move(sorted);
  }

  std::vector<int> output_labels(const EinsumOperand& given) const {
    std::vector<int> labels;
    for (size_t k = 0; k <= given.terms.size(); ++k) {
      if (given.ellipsis == static_cast<int>(k)) labels.push_back(ellipsis_label);
      if (k == given.terms.size()) break;
      if (given.terms[k].affine()) refuse("a sum in the result");
      const int label = new_label_[static_cast<size_t>(given.terms[k].parts[0].label)];
      if (std::count(labels.begin(), labels.end(), label) > 0)
        refuse("axis " + result_.names[static_cast<size_t>(label)] + " twice in the result");
      labels.push_back(label);
    }
    return labels;
  }

  std::vector<int> implicit_output() const {
    std::map<int, int> times;
    std::vector<int> labels;
    for (const EinsumOperand& operand : result_.operands) {
      if (operand.ellipsis >= 0 && labels.empty()) labels.push_back(ellipsis_label);
      for (const EinsumTerm& term : operand.terms)
        for (const EinsumTerm::Part& part : term.parts) ++times[part.label];
    }
    for (const auto& [label, n] : times)
      if (n == 1) labels.push_back(label);
    return labels;
  }

  const std::string& text_;
  const bool spaced_;
  size_t at_ = 0;
  EinsumText result_;
  std::vector<int> new_label_;
};

}  // namespace

EinsumText parse_einsum(const std::string& subscripts) { return Parser(subscripts).parse(); }

}  // namespace weft::detail
