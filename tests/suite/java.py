"""The part that tests the Java package, which Maven builds and JUnit tests."""

from __future__ import annotations

import os
import re
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from tests.suite.runner import BUILD, ROOT, Suite

BINDING = ROOT / "bindings" / "java"
MAVEN = BUILD / "maven"
RUNTIME = BUILD / "java-runtime"
SCENARIO = ROOT / "examples" / "java" / "Scenario.java"
SIMULATED = {"GCX_DRIVER": "sim:h100@13.0"}
# Of short runs, most of the time is the compiler's that makes long ones fast.
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
CHECKED = f"-Xmx512m -Xcheck:jni {BRIEF}"
# As in containers. What needs a locale says so itself.
NO_LOCALE = {"LANG": "", "LC_ALL": "", "LC_CTYPE": ""}
JVMS = Path("/usr/lib/jvm")


def maven(suite: Suite, name: str, *words: str) -> None:
    """Runs Maven, and counts the tests that it ran and the run itself."""
    reports = MAVEN / "surefire-reports"
    shutil.rmtree(reports, ignore_errors=True)
    # How long the test under load takes, if someone asks for more than a few seconds.
    env = {key: os.environ[key] for key in ("GCX_LOAD_SECONDS",) if key in os.environ}
    env |= NO_LOCALE
    env["MAVEN_OPTS"] = f"{os.environ.get('MAVEN_OPTS', '')} {BRIEF}".strip()
    command: list[str | Path] = ["mvn", "-B", "-ntp", "-f", BINDING, f"-Dgcx.build={MAVEN}"]
    done = suite.timed(name, [*command, *words], env)
    suite.count_cases(name, sorted(reports.glob("TEST-*.xml")))
    # Such a line is a warning of -Xcheck:jni.
    good = done.returncode == 0 and "in native method" not in done.stdout
    suite.count(name, good, done.stdout)


def newest_java() -> tuple[int, Path] | None:
    """The newest JVM of those that have virtual threads, with its version."""
    found = []
    for release in JVMS.glob("*/release"):
        version = re.search(r'JAVA_VERSION="(\d+)', release.read_text())
        java = release.parent / "bin" / "java"
        if version is not None and int(version[1]) >= 21 and java.exists():
            found.append((int(version[1]), java))
    return max(found, default=None)


def part_java(suite: Suite) -> None:
    """The Java package: its jars, its tests on three drivers and the newest JVM, a runtime."""
    maven(suite, "java-13.0", "verify")
    version = ElementTree.parse(BINDING / "pom.xml").findtext("{*}version")
    jar = MAVEN / f"gcx-{version}.jar"
    sim = MAVEN / f"gcx-{version}-sim.jar"
    suite.run("java: a program on the jars", ["java", "-cp", f"{jar}:{sim}", SCENARIO], SIMULATED)
    alone = suite.timed("java: without the simulator", ["java", "-cp", jar, SCENARIO], SIMULATED)
    holds = alone.returncode != 0 and "the classifier `sim`" in alone.stdout
    suite.count("java: without the simulator", holds, alone.stdout)
    # What was fetched above is enough: Maven fetches nothing here.
    again = ("-o", "surefire:test", f"-Dgcx.jvm={CHECKED}")
    for driver in ("12.4", "13.5"):
        maven(suite, f"java-{driver}", *again, f"-Dgcx.driver=sim:2xh100@{driver}")
    newest = newest_java()
    if newest is None:
        suite.say(f"skipped: java: virtual threads: no JDK 21 or newer in {JVMS}")
    else:
        options = f"-Xmx512m --enable-native-access=ALL-UNNAMED {BRIEF}"
        words = ("-o", "surefire:test", f"-Dgcx.jvm={options}")
        maven(suite, f"java-jdk{newest[0]}", *words, f"-Djvm={newest[1]}")
    if suite.run("java: a runtime of its own", [BINDING / "runtime.sh", RUNTIME, MAVEN]):
        java = RUNTIME / "runtime" / "bin" / "java"
        program: list[str | Path] = ["-cp", f"{RUNTIME}/gcx.jar:{sim}:{RUNTIME}/programs"]
        suite.run("java: the scenario in that runtime", [java, *program, "Scenario"], SIMULATED)
    module: list[str | Path] = ["-p", f"{jar}:{sim}", "--add-modules", "gcx,gcx.sim", SCENARIO]
    suite.run("java: as a module", ["java", *module], SIMULATED)
    classes = f"{MAVEN / 'classes'}:{MAVEN / 'test-classes'}"
    suite.vectors(
        "Java", ["java", "-Xcheck:jni", "-cp", classes, "gcx.Vectors"], ("number", "twice")
    )
