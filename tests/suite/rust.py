"""The part that tests the Rust crates, on the newest Rust there is and on the oldest."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.suite.builds import MAIN, build_main
from tests.suite.runner import BUILD, ROOT, Suite, execute

WORKSPACE = ROOT / "bindings" / "rust"
CUDARC = ROOT / "examples" / "rust"
LLVM = Path("/usr/lib/llvm-19/lib")
DRIVERS = ("12.4", "13.0", "13.1", "13.5")
LIBRARY = MAIN / "src"
SIMULATOR = LIBRARY / "sim" / "libgcx-sim.so"
LINTS = ("-D", "warnings", "-W", "clippy::pedantic", "-W", "clippy::undocumented_unsafe_blocks")
# What the crate may cost above C. Documented is what it costs; here others use the machine too.
MOST_OVERHEAD = "1.25"
EXAMPLES = BUILD / "rust" / "debug" / "examples"
# What the runner of the vectors leaves out, see tests/vectors/README.md.
LEFT_OUT = ("number", "stale", "twice", "stack")
Words = list[str | Path]


def environment(**more: str) -> dict[str, str]:
    return {
        "CARGO_TARGET_DIR": str(BUILD / "rust"),
        "GCX_LIB_DIR": str(LIBRARY),
        "LD_LIBRARY_PATH": str(LIBRARY),
        "GCX_SIM_LIBRARY": str(SIMULATOR),
        "LIBCLANG_PATH": str(LLVM),
        # What wants to build C++ finds the compiler's cache and the headers of CUDA.
        "CXX": "ccache g++" if shutil.which("ccache") else "g++",
        "CUDA_HOME": cuda_home(),
        **more,
    }


def cuda_home() -> str:
    found = execute(["python3", ROOT / "tools" / "find_cuda_include.py"]).stdout.strip()
    return str(Path(found).parent)


def cargo(*words: str | Path, folder: Path = WORKSPACE) -> Words:
    return ["env", "-C", folder, "cargo", *words]


def test(suite: Suite, name: str, command: Words, env: dict[str, str]) -> None:
    """Runs `cargo test` and counts each test of it."""
    done = suite.timed(f"tests of {name}", command, env)
    results = re.findall(r"^test (.+?)(?: - should panic)? \.\.\. (ok|FAILED)", done.stdout, re.M)
    for case, result in results:
        suite.count(f"{name}: {case}", result == "ok")
    if done.returncode != 0:
        suite.say(done.stdout)
    suite.count(f"{name}: has tests and ends well", bool(results) and done.returncode == 0)


def lint(suite: Suite) -> None:
    """Format, clippy and documentation; a linked and a loaded library are two programs."""
    for folder in (WORKSPACE, CUDARC):
        suite.run(
            f"rustfmt {folder.relative_to(ROOT)}", cargo("fmt", "--check", "--all", folder=folder)
        )
    env = environment()
    for features in ("", "dlopen"):
        options = ["--all-targets", "--locked", "--no-default-features", "--features", features]
        packages = ["-p", "gcx-sys", "-p", "gcx"]
        suite.run(
            f"clippy {features}", cargo("clippy", "-q", *packages, *options, "--", *LINTS), env
        )
    documented = environment(RUSTDOCFLAGS="-D warnings")
    suite.run("cargo doc", cargo("doc", "-q", "--locked", "--no-deps"), documented)


def test_crates(suite: Suite) -> None:
    plain = ["--locked", "--no-default-features"]
    for driver in DRIVERS[1:2] if suite.quick else DRIVERS:
        env = environment(GCX_DRIVER=f"sim:h100@{driver}")
        # The examples of the documentation need nothing newer than 13.0.
        which = ["--all-targets"] if driver != "13.0" else []
        test(suite, f"rust-{driver}", cargo("test", "-p", "gcx", *plain, *which), env)
    test(suite, "gcx-sys", cargo("test", "-p", "gcx-sys", *plain), environment())
    if suite.quick:
        return
    made = ["--features", "bindgen"]
    test(suite, "bindgen", cargo("test", "-p", "gcx-sys", *plain, *made), environment())
    loaded = ["--features", "dlopen", "--tests"]
    for package in ("gcx-sys", "gcx"):
        env = environment(GCX_LIBRARY=str(LIBRARY / "libgcx.so"), LD_LIBRARY_PATH="")
        test(suite, f"{package} by dlopen", cargo("test", "-p", package, *plain, *loaded), env)
    suite.run(
        f"Rust costs at most {MOST_OVERHEAD} of C",
        cargo("run", "-q", "--release", *plain, "-p", "gcx", "--example", "overhead", "--",
              MOST_OVERHEAD),
        environment(GCX_DRIVER="sim:h100@13.0"),
    )  # fmt: skip


def test_memory(suite: Suite) -> None:
    """Addresses and leaks, by valgrind. Not what is uninitialized: GCC compares std::optional by
    reading the value before it asks whether there is one, which valgrind takes for a mistake."""
    options = ["--locked", "--no-default-features", "-p", "gcx"]
    for name in ("contexts", "resources", "leases", "log"):
        build = cargo("test", *options, "--no-run", "--message-format=json", "--test", name)
        made = suite.timed(f"build {name}", build, environment())
        programs = re.findall(r'"executable":"([^"]+)"', made.stdout)
        if not suite.count(f"there is a program of {name}", len(programs) == 1):
            suite.say(made.stdout)
            continue
        check: Words = ["valgrind", "-q", "--error-exitcode=9", "--undef-value-errors=no"]
        check += ["--leak-check=full", "--show-leak-kinds=definite"]
        check += ["--errors-for-leak-kinds=definite", programs[0], "--test-threads=1"]
        suite.run(f"{name} under valgrind", check, environment(GCX_DRIVER="sim:h100@13.1"))


def test_vectors(suite: Suite) -> None:
    env = environment()
    examples = ["--locked", "--no-default-features", "-p", "gcx", "--examples"]
    if not suite.run("build the examples in Rust", cargo("build", "-q", *examples), env):
        return
    files = sorted((ROOT / "tests" / "vectors").glob("*.tsv"))
    suite.count("there are vectors", bool(files))
    for file in files:
        suite.run(f"Rust answers {file.name}", [EXAMPLES / "vectors", file], env)
    notice: Words = [sys.executable, "-m", "tests.vectors.notice"]
    notice += [f"--left-out={need}" for need in LEFT_OUT]
    suite.run("Rust's runner notices what differs", [*notice, EXAMPLES / "vectors"], env)


def test_scenario(suite: Suite) -> None:
    expected = ("partition 0 runs on 108 SMs: 6 7 8", "partition 1 runs on 24 SMs: 0 1 2",
                "no SM is in both", "140 SMs: gcx_sm_split: asked for 140 SMs")  # fmt: skip
    for driver in DRIVERS:
        env = environment(GCX_DRIVER=f"sim:h100@{driver}")
        said = execute([EXAMPLES / "scenario"], env).stdout
        holds = all(re.search(f"^{line}", said, re.M) for line in expected)
        if not suite.count(f"the scenario in Rust, driver {driver}", holds):
            suite.say(said)
    # Where it can't work it says why.
    broken = {"sim:rtx4090@13.0": "has 128", "sim:none@13.0": "NO_DEVICE", "/nowhere": "/nowhere"}
    for driver, why in broken.items():
        done = execute([EXAMPLES / "scenario"], environment(GCX_DRIVER=driver))
        holds = done.returncode == 1 and why in done.stdout and "panicked" not in done.stdout
        if not suite.count(f"the scenario in Rust, driver {driver}", holds):
            suite.say(done.stdout)


def test_package(suite: Suite) -> None:
    """gcx-sys as it is published: it builds what it needs by itself, and works then."""
    env = environment()
    del env["GCX_LIB_DIR"], env["LD_LIBRARY_PATH"]
    package = cargo("package", "--allow-dirty", "--locked", "-p", "gcx-sys")
    suite.run("cargo package", package, {**env, "PKG_CONFIG_PATH": "", "PKG_CONFIG_LIBDIR": ""})
    bundled = ["--no-default-features", "--features", "bundled", "--test", "contexts"]
    test(suite, "bundled", cargo("test", "--locked", "-p", "gcx", *bundled), env)


def test_cudarc(suite: Suite) -> None:
    """cudarc and gcx in one process, both on the simulated driver."""
    options = ["--locked", "--no-default-features"]
    libraries = f"{LIBRARY}:{MAIN / 'src' / 'sim' / 'libcuda'}"
    env = environment(LD_LIBRARY_PATH=libraries, GCX_DRIVER="libcuda.so.1", GCX_SIM="h100@13.0")
    lints = cargo("clippy", "-q", *options, "--", *LINTS, folder=CUDARC)
    if suite.run("clippy of cudarc's example", lints, env):
        done = suite.timed("cudarc", cargo("run", "-q", *options, folder=CUDARC), env)
        said = done.stdout
        holds = done.returncode == 0 and said.count("of cudarc in") == 4 and "\nok:" in said
        if not suite.count("cudarc's example runs", holds):
            suite.say(said)


def oldest(suite: Suite) -> dict[str, str] | None:
    """The distribution's own Rust, unpacked beside the newer one, with which it can't be installed
    together. Its environment; None if it can't be had."""
    root = BUILD / "rust-oldest"
    if not (root / "usr" / "bin" / "cargo").exists():
        root.mkdir(parents=True, exist_ok=True)
        # --reinstall: also where they are installed already.
        simulate: Words = ["apt-get", "install", "-s", "--reinstall", "--no-install-recommends"]
        wanted = execute([*simulate, "rustc", "cargo"])
        names = re.findall(r"^Inst (\S+)", wanted.stdout, re.M)
        fetch: Words = ["env", "-C", root, "apt-get", "-qq", "download", *names]
        if not suite.run("the distribution's own Rust", fetch):
            return None
        for package in root.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, root], check=True)
            package.unlink()
    libraries = next((root / "usr" / "lib").glob("*-linux-gnu"))
    home = root / "home"
    home.mkdir(exist_ok=True)
    # It is too old for the registry's protocol: the newer one fetches for it.
    vendor = root / "vendor"
    if not suite.run("cargo vendor", cargo("vendor", "-q", "--locked", vendor), environment()):
        return None
    (home / "config.toml").write_text(
        '[source.crates-io]\nreplace-with = "vendored"\n'
        f'[source.vendored]\ndirectory = "{vendor}"\n'
    )
    env = environment(
        CARGO_TARGET_DIR=str(root / "target"), CARGO_HOME=str(home), GCX_DRIVER="sim:h100@13.0"
    )
    env["LD_LIBRARY_PATH"] += f":{libraries}"
    env["RUSTC"] = str(root / "usr" / "bin" / "rustc")
    env["RUSTDOC"] = str(root / "usr" / "bin" / "rustdoc")
    return env


def test_oldest(suite: Suite) -> None:
    env = oldest(suite)
    if env is None:
        return
    old = BUILD / "rust-oldest" / "usr" / "bin" / "cargo"
    version = execute([env["RUSTC"], "--version"], env).stdout.strip()
    options = ["--offline", "--locked", "-p", "gcx", "--no-default-features", "--lib", "--tests"]
    command: Words = ["env", "-C", WORKSPACE, old, "test", *options, "--features", "pkg-config"]
    test(suite, version, command, env)
    sources = ["--offline", "--locked", "-p", "gcx-sys", "--no-default-features"]
    for features in ("bundled", "dlopen"):
        check: Words = ["env", "-C", WORKSPACE, old, "check", *sources, "--features", features]
        suite.run(f"{version} compiles {features}", check, env)


def part_rust(suite: Suite) -> None:
    """The Rust crates: linters, tests on simulated drivers, linked, loaded and bundled; cudarc."""
    if not build_main(suite):
        return
    lint(suite)
    test_crates(suite)
    test_vectors(suite)
    test_scenario(suite)
    if not suite.quick:
        test_memory(suite)
        test_cudarc(suite)
        test_package(suite)
        test_oldest(suite)
