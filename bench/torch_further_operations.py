"""Further single operations of bench/workloads.json in PyTorch (tools/weft/bench/workloads/further_operations.cpp):
each is a function of Inputs (torch_operations.py) that gives the inputs and the function over them."""
import torch
from torch.nn import functional as F


def derivatives(function):
    """The derivatives by all inputs but the last, which is the cotangent of the result."""

    def run(*inputs):
        leaves = [x.detach().requires_grad_() for x in inputs[:-1]]
        return torch.autograd.grad(function(*leaves), leaves, inputs[-1])

    return run


def matrices(count, function):
    return lambda i: (tuple(i.matrix() for _ in range(count)), function)


def vectors_behind(count, function, cotangent=False):
    """Over matrices and two vectors of a row's length, and the cotangent of the result."""

    def make(i):
        inputs = [i.matrix() for _ in range(count)] + [i.normal(i.s.cols) for _ in range(2)]
        return (*inputs, *([i.matrix()] if cotangent else [])), function

    return make


def layer_norm(x, weight, bias):
    return F.layer_norm(x, x.shape[-1:], weight, bias, 1e-5)


def norm_of_sum(x, y, weight, bias):
    return F.layer_norm(x + y, x.shape[-1:], weight, bias, 1e-5)


def add_rms_norm(x, y, weight):
    total = x + y
    return total, F.rms_norm(total, total.shape[-1:], weight, 1e-5)


def batch_norm(x, weight, bias):
    return F.batch_norm(x, None, None, weight, bias, training=True)


def batch_norm_inputs(i, cotangent):
    vectors = [torch.randn(i.s.channels, device=i.device) for _ in range(2)]
    return (i.images(), *vectors, *([i.images()] if cotangent else []))


def masked_softmax(scores):
    time = scores.shape[-1]
    seen = torch.ones(time, time, dtype=torch.bool, device=scores.device).tril()
    return F.softmax(torch.where(seen, scores * 0.125, -1e9), -1)


def heads(i, count, time):
    return i.normal(i.s.batch, count, time, i.s.width)


def attention_inputs(i, count=3):
    return tuple(heads(i, i.s.heads, i.s.time) for _ in range(count))


def grouped_inputs(i, queries):
    return (heads(i, i.s.heads, queries), *(heads(i, i.s.kv_heads, i.s.time) for _ in range(2)))


def causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def biased(q, k, v, bias):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def grouped(is_causal):
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=is_causal, enable_gqa=True)


def kernel_of(i, out, each, *sizes):
    """A convolution's weight with its channels last in memory."""
    weight = i.normal(out, each, *sizes, scale=0.03)
    return weight.to(memory_format=torch.channels_last) if len(sizes) == 2 else weight


def convolution(size, depthwise=False):
    def make(i):
        channels = i.s.channels
        return ((i.images(), kernel_of(i, channels, 1 if depthwise else channels, size, size)),
                lambda x, w: F.conv2d(x, w, padding=size // 2, groups=channels if depthwise else 1))

    return make


def strided(i):
    return ((i.images(), kernel_of(i, i.s.channels, i.s.channels, 3, 3), i.images(2)),
            derivatives(lambda x, w: F.conv2d(x, w, stride=2, padding=1)))


def conv1d(i):
    """Channels last in memory, as Weft's."""
    x = i.normal(i.s.batch, i.s.time, i.s.channels)
    return (x, kernel_of(i, i.s.channels, i.s.channels, 5)), lambda x, w: F.conv1d(x.transpose(1, 2), w, padding=2)


def conv_transpose(i):
    return ((i.images(), kernel_of(i, i.s.channels, i.s.channels, 4, 4)),
            lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1))


def images(function):
    return lambda i: ((i.images(),), function)


def laplacian(x):
    wide = F.pad(x[None], (1, 1, 1, 1), mode="replicate")[0]
    return x + 0.1 * (wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:] - 4 * x)


def tall(i):
    return (i.matrix(), i.normal(i.s.rows, i.s.n)), lambda a, b: a.t() @ b


def thin(i):
    return (i.normal(i.s.rows, i.s.n), i.square()), lambda x, w: x @ w


def linear_gelu_backward(i):
    return ((i.normal(i.s.rows, i.s.n), i.square(), i.normal(i.s.n), i.normal(i.s.rows, i.s.n)),
            derivatives(lambda x, w, b: F.gelu(x @ w + b)))


def einsum_scores(i):
    shape = (i.s.batch, i.s.time, i.s.heads, i.s.width)
    return (i.normal(*shape), i.normal(*shape)), lambda a, b: torch.einsum("bihd,bjhd->bhij", a, b)


def bilinear(i):
    weight = i.normal(i.s.cols, i.s.cols, scale=i.s.cols ** -0.5)
    return (i.matrix(), i.matrix(), weight), lambda x, y, w: ((x @ w) * y).sum(-1)


