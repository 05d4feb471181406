"""Devices, the driver, the command, and importing."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import gcx
import pytest


def test_device_has_what_people_ask_for() -> None:
    device = gcx.Device(0)
    assert device.ordinal == 0
    assert device.name.startswith("SIMULATED")
    assert device.compute_capability == (9, 0)
    assert device.sm_count == 132
    assert device.uuid.startswith("GPU-")
    assert len(device.uuid) == 40
    assert device == gcx.devices()[0]
    assert hash(device) == hash(gcx.Device(0))
    assert gcx.Device(device) == device
    assert "132 SMs" in repr(device)


def test_row_2_resources_of_a_device(version: tuple[int, int]) -> None:
    sms = gcx.Device(0).resources.sm
    assert (sms.sm_count, sms.device, sms.family) == (132, 0, "coscheduled")
    assert (sms.min_partition_size, sms.coscheduled_alignment) == (8, 8)
    assert len(bytes(sms)) == 128
    if version < (13, 1):
        with pytest.raises(gcx.NotSupportedError, match=r"13\.1.*this one is CUDA"):
            _ = gcx.Device(0).resources.workqueue
    else:
        workqueue = gcx.Device(0).resources.workqueue
        assert workqueue.scope == "device_ctx"
        assert workqueue.concurrency_limit > 0


def test_driver_info(version: tuple[int, int]) -> None:
    info = gcx.driver_info()
    assert info.simulated
    assert info.library.endswith("libgcx-sim.so")
    assert info.header_version >= (12, 4)
    assert info.capabilities["green contexts"]
    assert info.capabilities["structured split"] == (version >= (13, 1))
    assert info.capabilities["locality domains"] == (version >= (13, 4))


def test_device_pickled_is_the_one_with_its_uuid(script: Any) -> None:
    version = ".".join(map(str, gcx.driver_info().version))
    devices = f"sim:h100,a100@{version}"
    pickled = script(
        "import gcx, pickle; print(pickle.dumps(gcx.Device(1)).hex())", devices
    ).strip()
    assert pickle.loads(pickle.dumps(gcx.Device(0))) == gcx.Device(0)
    code = f"""
import gcx, pickle
try:
    device = pickle.loads(bytes.fromhex("{pickled}"))
    print(device.ordinal, device.sm_count, device == gcx.Device(device.ordinal))
except gcx.InvalidDeviceError as error:
    print(error)
"""
    assert script(code, devices) == "1 108 True\n"
    missing = script(code, f"sim:b200@{version}")
    assert missing.startswith("unpickling a gcx.Device: this process has no device GPU-")
    assert "it has GPU-" in missing
    assert "B200" in missing


def test_free_threaded_build_is_refused_in_words(script: Any) -> None:
    said = script("""
import sys
sys.abiflags = "t"
try:
    import gcx
except ImportError as error:
    print(error)
""")
    assert said.startswith("gcx: this is a free-threaded build of Python")


def test_info_is_the_dict_of_the_command(version: tuple[int, int]) -> None:
    info = gcx.info()
    assert info["driver"]["version"] == f"{version[0]}.{version[1]}"
    assert info["devices"][0]["sm_count"] == 132
    assert info["devices"][0]["uuid"] == gcx.Device(0).uuid


def test_info_follows_open_driver(script: Any) -> None:
    code = (
        "import gcx; gcx.open_driver('sim:a100@12.5'); "
        "print(gcx.info()['devices'][0]['sm_count'], gcx.Device(0).sm_count)"
    )
    assert script(code) == "108 108\n"


def test_opening_another_driver_is_refused() -> None:
    gcx.Device(0)
    with pytest.raises(gcx.DriverAlreadyOpenError, match="open already"):
        gcx.open_driver("sim:a100@13.0")
    with pytest.raises(TypeError, match="string or None"):
        gcx.open_driver(13)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("driver", "error"),
    [
        ("/nonexistent/libcuda.so.1", "DriverNotFoundError"),
        ("sim:h100@12.2", "NotSupportedError"),
        ("sim:none@13.0", "NoDeviceError"),
    ],
)
def test_row_8_a_driver_that_is_missing_or_too_old_is_an_error(
    script: Any, driver: str, error: str
) -> None:
    code = f"""
import gcx
for call in (gcx.devices, lambda: gcx.split([8]), gcx.Device, gcx.info):
    try:
        call()
    except gcx.{error} as error:
        assert str(error)
    else:
        raise SystemExit("no error")
"""
    script(code, driver)


def test_two_devices(script: Any) -> None:
    code = """
import gcx
assert [device.sm_count for device in gcx.devices()] == [132, 108]
one, two = (device.resources.sm for device in gcx.devices())
assert one.overlap(two) == 0
for call in (lambda: one | two, lambda: gcx.Context([one, two])):
    try:
        call()
    except gcx.ResourceConfigurationError as error:
        assert "device" in str(error), error
    else:
        raise SystemExit("no error")
from gcx.compat.torch import GreenContext
assert GreenContext(sm_partition=two).device_id == 1
try:
    GreenContext(sm_partition=two, device_id=0)
except ValueError as error:
    assert "of device 1, not of 0" in str(error), error
