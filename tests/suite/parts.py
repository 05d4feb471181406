"""The parts that test the library, the simulation, the command and the Python package."""

from __future__ import annotations

import json
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.suite.builds import (
    CHEAP,
    FUZZ,
    MAIN,
    MAIN_OPTIONS,
    UNITY,
    WHEEL,
    build_fuzzers,
    build_main,
    building_main,
    compiled,
    configured,
    main_env,
    test_programs,
)
from tests.suite.runner import BUILD, ROOT, Suite, execute, tracked

WHEELS, SITE = BUILD / "wheel", BUILD / "site"
DIST = BUILD / "dist"
PYTHON_TESTS = ROOT / "bindings" / "python" / "tests"
RAY = PYTHON_TESTS / "test_ray.py"
SANITIZER_ENV = {
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1",
}
FUZZ_SECONDS = 60
HARNESSES = ("api", "profile", "command", "published", "reservation")
# What one thread does by the word of another version of the driver, which neither threads nor
# headers nor a processor change: units and the address sanitizer have it.
REPEATED = ("repeated",)
# Everything else is built with 13.5.
HEADERS = {
    "12.4": "nvidia-cuda-runtime-cu12==12.4.127",
    "12.8": "nvidia-cuda-runtime-cu12==12.8.90",
    "13.0": "nvidia-cuda-runtime==13.0.96",
}


def fuzz(suite: Suite, name: str) -> None:
    """Runs one harness for a while; the build folder keeps what it finds."""
    corpus = FUZZ / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    finds = FUZZ / "finds"
    finds.mkdir(exist_ok=True)
    suite.run(
        f"fuzz {name}",
        [FUZZ / "tests" / "fuzz" / f"fuzz-{name}", f"-max_total_time={FUZZ_SECONDS}",
         "-timeout=30", "-print_funcs=0", "-verbosity=0", "-close_fd_mask=1",
         f"-artifact_prefix={finds}/",
         corpus, ROOT / "tests" / "fuzz" / "seeds" / name],
    )  # fmt: skip


def part_style(suite: Suite) -> None:
    """Formatting and linters of all languages, the spelling, and the site of the pages."""
    suite.run(
        "clang-format",
        ["clang-format", "--dry-run", "-Werror", *tracked("*.c", "*.h", "*.cpp", "*.hpp")],
    )
    python = tracked("*.py")
    suite.run("ruff", ["ruff", "check", "--no-cache", *python])
    suite.run("ruff format", ["ruff", "format", "--no-cache", "--check", *python])
    suite.run("mypy", ["mypy", f"--cache-dir={BUILD / 'mypy'}", *python])
    scripts = [ROOT / ".ci" / "run", *tracked("*.sh")]
    suite.run("shellcheck", ["shellcheck", "-x", *scripts])
    pages = tracked("*.md")
    suite.run("codespell", ["codespell", "--ignore-words-list=inout", *pages])
    suite.run("mkdocs", ["mkdocs", "build", "--strict", "--quiet", f"--site-dir={BUILD / 'docs'}"])


def part_units(suite: Suite) -> None:
    """The core, the C API, the ABI, the simulated driver, the fuzzers' seeds."""
    if build_main(suite):
        suite.meson_test("units", MAIN)


def part_dist(suite: Suite) -> None:
    """The source tarball: a build of what `meson dist` packs, and its unit tests."""
    if not (ROOT / ".git").exists():
        suite.say("not tested: `meson dist` needs a Git repository, and these sources are in none")
        return
    if not build_main(suite):
        return
    dist: list[str | Path] = ["meson", "dist", "-C", MAIN, "--no-tests", "--formats", "gztar"]
    if not suite.run("meson dist", [*dist, "--allow-dirty"]):
        return
    shutil.rmtree(DIST, ignore_errors=True)
    (archive,) = (MAIN / "meson-dist").glob("*.tar.gz")
    shutil.unpack_archive(archive, DIST)
    (sources,) = DIST.iterdir()
    # As deep in its sources as the main build is, with CUDA's headers at the same relative path:
    # ccache has the objects.
    folder = sources / "build" / "tests"
    env = {"CCACHE_BASEDIR": str(sources)}
    setup: list[str | Path] = ["meson", "setup", folder, sources, "-Dwerror=true", *UNITY]
    setup += MAIN_OPTIONS
    found = execute([sys.executable, ROOT / "tools" / "find_cuda_include.py"])
    headers = Path(found.stdout.strip())
    if headers.is_relative_to(ROOT / ".venv"):
        (sources / ".venv").symlink_to(ROOT / ".venv")
        setup.append(f"-Dtoolkit_include={sources / headers.relative_to(ROOT)}")
    suites = ("core", "api", "sim")
    if suite.run("configure the tarball", setup, env) and suite.run(
        "build the tarball", ["ninja", "-C", folder, *test_programs(folder, suites)], env
    ):
        suite.meson_test("tarball", folder, env, suites, REPEATED)


