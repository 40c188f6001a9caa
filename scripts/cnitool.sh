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
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly here

# build TARGET: the build takes nothing but that source.
build() {
  local target=$1 folder source
  folder=$(mktemp -d "$target.XXXXXX")
  # shellcheck disable=SC2064  # The folder of now.
  trap "rm -rf '$folder'" EXIT
  source=$("$here/scripts/debian_source.sh" "$source_package" "$folder")
  mkdir -p "$folder/go/src/github.com/containernetworking"
  ln -s "$source" "$folder/go/src/github.com/containernetworking/cni"
  GOPATH=$folder/go GO111MODULE=off GOCACHE=$folder/gocache GOFLAGS='' CGO_ENABLED=0 \
    go build -trimpath -o "$folder/cnitool" github.com/containernetworking/cni/cnitool >&2
  mv "$folder/cnitool" "$target"
  rm -rf "$folder"
  trap - EXIT
}

main() {
  local tool
  case ${1:-} in
    '') ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  tool=$here/build/tools/cnitool
  if [[ ! -x $tool ]]; then
    mkdir -p "${tool%/*}"
    build "$tool" || { printf 'cnitool.sh: cannot build cnitool\n' >&2 && exit 1; }
  fi
  printf '%s\n' "$tool"
}

main "$@"
