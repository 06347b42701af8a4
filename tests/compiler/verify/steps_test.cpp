// Faults planted in a program's steps: each is refused by its rule.
#include "compiler/plan/verify.h"

#include "compiler/verify/programs.h"

using namespace weft;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

Step& step(Compilation& c, Step::Kind kind, int skipped = 0) {
  for (Step& s : c.steps.steps)
    if (s.kind == kind && skipped-- == 0) return s;
  throw_internal("test", "the program has no such step");
}

/// The first launch of several groups.
Step& merged(Compilation& c) {
  for (Step& s : c.steps.steps)
    if (s.segments.size() > 1) return s;
  throw_internal("test", "the program has no merged launches");
}

/// The first launch of groups that run one after the other.
Step& joined(Compilation& c) {
  for (Step& s : c.steps.steps)
    if (s.segments.size() == 1 && s.groups.size() > 1) return s;
  throw_internal("test", "the program has no joined launches");
}

/// Removes the instructions that store, nested ones too.
void drop_stores(kernel::Block& block) {
  std::erase_if(block.insts, [](const kernel::Inst& i) { return i.op == kernel::Op::store; });
  for (kernel::Inst& i : block.insts)
    for (kernel::Block& inner : i.blocks) drop_stores(inner);
}

void of_plan(const Sample&, const Compilation& c) { verify(c.ir, c.grouping, c.ordering, c.steps); }

/// Buffers in the arena, in the order of their nodes.
std::vector<int> in_arena(const Compilation& c) {
  std::vector<int> out;
  for (const auto& [node, at] : c.steps.locations)
    if (at.in == Location::In::arena) out.push_back(node);
  return out;
}

/// Lays a buffer elsewhere, in the plan's list of positions and in every step.
void move(Compilation& c, NodeId node, int64_t offset) {
  const Location before = c.steps.locations.at(node);
  c.steps.locations.at(node).offset = offset;
  for (Step& s : c.steps.steps)
    for (size_t k = 0; k < s.nodes.size(); ++k)
      for (size_t b = 0; b < s.nodes[k].size(); ++b)
        if (s.nodes[k][b] == node)
          (s.segments.empty() ? s.operands[b] : s.segments[k].buffers[b]).offset += offset - before.offset;
}

/// Does a step touch both?
bool meet(const Compilation& c, int a, int b) {
  return std::any_of(c.steps.steps.begin(), c.steps.steps.end(), [&](const Step& s) {
    const auto touches = [&](NodeId node) {
      return std::any_of(s.nodes.begin(), s.nodes.end(), [&](const std::vector<NodeId>& nodes) {
        return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
      });
    };
    return touches(a) && touches(b);
  });
}

/// Parameters of a launch that are, or are not, written.
size_t param(Compilation& c, const Step& s, bool written) {
  const std::vector<kernel::Param>& params = c.steps.kernels[s.kernel].params;
  for (size_t k = 0; k < params.size(); ++k)
    if (params[k].written == written) return k;
  throw_internal("test", "the kernel has no such parameter");
}

