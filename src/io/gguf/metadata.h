#pragma once
// Values of metadata in a GGUF file: a type, then a number, a text or a list.
#include <string>

#include "io/gguf/cursor.h"
#include "weft/io/gguf.h"

namespace weft::io::gguf {

/// Reads the value of `key`, its type first.
GGUFMetaData read_value(const Bytes& bytes, Cursor& in, const std::string& key);
/// Appends the value of `key`, its type first.
void write_value(std::string& out, const std::string& key, const GGUFMetaData& value);

}  // namespace weft::io::gguf
