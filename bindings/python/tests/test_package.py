"""The package and its process: devices, the driver, the command, importing, environment, the raw
layer, names in messages, several interpreters."""

from __future__ import annotations

import os
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import gcx
import pytest
from gcx import _error, raw
from gcx.generated.names import NAMES
from work import run_program  # type: ignore[import-not-found]


def test_device_attributes() -> None:
    device = gcx.Device(0)
    assert device.name.startswith("SIMULATED")
    assert (device.ordinal, device.compute_capability, device.sm_count) == (0, (9, 0), 132)
    assert device.uuid.startswith("GPU-")
    assert len(device.uuid) == 40
    assert (device.min_partition_size, device.coscheduled_alignment) == (8, 8)
    assert device == gcx.devices()[0] == gcx.Device(device)
    assert hash(device) == hash(gcx.Device(0))
    assert "132 SMs" in repr(device)


def test_device_pickled_is_that_with_its_uuid(script: Any) -> None:
    version = ".".join(map(str, gcx.driver_info().version))
    devices = f"sim:h100,a100@{version}"
    pickled = script("import gcx, pickle; print(pickle.dumps(gcx.Device(1)).hex())", devices)
    assert pickle.loads(pickle.dumps(gcx.Device(0))) == gcx.Device(0)
    code = f"""
import gcx, pickle
try:
    device = pickle.loads(bytes.fromhex("{pickled.strip()}"))
    print(device.ordinal, device.sm_count, device == gcx.Device(device.ordinal))
except gcx.InvalidDeviceError as error:
    print(error)
"""
    assert script(code, devices) == "1 108 True\n"
    missing = script(code, f"sim:b200@{version}")
    assert missing.startswith("unpickling a gcx.Device: this process has no device GPU-")
    assert "B200" in missing


def test_driver_info_has_versions_and_capabilities(version: tuple[int, int]) -> None:
    info = gcx.driver_info()
    assert info.simulated
    assert info.library.endswith("libgcx-sim.so")
    assert info.header_version >= (12, 4)
    assert info.capabilities["green contexts"]
    assert info.capabilities["structured split"] == (version >= (13, 1))
    assert info.capabilities["locality domains"] == (version >= (13, 4))


def test_open_driver_selects_once(script: Any) -> None:
    script("""
import os, gcx
for _ in range(2):  # As in a notebook whose cell is run twice.
    gcx.open_driver("sim:a100@12.5")
    assert gcx.Device(0).sm_count == 108
for other in ("sim:h100@12.5", "\\udcff"):
    try:
        gcx.open_driver(other)
    except gcx.DriverAlreadyOpenError as error:
        assert "gcx.open_driver" in str(error)
    else:
        raise SystemExit("no error")
os.environ["GCX_DRIVER"] = "sim:h200@13.1"
os.environ["GCX_SIM"] = "h200@13.1"
found = gcx.info()  # Of the driver that is open.
assert (found["devices"][0]["sm_count"], found["driver"]["version"]) == (108, "12.5")
assert found["devices"][0]["uuid"] == gcx.Device(0).uuid
""")
    for wrong, error in ((13, TypeError), (b"sim:h100", TypeError), ("sim:\0", ValueError)):
        with pytest.raises(error):
            gcx.open_driver(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("driver", "error"),
    [
        ("/nonexistent/libcuda.so.1", "DriverNotFoundError"),
        ("sim:h100@12.2", "NotSupportedError"),
        ("sim:none@13.0", "NoDeviceError"),
    ],
)
def test_driver_missing_or_too_old_is_an_error(script: Any, driver: str, error: str) -> None:
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


def test_two_devices_are_told_apart(script: Any) -> None:
    code = """
import gcx
one, two = (device.resources.sm for device in gcx.devices())
assert (one.sm_count, two.sm_count, one.overlap(two)) == (132, 108, 0)
(part,), (other,) = gcx.split([8], device=gcx.Device(1)), gcx.split([8])
assert part.device == part.stream.device == part.context.device == 1
part.stream.wait(other.stream)
for call, error in ((lambda: one | two, gcx.ResourceConfigurationError),
                    (lambda: gcx.Context([one, two]), gcx.ResourceConfigurationError),
                    (lambda: gcx.verify([part, other]), gcx.InvalidValueError)):
    try:
        call()
    except error as error:
        assert "device" in str(error), error
    else:
        raise SystemExit("no error")
"""
    script(code, "sim:h100,a100@13.0")


