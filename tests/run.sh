#!/usr/bin/env bash
# Installs what the tests need, builds, and runs all of them. May be run again, and then is
# quick. The last line is "N passed, N failed". What there is: tests/run.sh --list; one part
# alone: tests/run.sh PART...; what a change needs before it is shown around: tests/run.sh --quick
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tools/setup.sh
. tools/setup.sh
# shellcheck source=tools/setup-rust.sh
. tools/setup-rust.sh

need g++ g++
need gcc gcc
need python3 python3
need abidiff abigail-tools
need shellcheck shellcheck
need pkg-config pkg-config
need nm binutils
need git git
need ccache ccache
need cmake cmake
need dpkg-architecture dpkg-dev # without it Meson installs where Debian's CMake doesn't look
need make make
need aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
need qemu-aarch64 qemu-user
need clang++-19 clang-19
need_file /usr/lib/llvm-19/lib/clang/19/lib/linux libclang-rt-19-dev
need_file /usr/lib/llvm-19/lib/libclang-19.so.1 libclang1-19
need valgrind valgrind
need_rust
need go golang-go
need javac default-jdk-headless
need mvn maven
need node nodejs
need npm npm
need luajit luajit
need luacheck lua-check
python_headers=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["include"])' 2>/dev/null || true)
need_file "${python_headers:-/nowhere}/Python.h" python3-dev
install_missing
check_rust
use_venv tests/requirements.txt
exec python3 -m tests.suite "$@"
