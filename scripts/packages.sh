#!/usr/bin/env bash
# Makes the Debian packages: spoke-cni, spoke-netagent, spoke-ipam-server and spokectl.
set -euo pipefail

usage() {
  cat <<'EOT'
usage: scripts/packages.sh [-o FOLDER] [--version VERSION] [--arch ARCHITECTURE] [--no-build]

  -o FOLDER          where the packages go; build/packages without it
  --version VERSION  the packages' version, where it is not that of the programs (1.2.3~rc1, say)
  --arch ARCHITECTURE
                     of programs for arm64 (on amd64: preset release-arm64), not for this machine
  --no-build         of the programs that build/PRESET has, whatever they were built from

Builds the release preset and prints the path of each package. What the programs need of the
machine is found by dpkg-shlibdeps, so the packages fit the Debian release they are made on. Each has
a bill of its materials beside its licence: /usr/share/doc/PACKAGE/sbom.cdx.json (scripts/sbom).
EOT
}

main() {
  local here out='' version=() folder preset arch build=yes
  arch=$(dpkg --print-architecture)
  while (($# > 0)); do
    case $1 in
      -h | --help) usage && exit 0 ;;
      --no-build) build=no && shift && continue ;;
      -o | --version | --arch) if (($# < 2)); then usage >&2 && exit 2; fi ;;&
      -o) out=$(realpath -m -- "$2") ;;
      --version)
        if [[ ! $2 =~ ^[0-9][0-9A-Za-z.+~]*$ ]]; then
          printf 'packages.sh: "%s" is no version of a Debian package\n' "$2" >&2
          exit 2
        fi
        version=(-D "CPACK_PACKAGE_VERSION=$2")
        ;;
      --arch) arch=$2 ;;
      *) usage >&2 && exit 2 ;;
    esac
    shift 2
  done
  here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
  out=${out:-$here/build/packages}
  preset=$("$here/scripts/preset_of" "$arch")

  if [[ $build == yes ]]; then
    "$here/scripts/build.sh" "$preset" spoke spoke-netagent spoke-ipam-server spokectl spokectl_share >&2
  fi
  local program
  mkdir -p "$here/build/$preset/sbom"
  for program in spoke spoke-netagent spoke-ipam-server spokectl; do
    "$here/scripts/sbom" "$here/build/$preset" "$program" >"$here/build/$preset/sbom/$program.cdx.json"
  done
  mkdir -p "$out"
  folder=$(mktemp -d "$out/.making.XXXXXX")
  # shellcheck disable=SC2064  # The folder of now.
  trap "rm -rf '$folder'" EXIT
  # By the variable dpkg-shlibdeps knows whose libraries it has to look among.
  if ! (cd "$folder" && umask 022 && DEB_HOST_ARCH=$arch cpack -G DEB --config "$here/build/$preset/CPackConfig.cmake" \
    -B "$folder" "${version[@]}") >"$folder/log" 2>&1; then
    cat "$folder/log" >&2
    exit 1
  fi
  local package
  for package in "$folder"/*.deb; do
    mv "$package" "$out/"
    printf '%s\n' "$out/${package##*/}"
  done
}

main "$@"
