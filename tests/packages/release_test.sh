#!/usr/bin/env bash
# A release, as somebody makes it: prepared, committed, tagged and made in a checkout of its own, of programs that
# are built already. Everything is there and whole; another checkout, at another time and place, gives the same
# bytes; what cannot be released is refused.
# usage: release_test.sh FOLDER-OF-RELEASE-PROGRAMS [ARCHITECTURE,ARCHITECTURE]
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly programs=(spoke spoke-netagent spoke-ipam-server spokectl spoke-azure-sim)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Nothing of whoever runs it gets into the checkouts.
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=test GIT_AUTHOR_EMAIL=test@localhost
export GIT_COMMITTER_NAME=test GIT_COMMITTER_EMAIL=test@localhost

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

# copy_tree FOLDER: a checkout of what is here, committed or not.
copy_tree() {
  git clone -q "$here" "$1"
  git -C "$1" ls-files -z | (cd "$1" && xargs -0 rm -f)
  (
    cd "$here"
    # A file that was removed and not yet committed is still listed.
    git ls-files -z --cached --others --exclude-standard | sort -zu |
      tar --create --ignore-failed-read --null --files-from=- 2>/dev/null
  ) | tar --extract -C "$1"
  git -C "$1" add --all
  git -C "$1" commit -q --allow-empty -m 'test: take the tree as it is'
}

# add_programs FOLDER: as if they had been built there, with what a build knows of where they come from.
add_programs() {
  local arch preset from to
  for arch in "${archs[@]}"; do
    preset=$("$here/scripts/preset_of" "$arch")
    from=$here/build/$preset
    to=$1/build/$preset
    (cd "$1" && cmake --preset "$preset") >"$work/cmake.log" 2>&1 || fail "cmake: $(tail -n 20 "$work/cmake.log")"
    mkdir -p "$to/bin"
    cp "${programs[@]/#/$from/bin/}" "$to/bin/" || fail "scripts/build.sh $preset ${programs[*]} comes first"
    cp -r "$from/share" "$from/.ninja_deps" "$from/.ninja_log" "$to/"
  done
  if [[ ${archs[*]} == *arm64* ]]; then
    mkdir -p "$1/build/tools"
    cp -r "$here/build/tools/iptables-arm64" "$1/build/tools/"
  fi
}

# The step that a release begins with: it moves what is unreleased, and writes the version wherever it stands.
test_preparing() {
  local tree=$work/tree date
  date=$(date --utc +%F)
  "$tree/scripts/release.sh" --prepare 98.7.6 >/dev/null
  "$tree/scripts/check_versions" "$tree" || fail 'the versions differ after --prepare'
  [[ $(grep -c '98\.7\.6' "$tree/CMakeLists.txt" "$tree/conf/helm/spoke/Chart.yaml") == *CMakeLists.txt:1*Chart.yaml:2 ]] ||
    fail '--prepare did not write the version'
  [[ $(grep -A 2 '^## ' "$tree/CHANGELOG.md") == '## Unreleased'$'\n\n'"## 98.7.6 - $date"$'\n'* ]] ||
    fail "--prepare made of CHANGELOG.md: $(grep '^## ' "$tree/CHANGELOG.md")"
  expect_refusal 'has a section of 98.7.6 already' "$tree/scripts/release.sh" --prepare 98.7.6
  expect_refusal 'nothing under "## Unreleased"' "$tree/scripts/release.sh" --prepare 98.7.7
  git -C "$tree" checkout -q .
  "$tree/scripts/release.sh" --prepare 1.2 2>/dev/null && fail '1.2 is taken for a version'
  [[ -z $(git -C "$tree" status --porcelain) ]] || fail 'a refused --prepare left something'
}

