"""nn: activations, losses, initial values and layers from a seed; optimizers and schedules."""

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim

from .derivatives import gradient
from .inputs import Subject, integers, normal, uniform

PLAIN = """celu elu gelu gelu_approx gelu_fast_approx glu hard_shrink hard_tanh hardswish leaky_relu log_sigmoid
log_softmax mish relu relu2 relu6 selu sigmoid silu
softmax softmin softplus softshrink softsign tanh""".split()


def activations(case):
    x = normal(131, 3, 6) * 3
    for name in PLAIN:
        f = getattr(nn, name)
        case("activation " + name, x, lambda x, f=f: [f(x), f(x.astype(mx.float16)), *gradient(f, x)])
    case(
        "activations with numbers",
        x,
        lambda x: [
            nn.celu(x, 0.5),
            nn.elu(x, 2.0),
            nn.hard_shrink(x, 1.0),
            nn.hard_tanh(x, -0.5, 0.25),
            nn.leaky_relu(x, 0.2),
            nn.softshrink(x, 1.5),
            nn.glu(x, 1),
            nn.log_softmax(x, 0),
            nn.softmin(x, 0),
            nn.prelu(x, mx.array([0.25])),
        ],
    )
    case("step", mx.array([-1.0, 0.0, 0.5, 2.0]), lambda x: [nn.step(x), nn.step(x, 0.5)])
    case(
        "kinks",
        mx.array([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0]),
        lambda x: [
            r
            for f in (
                nn.relu,
                nn.relu2,
                nn.relu6,
                nn.leaky_relu,
                nn.elu,
                nn.hard_tanh,
                nn.hardswish,
                nn.softshrink,
                nn.hard_shrink,
                nn.celu,
            )
            for r in (f(x), *gradient(f, x))
        ],
    )


def losses(case):
    p, t, s = normal(132, 4, 5), normal(133, 4, 5), mx.where(normal(134, 4, 5) > 0, 1.0, -1.0)
    classes, q = mx.array([0, 4, 2, 2]), uniform(135, 4, 5, low=0.05, high=0.95)
    l = nn.losses

    def all_of(f, *a, **k):
        return [f(*a, **k), *(f(*a, reduction=r, **k) for r in ("none", "mean", "sum"))]

    case(
        "cross_entropy",
        [p, classes, uniform(136, 4)],
        lambda p, c, w: [
            *all_of(l.cross_entropy, p, c),
            l.cross_entropy(p, c, weights=w),
            l.cross_entropy(p, c, label_smoothing=0.1),
            l.cross_entropy(p, c, label_smoothing=0.2, reduction="mean"),
            l.cross_entropy(p.T, c, axis=0),
            *gradient(lambda a: l.cross_entropy(a, c), p),
        ],
    )
    case(
        "cross_entropy of probabilities",
        [p, nn.softmax(t)],
        lambda p, q: [
            l.cross_entropy(p, q),
            l.cross_entropy(p, q, label_smoothing=0.1),
            l.cross_entropy(p, q, reduction="mean"),
        ],
    )
    case(
        "binary_cross_entropy",
        [p, mx.where(t > 0, 1.0, 0.0), q],
        lambda p, t, q: [
            *all_of(l.binary_cross_entropy, p, t),
            l.binary_cross_entropy(q, t, with_logits=False),
            l.binary_cross_entropy(p, t, weights=q),
            *gradient(lambda a: l.binary_cross_entropy(a, t), p),
        ],
    )
    for name in ("l1_loss", "mse_loss", "smooth_l1_loss", "huber_loss", "log_cosh_loss"):
        f = getattr(l, name)
        case(name, [p, t], lambda p, t, f=f: [*all_of(f, p, t), *gradient(lambda a: f(a, t, reduction="mean"), p)])
    case("losses with numbers", [p, t], lambda p, t: [l.smooth_l1_loss(p, t, beta=0.5), l.huber_loss(p, t, delta=0.3)])
    case("nll_loss", [nn.log_softmax(p), classes], lambda p, c: all_of(l.nll_loss, p, c))
    case(
        "gaussian_nll_loss",
        [p, t, q],
        lambda p, t, q: [*all_of(l.gaussian_nll_loss, p, t, q), l.gaussian_nll_loss(p, t, q, full=True)],
    )
    case("kl_div_loss", [nn.log_softmax(p), nn.log_softmax(t)], lambda p, t: all_of(l.kl_div_loss, p, t))
    case(
        "triplet_loss",
        [p, t, p * 0.5 + t],
        lambda a, b, c: [*all_of(l.triplet_loss, a, b, c), l.triplet_loss(a, b, c, p=1, margin=0.5)],
    )
    case("hinge_loss", [p, s], lambda p, s: all_of(l.hinge_loss, p, s))
    case("cosine_similarity_loss", [p, t], lambda p, t: all_of(l.cosine_similarity_loss, p, t))
    case(
        "margin_ranking_loss",
        [p, t, s],
        lambda p, t, s: [*all_of(l.margin_ranking_loss, p, t, s), l.margin_ranking_loss(p, t, s, margin=0.5)],
    )


