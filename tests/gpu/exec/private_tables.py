"""Shows which work of NVIDIA's libraries reaches the driver past its public functions, by private
tables (cuGetExportTable), and so past the hooks of gcx exec:

    python tests/gpu/exec/private_tables.py [--audit LIBGCX_AUDIT] [--driver LIBCUDA] [--json FILE]
                                            [NAME...]

NAME is a library (driver cudart-static cudart-shared cublas cudnn cufft curand nccl torch cupy
cupti); all if not given. Needs a GPU, g++, and nvcc for cudart; what is missing is "not here". A
library in front of libcuda counts the calls of all public functions (private_tables.cpp): for
libraries that open libcuda by its path too if it is put there by gcx's audit library. CUPTI
records the kernels, copies and fills that ran (private_activity.cpp). Work that CUPTI saw and that
no public function submitted went past the hooks. Each library runs twice: with CUPTI, and without
CUPTI but with the functions of private tables counted. Takes less than 3 minutes.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_void_p
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
HOOKS = HERE.parents[2] / "src" / "interpose" / "entry_points.inc"
ALL_SECONDS, CHILD_SECONDS, BUILD_SECONDS = 160, 50, 100
CHILDREN = 4
AUDIT: list[str] = []  # the path of gcx's audit library, or nothing
CALLS = 3  # of an operation, after the first
MARK = "ROW "
KINDS = ("kernel", "copy", "fill")
# What is shown of the public functions: those that submit something.
SUBMITS = re.compile(
    r"cu(Launch|Memcpy|Memset|GraphLaunch|GraphUpload|EventRecord|StreamWait|StreamWrite"
    r"|StreamBatchMemOp|StreamAddCallback|Mem(Alloc|Free|Prefetch|Discard|Map|Batch)\w*Async)"
)
Json = dict[str, Any]
Numbers = tuple[int, int, int]  # of kernels, copies and fills


class MissingError(Exception):
    """Something that this machine does not have."""


def existing(*patterns: str) -> list[str]:
    """Returns the files that absolute patterns match, in the order of the patterns."""
    return [
        str(file)
        for pattern in patterns
        if pattern.startswith("/")
        for file in sorted(Path("/").glob(pattern[1:]))
    ]


def first_existing(patterns: list[str], what: str) -> str:
    if not (found := existing(*patterns)):
        raise MissingError(f"not here: {what}")
    return found[0]


# ---- Measuring, in a process for each library


class Measure:
    """Counts what operations submit and prints a row of JSON for each."""

    def __init__(self, library: str) -> None:
        self.library = library
        self.cuda = ctypes.CDLL("libcuda.so.1")
        if not hasattr(self.cuda, "private_tables_read"):
            raise RuntimeError("libcuda.so.1 is not the counting library; see LD_LIBRARY_PATH")
        self.text = ctypes.create_string_buffer(1 << 22)
        self.activity: ctypes.CDLL | None = None
        self.streams: dict[int, str] = {}

    def start_activity(self) -> None:
        path = os.environ.get("PRIVATE_TABLES_ACTIVITY")
        if path is None:
            return
        try:
            activity = ctypes.CDLL(path)
            activity.activity_error.restype = c_char_p
            if result := activity.activity_start():
                raise RuntimeError(activity.activity_error(result).decode())
            self.activity = activity
        except (OSError, RuntimeError) as error:
            self.say(f"CUPTI: {error}")

    def say(self, reason: str, operation: str = "") -> None:
        """Prints why there are no figures."""
        row = {"library": self.library, "operation": operation, "reason": reason}
        print(MARK + json.dumps(row), flush=True)

    def make_context(self) -> None:
        """Makes the primary context of device 0 current, as cudart does."""
        context = c_void_p()
        check("cuInit", self.cuda.cuInit(0))
        check("cuDevicePrimaryCtxRetain", self.cuda.cuDevicePrimaryCtxRetain(byref(context), 0))
        check("cuCtxSetCurrent", self.cuda.cuCtxSetCurrent(context))

    def stream(self) -> c_void_p:
        stream = c_void_p()
        check("cuStreamCreate", self.cuda.cuStreamCreate(byref(stream), 0))
        return stream

    def memory(self, size: int) -> c_void_p:
        pointer = ctypes.c_uint64()
        check("cuMemAlloc_v2", self.cuda.cuMemAlloc_v2(byref(pointer), c_size_t(size)))
        return c_void_p(pointer.value)

    def name_stream(self, stream: c_void_p | None, name: str) -> None:
        """Names a stream of CUPTI's records."""
        number = c_uint()
        if self.activity is not None and not self.activity.activity_stream(stream, byref(number)):
            self.streams[number.value] = name

    def lines(self, function: Any) -> list[list[str]]:
        function(self.text, c_size_t(len(self.text)))
        text = self.text.value.decode(errors="replace")
        return [line.split(" ", 2) for line in text.splitlines()]

    def calls(self) -> dict[str, int]:
        counted = self.lines(self.cuda.private_tables_read)
        return {" ".join(words[1:]): int(words[0]) for words in counted}

    def records(self) -> list[list[str]]:
        return self.lines(self.activity.activity_read) if self.activity is not None else []

    def row(
        self, operation: str, stream: str, known: Numbers | None, times: int,
        function: Callable[[], object], shown: bool = True,
    ) -> bool:  # fmt: skip
        """Prints what some calls submitted. shown: also if no work went past the hooks. Returns
        whether the calls succeeded."""
        try:
            self.calls()
            self.records()
            for _ in range(times):
                function()
            check("cuCtxSynchronize", self.cuda.cuCtxSynchronize())
            row = self.counts()
        except Exception as error:
            self.say(reason_of(error), operation)
            return False
        row["known"] = None if known is None else [number * times for number in known]
        row |= {"library": self.library, "operation": operation, "stream": stream, "shown": shown}
        print(MARK + json.dumps(row), flush=True)
        return True

    def counts(self) -> Json:
        """Returns what public functions submitted since the last call, and what CUPTI saw."""
        row: Json = {"calls": self.calls(), "seen": None}
        if self.activity is not None:
            records = self.records()
            seen = Counter(words[0] for words in records)
            row["seen"] = [seen[kind] for kind in KINDS]
            row["streams"] = Counter(self.streams.get(int(words[1]), "other") for words in records)
            row["kernels"] = sorted({words[2] for words in records if words[0] == "kernel"})
        return row

    def work(
        self, operation: str, stream: str, function: Callable[[], object],
        known: Numbers | None = None,
    ) -> None:  # fmt: skip
        """Prints rows for the first call of an operation and for some more. known: how many
        kernels, copies and fills one call runs, where that is certain."""
        if self.row(f"first {operation}", stream, known, 1, function, shown=False):
            self.row(operation, stream, known, CALLS, function)


