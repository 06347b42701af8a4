// Faults planted in the order of groups and in whose buffer each result lies: each is refused by its rule.
#include "compiler/fusion/verify.h"
#include "compiler/verify/programs.h"

using namespace weft;
using namespace weft::compiler;
using namespace weft::compiler::testing;
using graph::Op;

namespace {

NodeId& owner(Compilation& c, NodeId node) { return c.ordering.buffer_owner[node]; }

/// A root that lies in another node's memory.
int takeover(const Compilation& c) {
  for (NodeId id = 0; id < c.ir.size(); ++id)
    if (c.ordering.buffer_owner[id] != id) return id;
  throw_internal("test", "no root takes over memory");
}

/// Where a group stands in the order.
std::vector<GroupId>::iterator position(Compilation& c, GroupId g) {
  return std::find(c.ordering.order.begin(), c.ordering.order.end(), g);
}

/// Moves a group in front of all others, whatever it waits for.
void run_first(Compilation& c, int g) {
  std::rotate(c.ordering.order.begin(), position(c, g), position(c, g) + 1);
  c.ordering.after[g].clear();
}

const std::vector<Fault> faults{
    {"a group left out", "loss", "each group runs once", [](Compilation& c) { c.ordering.order.pop_back(); }},
    {"a group twice", "loss", "each group runs once",
     [](Compilation& c) { c.ordering.order.back() = c.ordering.order.front(); }},
    {"groups in another order", "loss", "a group runs after those it waits for",
     [](Compilation& c) { std::reverse(c.ordering.order.begin(), c.ordering.order.end()); }},
    {"a group that does not wait", "loss", "a group waits for those that make what it reads",
     [](Compilation& c) {
       for (std::vector<GroupId>& after : c.ordering.after) after.clear();
     }},
    {"a write before the read of what it overwrites", "updates", "read after it was made and before it is overwritten",
     [](Compilation& c) {
       // The last result reads a parameter as it was.
       const int old = c.ir.inputs[0];
       for (NodeId id = 0; id < c.ir.size(); ++id)
         if (owner(c, id) == old && id != old) return run_first(c, c.grouping.group_of[id]);
     }},
    {"two values in one array at once", "skip", "read after it was made and before it is overwritten",
     [](Compilation& c) {
       // The last product reads what the first step makes.
       owner(c, c.grouping.groups[2].roots[0].node) = c.grouping.groups[0].roots[0].node;
     }},
    {"a product over its own operand", "chain", "what a group overwrites is read only where it is overwritten",
     [](Compilation& c) {
       const Group& g = group(c, Group::Kind::dot);
       owner(c, g.roots[0].node) = g.dot.a.node;
     }},
    {"a row over what its reduction reads", "norm", "a result that reuses a buffer",
     [](Compilation& c) { owner(c, c.ir.outputs[1]) = c.ir.inputs[2]; }},
    {"a sum over what a later pass reads", "softmax", "what a group overwrites is read only where it is overwritten",
     [](Compilation& c) {
       // Transposed, so that each element is written where another one is read.
       Root& r = root(c, RootKind::full).second;
       std::swap(r.index[0], r.index[1]);
       owner(c, r.node) = c.ir.inputs[0];
     }},
    {"a key over words of other keys", "crossed keys", "what a group overwrites is read only where it is overwritten",
     [](Compilation& c) { owner(c, c.ir.outputs[0]) = c.ir.inputs[0]; }},
    {"a key whose words are made in two tiles", "keys", "what a group overwrites is read only where it is overwritten",
     [](Compilation& c) {
       Group& g = group(c, Group::Kind::rows);
       std::swap(g.domain[0], g.domain[1]);
     }},
    {"a state that several points of the domain make", "updates", "is stored by one point of its domain",
     [](Compilation& c) {
       Group& g = c.grouping.groups[c.grouping.group_of[static_cast<size_t>(takeover(c))]];
       g.domain.insert(g.domain.begin(), {g.cx->variable("again", 0, 2), 3, false});
     }},
    {"a scatter into a product that lies otherwise", "transposed scatter",
     "a result that reuses a buffer has its strides",
     [](Compilation& c) {
       const int made = group(c, Group::Kind::dot).roots[0].node;
       c.grouping.strides[made] = row_major_strides(c.ir[made].type.shape);
     }},
    {"a scatter whose result lies otherwise", "transposed scatter", "a result that reuses a buffer has its strides",
     [](Compilation& c) {
       Strides& strides = c.grouping.strides[group(c, Group::Kind::scatter).roots[0].node];
       strides = {1, 10};
     }},
    {"memory of another size", "loss", "a result that reuses a buffer has its dtype and size",
     [](Compilation& c) { owner(c, c.ir.outputs[1]) = c.ir.inputs[1]; }},
    {"memory of another dtype", "loss", "a result that reuses a buffer has its dtype and size",
     [](Compilation& c) {
       for (NodeId id = 0; id < c.ir.size(); ++id)
         if (c.grouping.is_root[id] && c.ir[id].type.shape == Shape{16}) return void(owner(c, id) = c.ir.inputs[2]);
       owner(c, c.ir.outputs[1]) = c.ir.inputs[2];
     }},
    {"memory that itself lies elsewhere", "updates", "the owner of a buffer owns itself",
     [](Compilation& c) {
       const NodeId id = takeover(c), at = owner(c, id);
       for (int other = 0; other < c.ir.size(); ++other)
         if (other != id && owner(c, other) != other && c.ir[other].type == c.ir[id].type)
           return void(owner(c, other) = id);
       owner(c, at) = id;
     }},
    {"memory of a node that is no root", "softmax", "only a root takes over memory",
     [](Compilation& c) { owner(c, find(c.ir, Op::exp)) = c.ir.inputs[0]; }},
    {"memory of a node that does not exist", "norm", "a node's memory belongs to a node",
     [](Compilation& c) { owner(c, c.ir.outputs[1]) = c.ir.size(); }},
    {"an array that is read and has no memory", "loss", "what others read has memory",
     [](Compilation& c) {
       for (const Group& g : c.grouping.groups)
         for (const NodeId node : g.reads)
           if (c.grouping.is_root[node]) return void(c.ordering.has_buffer[node] = false);
     }},
    {"memory for what is computed where it is read", "softmax", "only roots and inputs have memory",
     [](Compilation& c) { c.ordering.has_buffer[find(c.ir, Op::exp)] = true; }},
    {"a store with streaming stores of what is read again", "chain", "what is stored with streaming stores",
     [](Compilation& c) { c.ordering.streamed[c.grouping.groups[0].roots[0].node] = true; }},
    {"a state that keeps its old value", "updates", "an updated input holds its new value at the end",
     [](Compilation& c) {
       const NodeId id = takeover(c);
       owner(c, id) = id;
     }},
    {"an output that is overwritten", "norm", "an output is still there at the end",
     [](Compilation& c) { owner(c, c.ir.outputs[0]) = c.ir.outputs[1]; }},
    {"a scatter without its operand's copy", "scatter", "a scatter begins with its operand in its memory",
     [](Compilation& c) {
       const NodeId node = group(c, Group::Kind::scatter).roots[0].node;
       for (NodeId id = 0; id < c.ir.size(); ++id)
         if (owner(c, id) == owner(c, node) && id != node) owner(c, id) = id;
       owner(c, node) = node;
     }},
    {"a copy of another operand", "scatter", "a scatter begins with its operand in its memory",
     [](Compilation& c) { c.ordering.copied_from[group(c, Group::Kind::scatter).roots[0].node] = c.ir.inputs[0]; }},
    {"a copy at the end of what is gone", "updates", "what is copied at the end",
     [](Compilation& c) {
       const NodeId node = c.ir.outputs.back();
       c.ordering.last.push_back({node, c.ir.inputs[0], 0});
     }},
    {"an operand copied for a group that scatters nothing", "chain", "only a scatter's operand is copied",
     [](Compilation& c) { c.ordering.copied_from[c.grouping.groups[0].roots[0].node] = c.ir.inputs[0]; }},
};

}  // namespace

