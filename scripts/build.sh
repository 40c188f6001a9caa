#!/usr/bin/env bash
# Builds one preset into build/PRESET. Quiet when there is nothing to do.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: scripts/build.sh [dev|tsan|release|release-arm64|fuzz] [TARGET...]

  dev      with clang and the address and undefined behaviour sanitizers: what is tested (the default)
  tsan     with the thread sanitizer
  release  with GCC: what users run
  release-arm64  the same for machines with arm64, on one with amd64
  fuzz     with clang; scripts/fuzz.sh runs the fuzz targets it builds

Installs missing packages, configures when needed, builds TARGETs or everything, and shows how far it
is. The programs are in build/PRESET/bin. Exit status: 0 built, 1 not, 2 wrong usage.
EOF
}

# A build directory keeps what its preset said when it was configured, the compiler for one, so that a
# changed preset needs a fresh one. Otherwise ninja configures again by itself.
configure() {
  local preset=$1 build=build/$1 log
  if [[ -f $build/build.ninja ]] && cmp -s CMakePresets.json "$build/presets.json"; then return; fi
  printf 'build %s: configuring\n' "$preset"
  log=$(mktemp)
  if ! cmake --fresh --preset "$preset" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
  cp CMakePresets.json "$build/presets.json"
}

# A compiler does not notice every change of its own precompiled headers, and what it then makes is
# wrong. One that is not as the build left it is made again.
drop_damaged() {
  local build=$1 line
  if [[ ! -f $build/precompiled.sha256 ]]; then return; fi
  while IFS= read -r line; do
    if [[ $line == *': FAILED'* ]]; then
      line=${line%%: FAILED*}
      printf 'build.sh: %s is damaged or was left unfinished; making it again\n' "$line" >&2
      rm -f "$line"
    fi
  done < <(sha256sum --check --quiet "$build/precompiled.sha256" 2>/dev/null || true)
}

keep_sums() {
  local build=$1 headers
  mapfile -t headers < <(compgen -G "$build/CMakeFiles/precompiled_*.dir/cmake_pch.hxx.[gp]ch")
  if ((${#headers[@]} > 0)); then
    sha256sum "${headers[@]}" >"$build/precompiled.sha256.new"
    mv "$build/precompiled.sha256.new" "$build/precompiled.sha256"
  fi
}

# A compiler that could not write says so among a thousand lines, or in words of its own.
explain_failure() {
  local build=$1 free
  free=$(df --output=avail -m "$build" | tail -n 1)
  if ((free < 200)); then
    printf 'build.sh: only %d MiB are free where %s is: make room and build again\n' \
      "$free" "$build" >&2
  fi
}

run_ninja() {
  local preset=$1
  shift
  # Clang takes memory and never gives it back: in large pieces it needs a sixth less time.
  export GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.top_pad=67108864:glibc.malloc.mmap_threshold=1073741824
  # By the list of headers that a compiler writes, ccache need not preprocess what it does not have.
  export CCACHE_DEPEND=1
  NINJA_STATUS='[%f/%t] ' ninja -C "build/$preset" "$@" 2>&1 | scripts/build_progress "$preset"
}

# Sources that are compiled as one may not go together any more (cmake/UnityBuild.cmake). True if they
# have been put together in another way.
regroup() {
  local build=$1 before
  if [[ ! -f $build/unity_groups.txt ]]; then return 1; fi
  before=$(cksum <"$build/unity_groups.txt")
  cmake "$build" >/dev/null && [[ $(cksum <"$build/unity_groups.txt") != "$before" ]]
}

build() {
  local preset=$1 build=build/$1 code=0
  shift
  drop_damaged "$build"
  if [[ $(ninja -C "$build" -n "$@" 2>&1) == *'no work to do'* ]]; then return; fi
  run_ninja "$preset" "$@" || code=1
  if ((code != 0)) && regroup "$build"; then
    code=0
    run_ninja "$preset" "$@" || code=1
  fi
  if ((code != 0)); then
    explain_failure "$build"
    return 1
  fi
  keep_sums "$build"
}

main() {
  local preset=${1:-dev}
  case $preset in
    dev | tsan | release | release-arm64 | fuzz) ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift || true

  cd "$(dirname "${BASH_SOURCE[0]}")/.."
  if [[ $preset == release-arm64 ]]; then scripts/setup.sh --arm64; else scripts/setup.sh; fi
  configure "$preset"
  build "$preset" "$@"
}

main "$@"
