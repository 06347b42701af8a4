#pragma once
// All rows.
#include "kernel/operators/functions.h"
#include "kernel/operators/instructions.h"
#include "kernel/operators/random.h"
#include "kernel/operators/special.h"
