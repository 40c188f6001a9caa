# shellcheck shell=bash
# A node whose NIC loses packets, which the server finds by what nodes probe. Part of lab.sh.

# lab_use_quick_reachability [WINDOW]: rounds of a second, so that it takes seconds. A probe counts for WINDOW, 10s
# without it; of a node that loses one in ten, so few are lost in 10 s that it is not suspected all the time. Before the
# first step.
lab_use_quick_reachability() {
  # shellcheck disable=SC2034  # For lab_server_start.
  LAB_SERVER_EXTRA+=$'\n'"reachability: {interval: 1s, window: ${1:-10s}}"
}

# lab_suspects: the nodes that are suspected now, with commas between them.
lab_suspects() {
  local said
  # It exits with 1 when somebody is suspected.
  said=$(lab_spokectl reachability show -o json || [[ $? == 1 ]]) &&
    jq -er '[.suspects[].node] | sort | join(",")' <<<"$said"
}
lab_suspects_are() { [[ $(lab_suspects) == "$1" ]]; }

step_lossy_nic() {
  local from=$EPOCHSECONDS node=${1:-node3}
  lab_step "From now on the NIC of $node loses every tenth packet"
  lab_node_exec "$node" nft -f - <<<'table netdev lossy {
    chain in { type filter hook ingress device eth0 priority 0; numgen random mod 10 0 drop; }
  }' || return 1
  lab_wait 60 "$node to be suspected" "$(lab_node_log "$LAB_CONTROL" spoke-ipam-server)" \
    lab_suspects_are "$node" || return 1
  lab_ok "found after $((EPOCHSECONDS - from)) s, and no other node is suspected"
  # It exits with 1, since somebody is suspected.
  { lab_spokectl reachability show || [[ $? == 1 ]]; } | sed 's/^/        /'
}

step_mended_nic() {
  local from=$EPOCHSECONDS node=${1:-node3}
  lab_step "It is mended"
  lab_node_exec "$node" nft delete table netdev lossy || return 1
  lab_wait 60 "$node to be well" "$(lab_node_log "$LAB_CONTROL" spoke-ipam-server)" \
    lab_suspects_are '' || return 1
  lab_ok "no node is suspected $((EPOCHSECONDS - from)) s later"
}
