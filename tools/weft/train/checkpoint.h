#pragma once
// Checkpoints on disk. A run's folder holds step-N folders (the last two), and the file `latest` with the name of the
// newest:
//
//     DIR/step-500/model.safetensors  optimizer.safetensors  tokenizer.json  state.json
//
// A checkpoint is written as step-N.tmp, synced, renamed to step-N, and only then named by `latest`: a process killed
// at any moment leaves either the old or the new checkpoint in place, whole. state.json holds checksums of the other
// files.
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "models/text_config.h"
#include "weft/array.h"

namespace weft::tool {

/// (step, loss) in the order of the steps.
using Curve = std::vector<std::pair<int64_t, double>>;

struct RunState {
  int64_t step = 0;           // updates done
  std::vector<uint32_t> key;  // of the default random sequence, for the next step
  std::string kind = "gpt";   // of model: what `weft train` was asked for
  models::TextConfig model;   // of a language model
  std::string dtype;          // "f32", "bf16", "f16"
  std::string options;        // JSON object: every option of the run
  std::string data_digest;
  int64_t data_bytes = 0;
  std::string tuning;  // lines of compiler::tuning_choices: what the run's programs were built with
  Curve losses, val_losses, accuracies;
};

struct Checkpoint {
  std::string folder;  // DIR/step-N
  RunState state;
  std::string tokenizer;  // JSON; empty for models that read no text
  /// Reads and checks model.safetensors / optimizer.safetensors.
  std::unordered_map<std::string, array> model() const;
  std::unordered_map<std::string, array> optimizer() const;

  std::string run_folder() const;  // DIR

  std::unordered_map<std::string, std::string> checksums;  // by file name
};

using NamedArrays = std::vector<std::pair<std::string, array*>>;

/// Writes DIR/step-N and makes it the latest; removes all but the last two. `tokenizer` may be empty. Throws
/// std::runtime_error; the old checkpoints then stay.
void save_checkpoint(const std::string& dir, const RunState& state, const NamedArrays& model,
                     const NamedArrays& optimizer, const std::string& tokenizer);

/// Reads and checks state.json. Throws std::runtime_error or std::invalid_argument.
void parse_state(const std::string& text, Checkpoint& to);
/// Returns the latest checkpoint of a run's folder, or of the step-N folder itself. Throws std::runtime_error where
/// there is none, or where it is damaged (naming an older one that could be used instead).
Checkpoint load_checkpoint(const std::string& path);

/// Returns whether a run's folder holds a checkpoint.
bool has_checkpoint(const std::string& dir);
/// Removes checkpoints and `latest`, and nothing else.
void remove_checkpoints(const std::string& dir);

/// Returns whether two paths name one existing folder.
bool same_folder(const std::string& a, const std::string& b);
/// Creates the folder where it is missing, and checks that files can be written in it. Throws std::runtime_error with
/// the system's reason.
void prepare_folder(const std::string& dir);

}  // namespace weft::tool