def reason_of(error: BaseException) -> str:
    text = str(error).strip().replace("\n", " ")[:160]
    return text if isinstance(error, MissingError) else f"{type(error).__name__}: {text}"


def check(name: str, result: int) -> None:
    if result != 0:
        raise RuntimeError(f"{name} returned {result}")


class Library:
    """A library whose functions return 0 if they succeed."""

    def __init__(self, name: str) -> None:
        # Of the wheels, in which PyTorch and CuPy find it, or of the toolkit.
        folders = [f"{path}/nvidia/*/lib" for path in sys.path] + ["/usr/local/cuda*/lib64"]
        file = first_existing([f"{folder}/{name}.so*" for folder in folders], name)
        self.library = ctypes.CDLL(file)

    def call(self, name: str, *arguments: Any) -> None:
        check(name, getattr(self.library, name)(*arguments))

    def create(self, name: str, *arguments: Any) -> c_void_p:
        handle = c_void_p()
        self.call(name, byref(handle), *arguments)
        return handle


def both_streams(measure: Measure) -> Iterator[tuple[str, c_void_p | None]]:
    stream = measure.stream()
    measure.name_stream(None, "NULL")
    measure.name_stream(stream, "blocking")
    yield "NULL", None
    yield "blocking", stream


PTX = b".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry nothing() { ret; }\n"


