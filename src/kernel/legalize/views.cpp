// Tiles in memory: scratch for values, and what moves elements of a tile in memory without moving them.
#include <algorithm>

#include "base/error.h"
#include "kernel/legalize/legalizer.h"

namespace weft::kernel {

bool View::whole() const {
  return std::all_of(limits.begin(), limits.end(), [](Value v) { return v == no_value; });
}

/// Returns a new local buffer as a row-major tile.
View Legalizer::scratch(Dtype dtype, const Dims& dims) {
  View out{.dtype = dtype, .offset = index(0), .dims = dims, .strides = Dims(dims.size(), 1)};
  int64_t elements = 1;
  for (size_t k = dims.size(); k-- > 0;) out.strides[k] = elements, elements *= dims[k];
  out.limits.assign(dims.size(), no_value);
  out.ref = b_.reserve(dtype, elements);
  return out;
}

/// Computes a tile into memory.
void Legalizer::store_to(Value v, const View& to) {
  each_chunk(type(v).dims, {}, [&](const Chunk& at) { write(to, at, value(v, at)); });
}

/// Lets a value lie in memory as long as the block that is being made is open: behind it, it may not have run.
void Legalizer::keep(Value v, const View& view) {
  frames_.back().put_away.emplace_back(v, held(v).view);
  held(v).view = view;
}

/// Returns a value as a tile in memory; computes it into scratch if it is not there yet.
const View& Legalizer::stored(Value v) {
  Held& h = held(v);
  if (!h.view) {
    const View to = scratch(type(v).dtype, type(v).dims);
    store_to(v, to);
    keep(v, to);
  }
  return *held(v).view;
}

/// Returns a value as a tile in memory all of whose elements are there.
const View& Legalizer::stored_whole(Value v) {
  if (const auto& view = held(v).view; view && !view->whole()) {
    const View to = scratch(type(v).dtype, type(v).dims);
    store_to(v, to);
    keep(v, to);
  }
  return stored(v);
}

/// Returns whether a chunk of the result is a chunk of the argument, or one element of it.
bool Legalizer::keeps_chunks(const Inst& inst) const {
  const Dims &from = type(inst.args[0]).dims, &to = inst.type.dims;
  switch (inst.op) {
    case Op::permute: return inst.axes.back() == static_cast<int64_t>(to.size()) - 1;
    case Op::slice: return inst.strides.back() == 1 || to.back() == 1;
    case Op::reshape: {
      Dims a, b;
      std::copy_if(from.begin(), from.end(), std::back_inserter(a), [](int64_t d) { return d != 1; });
      std::copy_if(to.begin(), to.end(), std::back_inserter(b), [](int64_t d) { return d != 1; });
      return a == b && (from.back() != 1 || to.back() == 1);
    }
    default: return true;
  }
}

/// Returns the tile that a movement of a tile in memory gives, if it is one in memory too.
std::optional<View> Legalizer::moved(const Inst& inst, const View& from) {
  View out = from;
  out.dims = inst.type.dims;
  const size_t rank = out.dims.size();
  switch (inst.op) {
    case Op::permute:
      for (size_t k = 0; k < rank; ++k) {
        const auto axis = static_cast<size_t>(inst.axes[k]);
        out.strides[k] = from.strides[axis], out.limits[k] = from.limits[axis];
      }
      return out;
    case Op::slice:
      if (!from.whole()) return std::nullopt;
      for (size_t k = 0; k < rank; ++k) {
        out.offset = add(out.offset, index(inst.axes[k] * from.strides[k]));
        out.strides[k] = from.strides[k] * inst.strides[k];
      }
      return out;
    case Op::broadcast: {
      const size_t missing = rank - from.dims.size();
      out.strides.assign(rank, 0), out.limits.assign(rank, no_value);
      for (size_t k = missing; k < rank; ++k) {
        const bool repeats = from.dims[k - missing] == 1 && out.dims[k] != 1;
        if (repeats && from.limits[k - missing] != no_value) return std::nullopt;
        if (!repeats) out.strides[k] = from.strides[k - missing], out.limits[k] = from.limits[k - missing];
      }
      return out;
    }
    case Op::reshape: {  // axes of extent 1 come and go; a row-major tile takes any shape
      std::vector<size_t> kept;
      for (size_t k = 0; k < from.dims.size(); ++k)
        if (from.dims[k] != 1) kept.push_back(k);
        else if (from.limits[k] != no_value) return std::nullopt;
      out.strides.assign(rank, 1), out.limits.assign(rank, no_value);
      size_t next = 0;
      bool same = true;
      for (size_t k = 0; k < rank && same; ++k) {
        if (out.dims[k] == 1) continue;
        same = next < kept.size() && from.dims[kept[next]] == out.dims[k];
        if (same) out.strides[k] = from.strides[kept[next]], out.limits[k] = from.limits[kept[next]], ++next;
      }
      if (same && next == kept.size()) return out;
      int64_t behind = 1;
      for (size_t k = from.dims.size(); k-- > 0;) {
        if (from.dims[k] != 1 && from.strides[k] != behind) return std::nullopt;
        behind *= from.dims[k];
      }
      if (!from.whole()) return std::nullopt;
      behind = 1;
      for (size_t k = rank; k-- > 0;) out.strides[k] = behind, behind *= out.dims[k];
      out.limits.assign(rank, no_value);
      return out;
    }
    default: return std::nullopt;
  }
}

}  // namespace weft::kernel
