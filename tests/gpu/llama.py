"""A transformer of Llama's shape with random weights, which serving_figures.py and counts.py run.

It uses PyTorch's products and attention and fixed buffers, so that every part can be captured as a
graph. Decode's batch and the prompt have separate caches; a server would copy one into the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class Shape:
    """The shape of Llama-3-8B, and of the batch."""

    layers: int = 32
    hidden: int = 4096
    heads: int = 32
    kv_heads: int = 8
    ffn: int = 14336
    vocabulary: int = 128256
    batch: int = 32  # Sequences that decode.
    context: int = 2048  # Tokens of each, including that of the step.
    prompt: int = 4096

    @property
    def head(self) -> int:
        return self.hidden // self.heads


@dataclass(frozen=True)
class Layer:
    before_attention: Any  # Weights of the norms.
    before_ffn: Any
    qkv: Any
    out: Any
    up: Any  # Gate and up in one.
    down: Any


class Model:
    """The weights."""

    def __init__(self, shape: Shape, device: str, dtype: Any, seed: int = 1) -> None:
        self.shape, self.device, self.dtype = shape, device, dtype
        source = torch.Generator(device=device).manual_seed(seed)

        def weight(rows: int, columns: int) -> Any:
            made = torch.empty(rows, columns, device=device, dtype=dtype)
            return made.normal_(0, columns**-0.5, generator=source)

        def norm() -> Any:
            return torch.ones(shape.hidden, device=device, dtype=dtype)

        all_heads = shape.heads + 2 * shape.kv_heads
        self.embedding = weight(shape.vocabulary, shape.hidden)
        self.layers = [
            Layer(
                norm(),
                norm(),
                weight(all_heads * shape.head, shape.hidden),
                weight(shape.hidden, shape.hidden),
                weight(2 * shape.ffn, shape.hidden),
                weight(shape.hidden, shape.ffn),
            )
            for _ in range(shape.layers)
        ]
        self.norm = norm()
        self.to_vocabulary = weight(shape.vocabulary, shape.hidden)
        # Rotary embedding, each head's two halves against each other.
        half = shape.head // 2
        angles = torch.outer(
            torch.arange(max(shape.context, shape.prompt), dtype=torch.float64),
            500000.0 ** (-torch.arange(half, dtype=torch.float64) / half),
        )
        self.cosine = angles.cos()[:, None, None, :].to(device, dtype)
        sine = angles.sin()[:, None, None, :]
        self.sine = torch.cat((-sine, sine), dim=2).to(device, dtype)

    def query_key_value(self, layer: Layer, x: Any, positions: slice) -> tuple[Any, Any, Any]:
        """Of tokens at these positions, or of sequences' tokens at one: tokens, heads, head."""
        shape = self.shape
        normed = F.rms_norm(x, (shape.hidden,), layer.before_attention, 1e-5)
        projected = F.linear(normed, layer.qkv).unflatten(1, (-1, shape.head))
        rotating = shape.heads + shape.kv_heads
        halves = projected[:, :rotating].unflatten(2, (2, -1))
        turned = halves.flip(2).mul_(self.sine[positions])
        torch.addcmul(turned, halves, self.cosine[positions], out=halves)  # In place.
        query, key, value = projected.split((shape.heads, shape.kv_heads, shape.kv_heads), dim=1)
        return query, key, value

    def add_attention(self, layer: Layer, x: Any, attended: Any) -> None:
        x.addmm_(attended, layer.out.t())

    def add_ffn(self, layer: Layer, x: Any) -> None:
        normed = F.rms_norm(x, (self.shape.hidden,), layer.before_ffn, 1e-5)
        gate, up = F.linear(normed, layer.up).chunk(2, dim=1)
        x.addmm_(F.silu(gate).mul_(up), layer.down.t())

    def logits(self, x: Any) -> Any:
        return F.linear(F.rms_norm(x, (self.shape.hidden,), self.norm, 1e-5), self.to_vocabulary)


class Decode:
    """A batch of sequences whose caches are full but for the token of the step."""

    def __init__(self, model: Model, seed: int = 2) -> None:
        shape = model.shape
        self.model = model
        source = torch.Generator(device=model.device).manual_seed(seed)
        size = (shape.layers, 2, shape.batch, shape.kv_heads, shape.context, shape.head)
        self.cache = torch.empty(size, device=model.device, dtype=model.dtype)
        self.cache.normal_(generator=source)
        self.tokens = torch.zeros(shape.batch, device=model.device, dtype=torch.int64)

    def step(self) -> None:
        """Replaces each sequence's last token by the next."""
        self.tokens.copy_(self.logits().argmax(dim=1))

    def logits(self) -> Any:
        model, shape = self.model, self.model.shape
        last = shape.context - 1
        x = model.embedding[self.tokens]
        for layer, (keys, values) in zip(model.layers, self.cache):
            query, key, value = model.query_key_value(layer, x, slice(last, last + 1))
            keys[:, :, last].copy_(key)
            values[:, :, last].copy_(value)
            attended = F.scaled_dot_product_attention(
                query[:, :, None], keys, values, enable_gqa=True
            )
            model.add_attention(layer, x, attended.reshape(shape.batch, shape.hidden))
            model.add_ffn(layer, x)
        return model.logits(x)


