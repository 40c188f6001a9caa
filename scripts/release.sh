#!/usr/bin/env bash
# Makes all that a release consists of, in one folder.
set -euo pipefail

readonly PROGRAMS=(spoke spoke-netagent spoke-ipam-server spokectl)

usage() {
  cat <<'EOT'
usage: scripts/release.sh [-o FOLDER] [--snapshot] [--arch ARCHITECTURE[,ARCHITECTURE]]

  -o FOLDER   where it goes; build/release-VERSION without it. It must not exist, or be empty
  --snapshot  of what is committed, with no tag: NOTES.md has what is not released yet
  --arch      for which machines: amd64,arm64, say (CONTRIBUTING.md says what that takes); without it for
              such as this one

Makes, of the commit that is checked out, which has to bear the tag vVERSION:
  spoke-VERSION.tar            the image of the four programs, an OCI image layout: one image index of all
                               architectures, if there are several
  spoke-azure-sim-VERSION.tar  the image of the simulated Azure, likewise
  *.deb                        the Debian packages, of each architecture
  spoke-VERSION.tgz            the Helm chart
  spoke-manifests-VERSION.tar.gz, spoke-VERSION-source.tar.gz
  spoke-VERSION.spdx.json      what the programs consist of: SPDX 2.3
  NOTES.md                     the section of CHANGELOG.md
  SHA256SUMS                   of all of these; sha256sum -c SHA256SUMS
VERSION stands in CMakeLists.txt; what else names it has to have the same (scripts/check_versions). The same commit on the same Debian
release gives the same bytes: every time in it is that of the commit.

Exit status: 0 made, 1 it could not be made, 2 wrong usage.
EOT
}

fail() {
  printf 'release.sh: %s\n' "$*" >&2
  exit 1
}

# The version of CMakeLists.txt.
version_of() { sed -n 's/^project(spoke VERSION \([0-9.]*\) .*/\1/p' "$1/CMakeLists.txt"; }

# check_versions HERE: every place that has to say the version says it.
check_versions() {
  local said
  said=$("$1/scripts/check_versions" "$1") || fail "$said"
}

# check_commit HERE VERSION SNAPSHOT: what is made is what is committed and tagged.
check_commit() {
  [[ -z $(git -C "$1" status --porcelain) ]] || fail 'there are changes that are not committed: git status'
  if [[ $3 == yes ]]; then return; fi
  git -C "$1" tag --points-at HEAD | grep -qxF "v$2" ||
    fail "this commit has no tag v$2; --snapshot makes it without one"
}

# notes HERE SECTION: the section of the changelog.
notes() {
  local text
  text=$(awk -v want="## $2" '/^## /{on = ($0 == want || index($0, want " ") == 1)} on' "$1/CHANGELOG.md")
  [[ -n $text ]] || fail "CHANGELOG.md has no section \"## $2\""
  printf '%s\n' "$text"
}

# archive FOLDER PREFIX: FOLDER as a tar.gz, whose bytes depend on names and contents alone.
archive() {
  tar --create --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w \
    --mtime="@$SOURCE_DATE_EPOCH" --transform "s,^\\.,$2," -C "$1" . | gzip -n -9
}

# make_image HERE FILE [OPTION...] -- ARCHITECTURE...: an image of one architecture, or an index of those of several.
make_image() {
  local here=$1 out=$2 arch options=() parts=()
  shift 2
  while [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  shift
  if (($# == 1)); then
    "$here/scripts/image.sh" --arch "$1" "${options[@]}" -o "$out" >&2
    return
  fi
  for arch in "$@"; do
    "$here/scripts/image.sh" --arch "$arch" "${options[@]}" -o "$out.$arch" >&2
    parts+=("$out.$arch")
  done
  python3 -B "$here/scripts/image/merge_images.py" --out "$out" "${parts[@]}" >&2
  rm "${parts[@]}"
}

# make_all HERE VERSION FOLDER SECTION ARCHITECTURE...
make_all() {
  local here=$1 version=$2 out=$3 section=$4 arch preset program bills=() sums
  shift 4
  notes "$here" "$section" >"$out/NOTES.md"
  make_image "$here" "$out/spoke-$version.tar" -- "$@"
  make_image "$here" "$out/spoke-azure-sim-$version.tar" --simulator -- "$@"
  for arch in "$@"; do
    "$here/scripts/packages.sh" --arch "$arch" -o "$out" >&2
    preset=$("$here/scripts/preset_of" "$arch")
    for program in "${PROGRAMS[@]}"; do bills+=("$here/build/$preset/sbom/$program.cdx.json"); done
  done
  archive "$here/conf/helm/spoke" spoke >"$out/spoke-$version.tgz"
  archive "$here/conf/kubernetes" "spoke-manifests-$version" >"$out/spoke-manifests-$version.tar.gz"
  git -C "$here" archive --format=tar --prefix="spoke-$version/" HEAD | gzip -n -9 \
    >"$out/spoke-$version-source.tar.gz"
  "$here/scripts/spdx" "$version" "$SOURCE_DATE_EPOCH" "${bills[@]}" >"$out/spoke-$version.spdx.json"
  sums=$(cd "$out" && find . -type f -printf '%P\n' | LC_ALL=C sort | xargs sha256sum)
  printf '%s\n' "$sums" >"$out/SHA256SUMS"
}

main() {
  local here out='' snapshot=no version section making arch archs=()
  archs=("$(dpkg --print-architecture)")
  while (($# > 0)); do
    case $1 in
      -h | --help) usage && exit 0 ;;
      --snapshot) snapshot=yes ;;
      --arch)
        if (($# < 2)); then usage >&2 && exit 2; fi
        IFS=, read -r -a archs <<<"$2"
        shift
        ;;
      -o)
        if (($# < 2)); then usage >&2 && exit 2; fi
        out=$(realpath -m -- "$2")
        shift
        ;;
      *) usage >&2 && exit 2 ;;
    esac
    shift
  done
  here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
  if ((${#archs[@]} == 0)); then usage >&2 && exit 2; fi
  for arch in "${archs[@]}"; do "$here/scripts/preset_of" "$arch" >/dev/null || exit 2; done
  if (($(printf '%s\n' "${archs[@]}" | sort -u | wc -l) != ${#archs[@]})); then
    printf 'release.sh: --arch names an architecture twice\n' >&2 && exit 2
  fi
  version=$(version_of "$here")
  [[ -n $version ]] || fail 'CMakeLists.txt says no version'
  check_versions "$here"
  check_commit "$here" "$version" "$snapshot"
  out=${out:-$here/build/release-$version}
  if [[ -e $out && -n $(ls -A "$out" 2>/dev/null || echo file) ]]; then fail "$out is there already"; fi
  section=$version
  if [[ $snapshot == yes ]]; then section=Unreleased; fi
  SOURCE_DATE_EPOCH=$(git -C "$here" log -1 --format=%ct)
  export SOURCE_DATE_EPOCH

  # It appears under its name once all of it is there.
  mkdir -p "$(dirname "$out")"
  making=$(mktemp -d "$out.making.XXXXXX")
  # shellcheck disable=SC2064  # The folder of now.
  trap "rm -rf '$making'" EXIT
  make_all "$here" "$version" "$making" "$section" "${archs[@]}"
  chmod 755 "$making"
  if [[ -d $out ]]; then rmdir "$out"; fi
  mv "$making" "$out"
  printf '%s\n' "$out"
  cat "$out/SHA256SUMS"
}

main "$@"
