"""What the golden file of the layers holds: a function of the array module and the layers' module for each case.

generate_nn.py writes what mlx computes, test_nn_golden.py compares what weft computes. A case returns a tree of arrays.
"""

import numpy as np

SEED = 7


class Inputs:
    """Arrays of normal numbers, the same in each run."""

    def __init__(self, mx, seed):
        self._mx = mx
        self._random = np.random.RandomState(seed)

    def __call__(self, *shape):
        return self._mx.array(self._random.standard_normal(shape).astype(np.float32))


def weighted_sum(mx, y):
    """A scalar that every element of a result takes part in, with another weight."""
    y = y[0] if isinstance(y, tuple) else y
    return (y * mx.sin(mx.arange(y.size) + 1).reshape(y.shape)).sum()


def layer(make, shapes, integers=False, extra=(), grad=True):
    """A case of a layer: initial parameters, results in training and evaluation, gradients, parameters behind them."""

    def case(mx, nn):
        mx.random.seed(SEED)
        inputs = Inputs(mx, len(shapes))
        m = make(nn)
        xs = [mx.arange(int(np.prod(s))).reshape(s) % 5 if integers else inputs(*s) for s in shapes] + list(extra)
        result = {"initial": m.parameters(), "draw": mx.random.uniform(shape=(2,)), "out": m(*xs)}
        if grad:
            loss = lambda *args: weighted_sum(mx, m(*args))  # noqa: E731
            if m.trainable_parameters():
                result["by_parameters"] = nn.value_and_grad(m, loss)(*xs)
            if not integers:
                result["by_inputs"] = mx.grad(loss, argnums=list(range(len(shapes))))(*xs)
        m.eval()
        return {**result, "eval": m(*xs), "final": m.parameters()}

    return case


def activation(name, *arguments):
    def case(mx, nn):
        x = mx.array(np.array([-9, -3, -1.7, -0.5, -0.2, 0, 0.3, 0.5, 1, 2.5, 3, 6, 8], np.float32))
        f = lambda x: getattr(nn, name)(x, *arguments)  # noqa: E731
        result = {"out": f(x)}
        if name != "step":
            result["grad"] = mx.grad(lambda x: weighted_sum(mx, f(x)))(x)
        return result

    return case


def loss(name, *kinds, **options):
    """A case of a loss. Kinds of arguments: x (numbers), p (probabilities), s (signs), c (classes)."""

    def case(mx, nn):
        inputs = Inputs(mx, 3)
        make = {
            "x": lambda: inputs(4, 5),
            "p": lambda: mx.softmax(inputs(4, 5), axis=-1),
            "s": lambda: mx.sign(inputs(4, 5)),
            "c": lambda: mx.array([1, 0, 4, 2]),
            "w": lambda: mx.array([1.0, 2.0, 0.5, 3.0]),
        }
        arguments = [make[kind]() for kind in kinds]
        f = getattr(nn.losses, name)
        result = {r: f(*arguments, reduction=r, **options) for r in ("none", "mean", "sum")}
        result["grad"] = mx.grad(lambda x: f(x, *arguments[1:], reduction="sum", **options))(arguments[0])
        return {**result, "default": f(*arguments, **options)}

    return case


def initializer(name, shape, *arguments, options=None):
    def case(mx, nn):
        mx.random.seed(SEED)
        return {"out": getattr(nn.init, name)(*arguments)(mx.zeros(shape), **(options or {}))}

    return case


def quantized(mode):
    def case(mx, nn):
        mx.random.seed(SEED)
        x = Inputs(mx, 1)(3, 64)
        linear, embedding = nn.Linear(64, 6), nn.Embedding(5, 64)
        a, b = linear.to_quantized(mode=mode), embedding.to_quantized(mode=mode)
        fresh = nn.QuantizedLinear(64, 6, mode=mode)
        return {
            "linear": a(x), "embedding": b(mx.array([[0, 3], [4, 1]])), "as_linear": b.as_linear(x), "fresh": fresh(x),
            "scales": a.scales.astype(mx.float32), "draw": mx.random.uniform(shape=(2,)),
        }  # fmt: skip

    return case


def encodings(mx, nn):
    alibi = nn.ALiBi
    return {
        "slopes": [alibi.create_alibi_slope(n) for n in (1, 4, 6, 12)],
        "matrix": alibi.create_alibi_matrix(5, 7, 6, 2),
        "added": alibi()(Inputs(mx, 1)(1, 4, 3, 5), 1, Inputs(mx, 2)(3, 5)),
        "causal": nn.MultiHeadAttention.create_additive_causal_mask(4),
        "sines": [
            nn.SinusoidalPositionalEncoding(8)(mx.arange(5)),
            nn.SinusoidalPositionalEncoding(6, 0.01, 2.0, 1.0, True, True)(mx.arange(5)),
        ],
    }