def part_command(suite: Suite) -> None:
    """The command, the examples, the installation, and another library on the simulation."""
    if build_main(suite):
        suite.pytest("command", ROOT / "tests" / "cli", main_env())
        suite.pytest("install", ROOT / "tests" / "install", main_env())
        suite.pytest("cuda-bindings", ROOT / "tests" / "sim", main_env())


wheels_built: list[bool] = []


def build_wheel(suite: Suite) -> bool:
    """The wheels of gcx and gcx-sim, installed in build/site by the first part that uses them."""
    # Not while the main build compiles the same sources: ccache has them afterwards.
    with building_main:
        if not wheels_built:
            wheels_built.append(make_wheel(suite))
        return wheels_built[0]


def make_wheel(suite: Suite) -> bool:
    for folder in (WHEELS, SITE):
        shutil.rmtree(folder, ignore_errors=True)
    pip: list[str | Path] = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    build = [f"--config-settings=build-dir={WHEEL}", "--no-build-isolation", "--no-deps"]
    settings = [f"--config-settings=setup-args={option}" for option in ("-Dwerror=true", *UNITY)]
    if not suite.run("wheel", [*pip, "wheel", ROOT, "-w", WHEELS, *settings, *build]):
        return False
    simulator = ROOT / "bindings" / "python" / "sim"
    if not suite.run("wheel of gcx-sim", [*pip, "wheel", simulator, "-w", WHEELS, *build]):
        return False
    install = [*pip, "install", "--no-index", "--no-deps", "--target", SITE]
    return suite.run("install the wheels", [*install, *WHEELS.glob("*.whl")])


def on_driver(driver: str) -> dict[str, str]:
    return {"PYTHONPATH": str(SITE), "GCX_DRIVER": f"sim:h100@{driver}"}


def part_python(suite: Suite) -> None:
    """The Python package: its wheels, and as installed from them on a simulated driver."""
    if build_wheel(suite):
        suite.pytest("package", ROOT / "tests" / "package", {"GCX_WHEELS": str(WHEELS)})
        suite.pytest("python-13.0", PYTHON_TESTS, on_driver("13.0"), f"--ignore={RAY}")


def part_drivers(suite: Suite) -> None:
    """The Python package on three more simulated drivers, and in a Ray of two nodes."""
    if build_wheel(suite):
        for driver in ("12.4", "13.1", "13.5"):
            suite.pytest(f"python-{driver}", PYTHON_TESTS, on_driver(driver))
        suite.pytest("ray", RAY, on_driver("13.0"))


def part_headers(suite: Suite) -> None:
    """Compiles with other CUDA headers what includes them; tests it with the oldest."""
    for version, package in HEADERS.items():
        headers = BUILD / "headers" / version
        if not headers.exists() and not suite.run(
            f"headers of CUDA {version}",
            [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check",
             "--no-deps", "--target", headers, package],
        ):  # fmt: skip
            continue
        include = next(headers.glob("nvidia/*/include"))
        folder = BUILD / f"headers-{version}"
        # The command knows no cuda.h, and the fuzzers' seeds are tested elsewhere.
        options = [f"-Dtoolkit_include={include}", "-Dexamples=false", *CHEAP, "-Doptimization=2"]
        oldest = version == next(iter(HEADERS))
        # gcx.h and the ABI know nothing of CUDA's headers.
        suites = ("sim", "api") if oldest else ("sim",)
        if not configured(suite, folder, *options):
            continue
        targets = [*test_programs(folder, suites), "tests/gpu/gcx-gpu-tests"]
        if compiled(suite, folder, targets):
            suite.meson_test(f"CUDA {version} headers", folder, suites=suites, without=REPEATED)


