#!/bin/sh
# Says what is left to do after `meson install`: after_install.sh LIBDIR.
# Debian has ldconfig in /sbin, which is not on the PATH of ordinary users.
PATH=$PATH:/usr/sbin:/sbin
if [ -n "$DESTDIR" ] || ! command -v ldconfig >/dev/null 2>&1 ||
    ldconfig -p 2>/dev/null | grep -q "$1/libgcx\\.so"; then
    exit 0
fi
if ldconfig -v -N -X 2>/dev/null | grep -q "^$1:"; then
    echo "gcx: run ldconfig as root, so that programs find $1/libgcx.so"
else
    echo "gcx: the loader does not search $1: set LD_LIBRARY_PATH=$1"
fi
