// From text to a kernel, by the table of fields.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "kernel/rules.h"
#include "kernel/text/fields.h"
#include "kernel/text/text.h"

namespace weft::kernel {
namespace {

using std::string;
using Kind = Token::Kind;

constexpr int deepest = 64;                        // blocks in blocks
constexpr int64_t most_memory = int64_t{1} << 47;  // elements of an array or a local buffer
constexpr int64_t most_arrivals = 1024, widest_swizzle = 128;
constexpr const char* lines_of = "tile IR";  // stands for the file in messages about instructions

class Parser {
 public:
  explicit Parser(std::string_view text) : in_(text) {}

  ParsedKernel run() {
    header();
    block(kernel_.body, 1);
    if (in_.peek().kind == Kind::line) in_.take();
    if (in_.peek().kind != Kind::end) refuse(in_.peek(), "the kernel has ended: remove what stands behind it");
    for (size_t k = 0; k < kernel_.locals.size(); ++k)
      if (kernel_.locals[k].elements == 0)
        refuse(in_.peek(), fmt::format("l{} is not declared, and l{} is: number them in order", k, k + 1));
    try {
      verify(kernel_);
    } catch (const internal_error& e) {
      throw_invalid("tile IR", string(e.what()) + ": correct the instruction");
    }
    return {std::move(kernel_), std::move(launch_)};
  }

 private:
  [[noreturn]] static void refuse(const Token& at, const string& what) { Lexer::refuse(at, what); }

  // ---- the header ----

  void header() {
    in_.expect("kernel");
    kernel_.name = in_.expect(Kind::name, "the kernel's name, @name,").text;
    in_.expect("(");
    if (in_.peek().text.starts_with("p") && in_.peek().kind == Kind::word) {
      do param();
      while (in_.accept(","));
    }
    if (in_.accept(";")) {
      do {
        symbol();
      } while (in_.accept(","));
    }
    in_.expect(")");
    if (in_.accept("grid")) grid();
    else if (has_extents_) refuse(in_.peek(), "the arrays have extents: write \"grid\" and the number of programs");
    kernel_.any_size = in_.accept("any_size");
    kernel_.ordered = in_.accept("ordered");
    if (in_.accept("clusters")) kernel_.cluster = static_cast<int>(in_.whole("the programs of a cluster", 1, 16));
    for (const auto& [word, member] : launch_words)
      if (in_.accept(word)) kernel_.launch.*member = static_cast<int>(in_.whole(std::string(word), 1, 1024));
    in_.expect("{");
    end_line();
    while (in_.accept("local")) {
      declare_local();
      end_line();
    }
    // Allocations stand anywhere in the block, and references to parameters are counted already.
  }

  /// Reads "s0", or of a launch "s0 n bound(64)".
  void symbol() {
    numbered('s', kernel_.symbols.size());
    kernel_.symbols.push_back(fmt::format("s{}", kernel_.symbols.size()));
    if (!has_extents_) return;
    const Token name = in_.take();
    if (name.kind != Kind::word && name.kind != Kind::string)
      refuse(name, "the symbol has no name: write one, and its largest value as bound(64)");
    in_.expect("bound"), in_.expect("(");
    symbols_.push_back({name.text, in_.whole("the largest value of a symbol", 1, most_memory)});
    in_.expect(")");
    kernel_.symbols.back() = fmt::format("{}<={}", name.text, symbols_.back().bound);
  }

  /// Reads the number of programs, which may be an expression of symbols, and gives extents their bounds.
  void grid() {
    Launch launch{std::move(arrays_), std::move(symbols_), 1, {}};
    const Token at = in_.peek();
    if (const Length count = length(kernel_.symbols.size(), deepest); count.is_number()) {
      launch.programs = count.value({});
      if (launch.programs < 0) refuse(at, "the number of programs is negative: write 0 or more");
    } else {
      launch.count = count;
      in_.expect("most");
      launch.programs = in_.whole("the largest number of programs", 0);
    }
    for (Launch::Array& array : launch.arrays)
      for (size_t axis = 0; axis < array.symbols.size(); ++axis) {
        if (array.symbols[axis] < 0) continue;
        if (static_cast<size_t>(array.symbols[axis]) >= launch.symbols.size())
          refuse(at, fmt::format("an extent is s{}, and there is no such symbol: write it behind the parameters",
                                 array.symbols[axis]));
        array.dims[axis] = launch.symbols[static_cast<size_t>(array.symbols[axis])].bound;
      }
    launch_ = std::move(launch);
  }

