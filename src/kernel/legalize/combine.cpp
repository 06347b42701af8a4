// Reductions and scans in the order that tile.h defines: the upper half of an axis onto the lower, until one is left.
#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.h"
#include "kernel/legalize/legalizer.h"
#include "kernel/rules.h"

namespace weft::kernel {
namespace {

constexpr int64_t most_at_once = 8;  // chunks that are combined in registers
constexpr int64_t chains = 2;        // of chunks, where the order of a reduction cannot be seen

/// Returns whether a reduction gives the same bits in any order: extremes (all NaN are one) and integers.
bool is_in_any_order(const Inst& inst, Dtype t) {
  return inst.blocks.empty() && (!is_float(t) || info(inst.reducer).kind == ReducerKind::extreme);
}

}  // namespace

/// How elements are combined: by a reducer's operator, or by a block.
struct Legalizer::Combination {
  const Inst& inst;
  std::vector<Dtype> dtypes;  // of the tiles, as they are combined
  bool by_block() const { return !inst.blocks.empty(); }
};

/// Combines chunks of one width, lane by lane.
Legalizer::Vectors Legalizer::combined(const Combination& by, const Vectors& low, const Vectors& high) {
  if (!by.by_block()) return {b_.scalar(kernel::combine(by.inst.reducer), {low[0], high[0]})};
  const Block& body = by.inst.blocks[0];
  const Dims dims = b_.type(low[0]).dims;
  std::map<Value, Value> made;
  for (size_t k = 0; k < body.arguments.size(); ++k)
    made[body.arguments[k]] = k < low.size() ? low[k] : high[k - low.size()];
  const auto vector = [&](Value v) {
    const auto found = made.find(v);
    if (found != made.end()) return found->second;
    return b_.broadcast(scalar(v), dims);  // a scalar from outside
  };
  const std::function<std::vector<Value>(const Block&)> run = [&](const Block& block) {
    std::vector<Value> yielded;
    for (const Inst& i : block.insts) {
      std::vector<Value> args;
      for (const Value v : i.args) args.push_back(vector(v));
      switch (i.op) {
        case Op::yield: return args;
        case Op::constant: made[i.results[0]] = b_.constant(i.type.dtype, i.number, dims); break;
        case Op::cast: made[i.results[0]] = b_.cast(args[0], i.type.dtype); break;
        case Op::bitcast: made[i.results[0]] = b_.bitcast(args[0], i.type.dtype); break;
        case Op::broadcast: made[i.results[0]] = args[0]; break;
        case Op::scalar: made[i.results[0]] = b_.scalar(i.scalar_op, args); break;
        case Op::when: {
          const std::vector<Value> out =
              b_.when(args[0], {args.begin() + 1, args.end()}, [&] { return run(i.blocks[0]); });
          for (size_t k = 0; k < out.size(); ++k) made[i.results[k]] = out[k];
          break;
        }
        default: throw_internal("legalize", print_inst(from_, i) + ": a reduction's function works on scalars");
      }
    }
    return yielded;
  };
  return run(body);
}

/// Reduces the lanes of vectors to one.
Legalizer::Vectors Legalizer::across_lanes(const Combination& by, Vectors v) {
  int64_t width = b_.type(v[0]).dims[0];
  if (!by.by_block()) return {width == 1 ? lane(v[0]) : b_.reduce(by.inst.reducer, v[0], 0)};
  for (int64_t half = width / 2; half > 0; half /= 2) {
    Vectors upper;
    for (const Value x : v) upper.push_back(b_.shift(x, x, -half));
    v = combined(by, v, upper);
  }
  for (Value& x : v) x = lane(x);
  return v;
}

/// Combines at(0), at(1), … at(count - 1), which are chunks of `width` lanes, in the order of a reduction of `count`
/// elements. Many chunks are combined a few at a time, and the results put into scratch.
Legalizer::Vectors Legalizer::tree(const Combination& by, int64_t count, int64_t width,
                                   const std::function<Vectors(Value)>& at) {
  // Leaf k of a tree of a power of two; the halves are combined as soon as both are there, so that few wait.
  const auto fold = [&](int64_t leaves, const std::function<Vectors(int64_t)>& leaf) {
    const std::function<Vectors(int64_t, int64_t)> node = [&](int64_t k, int64_t step) {
      if (step == leaves) return leaf(k);
      const Vectors low = node(k, 2 * step);
      return combined(by, low, node(k + step, 2 * step));
    };
    return node(0, 1);
  };
  if (count <= most_at_once) {
    const auto leaves = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count)));
    return fold(leaves, [&](int64_t k) {
      const Vectors own = at(index(k));
      return k + leaves < count ? combined(by, own, at(index(k + leaves))) : own;
    });
  }
  if (is_in_any_order(by.inst, by.dtypes[0])) return chained(by, count, at);
  const auto whole = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count)));
  const int64_t rest = count - whole;  // elements behind the largest power of two go onto the first ones
  const int64_t parts = most_at_once, length = whole / parts;
  std::vector<View> partial;
  for (const Dtype t : by.dtypes) partial.push_back(scratch(t, {length, width}));
  const auto put = [&](Value i, const Vectors& v) {
    for (size_t k = 0; k < v.size(); ++k) write(partial[k], {{i}, index(0), width}, v[k]);
  };
  const auto element = [&](Value i, int64_t part, bool second) {  // (part · length + i), with what goes onto it
    const Value own = add(i, index(part * length));
    const Vectors low = at(own);
    return second ? combined(by, low, at(add(own, index(whole)))) : low;
  };
  // Of each part the elements below `rest` have a second one: all, none, or those before a boundary.
  const int64_t boundary = rest % length;
  const auto sweep = [&](int64_t lo, int64_t hi, bool first) {
    each(index(lo), index(hi), 1, [&](Value i) {
      put(i,
          fold(parts, [&](int64_t part) { return element(i, part, part * length + (first ? 0 : boundary) < rest); }));
    });
  };
  sweep(0, boundary, true);
  sweep(boundary, length, false);
  return tree(by, length, width, [&](Value i) {
    Vectors out;
    for (const View& v : partial) out.push_back(read(v, {{i}, index(0), width}));
    return out;
  });
}

