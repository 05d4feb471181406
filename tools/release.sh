#!/usr/bin/env bash
# Makes everything that a release ships, from a clean checkout and package registries alone, and
# checks it: build/release/gcx-VERSION. RELEASING.md describes a release.
#     tools/release.sh            # refuses a development version and addresses of example.org
#     tools/release.sh --draft    # accepts them
#     tools/release.sh --try      # also installs and runs each artefact; needs root or sudo
# SOURCE_DATE_EPOCH is the time in the artefacts, by default that of the commit. The same commit and
# time give the same files.
set -euo pipefail
cd -P "$(dirname "$0")/.."
# shellcheck source=tools/setup.sh
. tools/setup.sh
# shellcheck source=tools/setup-rust.sh
. tools/setup-rust.sh

architectures=(x86_64 aarch64)
newest_glibc=2.28     # what zig links for; Debian 10, RHEL 8, Ubuntu 20.04 and newer have it
oldest_debian=bullseye # the oldest release with that glibc that Debian's mirrors still have
system_libraries='^(ld-linux-.*|lib(c|dl|m|pthread|rt))\.so\.[0-9]+$|^libgcx[-a-z]*\.so(\.1)?$'
simulated=sim:h100@13.0
version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" meson.build)
work=$PWD/build/release
out=$work/gcx-$version

draft=false
try=false
for option in "$@"; do
    case $option in
    --draft) draft=true ;;
    --try) try=true ;;
    *) die "unknown option $option; the options are --draft and --try" ;;
    esac
done

check_sources() {
    if $draft; then
        python3 tools/metadata.py || die "the packages differ from tools/project.json"
    else
        python3 tools/metadata.py --release || die "set these in tools/project.json, or use --draft"
        case $version in *-*) die "meson.build has the development version $version; set that of the release, or use --draft" ;; esac
    fi
    git rev-parse -q --verify HEAD >/dev/null ||
        die "$PWD is no git checkout; a release is made from one"
    [ -z "$(git status --porcelain)" ] ||
        die "the checkout has changes that are not committed: $(git status --porcelain | head -n 3); commit them, or clone again"
}

install_tools() {
    need g++ g++
    need git git
    need javac default-jdk-headless
    need mvn maven
    need readelf binutils
    need xz xz-utils
    need "$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["include"])')/Python.h" python3-dev
    need_rust
    if $try; then
        need debootstrap debootstrap
        need pkg-config pkg-config
        need qemu-aarch64 qemu-user
    fi
    install_missing
    check_rust
    use_venv tools/requirements-release.txt
}

# pack FOLDER FILE: a tar archive that depends on the contents of the folder alone.
pack() {
    tar -C "$(dirname "$1")" --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
        --mtime="@$SOURCE_DATE_EPOCH" -c "$(basename "$1")" | xz -T1 >"$2"
}

