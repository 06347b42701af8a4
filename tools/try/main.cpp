// weft-try: compiles and runs kernels of users, for another process that would not survive their faults
// (src/compiler/tune/trial.h). It reads a request from standard input and reports to file 3.
#include "compiler/tune/trial_child.h"

int main() { return weft::compiler::run_trials(0, 3); }
