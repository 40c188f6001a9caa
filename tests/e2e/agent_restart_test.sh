#!/usr/bin/env bash
# An agent that is killed takes nothing with it: pods go on, and what it assigned it still knows.
# usage: agent_restart_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

# ping_on NODE POD ADDRESS FILE: 100 pings in 10 s.
ping_on() { lab_pod_exec "$1" "$2" ping -c 100 -i 0.1 -W 1 "$3" >"$4" 2>&1; }

step_kill() {
  lab_step "Kill both agents while a pod pings another; start them again"
  local before after node pinging
  lab_pod_run node1 web-1
  lab_pod_run node2 api-1
  lab_wait 10 "the server to know both" "" knows_assigned 2
  before=$(lab_addresses in_use)
  ping_on node1 web-1 "$(lab_pod_address node2 api-1)" "$LAB_DIR/ping" &
  pinging=$!
  for node in "${LAB_NODES[@]}"; do lab_node_kill "$node" spoke-netagent KILL; done
  lab_pod_ping node2 api-1 "$(lab_pod_address node1 web-1)"
  lab_ok "with no agent, pods reach each other"
  for node in "${LAB_NODES[@]}"; do lab_agent_start "$node"; done
  for node in "${LAB_NODES[@]}"; do lab_wait_attached "$node" 3; done
  if ! wait "$pinging" || ! grep -q ' 0% packet loss' "$LAB_DIR/ping"; then
    lab_error "pings were lost: $(tail -n 3 "$LAB_DIR/ping")"
    return 1
  fi
  lab_ok "of 100 pings during all this, none was lost"
  after=$(lab_addresses in_use)
  if [[ $before != "$after" ]]; then
    lab_error "in_use before: $before; after: $after"
    return 1
  fi
  lab_ok "the same addresses are assigned to the same pods"
}

knows_assigned() { [[ $(lab_addresses in_use | wc -l) -eq $1 ]]; }

step_new_pod() {
  lab_step "A new pod gets an address of its own"
  lab_pod_run node1 web-2
  [[ $(lab_pod_address node1 web-2) != "$(lab_pod_address node1 web-1)" ]]
  lab_pod_ping node1 web-2 "$(lab_pod_address node2 api-1)"
  lab_ok "web-2 has $(lab_pod_address node1 web-2) and reaches api-1"
}

step_delete_all() {
  lab_step "Delete the pods, the old ones and the new one"
  lab_in_parallel lab_pod_delete 'node1 web-1' 'node1 web-2' 'node2 api-1'
  lab_wait_none_in_use
  step_no_traces
}

lab_for_test "${1:-}"
lab_cluster_up
step_kill
step_new_pod
step_delete_all
