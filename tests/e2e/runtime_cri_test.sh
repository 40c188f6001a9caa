#!/usr/bin/env bash
# containerd as kubelet drives it: many sandboxes at once, a runtime that is killed, an ADD that
# fails, and more DELs than ADDs.
# usage: runtime_cri_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

# SANDBOXES=200 for more: containerd and runc take a second for each on a slow machine.
readonly in_all=${SANDBOXES:-40} at_once=8

one_sandbox() {
  local number=$1 sandbox address
  sandbox=$(lab_cri node1 run "many-$number" --namespace demo) || return 1
  address=$(lab_cri node1 ip "$sandbox") || return 1
  printf '%s\n' "$address" >>"$LAB_DIR/many"
  lab_cri node1 stop "$sandbox" && lab_cri node1 remove "$sandbox"
}

worker() {
  local number
  for ((number = $1; number <= in_all; number += at_once)); do
    one_sandbox "$number" || return 1
  done
}

step_many() {
  lab_step "$in_all sandboxes come and go, $at_once at a time"
  local first lines=()
  for ((first = 1; first <= at_once; first++)); do lines+=("$first"); done
  lab_in_parallel worker "${lines[@]}"
  if [[ $(wc -l <"$LAB_DIR/many") -ne $in_all ]]; then
    lab_error "only $(wc -l <"$LAB_DIR/many") of $in_all had an address"
    return 1
  fi
  lab_ok "each had an address"
  lab_wait_none_in_use
  step_no_traces
}

step_stop_twice() {
  lab_step "StopPodSandbox twice, then RemovePodSandbox: three DELs for one ADD"
  local sandbox
  sandbox=$(lab_cri node1 run twice --namespace demo)
  lab_cri node1 stop "$sandbox"
  lab_cri node1 stop "$sandbox"
  lab_cri node1 remove "$sandbox"
  lab_wait_none_in_use
  lab_ok "all of them succeed"
}

step_runtime_killed() {
  lab_step "containerd is killed and comes back; its pods keep their network"
  lab_pod_run node1 survivor
  lab_pod_run node2 peer
  lab_node_kill node1 containerd KILL
  lab_containerd_up node1
  lab_network_ready node1 15
  lab_pod_ping node2 peer "$(lab_pod_address node1 survivor)"
  lab_pod_delete node1 survivor
  lab_pod_delete node2 peer
  lab_wait_none_in_use
  lab_ok "the pod answered throughout, and its DEL worked"
}

step_failed_add() {
  lab_step "An ADD that fails is followed by a DEL, and leaves nothing"
  lab_node_exec node1 sed -i 's/"type": "spoke"/"type": "spoke", "mtu": 5/' \
    /etc/cni/net.d/10-spoke.conflist
  lab_wait 10 "containerd to take the broken configuration" "" refuses_a_pod
  lab_ok "refused: $(grep -o 'mtu.*' "$LAB_DIR/refusal" | head -n 1 | cut -c 1-100)"
  lab_node_exec node1 sed -i 's/, "mtu": 5//' /etc/cni/net.d/10-spoke.conflist
  lab_wait 10 "containerd to take the mended one" "" takes_a_pod
  lab_pods_collect node1
  lab_wait_none_in_use
  step_no_traces
}

refuses_a_pod() {
  local sandbox
  if sandbox=$(lab_cri node1 run "refused-$RANDOM" --namespace demo 2>"$LAB_DIR/refusal"); then
    lab_cri node1 stop "$sandbox"
    lab_cri node1 remove "$sandbox"
    return 1
  fi
  grep -q 'mtu' "$LAB_DIR/refusal"
}

takes_a_pod() {
  local sandbox
  sandbox=$(lab_cri node1 run "taken-$RANDOM" --namespace demo) || return 1
  lab_cri node1 stop "$sandbox" && lab_cri node1 remove "$sandbox"
}

# shellcheck disable=SC2034  # Read by the lab.
LAB_NODE_ADDRESSES='{min: 96, batch: 32, spare: 0.5, max: 200}'
lab_for_test "${1:-}"
lab_cluster_up
lab_wait_attached node1 96
step_many
step_stop_twice
step_runtime_killed
step_failed_add
