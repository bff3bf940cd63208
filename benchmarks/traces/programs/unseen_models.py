# SPDX-License-Identifier: Apache-2.0
"""The networks that unseen.py trains and serves, of torch.nn alone."""

import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


def split_heads(x, heads):
    """(batch, length, width) -> (batch, heads, length, width / heads)."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def attend(q, k, v, bias=None, dropout=0.0):
    """Attention that keeps its scores, as programs without a fused kernel do."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if bias is not None:
        scores = scores + bias
    weights = F.dropout(scores.softmax(-1), dropout, dropout > 0)
    return (weights @ v).transpose(1, 2).flatten(2)


class EncoderLayer(nn.Module):
    def __init__(self, width, heads, inner, dropout=0.1):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, bias):
        q, k, v = (split_heads(part, self.heads) for part in self.qkv(x).chunk(3, -1))
        y = attend(q, k, v, bias, self.dropout.p if self.training else 0.0)
        x = self.norm1(x + self.dropout(self.out(y)))
        return self.norm2(x + self.dropout(self.down(F.gelu(self.up(x)))))


class Encoder(nn.Module):
    """A text encoder; padded positions are hidden by `lengths`."""

    def __init__(self, width, heads, layers, vocabulary=30522, longest=2048):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(longest, width)
        self.layers = nn.ModuleList(EncoderLayer(width, heads, 4 * width) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids, lengths):
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.words(ids) + self.places(places))
        hidden = places[None, :] >= lengths[:, None]
        bias = hidden[:, None, None, :] * torch.tensor(-1e4, dtype=x.dtype, device=x.device)
        for layer in self.layers:
            x = layer(x, bias)
        return x


class ResBlock(nn.Module):
    def __init__(self, inner, outer, wide):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(32, inner), nn.GroupNorm(32, outer)
        self.conv1 = nn.Conv2d(inner, outer, 3, padding=1)
        self.conv2 = nn.Conv2d(outer, outer, 3, padding=1)
        self.time = nn.Linear(wide, outer)
        self.skip = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()

    def forward(self, x, time):
        y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


class PixelAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.heads = width // 64
        self.norm = nn.GroupNorm(32, width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        tokens = self.qkv(self.norm(x).flatten(2).transpose(1, 2))
        q, k, v = (split_heads(part, self.heads) for part in tokens.chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return x + self.out(y).transpose(1, 2).reshape(x.shape)


class UNet(nn.Module):
    """Predicts the noise of latents; sides are multiples of 2 ** (len(widths) - 1)."""

    def __init__(self, widths, blocks=2, channels=4):
        super().__init__()
        wide = 4 * widths[0]
        self.time = nn.Sequential(nn.Linear(widths[0], wide), nn.SiLU(), nn.Linear(wide, wide))
        self.first = nn.Conv2d(channels, widths[0], 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        skips, now = [widths[0]], widths[0]
        for level, width in enumerate(widths):
            for _ in range(blocks):
                self.down.append(self.stage(now, width, wide, level))
                now = width
                skips.append(now)
            if level + 1 < len(widths):
                self.down.append(nn.Conv2d(now, now, 3, stride=2, padding=1))
                skips.append(now)
        self.middle = self.stage(now, now, wide, len(widths))
        for level, width in reversed(list(enumerate(widths))):
            for _ in range(blocks + 1):
                self.up.append(self.stage(now + skips.pop(), width, wide, level))
                now = width
            if level:
                self.up.append(nn.Conv2d(now, now, 3, padding=1))
        self.norm, self.last = nn.GroupNorm(32, now), nn.Conv2d(now, channels, 3, padding=1)

    @staticmethod
    def stage(inner, outer, wide, level):
        attention = PixelAttention(outer) if level > 1 else nn.Identity()
        return nn.ModuleList([ResBlock(inner, outer, wide), attention])

    def forward(self, x, when):
        half = self.time[0].in_features // 2
        angles = when[:, None] * torch.logspace(0, -4, half, device=x.device)
        time = self.time(torch.cat([angles.sin(), angles.cos()], 1).to(x.dtype))
        x = self.first(x)
        skips = [x]
        for part in self.down:
            x = part(x) if isinstance(part, nn.Conv2d) else part[1](part[0](x, time))
            skips.append(x)
        x = self.middle[1](self.middle[0](x, time))
        for part in self.up:
            if isinstance(part, nn.Conv2d):
                x = part(F.interpolate(x, scale_factor=2.0))
            else:
                x = part[1](part[0](torch.cat([x, skips.pop()], 1), time))
        return self.last(F.silu(self.norm(x)))


class Experts(nn.Module):
    """Each token goes to two of the experts; `skew` makes some of them popular."""

    def __init__(self, width, inner, count):
        super().__init__()
        self.gate = nn.Linear(width, count, bias=False)
        self.up = nn.ModuleList(nn.Linear(width, 2 * inner, bias=False) for _ in range(count))
        self.down = nn.ModuleList(nn.Linear(inner, width, bias=False) for _ in range(count))

    def forward(self, x, skew):
        flat = x.flatten(0, 1)
        weight, chosen = (self.gate(flat).float() + skew).softmax(-1).topk(2)
        out = torch.zeros_like(flat)
        for expert, (up, down) in enumerate(zip(self.up, self.down)):
            row, slot = torch.where(chosen == expert)
            if row.numel():
                inner, gate = up(flat[row]).chunk(2, -1)
                share = weight[row, slot, None].to(flat.dtype)
                out.index_add_(0, row, down(F.silu(gate) * inner) * share)
        return out.view_as(x)


class MoeBlock(nn.Module):
    def __init__(self, width, heads, inner, experts):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.experts = Experts(width, inner, experts)

    def forward(self, x, skew):
        parts = self.qkv(self.norm1(x)).chunk(3, -1)
        q, k, v = (split_heads(part, self.heads) for part in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.experts(self.norm2(x), skew)


class MoeDecoder(nn.Module):
    def __init__(self, width, heads, inner, experts, layers, vocabulary=32000):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(MoeBlock(width, heads, inner, experts) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids, skews):
        x = self.words(ids)
        for block, skew in zip(self.blocks, skews):
            x = block(x, skew)
        return self.head(self.norm(x))


class Conformer(nn.Module):
    """One block: half a feed-forward, attention, convolution over time, the other half."""

    def __init__(self, width, heads, kernel=31):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(5))
        self.feed = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Dropout(0.1),
                          nn.Linear(4 * width, width), nn.Dropout(0.1)) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.point1, self.point2 = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(width, width, 1)
        self.depth = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.batch = nn.BatchNorm1d(width)

    def forward(self, x, bias):
        x = x + 0.5 * self.feed[0](self.norms[0](x))
        parts = self.qkv(self.norms[1](x)).chunk(3, -1)
        q, k, v = (split_heads(part, self.heads) for part in parts)
        x = x + self.out(attend(q, k, v, bias, 0.1))
        y = F.glu(self.point1(self.norms[2](x).transpose(1, 2)), 1)
        x = x + self.point2(F.silu(self.batch(self.depth(y)))).transpose(1, 2)
        return self.norms[4](x + 0.5 * self.feed[1](self.norms[3](x)))


class SpeechEncoder(nn.Module):
    """Spectra to letter scores at a quarter of their rate. Every other block is recomputed."""

    def __init__(self, width, heads, layers, letters=128, bands=80):
        super().__init__()
        self.thin = nn.Sequential(nn.Conv2d(1, 256, 3, stride=2), nn.ReLU(),
                                  nn.Conv2d(256, 256, 3, stride=2), nn.ReLU())
        self.enter = nn.Linear(256 * (((bands - 1) // 2 - 1) // 2), width)
        self.blocks = nn.ModuleList(Conformer(width, heads) for _ in range(layers))
        self.leave = nn.Linear(width, letters)

    @staticmethod
    def places(frames):
        return ((frames - 1) // 2 - 1) // 2

    def forward(self, spectra, frames):
        x = self.thin(spectra[:, None])
        x = self.enter(x.permute(0, 3, 1, 2).flatten(2))
        hidden = torch.arange(x.shape[1], device=x.device)[None] >= self.places(frames)[:, None]
        bias = torch.zeros(hidden.shape, dtype=x.dtype, device=x.device)
        bias = bias.masked_fill(hidden, -1e4)[:, None, None, :]
        for index, block in enumerate(self.blocks):
            if index % 2:
                x = checkpoint(block, x, bias, use_reentrant=False)
            else:
                x = block(x, bias)
        return self.leave(x)


class Generator(nn.Module):
    def __init__(self, width=512, least=64, doublings=7):
        super().__init__()
        self.width = width
        widths = [max(least, width >> max(0, level - 3)) for level in range(doublings + 1)]
        self.enter = nn.Linear(256, width * 16)
        self.stages = nn.ModuleList(
            nn.ModuleList([nn.Conv2d(a, b, 3, padding=1), nn.Conv2d(b, b, 3, padding=1)])
            for a, b in zip(widths, widths[1:]))
        self.colors = nn.ModuleList(nn.Conv2d(b, 3, 1) for b in widths[1:])

    def forward(self, z, doublings):
        x = self.enter(z).unflatten(1, (self.width, 4, 4))
        for stage in self.stages[:doublings]:
            x = F.interpolate(x, scale_factor=2.0)
            for conv in stage:
                x = F.leaky_relu(conv(x), 0.2)
                x = x * torch.rsqrt(x.square().mean(1, keepdim=True) + 1e-8)
        return self.colors[doublings - 1](x)


class Discriminator(nn.Module):
    def __init__(self, width=512, least=64, doublings=7):
        super().__init__()
        widths = [max(least, width >> max(0, level - 3)) for level in range(doublings + 1)]
        self.colors = nn.ModuleList(nn.Conv2d(3, b, 1) for b in widths[1:])
        self.stages = nn.ModuleList(
            nn.ModuleList([nn.Conv2d(b, b, 3, padding=1), nn.Conv2d(b, a, 3, padding=1)])
            for a, b in zip(widths, widths[1:]))
        self.leave = nn.Linear(width * 16, 1)

    def forward(self, x, doublings):
        x = F.leaky_relu(self.colors[doublings - 1](x), 0.2)
        for stage in reversed(self.stages[:doublings]):
            for conv in stage:
                x = F.leaky_relu(conv(x), 0.2)
            x = F.avg_pool2d(x, 2)
        return self.leave(x.flatten(1))


class ServedLayer(nn.Module):
    """A decoder layer whose attention the server does, for each request apart."""

    def __init__(self, width, heads, kv_heads, inner):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv = nn.Linear(width, width // heads * (heads + 2 * kv_heads), bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 2 * inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def feed(self, x):
        inner, gate = self.up(self.norm2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * inner)


class BeamLayer(nn.Module):
    """A decoder layer with attention to what was said and to what is translated."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.ask, self.kv = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.tell = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def source(self, encoded):
        return tuple(split_heads(part, self.heads) for part in self.kv(encoded).chunk(2, -1))

    def forward(self, x, past, source):
        """Returns the output and the grown past; `source` is what source() made."""
        parts = self.qkv(self.norms[0](x)).chunk(3, -1)
        q, k, v = (split_heads(part, self.heads) for part in parts)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        x = x + self.out(attend(q, k, v))
        x = x + self.tell(attend(split_heads(self.ask(self.norms[1](x)), self.heads), *source))
        return x + self.down(F.gelu(self.up(self.norms[2](x)))), (k, v)


class Translator(nn.Module):
    """An encoder and a decoder that beam search drives."""

    def __init__(self, width, heads, layers, vocabulary=48000):
        super().__init__()
        self.encoder = Encoder(width, heads, layers, vocabulary)
        self.layers = nn.ModuleList(BeamLayer(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def step(self, ids, past, sources):
        x, grown = self.encoder.words(ids), []
        for layer, kept, source in zip(self.layers, past, sources):
            x, kept = layer(x, kept, source)
            grown.append(kept)
        return self.head(self.norm(x[:, -1])), grown
