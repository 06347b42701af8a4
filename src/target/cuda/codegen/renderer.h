#pragma once
// The renderer's state, shared by its files: analyze.cpp (before rendering), render.cpp (blocks and scalars),
// render_entry.cpp, render_memory.cpp, render_indexed.cpp, render_tile.cpp, render_lines.cpp, render_transposed.cpp,
// those of general/, for kernels that are not basic (kernel/rules.h), and those of products/.
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "target/cuda/codegen/layout.h"
#include "target/cuda/codegen/render.h"
#include "target/cuda/codegen/runs.h"
#include "target/cuda/codegen/tensor_cores.h"
#include "target/cuda/codegen/text/scalar.h"

namespace weft::target::cuda {

/// Returns the text that copies a chunk in words; `from` and `to` point at its first element. `read`: the function of
/// the prelude that reads a word, if one does.
std::string words(const std::string& to, const std::string& from, int64_t bytes, const std::string& read = "");
/// Returns the 32 bits of a word whose elements all equal `number`; empty where elements are wider.
std::optional<uint32_t> filling(Number number, Dtype t);
/// Returns the text that copies a chunk only if `there`, in words, and fills it with `other` otherwise. It always reads
/// something (the start of the buffer if not `there`), so that loads are unconditional and many are in flight.
std::string words_if(const std::string& to, const std::string& from, const std::string& at, uint32_t other,
                     int64_t bytes, const std::string& read = "");

struct Strided;  // general/index.h

/// Returns the text of an element's position along each axis of a tile with two axes or more.
std::vector<std::string> positions(const std::string& element, const std::vector<int64_t>& dims);

class Renderer {
 public:
  /// What an earlier attempt has found not to be possible: why warpgroups do not multiply, though the device has them;
  /// why programs do not multiply in turns; and whether tiles outside of loops may have stages.
  struct Refused {
    std::string warpgroups, turns;
    bool singles = false, warps_of_iterations = false;
  };
  Renderer(const kernel::Kernel& kernel, const Variant& variant, const Features& features, const Refused& refused);
  Rendered run(const std::string& symbol);
  /// Returns why programs do not multiply in turns though the launch asks for it; empty where they do, or it does not.
  std::string why_no_turns() const;
  /// Returns whether tiles were to have stages of their own, and there is no producer to copy them.
  bool lacks_singles() const { return !singles_.empty() && !producer_; }
  /// Returns whether the rule gives each warp an iteration of a parallel loop.
  bool has_warps_by_rule() const { return warps_by_rule_; }

 private:
  using Inst = kernel::Inst;
  using Value = kernel::Value;

  // analyze.cpp
  void choose_threads();
  void check_launch() const;
  const kernel::Inst* loop_without_ring(const kernel::Block& block) const;
  void choose_general_threads();
  void analyze(const kernel::Block& block);
  void analyze_loop(const Inst& loop);
  void find_mask(const Inst& inst);
  void distribute_iterations();
  bool walks() const { return walked_ > 0 && walked_ == largest_tile_; }
  bool walks_long_rows() const { return walks() && walked_ > 1024; }
  int vec_of_long_rows() const;
  int threads_of_rows() const;
  int min_blocks() const;

