"""The leases of decode and prefill."""

from __future__ import annotations

import gcx


class Sides:
    """The leases of decode and prefill, which together have all SMs.

    A side without SMs has no lease: it was handed over to the other one, whose next work waits for
    its last work on the device. Launch work in `lease.stream`, which follows the lease.
    """

    def __init__(self, sm_count: int) -> None:
        self.sm_count = self.layout = sm_count  # Decode's SMs.
        self.decode: gcx.Lease | None = gcx.acquire(None, name="decode")
        self.prefill: gcx.Lease | None = None
        self.changes = 0

    def arrange(self, decode_sms: int) -> None:
        """Gives decode that many SMs, and prefill the others. No host thread waits."""
        if decode_sms == self.layout:
            return
        decode, prefill = self.decode, self.prefill
        if decode_sms == 0:
            assert decode is not None
            if prefill is None:
                decode.close()
                self.prefill = gcx.acquire(None, name="prefill")
            else:
                decode.hand_over(prefill)
            self.decode = None
        elif decode_sms == self.sm_count:
            assert prefill is not None
            if decode is None:
                prefill.close()
                self.decode = gcx.acquire(None, name="decode")
            else:
                prefill.hand_over(decode)
            self.prefill = None
        elif decode is None:
            assert prefill is not None
            prefill.resize(self.sm_count - decode_sms)
            self.decode = gcx.acquire(None, name="decode")
        elif prefill is None:
            decode.resize(decode_sms)
            self.prefill = gcx.acquire(None, name="prefill")
        else:
            gcx.resize({decode: decode_sms, prefill: None})
        self.layout = decode_sms
        self.changes += 1

    def close(self) -> None:
        for lease in (self.decode, self.prefill):
            if lease is not None:
                lease.close()
