#pragma once
// The state of rewriting one kernel, shared by the files of this folder.
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "kernel/legalize/legalize.h"

namespace weft::kernel {

/// Elements (index…, start … start + width - 1) of a tile: `index` has a scalar for each axis but the last.
struct Chunk {
  std::vector<Value> index;
  Value start = no_value;
  int64_t width = 1;
};

/// A tile in memory: element (i, j, …) of it is at offset + i·strides[0] + …. Past the limits it is `other`.
struct View {
  Ref ref = -1;
  Dtype dtype = float32;
  Value offset = no_value;
  std::vector<int64_t> dims = {}, strides = {};
  std::vector<Value> limits = {};  // no_value: the axis is whole
  Number other = {};
  bool streaming = false;
  bool whole() const;  // without limits
};

class Legalizer {
 public:
  Legalizer(const Kernel& kernel, const VectorRegisters& registers);
  Kernel run();

 private:
  using Dims = std::vector<int64_t>;
  using Vectors = std::vector<Value>;  // chunks of several tiles
  /// What stands for a value of the source: a scalar, a tile in memory, or what computes a tile.
  struct Held {
    Value scalar = no_value;
    std::optional<View> view = {};
    const Inst* inst = nullptr;
    size_t result = 0;  // of inst
  };

  // legalize.cpp: blocks, effects and control flow
  void block(const Block& b);
  void visit(const Inst& inst);
  void scalar_inst(const Inst& inst);
  void lazy(const Inst& inst);
  void store(const Inst& inst);
  void scatter(const Inst& inst);
  void update(const Inst& inst);
  void print(const Inst& inst);
  void check_condition(const Inst& inst);
  void loop(const Inst& inst);
  void while_loop(const Inst& inst);
  void branch(const Inst& inst);
  void when(const Inst& inst);
  // asynchronous.cpp
  void asynchronous(const Inst& inst);
  void copy(const Inst& inst);
  void wait_until(const Inst& inst);
  void reach(const Inst& inst);
  std::vector<Value> scalars(const std::vector<Value>& list) const;
  std::vector<Ref> carried_buffers(std::span<const Value> initial);
  void carry_tiles(std::span<const Value> arguments, const std::vector<Ref>& buffers);
  void count_uses(const Block& b);
  void next_tiles(const std::vector<Value>& next, const std::vector<Ref>& buffers);
  bool reads(Value v, Ref buffer, bool elsewhere) const;
  bool stays(const Inst& load) const;

  // chunks.cpp: loops over chunks, and the value of a chunk
  using Body = std::function<void(const Chunk&)>;
  void each_chunk(const Dims& dims, const std::vector<Value>& ends, const Body& body);
  void each_part(int64_t extent, Value end, int64_t lanes, const std::function<void(Value, int64_t)>& body);
  void each(Value lo, Value hi, int64_t step, const std::function<void(Value)>& body);
  void in_frame(const std::function<void()>& body);
  Value value(Value v, const Chunk& at);
  Value compute(const Inst& inst, size_t result, const Chunk& at);
  Value broadcast(const Inst& inst, const Chunk& at);
  Value conditional(const Inst& inst, size_t result, const Chunk& at);
  Value gathered(const Inst& inst, const Chunk& at);
  Value taken(const Inst& inst, const Chunk& at);
  Value read(const View& view, const Chunk& at);
  void write(const View& view, const Chunk& at, Value v, bool streaming = false);
  Value address(const View& view, const Chunk& at);
  Value lanes_left(const View& view, const Chunk& at);
  Value lane(Value vector);

  // views.cpp: tiles in memory
  View scratch(Dtype dtype, const Dims& dims);
  const View& stored(Value v);
  const View& stored_whole(Value v);
  void keep(Value v, const View& view);
  void store_to(Value v, const View& to);
  std::optional<View> moved(const Inst& inst, const View& from);
  bool keeps_chunks(const Inst& inst) const;

  // combine.cpp: reductions and scans
  struct Combination;
  void reduce(const Inst& inst);
  void scan(const Inst& inst);
  void scan_axis(const Combination& by, const std::vector<View>& tiles, size_t axis, bool reverse);
  Vectors combined(const Combination& by, const Vectors& low, const Vectors& high);
  Vectors tree(const Combination& by, int64_t count, int64_t width, const std::function<Vectors(Value)>& at);
  Vectors chained(const Combination& by, int64_t count, const std::function<Vectors(Value)>& at);
  bool reduce_together(const Combination& by, int64_t width, const View& to);
  Vectors across_lanes(const Combination& by, Vectors v);

  // product.cpp: dots
  struct Panels;
  void dot(const Inst& inst);
  Panels panels(const Inst& inst) const;
  void pack_invariant(const Block& body);
  std::optional<View> packed_before(const Inst& inst) const;
  std::vector<Value> parts(const Panels& p, Value v, bool right);
  bool may_overwrite(Value v) const;
  bool is_continued(const Inst& load) const;
  std::optional<View> stored_next(const Inst& inst);
  void pack_left(const Panels& p);
  void pack_right(const Panels& p);
  void multiply(const Panels& p, bool direct, bool splat);
  Value tf32(Value v, bool tail);

  // order.cpp: sorting and counting
  void sort(const Inst& inst);
  void histogram(const Inst& inst);

  const Type& type(Value v) const { return from_.types[static_cast<size_t>(v)]; }
  Held& held(Value v) { return held_[static_cast<size_t>(v)]; }
  const Held& held(Value v) const { return held_[static_cast<size_t>(v)]; }
  Value scalar(Value v) const { return v == no_value ? no_value : held(v).scalar; }
  Value index(int64_t v) { return b_.index(v); }
  Value add(Value a, Value b) { return shared(ScalarOp::add, {a, b}); }
  Value mul(Value a, Value b) { return shared(ScalarOp::mul, {a, b}); }
  /// Appends a scalar operator of scalars, or returns the value of an equal one.
  Value shared(ScalarOp op, const std::vector<Value>& args);

  const Kernel& from_;
  VectorRegisters registers_;
  bool has_roles_ = false;
  Builder b_;
  std::vector<char> is_stored_;
  std::vector<Held> held_;                 // by value of the source
  std::vector<int> uses_;                  // by value of the source: instructions that read it
  const Block* block_ = nullptr;           // that is being rewritten
  std::set<const Inst*> done_;             // stores whose value was computed where they store it
  std::map<Value, const Block*> carried_;  // tiles that the loop around a block carries into it
  /// What is known within an open block of the new kernel.
  struct Frame {
    std::map<std::tuple<Value, size_t, std::vector<Value>, Value, int64_t>, Value> chunks;
    std::map<std::pair<ScalarOp, std::vector<Value>>, Value> scalars;
    std::map<std::pair<Value, DotPrecision>, View> panels;        // of right operands, by their value in the source
    std::vector<std::pair<Value, std::optional<View>>> put_away;  // values stored in the block, and where they were
  };
  std::vector<Frame> frames_ = std::vector<Frame>(1);
  std::set<std::pair<Value, Value>> below_;           // (index, limit): the index is below it
  std::set<std::tuple<Value, int64_t, Value>> fits_;  // (start, width, limit): the chunk ends before it
};

}  // namespace weft::kernel
