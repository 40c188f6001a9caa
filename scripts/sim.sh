#!/usr/bin/env bash
# Runs simulated fleets of servers and agents on one clock, and holds each step against the laws.
set -euo pipefail

usage() {
  cat <<'EOT'
usage: scripts/sim.sh [OPTION...]

  --seed N            the first seed (1); --seeds COUNT: that many, one after the other
  --nodes N           how many nodes, instead of what the seed says
  --events COUNT      how much befalls a node in an hour, faults and pods that come or go together (40)
  --azure             has Azure for a cloud in all runs, not in three of ten
  --until SECONDS     ends the run after so many simulated seconds
  --scenario NAME     a named run, or all of them, instead of seeds; --list: which there are
  --mutant NUMBER     with this defect of tests/sim/mutants.txt
  --mutants           says which run finds each defect; --seeds COUNT: how many seeds are tried
  --trace             tells the story, a line an event
  --shrink            leaves out of a plan that breaks a law whatever does not matter
  --counts            counts what has happened

Builds the release preset if needed. The same commit and the same options tell the same story.
Exit status: 0 no law is broken, 1 one is, 2 wrong usage.

Environment:
  SPOKE_BIN=DIR  runs the program in DIR instead of building it
EOT
}

main() {
  local option
  for option in "$@"; do
    if [[ $option == -h || $option == --help ]]; then usage && exit 0; fi
  done
  cd "$(dirname "${BASH_SOURCE[0]}")/.."
  local bin=${SPOKE_BIN:-}
  if [[ -z $bin ]]; then
    scripts/build.sh release spoke-sim >&2
    bin=build/release/bin
  fi
  # A large fleet is gigabytes of small objects: large pages, and rare returns to the kernel, save a fifth of the time.
  local malloc=glibc.malloc
  export GLIBC_TUNABLES=${GLIBC_TUNABLES:-$malloc.hugetlb=1:$malloc.top_pad=67108864:$malloc.mxfast=0:$malloc.tcache_count=2000}
  local code=0
  "$bin/spoke-sim" "$@" || code=$?
  if ((code > 1)); then code=2; fi
  exit "$code"
}

main "$@"
