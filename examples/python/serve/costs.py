"""The costs of decode and prefill by SMs: measured at the start, or those of an H200."""

from __future__ import annotations

from dataclasses import dataclass, field

# A layout is the number of decode's SMs; prefill has the others. 0: prefill has all; the device's
# count: decode has all. Three layouts have no partitions.
PLAIN, PRIORITY, ONE_STREAM = -1, -2, -3


@dataclass
class Costs:
    """Costs in milliseconds.

    Attributes:
        sm_count: SMs of the device.
        shares: The share of each piece in a prompt's time; they add up to 1.
        decode_alone: A decode step by decode's SMs.
        decode_beside: The same while prefill runs, also for PLAIN and PRIORITY.
        prefill_alone: A prompt on the other SMs, by decode's SMs.
        prefill_beside: The same while decode runs step after step.
        chunks: A chunk of a prompt by its kind, see Prefill.chunk.
        prompt: Tokens of a prompt.
    """

    sm_count: int
    shares: tuple[float, ...]
    decode_alone: dict[int, float]
    decode_beside: dict[int, float]
    prefill_alone: dict[int, float]
    prefill_beside: dict[int, float]
    chunks: dict[str, float] = field(default_factory=dict)
    prompt: int = 4096

    @property
    def splits(self) -> list[int]:
        """Decode's SMs in the concurrent layouts, ascending."""
        return sorted(sms for sms in self.decode_beside if 0 < sms < self.sm_count)

    def decode(self, layout: int, beside: bool) -> float:
        table = self.decode_beside if beside else self.decode_alone
        return table.get(layout, self.decode_alone[self.sm_count])

    def prefill(self, layout: int, beside: bool) -> float:
        table = self.prefill_beside if beside else self.prefill_alone
        return table.get(layout, self.prefill_alone[0])

    def prefill_rate(self, split: int, promise: float) -> float:
        """Returns prompts per millisecond within a promise: during a step prefill has the other
        SMs, and all SMs for the rest of the promised time. Negative if the step is too slow."""
        step = self.decode(split, split < self.sm_count)
        beside = step / self.prefill(split, True) if split < self.sm_count else 0.0
        if step > promise:
            return promise - step
        return (beside + (promise - step) / self.prefill(0, False)) / promise


def in_layers(layers: int, pieces: tuple[float, ...]) -> tuple[float, ...]:
    """Returns the shares of a prompt's pieces from those of one layer."""
    return tuple(piece / sum(pieces) / layers for _ in range(layers) for piece in pieces)


# One NVIDIA H200, driver 580.159.04, PyTorch 2.11: docs/measurements/log.md. The decode step on 24,
# 32 and 48 SMs with the cuBLAS target. The shares of the pieces are estimates by their products.
H200 = Costs(
    sm_count=132,
    shares=in_layers(32, (0.31, 0.1725, 0.1725, 0.1725, 0.1725)),
    decode_alone={24: 12.2, 32: 9.2, 48: 7.8, 64: 7.3, 132: 6.77},
    decode_beside={24: 16.4, 32: 13.1, 48: 10.3, 64: 9.5, PLAIN: 58.9, PRIORITY: 22.4},
    prefill_alone={0: 106.0, 24: 125.0, 32: 129.0, 48: 142.0, 64: 161.0},
    prefill_beside={24: 147.0, 32: 158.6, 48: 184.2, 64: 229.9, PLAIN: 115.7, PRIORITY: 134.6},
    chunks={"512": 13.1, "1024": 24.9},
)
