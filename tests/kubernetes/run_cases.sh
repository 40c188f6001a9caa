# shellcheck shell=bash
# Runs cases one after the other and counts them. To be sourced after the files that have the cases.

_passed=0
_failed=()

_run_case() {
  local began=$SECONDS
  lab_step "${1//_/ }"
  if "case_$1"; then
    _passed=$((_passed + 1))
    lab_ok "$1 ($((SECONDS - began)) s)"
  else
    _failed+=("$1")
    printf '    FAILED  %s\n' "$1"
  fi
}

# cases_known WANTED CASE...: whether each word of WANTED is the name of a CASE; says which is not.
cases_known() {
  local name known=" ${*:2} "
  for name in $1; do
    if [[ $known != *" $name "* ]]; then
      printf '%s: there is no case "%s", but:%s\n' "${0##*/}" "$name" "$known" >&2
      return 1
    fi
  done
}

# cases_run FIRST WANTED CASE...: runs those of the words of WANTED, or all when there is none, and FIRST in any
# case. A case that fails is told, and the others are run all the same. The last line is the sum.
cases_run() {
  local name
  for name in "${@:3}"; do
    if [[ -n $2 && $name != "$1" && " $2 " != *" $name "* ]]; then continue; fi
    _run_case "$name"
  done
  if ((${#_failed[@]} > 0)); then
    lab_show_logs
    printf 'failed: %s\n' "${_failed[*]}"
  fi
  printf '%d passed, %d failed\n' "$_passed" "${#_failed[@]}"
  ((${#_failed[@]} == 0))
}
