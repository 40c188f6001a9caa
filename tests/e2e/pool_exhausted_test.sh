#!/usr/bin/env bash
# A pool that is used up says so to whoever asks for one more, and serves again after the cooldown.
# usage: pool_exhausted_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

readonly cooldown_seconds=5

step_small_pool() {
  lab_step "A pool of two addresses, a node that would like more"
  step_network
  step_certificates
  # shellcheck disable=SC2034  # For lab_server_start and lab_agent_start.
  LAB_POOL='{name: tiny, cidr: 10.20.64.0/29, reserve_first: 4, reserve_last: 2}'
  # shellcheck disable=SC2034
  LAB_NODE_ADDRESSES='{min: 4, batch: 2, spare: 0.5, max: 8}'
  # shellcheck disable=SC2034
  LAB_COOLDOWN=${cooldown_seconds}s
  lab_server_start
  lab_agent_start node1
  lab_wait_attached node1 2
  lab_plugin_install node1
  lab_containerd_up node1
  lab_network_ready node1 15
}

step_exhaust() {
  lab_step "Two pods fit, the third is told why it does not"
  lab_pod_run node1 one
  lab_pod_run node1 two
  if lab_pod_run node1 three 2>"$LAB_DIR/said"; then
    lab_error "a third pod got $(lab_pod_address node1 three) from a pool of two"
    return 1
  fi
  lab_say "$(cat "$LAB_DIR/said")"
  if ! grep -q 'tiny' "$LAB_DIR/said" || ! grep -Eq '\b2\b' "$LAB_DIR/said"; then
    lab_error "the message does not name the pool and its counts: $(cat "$LAB_DIR/said")"
    return 1
  fi
  lab_ok "the message names the pool and its counts"
}

step_again() {
  lab_step "After a delete and the cooldown, the third pod fits"
  local freed deleted waited
  freed=$(lab_pod_address node1 one)
  lab_pod_delete node1 one
  deleted=$EPOCHREALTIME
  lab_wait 30 "the third pod to get an address" "$(lab_node_log node1 spoke-netagent)" \
    lab_pod_run node1 three
  waited=$(((${EPOCHREALTIME/[.,]/} - ${deleted/[.,]/}) / 1000))
  [[ $(lab_pod_address node1 three) == "$freed" ]]
  # The address was free a little before the delete had returned.
  if ((waited < cooldown_seconds * 1000 - 1000)); then
    lab_error "$freed was assigned again after $waited ms, with a cooldown of $cooldown_seconds s"
    return 1
  fi
  lab_ok "it has $freed, $waited ms after the first pod gave it back"
  lab_pod_ping node1 three "$(lab_pod_address node1 two)"
  lab_in_parallel lab_pod_delete 'node1 two' 'node1 three'
  lab_wait_none_in_use
  lab_wait_no_pod_traces node1
}

lab_for_test "${1:-}"
step_small_pool
step_exhaust
step_again
