#pragma once
// The state of a check of one instruction by the rules of kernel/rules.h, and its parts.
#include <string>

#include "kernel/rules.h"

namespace weft::kernel {

/// Looks at one instruction and collects the first complaint.
struct Rules {
  const Kernel& kernel;
  const Inst& inst;
  std::string wrong = {};

  bool require(bool ok, const char* message) {
    if (!ok && wrong.empty()) wrong = message;
    return wrong.empty();
  }
  const Type& arg(size_t k) const { return kernel.types[static_cast<size_t>(inst.args[k])]; }
  bool int64_scalar(size_t k) const { return arg(k).dtype == int64 && arg(k).rank() == 0; }
  bool absent(size_t k) const { return inst.args[k] == no_value; }

  bool shape_of_inst();
  void type(const Type& t) {
    require(!is_complex(t.dtype), "a complex dtype is no type of a tile");
    require(t.rank() <= most_axes, "a tile has at most four axes");
    for (int64_t d : t.dims) require(d >= 1, "a tile's extents are positive");
  }
  // n arguments; those from `optional` on may be absent.
  bool args(size_t n, size_t optional = SIZE_MAX) {
    if (!require(inst.args.size() == n, "the number of arguments is wrong")) return false;
    for (size_t k = 0; k < n && k < optional; ++k) require(!absent(k), "an argument is missing");
    return wrong.empty();
  }
  void number() {
    require(round_to(inst.number, inst.type.dtype) == inst.number, "the number is not one of the dtype");
  }
  bool memory(Dtype t) {
    return require(is_ref(kernel, inst.ref), "the reference names no parameter or local buffer") &&
           require(!is_barrier(kernel, inst.ref), "barriers are no memory that is read or written") &&
           require(ref_dtype(kernel, inst.ref) == t, "the dtype differs from the buffer's");
  }
  void writable() {
    if (is_ref(kernel, inst.ref) && !is_local(kernel, inst.ref))
      require(kernel.params[static_cast<size_t>(inst.ref)].written, "the parameter is not declared as written");
  }

  void scalar();
  void permute();
  void part();
  void cat();
  bool combined(bool drops);
  bool scalars(const Block& body, size_t count);
  void take();
  void lanes();
  void inline_code();
  void sort();
  void branches();
  void atomic();
  void broadcast();
  void reshape();
  void dot();
  void slice(const Type& tile);
  void indexed(const Type& tile, size_t index);
  void loop();
  void when();
  void asynchronous();
  void copy();
  void leaf();
  void movement();
  void access();
  void wait();
  void neighbour();
  void check();
};

}  // namespace weft::kernel
