// Matmuls by oneDNN. A descriptor is first brought into the form that oneDNN handles best (few axes, contiguous rows of
// C), then cut into pieces along the batch, rows or columns. Each piece is a primitive for one thread, and the pieces
// run on Weft's own thread team. How a matmul is cut depends on its size alone, so the bits do not depend on the number
// of threads.
#include "target/cpu/libraries/onednn.h"

#ifndef WEFT_HAVE_ONEDNN

namespace weft::target {
std::shared_ptr<const LibraryCall> onednn_dot(const kernel::DotDesc&) { return nullptr; }
std::string onednn_version() { return ""; }
OnednnIsa onednn_isa() { return {"", 0}; }
void limit_onednn(const std::string&) {}
}  // namespace weft::target

#else

#include <fmt/format.h>

#include <algorithm>
#include <dnnl.hpp>
#include <mutex>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernel/describe/dot_form.h"
#include "runtime/buffer.h"
#include "runtime/threads.h"
#include "target/cpu/libraries/onednn_support.h"

namespace weft::target {
namespace {

using dnnl::memory;

/// One tensor of the matmul: an extent and a stride for each batch axis, then for rows and columns.
struct View {
  std::vector<int64_t> extents, strides;
  memory::desc describe(memory::data_type type) const { return {memory::dims(extents), type, memory::dims(strides)}; }
};

/// The matmul in oneDNN's terms.
struct Form {
  View a, b, c;
  bool swapped = false;  // C^T = B^T A^T: operands 0 and 1 are exchanged
  bool pack = false;     // B is first reordered to oneDNN's own layout
};

// ---------------------------------------------------------------- normal form

using Batch = kernel::BatchAxis;

/// Chooses the strides of axes of extent 1, which are free, so that the other axis can be the contiguous one. Returns
/// false if neither is contiguous, or rows overlap.
bool settle(int64_t rows, int64_t columns, int64_t& row_stride, int64_t& column_stride) {
  if (rows == 1 && columns == 1) row_stride = column_stride = 1;
  else if (columns == 1) row_stride == 1 ? column_stride = rows : column_stride = 1;
  else if (rows == 1) column_stride == 1 ? row_stride = columns : row_stride = 1;
  if (column_stride == 1) return row_stride >= columns;
  return row_stride == 1 && column_stride >= rows;
}

/// Describes an operand. A batch axis of stride 0 (in A or B) becomes an extent of 1. `span`: a stride for it that
/// oneDNN accepts.
View view_of(const std::vector<Batch>& axes, int64_t Batch::*stride, int64_t rows, int64_t columns, int64_t row_stride,
             int64_t column_stride, int64_t span) {
  View v;
  for (const Batch& axis : axes) {
    const bool broadcast = axis.*stride == 0;
    v.extents.push_back(broadcast ? 1 : axis.extent);
    v.strides.push_back(broadcast ? span : axis.*stride);
  }
  v.extents.insert(v.extents.end(), {rows, columns});
  v.strides.insert(v.strides.end(), {row_stride, column_stride});
  return v;
}

/// Returns whether rows of B collide in the cache: a stride that is a multiple of 4 KiB but no power of two puts them
/// into the same sets, and oneDNN reads them in place (it copies for powers of two). 256x768x3072 runs at 160 GFLOP/s
/// in place, and at 290 including the reorder, with two threads. With few rows the reorder costs more than it saves.
bool rows_collide(const kernel::DotDesc& d) {
  const int64_t bytes = d.b_k * d.b.size();
  const bool power_of_two = (d.b_k & (d.b_k - 1)) == 0;
  return d.b == float32 && d.b_n == 1 && bytes % 4096 == 0 && !power_of_two && d.m >= 48 && d.n >= 256 && d.k >= 64;
}

/// Brings a matmul into oneDNN's form: merges batch axes, settles free strides, and exchanges the operands if C's
/// columns are contiguous. Returns nothing if oneDNN does not support the layout.
std::optional<Form> form_of(kernel::DotDesc d) {
  Form form;
  for (size_t i = 0; i < d.batch.size(); ++i) {
    if (d.batch[i] > 1 && (d.c_batch[i] <= 0 || d.a_batch[i] < 0 || d.b_batch[i] < 0)) return std::nullopt;
  }
  std::vector<Batch> axes = kernel::merged_batch(d);
  kernel::batch_into_rows(d, axes);
  if (d.n == 1) d.c_n = 1, d.c_m = d.m == 1 ? 1 : d.c_m;
  if (!settle(d.m, d.k, d.a_m, d.a_k) || !settle(d.k, d.n, d.b_k, d.b_n) ||
      (d.n > 1 && !settle(d.m, d.n, d.c_m, d.c_n)))
    return std::nullopt;
  if (axes.size() > 4) return std::nullopt;
  if (d.c_n != 1) {
    if (d.bias) return std::nullopt;  // the bias would run along rows, which only the reference implementation supports
    form.swapped = true;
    std::swap(d.a, d.b);
    std::swap(d.m, d.n);
    std::tie(d.a_m, d.a_k, d.b_k, d.b_n) = std::make_tuple(d.b_n, d.b_k, d.a_k, d.a_m);
    std::swap(d.c_m, d.c_n);
    for (Batch& axis : axes) std::swap(axis.a, axis.b);
  }
  form.a = view_of(axes, &Batch::a, d.m, d.k, d.a_m, d.a_k, d.m * d.k);
  form.b = view_of(axes, &Batch::b, d.k, d.n, d.b_k, d.b_n, d.k * d.n);
  form.c = view_of(axes, &Batch::c, d.m, d.n, d.c_m, d.c_n, d.m * d.n);
  form.pack = axes.empty() && rows_collide(d);
  return form;
}

// ---------------------------------------------------------------- primitives

constexpr int max_args = 6;

/// oneDNN's memory objects, for one run at a time.
struct Binding {
  memory a, b, packed, bias, residual, c, scratchpad;
};

/// A primitive for pieces of one form.
struct Primitive {
  bool in_place = false;  // residual and C are the same buffer
  View form_c;
  dnnl::matmul matmul;
  std::optional<dnnl::reorder> reorder;
  memory::desc a, b, packed, bias, residual, c, scratchpad, reorder_scratchpad;
  std::string implementation;
};

/// A part of the matmul: its extents, and where it begins in each operand (elements).
struct Piece {
  Form form;
  int64_t a = 0, b = 0, c = 0, bias = 0;
};

/// Returns the number of pieces: about 15 million multiply-adds each, at least two if there is work for two threads.
int64_t piece_count(double flops) {
  if (flops < 2e6) return 1;
  int64_t count = 2;
  while (count < 16 && flops / static_cast<double>(count) > 30e6) count *= 2;
  return count;
}

/// Cuts along the outermost batch axis if it is long enough, else along the longer of rows and columns, so that the
/// operand that all pieces share is the smaller one. A packed B is cut along its columns, so that every piece packs its
/// own.
std::vector<Piece> cut(const Form& form, double flops) {
  const size_t rank = form.c.extents.size();
  const int64_t count = piece_count(flops);
  size_t axis = 0;
  int64_t grain = 1;
  if (rank == 2 || form.c.extents[0] < count) {
    axis = form.pack || form.c.extents[rank - 1] > form.c.extents[rank - 2] ? rank - 1 : rank - 2;
    grain = 16;
  }
  const int64_t extent = form.c.extents[axis];
  const int64_t each = ((extent + count - 1) / count + grain - 1) / grain * grain;
  std::vector<Piece> pieces;
  for (int64_t begin = 0; begin < extent; begin += each) {
    Piece piece{form};
    const int64_t size = std::min(each, extent - begin);
    const auto narrow = [&](View& v, size_t at) {
      if (v.extents[at] == 1 && extent != 1) return int64_t{0};  // broadcast along this axis
      v.extents[at] = size;
      return begin * v.strides[at];
    };
    piece.c = narrow(piece.form.c, axis);
    if (axis != rank - 1) piece.a = narrow(piece.form.a, axis);
    if (axis != rank - 2) piece.b = narrow(piece.form.b, axis);
    if (axis == rank - 1) piece.bias = begin;
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

dnnl::matmul::primitive_desc matmul_desc(const memory::desc& a, const memory::desc& b, const memory::desc* bias,
                                         const memory::desc& c, const dnnl::primitive_attr& attr) {
#if DNNL_VERSION_MAJOR >= 3
  return bias ? dnnl::matmul::primitive_desc(onednn_engine(), a, b, *bias, c, attr)
              : dnnl::matmul::primitive_desc(onednn_engine(), a, b, c, attr);
#else
  return {bias ? dnnl::matmul::desc(a, b, *bias, c) : dnnl::matmul::desc(a, b, c), attr, onednn_engine()};
#endif
}

void append_activation(dnnl::post_ops& post, kernel::Activation activation) {
  using dnnl::algorithm;
  constexpr algorithm algorithms[] = {algorithm::undef,
                                      algorithm::eltwise_relu,
                                      algorithm::eltwise_gelu_erf,
                                      algorithm::eltwise_gelu_tanh,
                                      algorithm::eltwise_logistic,
                                      algorithm::eltwise_tanh};
  const algorithm a = algorithms[static_cast<size_t>(activation)];
#if DNNL_VERSION_MAJOR >= 3
  post.append_eltwise(a, 0, 0);
#else
  post.append_eltwise(1, a, 0, 0);
#endif
}

/// Describes the bias along C's columns, as a tensor of C's rank.
memory::desc bias_desc(const Form& form, memory::data_type type) {
  const size_t rank = form.c.extents.size();
  const int64_t n = form.c.extents.back();
  View v{std::vector<int64_t>(rank, 1), std::vector<int64_t>(rank, n)};
  v.extents.back() = n;
  v.strides.back() = 1;
  return v.describe(type);
}

/// Computes slice `part` of `parts` of an operand's sum along k. If the matmul is cut along the same axis, this is the
/// slice that the thread's piece has just read. Blocks of rows are summed first, so that the error does not grow with
/// their number.
void add_up(const kernel::DotDesc& d, int64_t part, int64_t parts, std::span<void* const> operands) {
  const bool of_a = d.sum == kernel::OperandSum::a;
  const int64_t extent = of_a ? d.m : d.n, stride = of_a ? d.a_m : d.b_n, depth = of_a ? d.a_k : d.b_k;
  const float* from = static_cast<const float*>(operands[of_a ? 0 : 1]);
  float* to = static_cast<float*>(operands[operands.size() - 2]);
  constexpr int64_t lanes = 32, block = 64;
  const int64_t each = ((extent + parts - 1) / parts + lanes - 1) / lanes * lanes;
  const int64_t end = std::min(extent, (part + 1) * each);
  for (int64_t first = part * each; first < end; first += lanes) {
    const int64_t count = std::min(lanes, end - first);
    float total[lanes] = {};
    for (int64_t k = 0; k < d.k; k += block) {
      float sum[lanes] = {};
      for (int64_t row = k; row < std::min(d.k, k + block); ++row) {
        const float* at = from + row * depth + first * stride;
        if (count == lanes && stride == 1)
          for (int64_t i = 0; i < lanes; ++i) sum[i] += at[i];
        else
          for (int64_t i = 0; i < count; ++i) sum[i] += at[i * stride];
      }
      for (int64_t i = 0; i < lanes; ++i) total[i] += sum[i];
    }
    std::copy_n(total, count, to + first);
  }
}

class OnednnDot final : public LibraryCall {
 public:
  OnednnDot(const kernel::DotDesc& desc, const Form& form) : desc_(desc), pieces_(cut(form, desc.flops())) {
    const runtime::LibraryScope alone;
    implementation_ = primitive(pieces_[0].form, false)->implementation;
  }

  std::string name() const override { return fmt::format("onednn {} ({})", implementation_, pieces_.size()); }

  void run(std::span<void* const> operands) const override {
    const bool sums = desc_.sum != kernel::OperandSum::none;
    const size_t expected = 3u + (desc_.bias ? 1 : 0) + (desc_.residual ? 1 : 0) + (sums ? 1 : 0);
    check(operands.size() == expected, "onednn", "number of operands");
    runtime::parallel_for(static_cast<int64_t>(pieces_.size()), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        run_piece(pieces_[static_cast<size_t>(k)], operands);
        if (sums) add_up(desc_, k, static_cast<int64_t>(pieces_.size()), operands);
      }
    });
  }

  bool optimised() const { return std::string_view(implementation_).substr(0, 3) != "ref"; }

 private:
  size_t residual_at() const { return desc_.bias ? 3 : 2; }

  void run_piece(const Piece& piece, std::span<void* const> operands) const {
    const runtime::LibraryScope alone;
    const bool in_place = desc_.residual && operands[residual_at()] == operands.back();
    const auto p = primitive(piece.form, in_place);
    try {
      execute(*p, piece, operands);
    } catch (const dnnl::error& e) {
      throw_failure("matmul", fmt::format("oneDNN failed on {}: {} (status {})", desc_.to_string(), e.message,
                                          static_cast<int>(e.status)));
    }
  }

  /// Executes a piece: sets the addresses of its operands, packs B if the form says so, and runs the primitive.
  void execute(const Primitive& p, const Piece& piece, std::span<void* const> operands) const {
    const auto at = [](void* base, int64_t elements, Dtype t) {
      return static_cast<char*>(base) + elements * t.size();
    };
    const bool swapped = piece.form.swapped;
    dnnl::stream& stream = onednn_stream();
    const Lease lease(*this, p);
    Binding& m = *lease.binding;
    // oneDNN's own scratch and the packed operand share one block.
    const size_t pad =
        (std::max(p.scratchpad.get_size(), p.reorder ? p.reorder_scratchpad.get_size() : 0) + 63) / 64 * 64;
    char* work = static_cast<char*>(onednn_scratch(pad + (p.reorder ? p.packed.get_size() : 0)));
    m.a.set_data_handle(at(operands[swapped ? 1 : 0], piece.a, swapped ? desc_.b : desc_.a));
    m.b.set_data_handle(at(operands[swapped ? 0 : 1], piece.b, swapped ? desc_.a : desc_.b));
    m.c.set_data_handle(at(operands.back(), piece.c, desc_.c));
    if (p.reorder) {
      m.packed.set_data_handle(work + pad);
      p.reorder->execute(stream, {{DNNL_ARG_FROM, m.b},
                                  {DNNL_ARG_TO, m.packed},
                                  {DNNL_ARG_SCRATCHPAD, memory(p.reorder_scratchpad, onednn_engine(), work)}});
    }
    m.scratchpad.set_data_handle(work);
    dnnl_exec_arg_t args[max_args];
    int n = 0;
    args[n++] = {DNNL_ARG_SRC, m.a.get()};
    args[n++] = {DNNL_ARG_WEIGHTS, p.reorder ? m.packed.get() : m.b.get()};
    args[n++] = {DNNL_ARG_DST, m.c.get()};
    args[n++] = {DNNL_ARG_SCRATCHPAD, m.scratchpad.get()};
    if (desc_.bias) {
      m.bias.set_data_handle(at(operands[2], piece.bias, desc_.c));
      args[n++] = {DNNL_ARG_BIAS, m.bias.get()};
    }
    if (desc_.residual && !p.in_place) {
      m.residual.set_data_handle(at(operands[residual_at()], piece.c, desc_.c));
      const int post = desc_.activation == kernel::Activation::none ? 0 : 1;
      args[n++] = {DNNL_ARG_ATTR_MULTIPLE_POST_OP(post) | DNNL_ARG_SRC_1, m.residual.get()};
    }
    dnnl::error::wrap_c_api(dnnl_primitive_execute(p.matmul.get(), stream.get(), n, args),
                            "could not execute the matmul");
  }

  /// Returns the primitive for a form. All pieces except the last have the same extents, so there are one or two
  /// primitives.
  std::shared_ptr<const Primitive> primitive(const Form& form, bool in_place) const {
    std::lock_guard lock(mutex_);
    for (const auto& p : primitives_) {
      if (p->form_c.extents == form.c.extents && p->in_place == in_place) return p;
    }
    primitives_.push_back(make(form, in_place));
    return primitives_.back();
  }

  std::shared_ptr<const Primitive> make(const Form& form, bool in_place) const {
    auto p = std::make_shared<Primitive>();
    p->in_place = in_place;
    p->form_c = form.c;
    p->a = form.a.describe(onednn_type(form.swapped ? desc_.b : desc_.a));
    p->b = form.b.describe(onednn_type(form.swapped ? desc_.a : desc_.b));
    p->residual = p->c = form.c.describe(onednn_type(desc_.c));
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::post_ops post;
    if (desc_.bias) p->bias = bias_desc(form, onednn_type(desc_.c));
    if (desc_.activation != kernel::Activation::none) append_activation(post, desc_.activation);
    // A binary post-op whose operand is the destination would read it after partial sums were written there; `sum`
    // handles that case.
    if (desc_.residual) in_place ? post.append_sum(1.0f) : post.append_binary(dnnl::algorithm::binary_add, p->residual);
    attr.set_post_ops(post);
    const memory::desc b =
        form.pack ? memory::desc(memory::dims(form.b.extents), onednn_type(desc_.b), memory::format_tag::any) : p->b;
    const auto pd = matmul_desc(p->a, b, desc_.bias ? &p->bias : nullptr, p->c, attr);
    p->implementation = pd.impl_info_str();
    p->scratchpad = pd.scratchpad_desc();
    p->packed = pd.weights_desc();
    p->matmul = dnnl::matmul(pd);
    if (p->packed != p->b) {
      dnnl::primitive_attr plain;
      plain.set_scratchpad_mode(dnnl::scratchpad_mode::user);
      const dnnl::reorder::primitive_desc rd(onednn_engine(), p->b, onednn_engine(), p->packed, plain);
      p->reorder_scratchpad = rd.scratchpad_desc();
      p->reorder = dnnl::reorder(rd);
      p->implementation += " packed";
    }
    return p;
  }

  /// Lends memory objects, which are created once, to one run at a time.
  struct Lease {
    const OnednnDot& call;
    const Primitive& primitive;
    std::unique_ptr<Binding> binding;
    Lease(const OnednnDot& of, const Primitive& p) : call(of), primitive(p) {
      {
        std::lock_guard lock(call.mutex_);
        auto& idle = call.idle_;
        const auto it = std::find_if(idle.begin(), idle.end(), [&](const auto& entry) { return entry.first == &p; });
        if (it != idle.end()) {
          binding = std::move(it->second);
          idle.erase(it);
        }
      }
      if (!binding) binding = bind(p);
    }
    ~Lease() {
      std::lock_guard lock(call.mutex_);
      call.idle_.emplace_back(&primitive, std::move(binding));
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    static std::unique_ptr<Binding> bind(const Primitive& p) {
      const auto of = [](const memory::desc& desc) {
        return desc.get_size() > 0 ? memory(desc, onednn_engine(), nullptr) : memory();
      };
      auto m = std::make_unique<Binding>();
      m->a = of(p.a), m->b = of(p.b), m->c = of(p.c), m->bias = of(p.bias), m->residual = of(p.residual);
      if (p.reorder) m->packed = of(p.packed);
      m->scratchpad = memory(p.scratchpad, onednn_engine(), nullptr);
      return m;
    }
  };

  kernel::DotDesc desc_;
  std::vector<Piece> pieces_;
  std::string implementation_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const Primitive>> primitives_;
  mutable std::vector<std::pair<const Primitive*, std::unique_ptr<Binding>>> idle_;
};

/// Returns whether oneDNN uses an instruction set. Values of cpu_isa are sets of bits, each a subset of its
/// successors'.
bool has(dnnl::cpu_isa wanted) {
  const int isa = static_cast<int>(dnnl::get_effective_cpu_isa()), bits = static_cast<int>(wanted);
  return (isa & bits) == bits;
}

/// Returns whether 8-bit matmuls are exact: without VNNI, oneDNN adds pairs of 8-bit products in 16 bits, which
/// saturates.
bool bytes_are_exact() { return has(dnnl::cpu_isa::avx512_core_vnni); }

bool dtypes_fit(const kernel::DotDesc& d) {
  if (d.a == float32 && d.b == float32) return d.c == float32;
  if (d.b == int8) return bytes_are_exact() && (d.a == int8 || d.a == uint8) && d.c == int32 && !d.bias && !d.residual;
  const bool low = d.a == bfloat16 || d.a == float16;
  return low && d.b == d.a && (d.c == d.a || d.c == float32);
}

}  // namespace

const dnnl::engine& onednn_engine() {
  static const auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);  // calls may outlive static objects
  return *engine;
}

dnnl::stream& onednn_stream() {
  thread_local dnnl::stream stream(onednn_engine());
  return stream;
}

void* onednn_scratch(size_t bytes) {
  thread_local runtime::BufferRef buffer;
  if (!buffer || buffer->bytes() < bytes) {
    buffer.reset();
    buffer = runtime::allocate(bytes);
  }
  return buffer->data();
}

memory::data_type onednn_type(Dtype t) {
  if (t == bfloat16) return memory::data_type::bf16;
  if (t == float16) return memory::data_type::f16;
  if (t == int8) return memory::data_type::s8;
  if (t == uint8) return memory::data_type::u8;
  if (t == int32) return memory::data_type::s32;
  return memory::data_type::f32;
}

std::shared_ptr<const LibraryCall> onednn_dot(const kernel::DotDesc& desc) {
  double work = static_cast<double>(desc.m) * static_cast<double>(desc.n) * static_cast<double>(desc.k);
  for (int64_t extent : desc.batch) work *= static_cast<double>(extent);
  if (desc.pre_activation != kernel::PreActivation::none) return nullptr;
  if (desc.sum != kernel::OperandSum::none && (desc.a != float32 || !desc.batch.empty())) return nullptr;
  if (!dtypes_fit(desc) || work < onednn_min_work) return nullptr;
  std::optional<Form> form = form_of(desc);
  if (!form) return nullptr;
  try {
    auto call = std::make_shared<OnednnDot>(desc, *form);
    return call->optimised() ? call : nullptr;
  } catch (const dnnl::error&) {
    return nullptr;  // unsupported layout
  }
}

void limit_onednn(const std::string& isa) {
  if (isa == "native") return;
  const auto most = isa == "generic" ? dnnl::cpu_isa::sse41
                    : isa == "avx2"  ? dnnl::cpu_isa::avx2
                                     : dnnl::cpu_isa::avx512_core;
  if (dnnl::set_max_cpu_isa(most) != dnnl::status::success)
    throw_failure("cpu target", "oneDNN has been used already; set the instruction set before anything is computed");
}

OnednnIsa onednn_isa() {
  using dnnl::cpu_isa;
  constexpr std::pair<cpu_isa, OnednnIsa> known[] = {{cpu_isa::avx512_core_amx, {"AMX", 512}},
                                                     {cpu_isa::avx512_core_bf16, {"AVX-512 BF16", 512}},
                                                     {cpu_isa::avx512_core_vnni, {"AVX-512 VNNI", 512}},
                                                     {cpu_isa::avx512_core, {"AVX-512", 512}},
                                                     {cpu_isa::avx2, {"AVX2", 256}},
                                                     {cpu_isa::avx, {"AVX", 256}}};
  for (const auto& [isa, name] : known)
    if (has(isa)) return name;
  return {"SSE4.1", 128};
}

std::string onednn_version() {
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("{}.{}.{}", v->major, v->minor, v->patch);
}

}  // namespace weft::target

#endif
