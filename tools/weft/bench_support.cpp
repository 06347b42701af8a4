#include "bench_support.h"

#include <fmt/format.h>

namespace weft::tool {

Row::Row(const std::string& bench, const BenchOptions& o, const std::string& dtype) : json_(o.json) {
  text("bench", bench).text("peer", "weft").text("mode", o.machine.no_libraries ? "compile, no libraries" : "compile");
  text("dtype", !dtype.empty() ? dtype : o.machine.tf32 ? "tf32" : dtype_name(compute_dtype(o.dtype)));
}

Row& Row::text(const char* key, const std::string& value) { return add(key, json_ ? "\"" + value + "\"" : value); }
Row& Row::number(const char* key, double value) { return add(key, fmt::format("{:.{}f}", value, json_ ? 5 : 3)); }
Row& Row::whole(const char* key, int64_t value) { return add(key, fmt::format("{}", value)); }

void Row::print() const {
  if (json_) fmt::print("{{{}}}\n", line_);
  else fmt::print("{}\n", line_);
  std::fflush(stdout);
}

Row& Row::add(const char* key, const std::string& value) {
  line_ += json_ ? fmt::format("{}\"{}\": {}", line_.empty() ? "" : ", ", key, value) : fmt::format("{}{} {}", line_.empty() ? "" : "  ", key, value);
  return *this;
}

}  // namespace weft::tool
