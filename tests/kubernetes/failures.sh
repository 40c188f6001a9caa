# shellcheck shell=bash
# Tests of what may happen to a cluster, and its end: a function a case. To be sourced by cases.sh.

# _ping_start POD ADDRESS: 20 pings a second until _ping_lost.
_ping_start() {
  kube exec "$1" -- sh -c 'rm -f /tmp/stop' || return 1
  kube exec "$1" -- sh -c "ping -i 0.05 -W 2 $2 >/tmp/pings & child=\$!
    while [ ! -e /tmp/stop ]; do sleep 0.1; done; kill -INT \$child; wait \$child; exit 0" &
  PINGING=$!
}

# _ping_lost POD: ends them, says how many there were, and fails if one was lost.
_ping_lost() {
  local said
  kube exec "$1" -- touch /tmp/stop || return 1
  wait "$PINGING" || return 1
  said=$(kube exec "$1" -- tail -n 2 /tmp/pings) || return 1
  lab_say "$(head -n 1 <<<"$said")"
  grep -q ' 0% packet loss' <<<"$said" || { lab_error "pings were lost: $said" && return 1; }
}

# While an agent has no other pod yet, its link is what a rolling update must not touch.
case_rolling_update() {
  local from
  from=$(_pod web1)
  _ping_start "$from" "$(_pod web2 3)" || return 1
  kube -n "$SYSTEM" rollout restart daemonset/spoke-netagent || return 1
  kube -n "$SYSTEM" rollout status daemonset/spoke-netagent --timeout=120s || return 1
  _ping_lost "$from"
}

# _agent_pod NODE: the name of the agent's pod there.
_agent_pod() {
  kube -n "$SYSTEM" get pods --selector app.kubernetes.io/name=spoke-netagent -o json |
    jq -r --arg node "$1" '.items[] | select(.spec.nodeName == $node).metadata.name'
}

_agent_ready() {
  kube -n "$SYSTEM" get pod "$(_agent_pod "$1")" -o json |
    jq -e '.status.conditions[] | select(.type == "Ready" and .status == "True")'
}

_agent_told() {
  local told
  told=$(kube -n "$SYSTEM" get events --field-selector "involvedObject.name=$(_agent_pod "$1")" -o json |
    jq -r '.items[] | select(.reason == "Unhealthy").message')
  printf '%s\n' "$told"
  grep -qF "$2" <<<"$told"
}

# Another network's configuration that comes before ours: pods would get that one.
case_foreign_network() {
  printf '{"cniVersion": "1.0.0", "name": "other", "plugins": [{"type": "ptp"}]}\n' |
    lab_node_write node2 /etc/cni/net.d/00-other.conflist || return 1
  lab_wait 120 "the agent's readiness to name the other network" "$(lab_node_log node2 kubelet)" \
    _agent_told node2 00-other.conflist || return 1
  lab_node_exec node2 rm /etc/cni/net.d/00-other.conflist || return 1
  lab_wait 120 "the agent to be ready again" "$(lab_node_log node2 kubelet)" _agent_ready node2
}

_some_agent_told() { _agent_told node1 "$1" || _agent_told node2 "$1"; }

_one_updated_one_ready() {
  kube -n "$SYSTEM" get daemonset spoke-netagent -o json | jq -ce '.status |
    {updatedNumberScheduled, numberReady} | (., . == {updatedNumberScheduled: 1, numberReady: 1})'
}

# An address that nobody has: the first agent that gets it is not ready and says why, so the others keep
# what works. No pod that runs notices.
case_wrong_server() {
  local right=$LAB_DIR/overlay/netagent.yaml from
  from=$(_pod web1)
  _ping_start "$from" "$(_pod web2 3)" || return 1
  cp "$right" "$LAB_DIR/netagent-right.yaml" || return 1
  sed -i 's|^server: .*|server: 10.20.9.9:7443|' "$right" || return 1
  kube apply -k "$LAB_DIR/overlay" || return 1
  lab_wait 120 "an agent's readiness to name the wrong address" "$(lab_node_log node1 kubelet)" \
    _some_agent_told 10.20.9.9:7443 || return 1
  lab_wait 60 "one agent to be updated, and the other to be ready" "$(lab_node_log node1 kubelet)" _one_updated_one_ready || return 1
  _deployed afterwrong 2 node1 && _deployed afterwrong2 2 node2 || return 1
  cp "$LAB_DIR/netagent-right.yaml" "$right" || return 1
  kube apply -k "$LAB_DIR/overlay" || return 1
  kube -n "$SYSTEM" rollout status daemonset/spoke-netagent --timeout=120s || return 1
  _ping_lost "$from"
}