class Prefill:
    """One prompt at a time, in pieces of layers or in chunks of tokens.

    A layer is five pieces: attention, and the FFN of each quarter of the tokens. Between pieces all
    that lives is in buffers that stay, so that the SMs can change there.
    """

    PARTS = 4  # Of the FFN.
    KINDS = 1 + PARTS

    def __init__(self, model: Model) -> None:
        shape = model.shape
        self.model = model
        self.tokens = torch.zeros(shape.prompt, device=model.device, dtype=torch.int64)
        self.x = torch.empty(shape.prompt, shape.hidden, device=model.device, dtype=model.dtype)
        self.cache = self.x.new_zeros(shape.layers, 2, shape.kv_heads, shape.prompt, shape.head)
        self.first_token = self.tokens.new_zeros(1)

    @property
    def pieces(self) -> int:
        return self.KINDS * self.model.shape.layers

    def piece(self, number: int) -> Callable[[], None]:
        """Returns the work of a piece."""
        index, kind = divmod(number, self.KINDS)
        tokens = self.model.shape.prompt

        def attention() -> None:
            if index == 0:
                self.x.copy_(self.model.embedding[self.tokens])
            self._attention(index, slice(0, tokens))

        def ffn() -> None:
            part = slice((kind - 1) * tokens // self.PARTS, kind * tokens // self.PARTS)
            self.model.add_ffn(self.model.layers[index], self.x[part])
            if number + 1 == self.pieces:
                self._answer()

        return ffn if kind else attention

    def chunk(self, number: int, tokens: int) -> Callable[[], None]:
        """Returns the work of a chunk of tokens in all layers. The chunk ignores earlier chunks,
        which is faster than real chunked prefill."""
        chunk = slice(number * tokens, (number + 1) * tokens)

        def work() -> None:
            x = self.x[chunk]
            x.copy_(self.model.embedding[self.tokens[chunk]])
            for index, layer in enumerate(self.model.layers):
                self._attention(index, chunk)
                self.model.add_ffn(layer, x)
            if chunk.stop == self.model.shape.prompt:
                self._answer()

        return work

    def logits(self) -> Any:
        """Of the last token, once all layers are done."""
        return self.model.logits(self.x[-1:])

    def _answer(self) -> None:
        self.first_token.copy_(self.logits().argmax(dim=1))

    def _attention(self, index: int, chunk: slice) -> None:
        layer, x = self.model.layers[index], self.x[chunk]
        query, key, value = self.model.query_key_value(layer, x, chunk)
        keys, values = self.cache[index]
        keys[:, chunk].copy_(key.transpose(0, 1))
        values[:, chunk].copy_(value.transpose(0, 1))
        attended = F.scaled_dot_product_attention(
            query.transpose(0, 1)[None],
            keys[None, :, chunk],
            values[None, :, chunk],
            is_causal=True,
            enable_gqa=True,
        )
        self.model.add_attention(layer, x, attended[0].transpose(0, 1).flatten(1))


def disagreement() -> float:
    """How far a small model's decode step after a prompt in pieces is from plain attention over all
    tokens in float32: the largest difference of a logit, in standard deviations of the logits."""
    shape = Shape(2, 512, 8, 2, 1024, 1000, batch=2, context=129, prompt=128)
    model = Model(shape, "cuda", torch.bfloat16)
    source = torch.Generator().manual_seed(3)
    tokens = torch.randint(shape.vocabulary, (shape.prompt + 1,), generator=source).cuda()
    expected = plain_logits(model, tokens)
    prefill, decode = Prefill(model), Decode(model)
    prefill.tokens.copy_(tokens[:-1])
    for number in range(prefill.pieces):
        prefill.piece(number)()
    decode.cache[..., :-1, :] = prefill.cache[:, :, None]
    decode.tokens.fill_(int(tokens[-1]))
    found = torch.cat((prefill.logits(), decode.logits()))
    wanted = torch.cat((expected[-2:-1], *[expected[-1:]] * shape.batch))
    return float((found.float() - wanted).abs().max() / wanted.std())


def plain_logits(model: Model, tokens: Any) -> Any:
    """Returns every token's logits, in float32 by a simple implementation."""
    shape = model.shape
    x = model.embedding[tokens].float()
    length = len(tokens)
    mask = torch.full((length, length), float("-inf"), device=x.device).triu(1)
    for layer in model.layers:
        normed = F.rms_norm(x, (shape.hidden,), layer.before_attention.float(), 1e-5)
        heads = (normed @ layer.qkv.float().t()).unflatten(1, (-1, shape.head)).transpose(0, 1)
        query, key, value = heads.split((shape.heads, shape.kv_heads, shape.kv_heads))
        query, key = plain_rotation(query), plain_rotation(key)
        key, value = (
            each.repeat_interleave(shape.heads // shape.kv_heads, dim=0) for each in (key, value)
        )
        weights = (query @ key.transpose(1, 2) * shape.head**-0.5 + mask).softmax(dim=-1)
        x = x + (weights @ value).transpose(0, 1).flatten(1) @ layer.out.float().t()
        normed = F.rms_norm(x, (shape.hidden,), layer.before_ffn.float(), 1e-5)
        gate, up = (normed @ layer.up.float().t()).chunk(2, dim=1)
        x = x + (F.silu(gate) * up) @ layer.down.float().t()
    normed = F.rms_norm(x, (shape.hidden,), model.norm.float(), 1e-5)
    return normed @ model.to_vocabulary.float().t()


def plain_rotation(x: Any) -> Any:
    """Applies rotary embedding by complex numbers: heads, tokens, head."""
    half = x.shape[2] // 2
    frequencies = 500000.0 ** (-torch.arange(half, dtype=torch.float64, device=x.device) / half)
    turns = torch.outer(torch.arange(x.shape[1], dtype=torch.float64, device=x.device), frequencies)
    turned = torch.complex(x[..., :half].double(), x[..., half:].double())
    turned = turned * torch.polar(torch.ones_like(turns), turns)
    return torch.cat((turned.real, turned.imag), dim=2).float()
