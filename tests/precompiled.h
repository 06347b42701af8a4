#pragma once
// What most tests include, compiled once for all test programs where WEFT_TEST_HEADERS is on. Tests include what they
// use all the same: the presets `debug` and `generated` go without this header.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "weft/compile.h"
#include "weft/ops.h"
#include "weft/random.h"
#include "weft/transforms.h"
