#!/usr/bin/env bash
# Makes cnitool, the CNI project's own caller of plugins. Debian has it in no binary package, but in
# the source of one; so it is built from there.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: scripts/cnitool.sh

Prints the path of cnitool; makes build/tools/cnitool when it is missing.
EOF
}

readonly source_package=golang-github-appc-cni

# The system's own lists stay as they are: sources are looked up through private ones.
write_apt_config() {
  local folder=$1 sources
  mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial"
  sources=$folder/sources.list
  if [[ -e /etc/apt/sources.list.d/debian.sources ]]; then
    sources=$folder/debian.sources
    sed 's/^Types: .*/Types: deb-src/' /etc/apt/sources.list.d/debian.sources >"$sources"
  else
    sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >"$sources"
  fi
  cat >"$folder/apt.conf" <<CONFIG
Dir::Etc::sourcelist "$sources";
Dir::Etc::sourceparts "-";
Dir::State::lists "$folder/lists";
Dir::Cache "$folder/cache";
APT::Sandbox::User "root";
CONFIG
}

# build TARGET: apt checks that the source is what Debian signed; the build takes nothing else.
build() {
  local target=$1 folder source
  folder=$(mktemp -d "$target.XXXXXX")
  # shellcheck disable=SC2064  # The folder of now.
  trap "rm -rf '$folder'" EXIT
  write_apt_config "$folder"
  (
    cd "$folder"
    export APT_CONFIG=$folder/apt.conf
    apt-get -qq -o Acquire::Retries=3 update
    apt-get -qq source "$source_package"
  ) >&2
  source=$(find "$folder" -maxdepth 1 -type d -name "$source_package-*")
  mkdir -p "$folder/go/src/github.com/containernetworking"
  ln -s "$source" "$folder/go/src/github.com/containernetworking/cni"
  GOPATH=$folder/go GO111MODULE=off GOCACHE=$folder/gocache GOFLAGS='' CGO_ENABLED=0 \
    go build -trimpath -o "$folder/cnitool" github.com/containernetworking/cni/cnitool >&2
  mv "$folder/cnitool" "$target"
  rm -rf "$folder"
  trap - EXIT
}

main() {
  local here tool
  case ${1:-} in
    '') ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
  tool=$here/build/tools/cnitool
  if [[ ! -x $tool ]]; then
    mkdir -p "${tool%/*}"
    build "$tool" || { printf 'cnitool.sh: cannot build cnitool\n' >&2 && exit 1; }
  fi
  printf '%s\n' "$tool"
}

main "$@"
