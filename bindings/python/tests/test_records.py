"""Records: as JSON, and pickled in this process and across two."""

from __future__ import annotations

import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gcx
import pytest
from test_leases import acquire_later  # type: ignore[import-not-found]
from work import Work  # type: ignore[import-not-found]

KINDS = {
    kind
    for kind in (getattr(gcx, name) for name in gcx.__all__)
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")
}


def test_every_record_is_json_and_picklable(
    work: Work, part: gcx.Partition, threads: ThreadPoolExecutor, folder: Path
) -> None:
    captured = work.capture()
    gcx.publish("records")
    with gcx.Graph(captured) as graph, gcx.reserve(8, name="r"), gcx.acquire(None) as lease:
        late = acquire_later(threads, None, "ä\n")
        records: list[Any] = [
            *gcx.leases(),
            *gcx.live_contexts(),
            *gcx.reservations(),
            *gcx.published_leases(),
            *gcx.published_processes(),
            *graph.nodes(),
            *gcx.verify([8]).groups,
            *(graph.info, gcx.cache_stats(), gcx.trim_cache(64), gcx.queue_info()),
            *(gcx.driver_info(), part.stream.kernel_fit(work.spinner.value, 32)),
            *(part.resource.plan([8]), part.resource.split([8])),
        ]
        lease.close()
        late.result(60).close()
    captured.destroy()
    assert {type(record) for record in records} == KINDS
    assert None in [record.sm_count for record in records if isinstance(record, gcx.LiveLease)]
    for record in records:
        values = record.to_json()
        assert list(values) == list(record._fields)
        assert json.loads(json.dumps(values, allow_nan=False)) == values
        if isinstance(record, gcx.Split):  # Resources themselves belong to a process.
            with pytest.raises(TypeError, match="can't be pickled"):
                pickle.dumps(record)
            continue
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(record, protocol))
            assert (type(again), again) == (type(record), record)
        assert copy.deepcopy(record) == copy.copy(record) == record


def test_json_of_a_lease_has_its_resource_in_words() -> None:
    with gcx.acquire(24, name="decode") as lease:
        (listed,) = gcx.leases()
        assert listed.to_json() == {
            "id": lease.id,
            "device": 0,
            "family": "coscheduled",
            "shared": False,
            "sm_count": 24,
            "exclusive_sm_count": 24,
            "stream_count": 0,
            "waiting": False,
            "name": "decode",
            "resource": {"device": 0, "family": "coscheduled", "sm_count": 24},
        }
        again = pickle.loads(pickle.dumps(listed))
        with gcx.Context(again.resource) as context:  # It is still valid in this process.
            assert context.sm_count == 24


def test_record_of_another_process_can_be_read_and_not_used(script: Any) -> None:
    made = script("""
import gcx, pickle
with gcx.acquire(24, name="theirs"):
    print(pickle.dumps(gcx.leases() + gcx.live_contexts()).hex())
""")
    with gcx.acquire(24, name="theirs"):
        lease, context = pickle.loads(bytes.fromhex(made))
        mine = gcx.leases()[0].resource
        for record in (lease, context):
            sms = record.resource
            assert (record.sm_count, sms.sm_count, sms.family, sms.device) == (
                24, 24, "coscheduled", 0,
            )  # fmt: skip
            assert repr(sms) == repr(mine)
            assert sms != mine
            assert sms
            assert record.to_json()["resource"] == mine.to_json()
            for use in (lambda it=sms: gcx.Context(it), lambda it=sms: it.split([8])):
                with pytest.raises(gcx.ResourceConfigurationError, match="in this process"):
                    use()
        assert pickle.loads(pickle.dumps(lease)) == lease
    opened_no_driver = f"""
import gcx, pickle
lease, context = pickle.loads(bytes.fromhex("{made.strip()}"))
gcx.open_driver("sim:a100@12.4")  # None was open.
print(lease.name, lease.to_json()["resource"]["sm_count"], context.resource)
"""
    out = script(opened_no_driver)
    assert out == "theirs 24 <gcx.SMResource of device 0: 24 SMs, coscheduled>\n"
