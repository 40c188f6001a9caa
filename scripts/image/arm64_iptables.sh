#!/usr/bin/env bash
# Fetches Debian's iptables for arm64, which the image for arm64 holds. It cannot be installed beside the
# machine's own, so it is taken out of its package.
set -euo pipefail

usage() {
  cat <<'EOT'
usage: scripts/image/arm64_iptables.sh

Unpacks the package iptables:arm64 into build/tools/iptables-arm64, if it is not there already.
EOT
}

main() {
  local here target
  case ${1:-} in
    '') ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
  target=$here/build/tools/iptables-arm64
  if [[ -f $target/DEBIAN/control ]]; then return; fi
  rm -rf "$target"
  "$here/scripts/debian_unpack.sh" iptables:arm64 "$target"
}

main "$@"
