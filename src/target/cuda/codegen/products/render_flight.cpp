// Renders the waits for products of warpgroups. Tensor cores take products in their order, and go on while the threads
// that asked for them compute: a program waits for a product where its result is read, and what an operand of it lay in
// is free from then on. Only kernels whose loops carry no sums in place do so, whose own waits count products too.
#include <fmt/format.h>

#include <algorithm>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Inst;
using kernel::Op;
using kernel::Value;

/// Decides whether products go on while others begin.
void Renderer::find_flights() {
  flies_ = std::none_of(products_.begin(), products_.end(), [](const auto& p) { return p.second.in_place; });
}

/// Waits for the first `count` products that are under way, and lets the producer refill what they have read.
void Renderer::finish_products(size_t count) {
  if (count == 0) return;
  add(fmt::format("wgmma_wait<{}>();", in_flight_.size() - count));
  const std::vector<const Product*> done(in_flight_.begin(), in_flight_.begin() + static_cast<std::ptrdiff_t>(count));
  in_flight_.erase(in_flight_.begin(), in_flight_.begin() + static_cast<std::ptrdiff_t>(count));
  for (const Product* p : done) {
    if (flies_) add(fmt::format("wgmma_settle<{}>({});", p->layout.registers(), fresh(p->result())));
    if (producer_ && p->loop) release(*p, "slot");
    release_single(*p);
  }
}

/// Waits for the products that an instruction reads; for all of them before one that has blocks.
void Renderer::finish_products_before(const Inst& i) {
  if (in_flight_.empty()) return;
  if (!i.blocks.empty()) return finish_products(in_flight_.size());
  std::vector<Value> read(i.args.begin(), i.args.end());
  const auto sum = i.results.size() == 1 ? sums_.find(i.results[0]) : sums_.end();
  const auto found = sum != sums_.end()      ? products_.find(sum->second)
                     : i.results.size() == 1 ? products_.find(i.results[0])
                                             : products_.end();
  if (found != products_.end()) {
    const Product& p = found->second;
    if (p.sum && p.dot == &i) return;  // it is rendered with the sum
    read = {p.start()};
    for (const Operand* x : {&p.a, &p.b}) {
      const Value seen = p.dot->args[x == &p.b];
      read.push_back(x->value);
      if (const auto rounded = casts_.find(seen); rounded != casts_.end()) read.push_back(rounded->second);
    }
  }
  size_t count = 0;
  for (size_t k = 0; k < in_flight_.size(); ++k)
    if (std::find(read.begin(), read.end(), in_flight_[k]->result()) != read.end()) count = k + 1;
  finish_products(count);
}

}  // namespace weft::target::cuda
