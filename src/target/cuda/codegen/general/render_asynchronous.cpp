// Renders asynchronous copies and barriers: cp.async in chunks of 4 to 16 bytes, where rows are aligned to them; whole
// rows by cp.async.bulk, where a device has it and a barrier waits for it; else loads and stores, which are done at
// once. Tiles that are boxes go by TMA (products/box_copies.cpp). Barriers are mbarriers: one thread arrives for all of
// a program's or a role's.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "kernel/rules.h"
#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Op;
using kernel::Ref;

int Renderer::swizzle_of(Ref ref) const {
  return is_local(ref) ? kernel_.locals[static_cast<size_t>(ref) - kernel_.params.size()].swizzle : 0;
}

/// Returns the text of where an element of a buffer lies.
std::string Renderer::placed_at(Ref ref, const std::string& address) const {
  const int line = swizzle_of(ref);
  return line > 0 ? fmt::format("swizzled<{}, {}>({})", line, dtype_of(ref).size(), address) : address;
}

/// Returns the address of a barrier.
std::string Renderer::barrier(Ref ref, Value place) const {
  return fmt::format("shared_address({} + {})", buffer(ref), at(place));
}

/// Sets barriers to phase 0 before anyone uses them.
void Renderer::make_barriers(const Inst& alloc) {
  if (!kernel::is_barrier(kernel_, alloc.ref)) return;
  const int64_t arrivals = kernel_.locals[static_cast<size_t>(alloc.ref) - kernel_.params.size()].arrivals;
  add(fmt::format("if (t == 0) for (int k = 0; k < {}; ++k) begin_barrier(shared_address({} + k), {});", alloc.number.i,
                  buffer(alloc.ref), arrivals));
  sync();
}

void Renderer::asynchronous(const Inst& inst) {
  switch (inst.op) {
    case Op::copy_async: return copy_async(inst);
    case Op::commit_copies: return add("commit_copies();");
    case Op::wait_copies:  // of all threads
      add(fmt::format("wait_copies<{}>();", inst.number.i));
      sync();
      dirty_.clear(), read_.clear();
      return;
    case Op::arrive:
      sync();
      dirty_.clear(), read_.clear();
      add(fmt::format("if (t == 0) arrive_at({});", barrier(inst.ref, inst.args[0])));
      return;
    case Op::await:
      return add(fmt::format("await_parity({}, (u32)({}) & 1);", barrier(inst.ref, inst.args[0]), at(inst.args[1])));
    default: throw_internal("cuda render", "no asynchronous instruction");
  }
}

/// How a copy is made: `bytes` at once, 0: element by element; the text of an element's address, from and to, and of
/// whether it exists.
struct Renderer::CopyForm {
  int64_t bytes = 0;
  bool bulk = false;
  std::string to, from, guard;
};

Renderer::CopyForm Renderer::copy_form(const Inst& inst) const {
  const auto& dims = inst.type.dims;
  const size_t rank = dims.size();
  const int64_t size = inst.type.dtype.size();
  CopyForm out;
  out.to = at(inst.args[0]), out.from = at(inst.args[1]);
  const std::vector<std::string> position =
      rank >= 2 ? positions("e", dims) : std::vector<std::string>(rank, std::string("e"));
  int64_t aligned = 16 / size;  // elements
  const auto limit_to = [&](int64_t divisor) {
    while (aligned > 1 && divisor % aligned != 0) aligned /= 2;
  };
  limit_to(divisor(inst.args[0])), limit_to(divisor(inst.args[1]));
  bool whole = true;
  for (size_t k = 0; k < rank; ++k) {
    const int64_t to = inst.strides[k], from = inst.strides[rank + k];
    if (k + 1 == rank) limit_to(to == 1 && from == 1 ? dims[k] : 1);
    else limit_to(to), limit_to(from);
    out.to += fmt::format(" + {} * {}ll", position[k], to);
    out.from += fmt::format(" + {} * {}ll", position[k], from);
    const Value limit = inst.args[2 + k];
    if (limit == kernel::no_value) continue;
    whole = false;
    out.guard += fmt::format("{}{} < {}", out.guard.empty() ? "" : " && ", position[k], at(limit));
    if (k + 1 == rank) limit_to(divisor(limit));
  }
  const bool filled = whole || filling(inst.number, inst.type.dtype) == 0u;
  if (rank > 0 && variant_.aligned && filled && aligned * size >= 4) out.bytes = aligned * size;
  out.bulk = features_.clusters && inst.right >= 0 && whole && out.bytes == 16 && swizzle_of(inst.ref) == 0 &&
             dims.back() * size % 16 == 0;
  return out;
}

/// Renders a copy. Its elements are not read before the wait for it, which is a barrier of the threads.
void Renderer::copy_async(const Inst& inst) {
  const CopyForm form = copy_form(inst);
  before_read(inst.left);
  before_write(inst.ref);
  dirty_.erase(inst.ref);  // the wait for it comes before its readers
  if (const auto box = box_copies_.find(&inst); box != box_copies_.end()) return copy_box(inst, box->second);
  if (form.bulk) return copy_in_bulk(inst, form);
  if (form.bytes > 0) {
    copy_chunks(inst, form);
    if (inst.right >= 0) add(fmt::format("track_copies({});", barrier(inst.right, inst.args.back())));
    return;
  }
  dirty_.insert(inst.ref);
  open(fmt::format("for (int e = t; e < {}; e += {})", inst.type.size(), threads_));
  const std::string element = fmt::format("{}[{}]", buffer(inst.left), form.from),
                    other = inst.type.dtype == bool_ ? fmt::format("{}", inst.number.i != 0 ? 1 : 0)
                                                     : literal(inst.number, inst.type.dtype);
  add(fmt::format("{}[{}] = {};", buffer(inst.ref), placed_at(inst.ref, form.to),
                  form.guard.empty() ? element : fmt::format("{} ? {} : {}", form.guard, element, other)));
  close();
}

void Renderer::copy_chunks(const Inst& inst, const CopyForm& form) {
  const int64_t elements = form.bytes / inst.type.dtype.size();
  open(fmt::format("for (int c = t; c < {}; c += {})", inst.type.size() / elements, threads_));
  add(fmt::format("const int e = c * {};", elements));
  std::string from = form.from, bytes = fmt::format("{}", form.bytes);
  if (!form.guard.empty()) {
    add(fmt::format("const bool there = {};", form.guard));
    from = fmt::format("index_if(there, {})", from), bytes = fmt::format("there ? {} : 0", form.bytes);
  }
  add(fmt::format("{}(shared_address({} + {}), {} + {}, {});",
                  form.bytes == 16 ? "copy_async" : fmt::format("copy_few_async<{}>", form.bytes), buffer(inst.ref),
                  placed_at(inst.ref, form.to), buffer(inst.left), from, bytes));
  close();
}

/// Renders the copy of rows by one thread; the barrier counts their bytes.
void Renderer::copy_in_bulk(const Inst& inst, const CopyForm& form) {
  const int64_t row = inst.type.dims.back(), size = inst.type.dtype.size();
  const std::string at_barrier = barrier(inst.right, inst.args.back());
  sync();
  open("if (t == 0)");
  add(fmt::format("expect_bytes({}, {});", at_barrier, inst.type.size() * size));
  open(fmt::format("for (int e = 0; e < {}; e += {})", inst.type.size(), row));
  add(fmt::format("copy_bulk(shared_address({} + {}), {} + {}, {}, {});", buffer(inst.ref), form.to, buffer(inst.left),
                  form.from, row * size, at_barrier));
  close();
  close();
}

}  // namespace weft::target::cuda