def part_meson(suite: Suite) -> None:
    """Configures with the oldest Meson that meson.build admits, and without its warnings."""
    site, folder = BUILD / "oldest-meson" / "site", BUILD / "oldest-meson" / "build"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    if not site.exists() and not suite.run("Meson 1.3", [*pip, "--target", site, "meson==1.3.0"]):
        return
    shutil.rmtree(folder, ignore_errors=True)
    setup = ["-m", "mesonbuild.mesonmain", "setup", "--fatal-meson-warnings"]
    env = {"PYTHONPATH": str(site)}
    suite.run("configure with Meson 1.3", [sys.executable, *setup, folder], env)


def part_address(suite: Suite) -> None:
    """Everything under the address and undefined-behaviour sanitizers, by Clang."""
    if build_fuzzers(suite, "meson-test-prereq"):
        suite.meson_test("address", FUZZ, SANITIZER_ENV)


def part_thread(suite: Suite) -> None:
    """The core, the C API and the simulation under the thread sanitizer."""
    folder = BUILD / "thread"
    options = ["-Db_sanitize=thread", "-Db_lundef=false", "-Dexamples=false", *CHEAP]
    suites = ("sim", "core", "api")
    if configured(suite, folder, *options, "-Doptimization=1") and compiled(
        suite, folder, test_programs(folder, suites)
    ):
        suite.meson_test("thread", folder, SANITIZER_ENV, suites, REPEATED)


def part_fuzz(suite: Suite) -> None:
    """A minute of each fuzzer, under the address and undefined-behaviour sanitizers."""
    if not build_fuzzers(suite, *(f"tests/fuzz/fuzz-{name}" for name in HARNESSES)):
        return
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: fuzz(suite, name), HARNESSES))


def part_arm(suite: Suite) -> None:
    """A build for 64-bit Arm, whose unit tests run under qemu."""
    folder = BUILD / "aarch64"
    options = ["--cross-file", str(ROOT / "tests" / "aarch64.ini"), "-Dexamples=false", *CHEAP]
    with_ccache = BUILD / "aarch64-ccache.ini"
    compilers = {"c": "gcc", "cpp": "g++"}
    lines = [f"{key} = ['ccache', 'aarch64-linux-gnu-{name}']" for key, name in compilers.items()]
    with_ccache.write_text("\n".join(["[binaries]", *lines]) + "\n")
    options += ["--cross-file", str(with_ccache), "-Doptimization=1"]
    suites = ("sim", "core", "api")
    if configured(suite, folder, *options) and compiled(
        suite, folder, test_programs(folder, suites)
    ):
        suite.meson_test("aarch64", folder, {"CHECK_EMULATED": "1"}, suites, REPEATED)


def part_tidy(suite: Suite) -> None:
    """clang-tidy over the C++ sources."""
    # A unit of the build has ten sources: most of the time goes into the standard library's
    # headers, which are then read once. Three minutes of a processor in all: no cache is needed.
    folder = BUILD / "tidy"
    options = ["-Dtests=false", "-Dexamples=false", "-Dunity_size=10"]
    generated: list[str | Path] = ["ninja", "-C", folder, "src/sim/embedded_profiles.cpp"]
    if not configured(suite, folder, *options) or not suite.run("generated sources", generated):
        return
    # Units include sources; and the compile commands are GCC's, some of whose warnings Clang does
    # not know.
    tidy: list[str | Path] = ["clang-tidy", "--quiet", "-p", folder]
    tidy += ["--checks=-bugprone-suspicious-include", "--extra-arg=-Wno-unknown-warning-option"]
    commands = json.loads((folder / "compile_commands.json").read_text())
    units = [command["file"] for command in commands if command["file"].endswith(".cpp")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda unit: suite.run(f"tidy {unit}", [*tidy, folder / unit]), units))