# The compiler for an architecture, as Meson's cross file. Zig brings the glibc and links its own C++
# runtime statically.
cross_file() {
    local zig flags link
    zig=$(python3 -c 'import ziglang; print(ziglang.__path__[0])')/zig
    flags="'-ffile-prefix-map=$PWD/=', '-isystem', '$work/include'"
    link="'-s', '-Wl,--undefined-version', '$work/finalize-$1.o'"
    # What GCC's crtbeginS.o does, which Zig lacks: a library that is unloaded runs its destructors of
    # static objects. At the process's end their code would be gone.
    "$zig" cc -target "$1-linux-gnu.$newest_glibc" -O2 -fPIC -x c -c - -o "$work/finalize-$1.o" <<'END'
extern void* __dso_handle;
void __cxa_finalize(void*);
__attribute__((destructor(101))) static void finalize(void) { __cxa_finalize(&__dso_handle); }
END
    cat <<END
[binaries]
c = ['$zig', 'cc', '-target', '$1-linux-gnu.$newest_glibc']
cpp = ['$zig', 'c++', '-target', '$1-linux-gnu.$newest_glibc']
ar = ['$zig', 'ar']
[built-in options]
c_args = [$flags]
cpp_args = [$flags]
c_link_args = [$link]
cpp_link_args = [$link]
[host_machine]
system = 'linux'
cpu_family = '$1'
cpu = '$1'
endian = 'little'
END
    # Debian's Python.h includes pyconfig.h by the name of the architecture. With the limited API, that
    # of one 64-bit Linux holds for the other.
    local python multiarch
    read -r python multiarch < <(python3 -c 'import sys, sysconfig
print("python%d.%d" % sys.version_info[:2], sysconfig.get_config_var("MULTIARCH"))')
    mkdir -p "$work/include/$1-linux-gnu"
    ln -sfn "/usr/include/$multiarch/$python" "$work/include/$1-linux-gnu/$python"
}

# One build of an architecture has the wheels, the natives of the jar and the files of the tarball.
make_native() {
    local arch=$1 build=$work/$1 pip=(python3 -m pip --disable-pip-version-check wheel -q)
    note "building for $arch"
    cross_file "$arch" >"$build.ini"
    local options=("--cross-file=$build.ini" -Djava=true -Ddatadir=share -Dpkgconfig.relocatable=true
        -Dunity=on -Dunity_size=12)
    pip+=(--no-build-isolation --no-deps -w "$work/wheels-$arch" "-Cbuild-dir=$build")
    _PYTHON_HOST_PLATFORM=linux-$arch "${pip[@]}" "${options[@]/#/-Csetup-args=}" .
    _PYTHON_HOST_PLATFORM=linux-$arch "${pip[@]}" bindings/python/sim
    python3 -m wheel tags --remove --platform-tag "manylinux_${newest_glibc/./_}_$arch" \
        "$work/wheels-$arch"/*.whl >/dev/null
    cp "$work/wheels-$arch"/*.whl "$out"

    local staged=$work/staged-$arch name=gcx-$version-linux-$arch
    local install=(meson install -C "$build" --no-rebuild --quiet --destdir)
    "${install[@]}" "$staged/java" --tags java
    find "$staged/java" -type l -delete # only linkers need these
    mkdir -p "$work/java/jar"
    cp -r "$staged/java/usr/local/share/gcx-java/." "$work/java/jar"
    "${install[@]}" "$staged/binary" --tags runtime,devel
    mv "$staged/binary/usr/local" "$staged/$name"
    cp LICENSE "$staged/$name"
    pack "$staged/$name" "$out/$name.tar.xz"
}

make_source() {
    note "packing the sources"
    local build=$work/${architectures[0]}
    meson dist -C "$build" --no-tests --formats xztar >/dev/null
    mkdir "$work/source"
    tar -C "$work/source" -xf "$build/meson-dist/gcx-$version.tar.xz"
    pack "$work/source/gcx-$version" "$out/gcx-$version.tar.xz"
}

make_jars() {
    note "building the jars"
    mvn -q -B -ntp -f bindings/java "-Dgcx.native=$work/java" "-Dgcx.build=$work/maven" -Dexec.skip \
        -Dmaven.test.skip "-Dproject.build.outputTimestamp=$SOURCE_DATE_EPOCH" package
    cp "$work/maven/gcx-$version"{,-sim,-sources,-javadoc}.jar "$out"
    cp bindings/java/pom.xml "$out/gcx-$version.pom"
}

# Cargo builds both crates from their packages.
make_crates() {
    note "packaging the crates and building them from the packages"
    local cargo
    cargo=$(cargo --version | cut -d ' ' -f 2)
    [ "$(printf '%s\n' 1.90 "$cargo" | sort -V | head -n 1)" = 1.90 ] ||
        die "cargo $cargo can't package a crate with one that is not published yet; install Rust 1.90 or newer"
    env -C bindings/rust "${for_crates[@]}" cargo package -q --locked -p gcx-sys -p gcx
    cp "$work"/rust/package/*.crate "$out"
}

# check_binary FILE ARCHITECTURE
check_binary() {
    local machine newest library problem=
    machine=$(readelf -h "$1" | sed -n 's/^ *Machine: *//p')
    case $2/$machine in
    x86_64/*X86-64 | aarch64/AArch64) ;;
    *) problem="it is for $machine, not for $2" ;;
    esac
    newest=$(readelf -W --dyn-syms "$1" | grep -o '@GLIBC_[0-9.]*' | sort -uV | tail -n 1 || true)
    [ "$(printf '%s\n' "@GLIBC_$newest_glibc" "$newest" | sort -V | tail -n 1)" = "@GLIBC_$newest_glibc" ] ||
        problem="it needs ${newest#@}, newer than $newest_glibc"
    for library in $(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p'); do
        [[ $library =~ $system_libraries ]] || problem="it needs $library, which systems may lack"
    done
    ! grep -qF "$PWD" "$1" || problem="it contains the path $PWD of this machine"
    [ -z "$problem" ] || die "${1#"$work/check/"}: $problem"
}

# Unpacks each artefact in build/release/check and looks at its binaries. The folders there are named
# like the artefacts; jars have a folder for each architecture.
check_binaries() {
    note "checking what the binaries need: at most glibc $newest_glibc"
    local artefact folder file architecture count=0
    for artefact in "$out"/*.whl "$out/gcx-$version"{,-sim}.jar "$out"/*-linux-*.tar.xz; do
        folder=$work/check/${artefact##*/}
        mkdir -p "$folder"
        case $artefact in
        *.tar.xz) tar -C "$folder" --strip-components=1 -xf "$artefact" ;;
        *) python3 -m zipfile -e "$artefact" "$folder" ;;
        esac
        while read -r file; do
            [ "$(head -c 4 "$file" | tail -c 3)" = ELF ] || continue
            architecture=$(grep -oE 'x86_64|aarch64' <<<"${file#"$work/check"}" | tail -n 1)
            check_binary "$file" "$architecture"
            count=$((count + 1))
        done < <(find "$folder" -type f)
    done
    # A tarball has 6 of them, a wheel 6, the simulator's 2, the jars 4 and 1.
    [ $count -eq $((19 * ${#architectures[@]})) ] || die "$count binaries are in the artefacts, not 19 for each architecture"
}

check_licences() {
    local artefact files
    for artefact in "$out"/*.{whl,jar,xz,crate}; do
        case $artefact in
        *.whl | *.jar) files=$(python3 -m zipfile -l "$artefact" | cut -d ' ' -f 1) ;;
        *) files=$(tar -tf "$artefact") ;;
        esac
        grep -qE '(^|/)LICENSE$' <<<"$files" || die "${artefact##*/} has no LICENSE"
    done
}

# expect TEXT COMMAND...: the command succeeds and prints the text.
expect() {
    local text=$1 said
    shift
    if ! said=$("$@" 2>&1) || [[ $said != *"$text"* ]]; then
        die "$* does not print \"$text\", but: $said"
    fi
    note "works: ${*//"$work/"/}"
}

# inside ARCHITECTURE COMMAND...: runs a command in the Debian of build/release/roots/ARCHITECTURE, or,
# for an emulated processor, with its libraries.
inside() {
    local root=$work/roots/$1
    local variables=("GCX_DRIVER=$simulated" "PYTHONPATH=$(seen "$1")/site")
    case $1 in
    x86_64)
        # $ORIGIN in libraries needs /proc.
        # shellcheck disable=SC2016 # the inner shell's words
        as_root env "${variables[@]}" unshare -m sh -c \
            'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$root" "${@:2}"
        ;;
    aarch64) env "${variables[@]}" qemu-aarch64 -L "$root" "${@:2}" ;;
    esac
}

