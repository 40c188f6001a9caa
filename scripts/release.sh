#!/usr/bin/env bash
# Makes all that a release consists of, in one folder.
set -euo pipefail

readonly PROGRAMS=(spoke spoke-netagent spoke-ipam-server spokectl)

usage() {
  cat <<'EOT'
usage: scripts/release.sh [-o FOLDER] [--snapshot] [--no-build] [--arch ARCHITECTURE[,ARCHITECTURE]]
       scripts/release.sh --prepare VERSION

  -o FOLDER   where it goes; build/release-VERSION without it. It must not exist, or be empty
  --snapshot  of what is committed, with no tag: NOTES.md has what is not released yet
  --no-build  of the programs that build/PRESET has, whatever they were built from: for tests of this
  --arch      for which machines: amd64,arm64, say (CONTRIBUTING.md says what that takes); without it for
              such as this one
  --prepare   write VERSION into CMakeLists.txt and wherever else it stands, and put what CHANGELOG.md has
              under Unreleased under VERSION and today's date; commit that, tag it vVERSION, release it

Makes, of the commit that is checked out, which has to bear the tag vVERSION:
  spoke-VERSION.tar            the image of the four programs, an OCI image layout: one image index of all
                               architectures, if there are several
  spoke-azure-sim-VERSION.tar  the image of the simulated Azure, likewise
  *.deb                        the Debian packages, of each architecture
  spoke-VERSION.tgz            the Helm chart
  spoke-manifests-VERSION.tar.gz  what else conf/ has for clusters: manifests, alerts, recording rules,
                               dashboards, roles for Azure, examples of policies and configurations
  spoke-VERSION-source.tar.gz
  spoke-VERSION.spdx.json      what programs and images consist of, to the file: SPDX 2.3
  NOTES.md                     the section of CHANGELOG.md
  SHA256SUMS                   of all of these; sha256sum -c SHA256SUMS
VERSION stands in CMakeLists.txt; what else names it has to have the same (scripts/check_versions). The same
commit on the same Debian release gives the same bytes: every time in it is that of the commit.

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
  [[ $'\n'$(git -C "$1" tag --points-at HEAD)$'\n' == *$'\n'"v$2"$'\n'* ]] ||
    fail "this commit has no tag v$2; --snapshot makes it without one"
}

# notes HERE SECTION: the section of the changelog.
notes() {
  local text
  text=$(awk -v want="## $2" '/^## /{on = ($0 == want || index($0, want " ") == 1)} on' "$1/CHANGELOG.md")
  [[ -n $text ]] || fail "CHANGELOG.md has no section \"## $2\""
  printf '%s\n' "$text"
}

# prepare HERE VERSION: the changes that a release begins with, for somebody to look at and commit.
prepare() {
  local here=$1 version=$2 log=$1/CHANGELOG.md date
  if [[ ! $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]]; then
    printf 'release.sh: "%s" is no version: MAJOR.MINOR.PATCH\n' "$version" >&2 && exit 2
  fi
  if grep -qE "^## ${version//./\\.}( |\$)" "$log"; then fail "CHANGELOG.md has a section of $version already"; fi
  notes "$here" Unreleased | grep -vE '^(## Unreleased)?$' >/dev/null || fail 'CHANGELOG.md has nothing under "## Unreleased"'
  date=$(date --utc +%F)
  sed -i "s/^## Unreleased\$/&\n\n## $version - $date/" "$log"
  sed -i "s/^project(spoke VERSION [0-9.]*/project(spoke VERSION $version/" "$here/CMakeLists.txt"
  "$here/scripts/check_versions" --fix "$here"
  printf 'release.sh: this tree says %s now. Look at it (git diff), commit it, tag it (git tag -a v%s), release it\n' \
    "$version" "$version"
}

# archive FOLDER PREFIX [OPTION...]: FOLDER as a tar.gz, whose bytes depend on names and contents alone.
archive() {
  tar --create --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w \
    --mtime="@$SOURCE_DATE_EPOCH" --transform "s,^\\.,$2," "${@:3}" -C "$1" . | gzip -n -9
}

