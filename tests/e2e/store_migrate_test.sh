#!/usr/bin/env bash
# The store moves from SQLite to etcd while pods run, and back; nothing is forgotten, and no server
# starts on the store that was left.
# usage: store_migrate_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

ETCD=http://127.0.0.1:2379
BACK=/var/lib/spoke/back.db

knows_assigned() { [[ $(lab_addresses in_use | wc -l) -eq $1 ]]; }

etcd_answers() {
  lab_node_exec "$LAB_CONTROL" env ETCDCTL_API=3 etcdctl --endpoints "$ETCD" endpoint health \
    &>/dev/null
}

# refuses_old: whether the server, with the configuration as it was, ends and says where the store is.
refuses_old() {
  local said
  if said=$(lab_node_exec "$LAB_CONTROL" timeout 20 "$(lab_bin spoke-ipam-server)" \
    --config /etc/spoke/ipam-server.yaml 2>&1); then
    return 1
  fi
  [[ $said == *"was moved to"* ]] || lab_error "the server said: $said"
  [[ $said == *"was moved to"* ]]
}

step_begin() {
  lab_step "Run pods, and stop the server"
  lab_pod_run node1 web-1
  lab_pod_run node2 api-1
  lab_wait 10 "the server to know both" "" knows_assigned 2
  before=$(lab_addresses in_use)
  lab_node_kill "$LAB_CONTROL" spoke-ipam-server
  lab_node_exec "$LAB_CONTROL" mkdir -p /var/lib/etcd
  lab_node_spawn "$LAB_CONTROL" etcd etcd --data-dir /var/lib/etcd/data \
    --listen-client-urls "$ETCD" --advertise-client-urls "$ETCD" \
    --listen-peer-urls http://127.0.0.1:2380
  lab_wait 30 "etcd to answer" "$(lab_node_log "$LAB_CONTROL" etcd)" etcd_answers
}

# step_move FROM TO STORE: moves, and starts the server on STORE.
step_move() {
  lab_step "Move from $1 to $2"
  lab_spokectl store migrate --from "$1" --to "$2"
  refuses_old
  lab_ok "no server starts on the old store"
  # shellcheck disable=SC2034  # The lab reads it.
  LAB_STORE_CONFIG=$3
  lab_server_start
  local known
  known=$(lab_addresses in_use)
  if [[ $known != "$before" ]]; then
    lab_error "assigned were: $before; known now: $known"
    return 1
  fi
  lab_ok "what was known is there"
  lab_pod_ping node1 web-1 "$(lab_pod_address node2 api-1)"
  lab_pod_run node1 "$4"
  lab_pod_ping node1 "$4" "$(lab_pod_address node2 api-1)"
  lab_ok "old pods go on, and a new one works"
  lab_wait 20 "the server to know the new pod" "" knows_assigned "$5"
  before=$(lab_addresses in_use)
}

lab_for_test "${1:-}"
lab_cluster_up
step_begin
step_move "sqlite:$LAB_STORE" etcd://127.0.0.1:2379 "{etcd: {directory: /var/lib/spoke, endpoints: [\"$ETCD\"]}}" web-2 3
lab_node_kill "$LAB_CONTROL" spoke-ipam-server
step_move etcd://127.0.0.1:2379 "sqlite:$BACK" "{sqlite: $BACK}" web-3 4
lab_in_parallel lab_pod_delete 'node1 web-1' 'node1 web-2' 'node1 web-3' 'node2 api-1'
lab_wait_none_in_use
