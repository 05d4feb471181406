"""Runs Numba unchanged; prints whether a product is right, and the device's properties, as JSON."""

import json
from typing import Any

import numpy
from numba import cuda


@cuda.jit  # type: ignore[misc]
def multiply(x: Any, y: Any) -> None:
    i = cuda.grid(1)
    if i < x.size:
        y[i] = 3 * x[i] + 1


x = cuda.to_device(numpy.arange(10**6, dtype=numpy.int64))
y = cuda.device_array_like(x)
stream = cuda.stream()
multiply[4096, 256, stream](x, y)
stream.synchronize()
print(
    json.dumps(
        {
            "properties": cuda.get_current_device().MULTIPROCESSOR_COUNT,
            "right": bool((y.copy_to_host() == 3 * numpy.arange(10**6) + 1).all()),
        }
    )
)