const std::vector<Fault> faults{
    {"a step left out", "chain", "a step comes after those that it waits for",
     [](Compilation& c) { c.steps.steps.erase(c.steps.steps.begin()); }},
    {"the last step left out", "chain", "every group is run", [](Compilation& c) { c.steps.steps.pop_back(); }},
    {"a step twice", "chain", "a group is run by one step",
     [](Compilation& c) { c.steps.steps.push_back(c.steps.steps.back()); }},
    {"steps in another order", "chain", "a step comes after those that it waits for",
     [](Compilation& c) { std::swap(c.steps.steps[0], c.steps.steps[1]); }},
    {"a step of no group", "chain", "a step runs a group", [](Compilation& c) { c.steps.steps[0].groups.clear(); }},
    {"a buffer behind the arena", "chain", "a buffer lies within the arena",
     [](Compilation& c) { move(c, in_arena(c)[0], c.steps.arena_bytes); }},
    {"a buffer before the arena", "chain", "a buffer lies within the arena",
     [](Compilation& c) { move(c, in_arena(c)[0], -64); }},
    {"a buffer that is not aligned", "chain", "a buffer is aligned",
     [](Compilation& c) {
       c.steps.arena_bytes += 64;
       move(c, in_arena(c)[0], c.steps.locations.at(in_arena(c)[0]).offset + 4);
     }},
    {"slots of one step that overlap", "chain", "arrays of one step do not overlap in the arena",
     [](Compilation& c) {
       const std::vector<int> all = in_arena(c);
       REQUIRE(meet(c, all[0], all[1]));
       move(c, all[1], c.steps.locations.at(all[0]).offset);
     }},
    {"slots that overlap by a part", "chain", "arrays of one step do not overlap in the arena",
     [](Compilation& c) {
       c.steps.arena_bytes += 1 << 16;
       const std::vector<int> all = in_arena(c);
       move(c, all[1], c.steps.locations.at(all[0]).offset + 64);
     }},
    {"a slot that is given away too early", "skip", "an array in the arena is read before its slot is given away",
     [](Compilation& c) {
       // The last step reads what the first one makes: somebody in between gets its slot.
       const int first = c.grouping.groups[0].roots[0].node;
       for (const int other : in_arena(c))
         if (!meet(c, first, other)) return move(c, other, c.steps.locations.at(first).offset);
     }},
    {"a buffer of another node", "chain", "a buffer lies where its node was placed",
     [](Compilation& c) {
       Step& s = step(c, Step::Kind::launch);
       s.segments[0].buffers[0] = s.segments[0].buffers.back();
     }},
    {"buffers changed about", "norm", "a buffer lies where its node was placed",
     [](Compilation& c) {
       std::vector<Location>& all = step(c, Step::Kind::launch).segments[0].buffers;
       std::swap(all[0], all[1]);
     }},
    {"a buffer too few", "norm", "each buffer of a launch has a location",
     [](Compilation& c) { step(c, Step::Kind::launch).segments[0].buffers.pop_back(); }},
    {"a node too few", "norm", "a kernel has a buffer for each parameter",
     [](Compilation& c) { step(c, Step::Kind::launch).nodes[0].pop_back(); }},
    {"a number too many", "norm", "a kernel has a number for each symbol",
     [](Compilation& c) {
       step(c, Step::Kind::launch).segments[0].symbols.push_back({3, nullptr});
     }},
    {"a launch of no programs", "norm", "a launch has programs",
     [](Compilation& c) { step(c, Step::Kind::launch).segments[0].grid = 0; }},
    {"a kernel that does not exist", "norm", "a launch has a kernel and buffers",
     [](Compilation& c) { step(c, Step::Kind::launch).kernel = c.steps.kernels.size(); }},
    {"a parameter of another dtype", "norm", "a parameter has its buffer's dtype",
     [](Compilation& c) { c.steps.kernels[step(c, Step::Kind::launch).kernel].params[0].dtype = float16; }},
    {"an input that a kernel writes", "norm", "a kernel writes its groups' results and nothing else",
     [](Compilation& c) {
       const Step& s = step(c, Step::Kind::launch);
       c.steps.kernels[s.kernel].params[param(c, s, false)].written = true;
     }},
    {"a result that no instruction stores", "norm", "a kernel stores each of its results",
     [](Compilation& c) { drop_stores(c.steps.kernels[step(c, Step::Kind::launch).kernel].body); }},
    {"a result that is read before it is stored", "norm", "a kernel reads of a new array only what it has stored",
     [](Compilation& c) {
       const Step& s = step(c, Step::Kind::launch);
       kernel::Inst load{.op = kernel::Op::load};
       load.ref = static_cast<kernel::Ref>(param(c, s, true));
       std::vector<kernel::Inst>& body = c.steps.kernels[s.kernel].body.insts;
       body.insert(body.begin(), std::move(load));
     }},
    {"a result that a kernel does not write", "norm", "a kernel writes its groups' results and nothing else",
     [](Compilation& c) {
       const Step& s = step(c, Step::Kind::launch);
       c.steps.kernels[s.kernel].params[param(c, s, true)].written = false;
     }},
    {"a result that a kernel may read early", "gpu norm", "what a kernel may read early",
     [](Compilation& c) {
       const Step& s = step(c, Step::Kind::launch);
       c.steps.kernels[s.kernel].params[param(c, s, true)].constant = true;
     }},
    {"an operand elsewhere", "sort", "an operand lies where its buffer was placed",
     [](Compilation& c) { step(c, Step::Kind::library).operands[0].offset += 4; }},
    {"an operand too few", "sort", "each operand of a call has a location",
     [](Compilation& c) { step(c, Step::Kind::library).operands.pop_back(); }},
    {"a library's step without its routine", "sort", "a call has a routine",
     [](Compilation& c) { step(c, Step::Kind::library).call = nullptr; }},
    {"merged launches of which one reads what the other makes", "updates", "merged launches are independent",
     [](Compilation& c) {
       const Step& s = merged(c);
       Group& second = c.grouping.groups[s.groups[1]];
       second.reads[0] = c.grouping.groups[s.groups[0]].roots[0].node;
     }},
    {"merged launches with a segment too many", "updates", "a merged launch has a segment for each group",
     [](Compilation& c) {
       Step& s = merged(c);
       s.segments.push_back(s.segments.back());
       s.nodes.push_back(s.nodes.back());
     }},
    {"a result in the arena", "chain", "a result that leaves the program is not in the arena",
     [](Compilation& c) {
       c.steps.outputs[0].location = {Location::In::arena, 0, 0};
     }},
    {"an output in another one's buffer", "norm", "an output's own buffer is its own",
     [](Compilation& c) { c.steps.outputs[0].location.index = 1; }},
    {"outputs changed about", "norm", "what lies in an output's buffer fills it",
     [](Compilation& c) { c.steps.outputs[0].bytes -= 4; }},
    {"an output that lies elsewhere", "norm", "an output lies where its buffer was placed",
     [](Compilation& c) { c.steps.outputs[0].buffer = c.ir.inputs[0]; }},
    {"a plan that is not placed any longer", "norm", "no buffer has a location before allocate",
     [](Compilation& c) { c.steps.placed = false; }},
};

