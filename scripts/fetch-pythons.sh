#!/bin/bash
# Usage: fetch-pythons.sh [SUITE...]
#
# Unpacks every Python of other Debian suites (bullseye, trixie, sid) into CACHE/pythons/SUITE, for
# the tests that read Python's own structures; CACHE is $MEMTRACE_CACHE, ~/.cache/memtrace or .cache.
# The mirror is that of this machine's own apt sources. apt works in a folder of its own: nothing is
# installed, and this machine's lists and packages stay as they are. A suite that cannot be had is
# left out with a line that says so. About 30 MB to download a suite; less than a minute for all.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(bullseye trixie sid)
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
pythons=$(cache_dir)/pythons
mkdir -p "$pythons"
pythons=$(cd "$pythons" && pwd)

# Needed to install or to look nice, not to run.
unused='^(debconf|dpkg|gcc-[0-9]+-base|media-types|netbase|perl-base|readline-common|tar|tzdata)$'

# find_mirror: where this machine gets its own Debian packages from.
find_mirror() {
    local codename
    # shellcheck disable=SC1091
    codename=$(. /etc/os-release && [ "$ID" = debian ] && echo "${VERSION_CODENAME:-stable}")
    [ -n "$codename" ] || return
    apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Identifier: Packages' 'Component: main' |
        awk -v codename="$codename" '$2 == codename || $2 ~ /^(old)*stable$/ { print $1; exit }'
}

# apt COMMAND...: one of apt's commands in the folder $apt.
apt() {
    local command=$1
    shift
    "$command" -q -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=- \
        -o Dir::Etc::preferences=- -o Dir::Etc::preferencesparts=- \
        -o Dir::State="$apt" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt" \
        -o APT::Sandbox::User="$(id -un)" -o Acquire::Languages=none -o Acquire::Retries=3 "$@"
}

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
    local suite=$1 root=$pythons/$1 apt=$pythons/$1.new/apt package packages
    rm -rf "$root.new"
    mkdir -p "$apt"/{lists,archives}/partial "$root.new/root"
    : >"$apt/status"
    echo "deb [signed-by=$keyring] $mirror $suite main" >"$apt/sources.list"
    apt apt-get update
    packages=$(wanted_packages)
    is_newer_than_here || packages=$(grep -vE '^(libc6|libc-.*|libgcc-s1|libcrypt1)$' <<<"$packages")
    # shellcheck disable=SC2086
    (cd "$apt/archives" && apt apt-get download $packages)
    for package in "$apt/archives"/*.deb; do
        dpkg-deb --fsys-tarfile "$package" |
            tar -x -C "$root.new/root" --exclude='./usr/share/*' --exclude='./etc/*'
    done
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
