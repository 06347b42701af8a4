// weft/schedule.h: arrays that are computed as steps say.
#include "weft/schedule.h"

#include "array/op_support.h"
#include "graph/build.h"

namespace weft {

array scheduled(const array& a, const schedule::Steps& steps, StreamOrDevice s) {
  const detail::OnStream scope("scheduled", s);
  return array(graph::scheduled(a.value(), steps));
}

array scheduled(const array& a, std::string_view steps, StreamOrDevice s) {
  return scheduled(a, schedule::parse(steps), s);
}

}  // namespace weft
