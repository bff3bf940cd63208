# SPDX-License-Identifier: Apache-2.0
"""Programs that the allocation policy was not tuned on: what record.py records.

Each is a function of a Run and leaves nothing behind. They are of the kinds that workloads.py has
(training at changing shapes, serving with a growing KV cache, several models, recompute) and share
no network and no loop with it. They need torch alone.
"""

import dataclasses
import math
import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import unseen_models as models


@dataclasses.dataclass
class Run:
    """Where a program runs and how long: `steps` replaces its own number, `shrink` divides widths
    and sizes, for a try on a small device."""

    seed: int = 0
    device: str = "cuda"
    steps: int = 0
    shrink: int = 1

    def __post_init__(self):
        self.rng = random.Random(self.seed)
        torch.manual_seed(self.seed)

    def count(self, steps):
        return range(self.steps or steps)

    def size(self, n):
        return max(1, n // self.shrink)

    def make(self, kind, *arguments, **named):
        with torch.device(self.device):
            return kind(*arguments, **named)

    def mixed(self):
        return torch.autocast(torch.device(self.device).type, torch.bfloat16)

    def tensor(self, values):
        return torch.tensor(values, device=self.device)

    def normal(self, *shape, **named):
        return torch.randn(*shape, device=self.device, **named)

    def words(self, vocabulary, *shape):
        return torch.randint(0, vocabulary, shape, device=self.device)


def diffusion_train(run):
    """A UNet on latents of changing side and aspect, an average of its weights kept."""
    model = run.make(models.UNet, [run.size(n) // 64 * 64 for n in (256, 384, 640, 896)])
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in run.count(16):
        height, width = (8 * run.rng.randrange(5, 17) for _ in range(2))
        batch = max(1, run.size(run.rng.randrange(50_000, 130_000)) // (height * width))
        clean, noise = (run.normal(batch, 4, height, width) for _ in range(2))
        when = torch.rand(batch, device=run.device)
        level = when[:, None, None, None]
        with run.mixed():
            told = model(clean.lerp(noise, level), when * 1000)
            loss = F.mse_loss(told.float(), noise)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        average.update_parameters(model)


def text_batch(run, tokens):
    """Sentences of one bucket, a multiple of 32 long at most, as many as fit in `tokens`."""
    bucket = 32 * run.rng.choice([1, 2, 2, 3, 4, 5, 6, 8, 10, 12, 16])
    batch = max(2, run.size(tokens) // bucket)
    lengths = [run.rng.randint(max(1, bucket - 31), bucket) for _ in range(batch)]
    return run.words(30522, batch, max(lengths)), run.tensor(lengths)


def encoder_tune(run):
    """A text classifier fine-tuned: buckets of lengths, gradients of 4 batches added, evaluated."""
    model = nn.ModuleDict({"text": run.make(models.Encoder, run.size(1024), 16, 14),
                           "head": run.make(nn.Linear, run.size(1024), 20)})
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, foreach=False)

    def scores(tokens):
        ids, lengths = text_batch(run, tokens)
        with run.mixed():
            return model["head"](model["text"](ids, lengths)[:, 0]).float()

    for step in run.count(9):
        for _ in range(4):
            told = scores(run.rng.choice([3072, 4096, 6144]))
            loss = F.cross_entropy(told, run.words(20, len(told))) / 4
            loss.backward()
            del told, loss
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 3 == 2:
            model.eval()
            with torch.no_grad():
                kept = [scores(16384).argmax(-1) for _ in range(3)]
            model.train()
            del kept


def moe_train(run):
    """A decoder with 8 experts a layer: how many tokens each gets changes by layer and step."""
    experts, layers, width = 8, 6, run.size(1280)
    model = run.make(models.MoeDecoder, width, 20, run.size(3584), experts, layers).bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in run.count(24):
        batch, length = run.rng.randrange(2, 7), run.rng.randrange(200, 1400)
        ids = run.words(32000, batch, run.size(length) + 1)
        skews = run.normal(layers, experts) * 1.2
        told = model(ids[:, :-1], skews)
        loss = F.cross_entropy(told.flatten(0, 1).float(), ids[:, 1:].flatten())
        del told
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


SAMPLES = 160  # between two frames of a spectrum, at 16 kHz


def speech_batch(run, seconds):
    """Recordings of 2 to 35 s, padded to the longest; the spectra and how many frames each has."""
    shortest, longest = run.rng.choice([(2, 6), (4, 12), (10, 20), (15, 35), (2, 35)])
    batch = max(2, run.size(int(seconds / longest)))
    samples = [int(16000 * run.rng.uniform(shortest, longest)) for _ in range(batch)]
    wave = run.normal(batch, max(samples))
    window = torch.hann_window(400, device=run.device)
    power = torch.stft(wave, 512, SAMPLES, 400, window, return_complex=True).abs().square()
    bands = torch.rand(80, power.shape[1], device=run.device)
    spectra = (bands @ power).clamp_min(1e-6).log()
    return spectra, run.tensor([1 + n // SAMPLES for n in samples])


def speech_train(run):
    """Speech to letters: recordings of very different lengths, half of the blocks recomputed."""
    model = run.make(models.SpeechEncoder, run.size(640), 8, 10)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in run.count(18):
        with torch.no_grad():
            spectra, frames = speech_batch(run, run.rng.uniform(250, 420))
        with run.mixed():
            told = model(spectra, frames)
        places = model.places(frames)
        letters = (places // 4).clamp_min(1)
        wanted = torch.randint(1, 128, (len(frames), int(letters.max())), device=run.device)
        odds = told.float().log_softmax(-1).transpose(0, 1)
        loss = F.ctc_loss(odds, wanted, places, letters, zero_infinity=True)
        del spectra, told, odds
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def gan_train(run):
    """Two networks in turn, images of 32 to 256 pixels a side, every other time with a penalty
    that takes the gradient of a gradient."""
    painter = run.make(models.Generator, run.size(512), run.size(64), 6)
    critic = run.make(models.Discriminator, run.size(512), run.size(64), 6)
    average = AveragedModel(painter, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    optimizers = [torch.optim.Adam(m.parameters(), lr=1e-3, betas=(0.0, 0.99), foreach=False)
                  for m in (painter, critic)]
    for step in run.count(64):
        doublings = run.rng.choice([3, 4, 4, 5, 5, 6, 6])
        side = 4 << doublings
        batch = max(2, run.size(run.rng.randrange(300_000, 600_000)) // (side * side))
        batch = min(batch, run.rng.randrange(48, 160))
        for index in (1, 0):  # the critic first
            z = run.normal(batch, 256)
            if index:
                with torch.no_grad():
                    made = painter(z, doublings)
                real = run.normal(batch, 3, side, side).requires_grad_(step % 2 == 0)
                liked = critic(real, doublings)
                loss = F.softplus(critic(made, doublings)).mean() + F.softplus(-liked).mean()
                if step % 2 == 0:
                    slope, = torch.autograd.grad(liked.sum(), real, create_graph=True)
                    loss = loss + 5.0 * slope.square().sum((1, 2, 3)).mean()
                    del slope
                del made, real, liked
            else:
                loss = F.softplus(-critic(painter(z, doublings), doublings)).mean()
            loss.backward()
            optimizers[index].step()
            del loss
            for optimizer in optimizers:
                optimizer.zero_grad(set_to_none=True)
        average.update_parameters(painter)


class Request:
    """A prompt being read or an answer being written, and its KV of each layer."""

    def __init__(self, prompt, wanted, layers):
        self.prompt, self.wanted = prompt, wanted
        self.kv, self.used, self.room = [None] * layers, 0, 0


class Server:
    """Continuous batching: each step reads up to a piece of one prompt and writes one token of
    every running answer. KV is one tensor a request and layer, grown by 128 tokens at a time."""

    GRAIN, PIECE, HEADS, KV_HEADS, LAYERS = 128, 1024, 16, 16, 8

    def __init__(self, run):
        self.run, self.width = run, run.size(2048)
        with torch.device(run.device):
            self.words = nn.Embedding(32000, self.width, dtype=torch.bfloat16)
            self.layers = [models.ServedLayer(self.width, self.HEADS, self.KV_HEADS,
                                              run.size(5632)).bfloat16()
                           for _ in range(self.LAYERS)]
            self.head = nn.Linear(self.width, 32000, bias=False, dtype=torch.bfloat16)

    def hold(self, request, layer, k, v):
        """Appends k and v; returns all keys and values of the request in that layer."""
        total = request.used + k.shape[1]
        room = -(-total // self.GRAIN) * self.GRAIN
        old = request.kv[layer]
        if old is None or old.shape[2] < total:
            grown = k.new_empty(2, self.KV_HEADS, room, k.shape[2])
            if old is not None:
                grown[:, :, :request.used] = old[:, :, :request.used]
            request.kv[layer] = old = grown
        old[0, :, request.used:total], old[1, :, request.used:total] = k, v
        return old[0, :, :total], old[1, :, :total]

    def attention(self, layer, qkv, work):
        out = torch.empty_like(qkv[:, :self.width])
        at = 0
        for request, count in work:
            mine = qkv[at:at + count].unflatten(1, (-1, self.width // self.HEADS))
            q, k, v = mine.transpose(0, 1).split([self.HEADS, self.KV_HEADS, self.KV_HEADS])
            k, v = self.hold(request, layer, k, v)
            scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[2])
            if count > 1:
                ahead = torch.ones(count, k.shape[1], dtype=torch.bool, device=q.device)
                scores.masked_fill_(ahead.triu_(request.used + 1), -1e4)
            out[at:at + count] = (scores.softmax(-1) @ v).transpose(0, 1).flatten(1)
            at += count
        return out

    def step(self, work):
        """`work`: requests and how many tokens of each are read."""
        x = self.words(self.run.words(32000, sum(count for _, count in work)))
        for index, layer in enumerate(self.layers):
            x = x + layer.out(self.attention(index, layer.qkv(layer.norm1(x)), work))
            x = layer.feed(x)
        ends = torch.tensor([count for _, count in work]).cumsum(0).to(x.device) - 1
        told = self.head(x[ends]).argmax(-1)
        for request, count in work:
            request.used += count
        return told


def batch_decode(run):
    """Prompts of 100 to 8,000 tokens join and leave; when their KV outgrows its share of memory
    the one that came last is dropped and read again later."""
    server, waiting, running = Server(run), [], []
    share = run.size(48_000)  # tokens
    with torch.inference_mode():
        for _ in run.count(110):
            if run.rng.random() < 0.6 or not running:
                prompt = run.size(int(100 * 80 ** run.rng.random()))
                waiting.append(Request(prompt, run.rng.randrange(4, 90), Server.LAYERS))
            reading = next((r for r in running if r.used < r.prompt), None)
            if not reading and waiting and len(running) < 20:
                reading = waiting.pop(0)
                running.append(reading)
            work = [(r, 1) for r in running if r.used >= r.prompt]
            if reading:
                work.append((reading, min(Server.PIECE, reading.prompt - reading.used)))
            server.step(work)
            running = [r for r in running if r.used < r.prompt + r.wanted]
            while sum(r.used for r in running) > share:
                dropped = running.pop()
                waiting.append(Request(dropped.used, dropped.wanted, Server.LAYERS))
            del work, reading


def translate(run, model):
    """Beam search: every step copies the caches of the beams that go on."""
    batch, beams = run.rng.randrange(1, 9), run.rng.choice([4, 5, 6])
    longest = run.rng.randrange(12, 320)
    lengths = [run.rng.randint(longest // 2, longest) for _ in range(batch)]
    encoded = model.encoder(run.words(48000, batch, longest), run.tensor(lengths))
    sources = [layer.source(encoded.repeat_interleave(beams, 0)) for layer in model.layers]
    past, ids = [None] * len(model.layers), run.words(48000, batch * beams, 1)
    total = torch.zeros(batch, beams, device=run.device)
    first = torch.arange(batch, device=run.device)[:, None] * beams
    for _ in range(run.rng.randrange(5, 16)):
        told, past = model.step(ids, past, sources)
        total = total[:, :, None] + told.float().log_softmax(-1).unflatten(0, (batch, beams))
        total, best = total.flatten(1).topk(beams)
        goes_on = (first + best // told.shape[-1]).flatten()
        ids = (best % told.shape[-1]).view(-1, 1)
        past = [tuple(part.index_select(0, goes_on) for part in kept) for kept in past]


def paint(run, model):
    """A picture from noise, with and without its text in one batch."""
    height, width = (8 * run.rng.randrange(6, 17) for _ in range(2))
    batch, steps = run.rng.randrange(1, 7), run.rng.randrange(3, 8)
    x = run.normal(batch, 4, height, width, dtype=torch.bfloat16)
    for step in range(steps):
        when = torch.full((2 * batch,), 1000.0 * (steps - step) / steps, device=run.device)
        with_text, without = model(torch.cat([x, x]), when).chunk(2)
        x = x - (without + 5.0 * (with_text - without)) / steps


def embed(run, model):
    """A batch of texts to vectors, the long ones cut."""
    kept = []
    for _ in range(run.rng.randrange(1, 4)):
        ids, lengths = text_batch(run, run.rng.randrange(4096, 40960))
        kept.append(F.normalize(model(ids, lengths)[:, 0].float(), dim=-1))


def pipeline_serve(run):
    """Translators, a painter and text encoders, loaded in full precision, cast, served and, when a
    third one is asked for, the one unused for longest dropped."""
    widths = [run.size(n) // 64 * 64 for n in (320, 512, 768, 1152)]
    known = {
        "german": (translate, lambda: models.Translator(run.size(1024), 16, 10)),
        "french": (translate, lambda: models.Translator(run.size(1536), 24, 8)),
        "painter": (paint, lambda: models.UNet(widths)),
        "search": (embed, lambda: models.Encoder(run.size(1280), 20, 20)),
        "rank": (embed, lambda: models.Encoder(run.size(1536), 24, 16)),
    }
    live = {}  # the one used last at the end
    with torch.inference_mode():
        for _ in run.count(24):
            name = run.rng.choice(["german", "french", "painter", "painter", "search", "rank"])
            serve, make = known[name]
            if name not in live and len(live) == 2:
                del live[next(iter(live))]
            model = live.pop(name, None) or run.make(make).bfloat16().eval()
            live[name] = model
            serve(run, model)
            del model


PROGRAMS = {program.__name__: program for program in (
    diffusion_train, encoder_tune, moe_train, speech_train, gan_train, batch_decode,
    pipeline_serve)}
