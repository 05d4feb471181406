"""gcx.verify: its result, its map as text and as a picture, the same as the command's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import gcx
import gcx_sim
import pytest
from work import run_program  # type: ignore[import-not-found]


def test_disjoint_partitions_are_ok(parts: gcx.Partitions) -> None:
    proof = gcx.verify(parts)
    assert proof
    assert proof.ok
    assert proof.simulated
    assert [(group.sm_count, len(group.seen)) for group in proof.groups] == [
        *((24, 24), (32, 32), (76, 76)),
    ]
    assert (proof.problems, proof.overlap, proof.unused) == ([], (), ())
    text = str(proof)
    assert text.startswith("SIMULATED")
    assert "A  24 SMs, all seen" in text
    assert text.splitlines()[-1].startswith("ok: ")
    assert "24, 32, 76" in repr(proof)


def test_overlapping_partitions_are_named(sms: gcx.SMResource) -> None:
    with gcx.Partition(sms.split([24]).groups[0]) as one:
        with gcx.Partition(sms.split([16]).groups[0]) as two:
            proof = gcx.verify([one, two.stream])
        assert not proof.ok
        assert (len(proof.overlap), len(proof.unused)) == (16, 108)
        assert "A and B" in proof.problems[0]
        assert "FAILED: 1 problem" in str(proof)
        assert "108 SMs, seen in no partition" in str(proof)


def test_shared_leases_may_overlap() -> None:
    with gcx.acquire(64, shared=True) as one, gcx.acquire(None, shared=True) as other:
        found = gcx.verify([one, other])
        assert found.ok
        assert len(found.overlap) == one.resource.overlap(other.resource) > 0
        assert [group.shared for group in found.groups] == [True, True]
        assert f"have {len(found.overlap)} SMs in common" in str(found)


def test_virtual_numbers_prove_no_sms(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCX_SIM_MPS", "1")
    script("""
import gcx
proof = gcx.verify([108, 24])
assert proof.virtual_sm_numbers and proof.ok and proof.groups[1].seen == tuple(range(24))
assert (proof.overlap, proof.unused, proof._repr_svg_()) == ((), (), None)
assert "  B  24 SMs, all seen" in str(proof) and "as far as can be seen" in str(proof)
assert proof._repr_html_().startswith("<pre>SIMULATED")
for refused in (proof.svg, gcx.Device(0).map_sms):
    try:
        refused()
    except gcx.NotSupportedError as error:
        assert "virtual" in str(error)
    else:
        raise SystemExit("not refused")
""")


def test_shared_sms_are_named_in_messages(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert gcx.Device(0).shared_sms() == ()
    monkeypatch.setenv("GCX_SIM_DYNAMIC_PARALLELISM", "1")
    script("""
import gcx
device = gcx.Device(0)
def refused(kind, words):
    try:
        gcx.split([24], exclude_shared=True)
    except kind as error:
        assert words in str(error), error
    else:
        raise SystemExit("not refused")
refused(gcx.SharedSmsUnknownError, "gcx.Device(0).shared_sms()")
proof = gcx.verify([24, 16])
assert proof.problems[0] in str(proof)
assert proof.shared_by_all == device.shared_sms() == (124, 125)
refused(gcx.SmsNotMappedError, 'gcx.Device(0).map_sms("coscheduled")')
""")


def test_counts_and_one_stream_are_verified(part: gcx.Partition) -> None:
    assert len(gcx.verify([8, 8]).unused) == 116
    assert gcx.verify(24).groups[0].sm_count == 24
    assert gcx.verify(gcx.SplitOptions([8]), family="fine").ok
    assert gcx.verify(part).groups[0].seen == gcx.verify(part.stream).groups[0].seen
    many = gcx.verify([2] * 30, family="fine")
    assert [group.name for group in many.groups][25:28] == ["Z", "AA", "AB"]


def test_picture_has_a_cell_for_each_sm(part: gcx.Partition) -> None:
    with gcx.Partition(part.resource) as same:
        for proof in (gcx.verify([24, 24]), gcx.verify([part, same])):
            root = ElementTree.fromstring(proof.svg())
            cells = [node.attrib for node in root.iter() if node.attrib.get("class") == "sm"]
            assert len(cells) == 132
            assert "SIMULATED" in proof.svg()
            assert proof._repr_svg_() == proof.svg()
            assert proof.svg() in proof._repr_html_()
            owners = {cell["data-partition"] for cell in cells}
            assert owners == ({"A", "B", ""} if proof.ok else {"!", ""})


DRAW = """
import json, sys, gcx
proof = gcx.verify(json.loads(sys.argv[1]), family=sys.argv[2])
json.dump([str(proof), proof.svg(), proof.problems, proof.ok], sys.stdout)
"""


def assert_drawn_as_by_the_command(
    counts: list[int | None], family: str, path: Path, env: dict[str, str]
) -> bool:
    """Compares text, picture and problems; returns whether the verification passed."""
    sms = ",".join("rest" if count is None else str(count) for count in counts)
    command = [sys.executable, "-m", "gcx", "verify", "--sms", sms, "--family", family]

    def run(*words: str) -> str:
        return str(run_program(*words, env={**os.environ, **env}).stdout)

    text, picture, problems, ok = json.loads(
        run(sys.executable, "-c", DRAW, json.dumps(counts), family)
    )
    its_text = run(*command, "--svg", str(path)).replace(f"wrote {path}\n", "")
    document: dict[str, Any] = json.loads(run(*command, "--json"))
    # The command names the family above the map, prints problems to standard error, and says how
    # far SM numbers go beyond counts, which Python's users see in the groups.
    lines = text.splitlines()[: -len(problems) or None]
    its_lines = [line for line in its_text.splitlines() if not line.startswith("%smid")]
    assert lines[2:] == its_lines[2:]
    assert picture == path.read_text()
    assert (problems, ok) == (document["problems"], document["ok"])
    return bool(ok)


@pytest.mark.parametrize(
    ("counts", "family"),
    [
        ([24, None], "coscheduled"),
        ([132], "coscheduled"),
        ([10, 17], "coscheduled"),
        ([8] * 15, "coscheduled"),
        ([2] * 66, "fine"),
        ([1, 30, None, None], "fine"),
        ([24, 30], "max-cluster"),
    ],
)
def test_map_is_that_of_the_command(counts: list[int | None], family: str, tmp_path: Path) -> None:
    assert assert_drawn_as_by_the_command(counts, family, tmp_path / "map.svg", {})


@pytest.mark.parametrize("fault", ["fewer", "shared", "none"])
def test_map_of_a_bad_driver_is_that_of_the_command(fault: str, tmp_path: Path) -> None:
    """A driver that breaks its promises, from the command's tests."""
    folder = Path(__file__).resolve().parents[3] / "tests" / "cli"
    source = folder / "bad_driver.c"
    library = tmp_path / "libbad.so"
    subprocess.run(
        ["gcc", "-std=c99", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", library, source, "-ldl"],
        check=True,
    )
    simulation = gcx_sim.LIBRARY
    env = {"BAD_DRIVER_LIBRARY": simulation, "BAD_DRIVER_FAULT": fault}
    env |= {"GCX_SIM": "h100@13.0", "GCX_DRIVER": str(library)}
    layouts: list[tuple[list[int | None], str]] = [
        ([16, 8, 24, None], "coscheduled"),
        ([2] * 66, "fine"),  # More problems than C has room for.
    ]
    for counts, family in layouts:
        assert not assert_drawn_as_by_the_command(counts, family, tmp_path / "map.svg", env)
