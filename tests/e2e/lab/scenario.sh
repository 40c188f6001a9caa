# shellcheck shell=bash
# The first pods of a new cluster, step by step and in words: what scripts/demo.sh shows and the e2e
# tests build upon. Part of lab.sh. Each step needs those before it.

LAB_STEPS=0  # The number of steps the caller will announce; 0: not known.
_lab_step=0
_lab_started=$EPOCHREALTIME

if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
  _lab_bold=$'\e[1m' _lab_dim=$'\e[2m' _lab_green=$'\e[32m' _lab_plain=$'\e[0m'
else
  _lab_bold='' _lab_dim='' _lab_green='' _lab_plain=''
fi

# lab_elapsed: seconds since this file was read, with one decimal.
lab_elapsed() {
  local now=$EPOCHREALTIME tenths
  tenths=$(((${now/[.,]/} - ${_lab_started/[.,]/}) / 100000))
  printf '%d.%d' $((tenths / 10)) $((tenths % 10))
}

# lab_step WORDS: announces a step.
lab_step() {
  _lab_step=$((_lab_step + 1))
  local of=$_lab_step
  if ((LAB_STEPS > 0)); then printf -v of '%2d/%d' "$_lab_step" "$LAB_STEPS"; fi
  printf '%s[%s  %ss]%s %s%s%s\n' "$_lab_dim" "$of" "$(lab_elapsed)" "$_lab_plain" "$_lab_bold" \
    "$*" "$_lab_plain"
}

# lab_say WORDS, lab_ok WORDS: a detail of a step; something that was checked and holds.
lab_say() { printf '        %s\n' "$*"; }
lab_ok() { printf '    %sok%s  %s\n' "$_lab_green" "$_lab_plain" "$*"; }
# lab_show COMMAND...: what COMMAND prints, as a detail of a step.
lab_show() {
  local said
  said=$("$@") || return 1
  printf '%s\n' "$said" | sed 's/^/        /'
}

# lab_cluster_up: everything up to the first pod.
lab_cluster_up() {
  step_network && step_certificates || return 1
  if [[ $LAB_CLOUD == azure ]]; then step_cloud || return 1; fi
  step_server && step_agents && step_runtimes
}

# Every pod of the scenario, as "NODE POD".
readonly LAB_SCENARIO_PODS=('node1 web-1' 'node1 web-2' 'node1 web-3' 'node2 api-1' 'node2 api-2'
  'node2 api-3')

step_network() {
  local between="a fabric between them that behaves as Azure's"
  if [[ $LAB_NETWORK == routers ]]; then between="Linux routers between them"; fi
  lab_step "Make ${#LAB_MACHINES[@]} machines of namespaces, and $between"
  lab_cluster_network || return 1
  local machine
  for machine in "${LAB_MACHINES[@]}"; do
    lab_say "$(printf '%-8s NIC eth0  %-13s %s' "$machine" "${LAB_ADDRESSES[$machine]}" \
      "$(lab_mac "$machine")")"
  done
}

step_certificates() {
  lab_step "Make a CA, a certificate for the server, and one for each node in the node's name"
  lab_certificates
}

# This runs only on Azure.
step_cloud() {
  lab_step "Start a simulated Azure: Resource Manager, and a metadata service on each node"
  lab_azure_start || return 1
  lab_say "scale set $(lab_scale_set pool)"
}

step_server() {
  lab_step "Start the IPAM server on $LAB_CONTROL, with the pool $LAB_POOL"
  lab_server_start
}

step_agents() {
  lab_step "Start an agent on each node; the server attaches addresses to each node's NIC"
  local node
  for node in "${LAB_NODES[@]}"; do lab_agent_start "$node" || return 1; done
  for node in "${LAB_NODES[@]}"; do lab_wait_attached "$node" 3 || return 1; done
  lab_show lab_spokectl node list
}

_lab_runtime_up() {
  lab_plugin_install "$1" && lab_containerd_up "$1" && lab_network_ready "$1" 15
}

step_runtimes() {
  lab_step "Start containerd on each node, with the spoke plugin as its network"
  _lab_images_make && lab_in_parallel _lab_runtime_up "${LAB_NODES[@]}"
}

