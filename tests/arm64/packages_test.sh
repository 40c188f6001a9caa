#!/usr/bin/env bash
# What users get for arm64: the packages and the image are of that architecture in all that they say and
# hold, and nothing that a program in the image starts with is missing there.
# usage: packages_test.sh FOLDER-OF-RELEASE-PROGRAMS
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

# expect_arm64 FOLDER COUNT: each program and library in it is one for arm64, and there are COUNT at least.
expect_arm64() {
  local file count=0
  while read -r file; do
    if [[ $(head -c 4 "$file" | tr -d '\0') != $'\x7fELF' ]]; then continue; fi
    [[ $(readelf --file-header "$file") == *AArch64* ]] || fail "$file is not for arm64"
    count=$((count + 1))
  done < <(find "$1" -type f)
  ((count >= $2)) || fail "$1 has only $count programs and libraries"
}

check_package() {
  local package=$1 program=$2 file=$work/deb/$1_${version}_arm64.deb folder=$work/$1
  [[ -f $file ]] || fail "there is no ${file##*/}"
  [[ $(dpkg-deb -f "$file" Architecture) == arm64 ]] || fail "$package is of another architecture"
  dpkg-deb -x "$file" "$folder"
  expect_arm64 "$folder" 1
  jq -e --arg program "$program" '.metadata.component | .name == $program and .properties[0].value == "arm64"' \
    "$folder/usr/share/doc/$package/sbom.cdx.json" >/dev/null || fail "$package has no bill of its program"
  if [[ $program == spoke ]]; then return; fi
  [[ $(dpkg-deb -f "$file" Depends) == *'libc6 ('* ]] || fail "$package does not say what it needs"
  jq -e '.components[] | select(.name == "libc6") | .purl | contains("arch=arm64")' \
    "$folder/usr/share/doc/$package/sbom.cdx.json" >/dev/null || fail "the bill of $package has another libc"
}

test_packages() {
  "$here/scripts/packages.sh" --arch arm64 -o "$work/deb" >/dev/null
  check_package spoke-cni spoke
  check_package spoke-netagent spoke-netagent
  check_package spoke-ipam-server spoke-ipam-server
  check_package spokectl spokectl
}

test_image() {
  local manifest blobs=$work/layout/blobs config file library
  "$here/scripts/image.sh" --arch arm64 -o "$work/image.tar" --json | jq -e '.architecture == "arm64"' >/dev/null ||
    fail 'the image is said to be of another architecture'
  mkdir "$work/layout" "$work/root"
  tar -xf "$work/image.tar" -C "$work/layout"
  jq -e '.manifests[0].platform.architecture == "arm64"' "$work/layout/index.json" >/dev/null || fail 'the index says otherwise'
  manifest=$blobs/$(jq -r '.manifests[0].digest | sub(":"; "/")' "$work/layout/index.json")
  config=$blobs/$(jq -r '.config.digest | sub(":"; "/")' "$manifest")
  jq -e '.architecture == "arm64"' "$config" >/dev/null || fail 'the configuration says otherwise'
  tar -xzf "$blobs/$(jq -r '.layers[0].digest | sub(":"; "/")' "$manifest")" -C "$work/root"
  expect_arm64 "$work/root" 50
  [[ -f $work/root/lib/ld-linux-aarch64.so.1 ]] || fail 'there is no loader where programs look for it'
  while read -r file; do
    while read -r library; do
      [[ -e $work/root/usr/lib/aarch64-linux-gnu/$library || -e $work/root/usr/lib/$library ]] ||
        fail "$file needs $library, which is not in the image"
    done < <(readelf --wide --dynamic "$file" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  done < <(find "$work/root/usr" -type f)
  [[ $(qemu-aarch64 -L "$work/root" "$work/root/usr/bin/spokectl" --version) == "spokectl $version" ]] || fail 'spokectl does not start'
  [[ $(qemu-aarch64 -L "$work/root" "$work/root/usr/sbin/xtables-legacy-multi" iptables -V) == *legacy* ]] ||
    fail 'iptables-legacy does not start'
}

version=$(sed -n 's/^project(spoke VERSION \([0-9.]*\) .*/\1/p' "$here/CMakeLists.txt")
[[ $(cd "$1/.." && pwd) == "$here/build/release-arm64" ]] || fail "$1 is not where scripts/packages.sh takes programs from"
test_packages
test_image
printf 'packages_test.sh: OK\n'
