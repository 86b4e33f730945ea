#!/bin/bash
# Usage: setup.sh [build|unit|demo|check|full]
#
# Makes this machine ready, and does nothing when it is:
#   build  Debian packages that the compiler and linker need
#   unit   build, and cmocka for the unit tests
#   demo   build, and a virtual environment .venv with the CUDA build of PyTorch, but none of
#          NVIDIA's libraries
#   check  all of these, pytest, a second PyTorch, model libraries, other users of CUDA
#   full   check, and more libraries that train models
#
# Packages are installed with apt-get as root or through `sudo -n`; where neither works the line to
# type is printed. Nothing else is touched outside the tree. Python packages come from PyPI; with
# --no-deps, because PyTorch's own requirements are gigabytes of NVIDIA libraries that the
# simulated GPU replaces. MEMTRACE_CACHE=dir (or ~/.cache/memtrace, if it exists) keeps the wheels.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

level=${1:-check}
case $level in
build | unit | demo | check | full) ;;
*) die "usage: setup.sh [build|unit|demo|check|full]" ;;
esac

torch_version=2.15.0
old_torch_version=2.8.0
old_torch=.venv/torch-2.8

# Debian package and a file that shows that it is installed (also from elsewhere).
build_packages="
libzstd-dev     include/zstd.h
uthash-dev      include/uthash.h
libunwind-dev   include/libunwind.h
libdw-dev       include/elfutils/libdw.h"
unit_packages="
libcmocka-dev   include/cmocka.h"

# missing_packages LIST: prints the packages whose file is in no usual place.
missing_packages() {
    local package file
    while read -r package file; do
        [ -n "$package" ] || continue
        [ -e "/usr/$file" ] || [ -e "/usr/local/$file" ] ||
            [ -e "/usr/${file/include/include/x86_64-linux-gnu}" ] || echo "$package"
    done <<<"$1"
}

# all_missing PACKAGE...: these and what a later step would ask for, so that one line does for all.
all_missing() {
    { printf '%s\n' "$@" && missing_packages "$build_packages$unit_packages"; } | sort -u | xargs
}

apt_install() {
    local as_root=
    if [ "$(id -u)" != 0 ]; then
        sudo -n true 2>/dev/null || as_root=impossible
        as_root=${as_root:-sudo -n}
    fi
    if ! command -v apt-get >/dev/null; then
        die "needs these packages (Debian's names): $(all_missing "$@")"
    elif [ "$as_root" = impossible ]; then
        die "needs packages; type: sudo apt-get install -y $(all_missing "$@")"
    fi
    say "apt-get install $*"
    local log
    log=$(mktemp)
    if ! $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends "$@" >"$log" 2>&1; then
        # An old or missing list of packages is the usual reason.
        $as_root apt-get update -q >"$log" 2>&1 || true
        if ! $as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -q --no-install-recommends "$@" >>"$log" 2>&1; then
            tail -n 20 "$log" >&2
            rm -f "$log"
            die "apt-get install $* failed"
        fi
    fi
    rm -f "$log"
}

need_packages() {
    local missing
    mapfile -t missing < <(missing_packages "$1")
    [ ${#missing[@]} = 0 ] || apt_install "${missing[@]}"
}

# has_package NAME-VERSION [FOLDER]: pip writes RECORD last, so its presence means all of it.
has_package() {
    compgen -G "${2:-.venv/lib/python3.*/site-packages}/$1.dist-info/RECORD" >/dev/null
}

# pip_install ARGUMENT...: into the environment, by the pip of the Python that made it; this needs
# no ensurepip, which Debian keeps in a package of its own.
pip_install() {
    mkdir -p .venv/tmp
    TMPDIR=$PWD/.venv/tmp "$python" -m pip --python .venv/bin/python install --quiet \
        --disable-pip-version-check --no-cache-dir --root-user-action ignore "$@" ||
        die "pip install $* failed"
    rm -rf .venv/tmp
}

# wheel_or_spec NAME==VERSION: a wheel kept in a shared cache, else the name for pip to download.
wheel_or_spec() {
    if is_cache_shared; then
        fetch_wheel "$1"
    else
        echo "$1"
    fi
}

make_venv() {
    .venv/bin/python -c '' 2>/dev/null && return
    rm -rf .venv
    python=$(find_python)
    "$python" -m pip --version >/dev/null 2>&1 || apt_install python3-pip
    say "virtual environment .venv ($("$python" --version))"
    "$python" -m venv --without-pip .venv 2>/dev/null || {
        apt_install python3-venv
        "$python" -m venv --without-pip .venv
    }
}

install_torch() {
    has_package "torch-$torch_version" && return
    say "PyTorch $torch_version (540 MB to download)"
    pip_install -r scripts/requirements-demo.txt
    pip_install --no-deps "$(wheel_or_spec "torch==$torch_version")"
}

install_old_torch() {
    has_package "torch-$old_torch_version" $old_torch && return
    say "PyTorch $old_torch_version (890 MB to download)"
    rm -rf $old_torch $old_torch.new
    pip_install --no-deps --target $old_torch.new "$(wheel_or_spec "torch==$old_torch_version")"
    mv $old_torch.new $old_torch
}

# install_listed NAME WHAT: what scripts/requirements-NAME.txt lists, all of it. Most of these
# require torch, so their own requirements stand in the file.
install_listed() {
    local list=requirements-$1.txt
    cmp -s "scripts/$list" ".venv/$list" && return
    say "$2"
    pip_install --no-deps -r "scripts/$list"
    cp "scripts/$list" ".venv/$list"
}

need_packages "$build_packages"
case $level in unit | check | full) need_packages "$unit_packages" ;; esac
case $level in build | unit) exit 0 ;; esac
make_venv
python=$(find_python)
install_torch
[ "$level" != demo ] || exit 0
install_listed check "pytest and the model libraries of the tests"
install_old_torch
scripts/fetch-clients.sh cudart12 cudart13 numba bitsandbytes # 130 MB to download
[ "$level" = full ] || exit 0
install_listed attribution "more libraries that train models (12 MB to download)"
