"""The models of bench/workloads.json over images, rows, graphs and equations in PyTorch: the other half of
torch_text_models.py. Images of the batch are [batch, height, width, channels], which PyTorch reads as channels-last."""
import torch
from torch import nn
from torch.nn import functional as F

from torch_text_models import GeluMlp, SelfAttention, cross_entropy, ids, modules


def images(s):
    return torch.randn(s.batch, s.image, s.image, 3)


def labelled_images(s):
    return images(s), ids(s.classes, s.batch)


def channels_first(x):
    return x.permute(0, 3, 1, 2)


class Patches(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.conv = nn.Conv2d(3, s.width, s.patch, stride=s.patch)

    def forward(self, x):
        return self.conv(channels_first(x)).flatten(2).transpose(1, 2)


class VitBlock(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(s.width), nn.LayerNorm(s.width)
        self.attn, self.mlp = SelfAttention(s.width, s.heads), GeluMlp(s.width, 4 * s.width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Vit(nn.Module):
    batch = staticmethod(labelled_images)

    def __init__(self, s):
        super().__init__()
        self.patches, count = Patches(s), (s.image // s.patch) ** 2
        self.token = nn.Parameter(torch.randn(1, 1, s.width) * 0.02)
        self.positions = nn.Parameter(torch.randn(count + 1, s.width) * 0.02)
        self.h = modules(VitBlock(s) for _ in range(s.layers))
        self.ln, self.head = nn.LayerNorm(s.width), nn.Linear(s.width, s.classes)

    def forward(self, x, labels):
        x = self.patches(x)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1).to(x.dtype), x), 1) + self.positions
        for block in self.h:
            x = block(x)
        return cross_entropy(self.head(self.ln(x[:, 0])), labels)


class ResidualPair(nn.Module):
    def __init__(self, width, out, step):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(width, out, 3, step, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.shortcut = None
        if width != out or step != 1:
            self.shortcut, self.bn3 = nn.Conv2d(width, out, 1, step, bias=False), nn.BatchNorm2d(out)

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.shortcut is None else self.bn3(self.shortcut(x))))


class ResNet(nn.Module):
    batch = staticmethod(labelled_images)

    def __init__(self, s):
        super().__init__()
        self.stem, self.bn = nn.Conv2d(3, s.width, 3, 1, 1, bias=False), nn.BatchNorm2d(s.width)
        widths = [s.width] + [s.width << stage for stage in range(4)]
        self.blocks = modules(block for stage in range(4) for block in (
            ResidualPair(widths[stage], widths[stage + 1], 1 if stage == 0 else 2),
            ResidualPair(widths[stage + 1], widths[stage + 1], 1)))
        self.head = nn.Linear(8 * s.width, s.classes)

    def forward(self, x, labels):
        x = F.relu(self.bn(self.stem(channels_first(x))))
        for block in self.blocks:
            x = block(x)
        return cross_entropy(self.head(x.mean((2, 3))), labels)


