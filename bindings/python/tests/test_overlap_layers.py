"""What the layers of examples/python/two_batch_overlap.py compute: on a CPU, and smaller."""

from __future__ import annotations

from typing import Any

import pytest
from two_batches import module, once  # type: ignore[import-not-found]

pytestmark = once


@pytest.fixture
def layers(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("torch")
    found = module("layers")
    monkeypatch.setattr(found, "HIDDEN", 64)
    monkeypatch.setattr(found.Products, "INNER", 32)
    small = {"HEADS": 2, "HEAD": 16, "Q_RANK": 32, "KV_RANK": 16, "INNER": 32, "SEQUENCE": 32}
    for name, value in small.items():
        monkeypatch.setattr(found.Experts, name, value)
    return found


def buffers_of(layers: Any, rows: int) -> Any:
    torch = layers.torch
    made = [
        [torch.zeros(rows, layers.HIDDEN, dtype=torch.bfloat16) for _ in range(2)] for _ in range(4)
    ]
    return layers.Buffers(*made)


def travel(sources: list[Any], targets: list[Any]) -> None:
    """Part p of rank r's source becomes part r of rank p's target."""
    world = len(sources)
    for r, source in enumerate(sources):
        for p, part in enumerate(source.chunk(world)):
            targets[p].chunk(world)[r].copy_(part)


@pytest.mark.parametrize("world", [2, 4, 8])
def test_each_token_comes_back_from_its_experts(layers: Any, world: int) -> None:
    torch = layers.torch
    tokens, experts = 64, 4
    ranks_of = [
        layers.Experts(tokens, 2, experts, rank, world, torch.Generator().manual_seed(rank))
        for rank in range(world)
    ]
    rows = layers.Experts.rows(tokens, world)
    assert rows == tokens * max(1, world // 2)
    buffers = [buffers_of(layers, rows) for _ in range(world)]
    for one, mine in zip(ranks_of, buffers):
        one.attention(0, 1, mine)
    travel([mine.send[1] for mine in buffers], [mine.received[1] for mine in buffers])
    for one, mine in zip(ranks_of, buffers):
        one.experts(0, 1, mine)
        # Every expert has as many rows, and a row has so many experts here.
        counts = torch.diff(one.ends, prepend=torch.zeros(1, dtype=torch.int32))
        assert counts.tolist() == [rows * one.each // experts] * experts
        weights = one.weights[0]
        for row in (0, 1, rows // 2, rows - 1):
            expected = torch.zeros(layers.HIDDEN)
            for slot in range(row * one.each, (row + 1) * one.each):
                expert = int(torch.searchsorted(one.ends, one.collapse[slot], right=True))
                gate, up = (mine.received[1][row].float() @ weights["experts_in"][expert].float()
                            ).chunk(2)  # fmt: skip
                inner = layers.functional.silu(gate) * up
                expected += inner @ weights["experts_out"][expert].float()
            torch.testing.assert_close(mine.back[1][row].float(), expected, rtol=0.05, atol=0.1)
    travel([mine.back[1] for mine in buffers], [mine.home[1] for mine in buffers])
    for one, mine in zip(ranks_of, buffers):
        merged = one.result(1, mine).float()
        for token in (0, 7, tokens - 1):
            came = mine.home[1][one.to_send == token].float()
            assert len(came) == max(1, world // 2)
            expected = one.state[1][token].float() + came.sum(0) / one.TOP
            torch.testing.assert_close(merged[token], expected, rtol=0.05, atol=0.05)
        one.attention(1, 1, mine)  # The next layer goes on with that.
        assert bool(mine.send[1].isfinite().all())


def test_products(layers: Any) -> None:
    torch = layers.torch
    one = layers.Products(64, 2, torch.Generator().manual_seed(1))
    mine = buffers_of(layers, layers.Products.rows(64, 2))
    one.attention(0, 0, mine)
    torch.testing.assert_close(mine.send[0], one.start[0] @ one.first[0])
    mine.received[0].copy_(mine.send[0])
    one.experts(0, 0, mine)
    torch.testing.assert_close(mine.back[0], mine.send[0] @ one.up[0] @ one.down[0])
    mine.home[0].copy_(mine.back[0])
    one.attention(1, 0, mine)
    torch.testing.assert_close(mine.send[0], mine.back[0] @ one.first[1])
    assert 0.1 < float(mine.send[0].float().std()) < 10


@pytest.mark.parametrize("kind", ["Products", "Experts"])
def test_more_of_anything_needs_more_memory(layers: Any, kind: str) -> None:
    needed = getattr(layers, kind).bytes
    given = {"tokens": 256, "layers": 2, "experts": 4, "world": 2, "streams": 1}
    assert needed(**given) > 0
    for name in ("tokens", "layers"):
        assert needed(**{**given, name: 2 * given[name]}) > needed(**given)
    if kind == "Experts":
        assert needed(**{**given, "experts": 8}) > needed(**given)