  // render.cpp
  void block(const kernel::Block& block);
  std::vector<const Inst*> in_order(const kernel::Block& block) const;
  void inst(const Inst& inst);
  void scalar(const Inst& inst);
  void convert(const Inst& inst);
  bool in_halves(const Inst& cast) const;
  void loop(const Inst& inst);
  void begin_carried(std::span<const Value> carried, std::span<const Value> initial);
  void next_carried(std::span<const Value> carried, std::span<const Value> next);
  void parallel(const Inst& inst);
  void by_warps(const kernel::Block& body);
  bool distributed(const Inst& inst) const {
    return inst.op == kernel::Op::loop && inst.parallel && cluster_ * iterations_ > 1;
  }
  bool reads_scratch(const kernel::Block& block) const;
  void when(const Inst& inst);
  void when_with_values(const Inst& inst);
  void on_lane(const kernel::Block& block, const std::vector<std::string>& targets);
  bool waits_for_memory(const Inst& inst) const;
  void arrive();
  // render_entry.cpp
  std::string signature(const std::string& symbol) const;
  std::string entry(const std::string& symbol) const;
  /// The producer: a warpgroup, from which registers pass to the others; or a warp, where two programs share an SM.
  int threads_of_producer() const { return producer_ ? blocks_ > 1 ? 32 : 128 : 0; }
  bool passes_registers() const { return warpgroups_ * sets_ > 1 && blocks_ == 1; }
  int64_t staged_bytes(const Uses& uses, const std::vector<const Inst*>& dots) const;
  bool registers_for_copies() const;
  void share_by_three();
  int threads_of_block() const { return threads_ * programs_ * sets_ + threads_of_producer(); }
  void add(const std::string& line) { body_ += std::string(static_cast<size_t>(indent_) * 2, ' ') + line + "\n"; }
  void open(const std::string& line) { add(line + " {"), ++indent_; }
  void close() { --indent_, add("}"); }
  const kernel::Type& type(Value v) const { return kernel_.types[static_cast<size_t>(v)]; }
  Layout layout_of(const kernel::Type& type) const {
    Layout s = make_layout(type.size(), threads_, vec_);
    s.register_tiles = tile_side_ > 0 && type.rank() == 2;
    return s;
  }
  Layout layout_of(Value v) const {
    if (const auto held = held_.find(v); held != held_.end()) return held->second;
    return transposed_.contains(v) ? make_layout(type(v).size(), threads_, vec_) : layout_of(type(v));
  }
  /// Returns the text of a value in register `r`: a scalar's name, an array's element, or an expression for a tile that
  /// has no registers.
  std::string at(Value v, const std::string& r = "r") const;
  std::string at_result(Value v, Value result, bool bits = false) const;
  void name(Value v, std::string text) { names_[static_cast<size_t>(v)] = std::move(text); }
  std::string fresh(Value v) const { return "v" + std::to_string(v); }
  /// Declares the registers of a tile, or a scalar.
  void declare(Value v);
  /// dst[r] = text for every register.
  void each(Value v, const std::string& text);
  /// The same for a value that is declared already.
  void assign(Value v, const std::string& text);
  /// Renders elementwise arithmetic, which reads only register r of other tiles. Consecutive ones share a loop: with
  /// one loop a statement NVRTC takes three times as long over long arithmetic.
  void arithmetic(Value v, const std::string& text);
  void each_register(const std::string& type, const std::string& array, int64_t registers, const std::string& text);
  /// Declares a scalar that depends on no tile, before the open shared loop if there is one.
  void scalar_line(Value v, const std::string& text);
  void add_before_shared(const std::string& line);

  // divisors: the largest power of two that is known to divide an integer scalar
  int64_t divisor(Value v) const;
  void find_divisor(const Inst& inst);

  // render_memory.cpp: loads and stores
  struct Slice;
  Slice slice(const Inst& inst, const kernel::Type& tile, size_t first_limit, const Layout& make_layout);
  std::string memory_type(kernel::Ref ref) const;
  Dtype dtype_of(kernel::Ref ref) const;
  bool is_local(kernel::Ref ref) const { return ref >= static_cast<kernel::Ref>(kernel_.params.size()); }
  std::string buffer(kernel::Ref ref) const;
  bool in_shares(kernel::Ref ref) const;
  std::string stored_buffer(kernel::Ref ref) const;
  bool reads_now(const Inst& inst) const;
  std::string reader_of_words(const Inst& inst, const Layout& layout) const;
  void find_copies(const kernel::Block& block);
  void load_chunks(const Inst& inst, const Slice& s, const Layout& layout, const std::string& into);
  bool copies_words(const Inst& load);
  void copy_row(const Inst& load, const Inst& store);
  void finish_copies();
  void load(const Inst& inst);
  void store(const Inst& inst);
  std::string in_array(Value v, const std::string& element, int64_t registers);
  // render_indexed.cpp: gathers and scatters
  const Runs& runs(int64_t length);
  bool in_runs(const Inst& inst, int64_t length);
  int64_t run_of(const Inst& inst);
  void gather(const Inst& inst);
  void gather_runs(const Inst& inst, int64_t length);
  int64_t shared_of(const Inst& inst);
  void gather_shared(const Inst& inst, int64_t length);
  void scatter(const Inst& inst);
  void scatter_runs(const Inst& inst, int64_t length);