def work_of_driver(measure: Measure) -> None:
    """The public functions themselves, so that both counts must agree."""
    measure.start_activity()
    measure.make_context()
    cuda, module, function = measure.cuda, c_void_p(), c_void_p()
    check("cuModuleLoadData", cuda.cuModuleLoadData(byref(module), PTX))
    check("cuModuleGetFunction", cuda.cuModuleGetFunction(byref(function), module, b"nothing"))
    a, size, host = measure.memory(4096), c_size_t(4096), ctypes.create_string_buffer(4096)
    for name, stream in both_streams(measure):

        def launch(stream: c_void_p | None = stream) -> None:
            grid = (1, 1, 1, 32, 1, 1, 0)
            result = cuda.cuLaunchKernel(function, *grid, stream, None, None)
            check("cuLaunchKernel", result)

        def fill(stream: c_void_p | None = stream) -> None:
            check("cuMemsetD8Async", cuda.cuMemsetD8Async(a, 1, size, stream))

        measure.work("cuLaunchKernel", name, launch, (1, 0, 0))
        measure.work("cuMemsetD8Async", name, fill, (0, 0, 1))

    def copy() -> None:
        check("cuMemcpyHtoD_v2", cuda.cuMemcpyHtoD_v2(a, host, size))

    measure.work("cuMemcpyHtoD", "NULL", copy, (0, 1, 0))


# The functions of private_tables.cu: kernels, copies and fills of one call.
WITHOUT_STREAM = {
    "copy_to_device": (0, 1, 0),
    "copy_pinned_to_device": (0, 1, 0),
    "copy_to_host": (0, 1, 0),
    "copy_in_device": (0, 1, 0),
    "copy_2d": (0, 1, 0),
    "copy_peer": (0, 1, 0),
    "copy_to_symbol": (0, 1, 0),
    "copy_from_symbol": (0, 1, 0),
    "fill": (0, 0, 1),
    "fill_2d": (0, 0, 1),
}
WITH_STREAM = {
    "launch": (1, 0, 0),
    "launch_ex": (1, 0, 0),
    "launch_cooperative": (1, 0, 0),
    "copy_async": (0, 1, 0),
    "copy_2d_async": (0, 1, 0),
    "copy_to_symbol_async": (0, 1, 0),
    "fill_async": (0, 0, 1),
    "launch_graph": (1, 1, 1),
    "allocate_async": (0, 0, 0),
    "record_event": (0, 0, 0),
    "call_host": (0, 0, 0),
    "synchronize": (0, 0, 0),
}


def work_of_cudart(measure: Measure, kind: str) -> None:
    path = Path(os.environ["PRIVATE_TABLES_FOLDER"], f"lib{kind}.so")
    if not path.exists():
        raise MissingError("not built: see nvcc above")
    runtime = ctypes.CDLL(str(path))
    measure.start_activity()

    def call(name: str, *arguments: Any) -> Callable[[], None]:
        return lambda: check(name, getattr(runtime, name)(*arguments))

    # A launch is the process's first call of CUDA.
    measure.row("first launch of the process", "NULL", (1, 0, 0), 1, call("launch", None))
    measure.make_context()
    call("prepare")()
    for name, known in WITHOUT_STREAM.items():
        measure.work(name, "NULL", call(name, None), known)
    for stream_name, stream in both_streams(measure):
        for name, known in WITH_STREAM.items():
            measure.work(name, stream_name, call(name, stream), known)


def work_of_cublas(measure: Measure) -> None:
    cublas = Library("libcublas")
    measure.start_activity()
    measure.make_context()
    n, one = 256, c_float(1)
    a, b, c = (measure.memory(4 * n * n) for _ in range(3))
    handle = cublas.create("cublasCreate_v2")
    for name, stream in both_streams(measure):
        cublas.call("cublasSetStream_v2", handle, stream)

        def multiply() -> None:
            shape = (0, 0, n, n, n)
            cublas.call("cublasSgemm_v2", handle, *shape, byref(one), a, n, b, n, byref(one), c, n)

        def dot() -> None:  # returns its result to the host
            result = c_float()
            cublas.call("cublasSdot_v2", handle, n, a, 1, b, 1, byref(result))

        measure.work("gemm", name, multiply)
        measure.work("dot", name, dot)


