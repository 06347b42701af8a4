#include "compiler/region/library_calls.h"

#include "compiler/ir/ir.h"
#include "compiler/rewrite/small_convolution.h"
#include "graph/regions/convolution.h"
#include "graph/rows.h"

namespace weft::compiler {

namespace {

constexpr int64_t load_bytes = 16;  // of one element of a convolution library's tiles on a GPU: neighbouring channels

/// Returns whether a region is a convolution that is a dot of the image's pixels in another order, and whose pixels a
/// GPU's libraries cannot load: they then convolve element by element, or move the image first. One pass over the image
/// and a dot at a library's rate take less. Where the channels of a pixel fill whole loads, nothing has to be moved;
/// few taps become arithmetic instead. An input's gradient is such a dot whatever its channels: the order of its pixels
/// is the dot's epilogue or its neighbours' (docs/notes/gpu-convolutions.md).
bool is_dot_of_patches(const graph::Node& region, const target::Machine& machine) {
  const graph::Composite& composite = *region.attrs().composite;
  const bool weights = composite.call == "convolution_weights", input = composite.call == "convolution_input";
  if (!machine.simt || (!weights && !input && composite.call != "convolution")) return false;
  const graph::Type& x = region.inputs()[0].type();
  const Shape& w = weights ? region.types()[0].shape : region.inputs()[1].shape();
  const std::vector<int64_t> kernel = graph::bounds(Shape(w.begin() + 1, w.end() - 1));
  const int64_t pixel = x.shape.back().bound() * x.dtype.size(), elements = num_elements(w) / w[0].bound();
  const bool tile = graph::windows_tile(graph::convolution_form(composite.integers), kernel);
  if (input) return tile;
  return pixel % load_bytes != 0 && elements * x.dtype.size() % load_bytes == 0 && elements > most_convolution_taps &&
         tile;
}

}  // namespace

bool library_takes_region(const graph::Node& region, const target::Target& target, const Policy& policy) {
  const graph::Attrs& attrs = region.attrs();
  if (attrs.composite->call.empty() || !policy.libraries || !target::libraries_enabled()) return false;
  if (is_dot_of_patches(region, target.machine())) return false;
  std::vector<graph::Type> inputs;
  for (const graph::Value& v : region.inputs()) inputs.push_back(v.type());
  return target.call(call_desc(attrs, inputs, region.types(), policy.numerics)) != nullptr;
}

}  // namespace weft::compiler
