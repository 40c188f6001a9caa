#!/usr/bin/env bash
# Cluster DNS: name servers in pods on two nodes, behind a Service as kube-proxy makes it. Pods on both nodes and the
# nodes themselves resolve names by both servers, over UDP and TCP; servers see the pods' own addresses.
# usage: cluster_dns_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

readonly RULES=$LAB_HOME/../testdata/kube_proxy_dns.rules
readonly CLUSTER=10.20.0.0/16 SERVICE=10.96.0.10
readonly NAME=web.default.svc.cluster.local ANSWER=10.96.0.77
readonly QUESTIONS=24  # That both servers get one of them fails once in eight million times.

# ask NODE POD OPTION...: what the Service answers to dig of the pod, or of the node itself if POD is empty.
ask() {
  local node=$1 pod=$2 from=()
  shift 2
  if [[ -n $pod ]]; then from=(nsenter "--net=/run/netns/$pod"); fi
  lab_node_exec "$node" "${from[@]}" dig "@$SERVICE" +tries=1 +timeout=2 "$@"
}

# server_up NODE: a pod `dns` with a name server that says at `instance` which node it is on, and has an answer that is
# longer than UDP may carry. Prints its address.
server_up() {
  local address log long='' i
  address=$(lab_bare_pod_up "$1" dns) || return 1
  for ((i = 0; i < 12; i++)); do long+=,$(printf 'x%.0s' {1..250}); done
  lab_node_spawn "$1" dnsmasq nsenter --net=/run/netns/dns dnsmasq --keep-in-foreground --user=root --group=root \
    --conf-file=/dev/null --pid-file=/run/dnsmasq.pid --no-hosts --no-resolv --local=/cluster.local/ --log-queries \
    --log-facility=- "--host-record=$NAME,$ANSWER" "--txt-record=instance.cluster.local,$1" "--txt-record=long.cluster.local$long" || return 1
  log=$(lab_node_log "$1" dnsmasq)
  lab_wait 10 "the name server on $1 to start" "$log" grep -q ': started' "$log" || return 1
  printf '%s\n' "$address"
}

step_servers() {
  lab_step "A name server in a pod on each node, a Service before both, and a pod that asks on each node"
  local node one two
  # With it nodes take the fast path, which must leave the Service's traffic to kube-proxy's rules.
  lab_spokectl apply -f - >/dev/null <<POLICY
apiVersion: spoke/v1
kind: ClusterNetwork
metadata: {name: main}
spec: {cluster: [$CLUSTER], services: [10.96.0.0/16]}
POLICY
  for node in "${LAB_NODES[@]}"; do lab_plugin_install "$node"; done
  one=$(server_up node1)
  two=$(server_up node2)
  for node in "${LAB_NODES[@]}"; do
    asking[$node]=$(lab_bare_pod_up "$node" asking)
    sed "s|@ONE@|$one|g; s|@TWO@|$two|g; s|@CLUSTER@|$CLUSTER|g" "$RULES" | lab_node_exec "$node" iptables-restore --noflush
  done
  lab_say "servers at $one and $two; ${asking[node1]} and ${asking[node2]} ask"
}

# resolves NODE POD UDP|TCP: the name has its address, over that protocol, and both servers are asked.
resolves() {
  local node=$1 pod=$2 how=+notcp said i seen=
  if [[ $3 == TCP ]]; then how=+tcp; fi
  said=$(ask "$node" "$pod" "$how" "$NAME" A) || { lab_error "${pod:-the node} on $node gets no answer over $3: $said" && return 1; }
  if ! grep -q "^${NAME//./\\.}\..*[[:space:]]$ANSWER\$" <<<"$said" || ! grep -qF "SERVER: $SERVICE#53($SERVICE) ($3)" <<<"$said"; then
    lab_error "${pod:-the node} on $node asks over $3 and hears: $said"
    return 1
  fi
  for ((i = 0; i < QUESTIONS; i++)); do seen+=$(ask "$node" "$pod" "$how" +short instance.cluster.local TXT)$'\n' || return 1; done
  if [[ $(sort -u <<<"$seen" | paste -s -d ' ') != *'"node1" "node2"' ]]; then
    lab_error "${pod:-the node} on $node asks $QUESTIONS times over $3, and of the servers answer: $(sort <<<"$seen" | uniq -c)"
    return 1
  fi
  lab_ok "${pod:+a pod on }$node, over $3: $(grep -c node1 <<<"$seen") of $QUESTIONS answers are node1's"
}

step_resolve() {
  lab_step "Names resolve"
  local node protocol
  for node in "${LAB_NODES[@]}"; do
    for protocol in UDP TCP; do
      resolves "$node" asking "$protocol"
      resolves "$node" '' "$protocol"
    done
  done
}

step_own_addresses() {
  lab_step "Servers see who asks"
  local server node
  for server in "${LAB_NODES[@]}"; do
    for node in "${LAB_NODES[@]}"; do
      if ! grep -qE "query\[TXT\] instance\.cluster\.local from ${asking[$node]//./\\.}\$" "$(lab_node_log "$server" dnsmasq)"; then
        lab_error "the server on $server saw no question from ${asking[$node]}: $(grep -o ' from .*' "$(lab_node_log "$server" dnsmasq)" | sort | uniq -c)"
        return 1
      fi
    done
  done
  lab_ok "each has seen the own addresses of both pods"
}

step_long() {
  lab_step "An answer that is longer than UDP may carry comes over TCP"
  local node said
  for node in "${LAB_NODES[@]}"; do
    said=$(ask "$node" asking +notcp +ignore long.cluster.local TXT)
    grep -q '^;; flags:.* tc' <<<"$said" || { lab_error "over UDP it is not said to be truncated: $said" && return 1; }
    said=$(ask "$node" asking +notcp long.cluster.local TXT)
    if ! grep -qF "SERVER: $SERVICE#53($SERVICE) (TCP)" <<<"$said" || (($(grep -o 'x' <<<"$said" | wc -l) < 3000)); then
      lab_error "on $node the whole answer is not had: $said"
      return 1
    fi
  done
  lab_ok "whole, on both nodes"
}

step_down() {
  lab_step "The pods go"
  local node
  for node in "${LAB_NODES[@]}"; do
    lab_node_kill "$node" dnsmasq
    lab_bare_pod_down "$node" dns
    lab_bare_pod_down "$node" asking
  done
  lab_wait_none_in_use
}

declare -A asking=()
lab_for_test "${1:-}"
step_network && step_certificates && step_server && step_agents
step_servers
step_resolve
step_own_addresses
step_long
step_down
step_no_traces
