# shellcheck shell=bash
# What operators on Azure expect of Spoke on a cluster, a function a case; Azure is the simulated one. To be sourced
# after cases.sh; each returns non-zero after saying why.

readonly AZURE_OVERLAY=azure-managed-identity

# azure_up: Resource Manager on the machine of the control plane, where the server can reach it, and on each node its
# metadata service and its wire server, at the addresses that Azure has for them.
azure_up() {
  # shellcheck disable=SC2034  # For lab_azure_start.
  LAB_ARM=$KUBE_API:8086
  lab_azure_start
}

# The overlay of this cluster: the one for managed identities, with the scale set and the endpoints of this Azure.
_azure_overlay_make() {
  local overlay=$LAB_DIR/overlay from=$LAB_DIR/kubernetes
  mkdir -p "$overlay" && _manifests_of_then || return 1
  # Without a list of identities the server is who its VM is.
  sed -e '/^ *identities:$/d' -e '/^ *# The id of a user-assigned identity/d' -e '/^ *- managed: /d' \
    -e "s|^\( *- \)/subscriptions/.*|\1$(lab_scale_set pool)|" \
    -e "s|^  azure:\$|&\n    endpoints: {resource_manager: \"http://$LAB_ARM\", metadata: \"http://$LAB_ARM\"}\n    listing: 10s|" \
    "$from/overlays/$AZURE_OVERLAY/ipam-server.yaml" >"$overlay/ipam-server.yaml" || return 1
  # A node has room for twelve pods. What Kubernetes is told of, it is told of within the patience of a test.
  sed -i '/^node_addresses:$/,/^[^ ]/d' "$overlay/ipam-server.yaml"
  printf '%s\n' 'node_addresses: {min: 12, batch: 4, spare: 0, max: 12}' \
    'kubernetes: {unfit_after: 30s, fit_after: 2s, exhausted_after: 10s}' >>"$overlay/ipam-server.yaml"
  sed -e "s|^azure: {}\$|azure: {reflector: $KUBE_API}|" -e 's|^# maintenance: .*|maintenance: {source: azure, poll: 500ms}|' \
    "$from/azure/netagent.yaml" >"$overlay/netagent.yaml" || return 1
  _server_volume >"$overlay/volume.yaml" || return 1
  cat >"$overlay/kustomization.yaml" <<KUSTOMIZATION
bases: [$(realpath --relative-to "$overlay" "$from/overlays/$AZURE_OVERLAY")]
namespace: $SYSTEM
resources: [volume.yaml]
configMapGenerator:
  - {name: spoke-ipam-server-config, behavior: merge, files: [ipam-server.yaml]}
  - {name: spoke-netagent-config, behavior: merge, files: [netagent.yaml]}
KUSTOMIZATION
}

# _agent_said NODE PATTERN: whether the agent's log has it.
_agent_said() { kube -n "$SYSTEM" logs "$(_agent_pod "$1")" | grep -E "$2"; }

# Agents learn from the metadata service who they are, and prove each address by wire server and reflector.
case_azure_install() {
  local i=0 node instance log
  for node in "${LAB_NODES[@]}"; do
    _tainted "$node" agent-not-ready || { lab_error "$node has not registered with the taint of before its agent" && return 1; }
  done
  _azure_overlay_make && lab_fabric_started && _system_up || return 1
  for node in "${LAB_NODES[@]}"; do
    instance=$(lab_scale_set pool)/virtualMachines/$i
    _agent_said "$node" "agent_started .*instance=${instance,,} " >/dev/null ||
      { lab_error "the agent on $node does not know itself as $instance: $(_agent_said "$node" agent_started)" && return 1; }
    log=$(lab_node_log "$node" kubelet)
    lab_wait 120 "the addresses of $node to be proven" "$log" _agent_said "$node" 'addresses_proven .*waiting=0' || return 1
    i=$((i + 1))
  done
}

# _azure_gave NODE: the addresses that Azure has on the NIC of its machine, the primary one left out.
_azure_gave() {
  lab_azure GET /sim/state | jq -r --arg node "$1" '.instances[] | select(.node == $node).addresses[]
    | select(.primary | not).range | sub("/32$"; "")'
}

# Pods have addresses that Azure has on their machine's NIC, and reach each other across machines.
case_azure_pods() {
  local node strange from
  _deployed web1 10 node1 && _deployed web2 10 node2 || return 1
  for node in "${LAB_NODES[@]}"; do
    strange=$(comm -23 <(kube_pods "app=web${node#node}" | awk '{print $3}' | sort) <(_azure_gave "$node" | sort))
    [[ -z $strange ]] || { lab_error "pods on $node have what Azure has not given it: $strange" && return 1; }
  done
  from=$(_pod web1)
  kube exec "$from" -- ping -c 3 -i 0.2 -W 2 "$(_pod web2 3)" || return 1
  server_ctl audit -o json | jq -e '.differences == []' >/dev/null ||
    { lab_error "store, Azure and agents differ: $(server_ctl audit)" && return 1; }
}