def work_of_cudnn(measure: Measure) -> None:
    cudnn = Library("libcudnn")
    with suppress(MissingError):
        Library("libcublas")  # which it opens by name
    measure.start_activity()
    measure.make_context()
    one, zero, size = c_float(1), c_float(0), c_size_t()
    images, weights, results = (measure.memory(1 << 22) for _ in range(3))
    handle = cudnn.create("cudnnCreate")
    before, after = (cudnn.create("cudnnCreateTensorDescriptor") for _ in range(2))
    kernel = cudnn.create("cudnnCreateFilterDescriptor")
    how = cudnn.create("cudnnCreateConvolutionDescriptor")
    cudnn.call("cudnnSetTensor4dDescriptor", before, 0, 0, 4, 16, 32, 32)
    cudnn.call("cudnnSetTensor4dDescriptor", after, 0, 0, 4, 16, 32, 32)
    cudnn.call("cudnnSetFilter4dDescriptor", kernel, 0, 0, 16, 16, 3, 3)
    cudnn.call("cudnnSetConvolution2dDescriptor", how, 1, 1, 1, 1, 1, 1, 1, 0)
    for name, stream in both_streams(measure):
        cudnn.call("cudnnSetStream", handle, stream)
        for algorithm in (0, 1):
            shapes = (handle, before, kernel, how, after, algorithm, byref(size))
            cudnn.call("cudnnGetConvolutionForwardWorkspaceSize", *shapes)
            room = measure.memory(max(size.value, 1))

            def convolve(algorithm: int = algorithm, room: c_void_p = room) -> None:
                cudnn.call(
                    "cudnnConvolutionForward", handle, byref(one), before, images, kernel, weights,
                    how, algorithm, room, size, byref(zero), after, results,
                )  # fmt: skip

            measure.work(f"convolution {algorithm}", name, convolve)


def work_of_cufft(measure: Measure) -> None:
    cufft = Library("libcufft")
    measure.start_activity()
    measure.make_context()
    values = measure.memory(8 * 4096 * 16)
    for name, stream in both_streams(measure):
        plan = c_int()
        cufft.call("cufftPlan1d", byref(plan), 4096, 0x29, 16)  # complex to complex
        cufft.call("cufftSetStream", plan, stream)

        def transform(plan: c_int = plan) -> None:
            cufft.call("cufftExecC2C", plan, values, values, -1)

        measure.work("transform", name, transform)


def work_of_curand(measure: Measure) -> None:
    curand = Library("libcurand")
    measure.start_activity()
    measure.make_context()
    values = measure.memory(4 << 16)
    for name, stream in both_streams(measure):
        for kind, number in (("xorwow", 101), ("philox", 161), ("sobol", 201)):
            generator = curand.create("curandCreateGenerator", number)
            curand.call("curandSetStream", generator, stream)

            def generate(generator: c_void_p = generator) -> None:
                curand.call("curandGenerateUniform", generator, values, c_size_t(1 << 16))

            measure.work(f"uniform {kind}", name, generate)


def work_of_nccl(measure: Measure) -> None:
    nccl = Library("libnccl")
    measure.start_activity()
    measure.make_context()
    a, b, device = measure.memory(4 << 16), measure.memory(4 << 16), c_int(0)
    communicator = c_void_p()

    def begin() -> None:
        nccl.call("ncclCommInitAll", byref(communicator), 1, byref(device))

    measure.row("first ncclCommInitAll", "NULL", None, 1, begin)
    for name, stream in both_streams(measure):

        def reduce(stream: c_void_p | None = stream) -> None:
            what = (c_size_t(1 << 16), 7, 0)  # floats, their sum
            nccl.call("ncclAllReduce", a, b, *what, communicator, stream)

        def reduce_in_place(stream: c_void_p | None = stream) -> None:
            nccl.call("ncclAllReduce", a, a, c_size_t(1 << 16), 7, 2, communicator, stream)

        measure.work("all-reduce, 1 rank", name, reduce)
        measure.work("all-reduce in place", name, reduce_in_place)


def work_of_torch(measure: Measure) -> None:
    try:
        import torch
    except ImportError as error:
        raise MissingError(f"not here: {error}") from error
    measure.start_activity()
    device = torch.device("cuda", 0)
    a = torch.ones(256, 256, device=device)
    images = torch.ones(4, 16, 32, 32, device=device)
    weights = torch.ones(16, 16, 3, 3, device=device)
    host = torch.ones(1024)
    stream = torch.cuda.Stream()
    measure.name_stream(None, "NULL")
    measure.name_stream(c_void_p(stream.cuda_stream), "own")
    works: dict[str, Callable[[], object]] = {
        "matmul": lambda: a @ a,
        "bfloat16 matmul": lambda: a.bfloat16() @ a.bfloat16(),
        "convolution": lambda: torch.nn.functional.conv2d(images, weights),
        "fft": lambda: torch.fft.fft(a),
        "rand": lambda: torch.rand(1024, device=device),
        "fill": lambda: a.zero_(),
        "copy to the device": lambda: host.to(device),
        "copy to the host": lambda: a.cpu(),
        "sort": lambda: torch.sort(a),
    }
    for name, current in (("NULL", torch.cuda.default_stream()), ("own", stream)):
        with torch.cuda.stream(current):
            for operation, function in works.items():
                measure.work(operation, name, function)