step_pods() {
  lab_step "Create three pods on each node through CRI, all at once"
  lab_in_parallel lab_pod_run "${LAB_SCENARIO_PODS[@]}" || return 1
  local pair node pod
  for pair in "${LAB_SCENARIO_PODS[@]}"; do
    read -r node pod <<<"$pair"
    lab_say "$(printf '%-6s %-6s %s' "$node" "$pod" "$(lab_pod_address "$node" "$pod")")"
  done
  local distinct
  distinct=$(for pair in "${LAB_SCENARIO_PODS[@]}"; do
    read -r node pod <<<"$pair"
    lab_pod_address "$node" "$pod"
  done | sort -u | wc -l)
  if ((distinct != ${#LAB_SCENARIO_PODS[@]})); then
    lab_error "two pods have the same address"
    return 1
  fi
  lab_ok "six pods, six addresses"
}

# _expect_reach NODE POD ADDRESS WORDS
_expect_reach() {
  lab_pod_ping "$1" "$2" "$3" || return 1
  lab_ok "$4"
}

step_pings() {
  lab_step "Ping, while tcpdump listens on the fabric's side of both nodes' links"
  local web1 web2 api1 api2 node
  web1=$(lab_pod_address node1 web-1) web2=$(lab_pod_address node1 web-2)
  api1=$(lab_pod_address node2 api-1) api2=$(lab_pod_address node2 api-2)
  for node in "${LAB_NODES[@]}"; do lab_capture_start "$node" || return 1; done
  _expect_reach node1 web-1 "$api1" "web-1 on node1 reaches api-1 on node2" || return 1
  _expect_reach node2 api-2 "$web2" "api-2 on node2 reaches web-2 on node1" || return 1
  _expect_reach node1 web-1 "$web2" "web-1 reaches web-2 on the same node" || return 1
  _expect_reach node1 web-1 "${LAB_ADDRESSES[node2]}" "web-1 reaches node2 itself" || return 1
  _expect_reach node2 api-1 "${LAB_ADDRESSES[$LAB_CONTROL]}" "api-1 reaches $LAB_CONTROL" ||
    return 1
  for node in "${LAB_NODES[@]}"; do lab_capture_stop "$node" || return 1; done
  _expect_untranslated "$web1 $api1" "$api2 $web2" || return 1
}

# _expect_untranslated "SOURCE DESTINATION"...: each of these was on both links, and no node's own
# address took the place of a pod's anywhere.
_expect_untranslated() {
  local pair source destination node
  for node in node1 node2; do
    for pair in "$@"; do
      read -r source destination <<<"$pair"
      lab_expect_on_wire "$node" "$source" "$destination" || return 1
    done
    for source in "${LAB_ADDRESSES[@]}"; do
      if grep -q "^${source//./\\.} " < <(lab_capture_requests "$node"); then
        lab_error "on the link of $node, pings come from $source: they were translated"
        return 1
      fi
    done
  done
  lab_say "on node2's link, as the fabric saw it:"
  grep -F "ICMP echo request" "$(lab_node_log "$LAB_FABRIC" capture-node2)" | head -n 2 |
    sed 's/^/        | /'
  lab_ok "the pods' own addresses are on the wire: nothing is translated, nothing is wrapped"
}

step_show() {
  lab_step "Ask the server what it knows"
  local words
  for words in status "node list" "ip list"; do
    lab_say "\$ spokectl $words"
    # shellcheck disable=SC2086  # Two words are two arguments.
    lab_show lab_spokectl $words || return 1
  done
  local in_use
  in_use=$(lab_addresses in_use) || return 1
  if [[ $(wc -l <<<"$in_use") -ne ${#LAB_SCENARIO_PODS[@]} ]]; then
    lab_error "the server should know ${#LAB_SCENARIO_PODS[@]} addresses to be in use, but knows: $in_use"
    return 1
  fi
  lab_ok "the server knows each pod's address"
}

# Prints what all of that took of Azure. One write a node: pods cost no call at all.
step_azure_calls() {
  lab_step "Count what was asked of Azure"
  local counters writes
  counters=$(lab_azure GET /sim/counters) || return 1
  jq -r '.calls | to_entries[] | "\(.key): \(.value | add)"' <<<"$counters" | sed 's/^/        /'
  writes=$(jq '.calls["instance.put"] | add' <<<"$counters") || return 1
  if ((writes != ${#LAB_NODES[@]})); then
    lab_error "$writes writes, where one a node was enough"
    return 1
  fi
  lab_ok "one write a node, however many pods"
}

step_delete() {
  lab_step "Delete the pods; their addresses come back"
  lab_in_parallel lab_pod_delete "${LAB_SCENARIO_PODS[@]}" || return 1
  lab_wait_none_in_use || return 1
  lab_ok "no address is assigned"
}

step_no_traces() {
  lab_step "Look for anything that the pods left behind"
  local node
  for node in "${LAB_NODES[@]}"; do
    lab_wait_no_pod_traces "$node" || return 1
    lab_ok "$node: no link, no pod route, no network namespace, no process"
  done
}
