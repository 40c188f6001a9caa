#!/usr/bin/env bash
# Checks everything about the code that needs no test run. GCC, which makes what users get, has to take
# all of it as clang does, which makes what is tested.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: scripts/check.sh [--fix | --deep] [CHECK...]

  CHECK    run only these of: format layers includes size words sources versions events metrics docs
           reference shell python release hardening tidy
  --fix    let clang-format rewrite what it would complain about, and write anew what is made of the
           tree: docs/reference/, the table of folders, the versions in conf/, rules for the Prometheus Operator
  --deep   all of clang-tidy's checks, its analyzer too, and of tests; takes about five times as long

Prints FILE:LINE, what is wrong and what to do, then one line a check, then the verdict.
EOF
}

fix=no
deep=()
readonly all=(format layers includes size words sources versions events metrics docs reference shell python release hardening tidy)
declare -A wanted=()
failed=0
count=0

# Runs a check if it is wanted: its name, then its command. Its output counts only when it fails.
run() {
  local name=$1 started=$EPOCHREALTIME output code=0
  if [[ ! -v wanted[$name] ]]; then return 0; fi
  shift
  output=$("$@" 2>&1) || code=$?
  count=$((count + 1))
  local took
  took=$(awk -v a="$started" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.1f s", b - a}')
  if ((code == 0)); then
    printf '%-10s ok (%s)\n' "$name" "$took"
  else
    failed=$((failed + 1))
    printf '%s\n' "$output"
    printf '%-10s FAILED (%s)\n' "$name" "$took"
  fi
}

# Tracked files and new ones, not those that .gitignore names. A deleted file is still tracked.
list_files() {
  local path
  git ls-files --cached --others --exclude-standard -- "$@" | sort -u | while read -r path; do
    if [[ -f $path ]]; then printf '%s\n' "$path"; fi
  done
}

check_format() {
  local files
  mapfile -t files < <(list_files '*.cc' '*.h')
  if [[ $fix == yes ]]; then
    clang-format-14 -i "${files[@]}"
  else
    clang-format-14 --dry-run -Werror --ferror-limit=3 "${files[@]}" ||
      { printf 'to repair it: scripts/check.sh --fix\n' && return 1; }
  fi
}

check_reference() {
  if [[ $fix == yes ]]; then scripts/check_reference --fix; else scripts/check_reference; fi
}

check_metrics() {
  if [[ $fix == yes ]]; then scripts/check_metrics --fix; else scripts/check_metrics; fi
}

check_docs() {
  if [[ $fix == yes ]]; then scripts/check_docs --fix; else scripts/check_docs; fi
}

check_versions() {
  if [[ $fix == yes ]]; then scripts/check_versions --fix; else scripts/check_versions; fi
}

check_shell() {
  local files path
  mapfile -t files < <(list_files '*.sh')
  while read -r path; do
    # Scripts without a suffix; some are Python.
    if [[ ${path##*/} != *.* && $(head -n 1 "$path") =~ ^'#!'.*[/\ ](ba)?sh($|[^a-z]) ]]; then
      files+=("$path")
    fi
  done < <(list_files '.ci/*' 'scripts/*')
  shellcheck --external-sources --source-path=SCRIPTDIR:. "${files[@]}"
  # With pipefail it fails by chance: grep -q ends at the first match, and what still writes is killed.
  if grep -HnE '(^|[^|])\|[[:space:]]*grep -[a-zA-Z]*q' "${files[@]}"; then
    printf 'check.sh: nothing is piped into grep -q; write: grep -q PATTERN < <(COMMAND)\n' >&2
    return 1
  fi
}

# clang-tidy reads the headers that protoc writes, and the compile commands that CMake writes.
generate_code() {
  local generated
  scripts/build.sh dev build.ninja
  mapfile -t generated < <(ninja -C build/dev -t targets all |
    sed -n 's/^\(generated\/.*\.h\): .*/\1/p')
  if ((${#generated[@]} > 0)); then scripts/build.sh dev "${generated[@]}"; fi
}

check_tidy() {
  generate_code >&2 || return 1
  scripts/check_tidy "${deep[@]}" build/dev
}

# Takes the names of checks; none are all.
choose() {
  local name
  for name in "$@"; do
    if [[ " ${all[*]} " != *" $name "* ]]; then
      printf 'check.sh: no check is named %s\n' "$name" >&2
      usage >&2
      exit 2
    fi
    wanted[$name]=yes
  done
  if (($# == 0)); then choose "${all[@]}"; fi
}

main() {
  case ${1:-} in
    --fix) fix=yes && shift ;;
    --deep) deep=(--deep) && shift ;;
    -h | --help) usage && exit 0 ;;
  esac
  choose "$@"
  cd "$(dirname "${BASH_SOURCE[0]}")/.."
  scripts/setup.sh
  # Debian's programs first: a version manager's stand-in for Python takes ten times as long to start.
  export PATH=/usr/bin:/bin:$PATH

  run format check_format
  run layers scripts/check_layers
  run includes scripts/check_includes
  run size scripts/check_size
  run words scripts/check_words
  run sources scripts/check_sources
  run versions check_versions
  run events scripts/check_events
  run metrics check_metrics
  run docs check_docs
  run reference check_reference
  run shell check_shell
  run python scripts/check_python
  run release scripts/build.sh release released
  run hardening scripts/check_hardening build/release/bin
  run tidy check_tidy

  if ((failed > 0)); then
    printf 'check.sh: %d of %d checks FAILED\n' "$failed" "$count"
    exit 1
  fi
  printf 'check.sh: all %d checks OK\n' "$count"
}

main "$@"
