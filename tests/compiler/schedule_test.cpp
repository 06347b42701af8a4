// Schedules as data: their text, which of them are legal, and that every legal one computes the same.
#include "compiler/schedule/schedule.h"

#include <set>

#include "compiler/fresh_tuner.h"
#include "compiler/schedule/rows.h"
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/regions/composites.h"
#include "thinning.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

/// A group of rows of 300 elements, `count` of them: axis 0 are the rows, axis 1 is reduced.
Group rows(int64_t count) {
  Group group;
  group.domain.push_back({group.cx->variable("i0", 0, count - 1), count, false});
  group.domain.push_back({group.cx->variable("i1", 0, 299), 300, true});
  return group;
}

/// Reads a schedule and completes it for the group.
Schedule completed(const char* text, const Group& group) {
  std::optional<Schedule> read = parse_schedule(text);
  REQUIRE_MESSAGE(read, text);
  REQUIRE(set_extents(*read, group));
  return *read;
}

}  // namespace

TEST_CASE("a schedule is read from its own text, and from no other") {
  const Group group = rows(64);
  for (const char* text :
       {"row;programs=0:grid64;lanes=1:cluster1,serial5,lanes64",
        "row;programs=0:grid64;lanes=1:cluster1,serial2,unroll4,lanes64",
        "row;programs=0:unroll2,grid32;lanes=1:lanes512", "map;lanes=0.1:grid8,serial4,lanes1024;any_length",
        "map;lanes=:grid1,serial1,lanes1;guarded_tiles", "column;lanes=0:grid2,serial1,lanes32;loop=1:warps4,serial75",
        "map;programs=1:grid4;lanes=0:lanes8;cut=2:unroll3", "product",
        "product;programs=0:grid2;rows=1:grid8,lanes64;lanes=2:grid12,lanes128;loop=3:serial6,lanes64;stages=4;"
        "raster=2;specialize=2;persistent=1;warps=8;registers=128;wgmma",
        "attention;rows=0:grid4,lanes64;loop=1:serial8,lanes32"})
    CHECK(to_string(parse_schedule(text).value()) == text);
  for (const char* text :
       {"", "rows", "row;", "row;lanes", "row;lanes=1", "row;lanes=1:lanes", "row;lanes=1:64", "row;lanes=x:lanes64",
        "row;lanes=1:lanes64,", "row;lanes=1.:lanes64", "row;lanes=1:lanes-4", "row;lanes=1:lanes64;programs=0:grid1",
        "map;guarded_tiles;any_length", "map;lanes=99999999999999999999:lanes1", "map;lanes=0:lanes1 "})
    CHECK_FALSE(parse_schedule(text));
  const Schedule whole = completed("row;programs=0:unroll2,grid32;lanes=1:cluster2,serial3,lanes64", group);
  CHECK(whole.programs.extent == 64);
  CHECK(whole.programs.copies_apart() == 2);
  CHECK(whole.programs.share() == 32);
  CHECK(whole.lanes.extent == 300);
  CHECK(whole.tile() == 64);
  CHECK(whole.sharers() == 2);
}