# _tainted NODE NAME: whether the node has the taint spoke.internal/NAME.
_tainted() {
  kube get node "$1" -o json | jq -ce --arg key "spoke.internal/$2" '.spec.taints // [] | ., any(.key == $key and .effect == "NoSchedule")'
}
_untainted() { [[ $(_tainted "$1" "$2" | tail -n 1) == false ]]; }

# _ready_condition NODE STATUS: whether the condition SpokeNetworkReady has that status, a reason and a message.
_ready_condition() {
  kube get node "$1" -o json | jq -ce --arg status "$2" '[.status.conditions[] | select(.type == "SpokeNetworkReady")]
    | ., (length == 1 and .[0].status == $status and (.[0].reason | length > 0) and (.[0].message | length > 0))'
}

# What the scheduler learns of nodes: fit when their agents are ready, not when one is cut off, nor when one is full.
case_azure_fit() {
  local node log cut=(OUTPUT --protocol tcp --dport 7443 --jump REJECT --reject-with tcp-reset)
  log=$(lab_node_log node1 kubelet)
  for node in "${LAB_NODES[@]}"; do
    lab_wait 60 "$node to lose the taint of before its agent" "$log" _untainted "$node" agent-not-ready || return 1
    lab_wait 30 "$node to be said to be ready" "$log" _ready_condition "$node" True || return 1
  done
  lab_node_exec node2 iptables -w -I "${cut[@]}" || return 1
  lab_wait 150 "node2, whose agent is cut off, to be tainted" "$log" _tainted node2 agent-not-ready || return 1
  lab_wait 30 "node2 to be said not to be ready" "$log" _ready_condition node2 False || return 1
  _untainted node1 agent-not-ready || { lab_error "node1 is tainted too: $(_tainted node1 agent-not-ready)" && return 1; }
  lab_show kube get nodes -o 'custom-columns=NAME:.metadata.name,TAINTS:.spec.taints[*].key'
  lab_node_exec node2 iptables -w -D "${cut[@]}" || return 1
  lab_wait 90 "node2 to lose the taint again" "$log" _untainted node2 agent-not-ready || return 1
  kube scale deployment web1 --replicas=12 >/dev/null || return 1
  lab_wait 60 "node1, which is full, to be tainted" "$log" _tainted node1 no-addresses || return 1
  kube scale deployment web1 --replicas=10 >/dev/null || return 1
  lab_wait 60 "node1 to lose that taint" "$log" _untainted node1 no-addresses
}

# _azure_maintenance NODE STATUS REASON WORDS: whether Kubernetes says so of the node, and has the taint while there is
# an interruption.
_azure_maintenance() {
  kube get node "$1" -o json | jq -ce --arg status "$2" --arg reason "$3" --arg words "$4" '
    (.status.conditions | map(select(.type == "SpokeMaintenance"))) as $conditions
    | [.spec.taints // [] | .[] | select(.key == "spoke.internal/maintenance").value] as $taints
    | {$conditions, $taints}, ($conditions | length == 1 and .[0].status == $status and .[0].reason == $reason
      and (.[0].message | contains($words))) and $taints == (if $status == "True" then [$reason] else [] end)'
}

# _azure_untold NODE: whether Kubernetes knows of no maintenance of the node.
_azure_untold() {
  kube get node "$1" -o json | jq -e '[.status.conditions[] | select(.type == "SpokeMaintenance" and .status == "True")] == []'
}

# A Scheduled Event becomes a condition, a taint and an event of its node alone, and goes with it.
case_azure_maintenance() {
  local event log words='Host is being updated.'
  log=$(lab_node_log node1 kubelet)
  event=$(jq -nc --arg words "$words" '{type: "Reboot", resources: ["pool_0"], notice_s: 600, over_after_s: 3, description: $words}')
  lab_azure POST /sim/events "$event" >/dev/null || return 1
  lab_wait 30 "the condition SpokeMaintenance of node1" "$log" _azure_maintenance node1 True Reboot "$words" || return 1
  _azure_untold node2 >/dev/null || { lab_error "node2 is said to have maintenance too" && return 1; }
  kube get events --all-namespaces -o json | jq -e '[.items[] | select(.reason == "SpokeMaintenanceReboot"
    and .involvedObject.name == "node1")] | length > 0' >/dev/null || { lab_error "node1 has no event of it" && return 1; }
  kube exec "$(_pod web1)" -- ping -c 2 -i 0.2 -W 2 "$(_pod web2 3)" || return 1
  server_ctl maintenance start node1 || return 1
  lab_wait 90 "the maintenance to be over" "$log" _azure_maintenance node1 False None '' || return 1
}
