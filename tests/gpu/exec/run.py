"""Runs programs that do not use gcx in a part of a GPU, by `gcx exec`:

    python tests/gpu/exec/run.py BUILD [NAME...]

BUILD is a build folder, NAME a step (nvcc cost driver random torch products cupy numba jax nccl mps
shares loops tests); all if not given. Needs a GPU of 132 SMs, nvcc, and of the Python packages
torch (with triton), cupy, numba and jax; a step without its package is skipped. nccl needs two
GPUs. tests needs PYTORCH_TESTS, the folder test of PyTorch's source, and runs what is in
PYTORCH_TEST_FILES, as test_cuda.py or test_cuda.py:-k:graph, or some files on streams, graphs and
products. Prints figures as text, and last "N passed, N failed".
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SMS = 132
SIZES = [24, 112]
SECONDS = 10.0
LAUNCH_RATIO = 1.02

Json = dict[str, Any]


class Suite:
    def __init__(self, build: Path) -> None:
        self.build = build
        self.gcx = str(build / "src" / "cli" / "gcx")
        self.passed = 0
        self.failed = 0
        self.folder = Path(tempfile.mkdtemp(prefix="gcx-exec-"))
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("GCX_")}

    def check(self, ok: bool, what: str) -> None:
        self.passed += ok
        self.failed += not ok
        print(f"{'ok' if ok else 'FAILED'}: {what}", flush=True)

    def inside(self, sms: int | str | None, *options: str) -> list[str]:
        """Returns the words before a command; none for the plain run."""
        if sms is None:
            return []
        return [self.gcx, "exec", "--sms", str(sms), *options, "--"]

    def run(self, words: list[str], env: dict[str, str] | None = None) -> str:
        done = subprocess.run(
            words,
            env={**self.environment, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: status {done.returncode}\n{done.stderr}")
        for line in done.stderr.splitlines():
            if not line.startswith("gcx exec: "):
                print(f"  {line}", flush=True)
        return done.stdout

    def answer(self, words: list[str], env: dict[str, str] | None = None) -> Json:
        value = json.loads(self.run(words, env).splitlines()[-1])
        assert isinstance(value, dict)
        return value

    def python(self, name: str, *arguments: str) -> list[str]:
        return [sys.executable, str(HERE / name), *arguments]


def needs(*packages: str) -> None:
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise ModuleNotFoundError(package)


def check_seen(suite: Suite, name: str, sms: int | None, answer: Json) -> None:
    """Each kind of stream ran on all SMs that the program has, and on the same ones."""
    wanted = SMS if sms is None else sms
    where = f"{name}, {'plain' if sms is None else f'in {sms} SMs'}"
    all_seen = set().union(*answer["seen"].values())
    for kind, seen in answer["seen"].items():
        suite.check(len(seen) == wanted, f"{where}: {kind} ran on {len(seen)} SMs")
    suite.check(len(all_seen) == wanted, f"{where}: all of it ran on {len(all_seen)} SMs")


def step_nvcc(suite: Suite) -> None:
    # In the last one NULL is the thread's own default stream, in what copies and sets too.
    for cudart, stream in (("static", "legacy"), ("shared", "legacy"), ("static", "per-thread")):
        name = f"nvcc, {cudart} cudart, {stream} default stream"
        program = str(suite.folder / f"smid-{cudart}-{stream}")
        suite.run(["nvcc", "-O2", "-std=c++17", "-cudart", cudart, "-arch=native",
                   "--default-stream", stream, "-o", program, str(HERE / "smid.cu")])  # fmt: skip
        plain = suite.answer([program])
        check_seen(suite, name, None, plain)
        for sms in SIZES:
            inside = suite.answer([*suite.inside(sms), program])
            check_seen(suite, name, sms, inside)
            reported = (inside["attribute"], inside["properties"], inside["cooperative"])
            suite.check(reported == (sms, sms, sms), f"{name}: reports {reported} of {sms} SMs")
        lost = suite.answer([*suite.inside(24), program, "threads"])["lost_to_threads"]
        suite.check(lost <= 0, f"{name}: 2,000 threads that have ended lose {lost} bytes")
        whole = suite.answer([*suite.inside(24, "--report", "device"), program])
        seen = (whole["attribute"], whole["cooperative"])
        # The driver heeds the partition: a grid for the whole device is too large.
        suite.check(seen == (SMS, -1), f"{name}, --report device: reports {seen}")


def step_cost(suite: Suite) -> None:
    """The hooks cost launches next to nothing in a program without blocking streams, which paired
    rounds in one process show. What they cost with blocking streams is printed."""
    program = str(suite.folder / "launch_cost")
    suite.run(["nvcc", "-O2", "-std=c++17", "-arch=native", "-o", program,
               str(HERE / "launch_cost.cu")])  # fmt: skip
    plain = suite.answer([program])
    inside = suite.answer([*suite.inside(112), program])
    suite.check(not plain["changed"] and inside["changed"], "launches are gcx's inside")
    for name, values in inside.items():
        if name in ("changed", "default next to"):
            continue
        print(f"launch, {name}: {values['found_us']:.3f} us, the driver's own "
              f"{values['driver_us']:.3f}, ratio {values['ratio']:.4f}; plain "
              f"{plain[name]['found_us']:.3f} us")  # fmt: skip
        if "blocking next" not in name and not name.startswith("blocking"):
            suite.check(values["ratio"] <= LAUNCH_RATIO, f"launch, {name}: {values['ratio']:.4f}")
    for count, microseconds in inside["default next to"].items():
        print(f"launch in the default stream next to {count} blocking streams with work: "
              f"{microseconds:.2f} us, plain {plain['default next to'][count]:.2f}")  # fmt: skip


def step_driver(suite: Suite) -> None:
    """The driver answers as recorded, and inside as plain but for what inside.txt lists."""
    program = str(suite.build / "tests" / "driver" / "driver-conformance")
    folder = HERE.parents[1] / "driver"
    record = str(suite.folder / "record.txt")
    suite.run([program, "--record", record])
    compare = [program, "--compare", record, "--except", str(folder / "inside.txt")]
    words = [*suite.inside(64), *compare]
    done = subprocess.run(words, env=suite.environment, capture_output=True, text=True, check=False)
    print(done.stdout)
    suite.check(done.returncode == 0, f"driver: {done.stdout.splitlines()[-1]}")


def step_random(suite: Suite) -> None:
    """Random programs keep their order inside. What a plain run says is printed."""
    program = str(suite.build / "tests" / "random" / "random-order")
    for threads in ("global", "free"):
        words = [program, "--operations", "50000", "--max-us", "200", "--threads", threads,
                 "--failed", str(suite.folder / "random")]  # fmt: skip
        for sms in (None, 24):
            done = subprocess.run(
                [*suite.inside(sms), *words], env=suite.environment, capture_output=True, text=True,
                check=False,
            )  # fmt: skip
            where = f"random programs, {threads} order, {sms or 'all'} SMs"
            print(f"{where}: {done.stdout.splitlines()[-1]}\n{done.stderr}")
            if sms is not None:
                suite.check(done.returncode == 0, where)


def step_torch(suite: Suite) -> None:
    needs("torch", "triton")
    import torch

    files = {sms: str(suite.folder / f"torch-{sms}.pt") for sms in (None, *SIZES)}
    for sms, file in files.items():
        words = [*suite.inside(sms), *suite.python("torch_work.py", file)]
        answer = suite.answer(words)
        check_seen(suite, "torch", sms, answer)
        suite.check(
            answer["properties"] == (sms or SMS), f"torch: reports {answer['properties']} SMs"
        )
        print(f"torch, {sms or 'all'} SMs: bf16 product of 8192^3 {answer['product_ms']:.2f} ms")
    plain = torch.load(files[None])
    for sms in SIZES:
        inside = torch.load(files[sms])
        for name, value in plain.items():
            # Sums of other lengths in another order: a part has other algorithms.
            close = torch.allclose(inside[name], value, rtol=2e-2, atol=2e-2)
            suite.check(close, f"torch in {sms} SMs: {name} is as in the plain run")


def step_products(suite: Suite) -> None:
    needs("torch")
    for sms in (None, 112, 104, 24):
        answer = suite.answer([*suite.inside(sms), *suite.python("products.py")])
        suite.check(
            answer["reported"] == (sms or SMS), f"products: reports {answer['reported']} SMs"
        )
        for name in ("bf16", "fp16", "fp32"):
            wrong = answer[name]["wrong"]
            where = f"products in {name}, {sms or 'all'} SMs"
            suite.check(wrong == 0, f"{where}: {wrong} of {answer['shapes']} are wrong")
        if sms is not None:
            full = suite.answer(
                [*suite.inside(sms, "--report", "partition"), *suite.python("products.py")]
            )
            # This depends on cuBLAS's version, and is why cuBLAS sees the device's count.
            print(f"with {sms} SMs reported, cuBLAS has wrong: {full['bf16']}")


def step_cupy(suite: Suite) -> None:
    needs("cupy")
    sums = set()
    for sms in (None, *SIZES):
        answer = suite.answer([*suite.inside(sms), *suite.python("cupy_work.py")])
        check_seen(suite, "cupy", sms, answer)
        suite.check(
            answer["properties"] == (sms or SMS), f"cupy: reports {answer['properties']} SMs"
        )
        sums.add(answer["sum"])
        early = answer["early"]
        suite.check(early == 0, f"cupy, {sms or 'all'} SMs: {early} reads of 40 were too early")
    suite.check(len(sums) == 1, "cupy: results are as in the plain run")


def step_numba(suite: Suite) -> None:
    needs("numba")
    try:
        suite.run(suite.python("numba_work.py"))
    except RuntimeError as error:
        # As with a NumPy that is too new for it.
        raise ModuleNotFoundError(f"a numba that runs: {str(error).splitlines()[-1]}") from None
    for sms in (None, *SIZES):
        answer = suite.answer([*suite.inside(sms), *suite.python("numba_work.py")])
        suite.check(answer["right"], f"numba, {sms or 'all'} SMs: the result is right")
        suite.check(
            answer["properties"] == (sms or SMS), f"numba: reports {answer['properties']} SMs"
        )


def step_jax(suite: Suite) -> None:
    needs("jax")
    env = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    plain = suite.answer(suite.python("jax_work.py"), env)
    inside = suite.answer([*suite.inside(24), *suite.python("jax_work.py")], env)
    slower = inside["product_ms"] / plain["product_ms"]
    print(f"jax, bf16 product of 8192^3: {plain['product_ms']:.2f} ms plain, "
          f"{inside['product_ms']:.2f} in 24 SMs")  # fmt: skip
    suite.check(slower > 3, f"jax: {slower:.1f} times as slow in 24 SMs of {SMS}")
    same = abs(inside["mean"] - plain["mean"]) <= 1e-2 * plain["mean"]
    suite.check(same, "jax: the result is as in the plain run")


def step_nccl(suite: Suite) -> None:
    needs("torch")
    import torch

    if torch.cuda.device_count() < 2:
        raise ModuleNotFoundError("a second GPU")
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
             str(HERE / "nccl_work.py")]  # fmt: skip
    for sms in (None, 24):
        output = suite.run([*suite.inside(sms), *words])
        suite.check(output.count("right") == 2, f"nccl, {sms or 'all'} SMs: sums are right")


@contextmanager
def mps(suite: Suite) -> Iterator[dict[str, str]]:
    """Starts a private daemon."""
    env = {"CUDA_MPS_PIPE_DIRECTORY": str(suite.folder / "pipe"),
           "CUDA_MPS_LOG_DIRECTORY": str(suite.folder / "log")}  # fmt: skip
    for folder in env.values():
        Path(folder).mkdir(exist_ok=True)
    suite.run(["nvidia-cuda-mps-control", "-d"], env)
    try:
        yield env
    finally:
        subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, check=False,
                       env={**suite.environment, **env})  # fmt: skip


def side_by_side(suite: Suite, env: dict[str, str], commands: dict[str, list[str]]) -> Json:
    """Starts each program when the previous ones are ready, so that the rest is what they leave,
    begins all together, and returns their answers."""
    processes = {}
    for name, words in commands.items():
        process = subprocess.Popen(
            words, env={**suite.environment, **env}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        processes[name] = process
    for process in processes.values():
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    return {name: json.loads(process.communicate()[0]) for name, process in processes.items()}


def step_mps(suite: Suite) -> None:
    needs("torch")
    small = suite.python("interference.py", "small", str(SECONDS))
    big = suite.python("interference.py", "big", str(SECONDS))
    with mps(suite) as env:
        plain = side_by_side(suite, env, {"small": small, "big": big})
        parted = side_by_side(
            suite, env,
            {"small": [*suite.inside(24), *small], "big": [*suite.inside("rest"), *big]},
        )  # fmt: skip
    for name, answer in (("plain MPS", plain), ("24 and the rest", parted)):
        print(f"{name}: the small one p50 {answer['small']['p50_us']:.0f} us, "
              f"p99 {answer['small']['p99_us']:.0f} us; "
              f"the big one {answer['big']['per_second']:.0f} products a second")  # fmt: skip
    better = plain["small"]["p99_us"] / parted["small"]["p99_us"]
    ratio = parted["big"]["per_second"] / plain["big"]["per_second"]
    suite.check(better >= 10, f"the small one's p99 is {better:.1f} times better than plain MPS's")
    suite.check(ratio >= 0.8, f"the big one keeps {ratio:.2f} of its speed")


def step_shares(suite: Suite) -> None:
    """30 and 70 percent under MPS at the same time: each has its own SMs and right results."""
    needs("torch", "triton")
    import torch

    shares = ("30%", "70%")
    files = {name: str(suite.folder / f"shares-{name.strip('%')}.pt") for name in ("100%", *shares)}
    suite.run(suite.python("torch_work.py", files["100%"]))
    with mps(suite) as env:
        env["GCX_RESERVATION_DIR"] = str(suite.folder)
        running = {
            share: subprocess.Popen(
                [*suite.inside(share), *suite.python("torch_work.py", files[share])],
                env={**suite.environment, **env},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
            )
            for share in shares
        }
        together = 0
        while together < 2 and all(process.poll() is None for process in running.values()):
            together = len(json.loads(suite.run([suite.gcx, "ps", "--json"], env))["reservations"])
        answers = {}
        for share, process in running.items():
            output = process.communicate()[0]
            suite.check(process.returncode == 0, f"{share}: it ends with {process.returncode}")
            answers[share] = json.loads(output.splitlines()[-1])
    suite.check(together == 2, "both have their SMs at the same time")
    reported = {share: int(answer["properties"]) for share, answer in answers.items()}
    suite.check(
        sum(reported.values()) <= SMS, f"30% is {reported['30%']} SMs, 70% is {reported['70%']}"
    )
    plain = torch.load(files["100%"])
    for share in shares:
        check_seen(suite, f"torch in {share}", reported[share], answers[share])
        inside = torch.load(files[share])
        for name, value in plain.items():
            close = torch.allclose(inside[name], value, rtol=2e-2, atol=2e-2)
            suite.check(close, f"torch in {share}: {name} is as in the plain run")


def step_loops(suite: Suite) -> None:
    """Two loops of matrix products, one with 30 percent of the GPU and one with 70."""
    needs("torch")
    loop = suite.python("interference.py", "loop", str(SECONDS))
    shares = ("30", "70")
    with mps(suite) as env:
        alone = side_by_side(suite, env, {"alone": loop})["alone"]["per_second"]
        ways = {
            "plain MPS": dict.fromkeys(shares, loop),
            "MPS percentages": {
                share: ["env", f"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE={share}", *loop]
                for share in shares
            },
            "gcx exec": {share: [*suite.inside(f"{share}%"), *loop] for share in shares},
        }
        found = {name: side_by_side(suite, env, commands) for name, commands in ways.items()}
    print(f"alone: {alone:.1f} products of 4,096 a second in fp32")
    for name, answers in found.items():
        parts = [answers[share]["per_second"] / alone for share in shares]
        print(f"{name}: {parts[0]:.3f} and {parts[1]:.3f} of that, {sum(parts):.3f} in all")
    for share in shares:
        part = found["gcx exec"][share]["per_second"] / alone
        sms = SMS * int(share) // 100 // 8 * 8  # rounded down to groups of 8
        close = abs(part - sms / SMS) < 0.05
        suite.check(
            close, f"gcx exec --sms {share}%, {sms} of {SMS} SMs: {part:.3f} of its speed alone"
        )


def summary_of(output: str) -> str:
    """Returns the counts that unittest ends with, without the run time."""
    ran = re.findall(r"^Ran (\d+) tests?", output, re.M)
    return f"ran {ran}, {re.findall(r'^(?:OK|FAILED).*', output, re.M)}"


def step_tests(suite: Suite) -> None:
    needs("torch")
    folder = os.environ.get("PYTORCH_TESTS")
    if not folder:
        raise ModuleNotFoundError("PYTORCH_TESTS")
    some = (
        "test_cuda.py test_cuda_multigpu.py test_matmul_cuda.py test_cuda_trace.py "
        "test_cuda_primary_ctx.py test_linalg.py test_nn.py test_ops_fwd_gradients.py"
    )
    for name in os.environ.get("PYTORCH_TEST_FILES", some).split():
        found: list[tuple[int, str]] = []
        running = [
            subprocess.Popen(
                [*suite.inside(sms), sys.executable, *name.split(":")],
                cwd=folder,
                env=suite.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            for sms in (None, 112)
        ]
        failures = []
        for process in running:
            said = process.communicate()[1]
            found.append((process.returncode, summary_of(said)))
            failures.append(set(re.findall(r"^(?:FAIL|ERROR): (.*)", said, re.M)))
            if "ran []" in found[-1][1]:
                raise RuntimeError(f"{name} ran no test\n{said[-2000:]}")
        print(f"{name}: outside {found[0]}, inside {found[1]}", flush=True)
        for which in sorted(failures[0] ^ failures[1]):
            print(f"  one of the two alone: {which}", flush=True)
        suite.check(found[0] == found[1], f"{name} gives the same inside as outside")


STEPS: dict[str, Callable[[Suite], None]] = {
    "nvcc": step_nvcc,
    "cost": step_cost,
    "driver": step_driver,
    "random": step_random,
    "torch": step_torch,
    "products": step_products,
    "cupy": step_cupy,
    "numba": step_numba,
    "jax": step_jax,
    "nccl": step_nccl,
    "mps": step_mps,
    "shares": step_shares,
    "loops": step_loops,
    "tests": step_tests,
}


def main() -> int:
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(STEPS):
        print(__doc__)
        return 2
    suite = Suite(Path(sys.argv[1]).resolve())
    for name in sys.argv[2:] or STEPS:
        print(f"== {name}", flush=True)
        try:
            STEPS[name](suite)
        except ModuleNotFoundError as missing:
            print(f"skipped: {name} needs {missing}")
        except Exception as error:  # the other steps still give results
            suite.check(False, f"{name}: {error!r}")
    print(f"{suite.passed} passed, {suite.failed} failed")
    return 0 if suite.failed == 0 and suite.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
