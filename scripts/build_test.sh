#!/usr/bin/env bash
# A build must never take what is stale or damaged for good: changes a precompiled header's content,
# damages the header and the compiler cache, fills the disk, and gives two sources that are compiled as one
# the same name, in a small project that is built by our CMake files and scripts/build.sh, with both
# compilers. ctest runs it (label build); needs root, for a small disk.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tree=$(mktemp -d)
trap 'umount "$tree" 2>/dev/null || true; rm -rf "$tree"' EXIT
failures=0

fail() {
  printf 'build_test.sh: %s\n' "$*" >&2
  failures=$((failures + 1))
}

# A program that prints the number in a header that is precompiled with the others.
fresh_project() {
  umount "$tree" 2>/dev/null || true
  mount -t tmpfs -o size=1g spoke-build-test "$tree"
  mkdir -p "$tree/lib"
  cp -r "$root/cmake" "$root/scripts" "$root/CMakePresets.json" "$tree/"
  # Few headers are precompiled faster than all of ours, and as easily damaged.
  printf 'set(PRECOMPILED_code number.h <string>)\nset(PRECOMPILED_cold <string>)\nset(PRECOMPILED_test <string>)\n' \
    >"$tree/headers.cmake"
  sed -i '/^set(PRECOMPILED_DEPS/i include(headers.cmake)' "$tree/cmake/Precompiled.cmake"
  write_number 1
  cat >"$tree/lib/main.cc" <<'EOF'
#include <cstdio>

int Doubled(int number);

int main() { std::printf("%d\n", Doubled(kNumber) / 2); }
EOF
  printf 'int Doubled(int number);\nint Doubled(int number) { return 2 * number; }\n' >"$tree/lib/doubled.cc"
  cat >"$tree/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.25)
project(number LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
find_package(absl REQUIRED)
find_package(fmt REQUIRED)
find_package(GTest REQUIRED)
find_package(nlohmann_json REQUIRED)
include_directories(lib)
include(cmake/Warnings.cmake)
include(cmake/Sanitizers.cmake)
include(cmake/Tools.cmake)
include(cmake/Precompiled.cmake)
include(cmake/UnityBuild.cmake)
add_executable(number lib/main.cc lib/doubled.cc)
target_link_libraries(number PRIVATE project_warnings)
use_precompiled(number code)
use_unity_build(number)
make_unity_builds()
EOF
}

write_number() { printf '#pragma once\nconstexpr int kNumber = %d;\n' "$1" >"$tree/lib/number.h"; }

# build PRESET: what the program then says, or nothing when the build failed; build's output is in $said.
build() {
  said=$("$tree/scripts/build.sh" "$1" number 2>&1) || return 1
}

expect_number() {
  local preset=$1 want=$2 what=$3 got=
  build "$preset" || fail "$preset, $what: does not build: $said"
  got=$("$tree/build/$preset/bin/number" || true)
  if [[ $got != "$want" ]]; then fail "$preset, $what: prints '$got', not $want"; fi
}

header_of() { compgen -G "$tree/build/$1/CMakeFiles/precompiled_code.dir/cmake_pch.hxx.[gp]ch"; }

test_stale() {
  local preset=$1
  expect_number "$preset" 1 'built from nothing'
  if ! [[ $said == *' steps, '* ]]; then fail "$preset: does not say how far it is: $said"; fi
  write_number 2
  expect_number "$preset" 2 'a header in the precompiled one has changed'
  write_number 1
  expect_number "$preset" 1 'and changed back, out of the compiler cache'
}

test_damaged() {
  local preset=$1 header
  header=$(header_of "$preset")
  # The file is in the middle, where neither compiler looks first.
  dd if=/dev/zero of="$header" bs=4096 count=64 seek=$(($(stat -c %s "$header") / 8192)) conv=notrunc status=none
  printf '\n' >>"$tree/lib/main.cc"
  expect_number "$preset" 1 'a damaged precompiled header'
  if [[ $said != *'is damaged'* ]]; then fail "$preset: does not say what was damaged: $said"; fi
  truncate -s 100000 "$(header_of "$preset")"
  printf '\n' >>"$tree/lib/main.cc"
  expect_number "$preset" 1 'a precompiled header cut short'

  find "$CCACHE_DIR" -type f -size +1k -exec dd if=/dev/zero of={} bs=512 count=1 seek=1 conv=notrunc status=none \;
  rm -rf "$tree/build/$preset"
  expect_number "$preset" 1 'a damaged compiler cache'
}

# "a.cc b.cc" for each group of sources that are compiled as one.
groups_of() {
  awk -F'\t' '{sub(".*/", "", $2); in_group[$3] = in_group[$3] " " $2}
             END {for (group in in_group) print substr(in_group[group], 2)}' "$tree/build/$1/unity_groups.txt" | sort
}

test_unity() {
  local preset=$1 file
  if [[ $(groups_of "$preset") != 'main.cc doubled.cc' ]]; then
    fail "$preset: these are compiled as one: $(groups_of "$preset")"
  fi
  for file in main doubled; do
    printf 'namespace {\nint Same() { return 0; }\n}  // namespace\nint Of_%s();\nint Of_%s() { return Same(); }\n' \
      "$file" "$file" >>"$tree/lib/$file.cc"
  done
  expect_number "$preset" 1 'two sources that were compiled as one have the same name now'
  if [[ $(groups_of "$preset") != $'doubled.cc\nmain.cc' ]]; then
    fail "$preset: these are compiled as one: $(groups_of "$preset")"
  fi
}

test_full_disk() {
  local preset=$1
  fresh_project
  mount -o remount,size=6m "$tree"
  if CCACHE_DISABLE=1 build "$preset"; then fail "$preset: builds on a full disk"; fi
  if [[ $said != *'MiB are free'* ]]; then fail "$preset: does not say that the disk is full: $said"; fi
  mount -o remount,size=1g "$tree"
  expect_number "$preset" 1 'the disk has room again'
}

main() {
  export CCACHE_DIR=$tree/cache
  unset CCACHE_DISABLE
  local preset
  for preset in dev release; do
    fresh_project
    test_stale "$preset"
    test_damaged "$preset"
    test_unity "$preset"
    test_full_disk "$preset"
  done
  if ((failures > 0)); then
    printf 'build_test.sh: %d expectations FAILED\n' "$failures" >&2
    exit 1
  fi
  printf 'build_test.sh: OK\n'
}

main "$@"
