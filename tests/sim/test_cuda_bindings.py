"""Runs cuda-bindings, without gcx, on the simulated driver.

GCX_SIM_LIBDIR names the folder with the simulation's libcuda.so.1. Each driver version runs in a
separate process, since a process loads libcuda once.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")

LIBDIR = os.environ.get("GCX_SIM_LIBDIR", "")
pytestmark = pytest.mark.skipif(
    not LIBDIR, reason="GCX_SIM_LIBDIR does not name the folder of the simulated libcuda.so.1"
)

PROLOGUE = """
from cuda.bindings import driver as cu

SM = cu.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
DEFAULT = cu.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM
NON_BLOCKING = cu.CUstream_flags.CU_STREAM_NON_BLOCKING

def ok(results):
    assert results[0] == cu.CUresult.CUDA_SUCCESS, cu.CUresult(results[0]).name
    return results[1] if len(results) == 2 else results[1:]

def fails(results, name):
    assert cu.CUresult(results[0]).name == name, results[0]

ok(cu.cuInit(0))
version = ok(cu.cuDriverGetVersion())
device = ok(cu.cuDeviceGet(0))
"""


def run(spec: str, body: str) -> None:
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(Path(LIBDIR).resolve()),
        "GCX_SIM": spec,
    }
    done = subprocess.run(
        [sys.executable, "-c", PROLOGUE + body],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


DRIVERS = ["12.4", "12.5", "12.8", "13.0", "13.1", "13.4", "13.5"]


@pytest.mark.parametrize("driver", DRIVERS)
def test_device_name_is_simulated(driver: str) -> None:
    run(
        f"h100@{driver}",
        f"""
major, minor = "{driver}".split(".")
assert version == int(major) * 1000 + int(minor) * 10
name = ok(cu.cuDeviceGetName(64, device)).split(b"\\0")[0].strip()
assert name.startswith(b"SIMULATED NVIDIA H100"), name
count = cu.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
assert ok(cu.cuDeviceGetAttribute(count, device)) == 132
""",
    )


@pytest.mark.parametrize("driver", DRIVERS)
def test_partition_can_be_created_used_and_destroyed(driver: str) -> None:
    run(
        f"h100@{driver}",
        """
whole = ok(cu.cuDeviceGetDevResource(device, SM))
assert whole.sm.smCount == 132
groups, count, rest = ok(cu.cuDevSmResourceSplitByCount(1, whole, 0, 24))
assert count == 1 and groups[0].sm.smCount == 24 and rest.sm.smCount == 108
made = []
for resource in (groups[0], rest):
    description = ok(cu.cuDevResourceGenerateDesc([resource], 1))
    green = ok(cu.cuGreenCtxCreate(description, device, DEFAULT))
    context = ok(cu.cuCtxFromGreenCtx(green))
    ok(cu.cuCtxPushCurrent(context))
    stream = ok(cu.cuStreamCreateWithPriority(NON_BLOCKING, -1))
    own = ok(cu.cuCtxGetDevResource(context, SM))
    assert own.sm.smCount == resource.sm.smCount
    assert ok(cu.cuStreamGetPriority(stream)) == -1
    event = ok(cu.cuEventCreate(0))
    ok(cu.cuEventRecord(event, stream))
    ok(cu.cuEventSynchronize(event))
    ok(cu.cuEventDestroy(event))
    ok(cu.cuCtxPopCurrent())
    made.append((green, stream))
for green, stream in made:
    ok(cu.cuStreamSynchronize(stream))
    ok(cu.cuStreamDestroy(stream))
    ok(cu.cuGreenCtxDestroy(green))
fails(cu.cuGreenCtxDestroy(made[0][0]), "CUDA_ERROR_CONTEXT_IS_DESTROYED")
""",
    )


@pytest.mark.parametrize("driver", ["12.4", "13.0", "13.1", "13.5"])
def test_kernel_runs_on_sms_of_partition(driver: str) -> None:
    run(
        f"h100@{driver}",
        '''
import ctypes

PTX = b"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry gcx_probe(.param .u64 counts, .param .u32 max_sms, .param .u32 spin_ns) { ret; }
"""
whole = ok(cu.cuDeviceGetDevResource(device, SM))
groups, count, rest = ok(cu.cuDevSmResourceSplitByCount(1, whole, 0, 24))
green = ok(cu.cuGreenCtxCreate(ok(cu.cuDevResourceGenerateDesc(groups, 1)), device, DEFAULT))
ok(cu.cuCtxPushCurrent(ok(cu.cuCtxFromGreenCtx(green))))
module = ok(cu.cuModuleLoadData(PTX))
kernel = ok(cu.cuModuleGetFunction(module, b"gcx_probe"))
stream = ok(cu.cuStreamCreate(NON_BLOCKING))
counts = ok(cu.cuMemAlloc(132 * 4))
ok(cu.cuMemsetD32Async(counts, 0, 132, stream))
values = (int(counts), 132, 1000)
types = (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32)
ok(cu.cuLaunchKernel(kernel, 240, 1, 1, 32, 1, 1, 0, stream, (values, types), 0))
seen = (ctypes.c_uint32 * 132)()
ok(cu.cuMemcpyDtoHAsync(ctypes.addressof(seen), counts, 132 * 4, stream))
ok(cu.cuStreamSynchronize(stream))
held = [sm for sm in range(132) if seen[sm]]
assert held == [*range(6), *range(16, 22), *range(32, 38), *range(48, 54)], held
assert sum(seen) == 240
ok(cu.cuMemFree(counts))
ok(cu.cuStreamDestroy(stream))
ok(cu.cuModuleUnload(module))
ok(cu.cuCtxPopCurrent())
ok(cu.cuGreenCtxDestroy(green))
''',
    )


def test_structured_split_returns_groups() -> None:
    run(
        "h100@13.5",
        """
if hasattr(cu, "cuDevSmResourceSplit"):
    whole = ok(cu.cuDeviceGetDevResource(device, SM))
    params = [cu.CU_DEV_SM_RESOURCE_GROUP_PARAMS() for _ in range(2)]
    params[0].smCount, params[1].smCount = 64, 24
    groups, rest = ok(cu.cuDevSmResourceSplit(2, whole, 0, params))[:2]
    assert [group.sm.smCount for group in groups] == [64, 24]
    assert rest.sm.smCount == 44
""",
    )


def test_machine_without_gpu_has_no_device() -> None:
    with pytest.raises(AssertionError, match="CUDA_ERROR_NO_DEVICE"):
        run("none@13.0", "")
