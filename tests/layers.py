"""Fails if an include points up, from a layer to one that it must not know: layers.py ROOT."""

from __future__ import annotations

import re
import sys
from pathlib import Path

# What each folder of src may include of src. ARCHITECTURE.md says what belongs where.
LAYERS = {
    "base": ["base/"],
    "driver": ["base/", "driver/"],
    "ipc": ["base/", "ipc/"],
    "core": ["base/", "driver/", "ipc/", "core/"],
    "probe": ["base/", "driver/", "core/", "probe/"],
    # The shim library is a program of gcx's: it uses gcx.h.
    "interpose": ["driver/cuda_api.h", "interpose/"],
    "api": ["base/", "driver/", "ipc/", "core/", "probe/", "interpose/", "api/"],
    "sim": ["sim/", "driver/cuda_api.h", "gcx_sim.h"],
    "cli": ["cli/", "interpose/exec_plan.hpp", "ipc/lock_dir.hpp"],
}
# The modules of src/sim, lowest first, and the headers of higher ones that each may include: most
# calls use the current context and streams, and a capture changes what other calls do.
MODULES = ["profiles", "entry", "device", "partition", "work", "graph"]
FROM_ABOVE = {
    "device": ["sim/work/work.hpp", "sim/graph/capture.hpp"],
    "partition": ["sim/work/work.hpp"],
    "work": ["sim/graph/capture.hpp"],
}
# What one file may include that its folder may not.
EXCEPTIONS = {
    "src/interpose/count_reporting.cpp": ["driver/driver.hpp"],
}
# Who may include these.
PUBLIC = {"gcx.h": [*LAYERS], "gcx_sim.h": ["cli"]}
CUDA = "src/driver/cuda_api.h"


def may_include(name: str) -> list[str]:
    _, layer, module = name.split("/")[:3]
    if layer != "sim" or module not in MODULES:
        return [*LAYERS[layer], *EXCEPTIONS.get(name, [])]
    below = [f"sim/{lower}/" for lower in MODULES[: MODULES.index(module) + 1]]
    plain = ["sim/machine.hpp", "sim/partition/sm_set.hpp", *LAYERS["sim"][1:]]
    return [*below, *FROM_ABOVE.get(module, []), *plain]


def problems_of(file: Path, name: str) -> list[str]:
    found = []
    layer = name.split("/")[1]
    for number, line in enumerate(file.read_text().splitlines(), 1):
        include = re.match(r'\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', line)
        if include is None:
            continue
        own, other = include.groups()
        if layer not in LAYERS:
            reason = f"src/{layer} is in no layer"
        elif own is not None and not own.startswith(tuple(may_include(name))):
            reason = f"it may include {' and '.join(may_include(name))}, not {own}"
        elif other in PUBLIC and layer not in PUBLIC[other]:
            reason = f"src/{layer} does not know {other}"
        elif other is not None and re.match(r"cuda\w*\.h$", other) and name != CUDA:
            reason = f"only {CUDA} includes {other}"
        else:
            continue
        found.append(f"{name}:{number}: {reason}")
    return found


def main() -> int:
    root = Path(sys.argv[1])
    files = sorted(
        file for end in ("h", "hpp", "cpp", "inc") for file in root.glob(f"src/**/*.{end}")
    )
    problems = [line for file in files for line in problems_of(file, str(file.relative_to(root)))]
    if len(files) < 50:
        problems.append(f"only {len(files)} files were found in {root / 'src'}")
    print("\n".join(problems) or f"{len(files)} files include what lies below them")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
