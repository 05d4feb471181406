"""Checks matrix products: products of ones, into memory filled with something else. Prints as JSON
the SM count that PyTorch sees, and for each type how many of the
shapes were wrong, with the first of them. A library that plans for another number of SMs than it
was tested with may leave parts out, as cuBLAS 13.1 does: docs/explanation/counts.md."""

import json
from typing import Any

import torch

SHAPES = [
    (1024, 2048, 512), (512, 2048, 512), (1024, 1024, 1024), (2048, 2048, 512), (4096, 2048, 512),
    (2048, 4096, 1024), (2048, 14336, 4096), (2048, 4096, 14336), (32, 4096, 4096),
    (4096, 6144, 4096), (8192, 8192, 1024), (1856, 1936, 784), (560, 2336, 144), (256, 4096, 4096),
    (128, 28672, 4096), (2048, 7168, 7168), (64, 64, 64), (300, 500, 200),
]  # fmt: skip
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def wrong_elements(rows: int, columns: int, inner: int, kind: torch.dtype, flip: bool) -> int:
    a = torch.ones(rows, inner, device="cuda", dtype=kind)
    b = torch.ones(columns, inner, device="cuda", dtype=kind).t()
    if not flip:
        b = b.contiguous()
    result = torch.full((rows, columns), float("nan"), device="cuda", dtype=kind)
    torch.mm(a, b, out=result)
    return int((result != inner).sum())


def main() -> None:
    found: dict[str, Any] = {
        "reported": torch.cuda.get_device_properties(0).multi_processor_count,
        "shapes": 2 * len(SHAPES),
    }
    for name, kind in TYPES.items():
        wrong = [
            (*shape, elements)
            for shape in SHAPES
            for flip in (False, True)
            if (elements := wrong_elements(*shape, kind, flip)) != 0
        ]
        found[name] = {"wrong": len(wrong), "first": wrong[:4]}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
