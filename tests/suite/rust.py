"""The part that tests the Rust crates, on the newest Rust there is and on the oldest."""

from __future__ import annotations

import re
import shutil
import subprocess
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
PROGRAMS = BUILD / "rust" / "debug"
SCENARIO = PROGRAMS / "examples" / "scenario"
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
        packages = ["-p", "gcx-sys", "-p", "gcx", "-p", "gcx-tests"]
        suite.run(
            f"clippy {features}", cargo("clippy", "-q", *packages, *options, "--", *LINTS), env
        )
    documented = environment(RUSTDOCFLAGS="-D warnings")
    suite.run("cargo doc", cargo("doc", "-q", "--locked", "--no-deps"), documented)


def test_crates(suite: Suite) -> None:
    plain = ["--locked", "--no-default-features"]
    for driver in DRIVERS:
        env = environment(GCX_DRIVER=f"sim:h100@{driver}")
        # The examples of the documentation need nothing newer than 13.0.
        which = ["--all-targets"] if driver != "13.0" else []
        test(suite, f"rust-{driver}", cargo("test", "-p", "gcx", *plain, *which), env)
    test(suite, "gcx-sys", cargo("test", "-p", "gcx-sys", *plain), environment())
    made = ["--features", "bindgen"]
    test(suite, "bindgen", cargo("test", "-p", "gcx-sys", *plain, *made), environment())
    loaded = ["--features", "dlopen", "--tests"]
    for package in ("gcx-sys", "gcx"):
        env = environment(GCX_LIBRARY=str(LIBRARY / "libgcx.so"), LD_LIBRARY_PATH="")
        test(suite, f"{package} by dlopen", cargo("test", "-p", package, *plain, *loaded), env)
    suite.run(
        f"Rust costs at most {MOST_OVERHEAD} of C",
        cargo("run", "-q", "--release", *plain, "-p", "gcx-tests", "--bin", "overhead", "--",
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
        if not suite.count(f"there is a program of {name}", len(programs) == 1, made.stdout):
            continue
        check: Words = ["valgrind", "-q", "--error-exitcode=9", "--undef-value-errors=no"]
        check += ["--leak-check=full", "--show-leak-kinds=definite"]
        check += ["--errors-for-leak-kinds=definite", programs[0], "--test-threads=1"]
        suite.run(f"{name} under valgrind", check, environment(GCX_DRIVER="sim:h100@13.1"))


def test_vectors(suite: Suite) -> None:
    env = environment()
    runner = ["--locked", "--no-default-features", "-p", "gcx-tests"]
    if not suite.run("build the vectors' runner in Rust", cargo("build", "-q", *runner), env):
        return
    suite.vectors("Rust", [PROGRAMS / "vectors"], LEFT_OUT, env)


def test_scenario(suite: Suite) -> None:
    example = ["--locked", "--no-default-features", "-p", "gcx", "--example", "scenario"]
    if not suite.run("build the scenario in Rust", cargo("build", "-q", *example), environment()):
        return
    expected = ("partition 0 runs on 108 SMs: 6 7 8", "partition 1 runs on 24 SMs: 0 1 2",
                "no SM is in both", "140 SMs: gcx_sm_split: requested 140 SMs")  # fmt: skip
    for driver in DRIVERS:
        env = environment(GCX_DRIVER=f"sim:h100@{driver}")
        said = execute([SCENARIO], env).stdout
        holds = all(re.search(f"^{line}", said, re.M) for line in expected)
        suite.count(f"the scenario in Rust, driver {driver}", holds, said)
    # Where it can't work it says why.
    broken = {"sim:rtx4090@13.0": "has 128", "sim:none@13.0": "NO_DEVICE", "/nowhere": "/nowhere"}
    for driver, why in broken.items():
        done = execute([SCENARIO], environment(GCX_DRIVER=driver))
        holds = done.returncode == 1 and why in done.stdout and "panicked" not in done.stdout
        suite.count(f"the scenario in Rust, driver {driver}", holds, done.stdout)


def test_package(suite: Suite) -> None:
    """gcx-sys as it is published: it builds what it needs by itself, and works then."""
    env = environment()
    del env["GCX_LIB_DIR"], env["LD_LIBRARY_PATH"]
    package = cargo("package", "--allow-dirty", "--locked", "-p", "gcx-sys")
    suite.run("cargo package", package, {**env, "PKG_CONFIG_PATH": "", "PKG_CONFIG_LIBDIR": ""})
    bundled = ["--no-default-features", "--features", "bundled", "--test", "contexts"]
    test(suite, "bundled", cargo("test", "--locked", "-p", "gcx", *bundled), env)
    # It calls what the others leave to the linker to drop.
    process = ["--no-default-features", "--features", "bundled", "--test", "process", "--no-run"]
    suite.run("bundled links counts", cargo("test", "--locked", "-p", "gcx", *process), env)
    test_static(suite, env)
    test_simulator(suite, env)


def test_static(suite: Suite, env: dict[str, str]) -> None:
    """A folder with libgcx.a alone, as GCX_LIB_DIR names it: that of the bundled library."""
    built = (BUILD / "rust" / "debug" / "build").glob("gcx-sys-*/out/libgcx.a")
    newest = max(built, key=lambda path: path.stat().st_mtime, default=None)
    if not suite.count("the bundled build makes a libgcx.a", newest is not None):
        return
    assert newest is not None
    folder = BUILD / "rust-static"
    folder.mkdir(exist_ok=True)
    shutil.copyfile(newest, folder / "libgcx.a")
    plain = cargo("test", "--locked", "-p", "gcx", "--no-default-features", "--test", "contexts")
    test(suite, "libgcx.a alone", plain, {**env, "GCX_LIB_DIR": str(folder)})


def test_simulator(suite: Suite, env: dict[str, str]) -> None:
    """The simulated driver without an installed gcx: by the feature, or an error that names it."""
    env = {name: value for name, value in env.items() if name != "GCX_SIM_LIBRARY"}
    env["GCX_DRIVER"] = "sim:h100@13.0"
    plain = ["--locked", "-p", "gcx", "--no-default-features"]
    with_it = [*plain, "--features", "simulator", "--test", "contexts"]
    test(suite, "bundled with its simulator", cargo("test", *with_it), env)
    without = [*plain, "--features", "bundled", "--example", "scenario"]
    done = suite.timed("bundled without a simulator", cargo("run", "-q", *without), env)
    holds = done.returncode != 0 and "the feature `simulator` of the crate gcx" in done.stdout
    suite.count("a bundled library says how to get a simulator", holds, done.stdout)


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
        suite.count("cudarc's example runs", holds, said)


def use_vendored(config: Path, vendor: Path) -> None:
    config.write_text(
        '[source.crates-io]\nreplace-with = "vendored"\n'
        f'[source.vendored]\ndirectory = "{vendor}"\n'
    )


def oldest(suite: Suite) -> dict[str, str] | None:
    """The distribution's own Rust, unpacked next to the newer one, with which it can't be installed
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
    use_vendored(home / "config.toml", vendor)
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
    test_fresh(suite, env, old)


def test_fresh(suite: Suite, env: dict[str, str], old: Path) -> None:
    """A program of a user's on the oldest Rust, with whatever versions Cargo resolves today: its
    lock file is new. The newest Cargo resolves and fetches, as the oldest can't, but takes no heed
    of the versions of Rust that packages name, as the oldest would not."""
    user = BUILD / "rust-oldest" / "user"
    shutil.rmtree(user, ignore_errors=True)
    (user / "src").mkdir(parents=True)
    (user / "src" / "main.rs").write_text(
        'fn main() { println!("{} SMs", gcx::Device::new(0).unwrap().sm_count()); }\n'
    )
    (user / "Cargo.toml").write_text(
        '[package]\nname = "user"\nversion = "0.1.0"\nedition = "2021"\nrust-version = "1.63"\n'
        f'[workspace]\n[dependencies]\ngcx = {{ path = "{WORKSPACE / "gcx"}" }}\n'
        '[features]\ndlopen = ["gcx/dlopen"]\nsimulator = ["gcx/simulator"]\n'
    )
    newest = environment(CARGO_RESOLVER_INCOMPATIBLE_RUST_VERSIONS="allow")
    if not suite.run("resolve anew", cargo("generate-lockfile", folder=user), newest):
        return
    vendor = user / "vendor"
    if not suite.run("fetch what that needs", cargo("vendor", "-q", vendor, folder=user), newest):
        return
    (user / ".cargo").mkdir()
    use_vendored(user / ".cargo" / "config.toml", vendor)
    run: Words = ["env", "-C", user, old, "run", "-q", "--offline"]
    own = ("GCX_LIB_DIR", "GCX_SIM_LIBRARY")  # of which it finds none
    bundled = {name: value for name, value in env.items() if name not in own}
    bundled |= {"PKG_CONFIG_PATH": "", "PKG_CONFIG_LIBDIR": ""}
    library = {**env, "GCX_LIBRARY": str(LIBRARY / "libgcx.so")}
    for name, options, its_env in (
        ("GCX_LIB_DIR", [], env),
        ("bundled with its simulator", ["--features", "simulator"], bundled),
        ("dlopen", ["--features", "dlopen"], library),
    ):
        done = suite.timed(f"fresh, {name}", [*run, *options], its_env)
        holds = done.returncode == 0 and "132 SMs" in done.stdout
        suite.count(f"the oldest Rust, resolved anew, {name}", holds, done.stdout)


def part_rust(suite: Suite) -> None:
    """The Rust crates: linters, tests on simulated drivers, linked, loaded and bundled; cudarc."""
    if not build_main(suite):
        return
    lint(suite)
    test_crates(suite)
    test_vectors(suite)
    test_scenario(suite)
    test_memory(suite)
    test_cudarc(suite)
    test_package(suite)
    test_oldest(suite)