# The folder of the release as a command run by inside() sees it.
seen() {
    case $1 in
    x86_64) echo /release ;;
    *) echo "$work/roots/$1/release" ;;
    esac
}

# Debian's name of an architecture.
debian_name() { sed 's/x86_64/amd64/;s/aarch64/arm64/' <<<"$1"; }

# A Debian with Python and Java. That of another architecture is only unpacked: qemu finds the libraries
# there, and nothing else runs in it.
make_root() {
    local arch=$1 root=$work/roots/$1 mirror
    local options=("--arch=$(debian_name "$arch")" --variant=minbase "--include=python3,openjdk-17-jre-headless")
    # shellcheck disable=SC2016 # apt-get's words
    mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -n 1)}
    [ ! -e "$root/done" ] || return 0
    note "unpacking Debian $oldest_debian for $arch"
    [ "$arch" = x86_64 ] || options+=(--foreign)
    as_root rm -rf "$root"
    as_root mkdir -p "$root"
    as_root debootstrap "${options[@]}" $oldest_debian "$root" "$mirror" >"$work/debootstrap-$arch.log" 2>&1 ||
        die "debootstrap has no $oldest_debian of $mirror, see $work/debootstrap-$arch.log; DEBIAN_MIRROR=URL names another mirror"
    if [ "$arch" != x86_64 ]; then
        as_root find "$root/var/cache/apt/archives" -name '*.deb' -exec dpkg -x {} "$root" ';'
    fi
    as_root touch "$root/done"
}

