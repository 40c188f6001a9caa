#!/usr/bin/env bash
# An address that another machine claims: the operator is told of both, the pod that has it goes on, and
# nobody gets it as long as the claim lasts.
# usage: conflict_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

# _claim NODE MAC ADDRESS: an ARP announcement reaches NODE's NIC that ADDRESS is at MAC.
_claim() {
  lab_fabric_exec python3 -c '
import socket, sys
device, mac, address = sys.argv[1], bytes.fromhex(sys.argv[2].replace(":", "")), socket.inet_aton(sys.argv[3])
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind((device, 0))
arp = bytes.fromhex("0001080006040001") + mac + address + bytes(6) + address
wire.send((b"\xff" * 6 + mac + b"\x08\x06" + arp).ljust(60, b"\0"))
' "$(lab_fabric_port "$1")" "$2" "$3"
}

_status_says() {
  # Its code is 1 when there are problems, of which this is one.
  lab_spokectl status >"$LAB_DIR/status" || [[ $? == 1 ]] || return 1
  grep -qF "$1" "$LAB_DIR/status"
}

step_quiet() {
  lab_step "Nobody else has what the nodes were given"
  lab_pod_run node1 web-1
  lab_pod_run node2 api-1
  if grep -h 'address_in_conflict\|proxy_on_network' "$(lab_node_log node1 spoke-netagent)" \
    "$(lab_node_log node2 spoke-netagent)"; then
    lab_error "an agent takes the fabric, or itself, for another machine"
    return 1
  fi
  lab_ok "the agents have asked, and found nobody"
}

step_claimed() {
  lab_step "node2's NIC claims the address of a pod on node1"
  local address
  address=$(lab_pod_address node1 web-1)
  _claim node1 "$(lab_mac node2)" "$address"
  lab_wait 15 "status to say so" "$(lab_node_log node1 spoke-netagent)" _status_says \
    "$address is in two places: node node1 holds it, and $(lab_mac node2) (the NIC of node node2) answers for it"
  lab_ok "status names both: $(grep -F "$address" "$LAB_DIR/status")"
  lab_pod_ping node2 api-1 "$address"
  lab_ok "the pod goes on"
  lab_pod_delete node1 web-1
  lab_spokectl ip show "$address" >"$LAB_DIR/shown"
  grep -qF 'in quarantine' "$LAB_DIR/shown"
  lab_ok "its address is in quarantine"
}

_is_quarantined() {
  lab_spokectl ip show "$1" -o json | jq -e '.state == "quarantined"' &&
    [[ $(lab_spokectl ip list --node node2 -o json | jq --arg it "$1" '[.[] | select(.address == $it)] | length') == 0 ]]
}

step_put_away() {
  lab_step "An operator puts the address of a pod on node2 into quarantine"
  local address name
  address=$(lab_pod_address node2 api-1)
  lab_show lab_spokectl ip quarantine "$address" --reason "a printer has it"
  lab_pod_ping node2 api-1 "${LAB_ADDRESSES[node1]}"
  lab_pod_delete node2 api-1
  # More than the node has addresses: whatever is free there is tried.
  for name in one two three four five six; do
    lab_pod_run node2 "$name"
    if [[ $(lab_pod_address node2 "$name") == "$address" ]]; then
      lab_error "pod $name got $address, which is in quarantine"
      return 1
    fi
    sleep 0.5
  done
  lab_wait 60 "$address to leave node2" "$(lab_node_log node2 spoke-netagent)" _is_quarantined "$address"
  lab_in_parallel lab_pod_delete 'node2 one' 'node2 two' 'node2 three' 'node2 four' 'node2 five' 'node2 six'
  lab_ok "the pod kept it as long as it ran, and nobody got it afterwards"
}

lab_for_test "${1:-}"
lab_cluster_up
step_quiet
step_claimed
step_put_away