TEST_CASE("the verifier of orders refuses each planted fault by its rule") {
  for (const Fault& fault : faults)
    check_refused(
        fault, [](const Sample& p, const Compilation& c) { verify(c.ir, c.grouping, c.ordering, p.source.updates); });
}

TEST_CASE("a new key of random numbers takes the old one's place where a tile has both words of it") {
  const auto in_place = [](Shape shape, bool transposed, bool gpu) {
    const Value k = param(std::move(shape), uint32), bits = graph::random_bits(k, {2});
    const Value next = transposed ? graph::permute(bits, {1, 0}) : bits;
    const Sample p{{{{k}, {next}}, {}, {{0, 0}}}, gpu ? &simt() : &target::cpu()};
    const Compilation c = compiled(p);
    CHECK(refusal([&] { verify(c.ir, c.grouping, c.ordering, p.source.updates); }) == "");
    return c.ordering.buffer_owner[output_node(c.ir, c.ir.outputs[0])] == c.ir.inputs[0];
  };
  for (const bool gpu : {false, true}) {
    CHECK(in_place({2}, false, gpu));
    CHECK(in_place({2, 2}, false, gpu));
    CHECK(in_place({100, 2}, false, gpu));
    CHECK_FALSE(in_place({2, 2}, true, gpu));  // each new key has a word of every old one
  }
}

TEST_CASE("a counter that is updated beside a reduction is made once, not at each of its elements") {
  const Value x = param({3, 8}), t = param({}, int32);
  const Value mean = graph::sum(x, {0, 1}) * 0.5;
  const Sample p{{{{x, t}, {mean, t + 1}}, {}, {{1, 1}}}, &target::cpu()};
  const Compilation c = compiled(p);
  CHECK(refusal([&] { verify(c.ir, c.grouping, c.ordering, p.source.updates); }) == "");
  const int counter = c.ir.outputs[1];
  const Group& made = c.grouping.groups[c.grouping.group_of[static_cast<size_t>(counter)]];
  REQUIRE(made.has_reduction());
  for (const Root& root : made.roots)
    if (root.node == counter) CHECK(root.kind == RootKind::row);
  CHECK(c.ordering.buffer_owner[counter] == c.ir.inputs[1]);
}
