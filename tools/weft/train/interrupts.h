#pragma once
// Ctrl-C and SIGTERM end a run after its step; a second one ends it at once.
#include <csignal>

namespace weft::tool {

class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  static bool seen();

 private:
  struct sigaction before_int_ {
  }, before_term_{};
};

}  // namespace weft::tool
