"""Writes the profiles as C++ strings: embed_profiles.py OUTPUT PROFILE..."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    output, profiles = Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]]
    rows = "".join(
        f'    {{"{path.stem}", R"profile({path.read_text()})profile"}},\n' for path in profiles
    )
    output.write_text(
        '#include "sim/profiles/profile.hpp"\n\n'
        "namespace gcx::sim {\n\n"
        f"const EmbeddedProfile kEmbeddedProfiles[] = {{\n{rows}}};\n"
        f"const std::size_t kEmbeddedProfileCount = {len(profiles)};\n\n"
        "} // namespace gcx::sim\n"
    )


if __name__ == "__main__":
    main()
