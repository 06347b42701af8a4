// Schedules as values: their text, what is refused, equality and hashes.
#include "weft/schedule/steps.h"

#include <doctest/doctest.h>

#include <functional>
#include <random>
#include <stdexcept>
#include <string>

#include "kernel/steps/kinds.h"

using namespace weft;
using schedule::Kind;
using schedule::parse;
using schedule::Step;
using schedule::Steps;

namespace {

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

/// Returns a step of a kind with random names and numbers.
Step random_step(std::mt19937& r) {
  const schedule::KindRow& row = schedule::kinds()[r() % schedule::kinds().size()];
  Step step{row.kind};
  int named = 0;
  const auto name = [&] { return "x" + std::to_string(r() % 100) + "_" + std::to_string(named++); };
  for (const char form : row.form) {
    if (form == 'a') step.axes.push_back(name());
    if (form == 'A')
      for (size_t k = row.least_axes + (row.most_axes > row.least_axes ? r() % 3 : 0); k > 0; --k)
        step.axes.push_back(name());
    if (form == 'n') step.numbers.push_back(row.least + static_cast<int64_t>(r() % 5000));
    if (form == 'm') step.makes.push_back(name());
    if (form == 'M')
      for (size_t k = 0; k < row.makes; ++k) step.makes.push_back(name());
    if (form == 'w') {
      std::vector<std::string> words{""};
      for (const char c : row.words)
        if (c == ' ') words.emplace_back();
        else words.back() += c;
      step.word = words[r() % words.size()];
    }
  }
  return step;
}

}  // namespace

TEST_CASE("steps are built by functions and read from text alike") {
  const Steps built = Steps()
                          .fuse({"d0", "d1"}, "rows")
                          .bind("rows", "program")
                          .split("r0", 64, {"step", "lane"})
                          .unroll("step")
                          .vectorize("lane")
                          .pad("d2", 96)
                          .tile("m", "n", 128, 256, {"mo", "no", "mi", "ni"});
  const Steps read = parse(
      "fuse({d0, d1}, rows); bind(rows, program)  # whole rows\n"
      "  split( r0,64 ,{step,lane} )\n\n unroll(step);;vectorize(lane)\npad(d2, 96); tile({m, n}, 128, 256, {mo, no, "
      "mi, "
      "ni})");
  CHECK(built == read);
  CHECK(schedule::hash(built) == schedule::hash(read));
  CHECK(std::hash<Steps>()(built) != std::hash<Steps>()(built.guard()));
  CHECK(
      to_string(built) ==
      "fuse({d0, d1}, rows); bind(rows, program); split(r0, 64, {step, lane}); unroll(step); vectorize(lane); pad(d2, "
      "96); tile({m, n}, 128, 256, {mo, no, mi, ni})");
  CHECK(parse("").empty());
  CHECK(parse("inline()") == Steps().inlined());
  CHECK(parse("fuse({}, one)") == Steps().fuse({}, "one"));
  CHECK(built.then(parse("guard()")) == built.guard());
}

TEST_CASE("any list of steps is read back from its text") {
  std::mt19937 r(7);
  for (int k = 0; k < 2000; ++k) {
    std::vector<Step> list;
    for (size_t n = r() % 6; n > 0; --n) list.push_back(random_step(r));
    const Steps steps(list);
    CAPTURE(to_string(steps));
    CHECK(parse(to_string(steps)) == steps);
    // A text that is changed anywhere is read, or refused with a position; nothing else.
    std::string text = to_string(steps);
    if (text.empty()) continue;
    text[r() % text.size()] = "(){};,#\n x9"[r() % 11];
    const std::string why = error_of([&] { parse(text); });
    CHECK((why.empty() || why.starts_with("[schedule] line ")));
  }
}

TEST_CASE("a text that is no list of steps is refused where it is wrong") {
  const auto why = [](const char* text) { return error_of([&] { parse(text); }); };
  CHECK(why("splat(d0, 4, {a, b})")
            .starts_with("[schedule] line 1, column 1: there is no step 'splat': the steps are "
                         "split, fuse, "));
  CHECK(why("guard(); split(d0 4, {a, b})") == "[schedule] line 1, column 19: expected ',', got '4,'");
  CHECK(why("split(d0, four, {a, b})") == "[schedule] line 1, column 11: expected a number, got 'four,'");
  CHECK(why("guard()\nsplit(d0, 4, {a, b)") == "[schedule] line 2, column 19: expected ',' or '}', got ')'");
  CHECK(why("split(d0, 4, {a})") == "[schedule] line 1, column 1: split makes 2 axes, got 1");
  CHECK(why("split(d0, 0, {a, b})") == "[schedule] line 1, column 1: split takes numbers from 1 on, got 0");
  CHECK(why("split_reduce(r0, 1)") == "[schedule] line 1, column 1: split_reduce takes numbers from 2 on, got 1");
  CHECK(why("split(d0, 4, {a, a})") == "[schedule] line 1, column 1: split names a twice");
  CHECK(why("bind(d0, core)") ==
        "[schedule] line 1, column 1: bind knows no 'core': give one of program cluster warp serial lane");
  CHECK(why("guard() guard()") == "[schedule] line 1, column 9: expected ';' or the end of the line, got 'guard()'");
  CHECK(why("guard(") == "[schedule] line 1, column 7: expected ')', got the end of the text");
  CHECK(why("guard(\n)") == "[schedule] line 1, column 7: expected ')', got the end of the line");
  CHECK(why("reorder({d0})") == "[schedule] line 1, column 1: reorder takes 2 or more names of axes, got 1");
  CHECK(why("unroll(0d)") == "[schedule] line 1, column 8: expected a name, got '0d)'");
}

TEST_CASE("the functions refuse what the text refuses") {
  CHECK(error_of([] {
          Steps().split("d 0", 4, {"a", "b"});
        }) == "[schedule] split takes names of letters, digits and '_', got 'd 0'");
  CHECK(error_of([] { Steps().bind("d0", "thread"); }) ==
        "[schedule] bind knows no 'thread': give one of program cluster warp serial lane");
  CHECK(error_of([] {
          Steps().tile("m", "n", 16, -1, {"a", "b", "c", "d"});
        }) == "[schedule] tile takes numbers from 1 on, got -1");
  CHECK(error_of([] { Steps({Step{static_cast<Kind>(200)}}); }) == "[schedule] a step has no kind of the list");
  CHECK(error_of([] { Steps({Step{Kind::guard, {"d0"}}}); }) == "[schedule] guard takes 0 names of axes, got 1");
}