def test_partition_counts_are_reported_to_other_libraries(script: Any) -> None:
    """ctypes stands for PyTorch: it opens libcuda by its name, as every library does."""
    code = """
import ctypes, gcx
gcx.report_partition_counts()

def reported():
    count = ctypes.c_int()
    libcuda = ctypes.CDLL("libcuda.so.1")
    assert libcuda.cuInit(0) == 0
    assert libcuda.cuDeviceGetAttribute(ctypes.byref(count), 16, 0) == 0
    return count.value

with gcx.split([24])[0].context.make_current():
    assert reported() == 24
assert reported() == 132
"""
    script(code)
    too_late = """
import ctypes, gcx, gcx_sim
ctypes.CDLL(f"{gcx_sim.LIBCUDA_FOLDER}/libcuda.so.1")
try:
    gcx.report_partition_counts()
except gcx.TooLateError:
    print("too late")
"""
    assert script(too_late) == "too late\n"


def test_connections_are_requested_before_cuda_starts(
    script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_DEVICE_MAX_CONNECTIONS", raising=False)
    code = """
import os, subprocess, sys, gcx
print(*gcx.queue_info())
gcx.request_connections()
ask = [sys.executable, "-c", "import os; print(os.environ['CUDA_DEVICE_MAX_CONNECTIONS'])"]
print(subprocess.run(ask, capture_output=True, text=True).stdout.strip())
gcx.devices()
print(*gcx.queue_info())
gcx.request_connections(8)
"""
    assert script(code).splitlines() == [
        *("8 default False True False", "32", "32 environment True True False"),
    ]
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "many")
    assert script("import gcx; print(gcx.queue_info().connections)") == "None\n"


@pytest.mark.parametrize("entry_point", [False, True])
def test_command_is_installed(entry_point: bool) -> None:
    words = ["-m", "gcx"]
    if entry_point:
        from importlib.metadata import entry_points

        found: Any = entry_points()
        scripts = found.select(group="console_scripts") if hasattr(found, "select") else found[
            "console_scripts"
        ]  # fmt: skip
        (command,) = [script for script in scripts if script.name == "gcx"]
        words = ["-c", f"from {command.module} import {command.attr}; {command.attr}()"]
    for arguments, status in ((["plan", "--sms", "108,24"], 0), (["no-such"], 2)):
        done = run_program(sys.executable, *words, *arguments)
        assert done.returncode == status, done.stderr
        assert status or "108" in done.stdout


def test_package_is_self_contained() -> None:
    folder = Path(gcx.__file__).parent
    for name in ("lib/libgcx.so.1", "bin/gcx", "include/gcx.h", "include/gcx/lease.h", "py.typed"):
        assert (folder / name).is_file()
    lines = Path("/proc/self/maps").read_text().splitlines()
    mapped = [line.split()[-1] for line in lines if "libgcx." in line]
    assert mapped
    assert all(Path(path).is_relative_to(folder.resolve()) for path in mapped), mapped
    assert os.access(folder / "bin" / "gcx", os.X_OK)


def test_import_is_light_and_opens_no_driver(script: Any) -> None:
    code = """
import sys
before = set(sys.modules)
import gcx
new = set(sys.modules) - before
heavy = {"numpy", "torch", "cupy", "numba", "ray", "asyncio", "subprocess", "dataclasses",
         "pathlib", "logging", "inspect"}
assert not heavy & new, heavy & new
from importlib.metadata import version
assert gcx.__version__ == version("gcx")
assert len(set(gcx.__all__)) == len(gcx.__all__) > 90
assert all(hasattr(gcx, name) for name in gcx.__all__)
with open("/proc/self/maps") as maps:
    assert "libgcx-sim" not in maps.read()
"""
    script(code, "/nonexistent/driver")

    def microseconds(modules: str) -> float:
        code = f"import time; start = time.process_time(); import {modules}; "
        return 1e6 * float(script(code + "print(time.process_time() - start)"))

    gcx_time = min(microseconds("gcx") for _ in range(5))
    # Both import what gcx needs of the standard library as well: re, typing, threading.
    others = min(microseconds("json, logging, typing") for _ in range(5))
    assert gcx_time < 30_000 or gcx_time < 6 * others, f"{gcx_time:.0f} us, others {others:.0f} us"


def test_free_threaded_python_is_refused(script: Any) -> None:
    said = script("""
import sys
sys.abiflags = "t"
try:
    import gcx
except ImportError as error:
    print(error)
""")
    assert said.startswith("gcx: this is a free-threaded build of Python")