def seeded(function):
    mx.random.seed(17)
    out = function()
    mx.eval(out)
    return out


def initial(case):
    i = nn.init
    for name, f in (
        ("normal", lambda a: i.normal(1.0, 0.5)(a)),
        ("uniform", lambda a: i.uniform(-1.0, 2.0)(a)),
        ("glorot_normal", lambda a: i.glorot_normal()(a)),
        ("glorot_uniform", lambda a: i.glorot_uniform()(a, 2.0)),
        ("he_normal", lambda a: i.he_normal()(a)),
        ("he_uniform", lambda a: i.he_uniform()(a, mode="fan_out")),
        ("constant", lambda a: i.constant(3.0)(a)),
        ("sparse", lambda a: i.sparse(0.4)(a)),
        ("orthogonal", lambda a: i.orthogonal(2.0)(a)),
    ):
        case("init " + name, [], lambda f=f: seeded(lambda: f(mx.zeros((6, 4)))))
    case("init identity", [], lambda: i.identity()(mx.zeros((3, 3))))


def layers(case):
    x, image, ids = normal(141, 2, 5, 8), normal(142, 2, 6, 6, 4), integers(143, 2, 3, high=9)
    volume = normal(144, 1, 4, 4, 4, 2)

    def layer(name, make, *inputs):
        case("layer " + name, list(inputs), lambda *a: seeded(lambda: make()(*a)))

    layer("Linear", lambda: nn.Linear(8, 3), x)
    layer("Linear without bias", lambda: nn.Linear(8, 3, bias=False), x)
    layer("Bilinear", lambda: nn.Bilinear(8, 8, 3), x[0], x[1])
    layer("Embedding", lambda: nn.Embedding(9, 4), ids)
    layer("Conv1d", lambda: nn.Conv1d(8, 4, 3, padding=1), x)
    layer("Conv2d", lambda: nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=1), image)
    layer("Conv3d", lambda: nn.Conv3d(2, 3, 2), volume)
    layer("ConvTranspose1d", lambda: nn.ConvTranspose1d(8, 4, 3, stride=2), x)
    layer("ConvTranspose2d", lambda: nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1), image)
    layer("ConvTranspose3d", lambda: nn.ConvTranspose3d(2, 3, 2), volume)
    layer("MaxPool1d", lambda: nn.MaxPool1d(2), x)
    layer("MaxPool2d", lambda: nn.MaxPool2d(3, 2, 1), image)
    layer("MaxPool3d", lambda: nn.MaxPool3d(2), volume)
    layer("AvgPool1d", lambda: nn.AvgPool1d(2), x)
    layer("AvgPool2d", lambda: nn.AvgPool2d(3, 2, 1), image)
    layer("AvgPool3d", lambda: nn.AvgPool3d(2), volume)
    layer(
        "Upsample",
        lambda: lambda a: [
            nn.Upsample(2.0)(a),
            nn.Upsample((1.5, 2.0), mode="linear")(a),
            nn.Upsample(2.0, mode="linear", align_corners=True)(a),
            nn.Upsample(1.5, mode="cubic")(a),
            nn.Upsample(0.5)(a),
            nn.Upsample(0.6)(a),
        ],
        image,
    )
    layer("LayerNorm", lambda: nn.LayerNorm(8), x)
    layer("RMSNorm", lambda: nn.RMSNorm(8), x)
    layer("GroupNorm", lambda: lambda a: [nn.GroupNorm(2, 4)(a), nn.GroupNorm(2, 4, pytorch_compatible=True)(a)], image)
    layer("InstanceNorm", lambda: nn.InstanceNorm(4), image)
    layer("BatchNorm", lambda: nn.BatchNorm(4), image)
    layer("RNN", lambda: nn.RNN(8, 4), x)
    layer("GRU", lambda: nn.GRU(8, 4), x)
    layer("LSTM", lambda: lambda a: list(nn.LSTM(8, 4)(a)), x)
    layer("MultiHeadAttention", lambda: lambda a: nn.MultiHeadAttention(8, 2)(a, a, a), x)
    layer("TransformerEncoderLayer", lambda: lambda a: nn.TransformerEncoderLayer(8, 2)(a, None), x)
    layer("TransformerEncoder", lambda: lambda a: nn.TransformerEncoder(2, 8, 2)(a, None), x)
    layer(
        "TransformerDecoderLayer", lambda: lambda a, b: nn.TransformerDecoderLayer(8, 2)(a, b, None, None), x, x * 0.5
    )
    layer("RoPE", lambda: lambda a: [nn.RoPE(8)(a), nn.RoPE(4, traditional=True)(a, 3)], x)
    layer("SinusoidalPositionalEncoding", lambda: nn.SinusoidalPositionalEncoding(8), mx.arange(5).astype(mx.float32))
    layer("Dropout", lambda: lambda a: [nn.Dropout(0.3)(a), nn.Dropout2d(0.5)(a)], image)
    layer("PReLU", lambda: nn.PReLU(), x)


