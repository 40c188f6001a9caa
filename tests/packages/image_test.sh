#!/usr/bin/env bash
# The image: the same bytes twice, programs that run in it with nothing from outside, no shell.
# usage: image_test.sh FOLDER-OF-RELEASE-PROGRAMS
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

expect_output() {
  local wanted=$1 output
  shift
  output=$("$@" 2>&1) || fail "$* ended with $?: $output"
  [[ $output == *"$wanted"* ]] || fail "$* printed \"$output\", not \"$wanted\""
}

# Runs with only the image's files, no network, and no process except the program's.
in_image() {
  unshare --mount --net --pid --fork chroot "$work/root" "$@"
}

unpack() {
  local layer
  mkdir "$work/layout" "$work/root"
  tar -xf "$work/first.tar" -C "$work/layout"
  layer=$(jq -r '.manifests[0].digest' "$work/layout/index.json")
  layer=$(jq -r '.layers[0].digest' "$work/layout/blobs/${layer/://}")
  tar -xzf "$work/layout/blobs/${layer/://}" -C "$work/root"
}

test_same_bytes() {
  "$here/scripts/image.sh" -o "$work/first.tar" --json >"$work/first.json"
  # Another place, another time, another mask.
  cp -r "$SPOKE_BIN" "$work/bin"
  find "$work/bin" -type f -exec touch -d 2001-02-03 {} +
  (umask 077 && SPOKE_BIN=$work/bin "$here/scripts/image.sh" -o "$work/deep/er/second.tar" >"$work/second.txt")
  cmp "$work/first.tar" "$work/deep/er/second.tar" || fail 'two images of the same programs differ'
  grep -qF "$(jq -r .digest "$work/first.json")" "$work/second.txt" || fail 'two digests'
  (($(stat -c %a "$work/deep/er/second.tar") == 644)) || fail 'the image is not for all to read'
  (($(jq .unpacked_bytes "$work/first.json") <= 60 * 1024 * 1024)) || fail 'larger than 60 MiB'
}

test_epoch() {
  SOURCE_DATE_EPOCH=86400 "$here/scripts/image.sh" -o "$work/dated.tar" >/dev/null
  ! cmp -s "$work/first.tar" "$work/dated.tar" || fail 'SOURCE_DATE_EPOCH changes nothing'
  [[ $(tar --utc -tvf "$work/dated.tar" index.json) == *1970-01-02* ]] || fail 'not dated'
}

test_programs_run() {
  local version name
  version=$("$SPOKE_BIN/spoke-netagent" --version)
  [[ $(jq -r .name "$work/first.json") == "docker.io/library/spoke:$version" ]] || fail 'wrong name'
  for name in spoke-netagent spoke-ipam-server spokectl; do
    expect_output "$version" in_image "/usr/bin/$name" --version
  done
  expect_output CNI in_image /usr/lib/cni/spoke
  expect_output legacy in_image /usr/sbin/iptables-legacy -V
  for name in iptables-legacy-save ip6tables-legacy-save; do
    expect_output legacy in_image "/usr/sbin/$name" -V
  done
}

# Extensions are loaded at run time: a rule of those that the agent lays down must be understood.
test_iptables_extensions() {
  local output
  output=$(in_image /usr/sbin/iptables-legacy -m comment --help 2>&1) || fail "comment: $output"
}

test_contents() {
  local name found
  for name in tmp run var/lib/spoke etc/ssl/certs/ca-certificates.crt usr/share/spoke/10-spoke.conflist \
    etc/passwd etc/group etc/nsswitch.conf; do
    [[ -e $work/root/$name ]] || fail "the image has no /$name"
  done
  for name in sh bash dash busybox; do
    found=$(find "$work/root" -name "$name")
    [[ -z $found ]] || fail "the image holds a shell: $found"
  done
  found=$(find "$work/root" -mindepth 1 \( ! -user root -o ! -group root -o -newermt @0 \))
  [[ -z $found ]] || fail "not root's, or dated: $found"
  found=$(find -L "$work/root" -type l)
  [[ -z $found ]] || fail "links to nowhere: $found"
}

# A containerd of the test's own takes it by its name, and runs it.
load_and_run() {
  local folder=$1/containerd name=$2 i
  mkdir "$folder"
  printf 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n' >"$folder/config.toml"
  containerd --config "$folder/config.toml" --root "$folder/root" --state "$folder/state" \
    --address "$folder/socket" >"$folder/log" 2>&1 &
  for ((i = 0; i < 100; ++i)); do
    if ctr --address "$folder/socket" version >/dev/null 2>&1; then break; fi
    sleep 0.1
  done
  local ctr=(ctr --address "$folder/socket" --namespace k8s.io)
  "${ctr[@]}" images import "$1/first.tar" || cat "$folder/log"
  "${ctr[@]}" images ls
  "${ctr[@]}" run --rm "$name" one /usr/bin/spoke-netagent --version
}

test_containerd() {
  local name output
  name=$(jq -r .name "$work/first.json")
  # It goes with its process namespace.
  output=$(unshare --mount --net --pid --fork --mount-proc bash "${BASH_SOURCE[0]}" --load "$work" "$name" 2>&1) ||
    fail "containerd: $output"
  [[ $output == *"$name"*"$(jq -r .digest "$work/first.json")"* ]] || fail "containerd has another image: $output"
  [[ $(tail -n 1 <<<"$output") == "${name##*:}" ]] || fail "containerd: $output"
}

expect_refusal() {
  local wanted=$1 output code=0
  shift
  output=$("$@" 2>&1) || code=$?
  ((code == 1)) || fail "$* ended with $code"
  [[ $output == *"$wanted"* ]] || fail "$* printed \"$output\", not \"$wanted\""
  [[ ! -e $work/refused.tar ]] || fail "$* left an image"
}

test_refusals() {
  expect_refusal 'SOURCE_DATE_EPOCH is "now"' \
    env SOURCE_DATE_EPOCH=now "$here/scripts/image.sh" -o "$work/refused.tar"
  rm "$work/bin/spokectl"
  expect_refusal 'build it' env SPOKE_BIN="$work/bin" "$here/scripts/image.sh" -o "$work/refused.tar"
  cp "$SPOKE_BIN/spokectl" "$work/bin/spokectl"
  cp "$SPOKE_BIN/spokectl" "$work/bin/spoke"
  expect_refusal 'not static' env SPOKE_BIN="$work/bin" "$here/scripts/image.sh" -o "$work/refused.tar"
  cp "$SPOKE_BIN/spoke" "$work/bin/spoke"
  truncate -s 61M "$work/ballast"
  objcopy --add-section .ballast="$work/ballast" "$SPOKE_BIN/spokectl" "$work/bin/spokectl"
  expect_refusal '60 is the limit' env SPOKE_BIN="$work/bin" "$here/scripts/image.sh" -o "$work/refused.tar"
}

main() {
  SPOKE_BIN=$(realpath "$1")
  export SPOKE_BIN
  unset SOURCE_DATE_EPOCH
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  test_same_bytes
  test_containerd
  unpack
  test_epoch
  test_programs_run
  test_iptables_extensions
  test_contents
  test_refusals
}

if [[ $1 == --load ]]; then load_and_run "${@:2}"; else main "$@"; fi
