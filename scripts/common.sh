# Sourced by the scripts that fetch things; the current folder is the root of the tree.
# Downloads go to $MEMTRACE_CACHE, to ~/.cache/memtrace if that folder exists, else to .cache in the
# tree: nothing is left outside it unasked.

say() {
    printf '  %-7s %s\n' SETUP "$*"
}

die() {
    echo "memtrace: $*" >&2
    exit 1
}

cache_dir() {
    if [ -n "${MEMTRACE_CACHE:-}" ]; then
        echo "$MEMTRACE_CACHE"
    elif [ -d "${HOME:-/nonexistent}/.cache/memtrace" ]; then
        echo "$HOME/.cache/memtrace"
    else
        echo "$PWD/.cache"
    fi
}

# is_cache_shared: does the cache outlive this tree, so that big wheels are worth keeping?
is_cache_shared() {
    [ "$(cache_dir)" != "$PWD/.cache" ]
}

# find_python: a Python for which wheels of both tested PyTorch versions exist, 3.11 first.
find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3.11 python3 python3.12 python3.13; do
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
            2>/dev/null; then
            echo "$candidate"
            return 0
        fi
    done
    die "needs Python 3.11, 3.12 or 3.13 (set PYTHON=)"
}

# fetch_wheel NAME==VERSION [any]: prints the path of the wheel, downloaded once into the cache.
# any: the wheel is only unpacked, so it may be for another Python.
fetch_wheel() {
    local spec=$1 cache file python
    python=$(find_python)
    cache=$(cache_dir)/wheels
    mkdir -p "$cache"
    file=$(echo "${spec%%==*}" | tr - _)-${spec##*==}
    if ! compgen -G "$cache/$file-*.whl" >/dev/null; then
        "$python" -m pip --version >/dev/null 2>&1 ||
            die "needs pip (Debian: apt install python3-pip)"
        "$python" -m pip download --quiet --disable-pip-version-check --no-cache-dir --no-deps \
            --only-binary :all: --dest "$cache" "$spec" >&2 ||
            die "could not download $spec from PyPI"
    fi
    compgen -G "$cache/$file-*.whl" | head -n 1
}

# listed FILE: the lines of a list, without its comments.
listed() {
    grep -E '^[^#]' "$1"
}

# listed_specs FILE: what a list names, a line each: a wheel in the shared cache or the name for pip to download.
listed_specs() {
    local spec
    while read -r spec; do
        if is_cache_shared; then
            fetch_wheel "$spec"
        else
            echo "$spec"
        fi
    done < <(listed "$1")
}
