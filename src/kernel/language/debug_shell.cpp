// Commands for the debugger, a line each, as those of gdb are.
#include <algorithm>
#include <fstream>
#include <istream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <sstream>

#include <fmt/format.h>

#include "base/error.h"
#include "weft/kernel/debug.h"

namespace weft::k {

namespace {

constexpr std::string_view help =
    "break [FILE:]LINE [if WHAT OP NUMBER]   stop at a line; OP is == != < <= > >=\n"
    "break program N                         stop where program N begins\n"
    "break value NAME                        stop behind each value of a name\n"
    "delete N                                remove a breakpoint\n"
    "step, next, instruction, finish         to the next line, past loops, one instruction, out of the loop\n"
    "continue, quit                          to the next breakpoint, end the run\n"
    "print WHAT                              sum, sum[0:4, 2], p0[1], %7\n"
    "backtrace, names, list                  loops around this line, what has a name, the lines around it\n"
    "An empty line repeats the last command; first letters do.\n";

/// Splits a line into words.
std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

/// Reads the lines of a source file; none where it is not there.
std::vector<std::string> lines_of(const char* path) {
  std::ifstream in(path);
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

bool compares(double a, const std::string& op, double b) {
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  if (op == ">") return a > b;
  if (op == ">=") return a >= b;
  throw_invalid("debugger", "\"" + op + "\" compares nothing: write ==, !=, <, <=, > or >=");
}

double real_number(const std::string& text) {
  std::istringstream in(text);
  double out = 0;
  if (!(in >> out) || !in.eof()) throw_invalid("debugger", "\"" + text + "\" is no number");
  return out;
}

int integer_of(const std::string& text) { return static_cast<int>(real_number(text)); }

/// Reads what follows "break".
Breakpoint breakpoint_of(const std::vector<std::string>& words) {
  Breakpoint out;
  if (words.size() < 2) throw_invalid("debugger", "break needs a line: break norm.cpp:31");
  if (words[1] == "program" && words.size() == 3) {
    out.program = integer_of(words[2]);
    return out;
  }
  if (words[1] == "value" && words.size() == 3) {
    out.value = words[2];
    return out;
  }
  const size_t colon = words[1].rfind(':');
  if (colon != std::string::npos) out.file = words[1].substr(0, colon);
  out.line = integer_of(colon == std::string::npos ? words[1] : words[1].substr(colon + 1));
  if (words.size() == 2) return out;
  if (words.size() < 6 || words[2] != "if") throw_invalid("debugger", "a condition is: if WHAT OP NUMBER");
  std::string what;
  for (size_t k = 3; k + 2 < words.size(); ++k) what += words[k];
  const std::string op = words[words.size() - 2];
  const double number = real_number(words.back());
  compares(0, op, number);
  out.when = [=](const Stop& stop) {
    try {
      return compares(stop.number(what), op, number);
    } catch (const std::invalid_argument&) {
      return false;  // it is not computed yet
    }
  };
  return out;
}

class Shell {
 public:
  Shell(std::istream& in, std::ostream& out) : in_(in), out_(out) {}

  Go ask(Stop& stop) {
    describe(stop);
    for (std::string line; out_ << "(debug) " << std::flush, std::getline(in_, line);) {
      if (words_of(line).empty()) line = last_;
      last_ = line;
      try {
        if (const auto go = next_of(words_of(line))) return *go;
        answer(stop, line);
      } catch (const std::invalid_argument& e) {
        out_ << e.what() << "\n";
      }
    }
    out_ << "\n";
    stop.breakpoints().clear();
    return Go::on;
  }

 private:
  /// Returns what comes next, where a command says that.
  static std::optional<Go> next_of(const std::vector<std::string>& words) {
    static const std::map<std::string, Go> known{{"step", Go::line},
                                                 {"s", Go::line},
                                                 {"next", Go::over},
                                                 {"n", Go::over},
                                                 {"instruction", Go::instruction},
                                                 {"i", Go::instruction},
                                                 {"finish", Go::out},
                                                 {"f", Go::out},
                                                 {"continue", Go::on},
                                                 {"c", Go::on},
                                                 {"quit", Go::quit},
                                                 {"q", Go::quit}};
    const auto found = words.empty() ? known.end() : known.find(words[0]);
    return found == known.end() ? std::nullopt : std::optional(found->second);
  }

  void answer(Stop& stop, const std::string& line) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) return;
    const std::string& command = words[0];
    const auto is = [&](const char* name) { return command == name || (command.size() == 1 && command[0] == *name); };
    if (command == "backtrace" || command == "bt") list(stop.backtrace());
    else if (is("break")) {
      stop.breakpoints().push_back(breakpoint_of(words));
      out_ << "breakpoint " << stop.breakpoints().size() << "\n";
    } else if (is("delete")) {
      remove(stop, words);
    } else if (is("print")) {
      out_ << stop.print(line.substr(std::min(line.find(command) + command.size(), line.size()))) << "\n";
    } else if (command == "names") {
      list(stop.names());
    } else if (is("list")) {
      source(stop, 4);
    } else {
      out_ << (is("help") ? "" : "there is no command " + command + ":\n") << help;
    }
  }

  void remove(Stop& stop, const std::vector<std::string>& words) {
    const auto n = words.size() == 2 ? static_cast<size_t>(integer_of(words[1])) : 0;
    if (n < 1 || n > stop.breakpoints().size())
      throw_invalid("debugger", fmt::format("there are {} breakpoints: delete one of them", stop.breakpoints().size()));
    stop.breakpoints().erase(stop.breakpoints().begin() + static_cast<std::ptrdiff_t>(n) - 1);
  }

  void describe(Stop& stop) {
    out_ << stop.reason() << ": program " << stop.program();
    if (stop.role() >= 0) out_ << ", role " << stop.role();
    out_ << " at " << stop.at().file << ":" << stop.at().number << "\n";
    if (!source(stop, 0)) out_ << "    " << stop.instruction() << "\n";
  }

  /// Prints the lines up to `around` from this one. False: the file is not there.
  bool source(Stop& stop, int around) {
    const std::vector<std::string> lines = lines_of(stop.at().file);
    const int at = stop.at().number, n = static_cast<int>(lines.size());
    if (at < 1 || at > n) return false;
    for (int k = std::max(at - around, 1); k <= std::min(at + around, n); ++k)
      out_ << fmt::format("{}{:5}  {}\n", k == at ? '>' : ' ', k, lines[static_cast<size_t>(k - 1)]);
    return true;
  }

  void list(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) out_ << line << "\n";
  }

  std::istream& in_;
  std::ostream& out_;
  std::string last_;
};

}  // namespace

std::function<Go(Stop&)> debug_shell(std::istream& in, std::ostream& out) {
  return [shell = std::make_shared<Shell>(in, out)](Stop& stop) { return shell->ask(stop); };
}

}  // namespace weft::k