test_refusals() {
  local tree=$work/tree release=$work/tree/scripts/release.sh
  expect_refusal 'no tag v' "$release" -o "$work/none"
  git -C "$tree" tag "v$version"
  expect_refusal "no section \"## $version\"" "$release" -o "$work/none"
  git -C "$tree" tag -d "v$version" >/dev/null
  sed -i 's/^appVersion: .*/appVersion: 9.9.9/' "$tree/conf/helm/spoke/Chart.yaml"
  expect_refusal 'has appVersion 9.9.9, and CMakeLists.txt has' "$release" --snapshot -o "$work/none"
  git -C "$tree" checkout -q conf
  mkdir "$work/full"
  touch "$work/full/file"
  expect_refusal 'is there already' "$release" --snapshot -o "$work/full"
  touch "$tree/new"
  expect_refusal 'not committed' "$release" --snapshot -o "$work/none"
  rm "$tree/new"
  "$release" --nonsense 2>/dev/null && fail 'nonsense is taken'
  "$release" --snapshot --arch amd64,amd64 -o "$work/none" 2>/dev/null && fail 'an architecture is taken twice'
  [[ ! -e $work/none ]] || fail 'something was left behind'
}

# test_image FILE NAME: a layout that holds what its index names, for each architecture.
test_image() {
  local folder=$work/layout blob
  rm -rf "$folder"
  mkdir "$folder"
  tar -xf "$1" -C "$folder"
  for blob in "$folder"/blobs/sha256/*; do
    [[ $(sha256sum <"$blob") == "${blob##*/}  -" ]] || fail "$1: $blob is not what its name says"
  done
  jq -e --arg name "docker.io/library/$2:$version" '(.manifests | length) == 1 and
      .manifests[0].annotations["io.containerd.image.name"] == $name' "$folder/index.json" >/dev/null ||
    fail "$1 has another name: $(<"$folder/index.json")"
  [[ $(cat "$folder/index.json" "$folder"/blobs/sha256/* | grep --text -oE '"platform":\{"architecture":"[a-z0-9]+"' |
    cut -d '"' -f 6 | sort -u | paste -sd ,) == "$(printf '%s\n' "${archs[@]}" | sort | paste -sd ,)" ]] ||
    fail "$1 is of other architectures"
}

test_packages() {
  local release=$1 arch package
  for arch in "${archs[@]}"; do
    for package in spoke-cni spoke-netagent spoke-ipam-server spokectl; do
      [[ $(dpkg-deb -f "$release/${package}_${version}_$arch.deb" Package Version Architecture) == \
        "Package: $package"$'\n'"Version: $version"$'\n'"Architecture: $arch" ]] || fail "$package for $arch is of another kind"
    done
  done
  [[ $(find "$release" -name '*.deb' | wc -l) == $((4 * ${#archs[@]})) ]] || fail 'there are other packages'
}

# The archives have what their names say, all of it and nothing beside it.
test_archives() {
  local release=$1 conf=$work/tree/conf prefix=spoke-manifests-$version
  tar -xOzf "$release/spoke-$version.tgz" spoke/Chart.yaml | grep -x "version: $version" >/dev/null || fail 'the chart is of another version'
  diff <(cd "$conf/helm" && find spoke -type f | sort) <(tar -tzf "$release/spoke-$version.tgz" | grep -v '/$' | sort) ||
    fail 'the chart is not whole'
  diff <(cd "$conf" && find . -type f | grep -vE '^\./(helm|debian|systemd)/' | sed "s,^\\.,$prefix," | sort) \
    <(tar -tzf "$release/$prefix.tar.gz" | grep -v '/$' | sort) || fail 'the manifests are not whole'
  for file in kubernetes/base/kustomization.yaml alerts.yaml recording-rules.yaml grafana/spoke-fleet.json; do
    tar -xOzf "$release/$prefix.tar.gz" "$prefix/$file" | cmp - "$conf/$file" || fail "$file is another one"
  done
  diff <(git -C "$work/tree" ls-files | sort) \
    <(tar -tzf "$release/spoke-$version-source.tar.gz" | grep -v '/$' | sed "s,^spoke-$version/,," | sort) ||
    fail 'the source is not whole'
}

# The bill keeps the rules, knows each file of the images, and each program: in an image and in a package.
test_bill() {
  local release=$1 bill=$1/spoke-$version.spdx.json count=${#archs[@]}
  "$here/tests/packages/spdx_rules.py" "$bill" "$release"/spoke{,-azure-sim}-"$version".tar || fail 'the bill of materials'
  jq -e --argjson count "$count" '([.packages[] | select(.primaryPackagePurpose == "CONTAINER")] | length) == 2 * $count and
      ([.packages[] | select(.primaryPackagePurpose == "APPLICATION")] | length) == 5 * $count and
      ([.packages[] | select(.name == "libc6")] | length) == $count and
      ([.packages[] | select(.name == "iptables" and .versionInfo != "")] | length) == $count and
      ([.packages[] | select(.name == "ca-certificates" and .licenseDeclared == "GPL-2.0-or-later AND MPL-2.0")] | length) == 1' \
    "$bill" >/dev/null || fail 'the bill of materials is not whole'
  # A bill that is wrong is not taken for right.
  jq 'del(.packages[3].downloadLocation) | .files[0].checksums[0].checksumValue = ("0" * 40) | .files[1].SPDXID = .files[2].SPDXID' \
    "$bill" >"$work/wrong.json"
  "$here/tests/packages/spdx_rules.py" "$work/wrong.json" "$release"/spoke{,-azure-sim}-"$version".tar >"$work/wrong" &&
    fail 'a wrong bill is taken for right'
  for words in 'has no downloadLocation' 'there twice' 'verification code' 'has another sha1'; do
    grep "$words" "$work/wrong" >/dev/null || fail "of a wrong bill it says: $(<"$work/wrong")"
  done
}

test_contents() {
  local release=$1 name
  (cd "$release" && sha256sum --quiet -c SHA256SUMS) || fail 'a checksum does not hold'
  [[ $(wc -l <"$release/SHA256SUMS") == $(($(find "$release" -type f | wc -l) - 1)) ]] || fail 'a file has no checksum'
  [[ $(find "$release" -type f -not -name '*.deb' | wc -l) == 8 ]] || fail "it has: $(ls "$release")"
  for name in spoke spoke-azure-sim; do test_image "$release/$name-$version.tar" "$name"; done
  test_packages "$release"
  test_archives "$release"
  test_bill "$release"
  # The notes are what was unreleased, and no more.
  diff <(sed 1d "$release/NOTES.md") <(sed 1d "$work/unreleased") || fail 'the notes are of another section'
  [[ $(head -n 1 "$release/NOTES.md") == "## $version - "20* ]] || fail 'the notes do not name the version'
}

# Another checkout of the tag, with files of another time and mode, made at another place, in another language.
test_same_bytes() {
  local other=$work/elsewhere/deep/checkout
  (
    umask 077
    mkdir -p "${other%/*}"
    git clone -q "$work/tree" "$other"
    git -C "$other" config tar.umask 0
    add_programs "$other"
    find "$other" -not -path '*/.git/*' -type f -exec touch -d 2001-02-03 {} +
    cd /
    TZ=Pacific/Auckland LC_ALL=C.UTF-8 LANG=de_DE.UTF-8 "$other/scripts/release.sh" --no-build --arch "$(IFS=, && printf '%s' "${archs[*]}")" \
      -o "$work/second" >/dev/null
  )
  diff "$work/first/SHA256SUMS" "$work/second/SHA256SUMS" || fail 'two releases of one commit differ'
  [[ $(find "$work/second" -type f -perm 644 | wc -l) == $(find "$work/second" -type f | wc -l) ]] || fail 'not everybody may read it'
}

version=$(sed -n 's/^project(spoke VERSION \([0-9.]*\) .*/\1/p' "$here/CMakeLists.txt")
IFS=, read -r -a archs <<<"${2:-$(dpkg --print-architecture)}"
[[ $(cd "$1/.." && pwd) == "$here/build/"* ]] || fail "$1 is no folder of programs that are built here"
copy_tree "$work/tree"
test_preparing
test_refusals
awk '/^## /{on = ($0 == "## Unreleased")} on' "$work/tree/CHANGELOG.md" >"$work/unreleased"
"$work/tree/scripts/release.sh" --prepare "$version" >/dev/null
git -C "$work/tree" commit -q --all -m "release: $version"
git -C "$work/tree" tag -a -m "$version" "v$version"
add_programs "$work/tree"
"$work/tree/scripts/release.sh" --no-build --arch "$(IFS=, && printf '%s' "${archs[*]}")" -o "$work/first" >/dev/null
test_contents "$work/first"
test_same_bytes
printf 'a release of %s for %s: everything is there, and the same twice\n' "$version" "${archs[*]}"
