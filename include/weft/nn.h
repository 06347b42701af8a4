#pragma once
/// What models are written with: modules and their parameters, layers, activations, losses, starting values.
#include "weft/nn/activations.h"
#include "weft/nn/attention.h"
#include "weft/nn/convolution.h"
#include "weft/nn/functions.h"
#include "weft/nn/init.h"
#include "weft/nn/layers.h"
#include "weft/nn/losses.h"
#include "weft/nn/module.h"
#include "weft/nn/norms.h"
#include "weft/nn/positional.h"
#include "weft/nn/recurrent.h"
#include "weft/nn/transformer.h"
