#!/usr/bin/env bash
# What an agent's checks of its node find is known to the server: operators see which node is blocked, why,
# and the remedy; and that it is over once it is mended. A node that does not reach the hub, and one that
# reaches another spoke, are among it.
# usage: node_checks_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

# The ids of what blocks NODE, by the server.
blocked_by() {
  lab_spokectl node show "$1" -o json |
    jq -er '[.findings[] | select(.blocking) | .check] | unique | join(",")'
}
is_blocked_by() { [[ $(blocked_by "$1") == "$2" ]]; }

step_firewall() {
  lab_step "A firewall on node1 lets nothing be forwarded"
  lab_node_exec node1 nft -f - <<<'table inet strict {
    chain forward { type filter hook forward priority 0; policy drop; }
  }'
}

step_blocked() {
  lab_step "The server hears of it once it has been so for half a minute"
  local finding
  lab_wait 90 "node1 to be blocked" "$(lab_node_log node1 spoke-netagent)" \
    is_blocked_by node1 forward-rules
  finding=$(lab_spokectl node show node1 -o json | jq -r '.findings[0] | "\(.object) \(.what). \(.remedy)"')
  lab_say "$finding"
  [[ $finding == *strict*'policy drop'* ]]
  [[ $(blocked_by node2) == '' ]]
  lab_show lab_spokectl node list
  grep -q '^node1 .* blocked ' < <(lab_spokectl node list)
  lab_show lab_spokectl explain node node1
  if lab_spokectl status >"$LAB_DIR/status"; then
    lab_error "status has no problems"
    return 1
  fi
  grep -q '1 node has what keeps pods from working, node1' "$LAB_DIR/status"
  lab_ok "the server says which node, what, and the remedy"
}

step_mended() {
  lab_step "The firewall's table is taken away"
  lab_node_exec node1 nft delete table inet strict
  lab_wait 60 "node1 to be unblocked" "$(lab_node_log node1 spoke-netagent)" is_blocked_by node1 ''
  lab_spokectl status
  lab_ok "it is over, and status has no problems"
}

step_own_setting() {
  lab_step "node1's agent owns kernel settings, node2's only tells of them"
  lab_wait 15 "rp_filter of node1 to be loose" "$(lab_node_log node1 spoke-netagent)" _is_rp_filter node1 2
  grep -E 'sysctl_set .*name=net.ipv4.conf.eth0.rp_filter before=1 after=2' "$(lab_node_log node1 spoke-netagent)"
  _is_rp_filter node2 1
  lab_ok "node1's is made as the remedy says, node2's is as it was"
}
_is_rp_filter() { [[ $(lab_node_exec "$1" sysctl -n net.ipv4.conf.eth0.rp_filter) == "$2" ]]; }

step_asked() {
  lab_step "An operator asks node1's agent itself, by way of the server"
  lab_spokectl logs node node1 | grep -E 'level=info event=agent_started .*node=node1'
  lab_spokectl logs node node1 --level warning -o json |
    jq -e '[.lines[] | select(contains("event=agent_started"))] == []' >/dev/null
  lab_spokectl node state node1 |
    jq -e '.node == "node1" and .not_serving == "" and (.pools.default.available > 0)
           and any(.findings[]; .check == "forward-rules")'
  lab_spokectl support-bundle "$LAB_DIR/bundle.tar.gz" --node node1 --node node9 2>"$LAB_DIR/said"
  grep 'errors.txt' "$LAB_DIR/said"
  lab_node_exec "$LAB_CONTROL" tar -xzOf "$LAB_DIR/bundle.tar.gz" spoke-support/node-node1-log.txt | grep agent_started
  local code
  lab_spokectl logs node node9 && code=0 || code=$?
  [[ $code == 4 ]]
  lab_ok "its log and its state are told, and are in a bundle"
}

step_strict() {
  lab_step "Both nodes are strict about where packets come from"
  lab_node_exec node1 sysctl -w net.ipv4.conf.eth0.rp_filter=1
  lab_node_exec node2 sysctl -w net.ipv4.conf.eth0.rp_filter=1
}

# Starts the agents, that of node1 with settings of its own, and that of node2 without rules of its own.
step_both_agents() {
  LAB_AGENT_EXTRA='node_settings: own' lab_agent_start node1
  LAB_AGENT_EXTRA='traffic: {enabled: false}' lab_agent_start node2
}

