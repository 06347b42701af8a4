#pragma once
#include "weft/optim/adaptive.h"
#include "weft/optim/loss_scale.h"
#include "weft/optim/optimizer.h"
#include "weft/optim/schedules.h"
#include "weft/optim/sgd.h"
