"""gcx top --metrics: read by prometheus_client's parsers, of OpenMetrics and of textfiles."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics_parser

from .command import fail_json, succeed
from .publishing import LEASES, RESERVATIONS, publishers

# Their functions have no types.
read_openmetrics: Any = openmetrics_parser.text_string_to_metric_families
read_textfile: Any = parser.text_string_to_metric_families

Samples = dict[str, list[tuple[dict[str, str], float]]]


def metrics() -> Samples:
    """Returns each sample's labels without those of every GPU, and its value. Checks the text with
    both parsers."""
    text = succeed("top", "--metrics", driver="/nonexistent.so")
    assert text.endswith("\n# EOF\n")
    families = list(read_openmetrics(text))
    assert all(family.documentation.endswith(".") for family in families)
    assert all(re.fullmatch("gcx_[a-z_]+", family.name) for family in families)
    # node_exporter knows no other types, and a counter only by the name of its samples.
    assert {family.type for family in families} <= {"gauge", "counter"}
    found = by_name(families)
    assert by_name(read_textfile(text)) == found
    return found


def by_name(families: Iterable[Any]) -> Samples:
    found: Samples = {}
    for sample in (sample for family in families for sample in family.samples):
        found.setdefault(sample.name, []).append((sample.labels, sample.value))
    for samples in found.values():
        assert len({str(sorted(labels.items())) for labels, _ in samples}) == len(samples)
    return found


def values(samples: Samples, name: str, *labels: str) -> dict[Any, float]:
    """Returns the values of a metric by some of its labels."""
    return {tuple(of[label] for label in labels): value for of, value in samples[name]}


def test_metrics_without_leases_are_the_commands() -> None:
    version = succeed("--version").split()[1]
    assert metrics() == {
        "gcx_build_info": [({"version": version}, 1)],
        "gcx_unread_files": [({}, 0)],
    }


def test_metrics_follow_leases_resizes_and_waits() -> None:
    with publishers(*LEASES) as (engine, notebook):
        found = metrics()
        ((device, sms),) = found["gcx_device_sms"]
        assert (device["device_name"], device["simulated"], sms) == (
            "NVIDIA H100 80GB HBM3", "true", 132,
        )  # fmt: skip
        assert re.fullmatch(r"GPU-[0-9a-f-]{36}", device["gpu"])
        assert values(found, "gcx_leased_sms", "process", "name", "sharing") == {
            ("engine", "decode", "exclusive"): 32,
            ("engine", "prefill", "exclusive"): 76,
            ("notebook", "probe", "exclusive"): 8,
            ("notebook", "probe", "shared"): 16,
        }
        # Both processes have the first atoms.
        assert values(found, "gcx_unleased_sms", "gpu") == {(device["gpu"],): 132 - 108}
        assert values(found, "gcx_waiting_leases", "process", "name") == {("engine", "batch"): 1}
        pids = {("engine", str(engine.process.pid)), ("notebook", str(notebook.process.pid))}
        for name in ("gcx_resizes_total", "gcx_waits_total", "gcx_contexts", "gcx_process_info"):
            assert set(values(found, name, "process", "pid")) == pids
        ((info, _),) = [one for one in found["gcx_process_info"] if one[0]["process"] == "engine"]
        assert info["driver_version"] == "13.0"
        assert succeed("--version").split()[1].startswith(info["gcx_version"])
        assert values(found, "gcx_contexts_created_total", "process") == {
            ("engine",): 2, ("notebook",): 1,
        }  # fmt: skip
        assert values(found, "gcx_waits_total", "process") == {("engine",): 1, ("notebook",): 0}
        assert values(found, "gcx_waited_seconds_total", "process")["engine",] == 0
        assert values(found, "gcx_resizes_total", "process")["engine",] == 0
        engine.do("resize 0 24")
        engine.do("resize 0 24")  # Changes nothing.
        found = metrics()
        assert values(found, "gcx_resizes_total", "process")["engine",] == 1
        assert values(found, "gcx_lease_changes", "name")["decode",] == 1
        assert values(found, "gcx_contexts_created_total", "process")["engine",] == 3
        assert values(found, "gcx_contexts", "process")["engine",] == 3
        engine.do("resize 1 40")  # The waiting request gets 48.
        engine.do("settle batch")
        found = metrics()
        assert "gcx_waiting_leases" not in found
        assert values(found, "gcx_leased_sms", "name")["batch",] == 48
        assert 0.1 < values(found, "gcx_waited_seconds_total", "process")["engine",] < 60
        engine.do("stop")
        assert set(values(metrics(), "gcx_contexts", "process")) == {("notebook",)}


def test_metrics_count_evicted_contexts() -> None:
    with publishers(("p", "a:8", "b:16")) as (process,):
        process.do("release 0")
        found = metrics()
        assert values(found, "gcx_contexts_created_total", "process") == {("p",): 2}
        assert values(found, "gcx_contexts_evicted_total", "process") == {("p",): 1}
        assert values(found, "gcx_contexts", "process") == {("p",): 1}
        assert values(found, "gcx_resizes_total", "process") == {("p",): 0}


def test_metrics_have_reservations() -> None:
    with publishers(*RESERVATIONS):
        found = metrics()
        assert values(found, "gcx_reserved_sms", "name", "nested") == {
            ("train", "false"): 108, ("decode", "false"): 24,
        }  # fmt: skip
        assert list(values(found, "gcx_unreserved_sms", "gpu").values()) == [0]
        assert values(found, "gcx_waiting_reservations", "name") == {("batch",): 1}
        assert "gcx_leased_sms" not in found


def test_metrics_of_equal_names_are_added() -> None:
    with publishers(("same", "x:8", "x:16", "wait:all:132", "wait:all:132")):
        found = metrics()
        assert [value for _, value in found["gcx_leased_sms"]] == [24]
        assert [value for _, value in found["gcx_unleased_sms"]] == [108]
        assert [value for _, value in found["gcx_waiting_leases"]] == [2]


@pytest.mark.parametrize(
    "name", ['a"b', "a\\b", "a\nb", 'x"} 1\n# EOF\n', "\x1b[2J", "\udcff", "{},"]
)
def test_metrics_escape_names(name: str) -> None:
    with publishers((f"p{name}", f"l{name}:32", f"reservation:r{name}:32")):
        found = metrics()
        ((lease, _),) = found["gcx_leased_sms"]
        ((reservation, _),) = found["gcx_reserved_sms"]
        for text, first in (
            (lease["name"], "l"),
            (lease["process"], "p"),
            (reservation["name"], "r"),
        ):
            assert text.startswith(first)
            assert text.isprintable()
            if name.isprintable():
                assert text == first + name


def test_metrics_count_files_that_are_not_read(folder: Path) -> None:
    inner = folder / f"user-{os.geteuid()}"
    inner.mkdir(mode=0o700)
    (inner / "leases-0000000000000000").symlink_to("/etc/passwd")
    assert metrics()["gcx_unread_files"] == [({}, 1)]


def test_metrics_with_json_are_refused() -> None:
    _, message = fail_json("top", "--metrics", status=2)
    assert "without --json" in message
