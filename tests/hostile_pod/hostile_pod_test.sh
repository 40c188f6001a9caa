#!/usr/bin/env bash
# A pod that makes frames by itself gets nowhere with them: not while everything is well, not while
# somebody flushes the rules, not without an agent, not while it starts again or policy changes.
# usage: hostile_pod_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly HERE
# shellcheck source=../e2e/lab/lab.sh
source "$HERE/../e2e/lab/lab.sh"

readonly POD="$HERE/hostile_pod.py"

# in_pod NODE POD COMMAND...
in_pod() {
  local node=$1 pod=$2
  shift 2
  lab_node_exec "$node" nsenter --net="/run/netns/$pod" "$@"
}

# cni VERB NODE POD: as a runtime does it.
cni() {
  lab_node_exec "$2" env CNI_PATH=/opt/cni/bin NETCONFPATH=/etc/cni/net.d CNI_IFNAME=eth0 \
    CNI_ARGS="IgnoreUnknown=1;K8S_POD_NAMESPACE=demo;K8S_POD_NAME=$3" \
    "$tool" "$1" spoke "/run/netns/$3"
}

# pod_up NODE POD: prints its address.
pod_up() {
  lab_node_exec "$1" ip netns add "$2" || return 1
  in_pod "$1" "$2" ip link set lo up || return 1
  cni add "$1" "$2" | jq -r '.ips[0].address | split("/")[0]'
}

apply_policy() {
  lab_node_exec "$LAB_CONTROL" mkdir -p /run/spoke || return 1
  lab_node_write "$LAB_CONTROL" /run/spoke/policy.yaml <<POLICY || return 1
apiVersion: spoke/v1
kind: ClusterNetwork
metadata: {name: main}
spec: {cluster: [10.20.0.0/16], peerSpoke: [$1]}
POLICY
  lab_spokectl apply -f /run/spoke/policy.yaml
}

step_pods() {
  lab_step "Two pods on node1, one on node2, on the fast path"
  apply_policy 10.99.0.0/16 >"$LAB_DIR/said" || return 1
  local node
  for node in "${LAB_NODES[@]}"; do lab_plugin_install "$node" || return 1; done
  bad=$(pod_up node1 bad) && victim=$(pod_up node1 victim) && far=$(pod_up node2 far) || return 1
  gateway=$(in_pod node1 bad ip -j neighbour show 169.254.1.1 | jq -r '.[0].lladdr') || return 1
  in_pod node1 bad ping -c 1 -W 2 "$victim" >/dev/null || return 1
  in_pod node1 bad ping -c 1 -W 2 "$far" >/dev/null || return 1
  lab_ok "bad is $bad, victim $victim, far $far; they reach each other"
}

# listen_start: at the fabric's side of node1's link, and in the victim.
listen_start() {
  rm -f "$LAB_DIR/heard-fabric" "$LAB_DIR/heard-victim"
  lab_node_spawn "$LAB_FABRIC" ear python3 "$POD" listen "$(lab_fabric_port node1)" \
    "$LAB_DIR/heard-fabric" || return 1
  lab_node_spawn node1 ear nsenter --net=/run/netns/victim python3 "$POD" listen eth0 \
    "$LAB_DIR/heard-victim" || return 1
  local node
  for node in "$LAB_FABRIC" node1; do
    lab_wait 10 "the listener on $node" "$(lab_node_log "$node" ear)" \
      grep -q listening "$(lab_node_log "$node" ear)" || return 1
  done
}

listen_stop() {
  lab_node_kill "$LAB_FABRIC" ear && lab_node_kill node1 ear
}

# heard WHERE: how many frames of each kind were heard there.
heard() { cat "$LAB_DIR/heard-$1"; }

step_ears_hear() {
  lab_step "What may pass is heard: 20 plain frames to each"
  listen_start || return 1
  in_pod node1 bad python3 "$POD" plain eth0 "$bad" "$gateway" "$far" 20 || return 1
  in_pod node1 bad python3 "$POD" plain eth0 "$bad" "$gateway" "$victim" 20 || return 1
  listen_stop || return 1
  local where
  for where in fabric victim; do
    if [[ $(heard "$where" | jq '.plain') -ne 20 ]]; then
      lab_error "heard at $where: $(heard "$where")"
      return 1
    fi
    lab_ok "$where heard 20"
  done
}