  /// Reads "64", "s0" or "mul(s0, 8)".
  Length length(size_t symbols, int depth) {
    if (in_.peek().kind == Kind::number) return Length::number(in_.whole("a length"));
    const Token word = in_.expect(Kind::word, "a number, a symbol or an operator of lengths");
    if (const size_t number = symbol_number(word); number < symbols)
      return Length::symbol(static_cast<int32_t>(number));
    const auto op = operator_named(word);
    if (depth == 0) refuse(word, "the expression is too deep: write a simpler one");
    in_.expect("(");
    const Length left = length(symbols, depth - 1);
    in_.expect(",");
    const Length right = length(symbols, depth - 1);
    in_.expect(")");
    return Length::apply(op, left, right);
  }

  /// Returns the number of "s3"; none of another word.
  static size_t symbol_number(const Token& word) {
    const string& t = word.text;
    const bool digits = t.size() > 1 && t.size() < 8 && t[0] == 's' &&
                        std::all_of(t.begin() + 1, t.end(), [](char c) { return c >= '0' && c <= '9'; });
    return digits ? static_cast<size_t>(std::stoul(t.substr(1))) : SIZE_MAX;
  }

  static ScalarOp operator_named(const Token& word) {
    for (size_t k = 0; k < static_cast<size_t>(ScalarOp::count_); ++k)
      if (const auto op = static_cast<ScalarOp>(k); Length::takes(op) && info(op).name == word.text) return op;
    refuse(word, fmt::format("{} is no symbol and no operator of lengths: add, sub, mul, floordiv, mod, min, max",
                             word.text));
  }

  /// Takes "p3" or "l3", whose number must be `next`.
  void numbered(char letter, size_t next) {
    const Token word = in_.expect(Kind::word, fmt::format("{}{}", letter, next));
    if (word.text != fmt::format("{}{}", letter, next))
      refuse(word, fmt::format("{} stands where {}{} is due: number them in order", word.text, letter, next));
  }

  void param() {
    const Token at = in_.peek();
    numbered('p', kernel_.params.size());
    Param p;
    p.name = at.text;
    if (in_.peek().kind == Kind::word || in_.peek().kind == Kind::string) p.name = in_.take().text;
    in_.expect(":");
    Launch::Array array;
    const bool updated = in_.accept("inout"), out = !updated && in_.accept("out");
    p.written = updated || out;
    array.read = !out;
    p.constant = in_.accept("constant");
    p.dtype = read_dtype(in_);
    if (in_.accept("[")) {
      extents(array, at);
      has_extents_ = true;
    } else if (has_extents_) {
      refuse(at, "the parameter has no extents, and others have: give all of them extents, or none");
    }
    if (has_extents_ && arrays_.size() != kernel_.params.size())
      refuse(at, "the parameters before this one have no extents: give all of them extents, or none");
    if (has_extents_) arrays_.push_back(std::move(array));
    kernel_.params.push_back(std::move(p));
  }

  /// Reads the extents of an array; those that are symbols have their bounds later.
  void extents(Launch::Array& array, const Token& at) {
    int64_t elements = 1;
    std::vector<int64_t>& dims = array.dims;
    while (!in_.accept("]")) {
      if (!dims.empty()) in_.expect(",");
      array.symbols.push_back(-1);
      if (in_.peek().kind == Kind::word) {
        const size_t number = symbol_number(in_.peek());
        if (number > INT16_MAX) refuse(in_.peek(), "the extent is no symbol and no number: write s0, or 64");
        array.symbols.back() = static_cast<int32_t>(number);
        dims.push_back(1);
        in_.take();
        continue;
      }
      dims.push_back(in_.whole("an extent", 0, most_memory));
      if (__builtin_mul_overflow(elements, std::max<int64_t>(dims.back(), 1), &elements) || elements > most_memory)
        refuse(at, "the array has more than 2^47 elements: give it smaller extents");
    }
  }

