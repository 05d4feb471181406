"""Two works for gcx.tune. Replace what they launch by your own kernels, then run

    python -m gcx.tune tune_pair:small tune_pair:large                  # throughput
    python -m gcx.tune tune_pair:small tune_pair:large --objective latency
    python -m gcx.tune tune_pair:small tune_pair:large --promise small=0.5

in this folder, on a GPU that no other program uses. Each function launches one round of its work
into PyTorch's current stream and returns without waiting for it.
"""

from __future__ import annotations

import torch

torch.set_grad_enabled(False)
device = torch.device("cuda")

# Allocate here what the works use, so that a round launches kernels only.
table = torch.randn(4096, 4096, device=device, dtype=torch.bfloat16)
tokens = torch.randn(64, 4096, device=device, dtype=torch.bfloat16)
token_out = torch.empty_like(tokens)
a, b = (torch.randn(8192, 8192, device=device, dtype=torch.bfloat16) for _ in range(2))
out = torch.empty_like(a)


def small() -> None:
    """A latency-critical work: 64 tokens through four layers."""
    for _ in range(4):
        torch.mm(tokens, table, out=token_out)


def large() -> None:
    """A heavy work: one large product, about 1.5 ms on an H200."""
    torch.mm(a, b, out=out)