def training(mx, nn):
    """Steps of gradient descent with dropout and batch norm."""
    mx.random.seed(SEED)
    m = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm(8), nn.ReLU(), nn.Dropout(0.25), nn.Linear(8, 1))
    x = Inputs(mx, 1)(16, 3)
    target = mx.sin(x.sum(axis=1, keepdims=True))
    step = nn.value_and_grad(m, lambda x: nn.losses.mse_loss(m(x), target))
    values = []
    for _ in range(5):
        value, gradients = step(x)
        values.append(value)
        slopes = dict(flat(gradients))
        m.load_weights([(k, p - 0.1 * slopes[k]) for k, p in flat(m.trainable_parameters())], strict=False)
    return {"losses": values, "final": m.parameters()}


def flat(tree, name=""):
    """Pairs of a name and an array of a tree."""
    if isinstance(tree, dict):
        items = tree.items()
    elif isinstance(tree, (list, tuple)):
        items = enumerate(tree)
    else:
        return [(name, tree)]
    return [leaf for k, v in items for leaf in flat(v, f"{name}.{k}" if name else str(k))]


X, IMAGE = (2, 3, 4), (2, 5, 6, 4)
POOLS = [{"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1}, {"kernel_size": 3, "stride": 1}]

CASES = {
    "linear": layer(lambda nn: nn.Linear(4, 3), [X]),
    "linear.no_bias": layer(lambda nn: nn.Linear(4, 3, bias=False), [X]),
    "bilinear": layer(lambda nn: nn.Bilinear(4, 3, 2), [(5, 4), (5, 3)]),
    "embedding": layer(lambda nn: nn.Embedding(5, 4), [(2, 3)], integers=True),
    "prelu": layer(lambda nn: nn.PReLU(4), [X]),
    "instance_norm": layer(lambda nn: nn.InstanceNorm(4, affine=True), [IMAGE]),
    "layer_norm": layer(lambda nn: nn.LayerNorm(4), [X]),
    "layer_norm.no_bias": layer(lambda nn: nn.LayerNorm(4, bias=False), [X]),
    "rms_norm": layer(lambda nn: nn.RMSNorm(4), [X]),
    "group_norm": layer(lambda nn: nn.GroupNorm(2, 4), [IMAGE]),
    "group_norm.pytorch": layer(lambda nn: nn.GroupNorm(2, 4, pytorch_compatible=True), [IMAGE]),
    "batch_norm": layer(lambda nn: nn.BatchNorm(4), [IMAGE]),
    "batch_norm.no_stats": layer(lambda nn: nn.BatchNorm(4, track_running_stats=False), [X]),
    "dropout": layer(lambda nn: nn.Dropout(0.3), [X]),
    "dropout2d": layer(lambda nn: nn.Dropout2d(0.3), [IMAGE]),
    "dropout3d": layer(lambda nn: nn.Dropout3d(0.3), [(2, 2, 3, 2, 4)]),
    "conv1d": layer(lambda nn: nn.Conv1d(4, 6, 3, 2, 1, 2, 2), [(2, 9, 4)]),
    "conv2d": layer(lambda nn: nn.Conv2d(4, 2, (3, 2), (2, 1), (1, 0)), [IMAGE]),
    "conv3d": layer(lambda nn: nn.Conv3d(2, 3, 2, padding=1), [(1, 3, 4, 3, 2)], grad=False),
    "conv_transpose1d": layer(lambda nn: nn.ConvTranspose1d(4, 3, 3, 2, 1, 1, 1), [(2, 4, 4)]),
    "conv_transpose2d": layer(lambda nn: nn.ConvTranspose2d(4, 2, (3, 2), 2, (1, 0)), [(1, 3, 4, 4)]),
    "conv_transpose3d": layer(lambda nn: nn.ConvTranspose3d(2, 2, 2, 2), [(1, 2, 3, 2, 2)], grad=False),
    "rope": layer(lambda nn: nn.RoPE(4), [(1, 2, 3, 6)], extra=[3]),
    "rope.traditional": layer(lambda nn: nn.RoPE(4, True, 100.0, 0.5), [(1, 2, 3, 6)]),
    "rnn": layer(lambda nn: nn.RNN(4, 3), [X]),
    "rnn.hidden": layer(lambda nn: nn.RNN(4, 3, False), [X, (2, 3)]),
    "gru": layer(lambda nn: nn.GRU(4, 3), [X]),
    "gru.hidden": layer(lambda nn: nn.GRU(4, 3), [X, (2, 3)]),
    "lstm": layer(lambda nn: nn.LSTM(4, 3), [X]),
    "lstm.hidden": layer(lambda nn: nn.LSTM(4, 3), [X, (2, 3), (2, 3)]),
    "attention": layer(lambda nn: nn.MultiHeadAttention(8, 2, bias=True), [(1, 3, 8), (1, 4, 8), (1, 4, 8)]),
    "encoder_layer": layer(lambda nn: nn.TransformerEncoderLayer(4, 2, 6), [X], extra=[None]),
    "encoder_layer.post": layer(
        lambda nn: nn.TransformerEncoderLayer(4, 2, 6, 0.2, norm_first=False), [X], extra=[None]
    ),
    "decoder_layer": layer(lambda nn: nn.TransformerDecoderLayer(4, 2, 6), [X, (2, 2, 4)], extra=[None, None]),
    "transformer": layer(lambda nn: nn.Transformer(4, 2, 1, 1, 6), [(2, 2, 4), X], extra=[None] * 3),
    "transformer.checkpoint": layer(
        lambda nn: nn.Transformer(4, 2, 2, 1, 6, checkpoint=True), [(2, 2, 4), X], extra=[None] * 3
    ),
    "encodings": encodings,
    "training": training,
    "activation.hard_tanh": activation("hard_tanh", -0.4, 0.6),
    "cross_entropy": loss("cross_entropy", "x", "c"),
    "cross_entropy.weights": loss("cross_entropy", "x", "c", "w"),
    "cross_entropy.smoothing": loss("cross_entropy", "x", "c", label_smoothing=0.2),
    "cross_entropy.probabilities": loss("cross_entropy", "x", "p", label_smoothing=0.2),
    "binary_cross_entropy": loss("binary_cross_entropy", "x", "p"),
    "binary_cross_entropy.probabilities": loss("binary_cross_entropy", "p", "p", with_logits=False),
    "l1_loss": loss("l1_loss", "x", "x"),
    "mse_loss": loss("mse_loss", "x", "x"),
    "nll_loss": loss("nll_loss", "x", "c"),
    "gaussian_nll_loss": loss("gaussian_nll_loss", "x", "x", "p"),
    "gaussian_nll_loss.full": loss("gaussian_nll_loss", "x", "x", "p", full=True, eps=0.2),
    "kl_div_loss": loss("kl_div_loss", "x", "x"),
    "smooth_l1_loss": loss("smooth_l1_loss", "x", "x", beta=0.7),
    "triplet_loss": loss("triplet_loss", "x", "x", "x"),
    "triplet_loss.p": loss("triplet_loss", "x", "x", "x", p=3, margin=0.4, axis=0),
    "hinge_loss": loss("hinge_loss", "x", "s"),
    "huber_loss": loss("huber_loss", "x", "x", delta=0.8),
    "log_cosh_loss": loss("log_cosh_loss", "x", "x"),
    "cosine_similarity_loss": loss("cosine_similarity_loss", "x", "x"),
    "margin_ranking_loss": loss("margin_ranking_loss", "x", "x", "s", margin=0.3),
    "init.constant": initializer("constant", (2, 3), 0.5),
    "init.normal": initializer("normal", (3, 4), 1.0, 2.0),
    "init.uniform": initializer("uniform", (3, 4), -1.0, 2.0),
    "init.identity": initializer("identity", (3, 3)),
    "init.glorot_normal": initializer("glorot_normal", (3, 2, 4)),
    "init.glorot_uniform": initializer("glorot_uniform", (3, 2, 4), options={"gain": 2.0}),
    "init.he_normal": initializer("he_normal", (3, 2, 4), options={"mode": "fan_out"}),
    "init.he_uniform": initializer("he_uniform", (3, 2, 4), options={"gain": 0.5}),
    "init.sparse": initializer("sparse", (4, 6), 0.4, 0.5, 0.2),
    "init.orthogonal": initializer("orthogonal", (3, 5), 2.0),
}

for name in (
    "celu elu gelu gelu_approx gelu_fast_approx hard_shrink hardswish leaky_relu log_sigmoid log_softmax mish relu "
    "relu2 relu6 selu sigmoid silu softmax softmin softplus softshrink softsign step tanh"
).split():
    CASES[f"activation.{name}"] = activation(name)
for name in ("celu", "elu", "leaky_relu", "hard_shrink", "softshrink", "step"):
    CASES[f"activation.{name}.argument"] = activation(name, 0.7)
for axes, shape in ((1, (2, 7, 3)), (2, (1, 4, 6, 2)), (3, (1, 4, 3, 4, 2))):
    for kind in ("Max", "Avg"):
        for number, options in enumerate(POOLS):
            CASES[f"{kind}Pool{axes}d.{number}"] = layer(
                lambda nn, kind=kind, axes=axes, options=options: getattr(nn, f"{kind}Pool{axes}d")(**options), [shape]
            )
for mode in ("nearest", "linear", "cubic"):
    for scale in (2.0, 1.5, (0.5, 2.4)):
        shape = (1, 4, 5, 2) if isinstance(scale, tuple) else (1, 5, 2)
        for align in (False, True):
            CASES[f"upsample.{mode}.{scale}.{align}"] = layer(
                lambda nn, s=scale, m=mode, a=align: nn.Upsample(s, m, a), [shape]
            )
        if mode != "nearest":
            CASES[f"upsample.{mode}.{scale}.antialias"] = layer(
                lambda nn, s=scale, m=mode: nn.Upsample(s, m, antialias=True), [shape]
            )
for mode in ("affine", "mxfp4", "nvfp4", "mxfp8"):
    CASES[f"quantized.{mode}"] = quantized(mode)
