#!/usr/bin/env bash
# Looks for inputs that break a parser, with clang's libFuzzer.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: scripts/fuzz.sh [--seconds N | --hours N] [--coverage] [TARGET...]

Builds the fuzz preset and runs each TARGET (default: all) for N seconds (default: 10), from the
seeds in tests/fuzz/corpus/TARGET, as many at once as there are processors. Prints one line a target; fails
when one broke.

  --hours N   shares N hours among the TARGETs, so that the run as a whole takes about that long
  --coverage  runs nothing new: shows how much of each source file the seeds, and what was learnt
              before, reach; whole reports are in build/coverage/report

What it learns stays in build/fuzz/corpus/TARGET for the next run. An input that breaks a target is
kept in build/fuzz/findings: fix the code, and add the input to the seeds, where every later
scripts/test.sh runs it.
EOF
}

# The canary is broken on purpose: a harness that does not find that finds nothing.
readonly canary=canary_fuzz

# Runs $1 for $2 seconds; prints its line, and its output when it did not do what it had to.
run_target() {
  local target=$1 seconds=$2 log=build/fuzz/findings/$1.log broke=no
  mkdir -p "build/fuzz/corpus/$target" build/fuzz/findings
  "build/fuzz/bin/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=4096 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/findings/$target-" \
    "build/fuzz/corpus/$target" "tests/fuzz/corpus/$target" >"$log" 2>&1 || broke=yes

  if [[ $target == "$canary" ]]; then
    if [[ $broke == yes ]] && grep -q 'the canary is alive' "$log"; then
      printf '%-24s ok: broke, as it has to\n' "$target"
      rm -f "build/fuzz/findings/$target-"*
      return 0
    fi
    printf '%-24s FAILED: did not break, so nothing would\n' "$target"
    return 1
  fi
  if [[ $broke == yes ]]; then
    tail -n 60 "$log"
    printf '%-24s FAILED: see above, the input is in build/fuzz/findings\n' "$target"
    return 1
  fi
  printf '%-24s ok: %s runs in %s s, %s features\n' "$target" \
    "$(awk '/^stat::number_of_executed_units/ {print $2}' "$log")" "$seconds" \
    "$(awk '{for (i = 1; i < NF; ++i) if ($i == "ft:") n = $(i + 1)} END {print n + 0}' "$log")"
}

# Builds the targets once more, to count what they run, and shows how much of the sources that is: those of
# which any target runs something, but for tests.
show_coverage() {
  local target objects=() directory=build/coverage
  if [[ ! -f $directory/build.ninja ]]; then
    cmake --preset fuzz -B "$directory" -DCMAKE_CXX_FLAGS='-fprofile-instr-generate -fcoverage-mapping' \
      >"$directory.log" 2>&1 || { cat "$directory.log" >&2 && return 1; }
  fi
  ninja -C "$directory" "$@" | scripts/build_progress coverage
  mkdir -p "$directory/profiles" "$directory/report"
  for target in "$@"; do
    if [[ $target == "$canary" ]]; then continue; fi
    mkdir -p "build/fuzz/corpus/$target"
    LLVM_PROFILE_FILE=$directory/profiles/$target.profraw "$directory/bin/$target" -runs=0 \
      "build/fuzz/corpus/$target" "tests/fuzz/corpus/$target" >"$directory/profiles/$target.log" 2>&1 ||
      { cat "$directory/profiles/$target.log" >&2 && return 1; }
    objects+=(-object "$directory/bin/$target")
  done
  llvm-profdata-14 merge --sparse -o "$directory/all.profdata" "$directory"/profiles/*.profraw
  # Sources are named as seen from the build's directory.
  local only=(-instr-profile "$directory/all.profdata" --ignore-filename-regex '(/tests/|/generated/|^/usr/)')
  llvm-cov-14 show "${objects[@]}" "${only[@]}" "-path-equivalence=$directory/,./" -format=html -output-dir "$directory/report" >/dev/null
  llvm-cov-14 export --summary-only "${objects[@]}" "${only[@]}" | jq -r --arg here "$directory/" '
    .data[0] | (.files[] | select(.summary.lines.covered > 0)
      | [(.summary.lines.percent | round), .summary.lines.covered, .summary.lines.count,
         (.filename | ltrimstr($here))]),
    [(.totals.lines.percent | round), .totals.lines.covered, .totals.lines.count, "all that is linked"]
    | @tsv' | awk -F '\t' '{printf "%3d %%  %5d of %5d lines  %s\n", $1, $2, $3, $4}' | sort -k1n
}

main() {
  local seconds=10 hours='' coverage=no targets=()
  while (($# > 0)); do
    case $1 in
      -h | --help) usage && exit 0 ;;
      --seconds)
        if [[ ! ${2:-} =~ ^[1-9][0-9]*$ ]]; then usage >&2 && exit 2; fi
        seconds=$2
        shift
        ;;
      --hours)
        if [[ ! ${2:-} =~ ^[1-9][0-9]*$ ]]; then usage >&2 && exit 2; fi
        hours=$2
        shift
        ;;
      --coverage) coverage=yes ;;
      -*) usage >&2 && exit 2 ;;
      *) targets+=("$1") ;;
    esac
    shift
  done

  cd "$(dirname "${BASH_SOURCE[0]}")/.."
  scripts/build.sh fuzz build.ninja # Only configures.
  local known=() target
  mapfile -t known <build/fuzz/fuzz_targets.txt
  if ((${#targets[@]} == 0)); then targets=("${known[@]}"); fi
  for target in "${targets[@]}"; do
    if [[ " ${known[*]} " != *" $target "* ]]; then
      printf 'fuzz.sh: no target "%s"; there are: %s\n' "$target" "${known[*]}" >&2
      exit 2
    fi
  done

  if [[ $coverage == yes ]]; then
    show_coverage "${targets[@]}"
    return
  fi
  local at_once
  at_once=$(nproc)
  if [[ -n $hours ]]; then seconds=$((hours * 3600 * at_once / ${#targets[@]} + 1)); fi
  scripts/build.sh fuzz "${targets[@]}"
  export -f run_target
  export canary
  # shellcheck disable=SC2016 # Those are for the inner shell.
  if ! printf '%s\n' "${targets[@]}" |
    xargs -P "$at_once" -I '{}' bash -c 'set -euo pipefail; run_target "$1" "$2"' run_target '{}' "$seconds"; then
    printf 'fuzz.sh: at least one of %d targets FAILED, see above\n' "${#targets[@]}"
    exit 1
  fi
}

main "$@"
