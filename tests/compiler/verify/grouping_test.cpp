// Faults planted in what fusion decided: each is refused, and its rule, group and node are named.
#include "compiler/fusion/verify.h"
#include "compiler/verify/programs.h"

using namespace weft;
using namespace weft::compiler;
using namespace weft::compiler::testing;
using graph::Op;

namespace {

/// The first group that reads what another one makes.
Group& reader(Compilation& c) {
  for (Group& g : c.grouping.groups)
    for (const NodeId node : g.reads)
      if (c.grouping.group_of[node] >= 0) return g;
  throw_internal("test", "no group reads another one's result");
}

Strides& strides(Compilation& c, NodeId node) { return c.grouping.strides[node]; }

/// The first root of a group that lies along two axes or more.
int wide(const Compilation& c, const Group& g) {
  for (const Root& r : g.roots)
    if (c.ir[r.node].type.shape.size() >= 2) return r.node;
  throw_internal("test", "no root has two axes");
}

const std::vector<Fault> faults{
    // Who makes what.
    {"a root in two groups", "loss", "a root is in one group",
     [](Compilation& c) {
       c.grouping.groups[1].roots.push_back({c.grouping.groups[0].roots[0].node, RootKind::full, {}});
     }},
    {"a root twice in its group", "norm", "a root is in one group",
     [](Compilation& c) {
       Group& g = c.grouping.groups[0];
       g.roots.push_back({g.roots[0].node, g.roots[0].kind, g.roots[0].index});
     }},
    {"a root left out", "norm", "a root is in a group, and nothing else is",
     [](Compilation& c) { c.grouping.groups[0].roots.pop_back(); }},
    {"a value in memory that is no root", "softmax", "a root is in a group, and nothing else is",
     [](Compilation& c) { c.grouping.is_root[find(c.ir, Op::exp)] = true; }},
    {"a root of another group's number", "loss", "a root's group has it among its roots",
     [](Compilation& c) {
       GroupId& g = c.grouping.group_of[c.grouping.groups[0].roots[0].node];
       g = g == 0 ? 1 : 0;
     }},
    {"a root that does not exist", "norm", "a root exists",
     [](Compilation& c) { c.grouping.groups[0].roots[0].node = c.ir.size(); }},
    {"an input as a root", "norm", "an input is no root",
     [](Compilation& c) { c.grouping.groups[0].roots[0].node = c.ir.inputs[0]; }},
    {"a group of another kind", "mlp", "a group's kind fits its roots",
     [](Compilation& c) { group(c, Group::Kind::dot).kind = Group::Kind::scatter; }},
    {"a map's group as a product", "norm", "a matmul's",
     [](Compilation& c) { group(c, Group::Kind::rows).kind = Group::Kind::dot; }},
    {"a cumulative sum as a map", "cumulative", "a group's kind fits its roots",
     [](Compilation& c) { group(c, Group::Kind::cumulative).kind = Group::Kind::rows; }},
    {"roots of two stages", "norm", "a group's roots are of one phase",
     [](Compilation& c) { ++c.ir.nodes[c.grouping.groups[0].roots.back().node].phase; }},
    // What is read, and when.
    {"a read left out", "norm", "a group lists all that it reads",
     [](Compilation& c) { c.grouping.groups[0].reads.pop_back(); }},
    {"a read too many", "updates", "a group lists only what it reads",
     [](Compilation& c) {
       for (Group& g : c.grouping.groups)
         if (g.reads.size() < c.ir.inputs.size() && g.reads.back() != c.ir.inputs.back()) {
           g.reads.push_back(c.ir.inputs.back());
           return;
         }
     }},
    {"a read twice", "norm", "what a group reads is listed once",
     [](Compilation& c) { c.grouping.groups[0].reads.push_back(c.grouping.groups[0].reads.back()); }},
    {"a read of what lies nowhere", "softmax", "what a group reads lies in memory",
     [](Compilation& c) { c.grouping.groups[0].reads[0] = find(c.ir, Op::exp); }},
    {"groups in another order", "loss", "a group comes after what it reads",
     [](Compilation& c) {
       Group& g = reader(c);
       std::swap(g, c.grouping.groups[0]);
       for (GroupId& n : c.grouping.group_of)
         if (const int other = number_of(c, g); n == 0 || n == other) n = n == 0 ? other : 0;
     }},
    {"a reduction computed where it is read", "norm", "what is no root can be computed where it is read",
     [](Compilation& c) {
       auto [g, r] = root(c, RootKind::reduce);
       const NodeId id = r.node;
       std::erase_if(g.roots, [&](const Root& other) { return other.node == id; });
       c.grouping.is_root[id] = false;
       c.grouping.group_of[id] = -1;
     }},
    // How roots lie.
    {"strides of another order of the axes", "norm", "a root's strides cover its elements once each",
     [](Compilation& c) {
       std::swap(strides(c, c.grouping.groups[0].roots.back().node)[0],
                 strides(c, c.grouping.groups[0].roots.back().node)[1]);
     }},
    {"a stride that overlaps", "mlp", "a root's strides cover its elements once each",
     [](Compilation& c) { strides(c, wide(c, c.grouping.groups[0]))[0] -= 1; }},
    {"a stride too few", "mlp", "an array has a stride for each axis",
     [](Compilation& c) { strides(c, wide(c, c.grouping.groups[0])).pop_back(); }},
    {"an output that lies nowhere", "softmax", "an output lies in memory",
     [](Compilation& c) { c.ir.outputs[0] = find(c.ir, Op::exp); }},
    // Where roots stand in the domain.
    {"a domain of another extent", "norm", "a domain variable runs over its extent",
     [](Compilation& c) { c.grouping.groups[0].domain[0].extent = 9; }},
    {"a variable of another group", "gpu loss", "a domain variable is the group's own",
     [](Compilation& c) {
       auto [g, r] = root(c, RootKind::full);
       for (Group& other : c.grouping.groups)
         if (&other != &g && !other.domain.empty()) {
           g.domain[0].var = other.domain[0].var;
           return;
         }
     }},
    {"a domain variable twice", "norm", "a domain variable occurs once",
     [](Compilation& c) { c.grouping.groups[0].domain.push_back(c.grouping.groups[0].domain[0]); }},
    {"an index too few", "norm", "a root has an index for each axis",
     [](Compilation& c) { root(c, RootKind::full).second.index.pop_back(); }},
    {"an index shifted by one", "norm", "a root's index lies within its shape",
     [](Compilation& c) {
       Root& r = root(c, RootKind::full).second;
       r.index[0] = r.index[0] + 1;
     }},
    {"an index that stays where it is", "norm", "runs through each of its elements once",
     [](Compilation& c) {
       auto [g, r] = root(c, RootKind::full);
       r.index[0] = g.cx->constant(0);
     }},
    {"a square array transposed", "softmax", "a root is read in its own group where it stands",
     [](Compilation& c) {
       Root& r = root(c, RootKind::full).second;
       std::swap(r.index[0], r.index[1]);
     }},
    {"a reduction over rows and columns changed about", "softmax", "a reduction runs over the group's inner domain",
     [](Compilation& c) {
       auto [g, r] = root(c, RootKind::reduce);
       for (DomainVariable& v : g.domain) v.inner = false;
     }},
    {"a map as a reduction", "norm", "only a reduction stands as one",
     [](Compilation& c) { root(c, RootKind::full).second.kind = RootKind::reduce; }},
    {"a value for each row as one for each element", "norm", "a reduction stands as one or as columns",
     [](Compilation& c) { root(c, RootKind::reduce).second.kind = RootKind::full; }},
    {"columns that begin one row late", "gpu columns", "a column root has a value for each part of the rows",
     [](Compilation& c) {
       Root& r = root(c, RootKind::column).second;
       const int64_t parts = c.ir[r.node].type.shape[0].bound();
       r.index[0] = (r.index[0] + 1) % parts;
     }},
    // What plans say.
    {"a product of another operand", "mlp", "a matmul's operand lies as its descriptor says",
     [](Compilation& c) { group(c, Group::Kind::dot).dot.a.node = c.ir.inputs[1]; }},
    {"a product with a stride too long", "mlp", "a matmul's operand lies as its descriptor says",
     [](Compilation& c) { ++group(c, Group::Kind::dot).dot.desc.a_m; }},
    {"a product that begins too late", "mlp", "a matmul's operand lies as its descriptor says",
     [](Compilation& c) { ++group(c, Group::Kind::dot).dot.b.offset; }},
    {"a product whose result is transposed", "mlp", "a matmul's result lies as its descriptor says",
     [](Compilation& c) {
       kernel::DotDesc& d = group(c, Group::Kind::dot).dot.desc;
       std::swap(d.c_m, d.c_n);
     }},
    {"a product of another depth", "mlp", "a matmul's extents are its descriptor's",
     [](Compilation& c) { group(c, Group::Kind::dot).dot.desc.k -= 1; }},
    {"a product in another dtype", "mlp", "a matmul's dtypes are its descriptor's",
     [](Compilation& c) { group(c, Group::Kind::dot).dot.desc.b = float16; }},
    {"a bias without its buffer", "mlp", "what follows a matmul is its descriptor's",
     [](Compilation& c) { group(c, Group::Kind::dot).dot.operands.pop_back(); }},
    {"a bias that is read past its end", "mlp", "what follows a matmul is its descriptor's",
     [](Compilation& c) { ++group(c, Group::Kind::dot).dot.operands[0].offset; }},
    {"a bias of another dtype", "mlp", "an operand exists and has its step's dtype",
     [](Compilation& c) { group(c, Group::Kind::dot).dot.epilogue.operands[0].dtype = float16; }},
    {"a step that reads a later one", "mlp", "a step reads steps before it",
     [](Compilation& c) {
       kernel::Epilogue& e = group(c, Group::Kind::dot).dot.epilogue;
       e.steps[static_cast<size_t>(e.result)].inputs[0] = e.result;
     }},
    {"a result of another dtype", "mlp", "what follows a matmul is its descriptor's",
     [](Compilation& c) {
       kernel::Epilogue& e = group(c, Group::Kind::dot).dot.epilogue;
       e.steps[static_cast<size_t>(e.result)].dtype = float16;
     }},
    {"a matmul's operand that does not exist", "mlp", "a matmul's operand lies in memory",
     [](Compilation& c) { group(c, Group::Kind::dot).dot.b.node = c.ir.size(); }},
    {"a product that makes a result of another group", "mlp", "a matmul's group makes its results",
     [](Compilation& c) { group(c, Group::Kind::dot).dot.sum = group(c, Group::Kind::dot, 1).roots[0].node; }},
    {"attention over another array", "attention", "an array of attention lies as its plan says",
     [](Compilation& c) { group(c, Group::Kind::attention).attention.k.node = c.ir.inputs[0]; }},
    {"attention with a row too long", "attention", "an array of attention lies as its plan says",
     [](Compilation& c) { ++group(c, Group::Kind::attention).attention.v.row; }},
    {"attention of another array's results", "attention", "attention's group makes its results",
     [](Compilation& c) {
       AttentionPlan& plan = group(c, Group::Kind::attention).attention;
       plan.o.node = c.ir.inputs[0];
     }},
    {"a call of another operand", "sort", "a call's plan has its operands and results",
     [](Compilation& c) { group(c, Group::Kind::call).call.operands[0] = c.ir.inputs[0]; }},
    {"a call over another extent", "sort", "a call's arrays are its descriptor's",
     [](Compilation& c) { group(c, Group::Kind::call).call.desc.inputs[0].extents[1] = 8; }},
    {"a call's result that nobody is said to read", "sort", "a call's",
     [](Compilation& c) { group(c, Group::Kind::call).call.results[0] = -1; }},
};

}  // namespace

TEST_CASE("the verifier of groups refuses each planted fault by its rule") {
  for (const Fault& fault : faults)
    check_refused(fault, [](const Sample&, const Compilation& c) { verify(c.ir, c.grouping); });
}

TEST_CASE("a refused group is named with its number and the node as it is printed") {
  Compilation c = compiled(sample_program("mlp"));
  Group& g = group(c, Group::Kind::dot);
  ++g.dot.desc.a_m;
  const std::string message = refusal([&] { verify(c.ir, c.grouping); });
  CHECK(message.find(fmt::format("group {} (dot)", number_of(c, g))) != std::string::npos);
  CHECK(message.find(print(c.ir, c.ir[find(c.ir, Op::dot)].inputs[0])) != std::string::npos);
}
