# What check_hardening must refuse; scripts/check_test.sh reads it.
# shellcheck shell=bash disable=SC2154  # Its variables are that script's.

readonly hardened_compile=(-fstack-protector-strong -fstack-clash-protection -U_FORTIFY_SOURCE
  -D_FORTIFY_SOURCE=2 -fPIE -fcf-protection=full)
readonly hardened_link=(-pie "-Wl,-z,relro" "-Wl,-z,now" "-Wl,-z,noexecstack")
readonly plugin_link=(-static-pie -nostdlib "-Wl,-z,relro" "-Wl,-z,now" "-Wl,-z,noexecstack")

# make_program NAME OPTION...: a program in the tree's bin, made with OPTIONs alone.
make_program() {
  local source=program.c
  if [[ $1 == spoke ]]; then source=plugin.c; fi
  gcc -O2 -o "$tree/bin/$1" "$tree/$source" "${@:2}"
}

hardened_programs() {
  local name
  for name in spoke-netagent spoke-ipam-server spokectl; do
    make_program "$name" "${hardened_compile[@]}" "${hardened_link[@]}"
  done
  make_program spoke "${hardened_compile[@]}" "${plugin_link[@]}"
}

# expect_lacking PROGRAM WANT OPTION...: made with OPTIONs after those of its kind, PROGRAM alone is
# refused, for WANT. It is then made again as it was.
expect_lacking() {
  local name=$1 want=$2 output code=0 link=("${hardened_link[@]}")
  if [[ $name == spoke ]]; then link=("${plugin_link[@]}"); fi
  make_program "$name" "${hardened_compile[@]}" "${link[@]}" "${@:3}"
  output=$("$scripts/check_hardening" "$tree/bin" 2>&1) || code=$?
  if ((code != 1)) || ! grep -qF -- "$want" < <(grep -F "bin/$name: lacks " <<<"$output") ||
    grep -qvF "bin/$name: lacks " <<<"$output"; then
    printf 'check_hardening: %s with %s: wanted "%s", got %d and:\n%s\n' \
      "$name" "${*:3}" "$want" "$code" "$output" >&2
    failures=$((failures + 1))
  fi
  make_program "$name" "${hardened_compile[@]}" "${link[@]}"
}

test_hardening() {
  fresh_tree
  mkdir -p "$tree/bin"
  printf '%s\n' '#include <string.h>' \
    'int main(int count, char** words) { char b[64]; strcpy(b, words[count - 1]); return b[count]; }' >"$tree/program.c"
  # More code than what the compiler's startup files bring along of it.
  seq 60 | sed 's/.*/__attribute__((aligned(512))) int F&(int a) { return a * &; }/' >>"$tree/program.c"
  printf '%s\n' 'void __stack_chk_fail(void) { for (;;) {} }' 'volatile int sink;' \
    'void _start(void) { volatile char b[64]; b[sink] = 1; sink = b[0]; for (;;) {} }' >"$tree/plugin.c"
  hardened_programs
  if ! "$scripts/check_hardening" "$tree/bin"; then
    printf 'check_hardening: refuses hardened programs\n' >&2
    failures=$((failures + 1))
  fi
  expect_lacking spokectl 'the stack protector' -fno-stack-protector
  expect_lacking spokectl 'checked calls of libc' -U_FORTIFY_SOURCE
  expect_lacking spokectl 'indirect calls' -fcf-protection=none
  expect_lacking spokectl BIND_NOW -Wl,-z,lazy
  expect_lacking spokectl RELRO -Wl,-z,norelro
  expect_lacking spokectl 'not executable' -Wl,-z,execstack
  expect_lacking spokectl PIE -no-pie
  expect_lacking spokectl 'run path' -Wl,-rpath,/tmp
  expect_lacking spoke 'the stack protector' -fno-stack-protector
  expect_lacking spoke RELRO -Wl,-z,norelro
  expect_lacking spoke PIE -static -no-pie
  # Nothing to look at is no success.
  rm "$tree/bin/spoke-ipam-server"
  if [[ $("$scripts/check_hardening" "$tree/bin" || true) != *'bin/spoke-ipam-server: cannot be read'* ]]; then
    printf 'check_hardening: does not miss a program\n' >&2
    failures=$((failures + 1))
  fi
}
