#!/usr/bin/env bash
# Unpacks the source of a Debian package: for programs that tests want and no binary package has.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: scripts/debian_source.sh PACKAGE FOLDER

Unpacks PACKAGE's source below FOLDER, which must exist, and prints the directory it is in. apt
checks that it is what Debian signed. The system's own lists of sources stay as they are.
EOF
}

# Sources are looked up through lists of their own.
write_apt_config() {
  local folder=$1 sources
  mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial"
  sources=$folder/sources.list
  if [[ -e /etc/apt/sources.list.d/debian.sources ]]; then
    sources=$folder/debian.sources
    sed 's/^Types: .*/Types: deb-src/' /etc/apt/sources.list.d/debian.sources >"$sources"
  else
    sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >"$sources"
  fi
  cat >"$folder/apt.conf" <<CONFIG
Dir::Etc::sourcelist "$sources";
Dir::Etc::sourceparts "-";
Dir::State::lists "$folder/lists";
Dir::Cache "$folder/cache";
APT::Sandbox::User "root";
CONFIG
}

main() {
  case ${1:-} in
    -h | --help) usage && exit 0 ;;
  esac
  if (($# != 2)) || [[ ! -d $2 ]]; then usage >&2 && exit 2; fi
  local package=$1 folder
  folder=$(cd "$2" && pwd)
  mkdir "$folder/apt"
  write_apt_config "$folder/apt"
  (
    export APT_CONFIG=$folder/apt/apt.conf
    cd "$folder"
    apt-get -qq -o Acquire::Retries=3 update
    apt-get -qq source "$package"
  ) >&2
  find "$folder" -maxdepth 1 -type d -name "$package-*"
}

main "$@"
