#!/usr/bin/env bash
# Programs of two versions against each other: server, agents and plugins are replaced one at a time,
# forth and back, while pods ping, come and go. No packet is lost, no pod is refused, and what one
# version has written the other reads.
# usage: versions_test.sh DIRECTORY_OF_OLD_PROGRAMS DIRECTORY_OF_NEW_PROGRAMS
set -euo pipefail
# shellcheck source=../e2e/lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/../e2e/lab/lab.sh"

# use VERSION: what is started or installed from now on is of that version, "old" or "new".
use() { SPOKE_BIN=${PROGRAMS[$1]}; }

server_becomes() {
  use "$1"
  lab_node_kill "$LAB_CONTROL" spoke-ipam-server TERM || return 1
  lab_server_start || return 1
  lab_wait_attached node1 16 && lab_wait_attached node2 16 || return 1
}

# agent_becomes NODE VERSION
agent_becomes() {
  use "$2"
  lab_node_kill "$1" spoke-netagent TERM && lab_agent_start "$1" && lab_wait_attached "$1" 16
}

# pods_work NAME: on each node a pod is made and deleted again, and one that stays reaches the other.
pods_work() {
  local node
  for node in "${LAB_NODES[@]}"; do
    lab_pod_run "$node" "$1" || return 1
    lab_pod_ping "$node" "$1" "$(lab_pod_address node2 stays)" || return 1
    lab_pod_delete "$node" "$1" || return 1
  done
}

# step WORDS COMMAND...: changes one thing, and looks whether pods work.
step() {
  local name=pod-$((++steps))
  lab_step "$1"
  "${@:2}"
  pods_work "$name"
  lab_ok "pods come and go on both nodes"
}

main() {
  if (($# != 2)); then
    printf 'usage: versions_test.sh DIRECTORY_OF_OLD_PROGRAMS DIRECTORY_OF_NEW_PROGRAMS\n' >&2
    exit 2
  fi
  declare -gA PROGRAMS=([old]=$(cd "$1" && pwd) [new]=$(cd "$2" && pwd))
  # shellcheck disable=SC2034  # The lab reads it.
  LAB_TOOLS=${PROGRAMS[new]}
  steps=0
  # shellcheck disable=SC2034  # Read by the lab.
  LAB_NODE_ADDRESSES='{min: 16, batch: 16, spare: 0.5, max: 200}'
  lab_for_test "$1"
  use old
  lab_cluster_up
  lab_wait_attached node1 16
  lab_wait_attached node2 16
  lab_pod_run node1 stays
  lab_pod_run node2 stays
  lab_pod_exec node1 stays ping -i 0.1 -W 2 "$(lab_pod_address node2 stays)" >"$LAB_DIR/ping" 2>&1 &
  local pinging=$!

  step "The server is new" server_becomes new
  step "The agent of node1 is new, its plugin still old" agent_becomes node1 new
  step "The plugin of node1 is new" lab_plugin_install node1
  step "The plugin of node2 is new, its agent still old" lab_plugin_install node2
  step "The agent of node2 is new: all is" agent_becomes node2 new
  step "The agent of node1 is old again, with the journal that the new one wrote" agent_becomes node1 old
  step "The server is old again, with the store that the new one wrote" server_becomes old
  step "The agent of node2 is old again" agent_becomes node2 old

  lab_step "No ping was lost meanwhile"
  lab_pod_exec node1 stays killall -INT ping
  wait "$pinging" || true
  grep -q ' 0% packet loss' "$LAB_DIR/ping" || {
    lab_error "pings were lost: $(tail -n 3 "$LAB_DIR/ping")"
    exit 1
  }
  lab_ok "$(grep 'packets transmitted' "$LAB_DIR/ping")"
  lab_pod_delete node1 stays
  lab_pod_delete node2 stays
  lab_wait_none_in_use
  lab_wait_no_pod_traces node1
  lab_wait_no_pod_traces node2
  printf '%d passed, 0 failed\n' $((steps + 1))
}

main "$@"