else:
    raise SystemExit("no error")
(part,) = gcx.split([8], device=gcx.Device(1))
assert part.device == part.stream.device == part.context.device == 1
(other,) = gcx.split([8])
part.stream.wait(other.stream)
try:
    gcx.verify([part, other])
except gcx.InvalidValueError as error:
    assert "gcx.verify: the streams are of devices 1 and 0" in str(error)
else:
    raise SystemExit("no error")
"""
    script(code, "sim:h100,a100@13.0")


def test_python_m_gcx_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gcx", "plan", "--sms", "108,24"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "108" in done.stdout
    wrong = [sys.executable, "-m", "gcx", "no-such"]
    done = subprocess.run(wrong, capture_output=True, text=True, check=False)
    assert done.returncode == 2


def test_the_package_is_self_contained() -> None:
    folder = Path(gcx.__file__).parent
    libraries = ("lib/libgcx.so.1", "lib/gcx/libgcx-sim.so")
    for name in (*libraries, "bin/gcx", "include/gcx.h", "include/gcx_result.h"):
        assert (folder / name).is_file()
    mapped = [
        line.split()[-1]
        for line in Path("/proc/self/maps").read_text().splitlines()
        if "libgcx" in line
    ]
    assert mapped
    assert all(Path(path).is_relative_to(folder.resolve()) for path in mapped), mapped
    assert os.access(folder / "bin" / "gcx", os.X_OK)
    assert (folder / "py.typed").exists()


def test_importing_is_light_and_opens_no_driver(script: Any) -> None:
    code = """
import sys
before = set(sys.modules)
import gcx
new = set(sys.modules) - before
heavy = {"numpy", "torch", "cupy", "numba", "asyncio", "subprocess", "dataclasses", "pathlib",
         "logging", "inspect"}
assert not heavy & new, heavy & new
from importlib.metadata import version
assert gcx.__version__ == version("gcx")
assert sorted(gcx.__all__) == gcx.__all__ and all(hasattr(gcx, name) for name in gcx.__all__)
with open("/proc/self/maps") as maps:
    assert "libgcx-sim" not in maps.read()
"""
    script(code, "/nonexistent/driver")


def test_importing_takes_no_longer_than_modules_of_its_size(script: Any) -> None:
    def microseconds(modules: str) -> float:
        """Of the processor's time, which other programs take none of."""
        code = f"import time; start = time.process_time(); import {modules}; "
        return 1e6 * float(script(code + "print(time.process_time() - start)"))

    ours = min(microseconds("gcx") for _ in range(5))
    # Both import what gcx needs of the standard library as well: re, typing, threading.
    theirs = min(microseconds("json, logging, typing") for _ in range(5))
    assert ours < 30_000 or ours < 6 * theirs, f"gcx {ours:.0f} us, the others {theirs:.0f} us"


def test_cache_limit_and_counters(sms: gcx.SMResource) -> None:
    before = gcx.cache_stats()
    with gcx.Context(sms.split([40]).groups[0]):
        pass
    gcx.Context(sms.split([40]).groups[0]).close()
    after = gcx.cache_stats()
    assert after.hits > before.hits
    try:
        gcx.set_cache_limit(0)
        assert (gcx.cache_stats().limit, gcx.cache_stats().kept) == (0, 0)
        with pytest.raises(ValueError, match="at least 0"):
            gcx.set_cache_limit(-1)
        with pytest.raises(TypeError):
            gcx.set_cache_limit("many")  # type: ignore[arg-type]
    finally:
        gcx.set_cache_limit(before.limit)


def test_opening_the_driver_that_is_open_does_nothing(script: Any) -> None:
    """As a notebook does whose cell is run twice."""
    code = """
import gcx
for _ in range(2):
    gcx.open_driver("sim:a100@12.5")
    assert gcx.Device(0).sm_count == 108
try:
    gcx.open_driver("sim:h100@12.5")
except gcx.DriverAlreadyOpenError as error:
    assert "gcx.open_driver" in str(error)
else:
    raise SystemExit("no error")
gcx.open_driver("sim:a100@12.5")
"""
    script(code)


def test_info_is_of_the_driver_that_is_open(script: Any) -> None:
    code = """
import os, gcx
assert gcx.Device(0).sm_count == 108
os.environ["GCX_DRIVER"] = "sim:h200@13.1"
os.environ["GCX_SIM"] = "h200@13.1"
found = gcx.info()
print(found["devices"][0]["sm_count"], found["driver"]["version"])
"""
    assert script(code, "sim:a100@12.5") == "108 12.5\n"


def test_pip_gives_the_command() -> None:
    """The entry point that pip makes the program gcx of."""
    from importlib.metadata import entry_points

    found: Any = entry_points()
    scripts = found.select(group="console_scripts") if hasattr(found, "select") else found[
        "console_scripts"
    ]  # fmt: skip
    (command,) = [script for script in scripts if script.name == "gcx"]
    code = f"from {command.module} import {command.attr}; {command.attr}()"
    done = subprocess.run(
        [sys.executable, "-c", code, "plan", "--sms", "108,24"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "108" in done.stdout