class MixerBlock(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(s.width), nn.LayerNorm(s.width)
        self.tokens = GeluMlp((s.image // s.patch) ** 2, s.token_hidden)
        self.channels = GeluMlp(s.width, s.hidden)

    def forward(self, x):
        x = x + self.tokens(self.ln_1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.ln_2(x))


class Mixer(nn.Module):
    batch = staticmethod(labelled_images)

    def __init__(self, s):
        super().__init__()
        self.patches, self.h = Patches(s), modules(MixerBlock(s) for _ in range(s.layers))
        self.ln, self.head = nn.LayerNorm(s.width), nn.Linear(s.width, s.classes)

    def forward(self, x, labels):
        x = self.patches(x)
        for block in self.h:
            x = block(x)
        return cross_entropy(self.head(self.ln(x).mean(1)), labels)


class ChannelNorm(nn.LayerNorm):
    """Layer norm over the channels of [batch, channels, height, width]."""

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNextBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.ln, self.mlp = nn.LayerNorm(width), GeluMlp(width, 4 * width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x):
        y = self.mlp(self.ln(self.conv(x).permute(0, 2, 3, 1))) * self.scale
        return x + y.permute(0, 3, 1, 2)


class ConvNextStage(nn.Module):
    def __init__(self, width, out, count):
        super().__init__()
        self.first = width == 3
        step = 4 if self.first else 2
        self.down, self.ln = nn.Conv2d(width, out, step, step), ChannelNorm(out if self.first else width)
        self.blocks = modules(ConvNextBlock(out) for _ in range(count))

    def forward(self, x):
        x = self.ln(self.down(x)) if self.first else self.down(self.ln(x))
        for block in self.blocks:
            x = block(x)
        return x


class ConvNext(nn.Module):
    batch = staticmethod(labelled_images)

    def __init__(self, s):
        super().__init__()
        self.stages = modules(ConvNextStage(3 if i == 0 else s.width << (i - 1), s.width << i,
                                            (3 if i == 2 else 1) * s.depth) for i in range(4))
        self.ln, self.head = nn.LayerNorm(8 * s.width), nn.Linear(8 * s.width, s.classes)

    def forward(self, x, labels):
        x = channels_first(x)
        for stage in self.stages:
            x = stage(x)
        return cross_entropy(self.head(self.ln(x.mean((2, 3)))), labels)


class NormedPair(nn.Module):
    def __init__(self, width, out, groups):
        super().__init__()
        self.gn1, self.conv1 = nn.GroupNorm(groups, width), nn.Conv2d(width, out, 3, padding=1)
        self.gn2, self.conv2 = nn.GroupNorm(groups, out), nn.Conv2d(out, out, 3, padding=1)
        self.shortcut = nn.Conv2d(width, out, 1) if width != out else None

    def forward(self, x):
        y = self.conv2(F.silu(self.gn2(self.conv1(F.silu(self.gn1(x))))))
        return y + (x if self.shortcut is None else self.shortcut(x))


class UNetLevel(nn.Module):
    def __init__(self, width, groups):
        super().__init__()
        self.before, self.after = NormedPair(width, width, groups), NormedPair(2 * width, width, groups)
        self.down, self.up = nn.Conv2d(width, 2 * width, 3, 2, 1), nn.Conv2d(2 * width, width, 3, padding=1)


class UNet(nn.Module):
    @staticmethod
    def batch(s):
        return images(s), images(s)

    def __init__(self, s):
        super().__init__()
        top = s.width << (s.levels - 1)
        self.first, self.last = nn.Conv2d(3, s.width, 3, padding=1), nn.Conv2d(s.width, 3, 3, padding=1)
        self.levels = modules(UNetLevel(s.width << i, s.groups) for i in range(s.levels - 1))
        self.middle, self.gn = NormedPair(top, top, s.groups), nn.GroupNorm(s.groups, s.width)

    def forward(self, x, noise):
        x, kept = self.first(channels_first(x)), []
        for level in self.levels:
            x = level.before(x)
            kept.append(x)
            x = level.down(x)
        x = self.middle(x)
        for level in reversed(self.levels):
            x = level.after(torch.cat((level.up(F.interpolate(x, scale_factor=2)), kept.pop()), 1))
        return F.mse_loss(self.last(F.silu(self.gn(x))), channels_first(noise))


class HalvingConvolution(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(width, out, 4, 2, 1, bias=False), nn.BatchNorm2d(out)

    def forward(self, x):
        return F.leaky_relu(self.bn(self.conv(x)), 0.2)


class DoublingConvolution(nn.Module):
    def __init__(self, width, out, step, padding):
        super().__init__()
        self.conv = nn.ConvTranspose2d(width, out, 4, step, padding, bias=False)
        self.bn = nn.BatchNorm2d(out)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class ConvolutionalAutoencoder(nn.Module):
    @staticmethod
    def batch(s):
        return (torch.tanh(images(s)),)

    def __init__(self, s):
        super().__init__()
        levels = (s.image // 4 - 1).bit_length()
        widths = [s.width << i for i in range(levels)]
        self.encoder = modules(HalvingConvolution(a, b) for a, b in zip([3] + widths, widths))
        self.code = nn.Conv2d(widths[-1], s.latent, 4)
        self.decoder = modules([DoublingConvolution(s.latent, widths[-1], 1, 0)] + [
            DoublingConvolution(a, b, 2, 1) for a, b in zip(widths[:0:-1], widths[-2::-1])])
        self.last = nn.ConvTranspose2d(s.width, 3, 4, 2, 1)

    def forward(self, x):
        x = start = channels_first(x)
        for layer in self.encoder:
            x = layer(x)
        x = self.code(x)
        for layer in self.decoder:
            x = layer(x)
        return F.mse_loss(torch.tanh(self.last(x)), start)


class VariationalAutoencoder(nn.Module):
    @staticmethod
    def batch(s):
        return (torch.rand(s.batch, s.inputs),)

    def __init__(self, s):
        super().__init__()
        self.e1, self.e2 = nn.Linear(s.inputs, s.hidden), nn.Linear(s.hidden, s.hidden)
        self.mu, self.log_variance = nn.Linear(s.hidden, s.latent), nn.Linear(s.hidden, s.latent)
        self.d1, self.d2 = nn.Linear(s.latent, s.hidden), nn.Linear(s.hidden, s.hidden)
        self.out = nn.Linear(s.hidden, s.inputs)

    def forward(self, x):
        h = F.relu(self.e2(F.relu(self.e1(x))))
        m, v = self.mu(h), self.log_variance(h)
        y = self.out(F.relu(self.d2(F.relu(self.d1(m + torch.exp(0.5 * v) * torch.randn_like(m))))))
        likeness = F.binary_cross_entropy_with_logits(y, x, reduction="sum")
        return (likeness - 0.5 * (1 + v - m.square() - v.exp()).sum()) / x.shape[0]


class Recommendation(nn.Module):
    @staticmethod
    def batch(s):
        return torch.randn(s.batch, s.dense), ids(s.rows, s.tables, s.batch, s.bag), ids(2, s.batch, 1).float()

    def __init__(self, s):
        super().__init__()
        self.tables = modules(nn.EmbeddingBag(s.rows, s.width, mode="mean") for _ in range(s.tables))
        self.b1, self.b2 = nn.Linear(s.dense, s.hidden), nn.Linear(s.hidden, s.width)
        self.t1 = nn.Linear(s.width + (s.tables + 1) * s.tables // 2, s.hidden)
        self.t2 = nn.Linear(s.hidden, 1)
        n = s.tables + 1
        pairs = torch.tensor([i * n + j for i in range(n) for j in range(i)])
        self.register_buffer("pairs", pairs, persistent=False)

    def forward(self, dense, rows, labels):
        x = F.relu(self.b2(F.relu(self.b1(dense))))
        vectors = torch.stack([x] + [table(rows[i]) for i, table in enumerate(self.tables)], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)
        y = self.t2(F.relu(self.t1(torch.cat((x, products[:, self.pairs]), 1))))
        return F.binary_cross_entropy_with_logits(y, labels)


class GraphNetwork(nn.Module):
    @staticmethod
    def batch(s):
        return (torch.randn(s.nodes, s.width), ids(s.nodes, s.edges), ids(s.nodes, s.edges), torch.rand(s.edges, 1),
                ids(s.classes, s.nodes))

    def __init__(self, s):
        super().__init__()
        self.layers = modules(nn.Linear(s.width, s.width) for _ in range(s.layers))
        self.head = nn.Linear(s.width, s.classes)

    def forward(self, x, sources, destinations, weights, labels):
        for layer in self.layers:
            sent = layer(x)[sources] * weights
            x = F.relu(torch.zeros_like(x).index_add(0, destinations, sent))
        return cross_entropy(self.head(x), labels)


class TabularLayer(nn.Module):
    def __init__(self, width, out, dropout):
        super().__init__()
        self.linear, self.bn, self.dropout = nn.Linear(width, out), nn.BatchNorm1d(out), dropout

    def forward(self, x):
        return F.dropout(F.relu(self.bn(self.linear(x))), self.dropout)


class Tabular(nn.Module):
    @staticmethod
    def batch(s):
        return torch.randn(s.batch, s.inputs), ids(s.classes, s.batch)

    def __init__(self, s):
        super().__init__()
        self.layers = modules(TabularLayer(s.inputs if i == 0 else s.width, s.width, s.dropout)
                              for i in range(s.layers))
        self.head = nn.Linear(s.width, s.classes)

    def forward(self, x, labels):
        for layer in self.layers:
            x = layer(x)
        return cross_entropy(self.head(x), labels)


class EquationSolver(nn.Module):
    @staticmethod
    def batch(s):
        return (torch.rand(s.batch, 2),)

    def __init__(self, s):
        super().__init__()
        self.layers = modules(nn.Linear(2 if i == 0 else s.width, s.width) for i in range(s.layers))
        self.head = nn.Linear(s.width, 1)

    def network(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return self.head(x)

    def forward(self, points):  # x and t
        slopes = torch.func.grad(lambda p: self.network(p).sum())
        first, u = slopes(points), self.network(points)[:, 0]
        second = torch.func.grad(lambda p: slopes(p)[:, 0].sum())(points)
        rest = first[:, 1] + u * first[:, 0] - 0.01 * second[:, 0]
        return rest.square().mean() + (u - torch.sin(points[:, 0])).square().mean()


MODELS = {"vit": Vit, "resnet": ResNet, "mixer": Mixer, "convnext": ConvNext, "unet": UNet,
          "dcgan": ConvolutionalAutoencoder, "vae": VariationalAutoencoder, "dlrm": Recommendation,
          "gcn": GraphNetwork, "tabular": Tabular, "pinn": EquationSolver}
