# Sourced, after common.sh, by the scripts that unpack packages of other Debian suites into a folder. The mirror is
# that of this machine's own apt sources. apt works in a folder of its own: nothing is installed, and this machine's
# lists and packages stay as they are.

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

# open_suite MIRROR SUITE COMPONENT...: makes the folder $apt and gets the suite's lists.
open_suite() {
    mkdir -p "$apt"/{lists,archives}/partial
    : >"$apt/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $*" >"$apt/sources.list"
    apt apt-get update
}

# unpack_packages FOLDER PACKAGE...: without documents and settings.
unpack_packages() {
    local folder=$1 package
    shift
    (cd "$apt/archives" && apt apt-get download "$@")
    mkdir -p "$folder"
    for package in "$apt/archives"/*.deb; do
        dpkg-deb --fsys-tarfile "$package" |
            tar -x -C "$folder" --exclude='./usr/share/*' --exclude='./etc/*'
    done
}
