#!/usr/bin/env bash
# Nodes probe each other: one that loses packets, one whose path is too narrow, and a pair that is cut are
# told from the others; and operators let nodes probe each other at once.
# usage: reachability_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

# probed_by_all NODE: whether probes have gone between it and the three others.
probed_by_all() {
  [[ $(lab_spokectl reachability node "$1" -o json | jq '.with | length') == 3 ]]
}

step_all_well() {
  lab_step "All nodes reach each other"
  lab_wait 30 "a round of probes" "$(lab_node_log "$LAB_CONTROL" spoke-ipam-server)" \
    lab_suspects_are ''
  # On a busy machine the last of the agents comes after the first round.
  lab_wait 30 "node4 to be probed by all" "$(lab_node_log "$LAB_CONTROL" spoke-ipam-server)" probed_by_all node4
  lab_show lab_spokectl reachability show
  lab_show lab_spokectl reachability matrix
  lab_show lab_spokectl check "${LAB_NODES[@]}"
  lab_spokectl check "${LAB_NODES[@]}" -o json | jq -e '.small.probes == 12 and .full.probes == 6 and .well'
}

step_told() {
  lab_step "Operators are told"
  if lab_spokectl status >"$LAB_DIR/status"; then
    lab_error "status has no problems"
    return 1
  fi
  grep -q 'the network of 1 node loses packets: node3' "$LAB_DIR/status"
  grep -q reachability_suspect < <(lab_spokectl events --node node3)
  if lab_spokectl reachability node node3; then
    lab_error "the exit code says that node3 is well"
    return 1
  fi
  lab_spokectl reachability node node1 >/dev/null
}

step_cut_pair() {
  lab_step "What node1 sends to node2 is lost, and nothing else"
  lab_node_exec node2 nft -f - <<<"table netdev cut {
    chain in { type filter hook ingress device eth0 priority 0; ip saddr ${LAB_ADDRESSES[node1]} icmp type echo-request drop; }
  }"
  local said
  said=$(lab_spokectl check node1 node2 node3 -o json || [[ $? == 1 ]])
  jq -e '.pairs_lost == 1 and .pairs[0].a == "node1" and .pairs[0].b == "node2" and (.well | not)' <<<"$said"
  lab_node_exec node2 nft delete table netdev cut
  lab_ok "the pair is named"
}

step_narrow_path() {
  lab_step "Large packets to node4 are lost"
  lab_node_exec node4 nft -f - <<<'table netdev narrow {
    chain in { type filter hook ingress device eth0 priority 0; icmp type { echo-request, echo-reply } meta length > 1400 drop; }
  }'
  local said
  said=$(lab_spokectl check "${LAB_NODES[@]}" -o json || [[ $? == 1 ]])
  jq -e '.small.lost == 0 and .full.lost == 3 and .pairs_lost == 3' <<<"$said"
  lab_wait 60 "node4 to be suspected" "$(lab_node_log "$LAB_CONTROL" spoke-ipam-server)" \
    lab_suspects_are node4
  { lab_spokectl reachability show || [[ $? == 1 ]]; } | grep 'of full size'
  lab_node_exec node4 nft delete table netdev narrow
  lab_ok "by probes of full size alone"
}

step_wrong_words() {
  lab_step "Who asks for what is not there is told so"
  local code
  lab_spokectl check node1 node9 && code=0 || code=$?
  [[ $code == 4 ]]
  lab_spokectl check --job ml/nothing && code=0 || code=$?
  [[ $code == 4 ]]
  lab_spokectl reachability node node9 && code=0 || code=$?
  [[ $code == 4 ]]
}

lab_for_test "${1:-}"
lab_use_third_node
LAB_NODES+=(node4)
LAB_ADDRESSES+=([node4]=10.20.0.7)
LAB_MACHINES+=(node4)
lab_use_quick_reachability
step_network
step_certificates
step_server
step_agents
step_all_well
step_lossy_nic node3
step_told
step_mended_nic node3
step_cut_pair
step_narrow_path
step_wrong_words