const std::vector<Fault> faults_before_allocate{
    {"a step left out", "chain", "a step comes after those that it waits for",
     [](Compilation& c) { c.steps.steps.erase(c.steps.steps.begin()); }},
    {"a kernel without its digest", "chain", "a plan has a digest for each kernel",
     [](Compilation& c) { c.steps.digests.pop_back(); }},
    {"a location", "chain", "no buffer has a location before allocate",
     [](Compilation& c) {
       c.steps.locations[c.ir.inputs[0]] = {Location::In::input, 0, 0};
     }},
    {"an arena", "chain", "no buffer has a location before allocate", [](Compilation& c) { c.steps.arena_bytes = 64; }},
    {"a launch with locations", "norm", "each buffer of a launch has a location, after allocate and not before",
     [](Compilation& c) { step(c, Step::Kind::launch).segments[0].buffers.emplace_back(); }},
    {"a call with locations", "sort", "each operand of a call has a location, after allocate and not before",
     [](Compilation& c) { step(c, Step::Kind::library).operands.emplace_back(); }},
    {"an output with memory", "norm", "no output has memory before allocate",
     [](Compilation& c) { c.steps.outputs[0].owns = true; }},
    {"a parameter that is marked already", "gpu norm", "no parameter is constant before allocate",
     [](Compilation& c) { c.steps.kernels[0].params[0].constant = true; }},
    {"a plan that is not placed", "norm", "each buffer of a launch has a location",
     [](Compilation& c) { c.steps.placed = true; }},
    {"an output in another one's buffer", "norm", "an output holds its value at the end",
     [](Compilation& c) { c.steps.outputs[0].buffer = c.steps.outputs[1].buffer; }},
    {"an output in no buffer", "norm", "an output's buffer exists",
     [](Compilation& c) { c.steps.outputs[0].buffer = c.ir.size(); }},
};

