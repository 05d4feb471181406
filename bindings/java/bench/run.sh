#!/usr/bin/env bash
# Compares the cost of calls from Java, C and empty JNI calls, after native.sh and the Maven build:
#     bindings/java/bench/run.sh [FOLDER OF native.sh [MAVEN'S FOLDER]]
# On the simulated driver, unless GCX_DRIVER names another.
set -euo pipefail
cd "$(dirname "$0")"
native=$(realpath "${1:-../../../build/java}")
maven=$(realpath "${2:-../../../build/maven}")
jdk=$(dirname "$(dirname "$(realpath "$(command -v javac)")")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
version=$(sed -n 's|^  <version>\(.*\)</version>$|\1|p' ../pom.xml)
jar=$maven/gcx-$version.jar
# The libraries in one folder, so that C and Java call the same one.
cp -r "$native"/jar/resources/native/*/. "$scratch"
cc -O2 -shared -fPIC -I../../../include -isystem "$jdk/include" -isystem "$jdk/include/linux" \
    bench.c -o "$scratch/libbench.so" "$scratch/libgcx.so.1" "-Wl,-rpath,$scratch"
javac -cp "$jar" -d "$scratch" CallCost.java
export GCX_DRIVER=${GCX_DRIVER:-sim:h100@13.0}
java "-Dgcx.library.path=$scratch" -cp "$jar:$scratch" CallCost "$scratch/libbench.so"
