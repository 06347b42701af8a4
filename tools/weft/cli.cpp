// The command line: from the tables of the commands to CLI11 and back. Values are read by options.cpp; CLI11 does
// syntax and help.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <new>
#include <sstream>

#include "command.h"

namespace weft::tool {

namespace {

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

std::string flag_names(const Option& o) { return o.negatable ? "--" + o.name + ",!--no-" + o.name : "--" + o.name; }

void declare(CLI::App& app, OptionSet& set, const Option& o) {
  const std::string name = o.name;
  if (o.is_switch()) {
    app.add_flag_callback(
           flag_names(o), [] {}, o.help)
        ->default_str("")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    return;
  }
  const auto take = [&set, name](const std::string& text) { set.set_text(name, text); };
  CLI::Option* option = app.add_option_function<std::string>(o.positional ? o.name : "--" + o.name, take, o.help);
  option->type_name(o.value_name)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  const std::string shown = o.shown_default.empty() ? o.text() : o.shown_default;
  if (!o.required && !shown.empty()) option->default_str(shown);
}

/// Formats help as CLI11, without the value that it shows after a switch's negation: "--no-bias{false}".
class Help : public CLI::Formatter {
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, positional);
    if (const size_t at = name.find('{'); at != std::string::npos) name.erase(at);
    return name;
  }
};

/// Switches are read after parsing: CLI11 keeps "true" or "false" for them.
void take_switches(CLI::App& app, OptionSet& set) {
  for (const auto& o : set.all()) {
    if (!o.is_switch()) continue;
    const CLI::Option* option = app.get_option("--" + o.name);
    if (option->count() > 0) set.set_text(o.name, option->results().back());
  }
}

/// Throws for what CLI11 could not parse: an option that does not exist, or a superfluous word.
[[noreturn]] void refuse_extra(const std::vector<std::string>& extras, const Command& command) {
  for (const auto& extra : extras) {
    if (extra.size() < 2 || extra[0] != '-') continue;
    const std::string name = extra.substr(extra.find_first_not_of('-'), extra.find('=') - extra.find_first_not_of('-'));
    std::vector<std::string> known = command.options.names();
    known.push_back("help");
    std::string near = nearest(name, known);
    if (near.empty() && name.starts_with("no-")) near = nearest(name.substr(3), known);
    throw UsageError("unknown option --" + name + " of weft " + command.name +
                     (near.empty() ? "" : "; did you mean --" + near + "?"));
  }
  throw UsageError("'" + extras.front() + "' is not understood here: weft " + command.name + " takes no further words");
}

void check_required(const Command& command) {
  for (const auto& o : command.options.all())
    if (o.required && !o.given) throw UsageError("weft " + command.name + " needs " + o.shown() + ": " + o.help);
}

/// Builds the CLI11 application with a node for each word of each command's name.
class Parser {
 public:
  explicit Parser(std::vector<Command>& commands) : commands_(commands) {
    app_.name("weft");
    app_.set_version_flag("--version", "weft " WEFT_VERSION);
    app_.allow_extras();
    app_.formatter(std::make_shared<Help>());
    for (auto& command : commands_) enter(command);
  }

  int run(int argc, const char* const* argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success& done) {  // --help and --version
      return app_.exit(done);
    } catch (const CLI::ParseError& e) {
      throw UsageError(explained(e));
    }
    for (size_t i = 0; i < commands_.size(); ++i) {
      if (!nodes_[i]->parsed()) continue;
      if (const auto extras = nodes_[i]->remaining(); !extras.empty()) refuse_extra(extras, commands_[i]);
      take_switches(*nodes_[i], commands_[i].options);
      check_required(commands_[i]);
      return commands_[i].run(commands_[i].options);
    }
    return without_command();
  }

 private:
  void enter(Command& command) {
    CLI::App* at = &app_;
    std::string path;
    for (const auto& word : words(command.name)) {
      path += word + " ";
      auto [it, is_new] = groups_.try_emplace(path, nullptr);
      if (is_new) it->second = at->add_subcommand(word, "");
      at = it->second;
      at->allow_extras();
    }
    at->description(command.summary);
    if (!command.example.empty()) at->footer("Example:\n  " + command.example);
    for (const auto& o : command.options.all()) declare(*at, command.options, o);
    for (CLI::App* group = at->get_parent(); group && group->get_parent(); group = group->get_parent())
      if (group->get_description().empty())
        group->description(group->get_name() == "kernel" ? "Looks into kernels" : "Trains a model");
    nodes_.push_back(at);
  }

  /// Reports an incomplete command with the commands there are, and the one that was probably meant.
  int without_command() const {
    const CLI::App* at = &app_;
    std::string path;
    while (!at->get_subcommands().empty()) at = at->get_subcommands().front(), path += at->get_name() + " ";
    std::vector<std::string> known;
    for (const CLI::App* sub : at->get_subcommands([](const CLI::App*) { return true; }))
      known.push_back(sub->get_name());
    const auto extras = at->remaining();
    if (extras.empty() && at == &app_) {
      std::fputs(app_.help().c_str(), stderr);
      return 2;
    }
    std::string list;
    for (const auto& name : known) list += (list.empty() ? "" : ", ") + name;
    if (extras.empty()) throw UsageError("weft " + path + "needs one of: " + list);
    if (extras.front().starts_with("-"))
      throw UsageError("weft " + path + "has no option " + extras.front() +
                       " before its command, which is one of: " + list);
    const std::string near = nearest(extras.front(), known);
    throw UsageError("there is no '" + path + extras.front() + "'" +
                     (near.empty() ? "; known are: " + list : "; did you mean weft " + path + near + "?"));
  }

  static std::string explained(const CLI::ParseError& e) {
    const std::string text = e.what(), name = text.substr(0, text.find(':'));
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&e))
      return name.starts_with("-") ? name + " needs a value after it" : text;
    return text;
  }

  std::vector<Command>& commands_;
  CLI::App app_{"Weft trains and runs neural networks: one engine, one program."};
  std::vector<CLI::App*> nodes_;             // one for each command
  std::map<std::string, CLI::App*> groups_;  // by the words before it: "train ", "train gpt "
};

}  // namespace

int run_command_line(int argc, const char* const* argv, std::vector<Command> commands) {
  try {
    return Parser(commands).run(argc, argv);
  } catch (const UsageError& e) {
    std::fprintf(stderr, "weft: %s\n(--help after the command lists its options)\n", e.what());
    return 2;
  } catch (const std::bad_alloc&) {
    std::fputs("weft: there is not enough memory for this; a smaller batch, context or width needs less\n", stderr);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "weft: %s\n", e.what());
  }
  return 1;
}

}  // namespace weft::tool