  /// Reads " l0: f32[8] share(4)". Local buffers may be declared in any order, but each of them once.
  Ref declare_local() {
    const Token at = in_.expect(Kind::word, "a local buffer, l0,");
    const size_t number = numbered_from('l', at);
    in_.expect(":");
    Local l{read_dtype(in_), 0};
    in_.expect("[");
    l.elements = in_.whole("the number of elements", 1, most_memory);
    in_.expect("]");
    const auto option = [&](const char* name, int64_t most) {
      if (!in_.accept(name)) return int64_t{0};
      in_.expect("(");
      const int64_t given = in_.whole(name, 1, most);
      in_.expect(")");
      return given;
    };
    l.share = option("share", most_memory);
    l.arrivals = option("barriers", most_arrivals);
    l.swizzle = static_cast<int>(option("swizzle", widest_swizzle));
    if (l.swizzle != 0 && l.swizzle != 32 && l.swizzle != 64 && l.swizzle != 128)
      refuse(at, fmt::format("lines of {} bytes are swizzled: write 32, 64 or 128", l.swizzle));
    if (kernel_.locals.size() <= number) kernel_.locals.resize(number + 1, {float32, 0});
    if (kernel_.locals[number].elements > 0) refuse(at, at.text + " is declared twice: give it another number");
    kernel_.locals[number] = l;
    return static_cast<Ref>(kernel_.params.size() + number);
  }

  /// Returns the number in "p12" or "l12".
  static size_t numbered_from(char letter, const Token& word) {
    const bool digits = word.text.size() > 1 && word.text.find_first_not_of("0123456789", 1) == string::npos;
    if (word.text[0] != letter || !digits || word.text.size() > 5)
      refuse(word,
             fmt::format("{} stands where {}0, {}1, … to {}9999 is due: write one", word.text, letter, letter, letter));
    return static_cast<size_t>(std::stoi(word.text.substr(1)));
  }

  // ---- values ----

  Value define(const Token& name, const Type& type) {
    kernel_.types.push_back(type);
    const auto v = static_cast<Value>(kernel_.types.size() - 1);
    if (!values_.emplace(name.text, v).second)
      refuse(name, fmt::format("{} is defined twice: give it another number", name.text));
    return v;
  }

  bool at_value() const {
    const Token& t = in_.peek();
    return t.kind == Kind::value || (t.kind == Kind::word && (t.text == "_" || is_symbol(t.text)));
  }
  static bool is_symbol(const string& word) {
    return word.size() > 1 && word[0] == 's' && word.find_first_not_of("0123456789", 1) == string::npos;
  }
  Token name() {
    if (!at_value()) refuse(in_.peek(), "a value is missing: write %0, s0 or _");
    return in_.take();
  }
  Value value() {
    const Token t = name();
    if (t.text == "_") return no_value;
    const auto found = values_.find(t.text);
    if (found == values_.end()) refuse(t, fmt::format("{} is not defined: define it above this line", t.text));
    return found->second;
  }
  const Type& type_of(Value v, const Token& at) const {
    if (v == no_value) refuse(at, "a value is absent where its type is needed: give one");
    return kernel_.types[static_cast<size_t>(v)];
  }

  // ---- blocks ----

  void end_line() {
    if (in_.peek().kind == Kind::line) in_.take();
    else if (in_.peek().kind != Kind::end)
      refuse(in_.peek(), fmt::format("\"{}\" is not understood here: end the line before it", in_.peek().text));
  }

  /// Reads instructions up to a closing brace, which it takes. A block without a yield gets an empty one.
  void block(Block& out, int depth) {
    if (depth > deepest) refuse(in_.peek(), fmt::format("blocks are nested deeper than {}: nest fewer", deepest));
    while (!in_.accept("}")) {
      if (in_.peek().kind == Kind::end) refuse(in_.peek(), "\"}\" is missing: close the block");
      instruction(out, depth);
    }
    if (out.insts.empty() || out.insts.back().op != Op::yield) out.insts.push_back({});
  }

  void instruction(Block& out, int depth) {
    const Token at = in_.peek();
    Inst inst;
    std::vector<Token> results;
    if (at_value()) {
      do results.push_back(name());
      while (in_.accept(","));
      in_.expect("=");
    }
    const string word = in_.peek().text;
    kind(inst);
    kernel_.lines.push_back({lines_of, at.line});
    inst.line = static_cast<int32_t>(kernel_.lines.size() - 1);
    std::vector<Type> types;
    Bodies bodies;
    if (inst.op == Op::alloc) allocation(inst);
    else if (inst.op == Op::loop) loop(inst, bodies, types, at);
    else operands(inst, bodies, types, at);
    if (results.size() != types.size())
      refuse(at, fmt::format("{} results are named, and there are {}: name all of them", results.size(), types.size()));
    if (!types.empty()) inst.type = types[0];
    // Results are named in front and exist behind the blocks: the blocks cannot name them.
    if (in_.accept("{")) blocks(inst, bodies, depth);
    else end_line();
    for (size_t k = 0; k < results.size(); ++k) inst.results.push_back(define(results[k], types[k]));
    if (const string wrong = broken_rule(kernel_, inst); !wrong.empty())
      refuse(at, fmt::format("{}: {}: correct the instruction", word, wrong));
    out.insts.push_back(std::move(inst));
  }

