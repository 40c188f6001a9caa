#!/usr/bin/env bash
# cnitool, the CNI project's own caller: ADD, CHECK and DEL, alone and in a list with reference
# plugins.
# usage: runtime_cnitool_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

readonly pod_netns=/run/netns/by-hand

# cnitool COMMAND NETWORK
run_cnitool() {
  lab_node_exec node1 env CNI_PATH=/opt/cni/bin NETCONFPATH=/etc/cni/net.d CNI_IFNAME=eth0 \
    CNI_ARGS='IgnoreUnknown=1;K8S_POD_NAMESPACE=demo;K8S_POD_NAME=by-hand' \
    "$tool" "$1" "$2" "$pod_netns"
}

in_pod() { lab_node_exec node1 nsenter --net="$pod_netns" "$@"; }

step_by_hand() {
  lab_step "cnitool adds, checks and deletes a pod's interface"
  lab_node_exec node1 ip netns add by-hand
  lab_node_exec node1 nsenter --net="$pod_netns" ip link set lo up
  local result address
  result=$(run_cnitool add spoke)
  address=$(jq -r '.ips[0].address' <<<"$result")
  lab_say "$address"
  run_cnitool check spoke
  in_pod ping -c 1 -W 2 "${LAB_ADDRESSES[node2]}" >/dev/null
  lab_ok "it has $address, CHECK is content, node2 answers"
  in_pod ip route del default
  if run_cnitool check spoke >"$LAB_DIR/said" 2>&1; then
    lab_error "CHECK does not see that the default route is gone"
    return 1
  fi
  lab_ok "CHECK notices a deleted route: $(tail -n 1 "$LAB_DIR/said" | cut -c 1-100)"
  run_cnitool del spoke
  run_cnitool del spoke
  lab_wait 5 "the interface to go" "" not_in_pod eth0
  lab_ok "DEL twice"
}

not_in_pod() { ! in_pod ip link show "$1"; }

step_chain() {
  lab_step "In one list with portmap and tuning"
  lab_node_write node1 /etc/cni/net.d/20-chain.conflist <<CONFLIST
{
  "cniVersion": "1.0.0",
  "name": "chain",
  "plugins": [
    {"type": "spoke", "socket": "$LAB_CNI_SOCKET"},
    {"type": "portmap", "capabilities": {"portMappings": true}},
    {"type": "tuning", "sysctl": {"net.ipv4.conf.eth0.arp_filter": "1"}}
  ]
}
CONFLIST
  run_cnitool add chain >/dev/null
  run_cnitool check chain
  in_pod ping -c 1 -W 2 "${LAB_ADDRESSES[node2]}" >/dev/null
  run_cnitool del chain
  lab_wait 5 "the interface to go" "" not_in_pod eth0
  lab_node_exec node1 ip netns del by-hand
  lab_wait_none_in_use
  lab_ok "all three agree"
}

lab_for_test "${1:-}"
tool=$("$(dirname "${BASH_SOURCE[0]}")/../../scripts/cnitool.sh")
step_network && step_certificates && step_server && step_agents
lab_plugin_install node1
step_by_hand
step_chain
step_no_traces
