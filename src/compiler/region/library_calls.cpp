#include "compiler/region/library_calls.h"

#include "compiler/ir/ir.h"

namespace weft::compiler {

bool library_takes_region(const graph::Node& region, const target::Target& target, const Policy& policy) {
  const graph::Attrs& attrs = region.attrs();
  if (attrs.composite->call.empty() || !policy.libraries || !target::libraries_enabled()) return false;
  std::vector<graph::Type> inputs;
  for (const graph::Value& v : region.inputs()) inputs.push_back(v.type());
  return target.call(call_desc(attrs, inputs, region.types(), policy.numerics)) != nullptr;
}

}  // namespace weft::compiler
