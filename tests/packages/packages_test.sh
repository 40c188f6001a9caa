#!/usr/bin/env bash
# The Debian packages in a clean root: installed, configured, upgraded, downgraded, removed, purged; and
# then the root is what it was. Nothing of this machine is touched: the root is an overlay, in namespaces
# of its own.
# usage: packages_test.sh FOLDER-OF-RELEASE-PROGRAMS
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly packages=(spoke-cni spoke-netagent spoke-ipam-server spokectl)
readonly daemons=(spoke-netagent spoke-ipam-server)
# Ten times what systemd-analyze may find of exposure at most. The agent is root in the kernel's
# network; the server needs only a network, and files of its own.
declare -rA exposure=([spoke-netagent]=35 [spoke-ipam-server]=16 [spoke-etcd]=17)
readonly examples=/usr/share/doc/spoke-ipam-server/examples
readonly wants=/etc/systemd/system/multi-user.target.wants

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

step() { printf -- '--- %s\n' "$*"; }

in_root() { chroot "$root" "$@"; }

# Everything a package could leave: files, users, what dpkg knows. Not what dpkg, systemctl
# and the tools for users write about their own work.
list_root() {
  (cd "$root" && find . -xdev \
    \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./var/lib/dpkg -o -path ./var/log/dpkg.log \
    -o -path ./var/cache/debconf -o -path ./packages -o -path ./etc/.pwd.lock -o -path ./run/adduser \
    -o -path ./run/systemd/systemd-units-load \
    -o -path './etc/passwd-' -o -path './etc/group-' -o -path './etc/shadow-' -o -path './etc/gshadow-' \) -prune \
    -o -type d -printf '%p %y %m %U:%G\n' -o -printf '%p %y %m %U:%G %s %l\n' | sort)
  in_root cat /etc/passwd /etc/group /etc/shadow /etc/gshadow
  # shellcheck disable=SC2016  # The ${} are dpkg-query's.
  in_root dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\n'
}

expect_untouched() {
  list_root >"$work/after"
  diff -u "$work/before" "$work/after" >"$work/difference" || {
    cat "$work/difference" >&2
    fail "$1: the root is not what it was (- before, + after)"
  }
}

# dpkg_run ARGUMENT...: quiet, unless it fails.
dpkg_run() {
  in_root dpkg "$@" >"$work/dpkg.log" 2>&1 || {
    cat "$work/dpkg.log" >&2
    fail "dpkg $*"
  }
}

