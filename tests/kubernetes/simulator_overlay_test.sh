#!/usr/bin/env bash
# scripts/simulator_overlay.sh fills in the overlay for a machine, in a network namespace that stands for it: the
# simulated Azure takes what it writes. Machines that it cannot be filled in for are refused, with nothing written.
# usage: simulator_overlay_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
simulator=$1/spoke-azure-sim
work=$(mktemp -d)
running=
trap 'if [[ -n $running ]]; then kill "$running" && wait "$running" || true; fi; rm -rf "$work"' EXIT

fail() {
  printf 'simulator_overlay_test.sh: %s\n' "$*" >&2
  exit 1
}

# on_machine SCRIPT ARGUMENT...: runs simulator_overlay.sh with the ARGUMENTs on a machine that SCRIPT sets up.
on_machine() {
  # shellcheck disable=SC2016  # Expanded by the inner shell.
  unshare --net bash -ec 'ip link set lo up
    ip link add ens3 address 02:00:00:00:00:07 type veth peer name far
    ip link set ens3 up && ip link set far up
    eval "$1"
    exec "${@:2}"' machine "$1" "$here/../../scripts/simulator_overlay.sh" -o "$work/overlay" "${@:2}"
}

# refused CODE WORDS SCRIPT ARGUMENT...
refused() {
  local said code=0
  said=$(on_machine "${@:3}" 2>&1) || code=$?
  [[ $code == "$1" && $said == *"$2"* && ! -e $work/overlay ]] || fail "of \"${*:3}\": ended with $code and said \"$said\""
}

readonly MACHINE='ip address add 10.20.5.7/20 dev ens3; ip route add default via 10.20.0.1
  ip neighbour add 10.20.5.9 lladdr 02:00:00:00:00:09 dev ens3 nud permanent'

refused 1 'there is no default route' 'ip address add 10.20.5.7/20 dev ens3'
refused 1 'there is no device ens4' "$MACHINE" --nic ens4
refused 1 'far has no IPv4 address' "$MACHINE" --nic far
refused 1 'has no subnet' 'ip address add 10.20.5.7/32 dev ens3' --nic ens3
refused 1 'gives the first four addresses' 'ip address add 10.20.0.2/20 dev ens3' --nic ens3
refused 1 'and its last' 'ip address add 10.20.0.255/24 dev ens3' --nic ens3
refused 2 '--taken: nobody is no IPv4 address' "$MACHINE" --taken nobody
refused 2 'usage:' "$MACHINE" --taken
refused 2 'usage:' "$MACHINE" --nonsense

[[ $(on_machine "$MACHINE" --taken 10.20.15.254 --taken 192.0.2.1) == "$work/overlay" ]] || fail 'it does not print the folder'
jq -e '.subnets[0].prefix == "10.20.0.0/20"
  and (.scale_sets[0].first[0] | .mac == "02:00:00:00:00:07" and .address == "10.20.5.7" and .node == $node)
  and ([.scale_sets[1].first[].address] == ["10.20.5.9", "10.20.15.254"]) and .scale_sets[1].instances == 2' \
  --arg node "$(uname -n)" "$work/overlay/spec.json" >/dev/null || fail "spec.json is $(<"$work/overlay/spec.json")"
grep -qx '    cidr: 10.20.0.0/20' "$work/overlay/ipam-server.yaml" || fail 'ipam-server.yaml has another pool'
while read -r each; do
  [[ -e $work/overlay/$each ]] || fail "kustomization.yaml names $each, which is not there"
done < <(sed -n -e 's/^ *- path: //p' -e 's/^ *- \([^ :]*\(\.yaml\|\.json\|\/azure\)\)$/\1/p' "$work/overlay/kustomization.yaml")

# The simulated Azure knows the instances that the file has.
"$simulator" --spec "$work/overlay/spec.json" --open >"$work/simulator" 2>&1 &
running=$!
for ((i = 0; i < 100; i++)); do
  if grep -qx ready "$work/simulator" || ! kill -0 "$running" 2>/dev/null; then break; fi
  sleep 0.1
done
grep -qx ready "$work/simulator" || fail "the simulated Azure does not take it: $(<"$work/simulator")"
