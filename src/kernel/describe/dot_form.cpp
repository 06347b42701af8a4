#include "kernel/describe/dot_form.h"

#include <algorithm>

namespace weft::kernel {

std::vector<BatchAxis> merged_batch(const DotDesc& d) {
  std::vector<BatchAxis> axes;
  for (size_t i = 0; i < d.batch.size(); ++i) {
    if (d.batch[i] != 1) axes.push_back({d.batch[i], d.a_batch[i], d.b_batch[i], d.c_batch[i]});
  }
  std::stable_sort(axes.begin(), axes.end(), [](const BatchAxis& x, const BatchAxis& y) { return x.c > y.c; });
  std::vector<BatchAxis> out;
  for (const BatchAxis& in : axes) {
    if (!out.empty() && out.back().a == in.a * in.extent && out.back().b == in.b * in.extent &&
        out.back().c == in.c * in.extent) {
      out.back() = {out.back().extent * in.extent, in.a, in.b, in.c};
    } else {
      out.push_back(in);
    }
  }
  return out;
}

void batch_into_rows(DotDesc& d, std::vector<BatchAxis>& axes) {
  while (!axes.empty()) {
    const BatchAxis& in = axes.back();
    const bool lone_row = d.m == 1;
    if (in.b != 0 || (!lone_row && (in.a != d.m * d.a_m || in.c != d.m * d.c_m))) return;
    if (lone_row) d.a_m = in.a, d.c_m = in.c;
    d.m *= in.extent;
    axes.pop_back();
  }
}

DotDesc with_merged_batch(DotDesc d) {
  std::vector<BatchAxis> axes = merged_batch(d);
  batch_into_rows(d, axes);
  d.batch.clear(), d.a_batch.clear(), d.b_batch.clear(), d.c_batch.clear();
  for (const BatchAxis& axis : axes) {
    d.batch.push_back(axis.extent);
    d.a_batch.push_back(axis.a), d.b_batch.push_back(axis.b), d.c_batch.push_back(axis.c);
  }
  return d;
}

}  // namespace weft::kernel
