#!/usr/bin/env bash
# Fetches Debian's iptables for arm64, which the image for arm64 holds. It cannot be installed beside the
# machine's own, so it is taken out of its package.
set -euo pipefail

usage() {
  cat <<'EOT'
usage: scripts/arm64_iptables.sh

Unpacks the package iptables:arm64 into build/tools/iptables-arm64, if it is not there already.
EOT
}

# fetch TARGET: from the Debian archive; apt checks that it is what Debian signed.
fetch() {
  local target=$1 folder
  folder=$(mktemp -d "$target.XXXXXX")
  # shellcheck disable=SC2064  # The folder of now.
  trap "rm -rf '$folder'" EXIT
  (cd "$folder" && apt-get -qq -o Acquire::Retries=3 -o APT::Sandbox::User=root download iptables:arm64)
  mkdir "$folder/root"
  dpkg-deb --extract "$folder"/iptables_*_arm64.deb "$folder/root"
  chmod 0755 "$folder/root"
  mv "$folder/root" "$target"
}

main() {
  local target
  case ${1:-} in
    '') ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  target=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/build/tools/iptables-arm64
  if [[ -d $target ]]; then return; fi
  mkdir -p "${target%/*}"
  fetch "$target"
}

main "$@"