def smoothed_cross_entropy(x, labels):
    leaf = x.detach().requires_grad_()
    loss = F.cross_entropy(leaf.float(), labels, label_smoothing=0.1)
    return loss.detach(), torch.autograd.grad(loss, leaf)[0]


def clip_norm(*gradients):
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    return torch._foreach_mul(gradients, (1 / (norm + 1e-6)).clamp(max=1))


def quantize_rows(x):
    wide = x.float()
    scale = wide.abs().amax(-1, keepdim=True) / 127
    return (wide / scale).round().to(torch.int8), scale


def gaussian_sums(x, y):
    return torch.exp(-(x[:, None] - y).square()).sum(1)


def below(i, bound, *shape):
    return torch.randint(0, bound, shape, device=i.device)


def split_heads(i):
    s = i.s
    width = 3 * s.heads * s.width
    return ((i.normal(s.batch, s.time, width), i.normal(width)),
            lambda x, bias: (x + bias).unflatten(-1, (3, s.heads, -1)).permute(2, 0, 3, 1, 4).contiguous())


OPERATIONS = {
    "layer_norm": vectors_behind(1, layer_norm),
    "residual_layer_norm_backward": vectors_behind(2, derivatives(norm_of_sum), cotangent=True),
    "add_rms_norm": lambda i: ((i.matrix(), i.matrix(), i.normal(i.s.cols)), add_rms_norm),
    "batch_norm_relu": lambda i: (batch_norm_inputs(i, False), lambda *x: F.relu(batch_norm(*x))),
    "batch_norm_backward": lambda i: (batch_norm_inputs(i, True), derivatives(batch_norm)),
    "masked_softmax": lambda i: ((i.normal(i.s.batch, i.s.heads, i.s.time, i.s.time),), masked_softmax),
    "attention_backward": lambda i: (attention_inputs(i, 4), derivatives(causal)),
    "attention_bias": lambda i: ((*attention_inputs(i), i.normal(1, i.s.heads, i.s.time, i.s.time)), biased),
    "attention_grouped": lambda i: (grouped_inputs(i, i.s.time), grouped(True)),
    "attention_decode": lambda i: (grouped_inputs(i, 1), grouped(False)),
    "conv1x1": convolution(1),
    "conv_depthwise": convolution(3, depthwise=True),
    "conv_strided_backward": strided,
    "conv1d": conv1d,
    "conv_transpose": conv_transpose,
    "avg_pool": images(lambda x: F.avg_pool2d(x, 3, 2, 1)),
    "upsample_nearest": images(lambda x: F.interpolate(x, scale_factor=2)),
    "upsample_linear": images(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)),
    "global_pool": images(lambda x: x.mean((2, 3))),
    "laplacian": matrices(1, laplacian),
    "matmul_tall": tall,
    "matmul_thin": thin,
    "linear_gelu_backward": linear_gelu_backward,
    "einsum_scores": einsum_scores,
    "bilinear": bilinear,
    "cross_entropy_smoothed": lambda i: ((i.matrix(), below(i, i.s.cols, i.s.rows)), smoothed_cross_entropy),
    "clip_grad_norm": lambda i: (tuple(i.matrix() for _ in range(i.s.tensors)), clip_norm),
    "quantize_rows": matrices(1, quantize_rows),
    "gates": matrices(1, lambda x: F.softmax(x.topk(2, -1).values, -1)),
    "gaussian_sums": lambda i: ((i.normal(i.s.rows), i.normal(i.s.cols)), gaussian_sums),
    "mean_squared_error": matrices(2, F.mse_loss),
    "log_softmax_columns": matrices(1, lambda x: F.log_softmax(x, 0)),
    "cumsum_columns": matrices(1, lambda x: x.cumsum(0)),
    "cummax": matrices(1, lambda x: x.cummax(1).values),
    "cumprod": matrices(1, lambda x: x.cumprod(1)),
    "sort_rows": matrices(1, lambda x: x.sort(-1).values),
    "take_along_axis": lambda i: ((i.matrix(), below(i, i.s.cols, i.s.rows, i.s.count)),
                                  lambda x, at: x.gather(1, at)),
    "embedding_bag": lambda i: ((i.matrix(), below(i, i.s.rows, i.s.count, i.s.bag)),
                                lambda table, at: F.embedding_bag(at, table, mode="sum")),
    "histogram": lambda i: ((i.indices(i.s.bins),), lambda at: torch.bincount(at, minlength=i.s.bins)),
    "mish": matrices(1, F.mish),
    "glu": matrices(1, F.glu),
    "concatenate": matrices(2, lambda a, b: torch.cat((a, b * 2, a), 1)),
    "split_heads": split_heads,
    "rfft_power": matrices(1, lambda x: torch.fft.rfft(x).abs().square()),
    "flip_roll": matrices(1, lambda x: x.flip(1).roll(7, 0)),
}
