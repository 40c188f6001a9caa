#!/usr/bin/env bash
# A node of Azure's: it learns who it is, assigns no address before it is proven, needs neither of
# Azure's services for what it has, and says when pods' addresses are on the node itself.
# usage: azure_node_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

readonly services_port=8169
services=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/lab/azure_services.py
readonly services

node_log() { lab_node_log node1 spoke-netagent; }

# _logged PATTERN: whether the agent has said so.
_logged() { grep -Eq "$1" "$(node_log)"; }

# Prints what the server has attached to the node.
attached() {
  lab_spokectl ip list -o json | jq -r '.[] | select(.node == "node1") | .address'
}

services_start() {
  lab_node_spawn node1 azure-services "$services" "$services_port" "$(lab_mac node1)" \
    "${LAB_ADDRESSES[node1]}" "10.20.0.0/$LAB_SUBNET_LENGTH" "$LAB_DIR/listed"
  lab_wait 10 "the services to listen" "$(lab_node_log node1 azure-services)" _services_listen
}
_services_listen() {
  grep -q ":$services_port " < <(lab_node_exec node1 ss --no-header --listening --tcp --numeric)
}

# reflector_answers yes|no
reflector_answers() {
  local ignore=1
  if [[ $1 == yes ]]; then ignore=0; fi
  lab_node_exec control sysctl -qw "net.ipv4.icmp_echo_ignore_all=$ignore"
}

step_node() {
  lab_step "A node with Azure's services beside it; the host has programmed none of its addresses"
  step_network
  step_certificates
  local url=http://127.0.0.1:$services_port
  # shellcheck disable=SC2034  # For lab_agent_start, and the next for lab_server_start.
  LAB_AGENT_IDENTITY="azure: {imds: \"$url\", wireserver: \"$url\", reflector: ${LAB_ADDRESSES[control]}}"
  # shellcheck disable=SC2034
  LAB_NODE_ADDRESSES='{min: 4, batch: 4, spare: 0.5, max: 8}'
  # The reflector is silent too, for an answer would be proof enough.
  reflector_answers no
  lab_server_start
  services_start
  lab_agent_start node1
  lab_wait_attached node1 4
  lab_plugin_install node1
  lab_containerd_up node1
  lab_network_ready node1 15
  local id=/subscriptions/s/resourcegroups/rg1/providers/microsoft.compute
  id+=/virtualmachinescalesets/pool/virtualmachines/7
  _logged "agent_started .*vm=55b8499d-9b42-4f85-843f-24ff69f4a643 instance=$id "
  lab_ok "it knows itself as $id"
}

step_unproven() {
  lab_step "A pod is told what its address waits for"
  if lab_pod_run node1 early 2>"$LAB_DIR/said"; then
    lab_error "a pod got $(lab_pod_address node1 early), which the host has not programmed"
    return 1
  fi
  if ! grep -Eq '([0-9]+) of \1 addresses wait for proof: \1 not listed by the host' "$LAB_DIR/said"; then
    lab_error "the message does not say what is waited for: $(cat "$LAB_DIR/said")"
    return 1
  fi
  lab_ok "$(grep -Eo '[0-9]+ of [0-9]+ addresses wait for proof: [^;]*' "$LAB_DIR/said" | head -n 1)"
  lab_pods_collect node1
}

step_proven() {
  lab_step "The host programs them; a ping from each through the fabric proves it"
  local before
  before=$(lab_node_exec node1 ip address show dev eth0)
  attached >"$LAB_DIR/listed"
  reflector_answers yes
  lab_wait 70 "the addresses to be proven" "$(node_log)" _logged 'addresses_proven .*waiting=0'
  lab_pod_run node1 one
  lab_pod_ping node1 one "${LAB_ADDRESSES[control]}"
  if [[ $(lab_node_exec node1 ip address show dev eth0) != "$before" ]]; then
    lab_error "the proof has left something on the device"
    return 1
  fi
  lab_ok "$(lab_pod_address node1 one) works, and nothing was added to the device"
}

step_alone() {
  lab_step "Azure's services are gone, and somebody puts a pods' address on the node"
  lab_node_kill node1 azure-services
  local taken
  taken=$(attached | grep -vxF "$(lab_pod_address node1 one)" | head -n 1)
  lab_node_exec node1 ip address add "$taken/32" dev eth0
  lab_node_kill node1 spoke-netagent
  lab_agent_start node1
  lab_wait 10 "the agent to say it" "$(node_log)" _logged "address_on_nic .*address=$taken .*device=eth0"
  lab_pod_run node1 two
  lab_pod_run node1 three
  local pod
  for pod in two three; do
    if [[ $(lab_pod_address node1 "$pod") == "$taken" ]]; then
      lab_error "$pod got $taken, for which the node itself answers"
      return 1
    fi
  done
  lab_ok "the agent starts, and assigns what was proven before, but not $taken"
  lab_in_parallel lab_pod_delete 'node1 one' 'node1 two' 'node1 three'
  lab_wait_none_in_use
  lab_wait_no_pod_traces node1
}

lab_for_test "${1:-}"
step_node
step_unproven
step_proven
step_alone
