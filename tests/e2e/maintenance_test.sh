#!/usr/bin/env bash
# What Azure announces for a machine reaches operators and Kubernetes within seconds; nothing is agreed to unless an
# operator says so; and a machine that is about to be deleted gives back what no pod uses. Kubernetes' API server is made
# up.
# usage: maintenance_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

# announce TYPE SECONDS INSTANCE...: Azure announces it so long ahead; it is over three seconds after it began.
announce() {
  local type=$1 notice=$2
  shift 2
  lab_azure POST /sim/events "$(jq -nc --arg type "$type" --argjson notice "$notice" '{type: $type,
    resources: $ARGS.positional, notice_s: $notice, over_after_s: 3, description: "Host is being updated."}' --args "$@")" | jq -r .id
}

# _announced NODE KIND BEGUN: whether the server says so of the node; KIND empty: nothing is announced.
_announced() {
  lab_spokectl maintenance list -o json >"$LAB_DIR/announced"
  jq -e --arg node "$1" --arg kind "$2" --argjson begun "${3:-false}" '
    [.[] | select(.node == $node)] as $of
    | if $kind == "" then $of == [] else $of[0].kind == $kind and $of[0].started == $begun end' \
    "$LAB_DIR/announced"
}
await_announced() {
  lab_wait 20 "$1: ${2:-nothing} announced" "$(lab_node_log "$LAB_CONTROL" spoke-ipam-server)" _announced "$@"
}

# _attached NODE OPERATOR COUNT
_attached() {
  local count
  count=$(lab_spokectl ip list --node "$1" -o json | jq '[.[] | select(.state == ("available", "in_use"))] | length')
  printf '%s addresses\n' "$count"
  test "$count" "$2" "$3"
}

# _condition NODE STATUS REASON [WORDS]: whether its condition SpokeMaintenance is so, with WORDS in its message.
_condition() {
  lab_kubernetes_has nodes | jq -ce --arg node "$1" --arg status "$2" --arg reason "$3" --arg words "${4:-}" '
    .items[] | select(.metadata.name == $node).status.conditions | map(select(.type == "SpokeMaintenance"))
    | (., (length == 1 and .[0].status == $status and .[0].reason == $reason and (.[0].message | contains($words))))'
}
await_condition() {
  lab_wait 90 "$1: SpokeMaintenance $2, $3" "$(lab_node_log "$LAB_CONTROL" spoke-ipam-server)" _condition "$@"
}

step_freeze() {
  lab_step "Azure announces that node2's machine stands still for some seconds"
  announce Freeze 600 pool_1 >/dev/null
  await_announced node2 Freeze
  await_condition node2 True Freeze 'Host is being updated.'
  _no_condition node1
  lab_spokectl maintenance start node2
  await_announced node2 ''
  await_condition node2 False None
  lab_ok "Kubernetes has it of node2 alone, and that it is over"
}
_no_condition() {
  lab_kubernetes_has nodes | jq -e --arg node "$1" '
    .items[] | select(.metadata.name == $node).status.conditions | map(select(.type == "SpokeMaintenance")) == []' >/dev/null ||
    { lab_error "Kubernetes has maintenance of $1: $(lab_kubernetes_has nodes)" && return 1; }
}

_told_kubernetes() {
  lab_kubernetes_has events | jq -e --arg node "$1" --arg reason "$2" '
    [.items[] | select(.involvedObject.name == $node and .reason == $reason)] | length > 0'
}

step_reboot() {
  lab_step "Azure announces a reboot of both nodes' machines"
  announce Reboot 600 pool_0 pool_1 >/dev/null
  await_announced node1 Reboot
  await_announced node2 Reboot
  lab_show lab_spokectl maintenance list
  local node
  for node in "${LAB_NODES[@]}"; do
    await_condition "$node" True Reboot 'Host is being updated.'
    lab_wait 20 "$node: an event of Kubernetes" "" _told_kubernetes "$node" SpokeMaintenanceReboot
  done
  lab_spokectl node list | grep -E 'node1 .*active \(Reboot\)'
  lab_spokectl events --node node1 | grep maintenance_announced
  lab_ok "both nodes have it, in Kubernetes too, with each other among the machines that it is for"
}

step_start() {
  lab_step "An operator lets it begin: it begins for both, and is over"
  lab_show lab_spokectl maintenance start node1
  await_announced node2 Reboot true
  await_announced node1 ''
  await_announced node2 ''
  await_condition node1 False None
  await_condition node2 False None
  local code=0
  lab_spokectl maintenance start node1 && code=0 || code=$?
  [[ $code != 0 ]]
  lab_spokectl maintenance start node9 && code=0 || code=$?
  [[ $code == 4 ]]
  lab_spokectl audit-log | grep -E 'StartMaintenance'
  lab_ok "nothing is announced any more, and who let it begin is on record"
}

step_preempt() {
  lab_step "Azure is about to delete node2's machine, on which a pod runs"
  lab_pod_run node2 stays
  announce Preempt 12 pool_1 >/dev/null
  await_announced node2 Preempt
  lab_wait 20 "node2 to give back all but the pod's address" \
    "$(lab_node_log "$LAB_CONTROL" spoke-ipam-server)" _attached node2 -eq 1
  lab_pod_ping node2 stays "${LAB_ADDRESSES[node1]}"
  _attached node1 -ge 4
  lab_ok "the pod keeps its address and its network; node1 keeps all it has"
}

step_called_off() {
  lab_step "It begins without anybody's word, and the machine is there after all"
  await_announced node2 Preempt true
  await_announced node2 ''
  lab_wait 30 "node2 to have addresses again" "$(lab_node_log "$LAB_CONTROL" spoke-ipam-server)" \
    _attached node2 -ge 4
  lab_pod_run node2 another
  lab_in_parallel lab_pod_delete 'node2 stays' 'node2 another'
  lab_wait_none_in_use
}

lab_for_test "${1:-}"
lab_use_azure
# shellcheck disable=SC2034  # For lab_agent_start and lab_server_start.
LAB_AGENT_EXTRA='maintenance: {source: azure, poll: 500ms}'
# shellcheck disable=SC2034
LAB_NODE_ADDRESSES='{min: 4, batch: 4, spare: 0.5, max: 8}'
# shellcheck disable=SC2034
LAB_SERVER_COOLDOWN=2s
lab_use_kubernetes
step_network
step_certificates
step_cloud
step_api_server
step_server
step_agents
step_runtimes
step_freeze
step_reboot
step_start
step_preempt
step_called_off