# install_version FOLDER: all four at once, in /packages of the root.
install_version() {
  local files=()
  mapfile -t files < <(cd "$root" && find "packages/$1" -name '*.deb' -printf '/%p\n' | sort)
  ((${#files[@]} == ${#packages[@]})) || fail "$1 has ${#files[@]} packages"
  dpkg_run -i "${files[@]}"
}

expect_installed() {
  local package state
  for package in "${packages[@]}"; do
    # shellcheck disable=SC2016  # The ${} are dpkg-query's.
    state=$(in_root dpkg-query -W -f '${db:Status-Status} ${Version}' "$package")
    [[ $state == "installed $1" ]] || fail "$package is $state, not $1"
  done
  for package in "${daemons[@]}" spokectl; do
    [[ $(in_root "/usr/bin/$package" --version) == *"$program_version"* ]] || fail "$package does not run"
  done
  [[ $(in_root /usr/lib/cni/spoke </dev/null 2>&1) == *CNI* ]] || fail 'the plugin does not run'
  [[ $(in_root /usr/bin/kubectl-spoke --help) == 'Usage: kubectl spoke '* ]] || fail 'no kubectl spoke'
  [[ -s $root/usr/share/man/man1/spokectl.1 ]] || fail 'no manual page'
  in_root bash -n /usr/share/bash-completion/completions/spokectl || fail 'no completion'
  cmp "$here/conf/10-spoke.conflist" "$root/usr/share/spoke/10-spoke.conflist"
  in_root getent passwd spoke-ipam-server >/dev/null || fail 'no user spoke-ipam-server'
}

# check_unit UNIT: systemd has nothing to say about it, and it is as closed as it should be.
check_unit() {
  local unit=$1 output
  output=$(in_root systemd-analyze verify --man=no "$unit.service" 2>&1) || fail "$unit: $output"
  [[ -z $output ]] || fail "$unit: $output"
  output=$(in_root systemd-analyze security --offline=true --no-pager \
    --threshold="${exposure[$unit]}" "/usr/lib/systemd/system/$unit.service" 2>&1) || fail "$unit: $output"
  printf '%s\n' "${output##*$'\n'}"
}

# A member of etcd waits for its files, and for an administrator who enables it.
check_member() {
  printf '#!/bin/sh\n' >"$root/usr/bin/etcd"
  chmod 0755 "$root/usr/bin/etcd"
  check_unit spoke-etcd
  rm "$root/usr/bin/etcd"
  [[ ! -e $root$wants/spoke-etcd.service ]] || fail 'a member of etcd is enabled that nobody has asked for'
  grep -q '^ConditionPathExists=/etc/spoke/etcd/etcd.yaml' "$root/usr/lib/systemd/system/spoke-etcd.service" ||
    fail 'spoke-etcd would start before it is configured'
  cmp "$here/conf/ipam-server-etcd.yaml" "$root$examples/ipam-server-etcd.yaml" || fail 'no example for several servers'
  [[ $(in_root bash "$examples/etcd_files.sh" --help) == usage:* ]] || fail 'etcd_files.sh does not run'
}

check_units() {
  local unit
  for unit in "${daemons[@]}"; do
    [[ -L $root$wants/$unit.service ]] || fail "$unit is not enabled"
    check_unit "$unit"
    grep -q "^ConditionPathExists=/etc/spoke/${unit#spoke-}.yaml" "$root/usr/lib/systemd/system/$unit.service" ||
      fail "$unit would start before it is configured"
  done
  check_member
}

# Does what systemd would do before it starts the server, and the server's first start.
run_server() {
  local pid
  in_root install -d -o spoke-ipam-server -g spoke-ipam-server /var/lib/spoke /run/spoke-ipam-server
  # This is not in_root: there it would be a shell that takes the signal.
  chroot "$root" setpriv --reuid spoke-ipam-server --regid spoke-ipam-server --clear-groups --no-new-privs \
    --bounding-set=-all /usr/bin/spoke-ipam-server --config /etc/spoke/ipam-server.yaml >"$work/server.log" 2>&1 &
  pid=$!
  for ((i = 0; i < 100; ++i)); do
    if [[ -S $root/run/spoke-ipam-server/ipam-admin.sock ]]; then break; fi
    kill -0 "$pid" 2>/dev/null || fail "the server ended: $(<"$work/server.log")"
    sleep 0.1
  done
  in_root spokectl --server unix:/run/spoke-ipam-server/ipam-admin.sock status >"$work/status" 2>&1 || [[ $? == 1 ]] ||
    fail "spokectl status: $(<"$work/status")"
  kill "$pid"
  wait "$pid" || fail "the server ended with $?: $(<"$work/server.log")"
}

configure() {
  cat >"$root/etc/spoke/ipam-server.yaml" <<'EOT'
listen: {agents: 127.0.0.1:7443, admin: unix:/run/spoke-ipam-server/ipam-admin.sock, metrics: off}
tls: {insecure: true}
store: {sqlite: /var/lib/spoke/ipam.db}
cloud: {static: {}}
pools: [{name: default, cidr: 10.20.64.0/24}]
EOT
  cp "$root/usr/share/doc/spoke-netagent/examples/netagent.yaml" "$root/etc/spoke/netagent.yaml"
  printf 'NODE_NAME=node7\n' >"$root/etc/default/spoke-netagent"
  run_server
  # An administrator's choice, which no upgrade may undo.
  in_root systemctl --quiet disable spoke-ipam-server.service
  in_root systemctl --quiet enable spoke-etcd.service
  mkdir -p "$root/run/spoke/netagent"
  printf 'what pods have' >"$root/run/spoke/netagent/journal"
  state_of_server=$(in_root stat -c %U:%a:%s /var/lib/spoke/ipam.db)
  [[ $state_of_server == spoke-ipam-server:* ]] || fail "the store is $state_of_server"
}

expect_kept() {
  [[ $(<"$root/etc/default/spoke-netagent") == NODE_NAME=node7 ]] || fail "$1: /etc/default changed"
  [[ -e $root/etc/spoke/netagent.yaml && -e $root/etc/spoke/ipam-server.yaml ]] || fail "$1: no configuration"
  [[ $(in_root stat -c %U:%a:%s /var/lib/spoke/ipam.db) == "$state_of_server" ]] || fail "$1: another store"
}

expect_journal() {
  [[ $(<"$root/run/spoke/netagent/journal") == 'what pods have' ]] || fail "$1: another journal"
}

expect_enabled() {
  [[ -L $root$wants/spoke-netagent.service ]] || fail "$1: the agent is not enabled"
  [[ ! -e $root$wants/spoke-ipam-server.service ]] || fail "$1: the server is enabled again"
  [[ -L $root$wants/spoke-etcd.service ]] || fail "$1: the member of etcd is not enabled"
}

whole_life() {
  step "install $version_a"
  install_version a
  expect_installed "$version_a"
  check_units
  configure
  step "upgrade to $version_b"
  install_version b
  expect_installed "$version_b"
  expect_kept upgrade
  expect_journal upgrade
  expect_enabled upgrade
  step "downgrade to $version_a"
  install_version a
  expect_installed "$version_a"
  expect_kept downgrade
  expect_journal downgrade
  expect_enabled downgrade
  step 'remove: configuration and state stay'
  dpkg_run --remove "${packages[@]}"
  expect_kept removal
  # No pod used the node, so the agent took off it what was its own.
  [[ ! -e $root/run/spoke/netagent ]] || fail "removal: the agent's state is left"
  [[ ! -e $root/usr/bin/spoke-netagent && ! -e $root/usr/lib/cni/spoke ]] || fail 'programs are left'
  step 'install again, and purge'
  install_version b
  expect_installed "$version_b"
  expect_kept 'a new installation'
  dpkg_run --purge "${packages[@]}"
  expect_untouched purge
}

# Whatever order, and with nothing ever configured.
short_lives() {
  local package
  step 'install, remove and then purge, never configured'
  install_version b
  dpkg_run --remove "${packages[@]}"
  dpkg_run --purge "${daemons[@]}"
  expect_untouched 'removal and purge'
  for package in spoke-ipam-server spokectl; do
    step "$package alone"
    dpkg_run -i "/packages/a/$(cd "$root/packages/a" && echo "$package"_*.deb)"
    dpkg_run --purge "$package"
    expect_untouched "$package"
  done
}

inside() {
  work=$1 version_a=$2 version_b=$3 program_version=$4
  root=$work/root
  mount --make-rprivate /
  mount -t overlay overlay -o "lowerdir=$work/base,upperdir=$work/upper,workdir=$work/overlay" "$root"
  mount -t proc proc "$root/proc"
  mount -t tmpfs -o mode=0755 tmpfs "$root/packages"
  cp -r "$work/a" "$work/b" "$root/packages/"
  ip link set lo up
  list_root >"$work/before"
  whole_life
  short_lives
  printf 'before and after: %d lines, identical\n' "$(wc -l <"$work/before")"
}

main() {
  local work version
  version=$("$1/spoke-netagent" --version)
  mkdir -p "$here/build"
  work=$(mktemp -d "$here/build/packages-test.XXXXXX")
  # shellcheck disable=SC2064  # The folder of now.
  trap "rm -rf '$work'" EXIT
  mkdir "$work"/{a,b,upper,overlay,root}
  "$here/scripts/packages.sh" -o "$work/a" >/dev/null
  "$here/scripts/packages.sh" -o "$work/b" --version "$version+next" >/dev/null
  ln -s "$("$here/tests/packages/clean_root.sh" "$here/build/clean-root" "$work"/a/*.deb)" "$work/base"
  mkdir "$work/upper/packages"
  unshare --mount --net --pid --ipc --uts --fork \
    bash "${BASH_SOURCE[0]}" --inside "$work" "$version" "$version+next" "$version"
}

if [[ ${1:-} == --inside ]]; then
  shift
  inside "$@"
else
  main "$@"
fi
