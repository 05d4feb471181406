"""The results: percentiles, tables and plots."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, TypedDict

import common

from serve.engine import Record


class Cell(TypedDict):
    """One arm at one rate of prompts. Times in milliseconds; see engine.Record."""

    arm: str
    promise: float  # 0: none
    rate: float
    tokens: list[float]
    steps: list[float]
    first: list[float]
    arrivals: list[float]
    layouts: list[tuple[float, int]]
    elapsed: float


class Results(TypedDict):
    device: str
    simulated: bool
    sm_count: int
    costs: dict[str, Any]
    cells: list[Cell]


def percentile(times: list[float], share: float) -> float:
    ordered = sorted(times)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def in_short(record: Record) -> str:
    token, first = percentile(record.tokens, 0.99), percentile(record.first, 0.5)
    return f"token p99 {token:.1f} ms, first token {first:.0f} ms"


def table(cells: list[Cell]) -> None:
    """Prints the arms of each rate, with the first token relative to chunked prefill."""
    for rate in sorted({cell["rate"] for cell in cells}):
        mine = [cell for cell in cells if cell["rate"] == rate]
        against = [percentile(cell["first"], 0.5) for cell in mine if cell["arm"] == "chunked-512"]
        print(f"{rate:g} prompts/s, {len(mine[0]['first'])} prompts; in ms:")
        rows = []
        for cell in mine:
            median = percentile(cell["first"], 0.5)
            rows.append(
                (
                    cell["arm"],
                    *(f"{percentile(cell['tokens'], share):.1f}" for share in (0.5, 0.99, 1)),
                    f"{median:.0f}",
                    f"{percentile(cell['first'], 0.9):.0f}",
                    f"{median / against[0]:.2f}" if against else "-",
                    f"{1e3 * len(cell['tokens']) / cell['elapsed']:.1f}",
                    kept(cell),
                )
            )
        common.table(
            (
                *("", "token p50", "p99", "max", "first p50", "p90"),
                *("/chunked-512", "steps/s", "promise kept"),
            ),
            rows,
        )


def kept(cell: Cell) -> str:
    if not cell["promise"]:
        return "-"
    return "yes" if percentile(cell["tokens"], 0.99) <= cell["promise"] else "NO"


def plot(results: Results, folder: Path) -> None:
    """Writes latency.svg, split.svg and frontier.svg, if the results have data for them."""
    try:
        import matplotlib
    except ImportError as error:
        print(
            f"no plots without matplotlib ({error}): pip install matplotlib; or keep the results "
            "with --json FILE, and draw them elsewhere with --from FILE --plot FOLDER"
        )
        return
    matplotlib.use("svg")
    matplotlib.rcParams["svg.fonttype"] = "none"  # Text stays text.
    matplotlib.rcParams["svg.hashsalt"] = "gcx"  # The same file each time.
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    where = ("SIMULATED " if results["simulated"] else "") + results["device"]
    for name, draw in (("latency", _latency), ("split", _split), ("frontier", _frontier)):
        figure = draw(pyplot, results, where)
        if figure is not None:
            path = folder / f"{name}.svg"
            figure.savefig(path, format="svg", metadata={"Date": None})
            pyplot.close(figure)
            print(f"wrote {path}")


def _rates(cells: list[Cell]) -> list[float]:
    return sorted({cell["rate"] for cell in cells})


def _plain_numbers(axis: Any) -> None:
    """Labels a logarithmic axis with 1, 1.5, 2, 3, 5, 7, 10."""
    from matplotlib import ticker

    axis.set_major_locator(ticker.LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter("{x:g}")


def _latency(pyplot: Any, results: Results, where: str) -> Any:
    """Draws the distributions: token to token above, first token below."""
    rates = _rates(results["cells"])
    figure, axes = pyplot.subplots(
        2, len(rates), figsize=(4 * len(rates), 7), layout="constrained", squeeze=False
    )
    for column, rate in enumerate(rates):
        shown = [cell for cell in results["cells"] if cell["rate"] == rate]
        policies = [cell["arm"] for cell in shown if cell["promise"]][:2]  # Not all the frontier.
        for cell in shown:
            if cell["promise"] and cell["arm"] not in policies:
                continue
            for row, times in enumerate((cell["tokens"], cell["first"])):
                ordered, count = sorted(times), len(times)
                # About 300 points and the slowest 20, for a small file.
                chosen = sorted({*range(0, count, count // 300 + 1), *range(count - 20, count)})
                chosen = [number for number in chosen if number >= 0]
                axes[row][column].step(
                    [ordered[number] for number in chosen],
                    [(number + 1) / count for number in chosen],
                    where="post",
                    label=cell["arm"] if row == column == 0 else None,
                    linewidth=2 if cell["promise"] else 1,
                )
        axes[0][column].set(xscale="log", xlabel="from token to token, ms", title=f"{rate:g}/s")
        axes[1][column].set(xscale="log", xlabel="to the first token, ms")
    for each in axes.flat:
        each.set(ylim=(0, 1.02))
        each.grid(alpha=0.3)
        _plain_numbers(each.xaxis)
    axes[0][0].set_ylabel("share of tokens")
    axes[1][0].set_ylabel("share of prompts")
    figure.suptitle(f"Decode beside prefill, prompts per second above; {where}")
    figure.legend(loc="outside lower center", ncols=5, fontsize="small")
    return figure


def _split(pyplot: Any, results: Results, where: str) -> Any:
    """Draws decode's SMs and the number of prompts over half a second."""
    cells = [cell for cell in results["cells"] if cell["promise"]]
    if not cells:
        return None
    promise = cells[0]["promise"]
    cells = [cell for cell in cells if cell["promise"] == promise]
    figure, axes = pyplot.subplots(
        len(cells), 1, figsize=(10, 2.4 * len(cells)), layout="constrained", squeeze=False
    )
    for (each,), cell in zip(axes, cells):
        start = next((at for at in cell["arrivals"] if at > 500), cell["arrivals"][0]) - 100
        at = [time - start for time, _ in cell["layouts"]] + [cell["elapsed"] - start]
        sms = [layout for _, layout in cell["layouts"]]
        each.fill_between(at, [*sms, sms[-1]], step="post", alpha=0.5, label="decode's SMs")
        each.set(xlim=(0, 500), ylim=(0, results["sm_count"]), ylabel="SMs")
        changes = sorted(
            [(arrival - start, 1) for arrival in cell["arrivals"]]
            + [(a + f - start, -1) for a, f in zip(cell["arrivals"], cell["first"])]
        )
        counts, count = [], 0
        for _, change in changes:
            count += change
            counts.append(count)
        prompts = each.twinx()
        prompts.step([time for time, _ in changes], counts, where="post", color="tab:red")
        prompts.set(ylabel="prompts", ylim=(0, max(counts) + 0.5))
        prompts.yaxis.label.set_color("tab:red")
        each.set_title(f"{cell['rate']:g} prompts/s, promised {promise:g} ms", fontsize="medium")
    axes[-1][0].set_xlabel("ms")
    figure.suptitle(f"SMs that decode's steps have (the rest is prefill's), and prompts; {where}")
    return figure


