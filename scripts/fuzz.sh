#!/usr/bin/env bash
# Looks for inputs that break a parser, with clang's libFuzzer.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: scripts/fuzz.sh [--seconds N] [TARGET...]

Builds the fuzz preset and runs each TARGET (default: all) for N seconds (default: 10), from the
seeds in tests/fuzz/corpus/TARGET. Prints one line a target; fails when one broke.

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

main() {
  local seconds=10 targets=()
  while (($# > 0)); do
    case $1 in
      -h | --help) usage && exit 0 ;;
      --seconds)
        if [[ ! ${2:-} =~ ^[1-9][0-9]*$ ]]; then usage >&2 && exit 2; fi
        seconds=$2
        shift
        ;;
      -*) usage >&2 && exit 2 ;;
      *) targets+=("$1") ;;
    esac
    shift
  done

  cd "$(dirname "${BASH_SOURCE[0]}")/.."
  scripts/build.sh fuzz build.ninja # Only configures.
  local known=() target failed=0
  mapfile -t known <build/fuzz/fuzz_targets.txt
  if ((${#targets[@]} == 0)); then targets=("${known[@]}"); fi
  for target in "${targets[@]}"; do
    if ! printf '%s\n' "${known[@]}" | grep -qxF -- "$target"; then
      printf 'fuzz.sh: no target "%s"; there are: %s\n' "$target" "${known[*]}" >&2
      exit 2
    fi
  done

  scripts/build.sh fuzz "${targets[@]}"
  for target in "${targets[@]}"; do
    run_target "$target" "$seconds" || failed=$((failed + 1))
  done
  if ((failed > 0)); then
    printf 'fuzz.sh: %d of %d targets FAILED\n' "$failed" "${#targets[@]}"
    exit 1
  fi
}

main "$@"
