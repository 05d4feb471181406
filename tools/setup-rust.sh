# shellcheck shell=bash
# Finds Rust with clippy and rustfmt, or has the distribution's newest installed. Sourced after
# setup.sh. Debian 12 has it as rustc-web, Ubuntu 24.04 as rustc-1.NN; newer ones as rustc.

# What the example with cudarc needs; the crates themselves are content with 1.63.
rust_least=1.88

rust_is_enough() {
    local version
    command -v cargo >/dev/null && cargo clippy --version >/dev/null 2>&1 && cargo fmt --version >/dev/null 2>&1 || return 1
    version=$(rustc --version | cut -d ' ' -f 2)
    [ "$(printf '%s\n' "$rust_least" "$version" | sort -V | head -n 1)" = "$rust_least" ]
}

# The newest NN of Ubuntu's rustc-1.NN.
ubuntu_rust() {
    apt-cache pkgnames rustc-1. 2>/dev/null | sed -n 's/^rustc-1\.\([0-9]*\)$/\1/p' | sort -n | tail -n 1
}

has_package() { apt-cache show "$1" >/dev/null 2>&1; }

# After what was missing was installed.
check_rust() {
    rust_is_enough || die "Rust $rust_least or newer is wanted, with clippy and rustfmt, and there is \
$(rustc --version 2>/dev/null || echo none): the newest is in the distribution's security updates \
(Debian 12: bookworm-security), or comes by rustup"
}

need_rust() {
    local minor
    ! rust_is_enough || return 0
    command -v apt-get >/dev/null || die "Rust $rust_least or newer is missing, with clippy and rustfmt"
    # A fresh machine knows no packages.
    has_package rustc || as_root apt-get update -qq >/dev/null || die "apt-get update failed"
    minor=$(ubuntu_rust)
    if has_package rustc-web; then
        missing_packages+=(rustc-web cargo-web rust-web-clippy rustfmt-web)
    elif [ -n "$minor" ]; then
        missing_packages+=("rustc-1.$minor" "cargo-1.$minor" "rust-1.$minor-clippy" "rustfmt-1.$minor")
        PATH=/usr/lib/rust-1.$minor/bin:$PATH
        export PATH
    else
        missing_packages+=(rustc cargo rust-clippy rustfmt)
    fi
}