# _kill NODE PROGRAM: kills its one process there, as the kernel does when memory is short. PROGRAM as
# the kernel has it: 15 bytes.
_kill() {
  local process
  process=$(lab_node_exec "$1" pgrep -x "$2" | head -n 1)
  [[ -n $process ]] || { lab_error "no $2 runs on $1" && return 1; }
  lab_node_exec "$1" kill -KILL "$process"
}

case_agent_killed() {
  local from
  from=$(_pod web1)
  _ping_start "$from" "$(_pod web2 3)" || return 1
  _kill node1 spoke-netagent || return 1
  _deployed afteragent 2 node1 || return 1
  lab_wait 60 "the agent to be ready again" "$(lab_node_log node1 kubelet)" _agent_ready node1 || return 1
  _ping_lost "$from"
}

_server_answers() { server_ctl status; }

case_server_killed() {
  _kill node1 spoke-ipam-serv || return 1
  _deployed afterserver 2 node2 || return 1
  lab_wait 60 "the server to answer again" "$(lab_node_log node1 kubelet)" _server_answers || return 1
  kube -n "$SYSTEM" rollout status statefulset/spoke-ipam-server --timeout=60s
}

_node_gone() { [[ -n $(kube_condition "$1") ]]; }

case_node_killed() {
  lab_node_down node2
  lab_wait 60 "Kubernetes to see that node2 is gone" "$(lab_node_log "$LAB_CONTROL" kube-controller-manager)" \
    _node_gone node2 || return 1
  _deployed afternode 2 node1 || return 1
  # The cloud still has its addresses on its NIC: nobody else may get them.
  server_ctl node list -o json | jq -e '.[] | select(.name == "node2" and (.connected | not) and
    (.attached | tonumber) > 0)' >/dev/null ||
    { lab_error "the server does not keep the addresses of node2" && return 1; }
}

_no_pods() {
  [[ -z $(kube get pods -o name) ]] && ! lab_pod_traces node1 | grep -v '^process'
}

# Says what differs. 1: something does; more: it could not be compared.
_as_before() { diff "$LAB_DIR/before-node1" <(_listing node1); }

case_uninstall() {
  _as_before >/dev/null
  [[ $? == 1 ]] || { lab_error "the listing of node1 does not show that we are there" && return 1; }
  kube delete deployment --all >/dev/null && kube delete service web2 --ignore-not-found >/dev/null ||
    return 1
  if ! lab_node_running node2 kubelet 2>/dev/null; then
    kube delete pods --all --force --grace-period=0 --field-selector spec.nodeName=node2 >/dev/null 2>&1
    kube delete node node2 >/dev/null || return 1
  fi
  lab_wait 90 "all pods to go" "$(lab_node_log node1 kubelet)" _no_pods || return 1
  kube delete -k "$LAB_DIR/overlay" --timeout=120s || return 1
  kube apply -k "$LAB_DIR/kubernetes/cleanup" || return 1
  kube -n spoke-cleanup rollout status daemonset/spoke-cleanup --timeout=60s ||
    { kube -n spoke-cleanup describe pods | tail -n 40 && return 1; }
  lab_show kube -n spoke-cleanup logs --tail=-1 --container cleanup \
    --selector app.kubernetes.io/name=spoke-cleanup
  kube delete -k "$LAB_DIR/kubernetes/cleanup" --timeout=120s || return 1
  lab_wait 60 "node1 to be as before the installation" "" _as_before
}