  // render_memory.cpp: the rest
  void atomic_add(const Inst& inst);
  void add_integers(const Inst& inst);
  void prefetch(const Inst& inst);
  void prefetch_rows(const Inst& load);
  static std::string low_sum(Dtype t, std::span<const std::string> args);
  bool shared_pattern(kernel::Ref ref) const;
  void before_read(kernel::Ref ref);
  void before_write(kernel::Ref ref);
  void loop_hazards(const kernel::Block& block);
  /// What was written and read since the last barrier. A barrier inside a block that may not run counts for nothing
  /// after the block.
  using Hazards = std::pair<std::set<kernel::Ref>, std::set<kernel::Ref>>;
  Hazards hazards() const { return {dirty_, read_}; }
  void add_hazards(const Hazards& before);
  void note_pattern(const Inst& inst);

  // render_tile.cpp
  void reduce(const Inst& inst);
  using Combined = std::function<std::string(const std::string&, const std::string&)>;  // text that combines two values
  void reduce_lanes(int lanes, const std::string& w, int registers, const Combined& combined);
  void reduce_warps(const Layout& s, Dtype dtype, const std::string& w, int registers, const Combined& combined);
  static bool any_order(kernel::Reducer reducer, Dtype dtype);
  void reduce_warps_to_rows(std::span<const Inst* const> insts);
  size_t merged_reductions(std::span<const Inst* const> insts) const;
  void reduce_rows(const Inst& inst);
  void reduce_columns(const Inst& inst);
  void reduce_plane(const Inst& inst);
  void broadcast(const Inst& inst);
  void transpose(const Inst& inst);
  void shift(const Inst& inst);
  void exchange_lanes(const Inst& inst);
  void extract(const Inst& inst);
  void dot(const Inst& inst);
  /// Reserves shared memory for `elements` of the exchange space from byte `offset` on and returns a pointer to it.
  std::string exchange(Dtype dtype, int64_t elements, int64_t offset = 0);
  /// Writes all elements of a tile to `space`, in the order of their indices.
  void put(Value v, const std::string& space);
  /// Writes the element that `text` makes in each register to `space`.
  void put_text(const Layout& s, const std::string& space, const std::string& text);
  void sync() { add(std::string(sync_)); }

  // general/render_movement.cpp
  void alias(Value result, Value from);
  void put_at(Value v, const std::string& space, const std::string& index);
  void each_element(Value v, const std::string& text);
  void rearrange(const Inst& inst, const Strided& source);
  void spread(const Inst& inst);
  void permute(const Inst& inst);
  void slice_tile(const Inst& inst);
  void cat(const Inst& inst);
  void take(const Inst& inst);