/// Combines at(0) … at(count - 1) one after the other, in a few chains: memory is read once, from its beginning to its
/// end, and nothing is put aside. For reductions that give the same bits in any order.
Legalizer::Vectors Legalizer::chained(const Combination& by, int64_t count, const std::function<Vectors(Value)>& at) {
  Vectors sums;
  for (int64_t k = 0; k < chains; ++k) sums.push_back(at(index(k))[0]);
  const int64_t whole = count / chains * chains;
  sums = b_.loop(index(chains), index(whole), index(chains), sums, [&](Value i, const Vectors& carried) {
    Vectors next;
    in_frame([&] {
      for (int64_t k = 0; k < chains; ++k)
        next.push_back(combined(by, {carried[static_cast<size_t>(k)]}, at(add(i, index(k))))[0]);
    });
    return next;
  });
  for (int64_t k = whole; k < count; ++k) sums[0] = combined(by, {sums[0]}, at(index(k)))[0];
  for (size_t k = 1; k < sums.size(); ++k) sums[0] = combined(by, {sums[0]}, {sums[k]})[0];
  return {sums[0]};
}

/// Reduces several short rows of a tile in memory at once: the lanes of all of them are combined in few operations.
/// Returns whether the tile is one of these.
bool Legalizer::reduce_together(const Combination& by, int64_t width, const View& to) {
  const Inst& inst = by.inst;
  const auto& from = held(inst.args[0]).view;
  const int64_t together = registers_.count / 4, count = type(inst.args[0]).dims.back() / width;
  if (by.by_block() || count > most_at_once || width < 2 || to.dims.back() % together != 0 || !from || !from->whole() ||
      from->strides.back() != 1)
    return false;
  const size_t rank = to.dims.size();
  Chunk at{{}, no_value, together};
  const std::function<void()> nest = [&] {
    const size_t axis = at.index.size();
    each(index(0), index(to.dims[axis]), axis + 1 < rank ? 1 : together, [&](Value i) {
      if (axis + 1 < rank) {
        at.index.push_back(i);
        nest();
        at.index.pop_back();
        return;
      }
      at.start = i;
      Value first = add(from->offset, mul(i, index(from->strides[axis])));
      for (size_t k = 0; k < axis; ++k) first = add(first, mul(at.index[k], index(from->strides[k])));
      const Vectors rows = tree(by, count, width, [&](Value chunk) {
        const Value v =
            b_.load(from->ref, add(first, mul(chunk, index(width))), {together, width}, {from->strides[axis], 1});
        return Vectors{b_.cast(v, by.dtypes[0])};
      });
      write(to, at, b_.cast(b_.reduce(inst.reducer, rows[0], 1), to.dtype));
    });
  };
  nest();
  return true;
}

