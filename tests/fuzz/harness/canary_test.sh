#!/usr/bin/env bash
# usage: canary_test.sh CANARY_BINARY CORPUS_DIR
# Passes when the replay driver finds what is broken in the canary, and says with which input.
set -euo pipefail

code=0
output=$("$1" "$2" 2>&1) || code=$?
if ((code != 1)); then
  printf 'the canary exits with %d instead of 1:\n%s\n' "$code" "$output" >&2
  exit 1
fi
for want in 'the canary is alive' 'broken by mutation'; do
  if [[ $output != *"$want"* ]]; then
    printf 'the output lacks "%s":\n%s\n' "$want" "$output" >&2
    exit 1
  fi
done