# The generated layer


def test_raw_layer_documents_every_function() -> None:
    functions = [name for name in raw.__all__ if name.startswith("gcx_")]
    assert len(functions) > 80
    for name in functions:
        if name != "gcx_cache_prepare":
            assert getattr(raw, name).__doc__.strip().startswith(f"{name}(")


def test_raw_layer_creates_and_destroys_a_context() -> None:
    everything = raw.gcx_device_get_resource(0, raw.GCX_RESOURCE_SM)
    (part,), _ = raw.gcx_sm_split(everything, [16], raw.GCX_SPLIT_DEFAULT)
    context = raw.gcx_context_create([part], 0, raw.Handle())
    assert raw.gcx_context_get_info(context.value)[1] == 16
    context.destroy()
    assert context.value == 0
    with pytest.raises(gcx.InvalidHandleError):
        raw.gcx_context_get_info(context.value)


def test_error_has_code_name_and_message(sms: gcx.SMResource) -> None:
    with pytest.raises(gcx.ResourceConfigurationError, match=r"140.*132") as caught:
        sms.split([140])
    error = caught.value
    assert (error.code, error.name) == (915, "GCX_ERROR_INVALID_RESOURCE_CONFIGURATION")
    assert "140" in error.message
    assert "SMResource.split" in str(error)
    assert pickle.loads(pickle.dumps(error)).message == error.message


def test_names_in_messages_exist() -> None:
    for name, here in NAMES.items():
        assert hasattr(raw, name) or name == "gcx_log_set_callback", name
        for path in re.findall(r"\b[A-Z]\w+\.\w+|\bgcx\.\w+", here):
            found = gcx
            for part in path.removeprefix("gcx.").split("."):
                assert hasattr(found, part) or path in ("Error.message",), f"{name}: {path}"
                found = getattr(found, part, found)


def test_messages_are_translated_by_whole_names() -> None:
    text = "gcx_context_native_green: use gcx_context_native, or gcx_no_such with GCX_SPLIT_EXACT"
    assert _error.in_python(text) == (
        "Context.native_green: use Context.native, or gcx_no_such with exact=True"
    )


def test_public_names_are_in_gcx() -> None:
    for name in gcx.__all__:
        what = getattr(gcx, name)
        if isinstance(what, type) or callable(what):
            assert getattr(what, "__module__", "typing") in ("gcx", "typing"), name
    assert repr(gcx.SMResource) == "<class 'gcx.SMResource'>"


INTERPRETERS = """
import {module} as interpreters
import gcx

def refused():
    try:
        gcx.split([1000])
    except gcx.ResourceConfigurationError as error:
        assert type(error).__module__ == "gcx" and "1000" in str(error)
        return True

OTHER = '''
import gcx, logging
logging.getLogger("gcx").setLevel(10)
for call in (lambda: gcx.split([2000]), lambda: gcx.acquire(200)):
    try:
        call()
    except gcx.ResourceConfigurationError as error:
        assert "200" in str(error)
    else:
        raise SystemExit("no error")
with gcx.split([8]):
    pass
with gcx.acquire(100) as lease:
    try:
        gcx.acquire(64, timeout=0.01)
    except TimeoutError:
        pass
    else:
        raise SystemExit("no error")
'''
assert refused()
for _ in range(3):
    other = interpreters.create({arguments})
    answer = interpreters.{run}(other, OTHER)
    assert answer is None, answer
    assert refused()
    interpreters.destroy(other)
    assert refused()
print("fine")
"""
MODULE = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
RUN = "exec" if sys.version_info >= (3, 13) else "run_string"


def test_interpreters_have_their_own_exceptions(script: Any) -> None:
    arguments = "isolated=False" if sys.version_info >= (3, 12) else ""
    if sys.version_info >= (3, 13):
        arguments = "'legacy'"
    code = INTERPRETERS.format(module=MODULE, run=RUN, arguments=arguments)
    assert script(code) == "fine\n"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="all interpreters share a GIL before 3.12")
def test_interpreter_with_its_own_gil_is_refused(script: Any) -> None:
    code = f"""
import {MODULE} as interpreters
other = interpreters.create()
try:
    print(interpreters.{RUN}(other, "import gcx"))
except Exception as error:
    print(error)
interpreters.destroy(other)
"""
    assert "subinterpreters" in script(code)
