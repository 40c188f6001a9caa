#!/usr/bin/env bash
# The agents have the capabilities that conf/kubernetes gives them, and no others: pods get their
# addresses, are counted, isolated and limited, and go without a trace. A budget for one destination holds for
# all nodes together, in Shadow only counts, and leaves traffic inside the cluster alone; without the server
# it holds on.
# usage: capabilities_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

# Prints what the manifest adds after it has dropped all: "NET_ADMIN,NET_RAW".
manifest_capabilities() {
  sed -n 's/^ *add: \[\(.*\)\]$/\1/p' "$LAB_HOME/../../../conf/kubernetes/base/netagent.yaml" | tr -d ' '
}

# kernel_mask CAPABILITIES: as /proc/PID/status has it, without leading zeros.
kernel_mask() {
  local mask=0 name
  local -A bit=([NET_BROADCAST]=11 [NET_ADMIN]=12 [NET_RAW]=13 [SYS_PTRACE]=19 [SYS_ADMIN]=21 [PERFMON]=38 [BPF]=39)
  for name in ${1//,/ }; do mask=$((mask | 1 << ${bit[$name]})); done
  printf '%x' "$mask"
}

step_rights() {
  lab_step "Look at what the agents may do"
  local node said wanted
  wanted=$(kernel_mask "$capabilities")
  for node in "${LAB_NODES[@]}"; do
    said=$(lab_node_exec "$node" cat "/proc/$(cat "$LAB_DIR/machine/$node/spoke-netagent.pid")/status")
    for name in CapPrm CapEff CapBnd; do
      if ! grep -qxE "$name:[[:space:]]+0*$wanted" <<<"$said"; then
        lab_error "the agent on $node has other capabilities than $capabilities ($wanted):"
        grep ^Cap <<<"$said" >&2
        return 1
      fi
    done
    if ! grep -qxE 'NoNewPrivs:[[:space:]]+1' <<<"$said"; then
      lab_error "the agent on $node could gain privileges"
      return 1
    fi
    if [[ $(lab_node_exec "$node" cat /proc/sys/net/ipv4/ip_forward) != 1 ]]; then
      lab_error "the agent on $node has not switched forwarding on"
      return 1
    fi
  done
  lab_ok "they have $capabilities alone, and have set the nodes' sysctls"
}

step_nothing_refused() {
  lab_step "Nothing was refused to the agents, and isolation and the fast path are there"
  local node log filters
  for node in "${LAB_NODES[@]}"; do
    log=$(lab_node_log "$node" spoke-netagent)
    if grep -iE 'not permitted|permission denied|_unavailable|sysctl_failed|not_deletable' "$log" >&2; then
      lab_error "something was refused to the agent on $node"
      return 1
    fi
    lab_node_exec "$node" nft list table inet spoke >/dev/null || return 1
    # Read whole: a pipe that is closed early would be tc's failure.
    filters=$(lab_node_exec "$node" tc filter show dev eth0 ingress) || return 1
    if [[ $filters != *bpf* ]]; then
      lab_error "$node has no fast path"
      return 1
    fi
  done
  lab_ok "the table spoke and the programs are there"
}

# shaped_classes NODE: how many classes the queues of NODE have.
shaped_classes() { lab_node_exec "$1" tc class show dev spoke-in | wc -l; }

_classes_are_back() { (($(shaped_classes node1) >= $1)); }

step_mended() {
  lab_step "Somebody deletes the queues of node1"
  local before
  before=$(shaped_classes node1)
  lab_node_exec node1 tc qdisc del dev spoke-in root
  lab_wait 30 "the classes to be back" "$(lab_node_log node1 spoke-netagent)" \
    _classes_are_back "$before"
  lab_ok "all $before classes are back"
}

step_server_lost() {
  lab_step "The server goes away: what was granted is held"
  lab_budget_downloads_start
  sleep 5
  lab_node_kill "$LAB_CONTROL" spoke-ipam-server KILL
  sleep 3
  if (($(shaped_classes node1) == 0 || $(shaped_classes node2) == 0)); then
    lab_error "the limits went with the server"
    return 1
  fi
  lab_server_start
  lab_wait 60 "the usage to be at the budget again" "$(lab_node_log node1 spoke-netagent)" \
    _lab_usage_is below $((LAB_BUDGET_MBIT * 21 / 20))
  lab_budget_downloads_stop
  lab_ok "the new server took over, and the budget holds"
}

step_gone() {
  lab_step "Without the budget nothing of it is left"
  lab_spokectl delete bandwidthbudget "$LAB_BUDGET"
  lab_wait 15 "the queues to go" "$(lab_node_log node1 spoke-netagent)" _no_queues
  lab_ok "no device, no class"
}

_no_queues() {
  ! lab_node_exec node1 ip link show spoke-in && ! lab_node_exec node2 ip link show spoke-in
}

# A list that is too short is noticed: this test can fail.
step_too_few() {
  lab_step "Without NET_ADMIN the agent does not start"
  local code=0 program
  program=$(lab_bin spoke-netagent)
  lab_node_kill node1 spoke-netagent
  lab_node_exec node1 timeout 10 "$LAB_HOME/contained.sh" NET_RAW,SYS_ADMIN \
    "$program" --config /etc/spoke/netagent.yaml >"$LAB_DIR/log/too-few.log" 2>&1 || code=$?
  if ((code != 1)) || ! grep -q start_failed "$LAB_DIR/log/too-few.log"; then
    lab_error "it ended with $code and said: $(tail -n 3 "$LAB_DIR/log/too-few.log")"
    return 1
  fi
  lab_agent_start node1
  lab_ok "it says so and ends"
}

lab_for_test "${1:-}"
lab_use_internet
capabilities=$(manifest_capabilities)
[[ -n $capabilities ]]
# shellcheck disable=SC2034  # Read by the lab.
LAB_AGENT_UNDER=("$LAB_HOME/contained.sh" "$capabilities")
# shellcheck disable=SC2034  # Read by the lab.
LAB_AGENT_EXTRA='host_root: /run/host'
step_network
for node in "${LAB_NODES[@]}"; do
  lab_node_exec "$node" sh -c 'echo 0 >/proc/sys/net/ipv4/ip_forward'
done
step_certificates
step_server
step_agents
step_rights
step_runtimes
step_pods
step_pings
step_dataset_host
step_budget
step_mended
step_server_lost
step_nothing_refused
step_gone
step_too_few
step_delete
step_no_traces
