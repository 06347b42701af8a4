#pragma once
#include "weft/ops/arithmetic.h"
#include "weft/ops/comparison.h"
#include "weft/ops/convolution.h"
#include "weft/ops/creation.h"
#include "weft/ops/indexing.h"
#include "weft/ops/layout.h"
#include "weft/ops/matmul.h"
#include "weft/ops/ordering.h"
#include "weft/ops/quantized.h"
#include "weft/ops/reductions.h"
#include "weft/ops/shape.h"

/// Array operations with MLX's names, argument order, promotion and broadcasting. This header includes all of
/// weft/ops/.
///
/// Every function builds a node of the graph and returns at once; the array is computed when it is evaluated
/// (weft/array.h). The last argument `s` names the stream or device to compute on; `{}` is the calling thread's default
/// (StreamOrDevice in weft/device.h).
///
/// Axes may be negative: -1 is the last one. Shapes broadcast as NumPy's: counted from the last axis, sizes are equal,
/// or 1 or missing in one operand. Mistakes throw when the graph is built, with a text that begins with "[op]" and
/// names shapes and dtypes: std::out_of_range for an axis that an array lacks, std::invalid_argument for anything else
/// that does not fit, std::runtime_error where a comment says so.
///
/// Dtypes of results. P is promote_types of the operands (weft/dtype.h). F(t) is t where t is floating or complex, and
/// float32 where it is an integer or bool. Numbers are arrays too: `x * 2.0f` promotes as `x * array(2.0f)`.
///
///   | functions                                                   | dtype of the result                              |
///   | ----------------------------------------------------------- | ------------------------------------------------ |
///   | add, subtract, multiply, maximum, minimum, clip             | P; bools are combined as truth values            |
///   | divide, arctan2, logaddexp                                  | F(P)                                             |
///   | floor_divide, remainder, divmod, power                      | P; bools are computed in int32                   |
///   | exp, log, sqrt, sin, …, erf, sigmoid, degrees, reciprocal   | F(a)                                             |
///   | abs, sign, square, negative, floor, ceil, trunc, round      | a's; abs of complex numbers is real              |
///   | comparisons, logic, isnan, …, all, any                      | bool; comparisons are made in P                  |
///   | bitwise_and, bitwise_or, bitwise_xor, shifts                | P, an integer or bool; shifts of bools are uint8 |
///   | sum, prod                                                   | a's; int32 or uint32 for bools and shorter ones  |
///   | mean, var, std, median, logsumexp, softmax                  | F(a); var and std are real                       |
///   | max, min, sort, partition, topk, cummax, cummin             | a's                                              |
///   | cumsum, cumprod                                             | a's, or `dtype`; cumsum of bools is int32        |
///   | argmax, argmin, argsort, argpartition, searchsorted         | uint32                                           |
///   | matmul, addmm, inner, tensordot, convolutions               | P, floating (complex: not convolutions)          |
///   | outer, kron                                                 | P                                                |
///   | where, concatenate, stack                                   | P                                                |
///   | shape and indexing functions                                | a's; updates are cast to it                      |
///
/// Reductions, cumulative operations, matrix products and convolutions of float16 and bfloat16 accumulate in float32
/// and round once. Integers wrap. float64 is computed in float64.
namespace weft {}
