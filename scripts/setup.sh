#!/usr/bin/env bash
# Installs what it takes to build, test and check Spoke on Debian 12. Does nothing, in well under a
# second, when all of it is there; so every other script calls it first.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: scripts/setup.sh [--list | --arm64 | --also PACKAGE...]

Installs the packages Spoke is built, tested and checked with (Debian 12, as root). No service is
started or enabled by it. Does nothing when all are installed.

  --list   print the packages, one a line, and install nothing
  --arm64  as well what makes programs for arm64 on amd64 and runs them in an emulator: Debian's cross
           compiler, and the libraries' arm64 packages. Adds the architecture arm64 to dpkg's
  --also   these packages as well: what only one benchmark needs, say
EOF
}

# The one list. gRPC's development package brings c-ares, re2, zlib and OpenSSL; they are named as
# well because its CMake files look for each of them.
packages=(
  # build
  g++ cmake ninja-build ccache mold pkg-config git ca-certificates
  protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libgrpc++-dev libabsl-dev
  libc-ares-dev libre2-dev zlib1g-dev libssl-dev libcurl4-openssl-dev libevent-dev
  libgtest-dev libgmock-dev libsqlite3-dev libyaml-cpp-dev libspdlog-dev libfmt-dev
  nlohmann-json3-dev rapidjson-dev musl-tools libcli11-dev libmnl-dev libnftnl-dev libbpf-dev clang-14
  libexpat1-dev libarchive-dev prometheus-cpp-dev
  # tests: a simulator that speaks HTTP, a real container runtime, namespaces, certificates, a model checker
  containerd runc podman containernetworking-plugins busybox-static iptables nftables
  golang-go dpkg-dev golang-github-masterminds-sprig-dev golang-gopkg-yaml.v3-dev
  prometheus libcpp-httplib-dev etcd-server etcd-client iproute2 iperf3 iputils-ping tcpdump openssl procps util-linux python3 jq sqlite3 spin
  # checks and fuzzing; clang 14 beside GCC 12 sets the floor of the language we use
  libclang-rt-14-dev clang-tidy-14 clang-format-14 shellcheck
)

# What makes programs for arm64 here. Of yaml-cpp, prometheus-cpp and libevent the libraries alone: their
# development packages of two architectures exclude each other (cmake/arm64). The last line is what iptables-legacy is
# started with (scripts/image/arm64_iptables.sh).
arm64_packages=(
  g++-12-aarch64-linux-gnu qemu-user musl-dev:arm64 libc6-dev:arm64
  libprotobuf-dev:arm64 libgrpc++-dev:arm64 libabsl-dev:arm64 libc-ares-dev:arm64 libre2-dev:arm64
  zlib1g-dev:arm64 libssl-dev:arm64 libcurl4-openssl-dev:arm64 libgtest-dev:arm64 libgmock-dev:arm64
  libsqlite3-dev:arm64 libyaml-cpp0.7:arm64 libspdlog-dev:arm64 libfmt-dev:arm64 libmnl-dev:arm64
  libnftnl-dev:arm64 libbpf-dev:arm64 libexpat1-dev:arm64 libarchive-dev:arm64
  libprometheus-cpp-core1.0:arm64 libevent-core-2.1-7:arm64 libevent-extra-2.1-7:arm64 libcpp-httplib-dev:arm64
  libxtables12:arm64 libip4tc2:arm64 libip6tc2:arm64 libnetfilter-conntrack3:arm64
)

readonly policy=/usr/sbin/policy-rc.d
policy_is_ours=no

first_try_log=

# What else apt is told of removals.
removals=()

# Debian's packages enable what they bring, for the next boot, whatever policy-rc.d says.
readonly enabled=/etc/systemd/system/multi-user.target.wants
enabled_before=

clean_up() {
  local link
  for link in "$enabled"/*.service; do
    if [[ -L $link && $'\n'$enabled_before$'\n' != *$'\n'"$link"$'\n'* ]]; then rm -f "$link"; fi
  done
  if [[ $policy_is_ours == yes ]]; then rm -f "$policy"; fi
  if [[ -n $first_try_log ]]; then rm -f "$first_try_log"; fi
}

# Debian starts a service as soon as its package is unpacked, unless this file says no (101).
# containerd is installed for tests that run their own copy of it. A policy that somebody else has
# put there is theirs: it stays and decides.
forbid_service_starts() {
  if [[ -e $policy || -L $policy ]]; then return; fi
  policy_is_ours=yes
  # noclobber: another setup.sh may be doing the same at this moment.
  if ! (set -o noclobber && printf '#!/bin/sh\nexit 101\n' >"$policy") 2>/dev/null; then
    policy_is_ours=no
    return
  fi
  chmod 0755 "$policy"
}

# dpkg-query fails when it does not know one of the names; what it prints about the others counts.
find_missing() {
  local installed package name of own
  # shellcheck disable=SC2016  # The ${} are dpkg-query's.
  local format='${Package}:${Architecture} ${db:Status-Status}\n'
  installed=$(dpkg-query -W -f "$format" "${packages[@]}" 2>/dev/null || true)
  own=$(dpkg --print-architecture)
  for package in "${packages[@]}"; do
    name=${package%%:*}
    of=$own
    if [[ $package == *:* ]]; then of=${package##*:}; fi
    if ! grep -qxF -e "$name:$of installed" -e "$name:all installed" <<<"$installed"; then
      printf '%s\n' "$package"
    fi
  done
}

install() {
  apt-get -qq -y -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 --no-install-recommends \
    "${removals[@]}" install "$@" </dev/null
}

update() {
  apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 update </dev/null
}

# add_arm64 [--arm64]: apt looks for the architecture's packages from now on. Where one of them excludes one
# of the machine's own, that is an error: else apt would remove the latter.
add_arm64() {
  if [[ ${1:-} != --arm64 ]]; then return; fi
  removals=(--no-remove)
  if [[ $(dpkg --print-foreign-architectures) != *arm64* ]]; then dpkg --add-architecture arm64; fi
}

# fetch_arm64 [--arm64]: what comes out of a package, and is needed without a network later.
fetch_arm64() {
  if [[ ${1:-} == --arm64 ]]; then "$(dirname "${BASH_SOURCE[0]}")/image/arm64_iptables.sh"; fi
}

main() {
  case ${1:-} in
    '') ;;
    --list) printf '%s\n' "${packages[@]}" && exit 0 ;;
    --also) packages+=("${@:2}") ;;
    --arm64) packages+=("${arm64_packages[@]}") ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac

  # This is no package, but comes out of one, so that tests need no network.
  "$(dirname "${BASH_SOURCE[0]}")/promtool.sh" --fetch
  local missing=()
  mapfile -t missing < <(find_missing)
  if ((${#missing[@]} == 0)); then
    fetch_arm64 "$@"
    return
  fi
  if ((EUID != 0)); then
    printf 'setup.sh: not root, and these packages are missing; install them with:\n  %s\n' \
      "apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi

  printf 'setup.sh: installing %d packages: %s\n' "${#missing[@]}" "${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  enabled_before=$(printf '%s\n' "$enabled"/*.service)
  trap clean_up EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  trap 'exit 129' HUP
  forbid_service_starts
  add_arm64 "$@"

  # The lists of a fresh machine are empty, those of an old one name versions that are gone: either
  # way the first try fails, and one after an update is the one that counts.
  first_try_log=$(mktemp)
  if ! install "${missing[@]}" >"$first_try_log" 2>&1; then
    update || { sleep 5 && update; }
    install "${missing[@]}"
  fi
  fetch_arm64 "$@"
}

main "$@"
