"""A decode and a prefill actor of Ray that each reserve a part of one GPU. The decode actor is
killed and restarted, and reserves again.

python examples/python/ray_actors.py [--decode 24] [--prefill 108] starts a local Ray, or uses the
cluster of RAY_ADDRESS, with --device-sms 132 if its nodes have several GPUs. Without a GPU, set
GCX_DRIVER=sim:h200@13.0.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from typing import Any

import common
import gcx
import gcx.ray

ray = common.library("ray")


class Part:
    """An actor with reserved SMs. Ray calls __init__ again when it restarts the actor."""

    def __init__(self) -> None:
        self.reservation = gcx.ray.reserve(timeout=120)
        self.part = self.reservation.acquire(None)

    def step(self) -> dict[str, Any]:
        """Runs a step in self.part.stream: here a kernel that notes its SMs."""
        return {
            "pid": os.getpid(),
            "atoms": self.reservation.atoms,
            "device": self.reservation.device_uuid,
            "sms": len(self.part.stream.sm_ids()),
            "simulated": self.reservation.simulated,
        }


def step(actor: Any, name: str) -> dict[str, Any]:
    """Runs a step of an actor, which may be restarting."""
    end = time.monotonic() + 60
    while True:
        try:
            done: dict[str, Any] = ray.get(actor.step.remote())
        except ray.exceptions.ActorUnavailableError as error:
            common.check(
                time.monotonic() < end, f"{name} was not restarted within a minute: {error}"
            )
            time.sleep(0.1)
        else:
            kind = "SIMULATED SMs" if done["simulated"] else "SMs"
            print(f"{name}, process {done['pid']}: {done['sms']} {kind}, atoms {done['atoms']}")
            return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decode", type=common.positive, default=24, help="SMs of decode (24)")
    parser.add_argument("--prefill", type=common.positive, default=108, help="of prefill (108)")
    parser.add_argument(
        "--device-sms", type=common.positive, help="SMs of a GPU; needed if nodes have several"
    )
    arguments = parser.parse_args()
    counts = {"decode": arguments.decode, "prefill": arguments.prefill}
    options = {
        name: gcx.ray.options(count, device_sm_count=arguments.device_sms)
        for name, count in counts.items()
    }

    # On a cluster, start each node with a GPU by: ray start --resources="$(python -m gcx.ray)".
    local = {} if "RAY_ADDRESS" in os.environ else {"resources": gcx.ray.node_resources()}
    ray.init(logging_level="ERROR", **local)

    # Both on one node, all or nothing.
    bundles = [
        {**each["resources"], "GPU": each.get("num_gpus", 0), "CPU": 0.1}
        for each in options.values()
    ]
    group = ray.util.placement_group(bundles, strategy="STRICT_PACK")
    if not group.wait(60):
        common.end(f"no node has {sum(counts.values())} {gcx.ray.RESOURCE} free")
    in_bundle = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy
    actor = ray.remote(Part)
    decode, prefill = (
        actor.options(
            name=name,
            num_cpus=0.1,
            max_restarts=-1,
            # By index, or Ray may use the large bundle for the small actor.
            scheduling_strategy=in_bundle(group, placement_group_bundle_index=index),
            **each,
        ).remote()
        for index, (name, each) in enumerate(options.items())
    )
    first, other = step(decode, "decode"), step(prefill, "prefill")
    os.kill(first["pid"], signal.SIGKILL)
    again = step(decode, "decode, killed and restarted")
    for mine in (first, again):
        common.check(mine["sms"] == counts["decode"], f"decode ran on {mine['sms']} SMs")
        common.check(
            mine["device"] != other["device"] or not set(mine["atoms"]) & set(other["atoms"]),
            f"atoms {mine['atoms']} are also among {other['atoms']}",
        )
    print("no SM is in both")


if __name__ == "__main__":
    main()
