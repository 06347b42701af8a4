// Progress lines.
#include "tools/weft/train/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

namespace weft::tool {

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string figures(const StepReport& r, std::optional<double> val, double seconds_left) {
  std::string out = fmt::format("loss {:.4f}", r.loss);
  if (val) out += fmt::format("  val {:.4f}", *val);
  if (r.accuracy) out += fmt::format("  accuracy {:.2f} %", 100 * *r.accuracy);
  return out + fmt::format("  {} {}/s  left {}", short_number(r.tok_s), r.unit, duration(seconds_left));
}

}  // namespace

std::string duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::clamp(seconds, 0.0, 1e9)));
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m {:02}s", whole / 60, whole % 60);
  return fmt::format("{}h {:02}m", whole / 3600, whole / 60 % 60);
}

std::string short_number(double value) {
  if (value < 999.5) return fmt::format("{:.0f}", value);
  if (value < 999950) return fmt::format("{:.1f}k", value / 1e3);
  return fmt::format("{:.2f}M", value / 1e6);
}

std::string json_line(const StepReport& r) {
  const std::string val = r.val_loss ? fmt::format("\"val_loss\":{},", *r.val_loss) : "";
  const std::string accuracy = r.accuracy ? fmt::format("\"accuracy\":{},", *r.accuracy) : "";
  return fmt::format("{{\"step\":{},\"loss\":{},{}{}\"ms\":{:.3f},\"{}_s\":{:.1f}}}", r.step, r.loss, val, accuracy,
                     r.ms, r.unit, r.tok_s);
}

std::string report_line(const StepReport& r, int64_t steps, double seconds_left) {
  const size_t digits = fmt::format("{}", steps).size();
  std::string out = fmt::format("step {:>{}}/{}  loss {:.4f}", r.step, digits, steps, r.loss);
  if (r.val_loss) out += fmt::format("  val {:.4f}", *r.val_loss);
  if (r.accuracy) out += fmt::format("  accuracy {:.2f} %", 100 * *r.accuracy);
  return out +
         fmt::format("  {:.1f} ms  {} {}/s  left {}", r.ms, short_number(r.tok_s), r.unit, duration(seconds_left));
}

std::string bar_line(const StepReport& r, int64_t steps, double seconds_left, std::optional<double> last_val,
                     int columns) {
  const std::string count = fmt::format(" {}/{}  ", r.step, steps), rest = figures(r, last_val, seconds_left);
  const int room = columns - 1 - static_cast<int>(count.size() + rest.size());
  if (room < 6)
    return (fmt::format("{}/{}  ", r.step, steps) + rest).substr(0, static_cast<size_t>(std::max(columns - 1, 0)));
  const int width = std::min(room - 2, 30);
  const auto done = static_cast<int>(std::llround(static_cast<double>(width) * static_cast<double>(r.step) /
                                                  static_cast<double>(std::max<int64_t>(steps, 1))));
  const auto filled = static_cast<size_t>(std::clamp(done, 0, width));
  return "[" + std::string(filled, '=') + std::string(static_cast<size_t>(width) - filled, ' ') + "]" + count + rest;
}

ProgressStyle progress_style(std::FILE* out, bool as_json) {
  if (as_json) return ProgressStyle::json_lines;
  return ::isatty(::fileno(out)) ? ProgressStyle::bar : ProgressStyle::lines;
}

int terminal_columns(std::FILE* out) {
  winsize size{};
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

bool terminal_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {  // the first one that is set decides
    const char* value = std::getenv(name);
    if (!value || !*value) continue;
    std::string text = value;
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text.find("utf-8") != std::string::npos || text.find("utf8") != std::string::npos;
  }
  return false;
}

Progress::Progress(ProgressStyle style, std::FILE* out, int64_t first_step, int64_t steps, int64_t every)
    : style_(style), out_(out), first_step_(first_step), steps_(steps), every_(std::max<int64_t>(every, 1)) {}

void Progress::step(const StepReport& r) {
  // The first step traces and compiles: it does not predict the remaining time, unless there is nothing else.
  const int64_t seen = r.step - first_step_;
  mean_ms_ = seen <= 2 ? r.ms : mean_ms_ + (r.ms - mean_ms_) * std::max(0.05, 1.0 / static_cast<double>(seen));
  if (r.val_loss) last_val_ = r.val_loss;
  const double left = mean_ms_ * 1e-3 * static_cast<double>(steps_ - r.step);
  if (style_ == ProgressStyle::json_lines) {
    fmt::print(out_, "{}\n", json_line(r));
    std::fflush(out_);
  } else if (style_ == ProgressStyle::lines) {
    if (r.step % every_ != 0 && !r.val_loss && !r.accuracy && r.step != steps_ && seen != 1) return;
    fmt::print(out_, "{}\n", report_line(r, steps_, left));
    std::fflush(out_);
  } else {
    const double time = now();
    if (time - last_draw_ < 0.1 && r.step != steps_) return;
    last_draw_ = time;
    StepReport shown = r;
    shown.tok_s = mean_ms_ > 0 ? r.tok_s * r.ms / mean_ms_ : r.tok_s;
    fmt::print(out_, "\r\x1b[K{}", bar_line(shown, steps_, left, last_val_, terminal_columns(out_)));
    std::fflush(out_);
    open_line_ = true;
  }
}

void Progress::note(const std::string& text) {
  finish();
  std::FILE* to = style_ == ProgressStyle::json_lines ? stderr : out_;
  fmt::print(to, "{}\n", text);
  std::fflush(to);
}

void Progress::finish() {
  if (open_line_) std::fputc('\n', out_), std::fflush(out_);
  open_line_ = false;
}

}  // namespace weft::tool