# Uses the wheels, the jars and the tarball of an architecture on the simulated driver.
try_in_root() {
    local arch=$1 root=$work/roots/$1 release
    make_root "$arch"
    as_root rm -rf "$root/release"
    as_root mkdir -p "$root/release/site"
    as_root cp -r "$work/check/gcx-$version-linux-$arch.tar.xz" "$root/release/gcx"
    as_root cp -r "$work/check"/gcx*"$arch".whl/* "$root/release/site"
    as_root cp -r "$out/gcx-$version"{,-sim}.jar examples/python "$work/try/classes" "$root/release"
    release=$(seen "$arch")
    local usr=${release%release}usr jars=$release/gcx-$version
    expect "ok: each partition" inside "$arch" "$release/gcx/bin/gcx" verify --sms 108,24
    expect "no SM is in both" inside "$arch" "$usr/bin/python3" "$release/python/scenario.py"
    expect "no SM is in both" inside "$arch" "$usr/lib/jvm/java-17-openjdk-$(debian_name "$arch")/bin/java" \
        -cp "$jars.jar:$jars-sim.jar:$release/classes" Scenario
    [ "$arch" = x86_64 ] || return 0 # an emulated program can't start others
    local program='import ctypes; cuda = ctypes.CDLL("libcuda.so.1"); n = ctypes.c_int(); '
    program+='cuda.cuInit(0); cuda.cuDeviceGetAttribute(ctypes.byref(n), 16, 0); print(n.value, "SMs")'
    expect "24 SMs" inside "$arch" "$release/gcx/bin/gcx" exec --sms 24 -- python3 -c "$program"
    expect "108 SMs" inside "$arch" "$release/gcx/bin/gcx" sim run --gpu a100 -- python3 -c "$program"
}

try_artefacts() {
    mkdir -p "$work/try/classes"
    export GCX_DRIVER=$simulated
    note "trying the wheels in a new environment"
    python3 -m venv "$work/try/venv"
    local bin=$work/try/venv/bin
    "$bin/python3" -m pip -q --disable-pip-version-check install --no-index --pre "--find-links=$out" 'gcx[sim]'
    expect "no SM is in both" "$bin/python3" examples/python/scenario.py
    expect "ok: each partition" "$bin/gcx" verify --sms 108,24

    note "trying the tarball: a program by its pkg-config file"
    local prefix=$work/check/gcx-$version-linux-x86_64.tar.xz flags
    read -ra flags < <(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs gcx)
    gcc examples/split.c "${flags[@]}" -o "$work/try/split"
    expect "runs on 24 SMs" env "LD_LIBRARY_PATH=$prefix/lib" "$work/try/split"

    note "trying the crates: an example, with the simulator"
    local package
    for package in gcx gcx-sys; do tar -C "$work/try" -xf "$out/$package-$version.crate"; done
    expect "no SM is in both" env -C "$work/try/gcx-$version" "${for_crates[@]}" \
        cargo run -q --features simulator --example scenario \
        --config "patch.crates-io.gcx-sys.path=\"$work/try/gcx-sys-$version\""

    javac -d "$work/try/classes" -cp "$out/gcx-$version.jar" examples/java/Scenario.java
    local arch
    for arch in "${architectures[@]}"; do try_in_root "$arch"; done
}

check_sources
install_tools
umask 022
unset "${!GCX_@}"
export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 ZIG_GLOBAL_CACHE_DIR=${ZIG_GLOBAL_CACHE_DIR:-$work/zig}
export ZIG_LOCAL_CACHE_DIR=$ZIG_GLOBAL_CACHE_DIR
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
cuda=$(dirname "$(python3 tools/find_cuda_include.py)")
for_crates=("CARGO_TARGET_DIR=$work/rust" "CUDA_HOME=$cuda" PKG_CONFIG_PATH= PKG_CONFIG_LIBDIR=)
# The roots of Debian are those of an earlier run; nothing else is.
if [ -d "$work" ]; then find "$work" -mindepth 1 -maxdepth 1 ! -name roots -exec rm -rf {} +; fi
mkdir -p "$out"
for arch in "${architectures[@]}"; do make_native "$arch"; done
make_source
make_jars
make_crates
check_licences
check_binaries
(cd "$out" && sha256sum ./* | sed 's|\./||' >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
if $try; then try_artefacts; fi
cat "$out/SHA256SUMS"
note "the release is in ${out#"$PWD/"}, made with SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH"
