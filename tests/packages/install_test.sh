#!/usr/bin/env bash
# scripts/install.sh: from a build, from packages and from the image; twice the same; and taken away again
# it leaves nothing. What needs the machine itself happens in a copy of it that goes with the test.
# usage: install_test.sh FOLDER-OF-RELEASE-PROGRAMS
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

step() { printf -- '--- %s\n' "$*"; }

install_sh() {
  "$here/scripts/install.sh" "$@" >"$work/output" 2>&1 || fail "install.sh $*: $(<"$work/output")"
}

expect_refusal() {
  local wanted=$1 wanted_code=$2 code=0
  shift 2
  "$@" >"$work/output" 2>&1 || code=$?
  ((code == wanted_code)) || fail "$* ended with $code: $(<"$work/output")"
  grep -qF -- "$wanted" "$work/output" || fail "$* printed $(<"$work/output"), not $wanted"
}

list() { (cd "$1" && find . -mindepth 1 -printf '%p %y %m %U:%G %T@ %l\n' | sort); }

from_source() {
  local source=$1 prefix=$2 root=$work/root.$3
  step "from $3, into $prefix"
  mkdir -p "$root"
  install_sh --role node --from "$source" --root "$root" --prefix "$prefix" --dry-run
  [[ -z $(ls -A "$root") ]] || fail '--dry-run has written'
  install_sh --role node --from "$source" --root "$root" --prefix "$prefix" --config "$here/conf/netagent.yaml"
  [[ -x $root$prefix/lib/cni/spoke && -f $root$prefix/share/spoke/10-spoke.conflist ]] || fail 'no plugin'
  cmp "$here/conf/netagent.yaml" "$root/etc/spoke/netagent.yaml"
  grep -rhqx "ExecStart=$prefix/bin/spoke-netagent --config /etc/spoke/netagent.yaml" "$root" --include='*.service' ||
    fail 'the unit names another program'
  list "$root" | grep -v installed- | grep -v "share/spoke d" >"$work/first"
  printf 'NODE_NAME=node7\n' >"$root/etc/default/spoke-netagent"
  install_sh --role node --from "$source" --root "$root" --prefix "$prefix" --config "$here/conf/netagent.yaml"
  [[ $(<"$root/etc/default/spoke-netagent") == NODE_NAME=node7 ]] || fail 'it forgot an administrator'
  list "$root" | grep -v installed- | grep -v "share/spoke d" >"$work/second"
  diff <(grep -v etc/default "$work/first") <(grep -v etc/default "$work/second") || fail 'the second time changes something'
  install_sh --role server --from "$source" --root "$root" --prefix "$prefix"
  install_sh --role node --root "$root" --prefix "$prefix" --uninstall
  [[ -x $root$prefix/bin/spokectl && ! -e $root$prefix/bin/spoke-netagent ]] || fail 'the roles are mixed up'
  install_sh --role server --root "$root" --prefix "$prefix" --uninstall
  [[ -z $(ls -A "$root") ]] || fail "left behind: $(list "$root")"
}

# A newer Spoke may have fewer files.
check_upgrade() {
  local root=$work/root.upgrade
  step 'an upgrade takes away what is no more'
  mkdir "$root"
  install_sh --role node --from "$work/deb" --root "$root"
  printf 'old\n' >"$root/usr/share/spoke/old"
  printf 'file /usr/share/spoke/old\n' >>"$root/usr/share/spoke/installed-node.list"
  install_sh --role node --from "$work/deb" --root "$root"
  [[ ! -e $root/usr/share/spoke/old ]] || fail 'an old file stays'
  install_sh --role node --root "$root" --uninstall
  [[ -z $(ls -A "$root") ]] || fail "left behind: $(list "$root")"
}

check_refusals() {
  step 'refusals'
  expect_refusal 'node or server' 2 "$here/scripts/install.sh"
  expect_refusal 'not gateway' 2 "$here/scripts/install.sh" --role gateway
  expect_refusal 'no option --force' 2 "$here/scripts/install.sh" --role node --force
  expect_refusal 'needs a value' 2 "$here/scripts/install.sh" --role
  mkdir "$work/empty"
  expect_refusal 'scripts/build.sh release' 1 "$here/scripts/install.sh" --role node --from "$work/empty" --root "$work/none"
  expect_refusal 'there is no such' 1 "$here/scripts/install.sh" --role node --from "$work/nowhere" --root "$work/none"
  expect_refusal 'no tar file' 1 "$here/scripts/install.sh" --role node --from "$here/LICENSE" --root "$work/none"
  expect_refusal 'cannot be read' 1 "$here/scripts/install.sh" --role node --config "$work/nowhere" --root "$work/none"
  [[ ! -e $work/none ]] || fail 'a refusal has written'
  # Whoever is not root may not be able to read this tree.
  cp "$here/scripts/install.sh" "$work/anybody.sh"
  chmod 0755 "$work" "$work/anybody.sh"
  expect_refusal 'sudo' 1 setpriv --reuid nobody --clear-groups bash "$work/anybody.sh" --role node
}

