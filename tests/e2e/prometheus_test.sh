#!/usr/bin/env bash
# Prometheus, as Debian has it, reads everything that an agent serves, and finds no fault with it.
# usage: prometheus_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

readonly NODE=node1
readonly WEB=127.0.0.1:9090
readonly TOKEN=0123456789abcdef0123456789abcdef
CONF=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../conf" && pwd)
readonly CONF

# ask PATH: what Prometheus' API answers.
ask() {
  lab_node_exec "$NODE" python3 -c '
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())' "http://$WEB/api/v1/$1"
}

# value QUERY: the one value that it has now; nothing when it has none.
value() {
  local query
  query=$(jq -rn --arg query "$1" '$query | @uri') || return 1
  ask "query?query=$query" | jq -r '.data.result[0].value[1] // empty'
}

# is QUERY: whether it has any value now, as comparisons have it where they hold.
is() { [[ -n $(value "$1") ]]; }

step_prometheus() {
  lab_step "Start Prometheus on $NODE; it reads all endpoints of the agent there"
  # Their first turn may be as late as their interval is long.
  sed 's/interval: 30s/interval: 1s/' "$CONF/recording-rules.yaml" |
    lab_node_write "$NODE" /etc/spoke/recording-rules.yaml || return 1
  lab_node_write "$NODE" /etc/spoke/prometheus.yaml <<CONFIG
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [$CONF/alerts.yaml, /etc/spoke/recording-rules.yaml]
scrape_configs:
  - {job_name: spoke-netagent, static_configs: [{targets: ["127.0.0.1:9465"]}]}
  - {job_name: madron, static_configs: [{targets: ["127.0.0.1:9119"]}]}
  - {job_name: retailnext, static_configs: [{targets: ["127.0.0.1:9455"]}]}
CONFIG
  lab_node_spawn "$NODE" prometheus prometheus --config.file=/etc/spoke/prometheus.yaml \
    --storage.tsdb.path=/run/prometheus "--web.listen-address=$WEB"
  lab_wait 30 "Prometheus to read three targets" "$(lab_node_log "$NODE" prometheus)" \
    is 'sum(up) == 3'
  lab_ok "all three targets are up"
  lab_wait 20 "all rules to have been worked out" "$(lab_node_log "$NODE" prometheus)" rules_work
  lab_ok "the alerting and recording rules work"
}

rules_work() {
  ask rules | jq -ce '[.data.groups[].rules[] | select(.health != "ok") | {name, health, lastError}] |
    if . == [] then true else (., false) end'
}

step_counters() {
  lab_step "What it reads rises"
  lab_pod_run "$NODE" web-1
  # Prometheus' own requests go through lo, which the published rules take for the Internet.
  local query
  for query in \
    'increase(iptables_bytes_total{job="madron",ip_version="4",table="mangle",chain="input",rule="openai traffic=internet-in"}[10s]) > 0' \
    'increase(iptables_packets_total{job="madron",chain="output",rule="openai traffic=internet-out"}[10s]) > 0' \
    'iptables_rules{job="madron",table="mangle",chain="forward"} == 2' \
    'increase(iptables_rule_bytes_total{job="retailnext",chain="INPUT",rule=~"! -s 10.0.0.0/8 .*internet-in.*"}[10s]) > 0' \
    'iptables_scrape_success == 1' \
    'increase(process_cpu_seconds_total{job="spoke-netagent"}[10s]) > 0' \
    'spoke_scrape_success{source="agent"} == 1' \
    'spoke_conntrack_limit_entries > 0' \
    'spoke_published_rules_missing == 0' \
    'scrape_samples_scraped{job="spoke-netagent"} <= 200'; do
    lab_wait 30 "$query" "$(lab_node_log "$NODE" spoke-netagent)" is "$query"
  done
  lab_ok "bytes, packets and rules of iptables, the process, the table of connections"
  lab_say "$(value 'scrape_samples_scraped{job="spoke-netagent"}') series of the agent, read in \
$(value 'spoke_scrape_duration_seconds') s"
}

# of_pod [FIELD]: the status that a pod gets from the agent, at the node's address.
of_pod() {
  # shellcheck disable=SC2016  # The pod's shell has the arguments.
  lab_pod_exec "$NODE" web-1 sh -c \
    'printf "GET /metrics HTTP/1.0\r\n%s\r\n\r\n" "$2" | nc -w 5 "$1" 9465 | head -n 1 || true' \
    sh "${LAB_ADDRESSES[$NODE]}" "${1:-Host: agent}" | sed -n 's/^HTTP\/1\.1 \([0-9]*\).*/\1/p'
}

