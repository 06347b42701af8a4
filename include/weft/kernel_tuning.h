#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weft/api.h"
#include "weft/schedule/steps.h"

/// Configurations of a kernel: values that its function takes, and how it is launched. `KernelFunction::configs`
/// (weft/kernel_function.h) gives a kernel several of them, of which the compiler chooses the fastest.
namespace weft::k {

/// Who runs the iterations of a kernel's parallel loops (k::parallel) on a GPU: all threads of a program, one iteration
/// after another; its warps, each an iteration at a time; the blocks of a cluster, which then run one program.
/// `chosen`: the compiler's rule (docs/kernels.md).
enum class Iterations : uint8_t { chosen, in_turn, warps, cluster };

/// How a kernel is launched on a GPU. 0 leaves the choice to the compiler; CPUs know none of it.
struct LaunchOptions {
  /// Warps of a program: 1, 2, 4, 8, 16 or 32; with warpgroups (wgmma) a multiple of 4.
  int warps = 0;
  /// Stages of the ring by which loops copy ahead what they multiply, at most: as many as there is memory for.
  int stages = 0;
  /// Blocks of a cluster that share the iterations of parallel loops. More than 1 are refused where the kernel has no
  /// such loop, or its iterations cannot run so.
  int cluster = 0;
  /// Registers of a thread, at most.
  int registers = 0;
  /// 1: two programs of a block multiply in turns (ping-pong, sm_90a): one computes and stores while the other has the
  /// tensor cores. Programs must be equally long and have one loop that copies ahead; others are multiplied
  /// without turns, and their source says why.
  int ping_pong = 0;
  /// Who runs the iterations of parallel loops. What is asked for and cannot be had is refused.
  Iterations iterations = Iterations::chosen;
  friend bool operator==(const LaunchOptions&, const LaunchOptions&) = default;
};

/// A configuration: `{{.m = 128, .n = 64}, {.warps = 8, .stages = 3}}`. Its values convert to one.
template <class C>
struct Configured {
  /// What the kernel's function takes.
  C values = {};
  /// How it is launched.
  LaunchOptions launch = {};
  /// Steps for its loops and its launch (docs/schedules.md).
  weft::schedule::Steps steps = {};

  Configured() = default;
  /// Makes a configuration of values, and of launch options and steps where they are given.
  Configured(C v, LaunchOptions l = {}, weft::schedule::Steps s = {})
      : values(std::move(v)), launch(l), steps(std::move(s)) {}
};

/// What trials and measurements of configurations may take.
struct TuneOptions {
  /// Seconds in which a configuration is compiled.
  double compile_limit = 60;
  /// Seconds in which its first run ends.
  double run_limit = 10;
  /// Runs of each that are timed, at most.
  int repetitions = 9;
};

/// How an array begins before each run that is measured: filled with a number.
struct ArrayReset {
  /// Its number among the kernel's arrays, from 0 on.
  size_t array = 0;
  /// What it is filled with.
  double value = 0;
};

namespace detail {

/// Returns a number as it stands in the word of a configuration.
WEFT_API std::string config_number(int64_t value);
WEFT_API std::string config_number(double value);

struct AnyValue {
  template <class T>
  operator T() const;
};
template <class C, class... V>
concept BracedFrom = requires {
  C{std::declval<V>()...};
};

/// Returns the number of members of an aggregate, 9 where it has more than 8.
template <class C, class... V>
constexpr size_t members() {
  if constexpr (sizeof...(V) <= 8 && BracedFrom<C, V..., AnyValue>) return members<C, V..., AnyValue>();
  else return sizeof...(V);
}

template <class V>
std::string value_text(const V& v) {
  if constexpr (std::is_enum_v<V>) return config_number(static_cast<int64_t>(v));
  else if constexpr (std::is_integral_v<V>) return config_number(static_cast<int64_t>(v));
  else if constexpr (std::is_floating_point_v<V>) return config_number(static_cast<double>(v));
  else if constexpr (std::convertible_to<V, std::string>) return v;
  else return "?";
}

template <class... V>
std::string values_text(const V&... v) {
  std::string out = "{";
  ((out += (out.size() > 1 ? "," : "") + value_text(v)), ...);
  return out + "}";
}

/// Returns the values of a configuration as text: what its member to_string() returns, else the members of an
/// aggregate in order, "{128,64}"; "" where it is neither.
template <class C>
std::string config_text(const C& c) {
  if constexpr (requires {
                  { c.to_string() } -> std::convertible_to<std::string>;
                }) {
    return c.to_string();
  } else if constexpr (std::is_same_v<C, std::tuple<>>) {
    return "{}";
  } else if constexpr (std::is_aggregate_v<C>) {
    constexpr size_t n = members<C>();
    if constexpr (n == 1) {
      const auto& [a1] = c;
      return values_text(a1);
    } else if constexpr (n == 2) {
      const auto& [a1, a2] = c;
      return values_text(a1, a2);
    } else if constexpr (n == 3) {
      const auto& [a1, a2, a3] = c;
      return values_text(a1, a2, a3);
    } else if constexpr (n == 4) {
      const auto& [a1, a2, a3, a4] = c;
      return values_text(a1, a2, a3, a4);
    } else if constexpr (n == 5) {
      const auto& [a1, a2, a3, a4, a5] = c;
      return values_text(a1, a2, a3, a4, a5);
    } else if constexpr (n == 6) {
      const auto& [a1, a2, a3, a4, a5, a6] = c;
      return values_text(a1, a2, a3, a4, a5, a6);
    } else if constexpr (n == 7) {
      const auto& [a1, a2, a3, a4, a5, a6, a7] = c;
      return values_text(a1, a2, a3, a4, a5, a6, a7);
    } else if constexpr (n == 8) {
      const auto& [a1, a2, a3, a4, a5, a6, a7, a8] = c;
      return values_text(a1, a2, a3, a4, a5, a6, a7, a8);
    } else {
      return "";
    }
  } else if constexpr (std::is_arithmetic_v<C> || std::is_enum_v<C>) {
    return "{" + value_text(c) + "}";
  } else {
    return "";
  }
}

}  // namespace detail
}  // namespace weft::k