def rules(case):
    w, g = normal(151, 3, 4), [normal(152 + k, 3, 4) for k in range(4)]
    b, h = normal(161, 4), [normal(162 + k, 4) for k in range(4)]

    def rule(name, make):
        def steps(w, b, *gradients):
            optimizer, tree = make(), {"b": b, "w": w}
            for k in range(4):
                tree = optimizer.apply_gradients({"b": gradients[4 + k], "w": gradients[k]}, tree)
            return [tree["w"], tree["b"]]

        case("optimizer " + name, [w, b, *g, *h], steps)

    o = optim
    rule("SGD", lambda: o.SGD(0.1))
    rule("SGD with momentum", lambda: o.SGD(0.1, momentum=0.9, weight_decay=0.01, dampening=0.1))
    rule("SGD with nesterov", lambda: o.SGD(0.1, momentum=0.9, nesterov=True))
    rule("Adam", lambda: o.Adam(0.01))
    rule("Adam with correction", lambda: o.Adam(0.01, betas=[0.8, 0.99], bias_correction=True))
    rule("AdamW", lambda: o.AdamW(0.01, weight_decay=0.1))
    rule("Adamax", lambda: o.Adamax(0.01))
    rule("RMSprop", lambda: o.RMSprop(0.01))
    rule("Adagrad", lambda: o.Adagrad(0.1))
    rule("AdaDelta", lambda: o.AdaDelta(0.5))
    rule("Adafactor", lambda: o.Adafactor())
    rule("Adafactor with momentum", lambda: o.Adafactor(0.01, beta_1=0.9, weight_decay=0.01, relative_step=False))
    rule("Lion", lambda: o.Lion(0.01, weight_decay=0.1))
    rule("Muon", lambda: o.Muon(0.02))
    case(
        "clip_grad_norm",
        [g[0], h[0]],
        lambda g, h: (lambda t, n: [t["g"], t["h"], n])(*o.clip_grad_norm({"g": g, "h": h}, 0.5)),
    )

    def schedule(name, make):
        case(
            "schedule " + name,
            [],
            lambda: mx.stack([mx.array(make()(mx.array(k)), dtype=mx.float32) for k in range(12)]),
        )

    schedule("exponential_decay", lambda: o.exponential_decay(0.1, 0.9))
    schedule("step_decay", lambda: o.step_decay(0.1, 0.5, 4))
    schedule("cosine_decay", lambda: o.cosine_decay(0.1, 8, 0.01))
    schedule("linear_schedule", lambda: o.linear_schedule(0.0, 0.1, 6))
    schedule("join_schedules", lambda: o.join_schedules([o.linear_schedule(0.0, 0.1, 4), o.cosine_decay(0.1, 6)], [4]))


def generate(store):
    case = Subject(store, "functions")
    activations(case), losses(case)
    case = Subject(store, "layers")
    initial(case), layers(case)
    rules(Subject(store, "optimizers"))
