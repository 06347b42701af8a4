"""What scripts/mlx_golden.py computes with MLX: a file of golden values for each entry."""

from . import (
    arithmetic,
    derivatives,
    indexing,
    linear,
    mistakes,
    networks,
    operators,
    quantized,
    randoms,
    shapes,
    signals,
)

FILES = {
    "operators": [operators],
    "assertions": [shapes, indexing, arithmetic, derivatives, linear, randoms, networks],
    "mistakes": [mistakes],
    "quantized": [quantized],
    "signals": [signals],
}