# attack WORDS COMMAND...: frames of every kind for 4 s, while COMMAND runs; nothing of them is heard.
attack() {
  local words=$1 target attackers=() process
  shift
  listen_start || return 1
  for target in "$far" "$victim"; do
    in_pod node1 bad python3 "$POD" attack eth0 "$bad" "$gateway" "$target" 4 \
      >"$LAB_DIR/sent-$target" &
    attackers+=($!)
  done
  "$@" || return 1
  for process in "${attackers[@]}"; do wait "$process" || return 1; done
  listen_stop || return 1
  local where
  for where in fabric victim; do
    if [[ $(heard "$where") != '{}' ]]; then
      lab_error "$words: heard at $where: $(heard "$where")"
      return 1
    fi
  done
  lab_ok "$words: of $(jq .sent "$LAB_DIR/sent-$far") frames of $(jq .kinds "$LAB_DIR/sent-$far") kinds, twice, none arrived"
}

flush_often() {
  local i
  for ((i = 0; i < 15; ++i)); do
    lab_node_exec node1 nft flush ruleset || return 1
    sleep 0.2
  done
}

restart_often() {
  local i
  for ((i = 0; i < 3; ++i)); do
    lab_node_kill node1 spoke-netagent KILL && lab_agent_start node1 || return 1
  done
}

break_policy_file() {
  lab_node_kill node1 spoke-netagent KILL || return 1
  lab_node_exec node1 sh -c 'echo broken >/run/spoke/netagent/policy' || return 1
  lab_agent_start node1
}

change_policy() {
  local i
  for ((i = 0; i < 8; ++i)); do apply_policy "10.$((90 + i)).0.0/16" >"$LAB_DIR/said" || return 1; done
}

without_agent() {
  lab_node_kill node1 spoke-netagent KILL && lab_node_exec node1 nft flush ruleset && sleep 3
}

step_attacks() {
  lab_step "Frames of every kind, while one thing after the other goes wrong"
  attack "while all is well" true || return 1
  attack "while policy changes" change_policy || return 1
  attack "while the agent is killed and starts again" restart_often || return 1
  attack "while the agent starts with a broken policy file" break_policy_file || return 1
}

# The platform's services are closed by rules: a flush opens them until it is repaired.
step_flushes() {
  lab_step "The same while the rules are flushed, but for what rules alone hold back"
  attack_without_rules "while somebody flushes the rules" flush_often || return 1
  attack_without_rules "without an agent and without rules" without_agent || return 1
  lab_agent_start node1 || return 1
  attack "after the agent has come back" true
}

# attack_without_rules WORDS COMMAND...: as attack, but what only rules hold back may be heard.
attack_without_rules() {
  local words=$1
  shift
  if attack "$words" "$@" 2>"$LAB_DIR/attack-said"; then return 0; fi
  local where left
  for where in fabric victim; do
    left=$(heard "$where" | jq -c 'del(.["metadata service"], .wireserver)') || return 1
    if [[ $left != '{}' ]]; then
      cat "$LAB_DIR/attack-said" >&2
      return 1
    fi
  done
  lab_ok "$words: nothing arrived but what is said to the platform's services"
}

step_counted() {
  lab_step "It was counted, and the pods work"
  local reasons
  reasons=$(lab_node_exec node1 python3 -c '
import urllib.request
print(urllib.request.urlopen("http://127.0.0.1:9465/metrics", timeout=5).read().decode())' |
    grep '^spoke_drops_total') || return 1
  local reason
  for reason in unknown-source vlan-tag router-message protocol; do
    if ! grep -q "reason=\"$reason\"} [1-9]" <<<"$reasons"; then
      lab_error "no drops for $reason: $reasons"
      return 1
    fi
  done
  printf '%s\n' "$reasons" | sed 's/^/        /'
  in_pod node1 bad ping -c 1 -W 2 "$victim" >/dev/null || return 1
  in_pod node1 victim ping -c 1 -W 2 "$far" >/dev/null || return 1
  lab_ok "bad, victim and far reach each other"
}

lab_for_test "${1:-}"
tool=$("$HERE/../../scripts/cnitool.sh")
step_network && step_certificates && step_server && step_agents
step_pods
step_ears_hear
step_attacks
step_flushes
step_counted