def work_of_cupy(measure: Measure) -> None:
    try:
        import cupy
    except ImportError as error:
        raise MissingError(f"not here: {error}") from error
    measure.start_activity()
    a = cupy.ones((256, 256), dtype=cupy.float32)
    stream = cupy.cuda.Stream()
    measure.name_stream(None, "NULL")
    measure.name_stream(c_void_p(stream.ptr), "own")
    works: dict[str, Callable[[], object]] = {
        "add": lambda: a + 1,
        "matmul": lambda: a @ a,
        "fft": lambda: cupy.fft.fft(a),
        "random": lambda: cupy.random.random(1024),
        "zeros": lambda: cupy.zeros(1024),
        "copy to the host": lambda: cupy.asnumpy(a),
        "sum": lambda: float(a.sum()),
    }
    for name, current in (("NULL", cupy.cuda.Stream.null), ("own", stream)):
        with current:
            for operation, function in works.items():
                measure.work(operation, name, function)


def work_of_cupti(measure: Measure) -> None:
    """What CUPTI itself submits by public functions; it records nothing of that."""
    if "PRIVATE_TABLES_CUPTI" not in os.environ:
        raise MissingError("not built: see CUPTI above")
    os.environ["PRIVATE_TABLES_ACTIVITY"] = os.environ["PRIVATE_TABLES_CUPTI"]
    measure.make_context()
    measure.row("first start of the activity records", "NULL", None, 1, measure.start_activity)
    activity, measure.activity = measure.activity, None
    if activity is None:
        return
    a = measure.memory(4096)

    def fill_and_flush() -> None:
        check("cuMemsetD8Async", measure.cuda.cuMemsetD8Async(a, 1, c_size_t(4096), None))
        check("cuCtxSynchronize", measure.cuda.cuCtxSynchronize())
        activity.activity_read(measure.text, c_size_t(len(measure.text)))

    measure.work("a fill, with its record", "NULL", fill_and_flush, (0, 0, 1))


WORK: dict[str, Callable[[Measure], None]] = {
    "driver": work_of_driver,
    "cudart-static": lambda measure: work_of_cudart(measure, "static"),
    "cudart-shared": lambda measure: work_of_cudart(measure, "shared"),
    "cublas": work_of_cublas,
    "cudnn": work_of_cudnn,
    "cufft": work_of_cufft,
    "curand": work_of_curand,
    "nccl": work_of_nccl,
    "torch": work_of_torch,
    "cupy": work_of_cupy,
    "cupti": work_of_cupti,
}


def run_child(library: str) -> None:
    measure: Measure | None = None
    try:
        measure = Measure(library)
        WORK[library](measure)
    except BaseException as error:  # also SystemExit of a library's import
        row = {"library": library, "operation": "", "reason": reason_of(error)}
        print(MARK + json.dumps(row), flush=True)
    if measure is not None:
        measure.cuda.private_tables_opened(measure.text, c_size_t(len(measure.text)))
        opened = measure.text.value.decode(errors="replace").splitlines()
        print(MARK + json.dumps({"library": library, "tables": opened}), flush=True)
    sys.stdout.flush()
    os._exit(0)  # without what libraries do at their end


# ---- Building


def output(words: list[str], seconds: float) -> str:
    """Runs a command; raises with the end of its messages if it fails."""
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=seconds, check=False, errors="replace"
    )
    if done.returncode != 0:
        last = " ".join((done.stderr or done.stdout).split())[-300:]
        raise RuntimeError(f"{Path(words[0]).name}: status {done.returncode}: {last}")
    return done.stdout


FIND = """
import ctypes, re
ctypes.CDLL("libcuda.so.1")
print(re.search(r"(/\\S*libcuda\\.so\\S*)", open("/proc/self/maps").read())[1])
"""