TEST_CASE("a schedule that leaves elements out, or that no kernel has a form for, is illegal") {
  const Group group = rows(64);
  const target::Machine& h200 = target::stated_machine("NVIDIA H200");
  const auto why = [&](const char* text) { return why_illegal(completed(text, group), group, h200); };
  CHECK(why("row;programs=0:grid64;lanes=1:serial5,lanes64") == "");
  CHECK(why("row;programs=0:unroll2,grid32;lanes=1:lanes512") == "");
  CHECK(why("row;programs=0:grid64;lanes=1:cluster1,serial2,unroll4,lanes64") == "");
  CHECK(why("column;lanes=0:grid2,serial1,lanes32;loop=1:warps4,serial75") == "");
  for (const char* text : {"row;programs=0:grid63;lanes=1:serial5,lanes64",  // a row too few
                           "row;programs=0:grid64;lanes=1:serial4,lanes64",  // lanes too few
                           "row;programs=0:grid64;lanes=1:serial0,lanes64",
                           "row;programs=0:grid64",                           // an axis too few
                           "row;programs=0.1:grid19200;lanes=1:lanes512",     // twice
                           "row;programs=0:unroll3,grid22;lanes=1:lanes512",  // no equal shares
                           "row;programs=0:grid64;lanes=1:lanes64,serial5",   // not in order
                           "row;programs=0:grid64;lanes=1:grid5,lanes64",     // rows have no such level
                           "row;programs=0:grid64;lanes=1:serial5,lanes60",   // no power of two
                           "row;programs=0:grid64;lanes=1:lanes16384",        // not in registers
                           "row;programs=0:grid64;lanes=1:serial1,unroll4,lanes4096",
                           "row;programs=0:grid64;lanes=1:cluster3,serial2,lanes64",  // parts of a reduction
                           "row;programs=0:grid64;lanes=1:cluster64,lanes64",         // the largest cluster has 16
                           "map;lanes=0.1:grid19,lanes1024",                          // an axis is reduced
                           "column;lanes=1:grid10,lanes32;loop=0:serial64",           // the wrong one
                           "column;lanes=0:grid1,serial2,lanes32;loop=1:serial38,unroll8",  // panels are of a CPU
                           "column;lanes=0:grid2,serial1,lanes32;loop=1:warps512,serial1",  // parts of no elements
                           "row;programs=0:grid64;lanes=1:lanes512;any_length"}) {
    CAPTURE(text);
    CHECK(why(text) != "");
  }
  const target::Machine& avx2 = target::stated_machine("avx2");
  const auto panels = [&](const char* loop) {
    const std::string text = fmt::format("column;lanes=0:grid1,serial2,lanes32;loop=1:{}", loop);
    return why_illegal(completed(text.c_str(), group), group, avx2);
  };
  CHECK(panels("serial38,unroll8") == "");
  CHECK(panels("warps1,serial38,unroll8") == "");
  CHECK(panels("warps2,serial19,unroll8") != "");  // one program walks all of a panel
  Schedule beyond = *parse_schedule("row;programs=0:grid64;lanes=2:lanes512");
  CHECK_FALSE(set_extents(beyond, group));
}

TEST_CASE("neighbours move a factor of two between the levels of one axis") {
  const Group group = rows(64);
  std::set<std::string> texts;
  for (const Schedule& s : neighbours(completed("row;programs=0:grid64;lanes=1:cluster2,serial2,lanes128", group)))
    texts.insert(to_string(s));
  CHECK(texts == std::set<std::string>{"row;programs=0:grid64;lanes=1:cluster4,serial1,lanes128",
                                       "row;programs=0:grid64;lanes=1:cluster4,serial2,lanes64",
                                       "row;programs=0:grid64;lanes=1:cluster1,serial4,lanes128",
                                       "row;programs=0:grid64;lanes=1:cluster2,serial4,lanes64",
                                       "row;programs=0:grid64;lanes=1:cluster1,serial2,lanes256",
                                       "row;programs=0:grid64;lanes=1:cluster2,serial1,lanes256"});
}

TEST_CASE("every legal schedule of a group computes what the rules' computes, on blocks and clusters too") {
  const FreshTuner fresh;
  weft::test::SimtTarget blocks(1), cluster(4, 8);
  const Value x = parameter({{48, 1200}, float32}), y = parameter({{48, 1200}, float32}),
              w = parameter({{1200}, float32}), few = parameter({{3, 120000}, float32});
  const Graph graphs[] = {{{x, y}, {gelu_tanh(x) * y}},
                          {{x}, {softmax(x, {1})}},
                          {{x, y}, {sum(x * y, {0})}},
                          {{few}, {sum(few, {0})}},
                          {{x, y}, reduce_state(kernel::Reducer::logsumexp, {x, y}, {1})},
                          {{x, w}, {sum(x * broadcast(w, {48, 1200}), {1})}},
                          {{x, y}, {concat({tanh(x), x * y}, 1)}}};
  Policy policy;
  policy.tuning = Tuning::force;
  for (target::Target* target :
       {&target::cpu(), static_cast<target::Target*>(&blocks), static_cast<target::Target*>(&cluster)})
    for (size_t k = 0; k < std::size(graphs); ++k) {
      // A graph has the CPU and one of the GPUs: LLVM compiles each of their schedules.
      if (target != &target::cpu() && (target == &blocks) != (k % 2 == 0)) continue;
      if (!weft::test::taken(static_cast<int64_t>(k))) continue;
      const Graph& g = graphs[k];
      reset_tuning();
      const std::string notes = build({g, {}, {}}, *target, policy)->print("tune");
      CHECK_MESSAGE(notes.find(";lanes=") != std::string::npos, notes);
      for (const char* bad : {"wrong", "fails", "not measured", "no such"})
        CHECK_MESSAGE(notes.find(bad) == std::string::npos, notes);
    }
}
