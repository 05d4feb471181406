"""The work of a layer, in PyTorch: plain products, or DeepSeek-V3's proportions.

Attention comes before the tokens go to their experts, the experts before they come back. All
tensors that a lane hands to the other are made once; what lives within a step is PyTorch's.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch.nn import functional

HIDDEN = 7168


class Buffers(NamedTuple):
    """The buffers between the lanes, for each batch: rows of HIDDEN, sorted by the rank that they
    go to or came from."""

    send: list[Any]
    received: list[Any]
    back: list[Any]
    home: list[Any]


def _weights(generator: Any, *shape: int) -> Any:
    """Returns random weights that keep the norm of their input."""
    device = generator.device
    weights = torch.randn(*shape, generator=generator, device=device, dtype=torch.bfloat16)
    return weights.mul_(1 / math.sqrt(shape[-2]))


class Products:
    """Three plain products: 7168 x 7168 before, 7168 x 4096 and 4096 x 7168 after."""

    INNER = 4096

    def __init__(self, tokens: int, layers: int, generator: Any) -> None:
        self.first = [_weights(generator, HIDDEN, HIDDEN) for _ in range(layers)]
        self.up = [_weights(generator, HIDDEN, self.INNER) for _ in range(layers)]
        self.down = [_weights(generator, self.INNER, HIDDEN) for _ in range(layers)]
        self.start = [_rows(generator, tokens) for _ in range(2)]
        self.inner = self.start[0].new_empty(tokens, self.INNER)

    @staticmethod
    def rows(tokens: int, world: int) -> int:
        """Returns the rows that a batch sends: every token once."""
        return tokens

    @staticmethod
    def bytes(tokens: int, layers: int, experts: int, world: int, streams: int) -> int:
        """Returns the device memory needed besides the buffers."""
        inner = Products.INNER
        return 2 * (layers * HIDDEN * (HIDDEN + 2 * inner) + tokens * (2 * HIDDEN + inner))

    def attention(self, layer: int, batch: int, buffers: Buffers) -> None:
        tokens = self.start[batch] if layer == 0 else buffers.home[batch]
        torch.mm(tokens, self.first[layer], out=buffers.send[batch])

    def experts(self, layer: int, batch: int, buffers: Buffers) -> None:
        torch.mm(buffers.received[batch], self.up[layer], out=self.inner)
        torch.mm(self.inner, self.down[layer], out=buffers.back[batch])

    def result(self, batch: int, buffers: Buffers) -> Any:
        return buffers.home[batch]


class Experts:
    """DeepSeek-V3's layer, scaled: its attention (latent projections, 128 heads of 128, without the
    rotary part), its shared expert, and experts of 7168 x 2048, 8 for each token. Fewer experts
    than the real layer has, as one GPU of many would hold. The router is a perfect one: a token
    goes to half of the GPUs (1 of 2), and each expert has the same number of tokens."""

    HEADS, HEAD = 128, 128
    Q_RANK, KV_RANK, INNER, TOP = 1536, 512, 2048, 8
    SEQUENCE = 2048

    def __init__(
        self, tokens: int, layers: int, experts: int, rank: int, world: int, generator: Any
    ) -> None:
        heads = self.HEADS * self.HEAD
        self.tokens, self.copies = tokens, self._copies(world)
        shapes = {
            "q_down": (HIDDEN, self.Q_RANK),
            "q_up": (self.Q_RANK, heads),
            "kv_down": (HIDDEN, self.KV_RANK),
            "kv_up": (self.KV_RANK, 2 * heads),
            "out": (heads, HIDDEN),
            "shared_in": (HIDDEN, 2 * self.INNER),
            "shared_out": (self.INNER, HIDDEN),
            "experts_in": (experts, HIDDEN, 2 * self.INNER),
            "experts_out": (experts, self.INNER, HIDDEN),
        }
        self.weights = [
            {name: _weights(generator, *shape) for name, shape in shapes.items()}
            for _ in range(layers)
        ]
        self.start = [_rows(generator, tokens) for _ in range(2)]
        self.state = [torch.empty_like(rows) for rows in self.start]
        self.rows_here = self.rows(tokens, world)
        self.wide = self.start[0].new_empty(tokens * self.TOP, HIDDEN)
        self._route(rank, world, experts)

    @staticmethod
    def _copies(world: int) -> int:
        return max(1, world // 2)

    @classmethod
    def rows(cls, tokens: int, world: int) -> int:
        """Returns the rows that a batch sends: a token once to each GPU with its experts."""
        return tokens * cls._copies(world)

    @classmethod
    def bytes(cls, tokens: int, layers: int, experts: int, world: int, streams: int) -> int:
        """Returns the device memory needed besides the buffers; PyTorch caches it by stream."""
        heads = cls.HEADS * cls.HEAD
        attention = HIDDEN * (cls.Q_RANK + cls.KV_RANK + heads) + heads * (
            cls.Q_RANK + 2 * cls.KV_RANK
        )
        weights = layers * (attention + (experts + 1) * 3 * HIDDEN * cls.INNER)
        routed = tokens * cls.TOP * (3 * cls.INNER + HIDDEN)
        dense = tokens * (5 * heads + 4 * HIDDEN)
        kept = tokens * HIDDEN * (4 + cls.TOP)
        return 2 * (weights + kept + streams * (routed + dense))

    def _route(self, rank: int, world: int, experts: int) -> None:
        """Decides which rows go where, the same each time."""
        device = self.start[0].device
        tokens = torch.arange(self.tokens)
        goes = torch.stack([(tokens + copy) % world for copy in range(self.copies)], dim=1)
        flat = goes.flatten()  # By token, then by copy.
        order = torch.argsort(flat, stable=True)
        self.to_send = (order // self.copies).to(device)
        self.from_sent = torch.argsort(order).to(device)
        each = self.TOP // self.copies  # Experts of a row on this GPU.
        random = torch.Generator().manual_seed(rank)
        chosen = torch.randperm(self.rows_here * each, generator=random) % experts
        by_expert = torch.argsort(chosen, stable=True)
        self.expand = (by_expert // each).to(device)
        self.collapse = torch.argsort(by_expert).to(device)
        self.each = each
        counts = torch.bincount(chosen, minlength=experts)
        self.ends = torch.cumsum(counts, 0).to(device=device, dtype=torch.int32)

    def attention(self, layer: int, batch: int, buffers: Buffers) -> None:
        weights, state = self.weights[layer], self.state[batch]
        tokens = self.start[batch] if layer == 0 else self._merged(batch, buffers)
        normal = functional.rms_norm(tokens, (HIDDEN,))
        torch.add(tokens, self._attention(normal, weights), out=state)
        normal = functional.rms_norm(state, (HIDDEN,))
        gate, up = (normal @ weights["shared_in"]).chunk(2, dim=1)
        state.add_(functional.silu(gate).mul_(up) @ weights["shared_out"])
        torch.index_select(normal, 0, self.to_send, out=buffers.send[batch])

    def _attention(self, tokens: Any, weights: dict[str, Any]) -> Any:
        length = math.gcd(self.tokens, self.SEQUENCE)
        shape = (self.tokens // length, length, self.HEADS, self.HEAD)
        query = (tokens @ weights["q_down"]) @ weights["q_up"]
        both = (tokens @ weights["kv_down"]) @ weights["kv_up"]
        key, value = both.view(*shape[:3], 2 * self.HEAD).split(self.HEAD, dim=3)
        found = functional.scaled_dot_product_attention(
            query.view(shape).transpose(1, 2),
            key.transpose(1, 2),
            value.transpose(1, 2),
            is_causal=True,
        )
        heads = self.HEADS * self.HEAD
        return found.transpose(1, 2).reshape(self.tokens, heads) @ weights["out"]

    def _merged(self, batch: int, buffers: Buffers) -> Any:
        """Returns the tokens merged with their experts' results."""
        copies = buffers.home[batch].index_select(0, self.from_sent)
        summed = copies.view(self.tokens, self.copies, HIDDEN).sum(1)
        return summed.mul_(1 / self.TOP).add_(self.state[batch])

    def experts(self, layer: int, batch: int, buffers: Buffers) -> None:
        weights = self.weights[layer]
        torch.index_select(buffers.received[batch], 0, self.expand, out=self.wide)
        gate, up = _grouped(self.wide, weights["experts_in"], self.ends).chunk(2, dim=1)
        found = _grouped(functional.silu(gate).mul_(up), weights["experts_out"], self.ends)
        torch.index_select(found, 0, self.collapse, out=self.wide)
        by_row = self.wide.view(self.rows_here, self.each, HIDDEN)
        torch.sum(by_row, 1, out=buffers.back[batch])

    def result(self, batch: int, buffers: Buffers) -> Any:
        return self._merged(batch, buffers)


def _rows(generator: Any, count: int) -> Any:
    return torch.randn(
        count, HIDDEN, generator=generator, device=generator.device, dtype=torch.bfloat16
    )


def _grouped(rows: Any, weights: Any, ends: Any) -> Any:
    """Multiplies the rows up to each end with the weights of the same index."""
    product = getattr(functional, "grouped_mm", None) or torch._grouped_mm
    return product(rows, weights, offs=ends)