expect_of_pod() {
  local wanted=$1 got
  shift
  got=$(of_pod "$@") || true
  if [[ $got != "$wanted" ]]; then
    lab_error "a pod gets $got instead of $wanted"
    return 1
  fi
}

step_from_a_pod() {
  lab_step "A pod asks for metrics, as Prometheus in a pod does"
  expect_of_pod 401
  expect_of_pod 401 "Authorization: Bearer 0000000000000000"
  expect_of_pod 200 "Authorization: Bearer $TOKEN"
  lab_ok "401 without the token, 200 with it"
  # The next token counts at once, and the old one no more.
  printf 'fedcba9876543210\n' | lab_node_write "$NODE" /etc/spoke/metrics.token
  expect_of_pod 401 "Authorization: Bearer $TOKEN"
  expect_of_pod 200 "Authorization: Bearer fedcba9876543210"
  lab_ok "a new token replaces it without a restart"
  # The node itself needs none, also not at its own address.
  local plain
  plain=$(lab_node_exec "$NODE" curl --silent --max-time 5 "http://${LAB_ADDRESSES[$NODE]}:9465/metrics")
  grep -q '^spoke_scrapes_refused_total{reason="unauthorized"} 3$' <<<"$plain"
  lab_ok "the node asks without one, and the three refusals are counted"
}

step_same_numbers() {
  lab_step "iptables shows the same rules, with comment and counters"
  local listed chain
  for chain in INPUT FORWARD; do
    listed=$(lab_node_exec "$NODE" iptables -t mangle -L "$chain" -v -n -x)
    grep -qF '!10.0.0.0/8           0.0.0.0/0            /* iptables-exporter openai traffic=internet-in */' \
      <<<"$listed"
  done
  lab_node_exec "$NODE" iptables -t mangle -C OUTPUT ! -d 10.0.0.0/8 -m comment \
    --comment "iptables-exporter openai traffic=internet-out"
  lab_node_exec "$NODE" iptables-save -c | grep -F -- '-A FORWARD ! -d 10.0.0.0/8 -m comment' >/dev/null
  lab_ok "iptables -L -v, -C and iptables-save -c"
}

step_repair() {
  lab_step "Somebody removes one of them"
  lab_node_exec "$NODE" iptables -t mangle -D OUTPUT ! -d 10.0.0.0/8 -m comment \
    --comment "iptables-exporter openai traffic=internet-out"
  lab_wait 30 "the rule to come back, and to be counted" "$(lab_node_log "$NODE" spoke-netagent)" \
    is 'spoke_rules_drift_total{rules="published"} == 1'
  lab_node_exec "$NODE" iptables -t mangle -C OUTPUT ! -d 10.0.0.0/8 -m comment \
    --comment "iptables-exporter openai traffic=internet-out"
  lab_ok "it is back"
}

step_restart() {
  lab_step "Kill the agent; the next one goes on from the same numbers"
  local before after
  local query='iptables_bytes_total{chain="input",rule="openai traffic=internet-in"}'
  before=$(value "$query")
  lab_node_kill "$NODE" spoke-netagent KILL
  lab_wait 10 "Prometheus to miss it" "" is 'sum(up) == 0'
  lab_agent_start "$NODE"
  lab_wait 30 "Prometheus to read it again" "$(lab_node_log "$NODE" spoke-netagent)" is 'sum(up) == 3'
  after=$(value "$query")
  if ((after < before)); then
    lab_error "iptables counted $before bytes before, and $after after"
    return 1
  fi
  lab_ok "$before bytes before, $after after"
  local count
  count=$(lab_node_exec "$NODE" iptables-save -t mangle | grep -c 'iptables-exporter')
  [[ $count -eq 4 ]]
  lab_ok "the rules are there once"
}

step_no_errors() {
  lab_step "Prometheus has had no fault to find"
  # Samples with the same labels, or that it cannot read, are told there.
  if grep -E 'level=(warn|error)' "$(lab_node_log "$NODE" prometheus)"; then
    lab_error "Prometheus complains"
    return 1
  fi
  ask targets | jq -e '[.data.activeTargets[].lastError | select(. != "")] == []' >/dev/null
  lab_ok "no target has an error"
  lab_pod_delete "$NODE" web-1
}

lab_for_test "${1:-}"
# shellcheck disable=SC2034  # Read by the lab.
LAB_AGENT_EXTRA='metrics: {address: "0.0.0.0:9465", token_file: /etc/spoke/metrics.token,
  iptables_exporter: {retailnext_address: "127.0.0.1:9455"}}'
lab_cluster_up
printf '%s\n' "$TOKEN" | lab_node_write "$NODE" /etc/spoke/metrics.token
step_prometheus
step_counters
step_from_a_pod
step_same_numbers
step_repair
step_restart
step_no_errors
