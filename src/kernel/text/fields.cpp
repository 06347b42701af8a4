#include "kernel/text/fields.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"

namespace weft::kernel {
namespace {

using std::string;

constexpr int64_t most_elements = (int64_t{1} << 31) - 1;  // of a tile

std::vector<int64_t> read_list(Lexer& in, std::string_view what) {
  std::vector<int64_t> out;
  if (in.peek().is(")") || in.peek().is("]")) return out;
  do out.push_back(in.whole(what));
  while (in.accept(","));
  return out;
}

template <class T>
T read_named(Lexer& in, std::span<const std::pair<T, std::string_view>> names, std::string_view what) {
  const Token word = in.expect(Token::Kind::word, what);
  string known;
  for (const auto& [value, name] : names) {
    if (word.text == name) return value;
    known += (known.empty() ? "" : ", ") + string(name);
  }
  Lexer::refuse(word, fmt::format("there is no {} {}: known are {}", what, word.text, known));
}

constexpr std::pair<DotPrecision, std::string_view> precisions[] = {
    {DotPrecision::exact, "exact"}, {DotPrecision::tf32, "tf32"}, {DotPrecision::tf32x3, "tf32x3"}};

ScalarOp read_operator(Lexer& in) {
  const Token word = in.expect(Token::Kind::word, "a scalar operator");
  for (size_t k = 0; k < static_cast<size_t>(ScalarOp::count_); ++k)
    if (info(static_cast<ScalarOp>(k)).name == word.text) return static_cast<ScalarOp>(k);
  Lexer::refuse(word, fmt::format("there is no scalar operator {}: docs/operators.md lists them", word.text));
}

Reducer read_reducer(Lexer& in) {
  std::vector<std::pair<Reducer, std::string_view>> names;
  for (const ReducerInfo& row : reducers) names.emplace_back(row.reducer, row.name);
  return read_named<Reducer>(in, names, "reducer");
}

Ref as_ref(int64_t n) { return static_cast<Ref>(n); }

int read_small(Lexer& in) { return static_cast<int>(in.whole("a number", INT32_MIN, INT32_MAX)); }

void read_matrices(Lexer& in, Inst& inst) {
  inst.left = as_ref(read_small(in));
  in.expect(",");
  inst.right = as_ref(read_small(in));
}

constexpr std::pair<MemoryOrder, std::string_view> orders[] = {{MemoryOrder::relaxed, "relaxed"},
                                                               {MemoryOrder::acquire, "acquire"},
                                                               {MemoryOrder::release, "release"},
                                                               {MemoryOrder::acq_rel, "acq_rel"}};
constexpr std::pair<MemoryScope, std::string_view> scopes[] = {{MemoryScope::block, "block"},
                                                               {MemoryScope::cluster, "cluster"},
                                                               {MemoryScope::device, "device"},
                                                               {MemoryScope::system, "system"}};

string write_ordering(const Inst& inst) {
  if (inst.ordering == AtomicOrder{}) return "";
  return fmt::format("{} {}", orders[static_cast<size_t>(inst.ordering.order)].second,
                     scopes[static_cast<size_t>(inst.ordering.scope)].second);
}
void read_ordering(Lexer& in, Inst& inst) {
  inst.ordering.order = read_named<MemoryOrder>(in, orders, "order of memory");
  inst.ordering.scope = read_named<MemoryScope>(in, scopes, "scope");
}

LaneOp read_lane_op(Lexer& in) {
  std::vector<std::pair<LaneOp, std::string_view>> names;
  for (const LaneInfo& row : lane_ops) names.emplace_back(row.op, row.name);
  return read_named<LaneOp>(in, names, "function of lanes");
}

/// "name" "text" "constraints" "header" pack effects shared, block, grid, then the names of arguments and of results.
string write_code(const Inst& inst) {
  const InlineCode& c = *inst.code;
  string out = fmt::format("{} {} {} {} {} {} {}", quoted(c.name), quoted(c.text), quoted(c.constraints),
                           quoted(c.header), c.pack, int{c.effects}, c.shared_bytes);
  for (const auto* extents : {&c.block, &c.grid})
    for (const int64_t n : *extents) out += fmt::format(" {}", n);
  for (const auto* names : {&c.inputs, &c.outputs}) {
    out += fmt::format(" {}", names->size());
    for (const string& name : *names) out += ' ' + quoted(name);
  }
  return out;
}
void read_code(Lexer& in, Inst& inst) {
  InlineCode c;
  const auto text = [&] { return in.expect(Token::Kind::string, "a text in quotes").text; };
  for (string* field : {&c.name, &c.text, &c.constraints, &c.header}) *field = text();
  c.pack = static_cast<int>(in.whole("the elements at once", 1, 16));
  c.effects = in.whole("whether it has effects", 0, 1) == 1;
  c.shared_bytes = in.whole("bytes of shared memory", 0, INT32_MAX);
  for (auto* extents : {&c.block, &c.grid})
    for (int64_t& n : *extents) n = in.whole("an extent", 1, INT32_MAX);
  for (auto* names : {&c.inputs, &c.outputs})
    for (int64_t left = in.whole("a number of names", 0, 1000); left > 0; --left) names->push_back(text());
  inst.code = std::make_shared<const InlineCode>(std::move(c));
}

/// In the order in which they are written. Numbers of a dtype (constants, loads, gathers) and allocations are written
/// by print.cpp; the row is that of kinds that have an integer.
constexpr auto table = std::to_array<FieldText>({
    {lane_op_field, "lanes", [](const Inst& i) { return string(info(i.lane_op).name); },
     [](Lexer& in, Inst& i) { i.lane_op = read_lane_op(in); }, FieldForm::front},
    {scalar_op_field, "op",
     [](const Inst& i) {
       return i.op == Op::lanes && !info(i.lane_op).combines ? string() : string(info(i.scalar_op).name);
     },
     [](Lexer& in, Inst& i) { i.scalar_op = read_operator(in); }, FieldForm::front},
    {reducer_field, "reducer", [](const Inst& i) { return i.blocks.empty() ? string(name(i.reducer)) : string(); },
     [](Lexer& in, Inst& i) { i.reducer = read_reducer(in); }, FieldForm::front},
    {number_field, "number", [](const Inst& i) { return fmt::format("{}", i.number.i); },
     [](Lexer& in, Inst& i) { i.number = Number::of_int(in.whole("a number")); }},
    {ref_field, "ref", [](const Inst& i) { return fmt::format("{}", i.ref); },
     [](Lexer& in, Inst& i) { i.ref = as_ref(read_small(in)); }},
    {matrices_field, "matrices", [](const Inst& i) { return fmt::format("{}, {}", i.left, i.right); }, read_matrices},
    {axis_field, "axis", [](const Inst& i) { return fmt::format("{}", i.axis); },
     [](Lexer& in, Inst& i) { i.axis = read_small(in); }},
    {axes_field, "axes", [](const Inst& i) { return fmt::format("{}", fmt::join(i.axes, ", ")); },
     [](Lexer& in, Inst& i) { i.axes = read_list(in, "an axis"); }},
    {strides_field, "stride", [](const Inst& i) { return fmt::format("{}", fmt::join(i.strides, ", ")); },
     [](Lexer& in, Inst& i) { i.strides = read_list(in, "a stride"); }},
    {precision_field, "precision",
     [](const Inst& i) {
       return i.precision == DotPrecision::exact ? string()
                                                 : string(precisions[static_cast<size_t>(i.precision)].second);
     },
     [](Lexer& in, Inst& i) { i.precision = read_named<DotPrecision>(in, precisions, "precision"); }},
    {text_field, "text", [](const Inst& i) { return quoted(i.text); },
     [](Lexer& in, Inst& i) { i.text = in.expect(Token::Kind::string, "a text in quotes").text; }},
    {ordering_field, "order", write_ordering, read_ordering},
    {code_field, "code", write_code, read_code},
    {streaming_field, "streaming", [](const Inst& i) { return string(i.streaming ? "streaming" : ""); },
     [](Lexer&, Inst& i) { i.streaming = true; }, FieldForm::flag},
    {parallel_field, "parallel", [](const Inst& i) { return string(i.parallel ? "parallel" : ""); },
     [](Lexer&, Inst& i) { i.parallel = true; }, FieldForm::flag},
    {reverse_field, "reverse", [](const Inst& i) { return string(i.reverse ? "reverse" : ""); },
     [](Lexer&, Inst& i) { i.reverse = true; }, FieldForm::flag},
});

struct OtherName {
  Op op;
  Field field;
  std::string_view name;
};
constexpr OtherName other_names[] = {
    {Op::roles, axes_field, "warps"},   {Op::roles, strides_field, "registers"}, {Op::slice, axes_field, "from"},
    {Op::slice, strides_field, "step"}, {Op::shift, axis_field, "by"},           {Op::exchange, axis_field, "xor"},
    {Op::extract, axis_field, "lane"},  {Op::prefetch, number_field, "count"},
};

struct DtypeName {
  Dtype dtype;
  std::string_view name;
};
constexpr auto dtype_names = std::to_array<DtypeName>({
    {bool_, "bool"},
    {uint8, "u8"},
    {uint16, "u16"},
    {uint32, "u32"},
    {uint64, "u64"},
    {int8, "i8"},
    {int16, "i16"},
    {int32, "i32"},
    {int64, "i64"},
    {float16, "f16"},
    {bfloat16, "bf16"},
    {float32, "f32"},
    {float64, "f64"},
    {complex64, "c64"},
    {float8_e4m3, "f8e4m3"},
    {float8_e5m2, "f8e5m2"},
    {complex128, "c128"},
});

uint64_t bits_of(double v) { return std::bit_cast<uint64_t>(v); }

/// Returns the number that a decimal or hexadecimal text stands for in a tile of a dtype; a NaN where it is no number.
double real_from(const string& text, Dtype t) {
  char* end = nullptr;
  const bool hexadecimal = text.find('x') != string::npos;
  const double v = t == float64 || hexadecimal ? std::strtod(text.c_str(), &end)
                                               : static_cast<double>(std::strtof(text.c_str(), &end));
  return end == text.c_str() + text.size() ? v : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::span<const FieldText> field_texts() { return table; }

std::string_view clause_name(Op op, const FieldText& field) {
  for (const OtherName& other : other_names)
    if (other.op == op && other.field == field.field) return other.name;
  return field.name;
}

const FieldText* field_named(Op op, std::string_view word) {
  for (const FieldText& field : table)
    if ((info(op).fields & field.field) && clause_name(op, field) == word) return &field;
  return nullptr;
}

int address_of(Op op) {
  switch (op) {
    case Op::load:
    case Op::gather:
    case Op::wait_until:
    case Op::prefetch: return 0;
    case Op::store:
    case Op::scatter:
    case Op::atomic_add:
    case Op::atomic:
    case Op::exchange_memory: return 1;
    case Op::compare_exchange: return 2;
    default: return -1;
  }
}

std::string_view behind_address(Op op) { return op == Op::load || op == Op::store ? "limit" : "mask"; }

std::string_view short_name(Dtype t) {
  for (const DtypeName& row : dtype_names)
    if (row.dtype == t) return row.name;
  throw_internal("tile IR", "a dtype has no name");
}

Dtype read_dtype(Lexer& in) {
  const Token word = in.expect(Token::Kind::word, "a dtype");
  string known;
  for (const DtypeName& row : dtype_names) {
    if (row.name == word.text) return row.dtype;
    known += (known.empty() ? "" : ", ") + string(row.name);
  }
  Lexer::refuse(word, fmt::format("there is no dtype {}: known are {}", word.text, known));
}

Type read_type(Lexer& in) {
  const Token at = in.peek();
  Type type{read_dtype(in), {}};
  if (!in.accept("[")) return type;
  type.dims = read_list(in, "an extent");
  in.expect("]");
  int64_t elements = 1;
  for (const int64_t d : type.dims)
    if (d < 1 || __builtin_mul_overflow(elements, d, &elements) || elements > most_elements)
      Lexer::refuse(at, "the tile has no element, or more than 2^31 - 1: give it positive extents, and smaller ones");
  if (type.rank() > most_axes) Lexer::refuse(at, "the tile has more than four axes: merge some of them");
  return type;
}

string number_text(const Number& n, Dtype t) {
  if (n.integral) return t == uint64 ? fmt::format("{}", static_cast<uint64_t>(n.i)) : fmt::format("{}", n.i);
  if (n.f != n.f) return bits_of(n.f) == bits_of(NAN) ? "nan" : fmt::format("bits(0x{:x})", bits_of(n.f));
  const float narrow = static_cast<float>(n.f);
  string text = t != float64 ? fmt::format("{}", narrow) : fmt::format("{}", n.f);
  return bits_of(real_from(text, t)) == bits_of(n.f) ? text : fmt::format("{:a}", n.f);
}

Number read_number(Lexer& in, Dtype t) {
  const Token token = in.take();
  const char *const begin = token.text.data(), *const end = begin + token.text.size();
  if (!is_float(t)) {
    int64_t value = 0;
    uint64_t word = 0;
    if (token.kind == Token::Kind::number) {
      if (const auto [at, error] = std::from_chars(begin, end, value); error == std::errc{} && at == end)
        return Number::of_int(value);
      if (const auto [at, error] = std::from_chars(begin, end, word); error == std::errc{} && at == end)
        return Number::of_int(static_cast<int64_t>(word));
    }
    Lexer::refuse(token, fmt::format("a number of {} is missing: write a whole number of 64 bits", short_name(t)));
  }
  if (token.is("nan")) return Number::of_real(NAN);
  if (token.is("inf")) return Number::of_real(INFINITY);
  if (token.is("bits")) {
    in.expect("(");
    const Token bits = in.expect(Token::Kind::number, "the bits of a float64");
    uint64_t word = 0;
    const char *const last = bits.text.data() + bits.text.size(), *const first = bits.text.data() + 2;
    if (!bits.text.starts_with("0x") || std::from_chars(first, last, word, 16).ptr != last)
      Lexer::refuse(bits, "the bits are no number of 64 bits: write 0x and up to 16 hexadecimal digits");
    in.expect(")");
    return Number::of_real(std::bit_cast<double>(word));
  }
  const double v = token.kind == Token::Kind::number ? real_from(token.text, t) : NAN;
  if (v != v) Lexer::refuse(token, "a number is missing: write a decimal, a hexadecimal float, inf or nan");
  return Number::of_real(v);
}

}  // namespace weft::kernel