# Runs in a copy of the machine: what has changed of it is in `upper`.
in_copy() {
  work=$1
  mount --make-rprivate /
  mount -t tmpfs -o mode=0755 tmpfs "$work/copy"
  mkdir "$work"/copy/{upper,overlay,root}
  mount -t overlay overlay -o "lowerdir=/,upperdir=$work/copy/upper,workdir=$work/copy/overlay" "$work/copy/root"
  mount -t proc proc "$work/copy/root/proc"
  mount --bind /dev "$work/copy/root/dev"
  mount -t tmpfs -o mode=0755 tmpfs "$work/copy/root/run"
  # Another file system's contents are not in the copy.
  mkdir -p "$work/copy/root$here"
  mount --bind "$here" "$work/copy/root$here"
  mkdir -p "$work/copy/root/run/given/deb"
  cp "$work"/deb/*.deb "$work/copy/root/run/given/deb/"
  cat >"$work/copy/root/run/given/server.yaml" <<'EOT'
listen: {agents: 127.0.0.1:7443, metrics: off}
tls: {insecure: true}
store: {sqlite: /run/given/ipam.db}
cloud: {static: {}}
pools: [{name: default, cidr: 10.20.64.0/24}]
EOT
  local inside=(chroot "$work/copy/root" "$here/scripts/install.sh" --role server --from /run/given/deb --prefix /opt/spoke)
  getent passwd spoke-ipam-server && fail 'this machine has the user already'
  printf 'nonsense: yes\n' >"$work/copy/root/run/given/wrong.yaml"
  expect_refusal 'is refused' 1 "${inside[@]}" --config /run/given/wrong.yaml
  [[ ! -e $work/copy/root/opt/spoke ]] || fail 'a refused configuration has left files'
  "${inside[@]}" --config /run/given/server.yaml >"$work/output" 2>&1 || fail "install.sh: $? $(<"$work/output")"
  chroot "$work/copy/root" getent passwd spoke-ipam-server >/dev/null || fail 'no user'
  chroot "$work/copy/root" /opt/spoke/bin/spoke-ipam-server --version >/dev/null || fail 'it does not run'
  mkdir -p "$work/copy/root/var/lib/spoke"
  "${inside[@]}" --uninstall >"$work/output" 2>&1 || fail "install.sh: $? $(<"$work/output")"
  local file left=''
  # Files that are as they were may have been written; others are ours, or what useradd keeps for itself.
  while IFS= read -r file; do
    case $file in /etc/*- | /etc/.pwd.lock) continue ;; esac
    cmp -s "$work/copy/upper$file" "$file" || left+=" $file"
  done < <(cd "$work/copy/upper" && find . -not -type d -printf '/%P\n')
  for file in /opt/spoke /etc/spoke /var/lib/spoke /etc/systemd/system/spoke-ipam-server.service; do
    if [[ -e $work/copy/root$file ]]; then left+=" $file"; fi
  done
  [[ -z $left ]] || fail "left behind or changed:$left"
}

main() {
  work=$(mktemp -d)
  # shellcheck disable=SC2064  # The folder of now.
  trap "rm -rf '$work'" EXIT
  mkdir "$work/copy"
  "$here/scripts/packages.sh" -o "$work/deb" >/dev/null
  SPOKE_BIN=$1 "$here/scripts/image.sh" -o "$work/spoke.tar" >/dev/null
  from_source "$here/build/release" /usr build
  from_source "$work/deb" /usr/local packages
  from_source "$work/spoke.tar" /opt/spoke image
  check_upgrade
  check_refusals
  step 'on a machine: user, configuration, state'
  unshare --mount --net --pid --fork bash "${BASH_SOURCE[0]}" --in-copy "$work"
}

if [[ $1 == --in-copy ]]; then in_copy "$2"; else main "$@"; fi
