#!/usr/bin/env bash
# Builds the jar's native part: the sources that SWIG generates, and the libraries. Maven runs it; a
# second run is quick.
#     bindings/java/native.sh FOLDER      # FOLDER/jar/sources and FOLDER/jar/resources
set -euo pipefail
build=$(realpath -m "${1:?usage: bindings/java/native.sh FOLDER}")
cd "$(dirname "$0")/../.."
if [ ! -e "$build/build.ninja" ]; then
    # Unity builds: most of the compile time is spent on headers.
    meson setup "$build" -Dwerror=true -Dunity=on -Dunity_size=12 -Ddebug=false -Djava=true \
        -Dtests=false -Dexamples=false -Ddatadir=share --prefix=/usr
fi
ninja -C "$build"
staged=$(mktemp -d "$build/staged-XXXXXX")
trap 'rm -rf "$staged"' EXIT
meson install -C "$build" --no-rebuild --quiet --tags java --destdir "$staged"
find "$staged" -type l -delete # only linkers need these
rm -rf "$build/jar"
mv "$staged/usr/share/gcx-java" "$build/jar"
