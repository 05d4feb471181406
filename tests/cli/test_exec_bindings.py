"""cuda-bindings inside gcx exec: a program that asks cuGetProcAddress for each function, as cudart
does, without gcx."""

from __future__ import annotations

import sys

import pytest

from .command import gcx

pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")

PROLOGUE = """
from cuda.bindings import driver as cu

def ok(results):
    assert results[0] == cu.CUresult.CUDA_SUCCESS, cu.CUresult(results[0]).name
    return results[1] if len(results) == 2 else results[1:]

def fails(results, name):
    assert cu.CUresult(results[0]).name == name, results[0]

SM = cu.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
COUNT = cu.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
ok(cu.cuInit(0))
device = ok(cu.cuDeviceGet(0))
assert ok(cu.cuDeviceGetAttribute(COUNT, device)) == 24
primary = ok(cu.cuDevicePrimaryCtxRetain(device))
ok(cu.cuCtxSetCurrent(primary))
"""


def run(driver: str, body: str, contexts: str = "partition", **env: str) -> str:
    """Returns its standard error without the line of gcx exec."""
    done = gcx(
        "exec", "--sms", "24", "--contexts", contexts, "--", sys.executable, "-c", PROLOGUE + body,
        driver=f"sim:{driver}", env=env,
    )  # fmt: skip
    assert done.returncode == 0, done
    assert done.stderr.startswith("gcx exec: SIMULATED: "), done
    return done.stderr.partition("\n")[2]


@pytest.mark.parametrize("driver", ["h100@12.4", "h100@13.0", "h100@13.5"])
def test_bindings_handles_and_counts_are_the_partitions(driver: str) -> None:
    said = run(
        driver,
        """
# Numba refuses to work where these two differ.
assert int(ok(cu.cuCtxGetCurrent())) == int(primary)
assert int(ok(cu.cuDevicePrimaryCtxRetain(device))) == int(primary)
stream = ok(cu.cuStreamCreateWithPriority(1, -5))
assert ok(cu.cuCtxGetDevResource(primary, SM)).sm.smCount == 24
assert ok(cu.cuDeviceGetDevResource(device, SM)).sm.smCount == 24
memory = ok(cu.cuMemAlloc(4096))
context = cu.CUpointer_attribute.CU_POINTER_ATTRIBUTE_CONTEXT
assert int(ok(cu.cuPointerGetAttribute(context, memory))) == int(primary)
ok(cu.cuMemFree(memory))
ok(cu.cuStreamDestroy(stream))
assert int(ok(cu.cuCtxPopCurrent())) == int(primary)
ok(cu.cuDevicePrimaryCtxRelease(device))
ok(cu.cuDevicePrimaryCtxReset(device))
ok(cu.cuCtxSetCurrent(ok(cu.cuDevicePrimaryCtxRetain(device))))
assert ok(cu.cuCtxGetDevResource(ok(cu.cuCtxGetCurrent()), SM)).sm.smCount == 24
""",
    )
    assert said == ""


@pytest.mark.parametrize("built_for", ["0", "1"])
@pytest.mark.parametrize("driver", ["h100@12.4", "h100@13.0", "h100@13.5"])
def test_bindings_default_streams_of_threads_are_inside(driver: str, built_for: str) -> None:
    """By its handle, and as NULL in programs that are built for per-thread streams."""
    said = run(
        driver,
        f"streams = [cu.CUstream(2), cu.CUstream(0)][:1 + {built_for}]"
        """
import threading
ids = []
memory = ok(cu.cuMemAlloc(4096))

def use():
    ok(cu.cuCtxSetCurrent(primary))
    event = ok(cu.cuEventCreate(0))
    for stream in streams:
        ok(cu.cuMemsetD8Async(memory, 7, 4096, stream))
        ok(cu.cuEventRecord(event, stream))
        ok(cu.cuStreamWaitEvent(stream, event, 0))
        back = bytearray(4096)
        ok(cu.cuMemcpyDtoHAsync(back, memory, 4096, stream))
        ok(cu.cuStreamSynchronize(stream))
        assert back == b"\x07" * 4096
        ids.append(int(ok(cu.cuStreamGetId(stream))))
    ok(cu.cuMemsetD8(memory, 8, 4096))
    ok(cu.cuMemcpyDtoH(back, memory, 4096))
    assert back == b"\x08" * 4096

use()
for _ in range(3):
    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
# Each thread has one, by either name.
assert len(set(ids)) == 4 and len(ids) == 4 * len(streams), ids
""",
        CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM=built_for,
    )
    assert said == ""


OWN_CONTEXT = """
own = ok(cu.cuCtxCreate(None, 0, device))
assert int(ok(cu.cuCtxGetCurrent())) == int(own) != int(primary)
assert ok(cu.cuCtxGetDevResource(own, SM)).sm.smCount == {}
stream = ok(cu.cuStreamCreate(0))
memory = ok(cu.cuMemAlloc(4096))
ok(cu.cuMemsetD8Async(memory, 7, 4096, stream))
back = bytearray(4096)
ok(cu.cuMemcpyDtoH(back, memory, 4096))
assert back == b"\\x07" * 4096
ok(cu.cuCtxDestroy(own))
assert int(ok(cu.cuCtxGetCurrent())) == int(primary)
"""


@pytest.mark.parametrize("driver", ["h100@12.8", "h100@13.0", "h100@13.5"])
def test_bindings_own_context_is_in_the_partition(driver: str) -> None:
    assert run(driver, OWN_CONTEXT.format(24)) == ""


def test_bindings_own_context_follows_the_contexts_option() -> None:
    said = run("h100@13.0", OWN_CONTEXT.format(132), contexts="device")
    assert "device 0: the program creates a context by cuCtxCreate" in said
    assert "it has all SMs of the device, not the partition's 24" in said
