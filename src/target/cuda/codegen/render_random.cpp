// Renders words of counter-based generators.
#include <fmt/format.h>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

/// Returns the text of a word of Philox. The words of a call in a block are computed once. `one`: it is the same in
/// every lane.
std::string Renderer::random_word(const Inst& i, const std::vector<std::string>& args, bool one) {
  const Value result = i.results[0];
  const bool scalar = one || i.type.rank() == 0;
  RandomCall& call = words_[i.args];
  if (call.name.empty() || call.scalar != scalar || (!scalar && !(call.layout == layout_of(result)))) {
    call = {fmt::format("words{}", result), scalar, scalar ? Layout{} : layout_of(result)};
    const std::string text = fmt::format("philox({})", fmt::join(args, ", "));
    if (scalar) add_before_shared(fmt::format("const RandomWords {} = {};", call.name, text));
    else each_register("RandomWords", call.name, call.layout.registers(), text);
  }
  const int word = static_cast<int>(i.scalar_op) - static_cast<int>(kernel::ScalarOp::philox0);
  return fmt::format("{}{}.at[{}]", call.name, scalar ? "" : "[r]", word);
}

}  // namespace weft::target::cuda
