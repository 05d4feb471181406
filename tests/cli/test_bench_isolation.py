"""gcx bench isolation: on the simulated driver who waits is as on the H200."""

from __future__ import annotations

import pytest

from .command import Json, fail, fail_json, succeed, succeed_json

STREAMS = [1, 4, 7, 8, 16, 32, 64]
H200 = "sim:h200@13.0"
# Of facts/h200-driver580-queues.txt, with 8 connections and with 32: whether B waits.
WORK = [
    (False, False),
    (False, False),
    (True, False),
    (True, False),
    (True, False),  # On an H200 not: its kernels wait for room on the SMs.
    (True, False),
    (False, False),
    (False, False),
    (False, False),
]


def waits(cells: list[Json]) -> list[bool]:
    return [cell["ratio"] > 10 for cell in cells]


def test_the_table() -> None:
    document = succeed_json("bench", "isolation", "--rounds", "1", driver=H200)
    assert document["simulated"] is True
    assert "SIMULATED" in document["note"]
    assert document["partitions"] == {"a": 108, "b": 24}
    tables = document["tables"]
    assert [table["connections"] for table in tables] == [1, 8, 32]
    assert not any(table["own_workqueues"] for table in tables)
    for table in tables:
        assert [cell["streams"] for cell in table["by_streams"]] == STREAMS
        expected = [streams >= table["connections"] for streams in STREAMS]
        assert waits(table["by_streams"]) == expected
        for cell in [*table["by_streams"], *table["by_work"]]:
            assert cell["ratio"] == pytest.approx(cell["us"] / table["alone_us"], rel=1e-3)
    assert waits(tables[1]["by_work"]) == [few for few, _ in WORK]
    assert waits(tables[2]["by_work"]) == [many for _, many in WORK]


def test_beside_another_thread() -> None:
    """Once, with the most connections; every kind of call was made, and timed against."""
    document = succeed_json("bench", "isolation", "--rounds", "1", driver=H200)
    few, default, most = (table["by_neighbour"] for table in document["tables"])
    assert (few, default) == ([], [])
    assert len(most) == 12
    assert len({row["calls"] for row in most}) == 12
    for row in most:
        assert 0 < row["p50_us"] <= row["p99_us"] <= row["max_us"], row
        assert row["launches"] >= 10
        assert row["calls_made"] >= 4, row
    nothing = most[0]
    assert nothing["calls"] == "nothing"
    assert nothing["p50_us"] == document["tables"][2]["alone_us"]


def test_a_call_of_the_other_thread_that_fails_is_said() -> None:
    line = ["bench", "isolation", "--rounds", "1", "--connections", "8"]
    for call in ["cuMemAllocAsync", "cuMemHostAlloc", "cuMemsetD8_v2", "cuMemcpyDtoDAsync_v2"]:
        said = fail(*line, env={"GCX_SIM_FAIL": f"{call}:2:999"})
        assert call.removesuffix("_v2") in said, said


def test_workqueues_of_their_own() -> None:
    line = ["bench", "isolation", "--rounds", "1", "--connections", "2"]
    shared, own = succeed_json(*line, driver="sim:h100@13.1")["tables"]
    assert (shared["connections"], shared["own_workqueues"]) == (2, False)
    assert (own["connections"], own["own_workqueues"]) == (2, True)
    assert waits(shared["by_streams"]) == [streams >= 2 for streams in STREAMS]
    assert not any(waits(own["by_streams"]))


def test_the_environment_of_the_command_is_not_asked() -> None:
    """Each process that measures has the number that its row says."""
    document = succeed_json(
        *["bench", "isolation", "--rounds", "1", "--connections", "8"],
        env={"CUDA_DEVICE_MAX_CONNECTIONS": "1"},
    )
    [table] = document["tables"]
    assert waits(table["by_streams"]) == [streams >= 8 for streams in STREAMS]


def test_text() -> None:
    text = succeed("bench", "isolation", "--rounds", "2", driver=H200)
    assert text.startswith("SIMULATED")
    assert "A has 108 SMs, B 24" in text
    assert "how long is not" in text


def test_devices() -> None:
    machine = "sim:h100,orin@13.0"
    line = ["bench", "isolation", "--rounds", "1", "--connections", "8"]
    document = succeed_json(*line, "--device", "1", driver=machine)
    assert document["partitions"] == {"a": 12, "b": 4}
    failed, _ = fail_json(*line, "--device", "2", driver=machine)
    assert failed["error"]["result"] == "GCX_ERROR_INVALID_DEVICE"


def test_what_fails_in_the_other_process_is_said() -> None:
    line = ["bench", "isolation", "--rounds", "1"]
    assert "cuGreenCtxCreate" in fail(*line, env={"GCX_SIM_FAIL": "cuGreenCtxCreate:2:2"})
    failed, said = fail_json(*line, driver="sim:none@13.0")
    assert failed["error"]["result"] == "GCX_ERROR_NO_DEVICE"
    assert "SIMULATED" in said
