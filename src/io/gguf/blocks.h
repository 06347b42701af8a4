#pragma once
// The blocks of GGML's quantised types. A block is little endian, d and m are its float16 scale and minimum, and codes
// lie in nibbles or pairs of bits whose order differs from type to type.
#include "io/gguf/types.h"

namespace weft::io::gguf {

// Blocks of 32 with one scale, as affine codes, and back.
void codes_q4_0(const uint8_t* block, AffineBlock& out);
void codes_q4_1(const uint8_t* block, AffineBlock& out);
void codes_q8_0(const uint8_t* block, AffineBlock& out);
void pack_q4_0(const AffineBlock& from, uint8_t* block);
void pack_q4_1(const AffineBlock& from, uint8_t* block);
void pack_q8_0(const AffineBlock& from, uint8_t* block);

// Blocks of 32 with one scale, as numbers.
void decode_q5_0(const uint8_t* block, float* out);
void decode_q5_1(const uint8_t* block, float* out);
void decode_iq4_nl(const uint8_t* block, float* out);
void decode_mxfp4(const uint8_t* block, float* out);

// Blocks of 256, whose parts of 16 or 32 have scales of their own, multiples of the block's.
void decode_q2_k(const uint8_t* block, float* out);
void decode_q3_k(const uint8_t* block, float* out);
void decode_q4_k(const uint8_t* block, float* out);
void decode_q5_k(const uint8_t* block, float* out);
void decode_q6_k(const uint8_t* block, float* out);
void decode_q8_k(const uint8_t* block, float* out);
void decode_iq4_xs(const uint8_t* block, float* out);

}  // namespace weft::io::gguf
