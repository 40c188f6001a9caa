#!/usr/bin/env bash
# A release: everything is there, whole, and the same bytes twice; what cannot be released is refused.
# usage: release_test.sh FOLDER-OF-RELEASE-PROGRAMS
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

# expect_refusal WORDS COMMAND...: it ends with 1, says so, and leaves nothing behind.
expect_refusal() {
  local words=$1 said code=0
  shift
  said=$("$@" 2>&1) || code=$?
  [[ $code == 1 && $said == *"$words"* ]] || fail "$* ended with $code and said: $said"
}

test_refusals() {
  local release=$work/tree/scripts/release.sh
  expect_refusal 'no tag v' "$release" -o "$work/none"
  git -C "$work/tree" tag "v$version"
  expect_refusal "no section \"## $version\"" "$release" -o "$work/none"
  sed -i 's/^appVersion: .*/appVersion: 9.9.9/' "$work/tree/conf/helm/spoke/Chart.yaml"
  expect_refusal 'has appVersion 9.9.9, and CMakeLists.txt has' "$release" --snapshot -o "$work/none"
  git -C "$work/tree" checkout -q conf
  mkdir "$work/full"
  touch "$work/full/file"
  expect_refusal 'is there already' "$release" --snapshot -o "$work/full"
  touch "$work/tree/new"
  expect_refusal 'not committed' "$release" --snapshot -o "$work/none"
  rm "$work/tree/new"
  "$release" --nonsense 2>/dev/null && fail 'nonsense is taken'
  "$release" --snapshot --arch amd64,amd64 -o "$work/none" 2>/dev/null && fail 'an architecture is taken twice'
  [[ ! -e $work/none ]] || fail 'something was left behind'
}

test_contents() {
  local release=$1 name
  (cd "$release" && sha256sum --quiet -c SHA256SUMS) || fail 'a checksum does not hold'
  [[ $(wc -l <"$release/SHA256SUMS") == $(($(find "$release" -type f | wc -l) - 1)) ]] || fail 'a file has no checksum'
  [[ $(find "$release" -name '*.deb' | wc -l) == 4 ]] || fail 'packages are missing'
  for name in spoke spoke-azure-sim; do
    tar -tf "$release/$name-$version.tar" | grep -x index.json >/dev/null || fail "$name is no OCI image layout"
  done
  tar -xOzf "$release/spoke-$version.tgz" spoke/Chart.yaml | grep -x "version: $version" >/dev/null || fail 'the chart is of another version'
  tar -tzf "$release/spoke-manifests-$version.tar.gz" | grep "^spoke-manifests-$version/base/kustomization.yaml\$" >/dev/null ||
    fail 'the manifests are not there'
  tar -tzf "$release/spoke-$version-source.tar.gz" | grep -x "spoke-$version/CMakeLists.txt" >/dev/null || fail 'the source is not there'
  grep -q '^## Unreleased' "$release/NOTES.md" || fail 'the notes are of another section'
  jq -e '.spdxVersion == "SPDX-2.3" and ([.relationships[] | select(.relationshipType == "DESCRIBES")] | length) == 4
      and ([.packages[].SPDXID] | unique | length) == (.packages | length)
      and ([.packages[] | select(.name == "libc6")] | length) == 1' "$release/spoke-$version.spdx.json" >/dev/null ||
    fail 'the bill of materials is not whole'
  # Each relationship is between things that the document has.
  jq -e '([.packages[].SPDXID] + ["SPDXRef-DOCUMENT"]) as $known
      | all(.relationships[]; (.spdxElementId | IN($known[])) and (.relatedSpdxElement | IN($known[])))' \
    "$release/spoke-$version.spdx.json" >/dev/null || fail 'a relationship leads nowhere'
}

version=$(sed -n 's/^project(spoke VERSION \([0-9.]*\) .*/\1/p' "$here/CMakeLists.txt")
[[ -z $(git -C "$here" status --porcelain) ]] || fail 'it makes a release of what is committed: commit first'
git clone -q "$here" "$work/tree"
test_refusals
"$here/scripts/release.sh" --snapshot -o "$work/first" >/dev/null
test_contents "$work/first"
(umask 077 && "$here/scripts/release.sh" --snapshot -o "$work/second" >/dev/null)
diff "$work/first/SHA256SUMS" "$work/second/SHA256SUMS" || fail 'two releases of one commit differ'
printf 'a release of %s: everything is there, and the same twice\n' "$version"