# neighbour_up NODE NAME NETWORK: a machine behind a link of NODE's has NETWORK.10, and refuses connections.
neighbour_up() {
  lab_node_exec "$1" ip netns add "$2"
  lab_node_exec "$1" ip link add "$2" type veth peer name eth0 netns "$2"
  lab_node_exec "$1" ip address add "$3.1/24" dev "$2"
  lab_node_exec "$1" ip link set "$2" up
  lab_node_exec "$1" nsenter --net="/run/netns/$2" ip address add "$3.10/24" dev eth0
  lab_node_exec "$1" nsenter --net="/run/netns/$2" ip link set eth0 up
}

# The checks of the hub and of peer spokes that warn on NODE, by the server, and what they are about.
warned_by() {
  lab_spokectl node show "$1" -o json |
    jq -r '[.findings[] | select(.check == "hub" or .check == "peer-spoke") | "\(.check) \(.object)"] | join(", ")'
}
is_warned_by() { [[ $(warned_by "$1") == "$2" ]]; }

step_neighbours() {
  lab_step "node1 has a way to the hub and to another spoke, node2 only to that, and rules on node1 alone"
  neighbour_up node1 hub 10.8.0
  neighbour_up node1 peer 10.99.0
  neighbour_up node2 peer 10.99.0
  lab_node_write "$LAB_CONTROL" /run/spoke/policy.yaml <<POLICY
apiVersion: spoke/v1
kind: ClusterNetwork
metadata: {name: main}
spec:
  hub: [10.8.0.0/16]
  peerSpoke: [10.99.0.0/16]
  probes: {hub: ["10.8.0.10:443"], peerSpoke: ["10.99.0.10:443"]}
POLICY
  lab_spokectl apply -f /run/spoke/policy.yaml
}

step_reach() {
  lab_step "The server hears that node2 does not reach the hub, and reaches the other spoke"
  lab_wait 180 "node2 to be warned of" "$(lab_node_log node2 spoke-netagent)" \
    is_warned_by node2 'hub hub, peer-spoke 10.99.0.10:443'
  lab_spokectl node show node2 -o json | jq -r '.findings[] | "\(.check): \(.object) \(.what). \(.remedy)"'
  is_warned_by node1 ''
  [[ $(blocked_by node2) == '' ]]
  # What node1's rules have dropped of it is no leak.
  lab_node_exec node1 nft list counters table inet spoke >"$LAB_DIR/counters"
  if grep -q 'packets [1-9]' < <(grep -A1 'drop/peer-spoke' "$LAB_DIR/counters"); then
    lab_error "what the agent of node1 tries counts as a leak: $(<"$LAB_DIR/counters")"
    return 1
  fi
  lab_ok "both are found on node2, and nothing on node1"
}

# What passes node1's rules uncounted: the hop limit is used up before the packet is forwarded.
step_flood() {
  lab_step "A pod on node1 sends packets whose hop limit ends on the node"
  lab_plugin_install node1
  lab_bare_pod_up node1 flood
  lab_node_spawn node1 flood nsenter --net=/run/netns/flood ping -q -t 1 -i 0.02 "${LAB_ADDRESSES[node2]}"
}

step_uncounted() {
  lab_step "The server hears that node1 counts next to nothing of what its pods' links carry"
  lab_wait 240 "node1 to be warned of" "$(lab_node_log node1 spoke-netagent)" _is_uncounted
  lab_spokectl node show node1 -o json | jq -r '.findings[] | select(.check == "counters") | "\(.object) \(.what). \(.remedy)"'
  lab_node_kill node1 flood
  lab_bare_pod_down node1 flood
  lab_ok "packets that are not counted are noticed"
}
_is_uncounted() { lab_spokectl node show node1 -o json | jq -e 'any(.findings[]; .check == "counters")' >/dev/null; }

step_cut() {
  lab_step "node1 loses its way to the hub, and node2 gets one"
  lab_node_exec node1 ip link set hub down
  neighbour_up node2 hub 10.8.0
  lab_wait 240 "node1 to be warned of" "$(lab_node_log node1 spoke-netagent)" is_warned_by node1 'hub hub'
  lab_wait 120 "node2 to reach the hub" "$(lab_node_log node2 spoke-netagent)" \
    is_warned_by node2 'peer-spoke 10.99.0.10:443'
  lab_ok "the hub is found where it was cut, and is over where it is reached"
}

lab_for_test "${1:-}"
step_network
step_certificates
step_firewall
step_strict
step_server
step_both_agents
step_own_setting
step_neighbours
step_blocked
step_asked
step_mended
step_flood
step_reach
step_cut
step_uncounted
