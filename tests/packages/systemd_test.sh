#!/usr/bin/env bash
# The packages under a systemd of their own: units wait for their configuration, then run with all their
# restrictions; a pod gets an address, the fast path comes on, pods outlive restarts, and dpkg starts,
# restarts and stops what it should. All in namespaces, and in a control group that goes with the test.
# usage: systemd_test.sh FOLDER-OF-RELEASE-PROGRAMS
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

step() { printf -- '--- %s\n' "$*"; }

# Becomes the machine: mounts its root, and systemd as process 1.
boot() {
  local root=$1/root
  mount --make-rprivate /
  mount -t overlay overlay -o "lowerdir=$1/base,upperdir=$1/upper,workdir=$1/overlay" "$root"
  mount -t proc proc "$root/proc"
  mount -t sysfs sysfs "$root/sys"
  mount -t tmpfs tmpfs "$root/run"
  mount -t tmpfs tmpfs "$root/tmp"
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
  mkdir "$root/srv/packages"
  cp "$1"/a/*.deb "$root/srv/packages/"
  ip link set lo up
  ip link add eth0 type veth peer name wire0
  ip address add 10.20.0.4/24 dev eth0
  ip link set eth0 up
  ip link set wire0 up
  ip route add default via 10.20.0.1
  # The usual target is not used: it would ask for logins on this machine's terminals.
  exec env -i container=spoke-test PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    chroot "$root" /lib/systemd/systemd --unit=basic.target --show-status=false
}

in_machine() {
  nsenter --target "$init" --mount --net --pid --ipc --uts --cgroup --root --wd "$@"
}

# wait_for WHAT COMMAND...: up to 20 s.
wait_for() {
  local what=$1 i
  shift
  for ((i = 0; i < 200; ++i)); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  in_machine journalctl --no-pager -n 40 -u spoke-netagent -u spoke-ipam-server >&2 || true
  fail "$what: not within 20 s"
}

put() { in_machine sh -c "cat >$1"; }

has_logged() { in_machine journalctl --no-pager -u spoke-netagent | grep "$1" >/dev/null; }

# cni COMMAND: for the one pod.
cni() {
  in_machine env CNI_COMMAND="$1" CNI_CONTAINERID=c1 CNI_IFNAME=eth0 CNI_NETNS=/run/netns/pod CNI_PATH=/usr/lib/cni \
    CNI_ARGS='K8S_POD_NAMESPACE=web;K8S_POD_NAME=frontend' /usr/lib/cni/spoke \
    <<<'{"cniVersion": "1.0.0", "name": "spoke", "type": "spoke"}'
}

check_waiting() {
  local unit
  step 'install: both wait for their configuration'
  in_machine sh -c 'dpkg -i /srv/packages/*.deb' >"$work/dpkg.log" 2>&1 || fail "dpkg: $(<"$work/dpkg.log")"
  for unit in spoke-netagent spoke-ipam-server; do
    in_machine systemctl --quiet is-enabled "$unit" || fail "$unit is not enabled"
    [[ $(in_machine systemctl is-active "$unit") == inactive ]] || fail "$unit runs before it is configured"
  done
}

check_serving() {
  step 'configure and start'
  put /etc/spoke/ipam-server.yaml <<'EOT'
listen: {agents: 127.0.0.1:7443}
tls: {insecure: true}
store: {sqlite: /var/lib/spoke/ipam.db}
cloud: {static: {attachments_file: /run/spoke/attachments}}
pools: [{name: default, cidr: 10.20.64.0/24}]
EOT
  put /etc/spoke/netagent.yaml <<'EOT'
node_name: node1
vm_id: 8f2c1c5e-7d0b-4c39-9b43-2f3a6f6f2a10
nic: eth0
server: 127.0.0.1:7443
tls: {insecure: true}
cni: {}
EOT
  in_machine systemctl start spoke-ipam-server spoke-netagent
  wait_for 'a configuration for the runtime' in_machine test -e /etc/cni/net.d/10-spoke.conflist
  [[ $(in_machine stat -c %U /run/spoke /run/spoke/netagent /var/lib/spoke /run/spoke-ipam-server | paste -sd,) == \
    root,root,spoke-ipam-server,spoke-ipam-server ]] || fail 'folders are not whose they should be'
  in_machine spokectl status >"$work/status" || [[ $? == 1 ]] || fail "spokectl finds no server: $(<"$work/status")"
  in_machine spokectl apply -f /usr/share/doc/spoke-ipam-server/examples/policies/cluster-network.yaml >"$work/apply" ||
    fail "spokectl apply: $(<"$work/apply")"
  wait_for 'the fast path' has_logged 'event=fast_path state=on'
}

check_pod() {
  step 'a pod, which outlives its agent'
  in_machine sh -c 'mkdir -p /run/netns && : >/run/netns/pod && unshare --net=/run/netns/pod true'
  [[ $(cni ADD) == *'"10.20.64.'* ]] || fail 'ADD gives no address'
  in_machine systemctl kill --signal=KILL spoke-netagent
  wait_for 'the agent after kill -9' in_machine systemctl --quiet is-active spoke-netagent
  # The same version again is what an upgrade is to dpkg.
  local before
  before=$(in_machine systemctl show -P MainPID spoke-netagent)
  in_machine sh -c 'dpkg -i /srv/packages/*.deb' >"$work/dpkg.log" 2>&1 || fail "dpkg: $(<"$work/dpkg.log")"
  [[ $(in_machine systemctl show -P MainPID spoke-netagent) != "$before" ]] || fail 'an upgrade restarts no agent'
  in_machine systemctl stop spoke-netagent
  in_machine test -e /run/spoke/netagent/journal || fail 'the journal went with the agent'
  # The root has no ip: this machine's, in the other's network.
  nsenter --target "$init" --net ip -o link | grep ' spk' >/dev/null || fail 'the pod lost its link'
  in_machine systemctl start spoke-netagent
  wait_for 'DEL' cni DEL
}

check_removal() {
  step 'remove and purge'
  in_machine dpkg --purge spokectl spoke-netagent spoke-ipam-server spoke-cni >"$work/dpkg.log" 2>&1 ||
    fail "dpkg: $(<"$work/dpkg.log")"
  local left
  left=$(in_machine systemctl list-units --no-legend --plain 'spoke-*')
  [[ -z $left ]] || fail "units are left: $left"
  left=$(in_machine sh -c 'ls -l /proc/[0-9]*/exe 2>/dev/null' | grep -F /usr/bin/spoke || true)
  [[ -z $left ]] || fail "processes are left: $left"
  left=$(in_machine find /etc/cni /etc/spoke /run/spoke /run/spoke-ipam-server /var/lib/spoke 2>/dev/null || true)
  [[ -z $left ]] || fail "files are left: $left"
  left=$(in_machine ls /sys/class/net | grep -E '^(spk|spoke-)' || true)
  [[ -z $left ]] || fail "links are left: $left"
}

