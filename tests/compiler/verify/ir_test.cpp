// Faults planted in a graph between two passes: each is refused, and its rule and node are named.
#include "compiler/ir/verify.h"

#include "compiler/verify/programs.h"

using namespace weft;
using namespace weft::compiler;
using namespace weft::compiler::testing;
using graph::Op;

namespace {

void drop(Ir& ir, NodeId id) {
  for (IrNode& n : ir.nodes)
    for (NodeId& input : n.inputs)
      if (input == id) input = ir[id].inputs[0];
  for (NodeId& output : ir.outputs)
    if (output == id) output = ir[id].inputs[0];
}

const std::vector<Fault> faults{
    {"an operand that does not exist", "norm", "every operand exists",
     [](Compilation& c) { node(c, Op::add).inputs[0] = c.ir.size(); }},
    {"an operand that is computed later", "norm", "operands come before their user",
     [](Compilation& c) { node(c, Op::add).inputs[0] = c.ir.outputs[1]; }},
    {"an operand too few", "norm", "the number of operands is the operator's",
     [](Compilation& c) { node(c, Op::add).inputs.pop_back(); }},
    {"a reduction dropped", "softmax", "fit the operator", [](Compilation& c) { drop(c.ir, find(c.ir, Op::reduce)); }},
    {"a cast of another dtype", "norm", "the type follows from the operator's row",
     [](Compilation& c) { node(c, Op::add).type.dtype = float16; }},
    {"a result of another shape", "norm", "the type follows from the operator's row",
     [](Compilation& c) {
       node(c, Op::add).type.shape = {32, 8};
     }},
    {"operands of a product swapped", "mlp", "the type follows from the operator's row",
     [](Compilation& c) { std::swap(node(c, Op::dot).inputs[0], node(c, Op::dot).inputs[1]); }},
    {"an operand of another shape", "norm", "fit the operator",
     [](Compilation& c) { node(c, Op::add).inputs[1] = c.ir.inputs[2]; }},
    {"a reduction over an axis that there is not", "softmax", "fit the operator",
     [](Compilation& c) { node(c, Op::reduce).attrs.edit().axes = {2}; }},
    {"an attribute of another operator", "norm", "the operator reads its attributes, but not axes",
     [](Compilation& c) { node(c, Op::add).attrs.edit().axes = {0}; }},
    {"a product over another axis", "mlp", "fit the operator",
     [](Compilation& c) { node(c, Op::dot).attrs.edit().axes = {0}; }},
    {"a scatter along another axis", "scatter", "fit the operator",
     [](Compilation& c) { node(c, Op::scatter).attrs.edit().axes = {2}; }},
    {"a slice outside of its array", "gpu columns", "fit the operator",
     [](Compilation& c) {
       IrNode& n = node(c, Op::broadcast);
       n.op = Op::slice;
       n.attrs.edit().start.assign(n.type.shape.size(), 1);
     }},
    {"a result that a call does not have", "sort", "the call has this result",
     [](Compilation& c) { node(c, Op::call).output = 2; }},
    {"a call's node with another result's type", "sort", "a call's node has its result's type",
     [](Compilation& c) { node(c, Op::call).output = 1; }},
    {"a call with results of its own", "sort", "a call's results follow from its rule",
     [](Compilation& c) {
       IrNode& n = node(c, Op::call);
       n.results[0].dtype = n.type.dtype = float16;
     }},
    {"several results of an operator", "norm", "only calls and states of reducers have several results",
     [](Compilation& c) { node(c, Op::add).output = 1; }},
    {"pieces of attention that leave out keys", "gpu decode", "a part of attention has the region's shapes",
     [](Compilation& c) { node(c, Op::composite).attrs.edit().integers[2] = 1; }},
    {"a product with one row that is no sum", "gpu row", "only a sum is marked as a GEMV",
     [](Compilation& c) { node(c, Op::tanh).gemv = true; }},
    {"a fused addition of no product", "norm", "only an addition of a product is marked as fused",
     [](Compilation& c) { node(c, Op::add).fused = true; }},
    {"a layout of a computed value", "norm", "only an input has a layout of its own",
     [](Compilation& c) { node(c, Op::add).row_major = false; }},
    {"an input listed twice", "norm", "an input is listed once",
     [](Compilation& c) { c.ir.inputs[1] = c.ir.inputs[0]; }},
    {"an input left out", "norm", "a parameter is an input", [](Compilation& c) { c.ir.inputs.pop_back(); }},
    {"an output that does not exist", "norm", "every output exists", [](Compilation& c) { c.ir.outputs[0] = -1; }},
    {"an output of another type", "norm", "an output has the source's type",
     [](Compilation& c) { c.ir.outputs[0] = c.ir.inputs[2]; }},
    {"an output dropped", "norm", "the number of outputs is the source's",
     [](Compilation& c) { c.ir.outputs.pop_back(); }},
    {"inputs in another order", "norm", "an input has the source's type",
     [](Compilation& c) { std::swap(c.ir.inputs[0], c.ir.inputs[2]); }},
};

}  // namespace

TEST_CASE("the verifier of graphs refuses each planted fault by its rule") {
  for (const Fault& fault : faults)
    check_refused(fault, [](const Sample& p, const Compilation& c) { verify(c.ir, interface_of(import(p.source))); });
}

TEST_CASE("a refused graph is named by the node as it is printed") {
  Compilation c = compiled(sample_program("norm"));
  const NodeId id = find(c.ir, Op::add);
  c.ir.nodes[id].type.dtype = float16;
  CHECK(refusal([&] { verify(c.ir); }).find(print(c.ir, id)) != std::string::npos);
}