def build_front(folder: Path, driver: str) -> None:
    """Builds the library that counts, with a stub for each function of this driver."""
    rows = []
    for line in output(["nm", "-D", "--defined-only", driver], 30).splitlines():
        words = line.split()
        name = words[-1].partition("@")[0]
        own = name.startswith("cuGetProcAddress") or name == "cuGetExportTable"
        if len(words) == 3 and words[1] in "TWi" and name.isidentifier() and not own:
            rows.append(name)
    names = [f"NAME({index}, {name})\n" for index, name in enumerate(sorted(set(rows)))]
    (folder / "names.inc").write_text("".join(names))
    (folder / "front").mkdir()
    output(
        ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", f"-I{folder}",
         "-Wl,-soname,libcuda.so.1", "-Wl,-Bsymbolic", str(HERE / "private_tables.cpp"), "-ldl",
         "-o", str(folder / "front" / "libcuda.so.1")],
        BUILD_SECONDS,
    )  # fmt: skip


def toolkit() -> list[str]:
    """The folders that may have headers and libraries, without include or lib."""
    given = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    nvcc = shutil.which("nvcc")
    given += [str(Path(nvcc).resolve().parents[1])] if nvcc is not None else []
    wheels = [f"{path}/nvidia/cu[0-9]*" for path in sys.path]
    return [*given, *existing("/usr/local/cuda*", *wheels)]


def build_activity(folder: Path) -> None:
    """Builds the library that asks CUPTI, with the newest records that the header has."""
    places = [each for root in toolkit() for each in (f"{root}/extras/CUPTI", root)]
    header = first_existing(
        [f"{place}/include/cupti_activity.h" for place in places], "cupti_activity.h"
    )
    cuda = first_existing([f"{root}/include/cuda.h" for root in toolkit()], "cuda.h")
    libraries = [f"{Path(header).parents[1]}/lib*", *(f"{place}/lib*" for place in places)]
    library = first_existing([f"{each}/libcupti.so*" for each in libraries], "libcupti.so")
    text = Path(header).read_text(errors="replace")
    types = []
    for macro, name in (("KERNEL", "Kernel"), ("MEMCPY", "Memcpy"), ("MEMSET", "Memset")):
        newest = max(map(int, re.findall(rf"}} CUpti_Activity{name}(\d+);", text)), default=0)
        types.append(f"-D{macro}=CUpti_Activity{name}{newest or ''}")
    output(
        ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", f"-I{Path(header).parent}",
         f"-I{Path(cuda).parent}", *types, str(HERE / "private_activity.cpp"), library,
         f"-Wl,-rpath,{Path(library).parent}", "-o", str(folder / "libactivity.so")],
        BUILD_SECONDS,
    )  # fmt: skip


def build_cudart(folder: Path, kind: str) -> None:
    nvcc = shutil.which("nvcc") or first_existing(
        [f"{root}/bin/nvcc" for root in toolkit()], "nvcc"
    )
    output(
        [nvcc, "-std=c++17", "-shared", "-Xcompiler", "-fPIC", "-cudart", kind,
         "-Xlinker", f"-rpath={Path(nvcc).resolve().parents[1]}/lib64",
         str(HERE / "private_tables.cu"), "-o", str(folder / f"lib{kind}.so")],
        BUILD_SECONDS,
    )  # fmt: skip


def build(folder: Path, driver: str) -> bool:
    """Builds what can be built, and says what can't. Returns whether programs can be counted."""
    steps: dict[str, Callable[[], None]] = {
        "counting library": lambda: build_front(folder, driver),
        "CUPTI": lambda: build_activity(folder),
        "nvcc, static cudart": lambda: build_cudart(folder, "static"),
        "nvcc, shared cudart": lambda: build_cudart(folder, "shared"),
    }
    with ThreadPoolExecutor(len(steps)) as pool:
        futures = {name: pool.submit(step) for name, step in steps.items()}
    for name, future in futures.items():
        if (error := future.exception()) is not None:
            print(f"{name}: {reason_of(error)}", flush=True)
    return futures["counting library"].exception() is None


# ---- Running the processes


