#!/usr/bin/env bash
# `spokectl connectivity test` against real agents: it passes where pods and servers are reached, and names the
# node, the target and the remedy where a pod is cut off, where two nodes do not reach each other, where
# something is reached that must not be, and where an agent is away.
# usage: connectivity_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

# tested CODE ARGUMENTS...: runs the test; it has to end with CODE. Its answer, as JSON, is in $LAB_DIR/tested.
tested() {
  local want=$1 code=0
  shift
  lab_spokectl connectivity test "$@" -o json >"$LAB_DIR/tested" || code=$?
  if [[ $code != "$want" ]]; then
    lab_error "connectivity test $* ended with $code instead of $want: $(<"$LAB_DIR/tested")"
    return 1
  fi
}

# said FROM TEST TARGET: "RESULT DETAIL" of that test.
said() {
  jq -er --arg from "$1" --arg test "$2" --arg target "$3" '.tests[] |
    select(.from == $from and .test == $test and .target == $target) |
    "\(if .passed then "PASS" else "FAIL" end) \(.detail)"' "$LAB_DIR/tested"
}

# expect RESULT FROM TEST TARGET [WORDS]: that test has this result, with WORDS in its detail.
expect() {
  local answer
  answer=$(said "$2" "$3" "$4") || answer='was not made'
  if [[ $answer != "$1 "*"${5:-}"* ]]; then
    lab_error "the test $3 from $2 to ${4:-nothing}: $answer, not $1 ${5:-}"
    cat "$LAB_DIR/tested" >&2
    return 1
  fi
}

step_two_pods() {
  lab_step "A pod on each node"
  lab_in_parallel lab_pod_run 'node1 web' 'node2 api'
  web=$(lab_pod_address node1 web)
  api=$(lab_pod_address node2 api)
  server=${LAB_ADDRESSES[$LAB_CONTROL]}:$LAB_SERVER_PORT
  lab_say "web $web on node1, api $api on node2"
}

step_all_passes() {
  lab_step "Nodes reach each other, both pods and the server, and not what nobody has"
  lab_show lab_spokectl connectivity test
  lab_show lab_spokectl connectivity test --to "$web" --to "$api" --internet "$server" --must-fail 203.0.113.9:443
  tested 0 --to "$web" --to "$api:9" --internet "$server" --must-fail 203.0.113.9:443
  jq -e '.passed and (.tests | length) == 10 and all(.tests[]; .remedy == "")' "$LAB_DIR/tested" >/dev/null
  local node
  for node in node1 node2; do
    expect PASS "$node" nodes '1 other' 'no probe lost'
    expect PASS "$node" to "$web" 'reached in '
    # Nothing listens there, and the pod says so: it was reached.
    expect PASS "$node" to "$api:9" 'refused in '
    expect PASS "$node" internet "$server" 'reached in '
    expect PASS "$node" must-fail 203.0.113.9:443
  done
  lab_ok "ten tests, and all passed"
}

step_pod_cut_off() {
  lab_step "What comes to node2 for its pod is lost"
  lab_node_exec node2 nft -f - <<<"table netdev cut {
    chain in { type filter hook ingress device eth0 priority 0; ip daddr $api drop; }
  }"
  tested 1 --to "$web" --to "$api" --within 1s
  lab_show cat "$LAB_DIR/tested"
  expect FAIL node1 to "$api" 'timed out'
  expect PASS node2 to "$api"
  expect PASS node1 to "$web"
  expect PASS node2 to "$web"
  expect PASS node1 nodes '1 other'
  jq -e '[.tests[] | select(.passed | not) | .remedy] | length == 1 and (.[0] | contains("pod-cannot-reach.md"))' \
    "$LAB_DIR/tested" >/dev/null
  lab_node_exec node2 nft delete table netdev cut
  tested 0 --to "$web" --to "$api"
  lab_ok "one test failed, from the other node; it passes once that is mended"
}

step_nodes_cut_off() {
  lab_step "What node1 sends to node2 itself is lost"
  lab_node_exec node2 nft -f - <<<"table netdev cut {
    chain in { type filter hook ingress device eth0 priority 0; ip saddr ${LAB_ADDRESSES[node1]} icmp type echo-request drop; }
  }"
  tested 1 --to "$server"
  expect FAIL node1 nodes node2 'probes lost'
  expect PASS node1 to "$server"
  lab_node_exec node2 nft delete table netdev cut
  tested 0
  lab_ok "the two nodes are named"
}

step_must_fail() {
  lab_step "What must not be reached is reached"
  tested 1 --node node1 --must-fail "$api"
  expect FAIL node1 must-fail "$api" 'reached'
  lab_ok "the test failed"
}

step_agent_away() {
  lab_step "The agent of node2 is away"
  lab_node_kill node2 spoke-netagent KILL
  lab_wait 30 "the server to miss the agent of node2" '' lab_spokectl node wait node2 --for away --within 1s
  tested 1 --node node1 --node node2 --to "$web"
  expect FAIL node2 agent '' 'not connected'
  expect PASS node1 to "$web"
  lab_ok "it is said of whom, and the other node tried"
}

step_wrong_words() {
  lab_step "Wrong words change nothing, and are told from what has failed"
  local code
  lab_spokectl connectivity test --node node9 && code=0 || code=$?
  [[ $code == 4 ]]
  lab_spokectl connectivity test --to web && code=0 || code=$?
  [[ $code == 2 ]]
  lab_spokectl connectivity test --internet "$web" && code=0 || code=$?
  [[ $code == 2 ]]
}

lab_for_test "${1:-}"
lab_cluster_up
step_two_pods
step_all_passes
step_pod_cut_off
step_nodes_cut_off
step_must_fail
step_agent_away
step_wrong_words
