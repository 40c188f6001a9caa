#!/usr/bin/env bash
# Searches all runs of leadership.pml at a small size, and shows that it notices each guard that is taken
# out. A search that was cut short proves nothing: it fails.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: leadership_test.sh [--large]

  --large   three faults, and three servers, as well: takes minutes and 3 GB
USAGE
}

model=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/leadership.pml
memory_mb=600
depth=10000
directory=

# fail MESSAGE [FILE]
fail() {
  printf 'leadership_test: %s\n' "$1" >&2
  if (($# > 1)); then head -n 40 "$2" >&2; fi
  exit 1
}

# build NAME COMPILER-OPTION... -- MODEL-OPTION...: the searcher $directory/NAME/pan.
build() {
  local name=$1 compiling=()
  shift
  while [[ $1 != -- ]]; do
    compiling+=("$1")
    shift
  done
  shift
  mkdir "$directory/$name"
  cd "$directory/$name"
  # spin says on its standard output what it cannot parse, and goes on.
  spin -a "$@" "$model" >spin.log 2>&1 || fail "spin refuses the model ($name)" spin.log
  if grep -qiE 'error|warning' spin.log; then fail "spin complains about the model ($name)" spin.log; fi
  gcc -w -DVECTORSZ=2048 -DMEMLIM="$memory_mb" "${compiling[@]}" -o pan pan.c
}

# run NAME ARGUMENT...: pan's own exit code says nothing of what it found.
run() {
  cd "$directory/$1"
  ./pan -w22 "${@:2}" >found.log 2>&1 || true
}

states() {
  sed -nE 's/^ *([0-9.e+]+) states, stored.*/\1/p' found.log
}

was_cut() {
  grep -qE 'too small|MEMLIM|out of memory|not completed|interrupted|recompile' found.log ||
    ! grep -q 'errors: ' found.log
}

# holds NAME: the search has seen all, and found nothing.
holds() {
  if was_cut; then fail "$1: the search was cut short (or refused)" found.log; fi
  if ! grep -q 'errors: 0$' found.log; then fail "$1: a promise is broken" found.log; fi
  printf '%-34s holds     %9s states\n' "$1" "$(states)"
}

# A step that no run takes would let its promises hold for nothing.
all_steps_are_taken() {
  local missed
  missed=$(grep -E '^\s+leadership\.pml:[0-9]+, state' found.log | grep -v '"-end-"' || true)
  if [[ -n $missed ]]; then fail "$1: no run takes these steps: $missed"; fi
}

# safe NAME MODEL-OPTION...
safe() {
  build "$1" -O1 -DSAFETY -- "${@:2}"
  run "$1" -m"$depth"
  holds "$1"
  all_steps_are_taken "$1"
}

# live NAME MODEL-OPTION...: with weak fairness.
live() {
  build "$1" -O1 -DNFAIR=4 -- -DLIVENESS "${@:2}"
  run "$1" -a -f -m"$depth"
  holds "$1"
}

# broken PROMISE GUARD MODEL-OPTION...: without the guard, that promise is broken.
broken() {
  local name="$2 breaks $1"
  build "$name" -O0 -DSAFETY -- -DONLY="$1" -D"$2" "${@:3}"
  run "$name" -m"$depth" -n
  if ! grep -q 'assertion violated' found.log; then fail "$name: that was not noticed" found.log; fi
  printf '%-34s noticed   %9s states\n' "$name" "$(states)"
}

# Neither a search that is too shallow nor one with too little memory passes for a whole one.
cuts_are_noticed() {
  run records -m50
  was_cut || fail 'a search cut at its depth passes' found.log
  memory_mb=4 build small -O0 -DSAFETY -- "${records[@]}"
  cd "$directory/small"
  ./pan -w10 -m"$depth" >found.log 2>&1 || true
  was_cut || fail 'a search cut at its memory passes' found.log
}

# How often leaders change is bounded by the faults: one that is not disturbed leads on.
one_fault=(-DFAULTS=1 -DTERMS=2)
two_faults=(-DFAULTS=2 -DTERMS=3)
three_faults=(-DFAULTS=3 -DTERMS=4)
agents=(-DCOMMITS=3 -DMOVES=2)
idle=(-DCOMMITS=0 -DMOVES=0)
instance=(-DCLOUD -DCOMMITS=3)
records=("${two_faults[@]}" "${agents[@]}")
cloud=("${two_faults[@]}" "${instance[@]}")

main() {
  case ${1:-} in
    '' | --large) ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  directory=$(mktemp -d)
  trap 'rm -rf "$directory"' EXIT

  safe records "${records[@]}"
  safe cloud "${cloud[@]}"
  safe cloud_three_servers "${one_fault[@]}" "${instance[@]}" -DSERVERS=3
  safe records_three_servers "${one_fault[@]}" "${agents[@]}" -DSERVERS=3
  live leads_again "${two_faults[@]}" -DCOMMITS=1 -DMOVES=1
  live leads_again_by_the_lease_alone "${two_faults[@]}" "${idle[@]}" -DNO_OVERTHROW
  cuts_are_noticed

  broken HOLDER NO_FENCE "${records[@]}"
  broken DEPOSED NO_FENCE "${records[@]}"
  broken HOLDER NO_RAISE "${records[@]}"
  broken REFUSED NO_RECEIPT "${records[@]}"
  broken HOLDER NO_AWAIT "${records[@]}"
  broken ACKED NO_AWAIT "${records[@]}"
  broken HOLDER NO_MARGIN "${records[@]}"
  broken SPEAKS NO_MARGIN "${cloud[@]}"
  broken HOLDER NO_COOLDOWN "${records[@]}"
  broken HOLDER ACK_BEFORE_COMMIT "${records[@]}"
  broken CLOUDS NO_ETAG "${cloud[@]}"

  build nobody -O0 -DNFAIR=4 -- -DLIVENESS -DNO_OVERTHROW -DNO_EXPIRY "${one_fault[@]}" "${idle[@]}"
  run nobody -a -f -m"$depth" -n
  grep -q 'acceptance cycle' found.log || fail 'that nobody leads again was not noticed' found.log
  printf '%-34s noticed   %9s states\n' 'nobody leads again' "$(states)"

  if [[ ${1:-} == --large ]]; then
    memory_mb=3000
    safe cloud_three_faults "${three_faults[@]}" "${instance[@]}"
    safe records_three_faults "${three_faults[@]}" "${agents[@]}"
    safe records_three_servers_two_faults "${records[@]}" -DSERVERS=3
    safe cloud_three_servers_two_faults "${cloud[@]}" -DSERVERS=3
  fi
}

main "$@"