def run_library(folder: Path, driver: str, library: str, how: str, end: float) -> list[Json]:
    """Runs one process. how: cupti, tables, or plain, in which only public functions count."""
    seconds = min(CHILD_SECONDS, end - time.monotonic())
    if seconds <= 1:
        return [{"library": library, "operation": "", "reason": "no time left"}]
    env = {name: value for name, value in os.environ.items() if not name.startswith("GCX_EXEC")}
    if AUDIT:
        # As gcx exec puts its hooks there. The prefix opens the driver itself.
        shim = folder / "libcounting.so"
        if not shim.exists():
            shutil.copy(folder / "front" / "libcuda.so.1", shim)
        env |= {"LD_AUDIT": AUDIT[0], "PRIVATE_TABLES_DRIVER": f"/./.{driver}"}
        env["GCX_EXEC_PLAN"] = f"gcx-exec-1 driver={driver} shim={shim}"
    else:
        path = [str(folder / "front"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        env |= {"LD_LIBRARY_PATH": ":".join(path), "PRIVATE_TABLES_DRIVER": driver}
    env["PRIVATE_TABLES_FOLDER"] = str(folder)
    activity = folder / "libactivity.so"
    if activity.exists():
        env["PRIVATE_TABLES_CUPTI"] = str(activity)
        if how == "cupti":
            env["PRIVATE_TABLES_ACTIVITY"] = str(activity)
    if how == "tables":
        env["PRIVATE_TABLES_COUNT"] = "1"
    words = [sys.executable, str(Path(__file__).resolve()), "--work", library]
    # Files instead of pipes, so that a grandchild that goes on does not keep this process waiting.
    said, errors = folder / f"{library}-{how}.out", folder / f"{library}-{how}.err"
    ended = ""
    try:
        with said.open("wb") as out, errors.open("wb") as error:
            done = subprocess.run(
                words, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=error,
                timeout=seconds, check=False,
            )  # fmt: skip
        if done.returncode != 0:
            ended = f"ended with status {done.returncode}"
    except subprocess.TimeoutExpired:
        ended = f"took over {seconds:.0f} s"
    rows = []
    for line in said.read_text(errors="replace").splitlines():
        if line.startswith(MARK) and line.endswith("}"):
            rows.append(json.loads(line[len(MARK) :]))
    if ended:
        last = " ".join(errors.read_text(errors="replace").split())[-160:]
        reason = f"{ended} after {len(rows)} rows ({how}): {last}"
        rows.append({"library": library, "operation": "", "reason": reason})
    return rows


def run_twice(folder: Path, driver: str, library: str, end: float) -> list[Json]:
    """Merges the rows of a process with CUPTI and of one whose private tables are counted."""
    with_cupti = run_library(folder, driver, library, "cupti", end)
    others = run_library(folder, driver, library, "tables", end)
    if not any("calls" in row for row in others) and any("calls" in row for row in with_cupti):
        others += run_library(folder, driver, library, "plain", end)
    merged: dict[tuple[str, ...], Json] = {}
    for source, rows in (("cupti", with_cupti), ("other", others)):
        for row in rows:
            words = (row.get("operation", ""), row.get("stream", ""), row.get("reason", ""))
            merged.setdefault((*words, str("tables" in row)), dict(row))[source] = row
    return list(merged.values())


# ---- The table


def hooked_names() -> set[str]:
    """The functions with a hook."""
    text = HOOKS.read_text() if HOOKS.exists() else ""
    return set(re.findall(r"^[A-Z]{1,2}\((?:[A-Z]\w+, )?(cu\w+), \w+", text, re.MULTILINE))


def is_hooked(label: str, hooked: set[str]) -> bool:
    return re.sub(r"(_v\d+)?(_ptsz|_ptds)?$", "", label) in hooked


def submitted(calls: dict[str, int]) -> list[int]:
    """Returns how many kernels, copies and fills public functions submitted, without graphs."""
    prefixes = (r"cuLaunch(?!HostFunc)", r"cuMemcpy", r"cuMemset")
    return [
        sum(count for label, count in calls.items() if re.match(prefix, label))
        for prefix in prefixes
    ]


def public_text(calls: dict[str, int], hooked: set[str]) -> str:
    parts = []
    for label, count in sorted(calls.items()):
        if SUBMITS.match(label):
            parts.append(f"{count} {label}{'' if is_hooked(label, hooked) else '*'}")
    return ", ".join(parts) or "-"


def numbers_text(numbers: list[int] | None) -> str:
    if numbers is None:
        return "?"
    parts = [f"{number} {kind}" for number, kind in zip(numbers, KINDS, strict=True) if number]
    return ", ".join(parts) or "-"


def past_hooks(row: Json) -> str:
    """Returns the work of a row that no public function submitted."""
    if "calls" not in row:
        return ""
    counts = [numbers for numbers in (row["seen"], row["known"]) if numbers is not None]
    if not counts or any(label.startswith("cuGraphLaunch") for label in row["calls"]):
        return ""
    wanted = [max(numbers) for numbers in zip(*counts, strict=True)]
    difference = [
        max(0, seen - public) for seen, public in zip(wanted, submitted(row["calls"]), strict=True)
    ]
    if not any(difference):
        return ""
    return numbers_text(difference) + ("" if row["seen"] is not None else " (by what is known)")


def cells(row: Json, hooked: set[str]) -> list[str] | None:
    """Returns a line of the table, or null for a first call that tells nothing more."""
    if "reason" in row:
        return [row["library"], row["operation"] or "-", "-", row["reason"], "", "", ""]
    main = row.get("cupti", row)
    past = past_hooks(main)
    if not row["shown"] and not past:
        return None
    public = public_text(main["calls"], hooked)
    private = "?"
    if (other := row.get("other")) is not None:
        without = public_text(other["calls"], hooked)
        public += f"; without CUPTI: {without}" if without != public else ""
        tables = [(label, n) for label, n in sorted(other["calls"].items()) if " " in label]
        private = ", ".join(f"{n} {label.partition(' ')[2]}" for label, n in tables) or "-"
    seen = numbers_text(main["seen"])
    streams = ", ".join(f"{n} {name}" for name, n in main.get("streams", {}).items())
    seen += f" in {streams}" if streams and streams.split(" ", 1)[1] != row["stream"] else ""
    return [row["library"], row["operation"], row["stream"], public, seen, past, private]


HEAD = ["library", "operation", "stream", "work by public functions", "seen by CUPTI",
        "past the hooks", "calls of private tables"]  # fmt: skip


def print_table(rows: list[Json]) -> None:
    hooked = hooked_names()
    lines = [HEAD, *filter(None, (cells(row, hooked) for row in rows if "tables" not in row))]
    widths = [max(min(len(line[i]), 60) for line in lines) for i in range(len(HEAD))]
    for line in lines:
        print(" | ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)))
    print(
        f"\nFigures are of {CALLS} calls, or of one where the operation begins with first. Of what"
        " is not seen, the known number counts.\n* src/interpose has no hook for it."
    )
    past = sorted({row["library"] for row in rows if past_hooks(row.get("cupti", row))})
    print(f"Work past the hooks: {', '.join(past) or 'none'}")
    for row in rows:
        if "tables" in row:
            tables = row.get("other", row)["tables"]
            print(f"private tables of {row['library']}: {', '.join(tables) or 'none'}")
        elif "kernels" in row.get("cupti", {}) and past_hooks(row["cupti"]):
            names = ", ".join(row["cupti"]["kernels"])[:200]
            print(f"kernels of {row['library']}, {row['operation']}, {row['stream']}: {names}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Which work goes past the hooks of gcx exec.")
    parser.add_argument("--audit", help="libgcx-audit.so, to put the counting library there")
    parser.add_argument("--driver", help="the real libcuda; the loader's if not given")
    parser.add_argument("--json", metavar="FILE", help="write all figures to a file too")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(WORK))
    arguments = parser.parse_args()
    if arguments.work:
        run_child(arguments.work)
    if arguments.audit:
        AUDIT.append(str(Path(arguments.audit).resolve()))
    if unknown := [name for name in arguments.names if name not in WORK]:
        parser.error(f"no library {unknown[0]}; there are {', '.join(WORK)}")
    end = time.monotonic() + ALL_SECONDS
    try:
        driver = arguments.driver or output([sys.executable, "-c", FIND], 30).strip()
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        sys.exit(f"no libcuda here: {reason_of(error)}")
    print(f"driver: {Path(driver).resolve()}", flush=True)
    with tempfile.TemporaryDirectory(prefix="gcx-tables-") as name:
        folder = Path(name)
        if not build(folder, str(Path(driver).resolve())):
            sys.exit(1)
        with ThreadPoolExecutor(CHILDREN) as pool:
            results = [
                pool.submit(run_twice, folder, str(Path(driver).resolve()), library, end)
                for library in arguments.names or WORK
            ]
            rows = [row for result in results for row in result.result()]
        if arguments.json:
            Path(arguments.json).write_text(json.dumps(rows))
        print_table(rows)


if __name__ == "__main__":
    main()
