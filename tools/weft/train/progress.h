#pragma once
// Reports of a run: one line that is redrawn on a terminal, one line for each report elsewhere, or one JSON object for
// each step.
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace weft::tool {

/// The figures of a step.
struct StepReport {
  int64_t step = 0;  // steps done, from 1
  double loss = 0;
  std::optional<double> val_loss;  // where it was computed after this step
  double ms = 0;
  double tok_s = 0;
  std::optional<double> accuracy = std::nullopt;  // share of test examples, where it was measured after this step
  std::string_view unit = "tok";                  // of what tok_s counts: "tok" or "img"
};

/// Returns {"step":1,"loss":4.17,"val_loss":…,"ms":…,"tok_s":…}: numbers with all their digits; no val_loss where there
/// is none, and "accuracy":… where there is one. Other units than tokens have their own key ("img_s").
std::string json_line(const StepReport& report);
/// Returns "step  100/2000  loss 2.4512  val 2.5103  35.1 ms  21.9k tok/s  left 1m 07s".
std::string report_line(const StepReport& report, int64_t steps, double seconds_left);
/// Returns a bar and the same figures, in at most `columns` columns of a terminal; `last_val` is the latest validation
/// loss, if any.
std::string bar_line(const StepReport& report, int64_t steps, double seconds_left, std::optional<double> last_val,
                     int columns);
/// Returns "48s", "1m 07s" or "2h 05m".
std::string duration(double seconds);
/// Returns "812", "21.9k" or "1.25M".
std::string short_number(double value);

enum class ProgressStyle { bar, lines, json_lines };
/// Prints a bar on a terminal, lines elsewhere, or JSON where it is asked for.
ProgressStyle progress_style(std::FILE* out, bool as_json);
int terminal_columns(std::FILE* out);
/// Returns whether the locale's characters are UTF-8, so that block and braille characters can be shown.
bool terminal_is_utf8();

class Progress {
 public:
  /// Prints lines every `every` steps, and wherever there is a validation loss or an accuracy.
  Progress(ProgressStyle style, std::FILE* out, int64_t first_step, int64_t steps, int64_t every);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void step(const StepReport& report);
  /// Prints a sentence: after the bar, or on stderr where stdout is for JSON.
  void note(const std::string& text);
  void finish();  // ends the bar's line

 private:
  ProgressStyle style_;
  std::FILE* out_;
  int64_t first_step_, steps_, every_;
  double mean_ms_ = 0;  // of the recent steps
  std::optional<double> last_val_;
  double last_draw_ = 0;
  bool open_line_ = false;
};

}  // namespace weft::tool
