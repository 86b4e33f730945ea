#!/bin/bash
# Usage: check-platform.sh CC.  Exits 1 with one line where memtrace cannot be built.
set -u
cc=${1:-gcc}

stop() {
    echo "memtrace: $1" >&2
    exit 1
}

[ "$(uname -s)" = Linux ] || stop "needs Linux (this is $(uname -s))"
command -v "${cc%% *}" >/dev/null || stop "needs a C compiler ('$cc' is not there)"
answer=$(printf '%s\n' '#include <features.h>' \
    '#if !defined(__x86_64__) || defined(__ILP32__)' 'not-x86-64' \
    '#elif !defined(__GLIBC__)' 'not-glibc' \
    '#elif !__GLIBC_PREREQ(2, 31)' 'old-glibc' \
    '#else' 'supported' '#endif' | $cc -E -P -x c - 2>/dev/null | tail -n 1)
case $answer in
supported) ;;
not-x86-64) stop "needs x86-64 ($cc builds for $($cc -dumpmachine))" ;;
not-glibc) stop "needs glibc (this C library is another one)" ;;
old-glibc) stop "needs glibc 2.31 or later" ;;
*) stop "'$cc' cannot compile against the C library (are its headers, libc6-dev, installed?)" ;;
esac
