// Lists of steps as text, and back.
#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

#include "base/error.h"
#include "kernel/steps/kinds.h"

namespace weft::schedule {

namespace {

std::string braced(const std::vector<std::string>& names) { return fmt::format("{{{}}}", fmt::join(names, ", ")); }

/// Reads a text from left to right, and says where it is wrong.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Steps run() {
    std::vector<Step> list;
    for (skip(true); at_ < text_.size(); skip(true)) {
      list.push_back(step());
      skip(false);
      if (at_ < text_.size() && text_[at_] != ';' && text_[at_] != '\n') expected("';' or the end of the line");
    }
    return Steps(std::move(list));
  }

 private:
  /// Skips blanks and comments, and with `between` what separates steps.
  void skip(bool between) {
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '#')
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      else if (text_[at_] == ';' || text_[at_] == '\n') {
        if (!between) return;
      } else if (text_[at_] != ' ' && text_[at_] != '\t' && text_[at_] != '\r') {
        return;
      }
    }
  }

  [[noreturn]] void fail(size_t at, const std::string& what) const {
    const std::string_view before = text_.substr(0, at);
    const auto line = 1 + std::ranges::count(before, '\n');
    const size_t column = at - (before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1) + 1;
    throw_invalid("schedule", fmt::format("line {}, column {}: {}", line, column, what));
  }

  [[noreturn]] void expected(const std::string& what) const {
    size_t end = at_;
    while (end < text_.size() && end < at_ + 16 && text_[end] != '\n' && text_[end] != ' ') ++end;
    fail(at_, fmt::format("expected {}, got {}", what,
                          end == at_ ? std::string(at_ < text_.size() ? "the end of the line" : "the end of the text")
                                     : fmt::format("'{}'", text_.substr(at_, end - at_))));
  }

  /// Takes a sign, on this line.
  bool take(char sign) {
    skip(false);
    if (at_ >= text_.size() || text_[at_] != sign) return false;
    ++at_;
    return true;
  }
  void want(char sign) {
    if (!take(sign)) expected(fmt::format("'{}'", sign));
  }

  std::string word(const std::string& what) {
    skip(false);
    size_t end = at_;
    while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) != 0 || text_[end] == '_'))
      ++end;
    const std::string_view found = text_.substr(at_, end - at_);
    if (!is_name(found)) expected(what);
    at_ = end;
    return std::string(found);
  }

  int64_t number() {
    skip(false);
    int64_t n = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), n);
    if (error != std::errc()) expected("a number");
    at_ = static_cast<size_t>(end - text_.data());
    return n;
  }

  std::vector<std::string> list(const std::string& what) {
    std::vector<std::string> out;
    want('{');
    if (take('}')) return out;
    do out.push_back(word(what));
    while (take(','));
    if (!take('}')) expected("',' or '}'");
    return out;
  }

  Step step() {
    const size_t begin = at_;
    const std::string name = word("the name of a step");
    const KindRow* const row = find_kind(name);
    if (!row) {
      std::string all;
      for (const KindRow& r : kinds()) all += fmt::format("{}{}", all.empty() ? "" : ", ", r.name);
      fail(begin, fmt::format("there is no step '{}': the steps are {}", name, all));
    }
    Step out{row->kind};
    want('(');
    for (size_t k = 0; k < row->form.size(); ++k) {
      if (k > 0) want(',');
      argument(row->form[k], out);
    }
    want(')');
    if (const std::string fault = fault_of(out); !fault.empty()) fail(begin, fault);
    return out;
  }

  void argument(char form, Step& out) {
    switch (form) {
      case 'a': out.axes.push_back(word("a name")); break;
      case 'A': out.axes = list("the name of an axis"); break;
      case 'n': out.numbers.push_back(number()); break;
      case 'w': out.word = word("a word"); break;
      case 'm': out.makes.push_back(word("the name of a new axis")); break;
      default: out.makes = list("the name of a new axis"); break;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string to_string(const Step& step) {
  const KindRow& row = row_of(step.kind);
  std::vector<std::string> arguments;
  size_t next_number = 0;
  for (const char form : row.form) switch (form) {
      case 'a': arguments.push_back(step.axes[0]); break;
      case 'A': arguments.push_back(braced(step.axes)); break;
      case 'n': arguments.push_back(std::to_string(step.numbers[next_number++])); break;
      case 'w': arguments.push_back(step.word); break;
      case 'm': arguments.push_back(step.makes[0]); break;
      default: arguments.push_back(braced(step.makes)); break;
    }
  return fmt::format("{}({})", row.name, fmt::join(arguments, ", "));
}

std::string to_string(const Steps& steps) {
  std::string out;
  for (const Step& step : steps.list()) out += (out.empty() ? "" : "; ") + to_string(step);
  return out;
}

Steps parse(std::string_view text) { return Reader(text).run(); }

}  // namespace weft::schedule
