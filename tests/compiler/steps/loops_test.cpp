// Steps that divide the loops of a group: what they build, what is refused, and that every schedule is built by some.
#include "compiler/schedule/steps/loops.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "compiler/null_machine.h"
#include "compiler/pipeline.h"
#include "compiler/random_program.h"
#include "compiler/schedule/concat_parts.h"
#include "compiler/schedule/rows.h"
#include "compiler/simt_target.h"
#include "thinning.h"

using namespace weft;
using namespace weft::compiler;
using namespace weft::compiler::testing;
using graph::Value;

namespace {

const std::vector<NamedAxis> row{{"d0", 48}, {"d1", 20}, {"r0", 300, true}};
const std::vector<NamedAxis> map{{"d0", 48}, {"d1", 1200}};

std::string built(const char* steps, const std::vector<NamedAxis>& axes) {
  try {
    return to_string(schedule_by_steps(schedule::parse(steps), axes));
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
}

/// Holds the schedules of the groups of a program against the steps that build them. Returns how many there were.
int check_round_trips(const Source& source, target::Target& target, size_t most) {
  Policy policy;
  policy.libraries = false;
  const PassContext cx{source, target, policy};
  const Compilation c = run_passes(cx, false);
  int count = 0;
  for (GroupId g = 0; g < c.grouping.groups.count(); ++g) {
    const Group& group = c.grouping.groups[g];
    bool empty = false;
    for (const DomainVariable& v : group.domain) empty = empty || v.extent.bound() == 0;
    if (group.kind != Group::Kind::rows || empty) continue;
    for (const Schedule& s : reachable_schedules(c.ir, c.grouping, group, target, most)) {
      Group own = group.copy();
      split_at_reads(c.ir, c.grouping, own, target);
      const int cut = s.cut.axes.empty() ? -1 : cut_at_concats(c.ir, c.grouping, own, target.machine());
      const std::vector<NamedAxis> axes = axes_of(own, cut);
      const schedule::Steps steps = steps_of(s, axes);
      CAPTURE(to_string(s));
      CAPTURE(to_string(axes));
      CAPTURE(to_string(steps));
      CHECK(names_cut(steps) == (cut >= 0));
      try {
        const Schedule again = schedule_by_steps(schedule::parse(to_string(steps)), axes);
        CHECK(to_string(again) == to_string(s));
        CHECK(again == s);
      } catch (const std::invalid_argument& e) {
        FAIL_CHECK(std::string(e.what()));
      }
      ++count;
    }
  }
  return count;
}

}  // namespace

TEST_CASE("steps build the schedule of a group") {
  CHECK(built("split(r0, 64, {step, lane}); vectorize(lane)", row) ==
        "row;programs=0.1:grid960;lanes=2:serial5,lanes64");
  CHECK(built("reorder({d1, d0}); split(r0, 64, {step, lane}); vectorize(lane)", row) ==
        "row;programs=1.0:grid960;lanes=2:serial5,lanes64");
  CHECK(built("split(r0, 128, {part, rest}); bind(part, cluster); split(rest, 64, {step, lane}); vectorize(lane)",
              row) == "row;programs=0.1:grid960;lanes=2:cluster3,serial2,lanes64");
  CHECK(built("pad(r0, 512); vectorize(r0)", row) == "row;programs=0.1:grid960;lanes=2:lanes512");
  CHECK(built("fuse({d0, d1}, rows); split(rows, 480, {twin, program}); unroll(twin); bind(program, program); "
              "pad(r0, 512); vectorize(r0)",
              row) == "row;programs=0.1:unroll2,grid480;lanes=2:lanes512");
  CHECK(built("split(d1, 4, {block, lane}); bind(block, program); vectorize(lane); split(r0, 75, {w, t}); "
              "bind(w, warp)",
              row) == "column;programs=0:grid48;lanes=1:grid5,lanes4;loop=2:warps4,serial75");
  CHECK(built("fuse({d0, d1}, all); split(all, 512, {block, rest}); bind(block, program); split(rest, 64, {step, "
              "lane}); vectorize(lane); any_length(); guard()",
              map) == "map;programs=:grid1;lanes=0.1:grid113,serial8,lanes64;any_length;guarded_tiles");
  CHECK(built("split(d1, 64, {b, lane}); bind(b, program); vectorize(lane); split(d0, 12, {chunk, turn}); bind(chunk, "
              "program)",
              map) == "map;programs=:grid1;lanes=1:grid19,lanes64;loop=0:grid4,serial12");
  // A digit of vectors within a digit of threads is one tile.
  CHECK(built("split(d1, 256, {b, t}); split(t, 4, {thread, word}); bind(thread, lane); vectorize(word)", map) ==
        "map;programs=0:grid48;lanes=1:serial5,lanes256");
  CHECK(built("split(d1, 256, {b, t}); split(t, 4, {x, y}); fuse({x, y}, z); vectorize(z)", map) ==
        "map;programs=0:grid48;lanes=1:serial5,lanes256");
  CHECK(built("tile({d0, d1}, 1, 32, {a, b, c, lane}); bind(a, program); bind(b, program); unroll(c); vectorize(lane)",
              map) == "map;programs=0:grid48,unroll1;lanes=1:grid38,lanes32");
}

TEST_CASE("a step that a group cannot take is refused, with its axes") {
  CHECK(built("split(d2, 8, {a, b})", map) ==
        "[schedule] split(d2, 8, {a, b}): there is no axis d2: the axes here are d0 (48), d1 (1200)");
  CHECK(built("split(d1, 8, {a, d0})", map) ==
        "[schedule] split(d1, 8, {a, d0}): there is an axis d0 already: choose another name");
  CHECK(built("vectorize(d1); split(d1, 8, {a, b})", map) ==
        "[schedule] split(d1, 8, {a, b}): axis d1 is bound already: divide an axis before it is bound");
  CHECK(built("pad(d1, 1199)", map) ==
        "[schedule] pad(d1, 1199): axis d1 has 1200 elements already: pad it to that or to more");
  CHECK(built("split(d1, 8, {a, b}); reorder({b, a})", map) ==
        "[schedule] reorder({b, a}): b and a are parts of one axis, whose order the levels give: bind them instead");
  CHECK(built("split(d1, 8, {a, b}); fuse({d0, b}, c)", map) ==
        "[schedule] fuse({d0, b}, c): only whole axes, or parts of one axis that follow each other, are fused: fuse "
        "axes before they are split");
  CHECK(built("fuse({d1, r0}, a)", row) ==
        "[schedule] fuse({d1, r0}, a): a reduced axis is fused with one that is "
        "not: fuse axes d… and axes r… each among themselves");
  CHECK(built("bind(d0, program)", map) == "[schedule] no axis is vectorized: vectorize one of d0 (48), d1 (1200)");
  CHECK(built("vectorize(d0); vectorize(d1)", map) ==
        "[schedule] two axes are vectorized: a kernel of rows has one "
        "tile; fuse the axes before");
  CHECK(built("split(d0, 4, {a, b}); bind(a, program); unroll(b); pad(r0, 512); vectorize(r0)", row) ==
        "[schedule] axis a is divided beside other axes of programs: fuse them into one first");
}

TEST_CASE("every schedule that the rules choose, or that lies near one, is built by steps that are read back") {
  weft::test::NullMachine avx2("avx2"), h200("NVIDIA H200");
  weft::test::SimtTarget blocks(1), cluster(4, 8);
  int count = 0;
  for (int seed = 0; seed < weft::test::some_of(300); ++seed) {
    CAPTURE(seed);
    const RandomProgram p = random_program(static_cast<uint64_t>(seed));
    target::Target* const targets[] = {&avx2, &h200, &blocks, &cluster};
    count += check_round_trips(p.source, *targets[seed % 4], 40);
  }
  const Value x = graph::parameter({{48, 1200}, float32}), y = graph::parameter({{48, 1200}, float32}, 1),
              w = graph::parameter({{1200}, float32}), tall = graph::parameter({{120000, 64}, float32}),
              draws = graph::parameter({{64, 4096}, float32});
  const graph::Graph graphs[] = {
      {{x, y}, {gelu_tanh(x) * y}},
      {{x}, {graph::softmax(x, {1})}},
      {{tall}, {graph::sum(tall, {0})}},
      {{x, w}, {graph::sum(x * graph::broadcast(w, {48, 1200}), {1})}},
      {{x, y}, {graph::concat({tanh(x), x * y}, 1)}},
      {{x, y}, graph::reduce_state(kernel::Reducer::logsumexp, {x, y}, {1})},
      {{draws}, {graph::permute(draws * draws, {1, 0})}},
  };
  for (const graph::Graph& g : graphs)
    for (target::Target* target : {static_cast<target::Target*>(&avx2), static_cast<target::Target*>(&h200),
                                   static_cast<target::Target*>(&cluster)})
      count += check_round_trips({g, {}, {}}, *target, 300);
  CHECK(count > 3000);
  MESSAGE("schedules: ", count);
}