/// What is wrong before allocate is wrong after it.
const std::vector<Fault> faults_at_any_time{
    {"an operand behind its buffer", "sort", "an operand lies within its buffer",
     [](Compilation& c) {
       Step& s = step(c, Step::Kind::library);
       s.offsets.assign(s.nodes[0].size(), 1 << 20);
     }},
    {"offsets that some operands lack", "sort", "a call has buffers",
     [](Compilation& c) { step(c, Step::Kind::library).offsets = {0}; }},
    {"a copy that is left out", "copies", "an output holds its value at the end",
     [](Compilation& c) { std::erase_if(c.steps.steps, [](const Step& s) { return s.kind == Step::Kind::copy; }); }},
    {"a copy that is too long", "copies", "a copy fits its buffers",
     [](Compilation& c) { step(c, Step::Kind::copy).bytes += 4; }},
};

}  // namespace

TEST_CASE("the verifier of plans refuses each planted fault by its rule") {
  for (const Fault& fault : faults) check_refused(fault, of_plan);
}

TEST_CASE("the verifier of plans refuses each fault that is planted before buffers have locations") {
  for (const char* last : {"lower", "horizontal_fusion", "vertical_fusion"})
    for (const std::vector<Fault>* all : {&faults_before_allocate, &faults_at_any_time})
      for (const Fault& fault : *all) check_refused(fault, of_plan, last);
  for (const char* last : {"allocate", "mark_constants"})
    for (const Fault& fault : faults_at_any_time) check_refused(fault, of_plan, last);
}

TEST_CASE("the verifier of plans refuses the fault that each pass could make") {
  check_refused({"a launch that took the groups of another one, but not its segments", "updates",
                 "a merged launch has a segment for each group",
                 [](Compilation& c) { merged(c).segments.pop_back(), merged(c).nodes.pop_back(); }},
                of_plan, "horizontal_fusion");
  check_refused({"launches joined in the wrong order", "gpu singles", "a step comes after those that it waits for",
                 [](Compilation& c) {
                   Step& s = joined(c);
                   std::reverse(s.groups.begin(), s.groups.end());
                 }},
                of_plan, "vertical_fusion");
  check_refused({"launches joined without the second one's buffers", "gpu singles",
                 "a kernel has a buffer for each parameter", [](Compilation& c) { joined(c).nodes[0].pop_back(); }},
                of_plan, "vertical_fusion");
  check_refused({"an arena that is too small", "chain", "a buffer lies within the arena",
                 [](Compilation& c) { c.steps.arena_bytes -= 64; }},
                of_plan, "allocate");
  check_refused({"everything marked constant", "gpu norm", "what a kernel may read early",
                 [](Compilation& c) {
                   for (kernel::Kernel& k : c.steps.kernels)
                     for (kernel::Param& p : k.params) p.constant = true;
                 }},
                of_plan, "mark_constants");
}

TEST_CASE("the verifier of choices refuses each planted fault by its rule") {
  const auto of_choices = [](const Sample&, const Compilation& c) { verify(c.grouping, c.tuned); };
  const std::vector<Fault> all{
      {"a group without a variant", "norm", "each group has a variant",
       [](Compilation& c) { c.tuned.variants.pop_back(); }},
      {"rows that run as a matmul", "norm", "only a matmul has code in place of a library's",
       [](Compilation& c) { c.tuned.variants[0].schedule.emplace().kind = RowClass::product; }},
      {"a matmul with a schedule of rows", "mlp", "only a group of rows has schedules to choose from",
       [](Compilation& c) { c.tuned.variants[number_of(c, group(c, Group::Kind::dot))].schedule = Schedule{}; }},
  };
  for (const Fault& fault : all) check_refused(fault, of_choices, "tune");
}
