#include "io/gguf/types.h"

#include <algorithm>
#include <iterator>

#include "io/gguf/blocks.h"

namespace weft::io::gguf {

namespace {

constexpr TensorType types[] = {
    {.id = 0, .name = "F32", .elements = 1, .bytes = 4, .dtype = float32},
    {.id = 1, .name = "F16", .elements = 1, .bytes = 2, .dtype = float16},
    {.id = 24, .name = "I8", .elements = 1, .bytes = 1, .dtype = int8},
    {.id = 25, .name = "I16", .elements = 1, .bytes = 2, .dtype = int16},
    {.id = 26, .name = "I32", .elements = 1, .bytes = 4, .dtype = int32},
    {.id = 27, .name = "I64", .elements = 1, .bytes = 8, .dtype = int64},
    {.id = 28, .name = "F64", .elements = 1, .bytes = 8, .dtype = float64},
    {.id = 30, .name = "BF16", .elements = 1, .bytes = 2, .dtype = bfloat16},
    {.id = 2,
     .name = "Q4_0",
     .elements = 32,
     .bytes = 18,
     .codes = codes_q4_0,
     .pack = pack_q4_0,
     .bits = 4,
     .zero = 8},
    {.id = 3, .name = "Q4_1", .elements = 32, .bytes = 20, .codes = codes_q4_1, .pack = pack_q4_1, .bits = 4},
    {.id = 8,
     .name = "Q8_0",
     .elements = 32,
     .bytes = 34,
     .codes = codes_q8_0,
     .pack = pack_q8_0,
     .bits = 8,
     .zero = 128},
    {.id = 6, .name = "Q5_0", .elements = 32, .bytes = 22, .decode = decode_q5_0},
    {.id = 7, .name = "Q5_1", .elements = 32, .bytes = 24, .decode = decode_q5_1},
    {.id = 10, .name = "Q2_K", .elements = 256, .bytes = 84, .decode = decode_q2_k},
    {.id = 11, .name = "Q3_K", .elements = 256, .bytes = 110, .decode = decode_q3_k},
    {.id = 12, .name = "Q4_K", .elements = 256, .bytes = 144, .decode = decode_q4_k},
    {.id = 13, .name = "Q5_K", .elements = 256, .bytes = 176, .decode = decode_q5_k},
    {.id = 14, .name = "Q6_K", .elements = 256, .bytes = 210, .decode = decode_q6_k},
    {.id = 15, .name = "Q8_K", .elements = 256, .bytes = 292, .decode = decode_q8_k},
    {.id = 20, .name = "IQ4_NL", .elements = 32, .bytes = 18, .decode = decode_iq4_nl},
    {.id = 23, .name = "IQ4_XS", .elements = 256, .bytes = 136, .decode = decode_iq4_xs},
    {.id = 39, .name = "MXFP4", .elements = 32, .bytes = 17, .decode = decode_mxfp4},
};

struct Unread {
  uint32_t id;
  std::string_view name;
};
constexpr Unread unread[] = {{9, "Q8_1"},   {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"},
                             {19, "IQ1_S"}, {21, "IQ3_S"},   {22, "IQ2_S"},  {29, "IQ1_M"},
                             {34, "TQ1_0"}, {35, "TQ2_0"},   {40, "NVFP4"},  {41, "Q1_0"}};

}  // namespace

const TensorType* find_type(uint32_t id) {
  const auto* found = std::find_if(std::begin(types), std::end(types), [&](const auto& t) { return t.id == id; });
  return found == std::end(types) ? nullptr : found;
}

const TensorType* find_type(Dtype dtype) {
  const auto* found = std::find_if(std::begin(types), std::end(types), [&](const auto& t) { return t.dtype == dtype; });
  return found == std::end(types) ? nullptr : found;
}

const TensorType* find_type(int bits, int zero) {
  const auto* found = std::find_if(std::begin(types), std::end(types),
                                   [&](const auto& t) { return t.codes && t.bits == bits && t.zero == zero; });
  return found == std::end(types) ? nullptr : found;
}

std::string_view name_of_type(uint32_t id) {
  const auto* found = std::find_if(std::begin(unread), std::end(unread), [&](const auto& u) { return u.id == id; });
  return found == std::end(unread) ? "unknown to GGUF" : found->name;
}

}  // namespace weft::io::gguf
