#!/usr/bin/env bash
# Nodes work without the server, and the server forgets nothing when it is killed.
# usage: server_restart_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

knows_assigned() { [[ $(lab_addresses in_use | wc -l) -eq $1 ]]; }

step_without_server() {
  lab_step "Kill the server; nodes go on"
  lab_pod_run node1 web-1
  lab_pod_run node2 api-1
  lab_wait 10 "the server to know both" "" knows_assigned 2
  before=$(lab_addresses in_use)
  lab_node_kill "$LAB_CONTROL" spoke-ipam-server KILL
  lab_pod_ping node1 web-1 "$(lab_pod_address node2 api-1)"
  lab_ok "pods reach each other"
  lab_pod_run node1 web-2
  lab_pod_ping node1 web-2 "$(lab_pod_address node2 api-1)"
  lab_ok "a new pod on node1 gets an address and reaches node2's"
  lab_pod_run node2 api-2
  lab_pod_delete node2 api-2
  lab_ok "a pod on node2 comes and goes"
}

step_restart() {
  lab_step "Start the server again; it still knows"
  lab_server_start
  local known line
  known=$(lab_addresses in_use)
  while IFS= read -r line; do
    if ! grep -qxF "$line" <<<"$known"; then
      lab_error "the server has forgotten \"$line\"; it knows: $known"
      return 1
    fi
  done <<<"$before"
  lab_ok "what it knew before is there at once"
  lab_wait 40 "the agents to report what they did alone" \
    "$(lab_node_log "$LAB_CONTROL" spoke-ipam-server)" knows_assigned 3
  [[ $(lab_addresses in_use) == *"$(lab_pod_address node1 web-2) node1 web-2"* ]]
  lab_ok "it has learnt of the pod that came while it was away"
  lab_pod_run node2 api-3
  lab_pod_ping node2 api-3 "$(lab_pod_address node1 web-2)"
  lab_ok "a new pod works"
}

step_delete_all() {
  lab_step "Delete the pods"
  lab_in_parallel lab_pod_delete 'node1 web-1' 'node1 web-2' 'node2 api-1' 'node2 api-3'
  lab_wait_none_in_use
  step_no_traces
}

lab_for_test "${1:-}"
lab_cluster_up
step_without_server
step_restart
step_delete_all