  // general/render_combine.cpp
  Dtype combined_in(const Inst& inst, size_t k) const;
  std::string wide(const Inst& inst, size_t k) const;
  std::vector<std::string> spaces_of(const Inst& inst, int64_t offset = 0);
  void combine(const Inst& inst, const std::vector<std::string>& low, const std::vector<std::string>& high,
               const std::vector<std::string>& to);
  void reduce_along(const Inst& inst);
  void scan(const Inst& inst);
  // general/render_order.cpp
  void sort(const Inst& inst);
  void histogram(const Inst& inst);
  // general/render_lanes.cpp
  static bool has_lanes(const kernel::Block& block);
  void lanes(const Inst& inst);
  void each_register(Value v, const std::string& text);
  // general/render_control.cpp
  void general(const Inst& inst);
  void branch(const Inst& inst);
  void while_loop(const Inst& inst);
  void print(const Inst& inst);
  void assertion(const Inst& inst);
  // general/render_atomics.cpp
  static std::string owner(const Layout& s);
  static const char* fence_of(kernel::MemoryScope scope);
  // general/render_waiting.cpp
  bool meets() const;
  bool counts() const { return kernel_.ordered || meets(); }
  std::string counters() const;
  void wait_until(const Inst& inst);
  void grid_barrier();
  void cluster_barrier();
  void reach(const Inst& inst);
  // general/render_asynchronous.cpp
  int swizzle_of(kernel::Ref ref) const;
  std::string placed_at(kernel::Ref ref, const std::string& address) const;
  std::string barrier(kernel::Ref ref, Value place) const;
  void make_barriers(const Inst& alloc);
  void asynchronous(const Inst& inst);
  struct CopyForm;
  CopyForm copy_form(const Inst& inst) const;
  void copy_async(const Inst& inst);
  void copy_chunks(const Inst& inst, const CopyForm& form);
  void copy_in_bulk(const Inst& inst, const CopyForm& form);
  std::optional<BoxedTile> boxed_copy(const Inst& inst) const;
  void find_box_copies(const Uses& uses);
  void copy_box(const Inst& inst, const BoxCopy& copy);
  // general/choose_iterations.cpp, render_iterations.cpp
  /// The parallel loops of a kernel: how many iterations they have, what these compute, and what else the kernel does.
  struct ParallelLoops {
    std::vector<const Inst*> all = {};
    int64_t count = 0, tile = 1;             // elements of an iteration's largest tile
    bool walks = false, takes_tile = false;  // it has a loop; it reads a tile from outside
    bool multiplies = false, asynchronous = false;
  };
  ParallelLoops parallel_loops() const;
  std::string find_in_first(const ParallelLoops& loops);
  std::string no_warps(const ParallelLoops& loops) const;
  std::string no_blocks(const ParallelLoops& loops);
  int warps_by_rule(const ParallelLoops& loops) const;
  int blocks_by_rule(const ParallelLoops& loops) const;
  void iterate_as_asked(const ParallelLoops& loops, int asked, const std::string& no_warps,
                        const std::string& no_blocks);
  void choose_iterations();
  void iterations_by_warps(const Inst& loop);
  void iterations_by_blocks(const Inst& loop);
  // general/render_roles.cpp
  void roles(const Inst& inst);
  void role(const Inst& roles, size_t k);
  bool sets_registers(const Inst& roles) const;
  int registers_of_launch() const;
  // products/find_products.cpp, choose_layouts.cpp
  void choose_layouts();
  void find_divisors(const kernel::Block& block);
  void find_products(const Uses& uses);
  std::string refusal(const Uses& uses, const Inst& dot) const;
  void choose_warps(const Uses& uses);
  void drop_float8(std::vector<const Inst*>& dots);
  Operand operand_of(const Uses& uses, const Product& product, size_t argument) const;
  bool copied_whole(const Uses& uses, const Inst& load, std::string& why) const;
  bool known_ahead(const Uses& uses, const Inst& loop, Value v, std::set<const Inst*>& needed) const;
  void find_early_loads(const Uses& uses, const Inst& loop, Value v);
  static void add_scalars(const Inst& loop, const std::set<const Inst*>& needed, Ring& ring);
  void find_sources(const Uses& uses);
  std::string copy_ahead(const Uses& uses, Product& product);
  int stages_of(const Inst& loop, const Ring& ring);
  void lay_out_stages(const Uses& uses);
  void spread_layouts(const Uses& uses);
  // products/hold_operands.cpp
  bool hold_as(const Uses& uses, Value v, const Layout& layout, std::map<Value, Layout>& members) const;
  void hold_operands(const Uses& uses);
  void count_made_registers();
  // products/repeat_in_chunks.cpp
  static std::optional<Layout> layout_to_repeat(const kernel::Type& from, const kernel::Type& to, const Layout& wide);
  std::optional<Layout> layout_to_repeat(const Inst& broadcast) const;
  void repeat_in_chunks(const Uses& uses);
  bool repeat(const Inst& broadcast);
  void note(const Inst& dot, const std::string& text);
  // products/share_operands.cpp
  bool are_products(const Uses& uses, Value v) const;
  bool only_multiplied(const Uses& uses, Value v) const;
  bool multiplied_within(const Uses& uses, Value v, const kernel::Block& block) const;
  void find_last_readers(const Uses& uses);
  // products/choose_warpgroups.cpp, render_warpgroups.cpp
  std::string choose_warpgroups(const Uses& uses, const std::vector<const Inst*>& dots);
  std::string refusal_of_warpgroups(const Uses& uses, const Inst& dot) const;
  int64_t early_bytes() const;
  int64_t bytes_of_stages() const;
  void find_in_place(const Uses& uses);
  void registers_of_a(const Product& product);
  void product_by_warpgroups(const Product& product);
  // products/render_flight.cpp
  void find_flights();
  void finish_products(size_t count);
  void finish_products_before(const Inst& inst);
  // products/find_boxes.cpp, render_tma.cpp
  std::optional<Box> box_of(const Uses& uses, const BoxedTile& tile, std::string& why) const;
  bool stays_in_lines(const Uses& uses, const BoxedTile& tile) const;
  std::optional<BoxStore> box_store_of(const Uses& uses, const Inst& store) const;
  bool lie_apart(const Uses& uses, const Inst& x, const Inst& y) const;
  bool feeds(const Uses& uses, Value v, std::set<const Inst*>& needed) const;
  std::string first_of(const Box& box, int64_t pitch) const;
  std::string choose_producer(const Uses& uses);
  int number_of(const TensorCopy& map);
  void find_producer(const Uses& uses);
  void begin_producer();
  void produce_tile(const Operand& tile, const std::string& to, const std::string& arrives);
  void produce(const Inst& loop);
  std::string before_slot(const Inst& loop) const;
  void release(const Product& product, const std::string& slot);
  void release_before(const Product& product);
  std::string ring_barrier(int number, bool is_full, const std::string& slot) const;
  std::string full(const Operand& operand, const std::string& slot) const;
  std::string empty(const Operand& operand, const std::string& slot) const;
  void find_box_stores(const Uses& uses);
  bool exchanges(const Uses& uses) const;
  void place_boxes();
  int spaces_of_store() const;
  // products/render_loads.cpp
  bool written_before(const Uses& uses, const Inst& load) const;
  std::optional<BoxLoad> box_load_of(const Uses& uses, const Inst& load) const;
  bool worth_loading_ahead(const Uses& uses, int64_t bytes, int64_t stage) const;
  void find_box_loads(const Uses& uses);
  bool feeds_load(const Uses& uses, const Inst& load);
  void place_loads(const Uses& uses);
  std::string load_barrier(bool full) const;
  void next_load_space();
  void produce_loads();
  void begin_loads();
  void skip_loads();
  bool load_boxes(const Inst& load);
  int64_t least_spaces() const;
  // products/render_vectors.cpp
  bool is_vector(const Inst& load) const;
  void find_vectors(const Uses& uses);
  void lay_out_vectors(Ring& ring) const;
  void produce_vectors(const Ring& ring);
  bool load_vector(const Inst& load);
  // products/render_singles.cpp
  const Inst* tile_like(const Operand& tile) const;
  void find_singles(const Uses& uses);
  std::string place_singles(const Uses& uses);
  void produce_single(const Inst& load);
  void release_single(const Product& product);
  // products/render_kept.cpp
  size_t last_reader(const Inst* load) const;
  void lay_out_kept();
  void find_kept(const Uses& uses);
  const Inst* last_in_space(const Inst* load) const;
  int kept_barriers() const;
  std::string kept_barrier(const Operand& tile, bool is_full) const;
  void produce_kept(const Inst& load);
  void wait_for_kept();
  void release_kept(const Inst& inst);
  // products/render_turns.cpp
  void begin_programs(bool producer);
  void begin_turn(const Inst& loop);
  void end_turn(const Inst& loop);
  void skip_slots(const Inst& loop, bool of_first);
  // products/render_stores.cpp
  bool store_boxes(const Inst& inst);
  void write_box(const Inst& inst, const std::string& from, int64_t across, const std::string& space);
  void finish_stores();
  bool store_fragments(const Inst& inst);
  bool store_columns(const Inst& inst);  // render_columns.cpp
  bool in_pairs(const Inst& load, const Layout& layout) const;
  void load_pairs(const Inst& load, const std::string& address, const std::string& guard);
  // render_random.cpp
  std::string random_word(const Inst& inst, const std::vector<std::string>& args, bool one);

