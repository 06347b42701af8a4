#include "tools/weft/train/interrupts.h"

namespace weft::tool {

namespace {
volatile std::sig_atomic_t interrupted = 0;
}

Interrupts::Interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before_int_);
  sigaction(SIGTERM, &action, &before_term_);
}

Interrupts::~Interrupts() {
  sigaction(SIGINT, &before_int_, nullptr);
  sigaction(SIGTERM, &before_term_, nullptr);
}

bool Interrupts::seen() { return interrupted != 0; }

}  // namespace weft::tool
