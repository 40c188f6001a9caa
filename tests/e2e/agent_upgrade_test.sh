#!/usr/bin/env bash
# Agents are replaced while pods come and go: no packet is lost, and no ADD fails. Then the server is
# away, and pods come and go all the same.
# usage: agent_upgrade_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

readonly restarts=4

# churn FILE: one sandbox after the other on node1 until FILE is there; counts them in FILE.done.
churn() {
  local number=0 sandbox
  until [[ -e $1 ]]; do
    number=$((number + 1))
    sandbox=$(lab_cri node1 run "churn-$number" --namespace demo) || return 1
    lab_cri node1 stop "$sandbox" && lab_cri node1 remove "$sandbox" || return 1
    printf '%s\n' "$number" >"$1.done"
  done
}

step_upgrade() {
  lab_step "The agent of node1 is replaced $restarts times while pods come, go and ping"
  local pinging churning i
  lab_pod_run node1 web
  lab_pod_run node2 api
  lab_pod_exec node1 web ping -c 200 -i 0.05 -W 1 "$(lab_pod_address node2 api)" \
    >"$LAB_DIR/ping" 2>&1 &
  pinging=$!
  churn "$LAB_DIR/enough" &
  churning=$!
  for ((i = 0; i < restarts; i++)); do
    sleep 0.7  # So that it has pods in hand.
    lab_node_kill node1 spoke-netagent TERM
    grep -q 'event=agent_stopping' "$(lab_node_log node1 spoke-netagent)" ||
      { lab_error "the signal ended the agent, not the agent itself" && return 1; }
    lab_agent_start node1
  done
  : >"$LAB_DIR/enough"
  if ! wait "$churning"; then
    lab_error "a pod could not be made while the agent was replaced"
    return 1
  fi
  lab_ok "$(cat "$LAB_DIR/enough.done") pods came and went meanwhile, none was refused"
  if ! wait "$pinging" || ! grep -q ' 0% packet loss' "$LAB_DIR/ping"; then
    lab_error "pings were lost: $(tail -n 3 "$LAB_DIR/ping")"
    return 1
  fi
  lab_ok "of 200 pings meanwhile, none was lost"
  lab_pod_delete node1 web
  lab_pod_delete node2 api
}

step_no_server() {
  lab_step "The server is away; pods come and go from what is attached"
  local i pod
  lab_node_kill "$LAB_CONTROL" spoke-ipam-server KILL
  for ((i = 0; i < 3; i++)); do
    for pod in one two three; do lab_pod_run node1 "$pod"; done
    lab_pod_ping node1 one "$(lab_pod_address node1 three)"
    for pod in one two three; do lab_pod_delete node1 "$pod"; done
  done
  lab_node_kill node1 spoke-netagent KILL
  lab_agent_start node1
  lab_pod_run node1 four
  lab_pod_delete node1 four
  lab_ok "ten pods, an agent that was killed in between, and no server"
  lab_server_start
  lab_wait_none_in_use
  lab_ok "the server is back, and knows that none is assigned"
}

# shellcheck disable=SC2034  # Read by the lab.
LAB_NODE_ADDRESSES='{min: 64, batch: 16, spare: 0.5, max: 200}'
lab_for_test "${1:-}"
lab_cluster_up
lab_wait_attached node1 64
step_upgrade
step_no_server
step_no_traces
