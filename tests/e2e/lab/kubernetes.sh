# shellcheck shell=bash
# An API server of Kubernetes, made up, on the server's machine, which has each of our nodes. Part of lab.sh.

# lab_use_kubernetes [SETTINGS]: the server tells it of nodes, with these settings of its section kubernetes. Before the
# first step.
lab_use_kubernetes() {
  # shellcheck disable=SC2034  # For lab_server_start.
  LAB_SERVER_EXTRA+=$'\n'"kubernetes: {${1:-}}"
}

# The server is told of it as a pod is, by its environment and a service account. Before step_server.
step_api_server() {
  lab_step "Start an API server of Kubernetes that has ${#LAB_NODES[@]} nodes"
  local log
  log=$(lab_node_log "$LAB_CONTROL" api-server)
  export KUBERNETES_SERVICE_HOST=${LAB_ADDRESSES[$LAB_CONTROL]} KUBERNETES_SERVICE_PORT=6443
  lab_node_spawn "$LAB_CONTROL" api-server "$LAB_HOME/api_server.py" "$LAB_DIR" "$KUBERNETES_SERVICE_HOST" "${LAB_NODES[@]}" &&
    lab_wait 20 "the API server" "$log" grep -qx ready "$log"
}

# lab_kubernetes_has KIND: "nodes" or "events", as JSON.
lab_kubernetes_has() {
  lab_node_exec "$LAB_CONTROL" curl --noproxy '*' --silent --show-error --fail --max-time 10 --cacert "$LAB_DIR/api.crt" \
    "https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT/api/v1/$1"
}

# lab_tainted_are NODES TAINT: whether these nodes, with commas between them, are those with the taint spoke.internal/TAINT.
lab_tainted_are() {
  lab_kubernetes_has nodes | jq -ce --arg nodes "$1" --arg key "spoke.internal/$2" '
    [.items[] | select(any(.spec.taints // [] | .[]; .key == $key)).metadata.name] | sort | join(",") | ., . == $nodes'
}

_lab_kubernetes_nodes() {
  lab_kubernetes_has nodes | jq -r '
    def of(type): [.status.conditions[] | select(.type == type)][0];
    ["NODE", "TAINTS", "READY", "WHY"],
    (.items[] | [.metadata.name, ([.spec.taints // [] | .[] | "\(.key):\(.effect)"] | join(",") | if . == "" then "none" else . end),
                 (of("SpokeNetworkReady") | .status, .reason)]) | @tsv' | column -t -s $'\t'
}

# step_tainted NODE: it is unfit for pods, and for long enough.
step_tainted() {
  lab_step "Kubernetes is told: the scheduler gives $1 no new pods"
  lab_wait 90 "$1 alone to be tainted" "$(lab_node_log "$LAB_CONTROL" spoke-ipam-server)" \
    lab_tainted_are "$1" agent-not-ready || return 1
  lab_show _lab_kubernetes_nodes
}

# step_untainted: no node is unfit any more.
step_untainted() {
  local from=$EPOCHSECONDS
  lab_step "Kubernetes is told that it is well again"
  lab_wait 90 "no node to be tainted" "$(lab_node_log "$LAB_CONTROL" spoke-ipam-server)" \
    lab_tainted_are '' agent-not-ready || return 1
  lab_ok "the taint is gone $((EPOCHSECONDS - from)) s later"
}