def _frontier(pyplot: Any, results: Results, where: str) -> Any:
    """Draws each arm's token time against its first token's. Lower left is better."""
    rates = _rates(results["cells"])
    figure, axes = pyplot.subplots(
        1, len(rates), figsize=(4.5 * len(rates), 4.5), layout="constrained", squeeze=False
    )
    for each, rate in zip(axes[0], rates):
        points = []
        for cell in (cell for cell in results["cells"] if cell["rate"] == rate):
            x, y = percentile(cell["tokens"], 0.99), percentile(cell["first"], 0.5)
            if cell["promise"]:
                points.append((x, y))
                continue
            each.plot(x, y, "o", color="tab:gray")
            each.annotate(cell["arm"], (x, y), fontsize="x-small", xytext=(3, 3),
                          textcoords="offset points")  # fmt: skip
        if points:
            each.plot(*zip(*sorted(points)), "o-", color="tab:red", label="the policy")
            each.legend(fontsize="small")
        each.set(xscale="log", yscale="log", title=f"{rate:g} prompts/s")
        each.set(xlabel="token to token, p99, ms")
        each.grid(alpha=0.3)
        for axis in (each.xaxis, each.yaxis):
            _plain_numbers(axis)
    axes[0][0].set_ylabel("first token, median, ms")
    figure.suptitle(f"What each way to serve reaches; {where}")
    return figure
