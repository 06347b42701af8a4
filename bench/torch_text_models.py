"""The models of bench/workloads.json in PyTorch, as a user would write them; parameters have the names that Weft's side
has (tools/weft/bench/workloads), so that weights can be carried over. A model takes the batch and returns the loss."""
import torch
from torch import nn
from torch.nn import functional as F

from torch_gpt import Gpt


def ids(bound, *shape):
    return torch.randint(0, bound, shape)


def cross_entropy(logits, labels):
    return F.cross_entropy(logits.flatten(0, -2).float(), labels.flatten())


def modules(items):
    return nn.ModuleList(list(items))


class Size(dict):
    """Sizes by name as attributes."""
    __getattr__ = dict.__getitem__


class SelfAttention(nn.Module):
    def __init__(self, width, heads, causal=False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.c_attn(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.c_proj(y.transpose(1, 2).flatten(2))


class GeluMlp(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class GptText(Gpt):
    """torch_gpt.py's GPT with dropout of attention weights of its own."""

    def __init__(self, s):
        super().__init__(Size(layers=s.layers, heads=s.heads, width=s.width, context=s.time, dropout=s.dropout,
                              bias=True), s.vocab)
        for block in self.h:
            block.attn.attention_dropout = s.attention_dropout

    @staticmethod
    def batch(s):
        return ids(s.vocab, s.batch, s.time), ids(s.vocab, s.batch, s.time)


def rotated(x):
    """Rotary positions of [batch, heads, time, width] by halves."""
    half = x.shape[-1] // 2
    frequencies = 1e4 ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
    angles = torch.outer(torch.arange(x.shape[2], device=x.device, dtype=torch.float32), frequencies)
    cos, sin, (a, b) = angles.cos(), angles.sin(), x.float().chunk(2, -1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1).to(x.dtype)


class LlamaAttention(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.heads = s.heads
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(self, name, nn.Linear(s.width, s.width, bias=False))

    def forward(self, x):
        q, k, v = (p(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for p in (self.q_proj, self.k_proj, self.v_proj))
        y = F.scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).flatten(2))


class LlamaMlp(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.gate_proj, self.up_proj = (nn.Linear(s.width, s.hidden, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(s.hidden, s.width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaBlock(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.self_attn, self.mlp = LlamaAttention(s), LlamaMlp(s)
        self.input_layernorm, self.post_attention_layernorm = (nn.RMSNorm(s.width, eps=1e-5) for _ in range(2))

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(s.vocab, s.width)
        self.model.layers = modules(LlamaBlock(s) for _ in range(s.layers))
        self.model.norm = nn.RMSNorm(s.width, eps=1e-5)
        self.lm_head = nn.Linear(s.width, s.vocab, bias=False)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, 0, 0.02)

    batch = GptText.batch

    def forward(self, tokens, targets):
        x = self.model.embed_tokens(tokens)
        for block in self.model.layers:
            x = block(x)
        return cross_entropy(self.lm_head(self.model.norm(x)), targets)


class Experts(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.best, self.gate = s.best, nn.Linear(s.width, s.experts, bias=False)
        self.up = nn.Parameter(torch.randn(s.experts, s.width, s.hidden) * 0.02)
        self.down = nn.Parameter(torch.randn(s.experts, s.hidden, s.width) * 0.02)

    def forward(self, x):  # [tokens, width]
        scores = F.softmax(self.gate(x).float(), -1)
        chosen = torch.where(scores >= scores.topk(self.best, -1).values[:, -1:], scores, 0.0)
        weights = chosen / chosen.sum(-1, keepdim=True)
        y = torch.matmul(F.gelu(torch.matmul(x, self.up), approximate="tanh"), self.down)  # [experts, tokens, width]
        return (y * weights.t().unsqueeze(-1).to(y.dtype)).sum(0)


class ExpertBlock(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(s.width), nn.LayerNorm(s.width)
        self.attn, self.experts = SelfAttention(s.width, s.heads, True), Experts(s)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.experts(self.ln_2(x).flatten(0, 1)).view_as(x)


class MixtureOfExperts(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(s.vocab, s.width), nn.Embedding(s.time, s.width)
        self.h = modules(ExpertBlock(s) for _ in range(s.layers))
        self.ln_f, self.head = nn.LayerNorm(s.width), nn.Linear(s.width, s.vocab, bias=False)

    batch = GptText.batch

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe.weight
        for block in self.h:
            x = block(x)
        return cross_entropy(self.head(self.ln_f(x)), targets)


class MultiHeadAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        for name in ("query_proj", "key_proj", "value_proj", "out_proj"):
            setattr(self, name, nn.Linear(width, width, bias=False))

    def forward(self, queries, keys, causal=False):
        q, k, v = (p(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for p, x in (
            (self.query_proj, queries), (self.key_proj, keys), (self.value_proj, keys)))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return self.out_proj(y.transpose(1, 2).flatten(2))


class TransformerLayer(nn.Module):
    """Of an encoder, or with `memory` of a decoder."""

    def __init__(self, width, heads, decoder=False, activation=F.relu, dropout=0.0, norm_first=True):
        super().__init__()
        self.activation, self.dropout, self.norm_first, self.decoder = activation, dropout, norm_first, decoder
        if decoder:
            self.self_attention, self.cross_attention = (MultiHeadAttention(width, heads) for _ in range(2))
            self.ln3 = nn.LayerNorm(width)
        else:
            self.attention = MultiHeadAttention(width, heads)
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.linear1, self.linear2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def drop(self, x):
        return F.dropout(x, self.dropout) if self.dropout else x

    def feed_forward(self, x):
        return self.linear2(self.drop(self.activation(self.linear1(x))))

    def attend(self, x):
        attention = self.self_attention if self.decoder else self.attention
        return self.drop(attention(x, x, self.decoder))

    def forward(self, x, memory=None):
        if not self.norm_first:
            x = self.ln1(x + self.attend(x))
            return self.ln2(x + self.feed_forward(x))
        x = x + self.attend(self.ln1(x))
        if not self.decoder:
            return x + self.feed_forward(self.ln2(x))
        x = x + self.drop(self.cross_attention(self.ln2(x), memory))
        return x + self.feed_forward(self.ln3(x))


class TransformerStack(nn.Module):
    def __init__(self, layers, *arguments, **options):
        super().__init__()
        self.layers = modules(TransformerLayer(*arguments, **options) for _ in range(layers))
        self.ln = nn.LayerNorm(arguments[0])

    def forward(self, x, memory=None):
        for layer in self.layers:
            x = layer(x, memory)
        return self.ln(x)


class Bert(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.dropout = s.dropout
        self.wte, self.wpe = nn.Embedding(s.vocab, s.width), nn.Embedding(s.time, s.width)
        self.ln, self.ln_head = nn.LayerNorm(s.width), nn.LayerNorm(s.width)
        self.encoder = TransformerStack(s.layers, s.width, s.heads, activation=F.gelu, dropout=s.dropout,
                                        norm_first=False)
        self.transform, self.head = nn.Linear(s.width, s.width), nn.Linear(s.width, s.vocab)

    @staticmethod
    def batch(s):
        return *GptText.batch(s), (torch.rand(s.batch, s.time) < 1 / 7).float()

    def forward(self, tokens, targets, masked):
        x = self.encoder(F.dropout(self.ln(self.wte(tokens) + self.wpe.weight), self.dropout))
        logits = self.head(self.ln_head(F.gelu(self.transform(x))))
        losses = F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), reduction="none")
        return (losses * masked.flatten()).sum() / masked.sum().clamp(min=1)


class Translator(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.source, self.target = (nn.Embedding(s.vocab, s.width) for _ in range(2))
        self.transformer = nn.Module()
        self.transformer.encoder = TransformerStack(s.layers, s.width, s.heads)
        self.transformer.decoder = TransformerStack(s.layers, s.width, s.heads, decoder=True)
        self.head = nn.Linear(s.width, s.vocab)

    @staticmethod
    def batch(s):
        return tuple(ids(s.vocab, s.batch, s.time) for _ in range(3))

    def forward(self, source, target, labels):
        memory = self.transformer.encoder(self.source(source))
        return cross_entropy(self.head(self.transformer.decoder(self.target(target), memory)), labels)


class Recurrent(nn.Module):
    kind = nn.LSTM

    def __init__(self, s):
        super().__init__()
        self.embed, self.head = nn.Embedding(s.vocab, s.width), nn.Linear(s.width, s.vocab)
        self.cells = self.kind(s.width, s.width, s.layers, batch_first=True)

    batch = GptText.batch

    def forward(self, tokens, targets):
        return cross_entropy(self.head(self.cells(self.embed(tokens))[0]), targets)


class Gru(Recurrent):
    kind = nn.GRU


class GatedConvolution(nn.Module):
    def __init__(self, width, step):
        super().__init__()
        self.step = step
        self.conv, self.out = nn.Conv1d(width, 2 * width, 3, dilation=step), nn.Linear(width, width)

    def forward(self, x):  # [batch, time, width]
        y = self.conv(F.pad(x.transpose(1, 2), (2 * self.step, 0)))
        a, b = y.chunk(2, 1)
        return x + self.out((torch.tanh(a) * torch.sigmoid(b)).transpose(1, 2))


class ConvolutionalSequence(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.embed, self.head = nn.Embedding(s.vocab, s.width), nn.Linear(s.width, s.vocab)
        self.layers = modules(GatedConvolution(s.width, 1 << i) for i in range(s.layers))

    batch = GptText.batch

    def forward(self, tokens, targets):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return cross_entropy(self.head(F.relu(x)), targets)


MODELS = {"llama": Llama, "gpt": GptText, "moe": MixtureOfExperts, "bert": Bert, "transformer": Translator,
          "lstm": Recurrent, "gru": Gru, "tcn": ConvolutionalSequence}
