#!/bin/bash
# Usage: fetch-cuda-headers.sh FOLDER CONFIG_MK
#
# Finds CUDA headers (types only, nothing is linked) and writes their places to CONFIG_MK:
# CUDA_INCLUDE, headers of CUDA 13, and CUDA12_INCLUDE, headers of CUDA 12 for libcudart.so.12.
# A toolkit is taken from CUDA_HOME, CUDA12_HOME or /usr/local; where there is none of that version,
# NVIDIA's header wheels from PyPI are unpacked under FOLDER. CUDA_HOME=none ignores toolkits.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

folder=$1
config=$2
wheels_13=(nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88 nvidia-cuda-cupti==13.0.85)
# The crt headers of CUDA 13 serve 12 too: for a C compiler they are the same macros, and those of
# 12 come only in the 40 MB of nvcc.
wheels_12=(nvidia-cuda-runtime-cu12==12.8.90 nvidia-cuda-crt==13.0.88)

# is_toolkit INCLUDE MAJOR: are the headers that we include there, and of that version?
is_toolkit() {
    local header
    for header in cuda.h cudaTypedefs.h cuda_runtime_api.h crt/host_defines.h; do
        [ -f "$1/$header" ] || return 1
    done
    [ "$2" = 12 ] || [ -f "$1/cupti.h" ] || return 1
    grep -qE "^#define CUDA_VERSION $2[0-9]{3}" "$1/cuda.h"
}

# find_toolkit MAJOR: prints the include folder of an installed toolkit.
find_toolkit() {
    local home
    [ "${CUDA_HOME:-}" != none ] || return 1
    for home in "${CUDA_HOME:-}" "${CUDA12_HOME:-}" /usr/local/cuda "/usr/local/cuda-$1" \
        "/usr/local/cuda-$1".*; do
        if [ -n "$home" ] && is_toolkit "$home/include" "$1"; then
            echo "$home/include"
            return 0
        fi
    done
    return 1
}

# unpack WHEEL INCLUDE: only the headers, whatever the name of the folder that they stand in.
unpack() {
    "$python" - "$1" "$2" <<'PY'
import pathlib, sys, zipfile
wheel, include = zipfile.ZipFile(sys.argv[1]), pathlib.Path(sys.argv[2])
for name in wheel.namelist():
    inside = name.partition("/include/")[2]
    if inside.endswith((".h", ".hpp")) and ".." not in inside:
        (include / inside).parent.mkdir(parents=True, exist_ok=True)
        (include / inside).write_bytes(wheel.read(name))
PY
}

# headers MAJOR WHEEL...: prints the include folder, downloading if it must.
headers() {
    local major=$1 include package wheel
    shift
    if find_toolkit "$major"; then
        return 0
    fi
    include=$folder/$major/include
    if ! is_toolkit "$include" "$major"; then
        rm -rf "$include.tmp" "$include"
        for package in "$@"; do
            say "CUDA $major headers: $package" >&2
            wheel=$(fetch_wheel "$package" any)
            unpack "$wheel" "$include.tmp"
        done
        mv "$include.tmp" "$include"
        is_toolkit "$include" "$major" || die "the wheels $* lack a header that is needed"
    fi
    echo "$include"
}

python=$(find_python)
include_13=$(headers 13 "${wheels_13[@]}")
include_12=$(headers 12 "${wheels_12[@]}")
mkdir -p "$(dirname "$config")"
printf '%s := %s\n' CUDA_INCLUDE "$include_13" CUDA12_INCLUDE "$include_12" \
    configured_for "${CUDA_HOME:-}" >"$config"
