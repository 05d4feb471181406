"""The builds that parts of the suite use, each made by the first of them."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path

from tests.suite.runner import BUILD, Suite, execute

MAIN = BUILD / "tests"
FUZZ = BUILD / "fuzz"
WHEEL = BUILD / "package"
# Several sources in one unit: most of a compiler's time goes into the headers. Each source alone is
# read by clang-tidy.
UNITY = ("-Dunity=on", "-Dunity_size=12")
# The library, the simulation and the command are compiled by the same words where the tests, the
# wheel and the jar are built, in folders of the same depth: ccache has what one of them compiled.
PRODUCT = ("-Ddebug=false", "-Doptimization=2")
# A static library next to the shared one, which the tests of the installation link.
MAIN_OPTIONS = (*PRODUCT, "-Ddefault_library=both")
CHEAP = ("-Ddebug=false", "-Dc_args=-g1", "-Dcpp_args=-g1")
CLANG, CLANGXX = "clang-19", "clang++-19"


def build(
    suite: Suite,
    folder: Path,
    *options: str,
    env: dict[str, str] | None = None,
    targets: Sequence[str] = (),
) -> bool:
    """Configures a build, unless that was done, and builds it. Warnings are errors here, but not
    for users, whose compilers may know more of them."""
    return configured(suite, folder, *options, env=env) and compiled(suite, folder, targets)


def compiled(suite: Suite, folder: Path, targets: Sequence[str]) -> bool:
    """Builds targets, or everything, of a build that is configured."""
    return suite.run(f"build {folder.name}", ["ninja", "-C", folder, *targets])


def configured(
    suite: Suite, folder: Path, *options: str, env: dict[str, str] | None = None
) -> bool:
    setup: list[str | Path] = ["meson", "setup", folder, "-Dwerror=true", *UNITY, *options]
    # A build folder of an earlier version of the sources may have other options.
    stamp = folder / "gcx-options.txt"
    wanted = " ".join(map(str, setup))
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
    if (folder / "build.ninja").exists():  # Ninja configures again if a meson.build has changed.
        setup = ["ninja", "-C", folder, "build.ninja"]
    if not suite.run(f"configure {folder.name}", setup, env):
        return False
    stamp.write_text(wanted)
    return True


def test_programs(folder: Path, suites: Sequence[str]) -> list[str]:
    """The targets of a build that the tests of these suites need."""
    tests = json.loads(execute(["meson", "introspect", "--tests", folder]).stdout)
    wanted = [
        test for test in tests if any(name.split(":")[-1] in suites for name in test["suite"])
    ]
    # A test names what it loads in its environment.
    words = {word for test in wanted for word in [*test["cmd"], *test["env"].values()]}
    programs = [word for word in words if word.startswith(f"{folder}/")]
    known = execute(["ninja", "-C", folder, "-t", "targets", "all"]).stdout
    targets = {str(Path(word).relative_to(folder)) for word in programs}
    return sorted(target for target in targets if f"\n{target}:" in known)


building_fuzzers = threading.Lock()


def build_fuzzers(suite: Suite, *targets: str) -> bool:
    """Clang's build, under the address and undefined-behaviour sanitizers."""
    ccache = ["ccache"] if shutil.which("ccache") else []
    env = {"CC": " ".join([*ccache, CLANG]), "CXX": " ".join([*ccache, CLANGXX])}
    options = ["-Dfuzz=true", "-Db_sanitize=address,undefined", "-Db_lundef=false"]
    options += ["-Dexamples=false", "-Doptimization=1", *CHEAP]
    with building_fuzzers:
        return build(suite, FUZZ, *options, env=env, targets=targets)


building_main = threading.Lock()
main_builds: list[bool] = []


def build_main(suite: Suite) -> bool:
    """The build that several parts use; the first of them makes it."""
    with building_main:
        if not main_builds:
            # tests/install links programs to the static library too.
            main_builds.append(build(suite, MAIN, *MAIN_OPTIONS))
        return main_builds[0]


def main_env() -> dict[str, str]:
    return {
        "GCX_BUILD": str(MAIN),
        "GCX_CLI": str(MAIN / "src" / "cli" / "gcx"),
        "GCX_SIM_LIBDIR": str(MAIN / "src" / "sim" / "libcuda"),
    }
