#!/bin/bash
# Usage: fetch-pythons.sh [SUITE...]
#
# Unpacks every Python of other Debian suites (bullseye, trixie, sid) into CACHE/pythons/SUITE, for
# the tests that read Python's own structures; CACHE is $MEMTRACE_CACHE, ~/.cache/memtrace or .cache.
# A suite that cannot be had is left out with a line that says so. About 30 MB to download a suite;
# less than a minute for all.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh
. scripts/debian-suite.sh

suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(bullseye trixie sid)
pythons=$(cache_dir)/pythons
mkdir -p "$pythons"
pythons=$(cd "$pythons" && pwd)

# Needed to install or to look nice, not to run.
unused='^(debconf|dpkg|gcc-[0-9]+-base|media-types|netbase|perl-base|readline-common|tar|tzdata)$'

# wanted_packages: the suite's Pythons and what they need, without what there is no use for.
wanted_packages() {
    local names version='3\.[0-9]+(-nogil)?'
    names=$(apt apt-cache pkgnames |
        grep -E "^(python$version-minimal|libpython$version(-stdlib)?)$")
    # shellcheck disable=SC2086
    apt apt-get install -y --no-install-recommends --print-uris $names |
        sed -n "s/^'[^']*' \([^_]*\)_.*/\1/p" | grep -vE "$unused"
}

# is_newer_than_here: is the suite's libc newer? An older one could not load what is built here, and
# this machine's own does for it.
is_newer_than_here() {
    dpkg --compare-versions "$(apt apt-cache show libc6 | awk '/^Version:/ { print $2; exit }')" gt \
        "$(dpkg-query -W -f '${Version}' libc6)"
}

fetch_suite() {
    local suite=$1 root=$pythons/$1 apt=$pythons/$1.new/apt packages
    rm -rf "$root.new"
    open_suite "$mirror" "$suite" main
    packages=$(wanted_packages)
    is_newer_than_here || packages=$(grep -vE '^(libc6|libc-.*|libgcc-s1|libcrypt1)$' <<<"$packages")
    # shellcheck disable=SC2086
    unpack_packages "$root.new/root" $packages
    rm -rf "$root"
    mv "$root.new/root" "$root"
}

mirror=$(find_mirror) || true
[ -n "$mirror" ] || die "finds no mirror in this machine's own apt sources (it must be a Debian)"
declare -A running
for suite in "${suites[@]}"; do
    [ ! -d "$pythons/$suite" ] || continue
    say "the Pythons of Debian $suite"
    fetch_suite "$suite" >"$pythons/$suite.log" 2>&1 &
    running[$suite]=$!
done
for suite in "${!running[@]}"; do
    wait "${running[$suite]}" ||
        say "Debian $suite could not be had: $(tail -n 1 "$pythons/$suite.log")"
    rm -rf "$pythons/$suite.new" "$pythons/$suite.log"
done
