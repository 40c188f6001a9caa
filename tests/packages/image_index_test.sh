#!/usr/bin/env bash
# An image of several architectures: one name, a manifest of each platform, every blob there and whole, the same
# bytes twice; containerd takes the one of this machine. What cannot be one image is refused.
# usage: image_index_test.sh
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
daemon=
trap 'if [[ -n $daemon ]]; then kill "$daemon" && wait "$daemon" || true; fi; rm -rf "$work"' EXIT

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

merge() { python3 -B "$here/scripts/image/merge_images.py" "$@"; }

# make_image ARCHITECTURE NAME: an image of one file that tells its architecture.
make_image() {
  python3 -B - "$here" "$work" "$1" "$2" <<'PYTHON'
import io, sys, tarfile
here, work, architecture, name = sys.argv[1:]
sys.path.insert(0, here + "/scripts/image")
from oci_layout import add, write_image
layer = io.BytesIO()
with tarfile.open(fileobj=layer, mode="w") as archive:
    add(archive, "architecture", architecture.encode())
write_image(f"{work}/{architecture}.tar", name, layer.getvalue(), {}, architecture=architecture)
PYTHON
}

# expect_refusal WORDS ARGUMENT...
expect_refusal() {
  local words=$1 said code=0
  shift
  said=$(merge --out "$work/none.tar" "$@" 2>&1) || code=$?
  [[ $code == 1 && $said == *"$words"* && ! -e $work/none.tar ]] || fail "$* ended with $code and said: $said"
}

test_layout() {
  local file index digest blob
  digest=$(merge --out "$work/all.tar" "$work/arm64.tar" "$work/amd64.tar")
  merge --out "$work/again.tar" "$work/amd64.tar" "$work/arm64.tar" >/dev/null
  cmp "$work/all.tar" "$work/again.tar" || fail 'the order of the images changes the bytes'
  mkdir "$work/layout"
  tar -xf "$work/all.tar" -C "$work/layout"
  jq -e --arg digest "$digest" '(.manifests | length) == 1 and .manifests[0].digest == $digest and
      .manifests[0].mediaType == "application/vnd.oci.image.index.v1+json" and
      .manifests[0].annotations["io.containerd.image.name"] == "spoke.test/both:1"' "$work/layout/index.json" >/dev/null ||
    fail "index.json: $(<"$work/layout/index.json")"
  for blob in "$work"/layout/blobs/sha256/*; do
    [[ $(sha256sum <"$blob") == "${blob##*/}  -" ]] || fail "$blob is not what its name says"
  done
  index=$work/layout/blobs/${digest/:/\/}
  [[ $(jq -r '[.manifests[].platform | "\(.os)/\(.architecture)"] | join(" ")' "$index") == 'linux/amd64 linux/arm64' ]] ||
    fail "the index: $(<"$index")"
  while read -r file; do
    [[ -s $work/layout/blobs/${file/:/\/} ]] || fail "$file is not there"
    jq -r '.config.digest, .layers[].digest' "$work/layout/blobs/${file/:/\/}" >>"$work/named"
  done < <(jq -r '.manifests[].digest' "$index")
  while read -r file; do [[ -s $work/layout/blobs/${file/:/\/} ]] || fail "$file is not there"; done <"$work/named"
  [[ $(wc -l <"$work/named") == 4 ]] || fail 'not each image has a configuration and a layer'
}

test_refusals() {
  expect_refusal 'two images are of the same architecture: amd64, amd64' "$work/amd64.tar" "$work/amd64.tar"
  expect_refusal 'has not one image of one platform' "$work/all.tar" "$work/amd64.tar"
  tar -cf "$work/other.tar" -C "$work" named
  expect_refusal 'is no OCI image layout' "$work/other.tar" "$work/amd64.tar"
  make_image arm64 spoke.test/other:1
  expect_refusal 'images of different names' "$work/amd64.tar" "$work/arm64.tar"
}

# containerd, with all that it has in a folder of ours and nothing that runs containers.
test_containerd() {
  local socket=$work/containerd.sock
  mkdir "$work/containerd"
  cat >"$work/containerd.toml" <<CONFIG
version = 2
root = "$work/containerd/root"
state = "$work/containerd/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "$socket"
[ttrpc]
  address = "$socket.ttrpc"
CONFIG
  containerd --config "$work/containerd.toml" >"$work/containerd.log" 2>&1 &
  daemon=$!
  local deadline=$((SECONDS + 30))
  until ctr --address "$socket" version >/dev/null 2>&1; do
    ((SECONDS < deadline)) || fail "containerd does not answer: $(tail -n 5 "$work/containerd.log")"
    sleep 0.1
  done
  ctr --address "$socket" images import --no-unpack --all-platforms "$work/all.tar" >/dev/null
  ctr --address "$socket" images ls >"$work/images"
  grep -E '^spoke\.test/both:1 .*linux/amd64,linux/arm64' "$work/images" >/dev/null || fail "containerd has: $(<"$work/images")"
}

make_image amd64 spoke.test/both:1
make_image arm64 spoke.test/both:1
test_layout
test_containerd
test_refusals
printf 'one image of two architectures: whole, and the same twice\n'