  /// Takes the word of the kind: of a scalar operator its own.
  void kind(Inst& inst) {
    const Token word = in_.expect(Kind::word, "an instruction");
    for (const OpInfo& row : ops)
      if (row.name == word.text && row.op != Op::scalar) return void(inst.op = row.op);
    for (size_t k = 0; k < static_cast<size_t>(ScalarOp::count_); ++k)
      if (info(static_cast<ScalarOp>(k)).name == word.text) {
        inst.op = Op::scalar;
        inst.scalar_op = static_cast<ScalarOp>(k);
        return;
      }
    refuse(word, fmt::format("there is no instruction {}: docs/operators.md lists the scalar operators", word.text));
  }

  struct Argument {
    Token name;
    Type type;
  };
  using Bodies = std::vector<std::vector<Argument>>;  // the values that each block takes

  void blocks(Inst& inst, const Bodies& bodies, int depth) {
    for (size_t k = 0;; ++k) {
      end_line();
      Block& b = inst.blocks.emplace_back();
      if (k < bodies.size())
        for (const Argument& a : bodies[k]) b.arguments.push_back(define(a.name, a.type));
      block(b, depth + 1);
      if (!in_.accept("then") && !in_.accept("else") && !in_.accept("and")) break;
      in_.expect("{");
    }
    end_line();
    if (inst.blocks.size() < bodies.size())
      refuse(in_.peek(), "a block is missing: write as many as there are lists of its values");
  }

  // ---- instructions ----

  void allocation(Inst& inst) {
    inst.ref = declare_local();
    inst.number = Number::of_int(kernel_.locals[static_cast<size_t>(inst.ref) - kernel_.params.size()].elements);
  }

  /// "parallel %5 = %1 to %2 step %3 stages 2 carry(%6 = %4)"
  void loop(Inst& inst, Bodies& bodies, std::vector<Type>& types, const Token& at) {
    inst.parallel = in_.accept("parallel");
    bodies.push_back({{name(), Type{int64, {}}}});
    in_.expect("=");
    inst.args.push_back(value());
    in_.expect("to");
    inst.args.push_back(value());
    in_.expect("step");
    inst.args.push_back(value());
    if (in_.accept("stages")) inst.axis = static_cast<int>(in_.whole("stages", 1, 1024));
    if (!in_.accept("carry")) return;
    in_.expect("(");
    do {
      const Token inner = name();
      in_.expect("=");
      inst.args.push_back(value());
      types.push_back(type_of(inst.args.back(), at));
      bodies[0].push_back({inner, types.back()});
    } while (in_.accept(","));
    in_.expect(")");
  }

  /// Everything behind the kind of other instructions, up to a brace or the end of the line.
  void operands(Inst& inst, Bodies& bodies, std::vector<Type>& types, const Token& at) {
    for (const FieldText& field : field_texts())
      if (field.form == FieldForm::front && in_.peek().kind == Kind::word && !at_value() && in_front(inst.op, field))
        field.read(in_, inst);
    if (inst.op == Op::constant) constant_number(inst);
    const int address = address_of(inst.op);
    std::vector<Value> behind;
    while (in_.peek().kind != Kind::line && in_.peek().kind != Kind::end && !in_.peek().is("{") &&
           !in_.peek().is(":")) {
      if (at_value()) inst.args.push_back(value());
      else clause(inst, bodies, behind);
    }
    if (address >= 0) place_address(inst, static_cast<size_t>(address), at);
    if (in_.accept(":")) {
      do types.push_back(read_type(in_));
      while (in_.accept(","));
      if (has_own_type(inst.op)) inst.type = types[0], types.clear();
    }
    known_types(inst, behind, types, at);
    if (address >= 0) absent_arguments(inst, behind, types, at);
    inst.args.insert(inst.args.end(), behind.begin(), behind.end());
  }