clean_up() {
  if [[ -n ${init:-} ]]; then kill -KILL "$init" 2>/dev/null || true; fi
  if [[ -n ${launcher:-} ]]; then wait "$launcher" 2>/dev/null || true; fi
  # Its last processes may still be on their way out.
  for ((i = 0; i < 50; ++i)); do
    find "$work/cgroups/$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
    if [[ ! -d $work/cgroups/$group ]]; then break; fi
    sleep 0.1
  done
  umount "$work/cgroups"
  rm -rf "$work"
}

# Within a mount namespace of its own.
inside() {
  work=$1
  group=spoke-packages-test.$$
  mount --make-rprivate /
  mount -t cgroup2 cgroup2 "$work/cgroups"
  mkdir "$work/cgroups/$group"
  trap clean_up EXIT
  # The shell is where its child will be, and leaves again.
  bash -c 'echo $$ >"$1/cgroup.procs" && exec unshare --mount --net --pid --ipc --uts --cgroup --fork bash "$2" --boot "$3"' \
    bash "$work/cgroups/$group" "${BASH_SOURCE[0]}" "$work" >"$work/console.log" 2>&1 &
  launcher=$!
  for ((i = 0; i < 100; ++i)); do
    init=$(tr -d " " <"/proc/$launcher/task/$launcher/children") || true
    if [[ -n $init && $(readlink "/proc/$init/exe") == */systemd ]]; then break; fi
    sleep 0.1
  done
  [[ -n $init ]] || fail "systemd did not start: $(<"$work/console.log")"
  wait_for 'systemd' in_machine systemctl --quiet is-active basic.target
  check_waiting
  check_serving
  check_pod
  check_removal
}

main() {
  local work
  mkdir -p "$here/build"
  work=$(mktemp -d "$here/build/systemd-test.XXXXXX")
  # shellcheck disable=SC2064  # The folder of now.
  trap "rm -rf '$work'" EXIT
  mkdir "$work"/{a,upper,overlay,root,cgroups}
  "$here/scripts/packages.sh" -o "$work/a" >/dev/null
  ln -s "$("$here/tests/packages/clean_root.sh" "$here/build/clean-root" "$work"/a/*.deb)" "$work/base"
  unshare --mount bash "${BASH_SOURCE[0]}" --inside "$work"
}

case ${1:-} in
  --inside) inside "$2" ;;
  --boot) boot "$2" ;;
  *) main ;;
esac
