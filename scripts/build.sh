#!/usr/bin/env bash
# Builds one preset into build/PRESET. Quiet when there is nothing to do.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: scripts/build.sh [dev|tsan|release|fuzz] [TARGET...]

  dev      debug with the address and undefined behaviour sanitizers (the default, and CI's)
  tsan     debug with the thread sanitizer
  release  what users run
  fuzz     with clang; scripts/fuzz.sh runs the fuzz targets it builds

Installs missing packages, configures when needed, builds TARGETs or everything. The programs are
in build/PRESET/bin.
EOF
}

configure() {
  local preset=$1 log
  log=$(mktemp)
  if ! cmake --preset "$preset" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

main() {
  local preset=${1:-dev}
  case $preset in
    dev | tsan | release | fuzz) ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift || true

  cd "$(dirname "${BASH_SOURCE[0]}")/.."
  scripts/setup.sh
  local build=build/$preset
  # A configure that failed leaves no build.ninja; once there is one, ninja configures again itself.
  if [[ ! -f $build/build.ninja ]]; then configure "$preset"; fi
  if [[ $(ninja -C "$build" -n "$@" 2>&1) != *'no work to do'* ]]; then
    ninja -C "$build" "$@"
  fi
}

main "$@"
