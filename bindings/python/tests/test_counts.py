"""What other libraries of the process are told of a partition's SMs."""

from __future__ import annotations

from typing import Any

import gcx
import pytest

# ctypes in the place of PyTorch: it opens libcuda by its name, as every library does.
OTHERS = """
import ctypes

def told(device=0):
    count = ctypes.c_int()
    libcuda = ctypes.CDLL("libcuda.so.1")
    assert libcuda.cuInit(0) == 0
    assert libcuda.cuDeviceGetAttribute(ctypes.byref(count), 16, device) == 0
    return count.value
"""


def test_the_current_partition_is_told(script: Any) -> None:
    code = (
        """
import gcx
print(gcx.reports_partition_counts())
gcx.report_partition_counts()
gcx.report_partition_counts()
print(gcx.reports_partition_counts())
"""
        + OTHERS
        + """
import threading
with gcx.split([24, None]) as (small, rest):
    whole = gcx.Device(0).sm_count
    print(told() == whole)
    with small.context.make_current():
        print(told() == small.sm_count)
        with rest.context.make_current():
            print(told() == rest.sm_count)
        thread = threading.Thread(target=lambda: print(told() == whole))
        thread.start()
        thread.join()
        print(told() == small.sm_count)
    print(told() == whole)
"""
    )
    assert script(code).split() == ["False", "True"] + ["True"] * 6


def test_too_late(script: Any) -> None:
    # The simulated driver has libcuda's name where the package says.
    code = """
import ctypes, gcx, pathlib
folder = pathlib.Path(gcx.__file__).parent / "lib" / "gcx" / "libcuda"
ctypes.CDLL(str(folder / "libcuda.so.1"))
try:
    gcx.report_partition_counts()
except gcx.NotPermittedError as error:
    print("before torch" in str(error), gcx.reports_partition_counts())
"""
    assert script(code).split() == ["True", "False"]


def test_it_opens_no_driver(script: Any) -> None:
    assert script("import gcx; print(gcx.reports_partition_counts())", "sim:nothing") == "False\n"
    with pytest.raises(TypeError):
        gcx.report_partition_counts(1)  # type: ignore[call-arg]
