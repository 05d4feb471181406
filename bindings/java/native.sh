#!/usr/bin/env bash
# Builds what the jar holds beside the package's classes: what SWIG makes, and the libraries. Maven
# runs it; it may be run again, and then is quick.
#     bindings/java/native.sh FOLDER      # FOLDER/jar/sources and FOLDER/jar/resources
set -euo pipefail
build=$(realpath -m "${1:?usage: bindings/java/native.sh FOLDER}")
cd "$(dirname "$0")/../.."
if [ ! -e "$build/build.ninja" ]; then
    # Several sources in one unit: most of a compiler's time goes into their headers.
    meson setup "$build" -Dwerror=true -Dunity=on -Dunity_size=12 -Ddebug=false -Djava=true \
        -Dtests=false -Dexamples=false -Ddatadir=share --prefix=/usr
fi
ninja -C "$build"
staged=$(mktemp -d "$build/staged-XXXXXX")
trap 'rm -rf "$staged"' EXIT
meson install -C "$build" --no-rebuild --quiet --tags java --destdir "$staged"
find "$staged" -type l -delete # for linkers, of which there is none here
rm -rf "$build/jar"
mv "$staged/usr/share/gcx-java" "$build/jar"
