"""Short-time Fourier transforms, different elements, extremes together: what MLX has since 0.32.4."""

import mlx.core as mx

from .derivatives import gradient
from .inputs import Subject, complexes, integers, normal


def transforms(case):
    x, c = normal(301, 2, 100), complexes(302, 90)
    stft, istft = mx.fft.stft, mx.fft.istft
    window, narrow = mx.hanning(32), mx.hanning(20)
    case(
        "stft",
        [x, c, window, narrow],
        lambda x, c, w, v: [
            stft(x, 32),
            stft(x, 32, center=False),
            stft(x, 32, 8, win_length=20),
            stft(x, 32, 8, window=w),
            stft(x, 32, 8, window=v),
            stft(x, 32, 8, 12, v),
            stft(x, 32, pad_mode="edge"),
            stft(x, 32, pad_mode="constant"),
            stft(x, 32, onesided=False),
            stft(x, 31, 7),
            stft(x, 16, 20),
            stft(x[:, :10], 32),
            stft(x[0], 32, norm="ortho"),
            stft(x, 32, norm="forward"),
            stft(x.astype(mx.float16), 32),
            stft(c, 32),
            stft(c, 32, onesided=True),
        ],
    )

    def back(x, c, w):
        y = stft(x, 32, 8, window=w)
        return [
            istft(y, 32, 8, window=w),
            istft(y, 32, 8, window=w, length=100),
            istft(y, 32, 8, window=w, length=130),
            istft(y, 32, 8, window=w, length=70),
            istft(stft(x, 32)),
            istft(stft(x, 32, onesided=False), onesided=False),
            istft(stft(x, 32, 8, center=False), 32, 8, center=False),
            istft(stft(x, 31, 7), 31, 7),
            istft(stft(x, 16, 20), 16, 20),
            istft(stft(x, 32, norm="ortho"), norm="ortho"),
            istft(stft(c, 32), onesided=False),
            istft(stft(x, 32, 8, win_length=20), 32, 8, win_length=20),
        ]

    case("istft", [x, c, window], back)
    case("derivative", x, lambda x: gradient(lambda x: mx.abs(stft(x, 16)), x))


def elements(case):
    i, f = integers(303, 4, 6, high=9), mx.array([1.0, float("nan"), -2.0, float("nan"), 1.0, 0.0])
    case(
        "unique",
        [i, f],
        lambda i, f: [
            mx.unique(i, 5),
            *mx.unique(i, 12, True, True, True),
            *mx.unique(i, 4, True, True, True),
            *mx.unique(i, 0, True, True, True),
            *mx.unique(i, 12, return_counts=True, fill_value=mx.array(7.9)),
            *mx.unique(f, 8, True, True, True, fill_value=0),
            *mx.unique(i > 3, 3, True, True, True),
            *mx.unique(mx.zeros((0, 2)), 2, True, True, True, fill_value=1),
        ],
    )
    case(
        "minmax",
        f,
        lambda f: [*mx.minmax(f[2:3]), *mx.minmax(f.reshape(2, 3), axis=1), *mx.minmax(f.reshape(2, 3), 0, True)],
    )


def generate(store):
    case = Subject(store, "signals")
    transforms(case), elements(case)