  // products/render_products.cpp
  bool placed(const Inst& inst);
  void flatly(const Inst& inst);
  void convert_layout(Value result, Value from);
  void product(const Product& product);
  void product_by_fma(const Product& product);
  std::string operand_address(const Product& product, const Operand& operand, int64_t offset);
  std::pair<std::string, std::string> stage_operands(const Product& product, const char* fence);
  void stage(const Operand& operand, const std::string& space);
  void fragments_of_a(const Product& product);
  void fragments_of_b(const Product& product);
  // products/render_stages.cpp
  void copy_tile(const Operand& operand, const std::string& space);
  void copy_now(const Operand& operand);
  void begin_ring(const Inst& loop);
  void next_stage(const Inst& loop);
  void end_ring(const Inst& loop);
  void finish_ring(const Inst& loop);
  void copy_stage(const Inst& loop, const std::string& step, const std::string& slot);
  std::string slot_of(const Inst& loop) const;
  int early_iterations(const Inst& loop) const;
  void load_early(const Inst& loop, const Ring& ring, const std::string& step, const std::string& to);
  void declare_early(const Ring& ring, const std::string& name);
  bool is_packed(Value v) const;
  void copy_registers(Value v, const std::string& to, const std::string& from);
  void load_kept(const Inst& loop);
  void prefetch_early(const Inst& loop, const std::string& step, int lines);
  void begin_early(const Inst& loop);
  void next_early(const Inst& loop);
  // products/render_fragments.cpp
  bool spread_in_fragments(const Inst& inst);
  void slice_in_fragments(const Inst& inst);
  bool reduce_in_fragments(const Inst& inst);
  bool add_up_rows(const Inst& inst, const Layout& fragments);
  std::string replaced_by(const Inst& inst, const std::string& place) const;
  bool add_neighbours(const Inst& inst);
  void update(const Inst& inst);

