// Attention of one query a head (kernels/attention/decode.h), of bfloat16, on arrays [batch, heads, length, width].
#include <cmath>
#include <span>
#include <utility>

#include "kernels/attention/decode.h"
#include "tools/weft/kernel/library.h"

namespace weft::tool {

namespace {

struct DecodeExtents {
  int64_t batch, heads, keys, width;
};

/// The forms of a launch: all keys of a head, a split of them, what joins the splits, and with the newest key and value
/// appended to memory.
enum class DecodeForm : uint8_t { whole, split, join, append };

/// A kernel of decoding with all of its arrays, whose parameters are the buffers in their order.
class DecodeArrays {
 public:
  DecodeArrays(const DecodeExtents& e, DecodeForm form, const target::Machine& machine) : e_(e), form_(form) {
    kernels::Attention& a = d.a;
    a.widened = !machine.simt;
    a.batch = {e.batch, e.heads};
    a.queries = 1, a.keys = e.keys, a.width = a.value_width = e.width;
    a.scale = 1 / std::sqrt(static_cast<double>(e.width));
    if (form == DecodeForm::split || form == DecodeForm::join) {
      d.splits = 8, d.split_keys = (e.keys + d.splits - 1) / d.splits;
      const k::Use use = form == DecodeForm::split ? k::Use::out : k::Use::in;
      d.part_o = array(use, float32, {d.splits, e.width}), d.part_lse = array(use, float32, {d.splits});
    }
    if (form != DecodeForm::split) a.o = array(k::Use::out, a.dtype, {1, e.width});
    if (form == DecodeForm::join) return;
    const bool appends = form == DecodeForm::append;
    const k::Use use = appends ? k::Use::in_out : k::Use::in;
    a.k = array(use, a.dtype, {e.keys, e.width}), a.v = array(use, a.dtype, {e.keys, e.width});
    if (!appends) a.q = array(k::Use::in, a.dtype, {1, e.width});
    d.blocks = kernels::decode_blocks(a, d.splits > 0 ? 1 : machine.cluster);
    if (!appends) return;
    a.mask = {static_cast<int>(params.size()), int32, 0, {0, 0}, 0, 0};
    params.push_back({k::Use::in, int32, {1}});
    newest_ = params.size();
    for (int row = 0; row < 3; ++row) array(k::Use::in, a.dtype, {1, e.width});
  }

  k::Program traced() {
    const bool joins = form_ == DecodeForm::join;
    return k::trace("attention_decode", params, joins ? kernels::decode_join_grid(d) : kernels::decode_grid(d),
                    [&](std::span<const k::AnyRef> memory) {
                      if (form_ == DecodeForm::append)
                        d.append = [&, memory](const std::vector<k::Index>& batch) { return newest(memory, batch); };
                      if (joins) kernels::decode_join(d, memory);
                      else kernels::decode(d, memory, k::Index(e_.keys));
                    });
  }

  kernels::Decode d;
  std::vector<k::Param> params;

 private:
  /// Adds a row-major array of the batch axes and these.
  kernels::AttentionArray array(k::Use use, Dtype t, const std::vector<int64_t>& rows) {
    const int64_t columns = rows.size() > 1 ? rows[1] : 1, matrix = rows[0] * columns;
    params.push_back({use, t, {e_.batch * e_.heads * matrix}});
    return {static_cast<int>(params.size()) - 1, t, 0, {e_.heads * matrix, matrix}, columns, rows.size() > 1 ? 1 : 0};
  }

  /// Loads the rows of a head's newest position, whose arrays are the last ones.
  kernels::DecodeRows newest(std::span<const k::AnyRef> memory, const std::vector<k::Index>& batch) const {
    const auto row = [&](size_t number) {
      const k::AnyRef& all = memory[newest_ + number];
      const k::Index first = (batch[0] * e_.heads + batch[1]) * e_.width;
      const k::Any loaded = k::load(all, std::array{k::Span{.start = first.any(), .size = e_.width}});
      return k::Tile<float, 1>(k::cast(loaded, float32));
    };
    return {row(0), row(1), row(2)};
  }

  DecodeExtents e_;
  DecodeForm form_;
  size_t newest_ = 0;
};

LibraryKernel decode_kernel(const std::string& name, const std::string& summary, DecodeForm form) {
  constexpr DecodeExtents usual{4, 16, 2048, 64}, few{1, 2, 150, 32};
  return {name, summary, LibraryKernel::MadeFor::all, [=](const target::Machine& machine, bool small) {
            const DecodeExtents e = small ? few : usual;
            DecodeArrays arrays(e, form, machine);
            const k::Program made = arrays.traced();
            std::vector<graph::Type> types;
            for (const k::Param& p : arrays.params) types.push_back({{p.dims[0]}, p.dtype});
            // How many keys the last form sees is a number of the arguments: its products are not known.
            const bool all_keys = form == DecodeForm::whole || form == DecodeForm::split;
            const double pairs = all_keys ? static_cast<double>(e.batch * e.heads * e.keys) : 0;
            return on_arrays(made.data().kernel, made.programs(), types, 4 * pairs * static_cast<double>(e.width));
          }};
}

}  // namespace

std::vector<LibraryKernel> decode_kernels() {
  return {decode_kernel("attention_decode", "attention of one query a head to all keys", DecodeForm::whole),
          decode_kernel("attention_decode_split", "the same of parts of the keys", DecodeForm::split),
          decode_kernel("attention_decode_join", "the results of parts joined", DecodeForm::join),
          decode_kernel("attention_decode_append",
                        "one query, to so many keys as memory says, with the newest key and value appended",
                        DecodeForm::append)};
}

}  // namespace weft::tool
