"""What decode and prefill take on which SMs: measured at the start, or as they were on an H200."""

from __future__ import annotations

from dataclasses import dataclass, field

# Who has which SMs is a number, decode's SMs: prefill has the others. With 0 prefill has all, with
# the device's count decode has. Besides there are three ways without partitions.
PLAIN, PRIORITY, ONE_STREAM = -1, -2, -3


@dataclass
class Costs:
    """Milliseconds, all of them.

    Attributes:
        sm_count: SMs of the device.
        shares: What each piece of a prompt is of its whole time; they add up to 1.
        decode_alone: A decode step by decode's SMs.
        decode_beside: The same while prefill has the others, or by PLAIN and PRIORITY.
        prefill_alone: A prompt by decode's SMs, that is, on the others.
        prefill_beside: The same while decode runs step after step.
        chunks: One chunk of a prompt by its kind, see Prefill.chunk.
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
        """Decode's SMs where both run side by side, the least first."""
        return sorted(sms for sms in self.decode_beside if 0 < sms < self.sm_count)

    def decode(self, layout: int, beside: bool) -> float:
        table = self.decode_beside if beside else self.decode_alone
        return table.get(layout, self.decode_alone[self.sm_count])

    def prefill(self, layout: int, beside: bool) -> float:
        table = self.prefill_beside if beside else self.prefill_alone
        return table.get(layout, self.prefill_alone[0])

    def prefill_rate(self, split: int, promise: float) -> float:
        """Prompts a millisecond within a promise: while a step runs prefill has the other SMs, in
        the rest of the promised time all. Negative if a step on so few SMs breaks the promise."""
        step = self.decode(split, split < self.sm_count)
        beside = step / self.prefill(split, True) if split < self.sm_count else 0.0
        if step > promise:
            return promise - step
        return (beside + (promise - step) / self.prefill(0, False)) / promise


def in_layers(layers: int, pieces: tuple[float, ...]) -> tuple[float, ...]:
    """The shares of a prompt's pieces, of what the pieces of one layer take."""
    return tuple(piece / sum(pieces) / layers for _ in range(layers) for piece in pieces)


# One NVIDIA H200, driver 580.159.04, PyTorch 2.11: docs/measurements.md. The decode step on 24, 32
# and 48 SMs with the cuBLAS target; 4,096 tokens over what prefill reached beside it. What the
# pieces of a layer take of it was not measured: by their products, and attention.
H200 = Costs(
    sm_count=132,
    shares=in_layers(32, (0.31, 0.1725, 0.1725, 0.1725, 0.1725)),
    decode_alone={24: 12.2, 32: 9.2, 48: 7.8, 64: 7.3, 132: 6.77},
    decode_beside={24: 16.4, 32: 13.1, 48: 10.3, 64: 9.5, PLAIN: 58.9, PRIORITY: 22.4},
    prefill_alone={0: 106.0, 24: 125.0, 32: 129.0, 48: 142.0, 64: 161.0},
    prefill_beside={24: 147.0, 32: 158.6, 48: 184.2, 64: 229.9, PLAIN: 115.7, PRIORITY: 134.6},
    chunks={"512": 13.1, "1024": 24.9},
)
