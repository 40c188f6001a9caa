#!/usr/bin/env bash
# Makes a Debian root with nothing in it but the base system, systemd and what packages depend on.
# usage: clean_root.sh CACHE-FOLDER PACKAGE.deb...
# Prints the root's folder. It is made once for a set of dependencies, from the mirror this machine is
# configured with; debootstrap is taken out of its package and installed nowhere.
set -euo pipefail

fail() {
  printf 'clean_root.sh: %s\n' "$*" >&2
  exit 1
}

# Prints what PACKAGEs depend on and are not: the first of alternatives, without versions.
dependencies() {
  local package
  for package in "$@"; do
    dpkg-deb -f "$package" Depends | tr ',' '\n' | sed -E 's/^ *([a-z0-9.+-]+).*/\1/'
  done | sort -u | comm -23 - <(for package in "$@"; do dpkg-deb -f "$package" Package; done | sort)
}

# mirror: "ADDRESS SUITE" of the Debian this machine is installed from.
mirror() {
  # shellcheck disable=SC2016  # The $() are apt's.
  apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' 'Origin: Debian' |
    grep -vE -- '-(updates|security|backports)$' | head -n 1
}

# fetch_debootstrap FOLDER: apt checks that it is what Debian signed.
fetch_debootstrap() {
  chmod 0755 "$1"
  (cd "$1" && apt-get -qq download debootstrap 2>/dev/null) ||
    { apt-get -qq -o DPkg::Lock::Timeout=300 update && (cd "$1" && apt-get -qq download debootstrap 2>/dev/null); } ||
    fail 'cannot download debootstrap: is there a network?'
  dpkg-deb -x "$1"/debootstrap_*.deb "$1"
}

# make_base FOLDER SITE SUITE: FOLDER/root. What debootstrap mounts is gone with its namespace.
make_base() {
  DEBOOTSTRAP_DIR=$1/usr/share/debootstrap unshare --mount --pid --fork --uts --ipc \
    bash "$1/usr/sbin/debootstrap" --variant=minbase --include=systemd,ca-certificates \
    "$3" "$1/root" "$2" >"$1/log" 2>&1 ||
    { tail -n 20 "$1/log" >&2 && fail "debootstrap from $2 failed"; }
}

# add_packages FOLDER NAME...: apt knows which package provides a name, which debootstrap does not.
add_packages() {
  local root=$1/root
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  # shellcheck disable=SC2016  # The $@ is the inner shell's.
  DEBIAN_FRONTEND=noninteractive unshare --mount --pid --fork --uts --ipc \
    chroot "$root" sh -c 'mount -t proc proc /proc && apt-get -qq -y --no-install-recommends install "$@" &&
      apt-get clean' sh "${@:2}" >"$1/log" 2>&1 </dev/null ||
    { tail -n 20 "$1/log" >&2 && fail 'the dependencies cannot be installed'; }
  rm -f "$root/etc/resolv.conf" "$root/etc/hostname"
}

main() {
  local cache=$1 site suite names root work
  shift
  mapfile -t names < <(dependencies "$@")
  read -r site suite < <(mirror) || fail 'apt knows of no Debian mirror: see /etc/apt/sources.list'
  root=$cache/$suite-$(printf '%s\n' "${names[@]}" | sha256sum | cut -c1-12)
  if [[ ! -d $root ]]; then
    printf 'clean_root.sh: makes %s, once\n' "$root" >&2
    mkdir -p "$cache"
    work=$(mktemp -d "$cache/.making.XXXXXX")
    # shellcheck disable=SC2064  # The folder of now.
    trap "rm -rf '$work'" EXIT
    fetch_debootstrap "$work"
    make_base "$work" "$site" "$suite"
    add_packages "$work" "${names[@]}"
    mv "$work/root" "$root"
  fi
  printf '%s\n' "$root"
}

main "$@"
