#!/bin/bash
# Usage: fetch-memory-viz.sh
#
# Puts PyTorch's viewer of memory snapshots, MemoryViz.js, and what it runs on without a browser (d3, jsdom, and node
# where this machine has none) into CACHE/memory-viz, for the test that opens snapshots in it; CACHE is
# $MEMTRACE_CACHE, ~/.cache/memtrace or .cache. The viewer is in no wheel: it comes from Debian's source package. About
# 60 MB to download, most of which is thrown away.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh
. scripts/debian-suite.sh

viewer=torch/utils/viz/MemoryViz.js
viewer_sha256=313cf4c0e971055e37da051763f042ed149fc5e56ad4a598edadf03b2da71ee5
source_suite=trixie
package_suite=bookworm # of d3 5, which the viewer wants; its programs run on any later Debian too

place=$(cache_dir)/memory-viz
[ ! -d "$place" ] || exit 0
mirror=$(find_mirror) || true
[ -n "$mirror" ] || die "finds no mirror in this machine's own apt sources (it must be a Debian)"
mkdir -p "$(cache_dir)"
new=$(cd "$(cache_dir)" && pwd)/memory-viz.new
apt=$new/apt
log=$new/log

# wanted_packages: pure JavaScript; node itself and its libraries only where there is none.
wanted_packages() {
    local wanted='^node-'
    command -v node >/dev/null || wanted='^(node|lib(node|uv|cares|nghttp2|ssl|icu|brotli))'
    apt apt-get install -y --no-install-recommends --print-uris node-d3 node-jsdom nodejs |
        sed -n "s/^'[^']*' \([^_]*\)_.*/\1/p" | grep -E "$wanted"
}

fetch_packages() {
    local package
    open_suite "$mirror" "$package_suite" main
    # shellcheck disable=SC2046
    (cd "$apt/archives" && apt apt-get download $(wanted_packages))
    mkdir -p "$new/root"
    for package in "$apt/archives"/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar -x -C "$new/root" --exclude='./usr/share/doc' --exclude='./etc'
    done
}

fetch_viewer() {
    local archive
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $source_suite main" \
        >"$apt/sources.list"
    apt apt-get update
    (cd "$apt" && apt apt-get source --download-only pytorch)
    archive=$(compgen -G "$apt/pytorch_*.orig.tar.xz")
    tar -xJf "$archive" -C "$new" --strip-components=4 --wildcards "*/$viewer"
    sha256sum --check --quiet <<<"$viewer_sha256  $new/MemoryViz.js"
}

say "PyTorch's viewer of snapshots, from Debian"
rm -rf "$new"
mkdir -p "$new"
{
    fetch_packages
    fetch_viewer
} >"$log" 2>&1 & # where its status is not asked for, so that `set -e` holds in it
wait $! || {
    say "the viewer could not be had: $(tail -n 1 "$log")"
    rm -rf "$new"
    exit 1
}
rm -rf "$apt" "$log"
mv "$new" "$place"