void Legalizer::reduce(const Inst& inst) {
  Combination by{inst, {}};
  const Type& from = type(inst.args[0]);
  const auto axis = static_cast<size_t>(inst.axis);
  const bool low = !by.by_block() && is_low_float(from.dtype);  // combined in float32, rounded at the end
  for (const Value v : inst.args) by.dtypes.push_back(low ? Dtype(float32) : type(v).dtype);
  const auto chunks = [&](const Chunk& at) {
    Vectors out;
    for (size_t k = 0; k < inst.args.size(); ++k) out.push_back(b_.cast(value(inst.args[k], at), by.dtypes[k]));
    return out;
  };
  const bool last = axis + 1 == from.dims.size();
  const int64_t extent = from.dims[axis];
  // Along the last axis by chunks of lanes. Where they do not divide it, the elements behind the largest power of two
  // go onto the first ones in scratch first.
  const auto whole = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(extent)));
  const int64_t width = std::min(registers_.bytes / 4 * 2, whole), rest = extent - whole;
  std::vector<View> folded;
  if (last && extent % width != 0)
    for (const Dtype t : by.dtypes) folded.push_back(scratch(t, {whole}));
  const auto line = [&](const std::vector<Value>& position) {
    if (extent % width == 0)
      return across_lanes(by, tree(by, extent / width, width, [&](Value i) {
                            return chunks({position, mul(i, index(width)), width});
                          }));
    const auto put = [&](Value start, int64_t lanes, bool second) {
      Vectors v = chunks({position, start, lanes});
      if (second) v = combined(by, v, chunks({position, add(start, index(whole)), lanes}));
      for (size_t k = 0; k < v.size(); ++k) write(folded[k], {{}, start, lanes}, v[k]);
    };
    each_part(rest, no_value, width, [&](Value start, int64_t lanes) { put(start, lanes, true); });
    each_part(whole - rest, no_value, width,
              [&](Value start, int64_t lanes) { put(add(start, index(rest)), lanes, false); });
    return across_lanes(by, tree(by, whole / width, width, [&](Value i) {
                          Vectors out;
                          for (const View& v : folded) out.push_back(read(v, {{}, mul(i, index(width)), width}));
                          return out;
                        }));
  };
  const auto narrowed = [&](size_t k, Value v) { return b_.cast(v, type(inst.results[k]).dtype); };
  if (from.dims.size() == 1) {
    const Vectors out = line({});
    for (size_t k = 0; k < out.size(); ++k) held(inst.results[k]).scalar = narrowed(k, out[k]);
    return;
  }
  std::vector<View> to;
  for (const Value v : inst.results) to.push_back(scratch(type(v).dtype, type(v).dims));
  if (last && extent % width == 0 && reduce_together(by, width, to[0])) {
    held(inst.results[0]).view = to[0];
    return;
  }
  if (last) {
    Dims rows = inst.type.dims;
    std::vector<Value> position;
    const std::function<void()> nest = [&] {
      if (position.size() == rows.size()) {
        const Vectors out = line(position);
        const Chunk one{{position.begin(), position.end() - 1}, position.back(), 1};
        for (size_t k = 0; k < out.size(); ++k) write(to[k], one, b_.broadcast(narrowed(k, out[k]), {1}));
        return;
      }
      each(index(0), index(rows[position.size()]), 1, [&](Value i) {
        position.push_back(i);
        nest();
        position.pop_back();
      });
    };
    nest();
  } else {
    each_chunk(inst.type.dims, {}, [&](const Chunk& at) {
      const Vectors out = tree(by, extent, at.width, [&](Value i) {
        Chunk from_chunk = at;
        from_chunk.index.insert(from_chunk.index.begin() + static_cast<std::ptrdiff_t>(axis), i);
        return chunks(from_chunk);
      });
      for (size_t k = 0; k < out.size(); ++k) write(to[k], at, narrowed(k, out[k]));
    });
  }
  for (size_t k = 0; k < to.size(); ++k) held(inst.results[k]).view = to[k];
}

