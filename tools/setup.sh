# shellcheck shell=bash
# What examples/quickstart.sh and tests/run.sh share: finds the tools they need, and installs what
# is missing. Sourced, not run. Quick when all is there.

# Says what went wrong and ends the script.
die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

note() { printf -- '-- %s\n' "$*"; }

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "installing packages needs root or sudo; missing: ${missing_packages[*]}"
    fi
}

# need COMMAND PACKAGE: remembers the Debian package if there is no such command, or file if it is an
# absolute path.
missing_packages=()
need() {
    case $1 in
    /*) [ -e "$1" ] ;;
    *) command -v "$1" >/dev/null ;;
    esac || missing_packages+=("$2")
}

install_missing() {
    [ ${#missing_packages[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null ||
        die "missing: ${missing_packages[*]} (names of Debian packages); install them by your system's own means"
    note "installing ${missing_packages[*]}"
    as_root apt-get update -qq >/dev/null || die "apt-get update failed"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        "${missing_packages[@]}" >/dev/null || die "apt-get could not install ${missing_packages[*]}"
    missing_packages=()
}

meson_is_enough() {
    command -v meson >/dev/null && command -v ninja >/dev/null || return 1
    local version
    version=$(meson --version)
    [ "$(printf '%s\n' 1.3.0 "$version" | sort -V | head -n 1)" = 1.3.0 ]
}

# A virtual environment in .venv with the packages of a requirements file, first on the PATH.
use_venv() {
    local requirements=$1
    local stamp
    stamp=.venv/$(basename "$requirements").stamp
    if [ ! -x .venv/bin/python3 ]; then
        # Debian leaves ensurepip, which venv needs, to a package of its own.
        python3 -c 'import ensurepip' 2>/dev/null || missing_packages+=(python3-venv)
        install_missing
        python3 -m venv --clear .venv || die "python3 -m venv failed"
    fi
    if ! cmp -s "$requirements" "$stamp"; then
        note "installing the Python packages of $requirements into .venv"
        .venv/bin/python3 -m pip install -q --disable-pip-version-check -r "$requirements" ||
            die "pip could not install the packages of $requirements"
        cp "$requirements" "$stamp"
    fi
    PATH=$PWD/.venv/bin:$PATH
    export PATH
}
