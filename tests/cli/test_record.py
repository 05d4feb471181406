"""gcx info --record."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from .command import (
    FAMILIES,
    H100,
    SM_COUNTS,
    environment,
    fail,
    gcx,
    program,
    succeed,
    succeed_json,
)


def record(path: Path, driver: str, *more: str) -> Path:
    """Records a simulated machine."""
    assert str(path) in succeed("info", "--record", str(path), *more, driver=driver)
    return path


@pytest.mark.parametrize("gpu", SM_COUNTS)
@pytest.mark.parametrize("driver", ["12.4", "13.0", "13.5"])
def test_record_replays_as_the_same_device(gpu: str, driver: str, tmp_path: Path) -> None:
    original = f"sim:{gpu}@{driver}"
    replay = f"sim:{record(tmp_path / 'gpu.profile', original)}"
    there = succeed_json("info", driver=replay)
    here = succeed_json("info", driver=original)
    assert there["driver"]["version"] == driver
    # A recording has no locality domains, whose SMs the driver does not report.
    same = [name for name in here["devices"][0] if name not in {"uuid", "locality_domain_count"}]
    assert {name: there["devices"][0][name] for name in same} == {
        name: here["devices"][0][name] for name in same
    }
    for family in FAMILIES:
        line = ["verify", "--sms", "4,8,rest", "--family", family, "--json"]
        expected = gcx(*line, driver=original)
        replayed = gcx(*line, driver=replay)
        assert replayed.returncode == expected.returncode
        if expected.returncode == 0:
            assert replayed.stdout == expected.stdout


def test_record_replays_on_another_driver(tmp_path: Path) -> None:
    path = record(tmp_path / "gpu.profile", "sim:h100@13.0")
    verified = succeed_json("verify", "--sms", "108,24", driver=f"sim:{path}@12.4")
    assert verified["driver"]["version"] == "12.4"
    assert [len(group["seen"]) for group in verified["groups"]] == [108, 24]


def test_record_that_does_not_fit_the_disk_keeps_the_old_file(tmp_path: Path) -> None:
    path = record(tmp_path / "gpu.profile", "sim:orin@12.8")
    before = path.read_bytes()
    limited = f"trap '' XFSZ; ulimit -f 1; exec {program()} info --record {path}"
    done = subprocess.run(
        ["sh", "-c", limited],
        env=environment({"GCX_DRIVER": H100}), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert f"can't write all of {path}: File too large" in done.stderr
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("*.unfinished"))


@pytest.mark.parametrize("exists", [False, True])
def test_record_of_the_longest_name_is_written(tmp_path: Path, exists: bool) -> None:
    """There is no longer name for a file that would replace it."""
    path = tmp_path / ("x" * 255)
    if exists:
        path.write_text("old")
    record(path, "sim:orin@12.8")
    assert path.read_text().startswith("gcx-profile 1\n")
    assert [path] == [file for file in tmp_path.iterdir() if file.is_file()]


def test_record_in_a_mounted_file_is_written(tmp_path: Path) -> None:
    """As in a container, to which one file is given: it can't be replaced."""
    namespace = ["unshare", "-r", "-m"]
    if subprocess.run([*namespace, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine does not allow unshare -r -m")
    mounted = tmp_path / "mounted"
    mounted.write_text("old")
    path = tmp_path / "gpu.profile"
    path.touch()
    script = f"mount --bind {mounted} {path} && exec {program()} info --record {path}"
    done = gcx(under=[*namespace, "sh", "-c", script])
    assert (done.returncode, done.stderr) == (0, "")
    assert mounted.read_text().startswith("gcx-profile 1\n")
    assert {file.name for file in tmp_path.iterdir() if file.is_file()} == {"mounted", path.name}


def test_record_advice_has_no_control_characters(tmp_path: Path) -> None:
    for name in ("\x1b[2J", "a\nb", "\u009b2J", "it's \\x1b\x7f"):
        path = tmp_path / name
        advice = succeed("info", "--record", str(path), driver="sim:orin@12.8").splitlines()[-1]
        setting = advice.split("replay it with ")[1]
        assert setting.isprintable()
        done = subprocess.run(
            ["bash", "-c", f"{setting} {program()} info --json"],
            env=environment({}), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert json.loads(done.stdout)["driver"]["version"] == "12.8", done


def test_record_of_a_replay_is_identical(tmp_path: Path) -> None:
    first = record(tmp_path / "first.profile", "sim:h100@13.0")
    second = record(tmp_path / "second.profile", f"sim:{first}")
    assert second.read_text() == first.read_text()


def test_record_has_device_and_families(tmp_path: Path) -> None:
    lines = record(tmp_path / "gpu.profile", H100).read_text().splitlines()
    assert lines[0] == "gcx-profile 1"
    assert "SIMULATED" in "\n".join(lines), "names its source"
    for line in ["name NVIDIA H100 80GB HBM3", "driver 13.0", "sm_count 132"]:
        assert line in lines
    assert [line.split()[1] for line in lines if line.startswith("family ")] == FAMILIES


def test_record_device_option_selects_the_device(tmp_path: Path) -> None:
    path = record(tmp_path / "gpu.profile", "sim:h100,a100@13.0", "--device", "1")
    (device,) = succeed_json("info", driver=f"sim:{path}")["devices"]
    assert device["sm_count"] == SM_COUNTS["a100"]


@pytest.mark.parametrize(
    "name",
    ["gpu.profile", "my gpu's.profile", "h100", "2xh100", "gpu@home.profile", "gpu@13.0",
     "a b's@12.8", "a,b", "$HOME"],
)  # fmt: skip
def test_record_advice_works_in_a_shell(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The setting that it prints works in a shell in that folder."""
    monkeypatch.chdir(tmp_path)
    advice = succeed("info", "--record", name, driver="sim:orin@12.8").splitlines()[-1]
    setting = advice.split("replay it with ")[1]
    done = subprocess.run(
        ["sh", "-c", f"{setting} {program()} info --json"],
        env=environment({}), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    info = json.loads(done.stdout)
    assert info["driver"]["version"] == "12.8"
    assert info["devices"][0]["sm_count"] == SM_COUNTS["orin"]


def test_corrupt_recording_is_refused_with_its_line(tmp_path: Path) -> None:
    path = record(tmp_path / "gpu.profile", H100)
    path.write_text(path.read_text().replace("group 0 1 16 17", "group 0 1 1 17"))
    message = fail("info", driver=f"sim:{path}")
    assert str(path) in message
    assert "line" in message
