#!/usr/bin/env bash
# Runs Prometheus's promtool, which checks metrics and alerting rules. Debian has it only in the
# package of the server, which would start a service; so it is taken out of the package.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: scripts/promtool.sh [--fetch | ARGUMENT...]

  --fetch   only make sure that there is a promtool

Uses the promtool that is installed, else build/tools/promtool, which is fetched when missing.
EOF
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly here

# fetch TARGET: out of the package of this Debian.
fetch() {
  local target=$1 folder
  folder=$(mktemp -d "$target.XXXXXX")
  # shellcheck disable=SC2064  # The folder of now.
  trap "rm -rf '$folder'" EXIT
  "$here/scripts/debian_unpack.sh" prometheus "$folder/package"
  mv "$folder/package/usr/bin/promtool" "$target"
  rm -rf "$folder"
  trap - EXIT
}

main() {
  local tool
  case ${1:-} in
    '') usage >&2 && exit 2 ;;
    -h | --help) usage && exit 0 ;;
  esac
  if ! tool=$(command -v promtool); then
    tool=$here/build/tools/promtool
    if [[ ! -x $tool ]]; then
      mkdir -p "${tool%/*}"
      fetch "$tool" || { printf 'promtool.sh: cannot fetch promtool\n' >&2 && exit 1; }
    fi
  fi
  if [[ $1 == --fetch ]]; then return; fi
  exec "$tool" "$@"
}

main "$@"
