#!/usr/bin/env bash
# Without its agent a node refuses new pods at once and in clear words; when the agent returns, it is
# whole again.
# usage: agent_down_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

readonly fast_ms=5000  # Half of it is the runtime's, on a busy machine.

step_refused() {
  lab_step "With no agent, a pod is refused at once"
  lab_pod_run node1 old
  lab_node_kill node1 spoke-netagent KILL
  local began=$EPOCHREALTIME took
  if lab_pod_run node1 new 2>"$LAB_DIR/said"; then
    lab_error "a pod got a network from no agent"
    return 1
  fi
  took=$(((${EPOCHREALTIME/[.,]/} - ${began/[.,]/}) / 1000))
  lab_say "$(cat "$LAB_DIR/said")"
  if ((took > fast_ms)); then
    lab_error "it took $took ms"
    return 1
  fi
  if ! grep -q 'agent' "$LAB_DIR/said"; then
    lab_error "the message does not speak of the agent"
    return 1
  fi
  lab_ok "refused after $took ms, with a message that names the agent"
}

step_delete_meanwhile() {
  lab_step "A pod that is deleted without the agent is not forgotten"
  # Either the plugin takes note of it, or the runtime must be asked again, as kubelet does.
  if lab_pod_delete node1 old 2>"$LAB_DIR/said"; then
    lab_ok "it is gone at once"
  else
    lab_say "$(cat "$LAB_DIR/said")"
    lab_ok "it stays until it is asked for again"
  fi
}

step_return() {
  lab_step "The agent returns"
  lab_agent_start node1
  lab_pods_collect node1
  lab_pod_run node1 new
  lab_pod_run node2 peer
  lab_pod_ping node1 new "$(lab_pod_address node2 peer)"
  lab_ok "the pod that was refused works now"
  if grep -qx old < <(lab_pod_names node1); then lab_pod_delete node1 old; fi
  lab_in_parallel lab_pod_delete 'node1 new' 'node2 peer'
  lab_wait_none_in_use
  lab_ok "all addresses are back"
  step_no_traces
}

lab_for_test "${1:-}"
lab_cluster_up
step_refused
step_delete_meanwhile
step_return
