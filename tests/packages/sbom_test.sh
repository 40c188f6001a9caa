#!/usr/bin/env bash
# The bill of materials of each package: it is in the package, of the program that is in it, and names the
# package of each library that the program starts with, in the version of this machine. A bill that cannot
# be complete is refused.
# usage: sbom_test.sh FOLDER-OF-RELEASE-PROGRAMS
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

# part BILL NAME: its version and how it is linked; nothing if it is not there.
part() {
  jq -r --arg name "$2" '.components[] | select(.name == $name) | "\(.version) \(.properties[0].value)"' "$1"
}

# expect_part BILL PACKAGE LINKAGE
expect_part() {
  local found version
  version=$(dpkg-query -W -f '${Version}\n' "$2" | head -n 1) || fail "$2 is not installed"
  found=$(part "$1" "$2")
  [[ $found == "$version $3" ]] || fail "$1 says of $2 \"$found\", not \"$version $3\""
}

check_package() {
  local package=$1 program=$2 file=$3 bill=$work/$1.json folder=$work/$1 library owner
  mkdir "$folder"
  dpkg-deb -x "$work/deb/${package}_"*.deb "$folder"
  cp "$folder/usr/share/doc/$package/sbom.cdx.json" "$bill" || fail "$package has no bill"
  [[ $(jq -r '.bomFormat + .specVersion' "$bill") == CycloneDX1.5 ]] || fail "$bill is of no known form"
  [[ $(jq -r .metadata.component.name "$bill") == "$program" ]] || fail "$bill is of another program"
  [[ $(jq -r '.metadata.component.hashes[0].content' "$bill") == "$(sha256sum <"$folder/$file" | cut -d ' ' -f 1)" ]] ||
    fail "$bill is not of the program in $package"
  # The answer is ldconfig's, which scripts/sbom does not ask.
  while read -r library; do
    owner=$(dpkg-query -S "*/$(gcc -print-multiarch)/${library##*/}" | head -n 1 | cut -d : -f 1)
    [[ -n $(part "$bill" "$owner") ]] || fail "$bill does not name $owner, which has $library"
  done < <(readelf --wide --dynamic "$folder/$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  # Whatever something depends on is there.
  [[ $(jq '[.dependencies[] | .ref, .dependsOn[]] - [.metadata.component["bom-ref"], .components[]["bom-ref"]] | length' \
    "$bill") == 0 ]] || fail "$bill depends on what it does not name"
}

expect_refusal() {
  local wanted=$1 output code=0
  shift
  output=$("$here/scripts/sbom" "$@" 2>&1) || code=$?
  ((code == 1)) || fail "sbom $* ended with $code"
  [[ $output == *"$wanted"* ]] || fail "sbom $* printed \"$output\", not \"$wanted\""
}

# A library that no package has: nobody could say which version it is.
check_refusals() {
  local build=$work/build
  mkdir -p "$build/bin"
  gcc -shared -fPIC "-Wl,-soname,libours.so" -x c -o "$build/libours.so" - <<<'int Ours(void) { return 0; }'
  gcc -x c -o "$build/bin/spokectl" - -x none "$build/libours.so" "-Wl,-rpath,$build" \
    <<<'int Ours(void); int main(void) { return Ours(); }'
  expect_refusal 'libours.so is of no package' "$build" spokectl
  gcc -x c -o "$build/bin/spokectl" - <<<'int main(void) { return 0; }'
  expect_refusal 'ninja' "$build" spokectl
  expect_refusal 'none' "$build" none
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
release=$(cd "$1/.." && pwd)
[[ $release == "$here/build/release" ]] || fail "$release is not where scripts/packages.sh takes programs from"
"$here/scripts/packages.sh" -o "$work/deb" >/dev/null
check_package spoke-cni spoke usr/lib/cni/spoke
check_package spoke-netagent spoke-netagent usr/bin/spoke-netagent
check_package spoke-ipam-server spoke-ipam-server usr/bin/spoke-ipam-server
check_package spokectl spokectl usr/bin/spokectl
expect_part "$work/spoke-cni.json" musl-dev static
expect_part "$work/spoke-cni.json" rapidjson-dev headers
expect_part "$work/spoke-netagent.json" libbpf1 shared
expect_part "$work/spoke-netagent.json" libc6-dev static
expect_part "$work/spoke-ipam-server.json" libsqlite3-0 shared
expect_part "$work/spokectl.json" nlohmann-json3-dev headers
cmp <("$here/scripts/sbom" "$release" spokectl) "$work/spokectl.json" || fail 'the same build gives another bill'
check_refusals
printf 'sbom_test.sh: OK\n'