  // general/render_code.cpp
  void inline_code(const Inst& inst);
  void inline_assembly(const Inst& inst, const std::vector<std::string>& in, const std::vector<std::string>& out);
  std::string code_function(const kernel::InlineCode& code, const std::string& name, const std::string& parameters);
  void source(const Inst& inst);
  static const kernel::InlineCode* source_of(const kernel::Kernel& kernel);

  // render_lines.cpp
  std::map<kernel::Ref, int64_t> rows_of_iterations(const Inst& loop, int iterations) const;
  int64_t row_elements(kernel::Ref ref) const;
  std::string row_of_warp(kernel::Ref ref) const;
  void reduce_partial_rows(const std::string& first, int64_t width, int count, Dtype dtype, kernel::Reducer reducer);
  void gather_rows();
  void reduction_of_rows(const Inst& inst, kernel::Ref ref);

  // render_transposed.cpp
  void find_register_tiles();
  std::string register_tile_origin() const;
  std::vector<std::string> register_tile_position(const std::string& r) const;
  void transpose_register_tiles(const Inst& inst);

  std::string symbol_;
  std::string neighbour_;         // the local buffers that are accessed; empty: the block's own
  std::string functions_;         // of users' code, before the kernel
  int codes_ = 0;                 // of them
  bool adds_neighbours_ = false;  // atomics.cuh is wanted
  const kernel::Kernel& kernel_;
  bool general_;  // the kernel is not basic (kernel/rules.h)
  Variant variant_;
  Features features_;
  int threads_ = 32, vec_ = 4, programs_ = 1;
  enum class Iteration : uint8_t { none, before_others, last };
  int cluster_ = 1;            // blocks that run one program
  int iterations_ = 1;         // of a parallel loop, per block: one a warp
  std::string sync_ = "SYNC";  // the barrier of the threads that share a tile
  // Elements of a row, by local buffer into which iterations store one partial row each.
  std::map<kernel::Ref, int64_t> partial_rows_;
  std::map<Value, kernel::Ref> partial_row_loads_;  // values loaded from such a buffer to be reduced
  std::map<kernel::Ref, kernel::Reducer> row_reducers_;
  int parallel_loops_ = 0, iterations_begun_ = 0;
  bool no_warps_fit_ = false, warps_by_rule_ = false;  // of users' kernels
  std::set<kernel::Ref> in_first_;                     // local buffers in the first block of a cluster
  bool reaches_first_ = false;                         // they are accessed there from here on
  std::string iterations_note_;                        // who runs parallel iterations, for people
  Iteration iteration_ = Iteration::none;              // of the parallel loop that is being rendered
  int64_t exchange_bytes_ = 0, local_bytes_ = 0;
  std::vector<int64_t> local_offsets_;
  std::string body_;
  bool sets_registers_ = false;  // roles share the registers of a block unequally
  /// The words of a call of Philox: an array of them with this layout, or one for all lanes.
  struct RandomCall {
    std::string name;
    bool scalar = false;
    Layout layout;
  };
  std::map<std::vector<Value>, RandomCall> words_;  // of the open block, by arguments
  bool arrived_ = false;                            // the wait for the preceding kernel has been rendered
  // The loop of the last arithmetic in body_: following arithmetic may join it.
  size_t shared_begin_ = 0, shared_end_ = 0;
  int64_t shared_registers_ = 0;
  int indent_ = 1;
  std::vector<std::string> names_;
  std::vector<bool> splat_;  // tiles whose elements are all one scalar: the name is the scalar's
  std::vector<int64_t> divisors_;
  std::map<Value, int64_t> integers_;  // constants
  std::map<int64_t, Runs> runs_;       // by length
  int64_t largest_tile_ = 1;
  int64_t operations_ = 0;                // on elements of tiles, of all instructions
  int warps_ = 0;                         // of the roles of a program
  bool reduces_ = false, lines_ = false;  // any reduction or dot; a reduction of a rank-1 tile
  bool moves_ = false;                    // elements between threads, other than by reducing rank-1 tiles
  bool whole_rows_ = true;                // no program branches or moves lanes but to reduce a row
  int loops_ = 0;
  bool accumulates_ = false;  // a loop that carries what a butterfly of exchanges gives
  bool transposes_ = false;   // any transposition
  // The side of the squares that threads transpose in registers; 0 if tiles are transposed through shared memory.
  int tile_side_ = 0;
  std::set<Value> transposed_;            // tiles that are only read to be transposed, in usual chunks
  std::vector<int64_t> transposed_tile_;  // the shape of all other tiles: rows, columns
  int64_t walked_ = 0;  // length of the rows that a loop reduces while it carries tiles of their width
  std::map<Value, int64_t> known_values_;             // constants
  std::map<Value, int64_t> constants_;                // tiles of uint32
  std::map<Value, std::pair<Value, int64_t>> masks_;  // tiles of uint32: what of which value a constant leaves
  std::map<int64_t, int64_t> filled_;                 // most elements that a load fills, by the size of its rank-1 tile
  bool planes_ = false;                               // any reduction of a rank-2 tile
  int loads_ = 0;                                     // of tiles
  // Bytes that a program may want to keep in registers: tiles loaded or carried through loops.
  int64_t kept_bytes_ = 0;
  int narrowest_ = 8;                                      // bytes of an element in contiguous slices
  std::map<kernel::Ref, std::set<std::string>> patterns_;  // ways in which a written buffer is accessed
  std::set<kernel::Ref> dirty_, read_;                     // written, read since the last barrier
  std::map<Value, const Inst*> copied_;    // loads that become asynchronous copies, by value (find_copies)
  std::set<Value> unseen_;                 // casts without a reader
  bool copies_ = false;                    // asynchronous copies are in flight
  std::map<Value, Layout> held_;           // of kernels of users: the tiles that are not flat
  std::map<Value, Product> products_;      // dots on tensor cores, by result
  std::map<Value, Value> sums_;            // dots that a sum takes as it is computed, by the sum
  std::map<Value, Operand> copied_tiles_;  // loads that go to shared memory alone
  std::map<const Inst*, Ring> rings_of_loops_;
  std::map<const Inst*, BoxStore> box_stores_;
  int64_t box_store_offset_ = 0;  // among the stages
  int box_spaces_ = 0;            // of a warpgroup, for boxes that are on their way
  std::map<const Inst*, BoxLoad> box_loads_;
  int boxes_of_program_ = 0;                        // that are loaded
  int load_spaces_ = 0;                             // of the ring of boxes
  int64_t load_space_bytes_ = 0, load_offset_ = 0;  // of one; of the ring, among the stages
  int64_t exchanged_bytes_ = 0;                     // of the exchange space, beside stages, about
  std::map<const Inst*, Ring> early_;               // what loops load into registers ahead, to compute operands from
  std::map<const Inst*, Ring> kept_early_;          // what all iterations compute operands from alike
  std::set<Value> early_loads_;
  std::set<Value> made_in_registers_;  // operands A that iterations compute where warpgroups read them
  bool early_now_ = false;             // while these are rendered: they begin before what an iteration computes
  std::set<Value> replaced_;           // values that only products on tensor cores read, and in another way
  std::map<Value, Value> casts_;       // of those, what they round
  int64_t stage_bytes_ = 0;
  int warpgroups_ = 0;                                // that multiply; 0: warps do
  int64_t made_registers_ = 0, early_registers_ = 0;  // for A that is made in registers, beside `registers_`
  int64_t registers_ = 0;                             // that a thread of a warpgroup wants
  int blocks_ = 0;                                    // on an SM, of warpgroups or of exact products
  bool exact_ = false;                                // all products are of exact float32
  std::string no_warpgroups_;                         // why they do not
  bool persistent_ = false;                           // blocks take programs in turns
  int sets_ = 1;                           // of warpgroups, which multiply in turns, each a program of its own
  std::string no_turns_;                   // why there is but one
  bool flies_ = false;                     // products go on while others begin, and end where they are read
  std::vector<const Product*> in_flight_;  // in their order
  bool producer_ = false;                  // a warpgroup of its own copies by TMA, for all loops that have stages
  std::string no_producer_;                // why there is none
  std::vector<TensorCopy> maps_;
  std::map<const Inst*, BoxCopy> box_copies_;  // of the explicit level
  int barriers_ = 0;                           // operands of an iteration
  int64_t barrier_offset_ = 0;                 // of the mbarriers, behind the stages
  bool singles_allowed_ = true;
  std::map<const Inst*, const Inst*> singles_;      // loads of tiles with a stage each, and of the loops' tile like it
  std::map<const Inst*, Kept> kept_;                // by their loads
  std::map<const Inst*, const Inst*> kept_before_;  // the tile that had the space before, in the same program
  std::vector<const Inst*> awaited_;                // loads of kept tiles that have not been waited for
  std::set<const Inst*> produced_;                  // what the producer computes outside its loops
  std::set<std::string> forms_;                     // definitions of the instructions of warpgroups
  std::vector<std::string> notes_;                  // what became of each dot, for people
};

}  // namespace weft::target::cuda
