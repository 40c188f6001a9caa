#!/usr/bin/env bash
# The server on Azure over real HTTP: answers that are lost, cut short, garbled or lead elsewhere cost
# nothing but time, and no address is asked for twice.
# usage: azure_cloud_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

# fault FAULT METHOD PATH: what becomes of the next answer to such a call.
fault() {
  lab_azure POST /sim/transport \
    "$(jq -nc --arg fault "$1" --arg method "$2" --arg path "$3" \
      '{fault: $fault, method: $method, path: $path, count: 1}')" >/dev/null
}

# entries NODE: how many IP configurations its NIC has, the primary one left out.
entries() {
  awk -F '\t' -v mac="$(lab_mac "$1")" -v primary="${LAB_ADDRESSES[$1]}/32" \
    '$2 == mac && $1 != primary {n++} END {print n + 0}' "$(lab_attachments)"
}

_entries_are() { [[ $(entries "$1") == "$2" ]]; }

step_faults() {
  lab_step "Lose, cut short, garble and redirect what Azure answers"
  # PUTs that are carried out, and whose answers nobody hears.
  fault reset PUT virtualMachines/0
  fault truncate PUT virtualMachines/1
  fault malformed GET virtualMachines/0
  fault html GET virtualMachines/1
  fault redirect GET networkInterfaces
  fault reset GET networkInterfaces
  fault drop GET operations
}

step_exactly() {
  lab_step "Every node has what it should have, once"
  local node
  for node in "${LAB_NODES[@]}"; do
    lab_wait 20 "8 entries on the NIC of $node" "" _entries_are "$node" 8
  done
  local differences
  differences=$(lab_spokectl audit -o json | jq '.differences | length')
  if [[ $differences != 0 ]]; then
    lab_error "the audit finds $differences differences"
    return 1
  fi
  lab_ok "8 entries a NIC, and no difference between store, cloud and agents"
}

step_server_killed() {
  lab_step "Kill the server while Azure is at work on what it asked for, and start it again"
  lab_azure POST /sim/faults '{"latency_least_s": 4, "latency_most_s": 4}' >/dev/null
  # With five pods, fewer than four of a node's eight addresses are left.
  lab_in_parallel lab_pod_run 'node1 more-1' 'node1 more-2'
  lab_wait 10 "the server to ask Azure for more" "" _asked_for_more
  lab_node_kill "$LAB_CONTROL" spoke-ipam-server KILL
  lab_server_start
  lab_wait_attached node1 16
  lab_wait 20 "16 entries on the NIC of node1" "" _entries_are node1 16
  lab_ok "what was asked for arrived once"
}
_asked_for_more() {
  local writes
  writes=$(lab_azure GET /sim/counters | jq '.calls["instance.put"] | add')
  printf '%s writes\n' "$writes"
  ((writes > writes_before))
}

lab_for_test "$1"
lab_use_azure
step_network
step_certificates
step_cloud
step_faults
step_server
step_agents
step_exactly
writes_before=$(lab_azure GET /sim/counters | jq '.calls["instance.put"] | add')
step_runtimes
step_pods
step_pings
step_server_killed
