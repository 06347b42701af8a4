#pragma once
// Builders, with which derivatives and composites are written. They are strict: no promotion and no implicit
// broadcasting (weft/ops.h does these). An operator's shape and dtype rules throw std::invalid_argument as "[name] …".
#include "graph/node.h"
#include "graph/table.h"
#include "weft/schedule/steps.h"

namespace weft::graph {

/// Makes a node, checked by its row; returns one Value per output.
Values make_all(Op op, Values inputs, SharedAttrs attrs = {});
Value make(Op op, Values inputs, SharedAttrs attrs = {});  // the only output

Value parameter(const Type& type, int64_t slot = -1);
Value data(const Type& type, Storage storage);  // a leaf with storage
Value constant(Dtype dtype, Number number);     // rank 0
/// The same of a number that a user wrote, which has the dtype already (Attrs::literal).
Value literal(Dtype dtype, Number number);
Value full(const Shape& shape, Dtype dtype, Number number);
Value full_like(const Value& v, double number);
Value zeros_like(const Value& v);
Value iota(const Shape& shape, int axis, Dtype dtype);

Value reshape(Value v, const Shape& shape);
Value permute(const Value& v, std::vector<int64_t> axes);
Value swap_last(const Value& v);  // the last two axes
Value broadcast(Value v,
                const Shape& shape);  // right-aligned; axes of extent 1 or missing repeat; v itself where equal
Value slice(const Value& v, std::vector<int64_t> start, Shape sizes, std::vector<int64_t> step = {});
Value slice_axis(const Value& v, int axis, int64_t start, Dim size);
Value pad(const Value& v, std::vector<int64_t> low, std::vector<int64_t> high, Number number = {});
Value concat(const Values& vs, int axis);
/// Moves element j of the axis to j·step, with zeros between: n → (n-1)·step + 1.
Value dilate(const Value& v, size_t axis, int64_t step);
/// Splits axis n of v into axes [count, size]: result[…, o, k, …] = v[…, o·step + k·dilation, …]; count = (n -
/// (size-1)·dilation - 1) / step + 1.
Value window(const Value& v, int axis, int64_t size, int64_t step = 1, int64_t dilation = 1);
Value expand_dims(const Value& v, const std::vector<int64_t>& axes);
Value squeeze(const Value& v, const std::vector<int64_t>& axes);

Value unary(Op op, Value v);
Value binary(Op op, Value a, Value b);              // b may have rank 0: it is broadcast
Value scalar(kernel::ScalarOp op, const Value& v);  // the same for an operator of tile IR, for derivatives in its rows
Value scalar(kernel::ScalarOp op, const Value& a, const Value& b);
Value operator+(const Value& a, const Value& b);
Value operator-(const Value& a, const Value& b);
Value operator*(const Value& a, const Value& b);
Value operator/(const Value& a, const Value& b);
Value operator-(const Value& a);
Value operator+(const Value& a, double b);
Value operator*(const Value& a, double b);
Value operator-(const Value& a, double b);
Value operator-(double a, const Value& b);
Value operator/(double a, const Value& b);
Value exp(const Value& v);
Value log(const Value& v);
Value tanh(const Value& v);
Value rsqrt(const Value& v);
Value square(const Value& v);
Value select(const Value& condition, const Value& a, const Value& b);
Value cast(Value v, Dtype dtype);  // v itself where equal
Value stop_gradient(const Value& v);
Value depends(const Value& v,
              const Values& on);  // v, for computations that are to wait for `on` and to share nothing with others of v
/// Returns v, which the compiler computes by steps (weft/schedule.h). Attention without the online softmax is written
/// as products and a softmax.
Value scheduled(const Value& v, const schedule::Steps& steps);
Value complex(const Value& re, const Value& im);  // of two float32 or two float64 arrays
Value conjugate(const Value& v);

Value reduce(kernel::Reducer reducer, const Value& v, std::vector<int64_t> axes, bool keep_dims = false);
/// Reduces by a reducer whose state has several components: takes and returns one array for each.
Values reduce_state(kernel::Reducer reducer, const Values& components, std::vector<int64_t> axes,
                    bool keep_dims = false);
/// Returns the index (uint32) along `axis` of the extreme that argmax or argmin finds: of equal ones the first; a NaN
/// wins.
Value extreme_index(kernel::Reducer reducer, const Value& v, int axis, bool keep_dims = false);
Value sum(const Value& v, std::vector<int64_t> axes, bool keep_dims = false);
Value max(const Value& v, std::vector<int64_t> axes, bool keep_dims = false);
/// Returns the number of elements along the axes as a scalar of float32 or float64; symbols count with their values.
Value number_of_elements(const Shape& shape, const std::vector<int64_t>& axes, Dtype dtype);
Value mean(const Value& v, std::vector<int64_t> axes, bool keep_dims = false);
/// Returns v summed to `shape`, from which it was broadcast: the transpose of `broadcast`.
Value sum_to(const Value& v, const Shape& shape);

/// Reduces the axis up to each of its elements, forward or backwards, including the element or excluding it (then the
/// first result is the identity). `in_logs` (with Reducer::sum): elements are logarithms, combined by logaddexp.
Value cumulative(kernel::Reducer reducer, const Value& v, int axis, bool backwards = false, bool exclusive = false,
                 bool in_logs = false);

/// Contracts two arrays. Result axes: batch, free axes of a, free axes of b. Float dtypes only; `dtype` defaults to the
/// operands'.
Value dot(const Value& a, const Value& b, std::vector<int64_t> a_contract, std::vector<int64_t> b_contract,
          std::vector<int64_t> a_batch = {}, std::vector<int64_t> b_batch = {});
Value matmul(const Value& a, const Value& b);  // [..., m, k] · [..., k, n], equal leading axes

/// Gathers slices, as MLX does. Result shape: the indices' common shape, then `sizes`: result[i…, s…] = v[s… with index
/// k added along axes[k]]. A negative index counts from the end; one outside is clamped to the nearest element, so that
/// no other memory is read.
Value gather(const Value& v, const Values& indices, std::vector<int64_t> axes, Shape sizes);
/// Returns rows of `v` along `axis`: MLX's take.
Value take(const Value& v, const Value& indices, int axis);
/// Returns v with updates (the indices' shape, then the slice's) stored at the indices, or combined with the elements
/// there. Updates out of range are dropped. Repeated indices apply in order, so that `set` keeps the last one. Index
/// arrays may have symbolic axes.
Value scatter(ScatterMode mode, const Value& v, const Values& indices, const Value& updates, std::vector<int64_t> axes);
/// Returns v with v[start + i·step] = update[i] along every axis; steps may be negative, never 0.
Value assign(const Value& v, const Value& update, std::vector<int64_t> start, std::vector<int64_t> step = {});
/// Returns uint32 words in MLX's Threefry layout for key[2] (uint32), or an array of `shape` for each of key[…, 2] (see
/// the row). With Philox, a word depends on its own index only, not on how many are drawn.
Value random_bits(const Value& key, const Shape& shape, Generator generator = Generator::threefry);

Values composite(std::shared_ptr<const Composite> region, Values inputs);

}  // namespace weft::graph
