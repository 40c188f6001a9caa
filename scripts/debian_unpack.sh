#!/usr/bin/env bash
# Unpacks a Debian package: for what tests and the image want and cannot be installed beside what is there.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: scripts/debian_unpack.sh PACKAGE[:ARCHITECTURE] FOLDER

Unpacks PACKAGE, in the version of this Debian, into FOLDER, which appears once all of it is there, with the
package's control files in FOLDER/DEBIAN. apt checks that it is what Debian signed. Installs nothing.
EOF
}

# The lists of a fresh machine are empty, those of an old one name versions that are gone: then they are fetched.
download() {
  if apt-get -qq -o APT::Sandbox::User=root download "$1" 2>/dev/null; then return; fi
  apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 update >&2
  apt-get -qq -o Acquire::Retries=3 -o APT::Sandbox::User=root download "$1" >&2
}

main() {
  case ${1:-} in
    -h | --help) usage && exit 0 ;;
  esac
  if (($# != 2)) || [[ -e $2 ]]; then usage >&2 && exit 2; fi
  local folder
  mkdir -p "$(dirname "$2")"
  folder=$(mktemp -d "$2.XXXXXX")
  # shellcheck disable=SC2064  # The folder of now.
  trap "rm -rf '$folder'" EXIT
  (cd "$folder" && download "$1")
  mkdir "$folder/root"
  dpkg-deb --raw-extract "$folder"/*.deb "$folder/root"
  chmod 0755 "$folder/root"
  mv "$folder/root" "$2"
}

main "$@"