  static bool in_front(Op op, const FieldText& field) { return op != Op::scalar && (info(op).fields & field.field); }

  /// Reads the number of a constant by the dtype, which stands behind it.
  void constant_number(Inst& inst) {
    Lexer ahead = in_;
    while (ahead.peek().kind != Kind::line && ahead.peek().kind != Kind::end && !ahead.peek().is(":")) ahead.take();
    ahead.expect(":");
    inst.number = read_number(in_, read_type(ahead).dtype);
  }

  void clause(Inst& inst, Bodies& bodies, std::vector<Value>& behind) {
    const Token word = in_.expect(Kind::word, "an argument or a clause");
    if (in_.accept("[")) return memory(inst, word);
    const FieldText* const field = field_named(inst.op, word.text);
    if (field && field->form == FieldForm::flag) return field->read(in_, inst);
    if (!in_.peek().is("(")) refuse(word, fmt::format("\"{}\" is not understood here: remove it", word.text));
    in_.take();
    const bool more = word.text == behind_address(inst.op) && address_of(inst.op) >= 0;
    if (more || (word.text == "else" && inst.op == Op::when)) {
      do behind.push_back(value());
      while (in_.accept(","));
    } else if (word.text == "by" && info(inst.op).blocks != 0) {
      body_arguments(bodies.emplace_back());
    } else if (word.text == "other" && has_number_of_dtype(inst.op)) {
      if (!is_ref(kernel_, inst.ref)) refuse(word, "the array is missing: write it before this clause");
      inst.number = read_number(in_, ref_dtype(kernel_, inst.ref));
    } else if (field && field->form == FieldForm::clause) {
      field->read(in_, inst);
    } else {
      refuse(word, fmt::format("there is no clause {} of {}: remove it", word.text, op_name(inst.op)));
    }
    in_.expect(")");
  }

  void body_arguments(std::vector<Argument>& out) {
    if (in_.peek().is(")")) return;
    do {
      const Token inner = name();
      in_.expect(":");
      out.push_back({inner, read_type(in_)});
    } while (in_.accept(","));
  }

  /// Reads "p0[%2]", whose first token has been taken.
  void memory(Inst& inst, const Token& word) {
    if (address_of(inst.op) < 0) refuse(word, fmt::format("{} takes no array: remove it", op_name(inst.op)));
    const bool local = word.text[0] == 'l';
    const size_t k = numbered_from(local ? 'l' : 'p', word), params = kernel_.params.size();
    if (k >= (local ? kernel_.locals.size() : params)) refuse(word, word.text + " does not exist: declare it");
    inst.ref = static_cast<Ref>(local ? params + k : k);
    address_ = value();
    in_.expect("]");
  }

  void place_address(Inst& inst, size_t position, const Token& at) {
    if (inst.ref < 0) refuse(at, "the array is missing: write p0[%1], with the address in brackets");
    if (inst.args.size() != position)
      refuse(at, fmt::format("{} values are given, and {} are wanted", inst.args.size(), position));
    inst.args.push_back(address_);
  }

  /// Limits and masks that are not written are absent values.
  void absent_arguments(const Inst& inst, std::vector<Value>& behind, const std::vector<Type>& types, const Token& at) {
    if (!behind.empty() || inst.op == Op::prefetch || inst.op == Op::wait_until) return;
    if (behind_address(inst.op) == "mask") return behind.push_back(no_value);
    if (inst.op == Op::load && types.empty()) refuse(at, "the type of the tile is missing: write it behind a colon");
    behind.assign(inst.op == Op::load ? types[0].dims.size() : type_of(inst.args[0], at).dims.size(), no_value);
  }

  void known_types(const Inst& inst, const std::vector<Value>& behind, std::vector<Type>& types, const Token& at) {
    if (inst.op == Op::program_id || inst.op == Op::symbol) types.push_back({int64, {}});
    if (inst.op == Op::when)
      for (const Value v : behind) types.push_back(type_of(v, at));
  }

  Lexer in_;
  Kernel kernel_;
  std::optional<Launch> launch_;
  std::vector<Launch::Array> arrays_;
  std::vector<Launch::Extent> symbols_;
  bool has_extents_ = false;
  std::map<string, Value, std::less<>> values_;
  Value address_ = no_value;
};

}  // namespace

ParsedKernel parse(std::string_view text) { return Parser(text).run(); }

}  // namespace weft::kernel
