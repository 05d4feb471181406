#!/usr/bin/env bash
# Makes a folder that runs the Java package without an installed Java, after the Maven build: a runtime
# made by jlink, the jar, and the programs of tests/gpu/run-java.sh.
#     bindings/java/runtime.sh FOLDER [FOLDER OF MAVEN [FOLDER OF native.sh]]
set -euo pipefail
folder=$(realpath -m "${1:?usage: bindings/java/runtime.sh FOLDER [FOLDER OF MAVEN [FOLDER OF native.sh]]}")
built=$(realpath "${2:-$(dirname "$0")/../../build/maven}")
native=$(realpath "${3:-$(dirname "$0")/../../build/java}")
rm -rf "$folder"
mkdir -p "$folder/programs/gcx"
jlink --strip-debug --compress=2 --no-header-files --no-man-pages --add-modules java.base \
    --output "$folder/runtime"
version=$(sed -n 's|^  <version>\(.*\)</version>$|\1|p' "$(dirname "$0")/pom.xml")
cp "$built/gcx-$version.jar" "$folder/gcx.jar"
cp "$built"/test-classes/Scenario.class "$folder/programs"
cp "$built"/test-classes/gcx/{OnGpu,Work,EndTest}*.class "$folder/programs/gcx"
cp "$native/bindings/java/libgcx-java-work.so" "$folder"
