"""A Triton kernel autotuned for its partition: the best configuration can depend on the SM count.

A persistent matrix product, one program for each SM, is tuned on the whole GPU and on two
partitions. NUM_SMS in the key gives three tunings. While a partition's stream is PyTorch's current
one, the candidates run and are timed on the partition's SMs.
"""

from __future__ import annotations

import argparse
import statistics
from contextlib import suppress
from typing import Any

import common
import gcx

with suppress(ImportError):  # main reports it.
    import triton.language as tl

# BLOCK_M, BLOCK_N, BLOCK_K, num_stages, num_warps
CONFIGS = (
    (128, 256, 64, 3, 8),
    (256, 128, 64, 3, 8),
    (128, 128, 64, 4, 8),
    (128, 128, 64, 4, 4),
    (64, 256, 64, 4, 4),
    (128, 64, 64, 4, 4),
    (64, 128, 64, 4, 4),
    (64, 64, 64, 4, 4),
)


# Each program computes every NUM_SMS-th tile of c, in groups of 8 rows of tiles for the L2 cache.
def matmul(a, b, c, M, N, K, NUM_SMS,  # type: ignore[no-untyped-def]
           BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):  # fmt: skip
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    for tile in range(tl.program_id(0), tiles_m * tiles_n, NUM_SMS):
        first_m = tile // (8 * tiles_n) * 8
        height = min(tiles_m - first_m, 8)
        at_m = first_m + tile % (8 * tiles_n) % height
        at_n = tile % (8 * tiles_n) // height
        rows = at_m * BLOCK_M + tl.arange(0, BLOCK_M)
        columns = at_n * BLOCK_N + tl.arange(0, BLOCK_N)
        ks = tl.arange(0, BLOCK_K)
        a_at = a + (rows % M)[:, None] * K + ks[None, :]
        b_at = b + ks[:, None] * N + (columns % N)[None, :]
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for _ in range(tl.cdiv(K, BLOCK_K)):
            total = tl.dot(tl.load(a_at), tl.load(b_at), total)
            a_at += BLOCK_K
            b_at += BLOCK_K * N
        inside = (rows < M)[:, None] & (columns < N)[None, :]
        tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16), inside)


def description(config: Any) -> str:
    block = "x".join(str(config.kwargs[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    return f"{block}, {config.num_stages} stages, {config.num_warps} warps"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sms", type=int, default=24, help="of one partition; the rest is another")
    parser.add_argument(
        "--size", type=common.positive, nargs=3, default=[2048] * 3, metavar=("M", "N", "K")
    )
    arguments = parser.parse_args()
    m, n, k = arguments.size
    if k % 64 or n % 16:
        parser.error(f"K must be a multiple of 64 and N of 16, not {k} and {n}")
    device = common.start()
    torch, triton = common.library("torch"), common.library("triton")

    timed_in: set[int] = set()

    def bench(call: Any, quantiles: Any) -> Any:
        # Triton's benchmark uses PyTorch's current stream. This wrapper notes which one it was.
        timed_in.add(torch.cuda.current_stream().cuda_stream)
        return triton.testing.do_bench(call, warmup=10, rep=40, quantiles=quantiles)

    # The same as the decorators @triton.autotune(...) and @triton.jit(...). Without specialization
    # of NUM_SMS the kernel compiles once for each configuration, not for each partition.
    tuned = triton.autotune(
        configs=[
            triton.Config(
                {"BLOCK_M": config[0], "BLOCK_N": config[1], "BLOCK_K": config[2]},
                num_stages=config[3],
                num_warps=config[4],
            )
            for config in CONFIGS
        ],
        key=["M", "N", "K", "NUM_SMS"],
        do_bench=bench,
    )(triton.jit(matmul, do_not_specialize=["NUM_SMS"]))

    a = torch.randn(m, k, device="cuda", dtype=torch.float16)
    b = torch.randn(k, n, device="cuda", dtype=torch.float16)
    c = torch.empty(m, n, device="cuda", dtype=torch.float16)
    expected = a @ b
    torch.cuda.synchronize()

    def launch(kernel: Any, sms: int, **config: Any) -> None:
        def grid(meta: Any) -> tuple[int]:
            return (min(sms, triton.cdiv(m, meta["BLOCK_M"]) * triton.cdiv(n, meta["BLOCK_N"])),)

        kernel[grid](a, b, c, m, n, k, NUM_SMS=sms, **config)

    def milliseconds(sms: int, config: Any) -> float:
        def call() -> None:
            launch(tuned.fn, sms, **config.all_kwargs())  # The kernel behind the autotuner.

        return float(triton.testing.do_bench(call, warmup=5, rep=30, return_mode="median"))

    few, many = gcx.split([arguments.sms, None])
    with few, many:
        targets = [
            ("whole GPU", device.sm_count, torch.cuda.Stream()),
            *((f"{part.sm_count} SMs", part.sm_count, part.stream.torch()) for part in (few, many)),
        ]
        best: list[Any] = []
        rows = []
        for name, sms, stream in targets:
            with torch.cuda.stream(stream):
                c.zero_()
                timed_in.clear()
                launch(tuned, sms)
                stream.synchronize()
                best.append(tuned.best_config)
                common.check(
                    timed_in <= {stream.cuda_stream},
                    f"{name}: the autotuner ran in another stream, and so on other SMs",
                )
                common.check(
                    torch.allclose(c, expected, rtol=1e-2, atol=0.25),
                    f"{name}: the result is wrong",
                )
                # In turns, so that both run at the same clocks.
                pairs = [
                    (milliseconds(sms, best[-1]), milliseconds(sms, best[0])) for _ in range(5)
                ]
            own_ms, other_ms = (statistics.median(column) for column in zip(*pairs))
            tflops = 2 * m * n * k / own_ms / 1e9
            rows.append((name, f"{own_ms:.4f}", f"{tflops:.0f}", f"{other_ms:.4f}",
                         f"{other_ms / own_ms:.2f}", description(best[-1])))  # fmt: skip
        print(f"{m} x {n} x {k}, float16, the results agree with PyTorch's; medians in ms")
        common.table(
            ("tuned on", "own best ms", "TFLOP/s", "whole GPU's best ms", "ratio", "own best"), rows
        )
        for (name, *_), config, row in zip(targets[1:], best[1:], rows[1:]):
            if description(config) == description(best[0]):
                print(f"{name}: the whole GPU's best configuration is the best here too")
            else:
                print(f"{name}: another configuration is best; the whole GPU's takes {row[4]} of "
                      "its time here")  # fmt: skip
        torch.cuda.synchronize()
        torch.cuda.empty_cache()  # PyTorch caches memory by stream, and these streams end here.


if __name__ == "__main__":
    common.run(main)
