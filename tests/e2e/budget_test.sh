#!/usr/bin/env bash
# A budget for one destination holds for all nodes together, in Shadow only counts, and leaves traffic
# inside the cluster alone; without the server it holds on.
# usage: budget_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

# shaped_classes NODE: how many classes the queues of NODE have.
shaped_classes() { lab_node_exec "$1" tc class show dev spoke-in | wc -l; }

_classes_are_back() { (($(shaped_classes node1) >= $1)); }

step_mended() {
  lab_step "Somebody deletes the queues of node1"
  local before
  before=$(shaped_classes node1)
  lab_node_exec node1 tc qdisc del dev spoke-in root
  lab_wait 30 "the classes to be back" "$(lab_node_log node1 spoke-netagent)" \
    _classes_are_back "$before"
  lab_ok "all $before classes are back"
}

step_server_lost() {
  lab_step "The server goes away: what was granted is held"
  lab_budget_downloads_start
  sleep 5
  lab_node_kill "$LAB_CONTROL" spoke-ipam-server KILL
  sleep 3
  if (($(shaped_classes node1) == 0 || $(shaped_classes node2) == 0)); then
    lab_error "the limits went with the server"
    return 1
  fi
  lab_server_start
  lab_wait 60 "the usage to be at the budget again" "$(lab_node_log node1 spoke-netagent)" \
    _lab_usage_is below $((LAB_BUDGET_MBIT * 21 / 20))
  lab_budget_downloads_stop
  lab_ok "the new server took over, and the budget holds"
}

step_gone() {
  lab_step "Without the budget nothing of it is left"
  lab_spokectl delete bandwidthbudget "$LAB_BUDGET"
  lab_wait 15 "the queues to go" "$(lab_node_log node1 spoke-netagent)" _no_queues
  lab_ok "no device, no class"
}

_no_queues() {
  ! lab_node_exec node1 ip link show spoke-in && ! lab_node_exec node2 ip link show spoke-in
}

lab_for_test "${1:-}"
lab_use_internet
lab_cluster_up
step_pods
step_dataset_host
step_budget
step_mended
step_server_lost
step_gone
step_delete
step_no_traces
