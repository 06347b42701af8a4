// scheduled: returns its input, which the compiler computes as steps say (weft/schedule.h). Derivatives pass through:
// the steps are those of the value alone. attrs.call is the text of the steps.
#include <array>

#include "graph/rows.h"
#include "weft/schedule/steps.h"

namespace weft::graph {
namespace {

std::vector<Shape> scheduled_shape(const Attrs& attrs, TypeSpan in) {
  schedule::parse(attrs.call);  // refuses what is no list of steps
  return {in[0].shape};
}

Values scheduled_vjp(const Node&, ValueSpan, ValueSpan, ValueSpan g) { return {g[0]}; }

Values scheduled_jvp(const Node&, ValueSpan, ValueSpan, ValueSpan t) { return {t[0]}; }

/// Returns the name of an axis of a value that has one axis more in front.
std::string behind_batch(const std::string& name) {
  if (name.size() < 2 || name[0] != 'd' || name.find_first_not_of("0123456789", 1) != std::string::npos) return name;
  return "d" + std::to_string(std::stoll(name.substr(1)) + 1);
}

/// The batch is axis d0 of the result, and runs as the steps leave it.
Values scheduled_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  std::vector<schedule::Step> steps = schedule::parse(node.attrs().call).list();
  for (schedule::Step& step : steps)
    for (std::vector<std::string>* names : {&step.axes, &step.makes})
      for (std::string& name : *names) name = behind_batch(name);
  return {scheduled(to_front(x[0], axes[0]), schedule::Steps(std::move(steps)))};
}

Factors scheduled_factors(const Attrs&, TypeSpan, TypeSpan out) {
  const std::vector<int> axes = factors_from(0, out[0].rank());
  return {{axes}, {axes}};
}

std::vector<HostTensor> scheduled_reference(const Attrs&, std::span<const HostTensor> in, TypeSpan) { return {in[0]}; }

constexpr auto scheduled_table = std::to_array<Row>({
    {Op::scheduled, "scheduled", 1, 1, scheduled_shape, first_dtype, first_interval, scheduled_vjp, scheduled_jvp,
     scheduled_vmap, scheduled_factors, -1, scheduled_reference, 0, "its input, computed as steps say", "call"},
});
static_assert(complete(scheduled_table, Op::scheduled));

}  // namespace

std::span<const Row> scheduled_rows() { return scheduled_table; }

}  // namespace weft::graph
