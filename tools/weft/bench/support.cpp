#include "tools/weft/bench/support.h"

#include <fmt/format.h>

#include "weft/device.h"

namespace weft::tool {

Row::Row(const std::string& bench, const BenchOptions& o, const std::string& dtype) : json_(o.json) {
  text("bench", bench).text("peer", "weft").text("mode", o.machine.no_libraries ? "compile, no libraries" : "compile");
  text("dtype", !dtype.empty()    ? dtype
                : o.machine.tf32  ? "tf32"
                : o.dtype == "f8" ? "float8"
                                  : dtype_name(compute_dtype(o.dtype)));
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
  line_ += json_ ? fmt::format("{}\"{}\": {}", line_.empty() ? "" : ", ", key, value)
                 : fmt::format("{}{} {}", line_.empty() ? "" : "  ", key, value);
  return *this;
}

double device_ms(int64_t reps, int burst, const std::function<void()>& f) {
  for (int i = 0; i < 3; ++i) f();
  synchronize();
  std::vector<double> times;
  for (int64_t i = 0; i < reps; ++i) {
    times.push_back(1e3 / burst * seconds_of([&] {
                      for (int k = 0; k < burst; ++k) f();
                      synchronize();
                    }));
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void need_gpu(const char* name) {
  if (default_device().type != Device::gpu)
    throw UsageError(fmt::format("weft bench {} measures a GPU: give --device gpu", name));
}

}  // namespace weft::tool