/// Scans tiles in scratch, in place: for d = 1, 2, 4, … element i becomes element i - d combined with it.
void Legalizer::scan(const Inst& inst) {
  Combination by{inst, {}};
  const bool low = !by.by_block() && is_low_float(type(inst.args[0]).dtype);
  std::vector<View> tiles;
  for (const Value v : inst.args) {
    by.dtypes.push_back(low ? Dtype(float32) : type(v).dtype);
    tiles.push_back(scratch(by.dtypes.back(), type(v).dims));
    each_chunk(type(v).dims, {},
               [&](const Chunk& at) { write(tiles.back(), at, b_.cast(value(v, at), by.dtypes.back())); });
  }
  scan_axis(by, tiles, static_cast<size_t>(inst.axis), inst.reverse);
  for (size_t k = 0; k < tiles.size(); ++k) {
    if (low) {
      const View wide = tiles[k];
      tiles[k] = scratch(type(inst.results[k]).dtype, wide.dims);
      each_chunk(wide.dims, {}, [&](const Chunk& at) { write(tiles[k], at, b_.cast(read(wide, at), tiles[k].dtype)); });
    }
    held(inst.results[k]).view = tiles[k];
  }
}

void Legalizer::scan_axis(const Combination& by, const std::vector<View>& tiles, size_t axis, bool reverse) {
  const Dims dims = tiles[0].dims;
  const int64_t extent = dims[axis];
  const auto all = [&](const Chunk& at) {
    Vectors out;
    for (const View& v : tiles) out.push_back(read(v, at));
    return out;
  };
  const auto step = [&](const Chunk& from, const Chunk& to) {
    const Vectors out = combined(by, all(from), all(to));
    for (size_t k = 0; k < out.size(); ++k) write(tiles[k], to, out[k]);
  };
  if (axis + 1 < dims.size()) {
    Dims across = dims;
    across.erase(across.begin() + static_cast<std::ptrdiff_t>(axis));
    each_chunk(across, {}, [&](const Chunk& at) {
      const auto line = [&](Value i) {
        Chunk c = at;
        c.index.insert(c.index.begin() + static_cast<std::ptrdiff_t>(axis), i);
        return c;
      };
      for (int64_t d = 1; d < extent; d *= 2)
        each(index(0), index(extent - d), 1, [&](Value n) {  // from the end that nobody reads any more
          const Value i = reverse ? n : shared(ScalarOp::sub, {index(extent - 1), n});
          step(line(add(i, index(reverse ? d : -d))), line(i));
        });
    });
    return;
  }
  const std::vector<Value> none(dims.size() - 1, no_value);
  std::vector<Value> position;
  const std::function<void()> nest = [&] {
    if (position.size() + 1 < dims.size())
      return each(index(0), index(dims[position.size()]), 1, [&](Value i) {
        position.push_back(i);
        nest();
        position.pop_back();
      });
    for (int64_t d = 1; d < extent; d *= 2)
      each_part(extent - d, no_value, registers_.bytes / 4 * 2, [&](Value n, int64_t width) {
        const Value i = reverse ? n : shared(ScalarOp::sub, {index(extent - width), n});
        step({position, add(i, index(reverse ? d : -d)), width}, {position, i, width});
      });
  };
  nest();
}

}  // namespace weft::kernel