# make_image FILE [OPTION...] -- ARCHITECTURE...: an image of one architecture, or an index of those of several.
# What is in each is told in the folder `bills`.
make_image() {
  local out=$1 arch contents options=() parts=()
  shift
  while [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  shift
  for arch in "$@"; do
    if [[ $build == no ]]; then SPOKE_BIN=$here/build/$("$here/scripts/preset_of" "$arch")/bin && export SPOKE_BIN; fi
    contents=$bills/$(basename "$out").$arch.json
    "$here/scripts/image.sh" --arch "$arch" "${options[@]}" -o "$out.$arch" --contents "$contents" >&2
    [[ $(jq -r .image "$contents") == *:"$version" ]] || fail "the programs for $arch are not of version $version"
    parts+=("$out.$arch")
  done
  if (($# == 1)); then
    mv "${parts[0]}" "$out"
    return
  fi
  python3 -B "$here/scripts/image/merge_images.py" --out "$out" "${parts[@]}" >&2
  rm "${parts[@]}"
}

# make_programs ARCHITECTURE: its packages, and the bills of its programs in the folder `bills`.
make_programs() {
  local arch=$1 options=() preset program
  preset=$("$here/scripts/preset_of" "$arch")
  if [[ $build == no ]]; then options=(--no-build); fi
  "$here/scripts/packages.sh" --arch "$arch" "${options[@]}" -o "$out" >&2
  for program in "${PROGRAMS[@]}"; do cp "$here/build/$preset/sbom/$program.cdx.json" "$bills/$program.$arch.json"; done
  "$here/scripts/sbom" "$here/build/$preset" spoke-azure-sim >"$bills/spoke-azure-sim.$arch.json"
}

# make_all VERSION SECTION ARCHITECTURE...: in the folder `out`, from the tree `here`.
make_all() {
  local version=$1 section=$2 bills=$out.bills arch sums
  shift 2
  notes "$here" "$section" >"$out/NOTES.md"
  mkdir "$bills"
  make_image "$out/spoke-$version.tar" -- "$@"
  make_image "$out/spoke-azure-sim-$version.tar" --simulator -- "$@"
  for arch in "$@"; do make_programs "$arch"; done
  "$here/scripts/release/spdx" "$version" "$SOURCE_DATE_EPOCH" "$bills"/*.json >"$out/spoke-$version.spdx.json"
  archive "$here/conf/helm/spoke" spoke >"$out/spoke-$version.tgz"
  # The chart is a file of its own, and what is for machines is in the packages.
  archive "$here/conf" "spoke-manifests-$version" --exclude ./helm --exclude ./debian --exclude ./systemd \
    >"$out/spoke-manifests-$version.tar.gz"
  # The mode of its files is not what somebody has told git about archives.
  git -C "$here" -c tar.umask=0022 archive --format=tar --prefix="spoke-$version/" HEAD | gzip -n -9 \
    >"$out/spoke-$version-source.tar.gz"
  sums=$(cd "$out" && find . -type f -printf '%P\n' | LC_ALL=C sort | xargs sha256sum)
  printf '%s\n' "$sums" >"$out/SHA256SUMS"
  find "$out" -type f -exec chmod 644 {} +
}

main() {
  local here out='' result snapshot=no build=yes version section arch archs=()
  here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
  archs=("$(dpkg --print-architecture)")
  while (($# > 0)); do
    case $1 in
      -h | --help) usage && exit 0 ;;
      --snapshot) snapshot=yes ;;
      --no-build) build=no ;;
      --prepare)
        if (($# != 2)); then usage >&2 && exit 2; fi
        prepare "$here" "$2"
        exit
        ;;
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
  if ((${#archs[@]} == 0)); then usage >&2 && exit 2; fi
  for arch in "${archs[@]}"; do "$here/scripts/preset_of" "$arch" >/dev/null || exit 2; done
  if (($(printf '%s\n' "${archs[@]}" | sort -u | wc -l) != ${#archs[@]})); then
    printf 'release.sh: --arch names an architecture twice\n' >&2 && exit 2
  fi
  version=$(version_of "$here")
  [[ -n $version ]] || fail 'CMakeLists.txt says no version'
  check_versions "$here"
  check_commit "$here" "$version" "$snapshot"
  result=${out:-$here/build/release-$version}
  if [[ -e $result && -n $(ls -A "$result" 2>/dev/null || echo file) ]]; then fail "$result is there already"; fi
  section=$version
  if [[ $snapshot == yes ]]; then section=Unreleased; fi
  SOURCE_DATE_EPOCH=$(git -C "$here" log -1 --format=%ct)
  export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC

  # It appears under its name once all of it is there.
  mkdir -p "$(dirname "$result")"
  out=$(mktemp -d "$result.making.XXXXXX")
  # shellcheck disable=SC2064  # The folder of now.
  trap "rm -rf '$out' '$out.bills'" EXIT
  make_all "$version" "$section" "${archs[@]}"
  chmod 755 "$out"
  if [[ -d $result ]]; then rmdir "$result"; fi
  mv "$out" "$result"
  printf '%s\n' "$result"
  cat "$result/SHA256SUMS"
}

main "$@"
