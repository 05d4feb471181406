"""Prints the folder of the cuda.h that the build is to use, or says what was looked for."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path


def candidates() -> list[Path]:
    found = [
        Path(os.environ[name]) / "include"
        for name in ("CUDA_HOME", "CUDA_PATH")
        if os.environ.get(name)
    ]
    found.append(Path("/usr/local/cuda/include"))
    found.append(Path("/usr/include"))
    # The package nvidia-cuda-runtime keeps the headers under nvidia/, in a folder that was
    # renamed from one major version to the next.
    roots = {sysconfig.get_paths()["purelib"], *sys.path}
    for root in sorted(filter(None, roots)):
        found.extend(sorted(Path(root).glob("nvidia/cu[0-9]*/include"), reverse=True))
        found.append(Path(root) / "nvidia" / "cuda_runtime" / "include")
    return found


def main() -> int:
    for folder in candidates():
        if (folder / "cuda.h").is_file():
            print(folder)
            return 0
    print(
        "no cuda.h found: set CUDA_HOME, pass -Dtoolkit_include=FOLDER, or install the Python "
        "package nvidia-cuda-runtime (pip install nvidia-cuda-runtime)",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
