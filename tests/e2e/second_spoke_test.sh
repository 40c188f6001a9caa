#!/usr/bin/env bash
# Two spokes, a server each, of which each has the other's network for a peer spoke's: neither takes a pool there, by
# policy or by its configuration, nor its own network for the other's; and each says which blocks overlap.
# usage: second_spoke_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

readonly SECOND=second  # The machine of the second spoke's server.
readonly FIRST_NETWORK=10.20.0.0/16 SECOND_NETWORK=10.32.0.0/16
readonly FIRST_POOL=10.20.64.0/24 SECOND_POOL=10.32.64.0/24

# second_spawn POOL...: starts the second spoke's server with these pools, and does not wait.
second_spawn() {
  lab_node_write "$SECOND" /etc/spoke/ipam-server.yaml <<CONFIG || return 1
listen: {agents: "${LAB_ADDRESSES[$SECOND]}:$LAB_SERVER_PORT", admin: "unix:$LAB_ADMIN_SOCKET"}
tls: {ca: /etc/spoke/tls/ca.crt, certificate: /etc/spoke/tls/server.crt, key: /etc/spoke/tls/server.key}
store: {sqlite: /var/lib/spoke/ipam.db}
cloud: {static: {}}
pools: [$(printf '%s, ' "$@")]
CONFIG
  lab_node_spawn "$SECOND" spoke-ipam-server "$(lab_bin spoke-ipam-server)" --config /etc/spoke/ipam-server.yaml
}
second_start() {
  second_spawn "$@" || return 1
  lab_wait 30 "the second spoke's server to answer" "$(second_log)" second_ctl pool list
}
second_log() { lab_node_log "$SECOND" spoke-ipam-server; }

# second_ctl ARGUMENTS...: as lab_spokectl, which asks the first spoke's server.
second_ctl() { lab_node_exec "$SECOND" "$(lab_bin spokectl)" --server "unix:$LAB_ADMIN_SOCKET" "$@"; }

step_spokes() {
  lab_step "Two spokes: $FIRST_NETWORK with the pool $FIRST_POOL, and $SECOND_NETWORK with $SECOND_POOL"
  LAB_ADDRESSES+=(["$SECOND"]=${SECOND_NETWORK%.0/16}.4)
  # shellcheck disable=SC2034  # For lab_cluster_network, and the next for lab_server_start.
  LAB_MACHINES=("$LAB_CONTROL" "$SECOND")
  # shellcheck disable=SC2034
  LAB_POOL="{name: first, cidr: $FIRST_POOL}"
  lab_cluster_network
  lab_certificates
  _lab_install_tls "$SECOND" server
  lab_server_start
  second_start "{name: second, cidr: $SECOND_POOL}"
}

step_policies() {
  lab_step "Each takes the other's network for a peer spoke's, and then no pool there"
  lab_spokes_apart lab_spokectl first "$FIRST_POOL" "$SECOND_NETWORK" 10.32.65.0/24
  lab_spokes_apart second_ctl second "$SECOND_POOL" "$FIRST_NETWORK" 10.20.65.0/24
  lab_ok "neither has a pool in the other's network"
}

step_configuration() {
  lab_step "The second server does not start with a pool in the first one's network, and does without it"
  local strange=10.20.65.0/24
  lab_node_kill "$SECOND" spoke-ipam-server
  second_spawn "{name: second, cidr: $SECOND_POOL}" "{name: strange, cidr: $strange}"
  lab_wait 30 "the second server to say why it ends" "$(second_log)" grep -F "start_failed \
error=\"FAILED_PRECONDITION: ClusterNetwork \\\"peers\\\": spec.peerSpoke: $FIRST_NETWORK overlaps $strange, the cidr of \
Pool \\\"strange\\\" (in the server's configuration): change one of them\"" "$(second_log)"
  lab_wait 30 "the second server to end" "$(second_log)" second_ended
  second_start "{name: second, cidr: $SECOND_POOL}"
  lab_pools_are second_ctl "$SECOND_POOL"
  lab_ok "it names the policy, the pool and both blocks"
}
second_ended() { ! lab_node_running "$SECOND" spoke-ipam-server; }

lab_for_test "${1:-}"
step_spokes
step_policies
step_configuration
