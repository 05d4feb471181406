"""The few functions of libcuda that PyTorch has no name for."""

from __future__ import annotations

import ctypes
from typing import Any

_MULTIPROCESSOR_COUNT = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT


class Driver:
    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")

    def call(self, name: str, *arguments: Any) -> None:
        """
        Raises:
            RuntimeError: The driver refused, with its word for why.
        """
        result = getattr(self._library, name)(*arguments)
        if result != 0:
            word = ctypes.c_char_p()
            self._library.cuGetErrorName(result, ctypes.byref(word))
            known = (word.value or b"an unknown error").decode()
            raise RuntimeError(f"{name}: {known} ({result})")

    def sm_count(self, device: int) -> int:
        """That libraries are told in this thread."""
        count = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(count), _MULTIPROCESSOR_COUNT, device)
        return count.value
