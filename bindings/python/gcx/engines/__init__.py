"""For engines that serve decode and prefill on one GPU: the two leases, and in gcx.engines.policy
how many SMs each of them has. gcx.engines.sglang is a plugin of SGLang that uses both."""

from __future__ import annotations

from contextlib import ExitStack

import gcx


class Sides:
    """The leases of decode and prefill, which together have all SMs.

    A side without SMs is parked: the other one's next work waits for its last work on the device.
    Launch work in `lease.stream`, which follows the lease.
    """

    def __init__(self, sm_count: int, device: int = 0) -> None:
        self.sm_count = self.split = sm_count  # Decode's SMs.
        with ExitStack() as leases:
            self.prefill = leases.enter_context(gcx.acquire(1, name="prefill", device=device))
            self.decode = leases.enter_context(gcx.acquire(None, name="decode", device=device))
            gcx.resize({self.prefill: gcx.PARKED, self.decode: None})
            self._leases = leases.pop_all()
        self.changes = 0

    def arrange(self, decode_sms: int) -> None:
        """Gives decode that many SMs, and prefill the others. No host thread waits."""
        if decode_sms == self.split:
            return
        decode = decode_sms if decode_sms else gcx.PARKED
        prefill = None if decode_sms < self.sm_count else gcx.PARKED
        gcx.resize({self.decode: decode, self.prefill: prefill})
        self.split = decode_sms
        self.changes += 1

    def close(self) -> None:
        self._leases.close()
