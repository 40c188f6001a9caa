#!/usr/bin/env bash
# A server with a store that is older than what nodes were told, or with another one, gives away nothing
# that pods use: after a restored backup, a lost store, and as a second server.
# usage: recovery_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

# This makes a few pods more need more addresses from the server.
# shellcheck disable=SC2034  # For lab_server_start and lab_agent_start.
LAB_NODE_ADDRESSES='{min: 4, batch: 4, spare: 0.5, max: 250}'
# For so long nodes get nothing once a recovery is over.
# shellcheck disable=SC2034  # For lab_server_start.
LAB_SERVER_COOLDOWN=5s
# shellcheck disable=SC2034
LAB_AGENT_EXTRA='cni_wait: 3s'

_server_log() { lab_node_log "$LAB_CONTROL" spoke-ipam-server; }

_in_phase() {
  local recovery
  recovery=$(lab_spokectl recovery show -o json) || return 1
  printf '%s\n' "$recovery"
  jq -e --arg phase "$1" '.phase == $phase' >/dev/null <<<"$recovery"
}

_spoken() { jq -e --argjson n "$1" '(.nodes_spoken | tonumber) == $n' <<<"$(lab_spokectl recovery show -o json)"; }

_kill_server_and_node1() {
  lab_node_kill node1 spoke-netagent KILL
  lab_node_kill "$LAB_CONTROL" spoke-ipam-server KILL
}

# Every pod has an address of its own, and the fabric has each address on one NIC.
_none_doubled() {
  local node pod doubled
  doubled=$(for node in "${LAB_NODES[@]}"; do
    for pod in $(lab_pod_names "$node"); do lab_pod_address "$node" "$pod"; done
  done | sort | uniq -d)
  if [[ -n $doubled ]]; then
    lab_error "two pods have $doubled"
    return 1
  fi
  doubled=$(grep -v '^#' "$(lab_attachments)" | cut -f 1 | sort | uniq -d)
  if [[ -n $doubled ]]; then
    lab_error "the fabric has $doubled on two NICs"
    return 1
  fi
}

# _fill NODE PREFIX: pods until one gets no address, at most six. Those that failed are no pods.
_fill() {
  local node=$1 i
  for i in 1 2 3 4 5 6; do
    lab_pod_run "$node" "$2-$i" 2>"$LAB_DIR/said" || return 0
  done
}

_expect_held() {
  lab_wait 15 "the server to notice" "$(_server_log)" _in_phase recovering
  if ! grep -q 'spokectl recovery show' <<<"$(lab_spokectl status)"; then
    lab_error "status does not say so: $(lab_spokectl status)"
    return 1
  fi
  cmp "$LAB_DIR/attachments.before" "$(lab_attachments)"
  lab_ok "it recovers: status says so, and the fabric is left as it was"
}

_expect_node2_waits() {
  _fill node2 "$1"
  _none_doubled
  lab_pod_ping node2 api-1 "$(lab_pod_address node1 web-1)"
  lab_pod_ping node1 web-4 "$(lab_pod_address node2 api-1)"
  if [[ ! -s $LAB_DIR/said ]]; then
    lab_error "node2 got addresses without end"
    return 1
  fi
  lab_say "$(cat "$LAB_DIR/said")"
  if ! grep -q 'recovery' "$LAB_DIR/said"; then
    lab_error "the pod that got no address is not told why"
    return 1
  fi
  lab_ok "node2 uses what it has, gets nothing of node1's, and says why a pod waits"
}

_expect_over() {
  lab_agent_start node1
  lab_wait 30 "the recovery to end" "$(_server_log)" _in_phase open
  lab_wait 15 "node2 to get more" "$(lab_node_log node2 spoke-netagent)" lab_pod_run node2 "$1"
  _none_doubled
  lab_pod_ping node2 "$1" "$(lab_pod_address node1 web-4)"
  local pod address known
  known=$(lab_addresses in_use)
  for pod in $(lab_pod_names node1); do
    address=$(lab_pod_address node1 "$pod")
    if [[ $known != *"$address node1 $pod"* ]]; then
      lab_error "the server does not know that $pod on node1 has $address: $known"
      return 1
    fi
  done
  lab_ok "once node1 has spoken all goes on, and every pod keeps its address"
}

step_restore() {
  lab_step "Restore a backup from before node1 was given more addresses, while its agent is away"
  lab_pod_run node2 api-1
  lab_pod_run node1 web-1
  lab_spokectl backup /var/lib/spoke/backup.db
  lab_in_parallel lab_pod_run 'node1 web-2' 'node1 web-3'
  lab_wait 15 "node1 to get more" "$(lab_node_log node1 spoke-netagent)" lab_pod_run node1 web-4
  lab_wait_attached node1 5
  cp "$(lab_attachments)" "$LAB_DIR/attachments.before"
  _kill_server_and_node1
  lab_node_exec "$LAB_CONTROL" sh -c 'cd /var/lib/spoke && rm -f ipam.db-* && cp backup.db ipam.db'
  lab_server_start
  _expect_held
  _expect_node2_waits after-restore
  if lab_spokectl recovery confirm --silent-nodes 7 2>"$LAB_DIR/said"; then
    lab_error "a wrong number of silent nodes was confirmed"
    return 1
  fi
  grep -q '1 nodes have not spoken, not 7' "$LAB_DIR/said"
  _expect_over restored
}

step_lost() {
  lab_step "Lose the store"
  cp "$(lab_attachments)" "$LAB_DIR/attachments.before"
  _kill_server_and_node1
  lab_node_exec "$LAB_CONTROL" sh -c 'rm -f /var/lib/spoke/ipam.db*'
  lab_server_start
  _expect_held
  lab_wait 30 "node2 to speak" "$(_server_log)" _spoken 1
  _expect_node2_waits after-loss
  _expect_over found
}

step_second() {
  lab_step "Start a second server, on a store of its own, with the cluster's key"
  cp "$(lab_attachments)" "$LAB_DIR/attachments.before"
  _kill_server_and_node1
  lab_node_exec "$LAB_CONTROL" sh -c 'mkdir -p /var/lib/spoke/second && cp /var/lib/spoke/store.key /var/lib/spoke/second'
  LAB_STORE=/var/lib/spoke/second/ipam.db
  lab_server_start
  lab_wait 45 "node2 to speak" "$(_server_log)" _spoken 1
  _expect_held
  _expect_node2_waits at-second
  lab_spokectl recovery confirm --silent-nodes 1
  lab_ok "an operator who knows better goes on without node1"
}

step_stranger() {
  lab_step "Start a server with a key of its own"
  lab_node_kill "$LAB_CONTROL" spoke-ipam-server KILL
  # shellcheck disable=SC2034
  LAB_STORE=/var/lib/spoke/stranger/ipam.db
  lab_node_exec "$LAB_CONTROL" mkdir -p /var/lib/spoke/stranger
  lab_server_start
  _refused() { lab_spokectl recovery show -o json | jq -e '.unverified[0] | startswith("node2:")'; }
  lab_wait 45 "node2 to be refused" "$(_server_log)" _refused
  if lab_spokectl node list -o json | jq -e 'length > 0' >/dev/null; then
    lab_error "a node was let in whose token cannot be verified: $(lab_spokectl node list)"
    return 1
  fi
  lab_pod_ping node2 api-1 "$(lab_pod_address node2 restored)"
  lab_ok "it refuses node2, whose pods go on"
}

lab_for_test "${1:-}"
lab_cluster_up
step_restore
step_lost
step_second
step_stranger
