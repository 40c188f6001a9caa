# shellcheck shell=bash
# A dataset host outside of the cluster, and a budget that all nodes share: what scripts/demo.sh shows
# and the e2e test proves. Part of lab.sh; each step needs those before it, and
# lab_use_internet.

readonly LAB_DATASET_PORT=8080
readonly LAB_POD_PORT=8000
readonly LAB_BUDGET_MBIT=80
readonly LAB_BUDGET=datasets

# _lab_budget_objects MODE
_lab_budget_objects() {
  cat <<OBJECTS
apiVersion: spoke/v1
kind: ClusterNetwork
metadata: {name: main}
spec: {cluster: [10.20.0.0/$LAB_SUBNET_LENGTH]}
---
apiVersion: spoke/v1
kind: Team
metadata: {name: vision}
spec: {namespaces: [$LAB_POD_NAMESPACE]}
---
apiVersion: spoke/v1
kind: DestinationGroup
metadata: {name: $LAB_BUDGET}
spec: {cidrs: [${LAB_ADDRESSES[$LAB_INTERNET]}/32]}
---
apiVersion: spoke/v1
kind: BandwidthBudget
metadata: {name: $LAB_BUDGET}
spec:
  destinationGroup: $LAB_BUDGET
  direction: Ingress
  capacity: ${LAB_BUDGET_MBIT}Mbit
  teams: [{name: vision, weight: 3}]
  grant: {duration: 10s, refresh: 1s}
  onLoss: {hold: 10s, halfLife: 5s, floor: {share: 5%, nodes: 8}}
  mode: $1
OBJECTS
}

# lab_budget_apply MODE: the policy of this file, with the budget in that mode.
lab_budget_apply() {
  _lab_budget_objects "$1" >"$LAB_DIR/budget.yaml"
  lab_spokectl apply -f "$LAB_DIR/budget.yaml"
}

# lab_budget_usage: what all nodes use of the budget, in Mbit/s.
lab_budget_usage() {
  lab_spokectl budget show "$LAB_BUDGET" -o json | jq '(.usage_bits | tonumber) / 1e6 | floor'
}

# _lab_download NODE POD URL: fetches it in the pod, and says the rate in Mbit/s.
_lab_download() {
  local began=$EPOCHREALTIME bytes took
  bytes=$(lab_pod_exec "$1" "$2" sh -c "wget -q -O - '$3' | wc -c") || return 1
  took=$(((${EPOCHREALTIME/[.,]/} - ${began/[.,]/}) / 1000))
  printf '%d\n' $((bytes * 8 / 1000 / (took > 0 ? took : 1)))
}

# lab_budget_cluster_rate: Mbit/s from a pod of one node to one of the other.
lab_budget_cluster_rate() {
  _lab_download node2 api-1 "http://$(lab_pod_address node1 web-1):$LAB_POD_PORT/training"
}

# Downloads that go on, on both nodes, until lab_budget_downloads_stop.
lab_budget_downloads_start() {
  local url=http://${LAB_ADDRESSES[$LAB_INTERNET]}:$LAB_DATASET_PORT/dataset pair node pod
  _lab_downloads=()
  for pair in 'node1 web-2' 'node1 web-3' 'node2 api-2'; do
    read -r node pod <<<"$pair"
    lab_pod_exec "$node" "$pod" sh -c \
      "rm -f /tmp/stop; while [ ! -e /tmp/stop ]; do wget -q -O /dev/null '$url' || sleep 1; done" >/dev/null 2>&1 &
    _lab_downloads+=("$!")
  done
}

lab_budget_downloads_stop() {
  local pair node pod process
  for pair in 'node1 web-2' 'node1 web-3' 'node2 api-2'; do
    read -r node pod <<<"$pair"
    lab_pod_exec "$node" "$pod" sh -c 'touch /tmp/stop; killall wget' >/dev/null 2>&1 || true
  done
  for process in "${_lab_downloads[@]}"; do wait "$process" || true; done
}

# _lab_usage_is OPERATOR MBIT: whether the usage compares so.
_lab_usage_is() {
  local usage
  usage=$(lab_budget_usage) || return 1
  printf 'usage: %s Mbit/s\n' "$usage"
  if [[ $1 == above ]]; then ((usage > $2)); else ((usage > 0 && usage <= $2)); fi
}

step_dataset_host() {
  lab_step "Start a dataset host outside of the cluster; three pods on two nodes download from it"
  lab_node_exec "$LAB_INTERNET" mkdir -p /run/datasets || return 1
  lab_node_exec "$LAB_INTERNET" truncate -s 4G /run/datasets/dataset || return 1
  lab_node_spawn "$LAB_INTERNET" dataset-host busybox httpd -f -h /run/datasets \
    -p "${LAB_ADDRESSES[$LAB_INTERNET]}:$LAB_DATASET_PORT" || return 1
  lab_pod_exec node1 web-1 sh -c "mkdir -p /tmp/www && truncate -s 256M /tmp/www/training &&
    httpd -p $LAB_POD_PORT -h /tmp/www" || return 1
  lab_budget_apply Shadow || return 1
  lab_budget_downloads_start
  lab_say "the budget $LAB_BUDGET of $LAB_BUDGET_MBIT Mbit/s is in Shadow: nothing is held back"
  lab_wait 30 "the downloads to use more than the budget" \
    "$(lab_node_log node1 spoke-netagent)" _lab_usage_is above $((LAB_BUDGET_MBIT * 2)) || return 1
  lab_show lab_spokectl top budgets || return 1
  lab_budget_before=$(lab_budget_cluster_rate) || return 1
  lab_ok "they use more than the budget; from pod to pod $lab_budget_before Mbit/s"
}

step_budget() {
  lab_step "Enforce the budget: both nodes together fall to it, and training traffic does not notice"
  lab_budget_apply Enforce || return 1
  # What the nodes report is payload; a twentieth for what they measure it by.
  lab_wait 30 "the usage to fall to the budget" "$(lab_node_log node1 spoke-netagent)" \
    _lab_usage_is below $((LAB_BUDGET_MBIT * 21 / 20)) || return 1
  sleep 3
  lab_wait 5 "the usage to stay there" "$(lab_node_log node1 spoke-netagent)" \
    _lab_usage_is below $((LAB_BUDGET_MBIT * 21 / 20)) || return 1
  lab_show lab_spokectl top budgets || return 1
  lab_show lab_spokectl budget explain "$LAB_BUDGET" || return 1
  local after
  after=$(lab_budget_cluster_rate) || return 1
  lab_say "from pod to pod $after Mbit/s"
  if ((after * 2 < lab_budget_before || after < LAB_BUDGET_MBIT * 2)); then
    lab_error "traffic from pod to pod was $lab_budget_before Mbit/s before, and is $after now"
    return 1
  fi
  lab_budget_downloads_stop
  lab_ok "$LAB_BUDGET_MBIT Mbit/s for all nodes together; traffic inside the cluster is as before"
}
