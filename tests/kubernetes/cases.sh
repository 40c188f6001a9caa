# shellcheck shell=bash
# What a cluster's users and operators expect of its pods' network, a function a case. To be sourced;
# each returns non-zero after saying why.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly ROOT  # The root of the sources.
# shellcheck source=../e2e/lab/lab.sh
source "$ROOT/tests/e2e/lab/lab.sh"
# shellcheck source=cluster.sh
source "$ROOT/tests/kubernetes/cluster.sh"
# shellcheck source=failures.sh
source "$ROOT/tests/kubernetes/failures.sh"

readonly SYSTEM=spoke-system
readonly WEB_PORT=8080
POD_TOLERATIONS=  # What a test may set: tolerations of the pods that it makes.

# _server_volume: makes a disk of node1 for the server, and prints the volume.
_server_volume() {
  # Writable for the server's own user, as fsGroup makes a cloud's disks.
  lab_node_exec node1 install -d -o 7443 -g 7443 /var/lib/spoke-data || return 1
  cat <<VOLUME
apiVersion: v1
kind: PersistentVolume
metadata: {name: spoke-data}
spec:
  capacity: {storage: 2Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  claimRef: {namespace: $SYSTEM, name: data-spoke-ipam-server-0}
  hostPath: {path: /var/lib/spoke-data}
  nodeAffinity:
    required:
      nodeSelectorTerms:
        - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node1]}]
VOLUME
}

# The overlay of this cluster: a static cloud whose network is the lab's fabric.
_overlay_make() {
  local overlay=$LAB_DIR/overlay from=$LAB_DIR/kubernetes
  mkdir -p "$overlay" && _manifests_of_then || return 1
  chmod 0777 "$LAB_DIR/cloud"
  sed -e "s|attachments_file: .*|attachments_file: /run/fabric/attachments|" \
    -e 's|cidr: .*|cidr: 10.20.64.0/23|' \
    -e 's|^  min: .*|  min: 128|' "$from/overlays/static/ipam-server.yaml" \
    >"$overlay/ipam-server.yaml" || return 1
  # The lab's nodes share one machine, so one DMI UUID. (The agent expands the name.)
  {
    cat "$from/base/config/netagent.yaml"
    printf 'vm_id: vm-%s\ncooldown: 2s\n' "\${NODE_NAME}"
  } >"$overlay/netagent.yaml"
  _server_volume >"$overlay/volume.yaml" || return 1
  kube_fabric_patch >"$overlay/fabric.yaml"
  cat >"$overlay/kustomization.yaml" <<KUSTOMIZATION
bases: [$(realpath --relative-to "$overlay" "$from/overlays/static")]
namespace: $SYSTEM
resources: [volume.yaml]
patchesStrategicMerge: [fabric.yaml]
configMapGenerator:
  - {name: spoke-ipam-server-config, behavior: merge, files: [ipam-server.yaml]}
  - {name: spoke-netagent-config, behavior: merge, files: [netagent.yaml]}
KUSTOMIZATION
}

# server_ctl ARGUMENTS...: spokectl, where the server runs.
server_ctl() { kube -n "$SYSTEM" exec -i spoke-ipam-server-0 -- /usr/bin/spokectl "$@"; }

# Prints what the node has, for a comparison: nothing that changes by itself.
_listing() {
  # shellcheck disable=SC2016  # Expanded by the inner shell.
  lab_node_exec "$1" bash -c '
    ip -o link | sed "s/^[0-9]*: //; s/@if[0-9]*//"
    ip -4 route show table all; ip -6 route show table all | grep -v "^fe80\|^multicast\|ff00::"
    ip rule; ip -6 rule; ip neighbour show nud permanent
    nft list ruleset 2>/dev/null | sed "s/counter packets [0-9]* bytes [0-9]*/counter/"
    for device in $(ls /sys/class/net); do tc qdisc show dev "$device"; done | sed "s/ refcnt.*//"
    tc filter show dev eth0 ingress; tc filter show dev eth0 egress
    find /etc/cni /opt/cni /run/spoke /var/lib/spoke /run/netns /etc/spoke 2>/dev/null | sort'
}

readonly POLICY_OF_THEN='s|^apiVersion: policy/v1$|apiVersion: policy/v1beta1|'

# The manifests with the API versions and the kustomizations that this Kubernetes has: it is older than two of them, and
# than today's kustomize. As $LAB_DIR/kubernetes.
_manifests_of_then() {
  rm -rf "$LAB_DIR/kubernetes"
  cp -r "$ROOT/conf/kubernetes" "$LAB_DIR/kubernetes" || return 1
  "$ROOT/tests/kubernetes/kustomize_of_then.py" "$LAB_DIR/kubernetes" || return 1
  sed -i "$POLICY_OF_THEN" "$LAB_DIR"/kubernetes/{ha,etcd}/*.yaml
  sed -i '/^apiVersion: batch\/v1$/{N;s|batch/v1\nkind: CronJob|batch/v1beta1\nkind: CronJob|}' "$LAB_DIR"/kubernetes/backup/*.yaml
}

case_manifests() {
  local overlay said
  _manifests_of_then || return 1
  for overlay in "$LAB_DIR"/kubernetes/overlays/*/ "$LAB_DIR"/kubernetes/{cleanup,backup,restore}/; do
    said=$(kube apply --dry-run=client -k "$overlay" 2>&1) ||
      { lab_error "$overlay: $said" && return 1; }
  done
  said=$(kube_condition node1)
  if [[ $said != *"cni"* && $said != *"network"* ]]; then
    lab_error "node1 is said to be: \"$said\", though there is no pod network"
    return 1
  fi
}

case_install() {
  local node
  for node in "${LAB_NODES[@]}"; do _listing "$node" >"$LAB_DIR/before-$node" || return 1; done
  _overlay_make || return 1
  lab_fabric_started || return 1
  _system_up
}

# _system_up: installs by the overlay, and waits until server, agents and nodes are ready.
_system_up() {
  local node
  kube apply -k "$LAB_DIR/overlay" || return 1
  kube -n "$SYSTEM" rollout status statefulset/spoke-ipam-server --timeout=120s || { _system_told && return 1; }
  kube -n "$SYSTEM" rollout status daemonset/spoke-netagent --timeout=120s || { _system_told && return 1; }
  for node in "${LAB_NODES[@]}"; do kube_wait_node "$node" 60 || return 1; done
  lab_show server_ctl node list
}

# The runtime filters the agent's calls, it has the manifest's capabilities, and it finds nothing that it
# cannot do or see. NET_BROADCAST, NET_ADMIN, NET_RAW and SYS_ADMIN are the bits 11, 12, 13 and 21.
case_rights() {
  local node status agent
  for node in "${LAB_NODES[@]}"; do
    # shellcheck disable=SC2016  # Expanded by the inner shell.
    status=$(lab_node_exec "$node" sh -c 'cat "/proc/$(pgrep -o -x spoke-netagent)/status"') || return 1
    if [[ $(grep -cE '^(Cap(Prm|Eff|Bnd):.0*203800|Seccomp:.2|NoNewPrivs:.1)$' <<<"$status") != 5 ]]; then
      lab_error "the agent on $node: $(grep -E '^(Cap|Secc|NoNew)' <<<"$status")"
      return 1
    fi
    agent=$(kube -n "$SYSTEM" get pods --selector app.kubernetes.io/name=spoke-netagent \
      --field-selector "spec.nodeName=$node" -o jsonpath='{.items[0].metadata.name}')
    if kube -n "$SYSTEM" logs "$agent" | grep -iE 'not permitted|permission denied|read-only|_unavailable|sysctl_failed'; then
      lab_error "something is refused to the agent on $node"
      return 1
    fi
    lab_show kube -n "$SYSTEM" exec "$agent" -- /usr/bin/spokectl doctor || return 1
  done
}

lab_fabric_started() { lab_node_running "$LAB_FABRIC" spoke-fabric; }

# Why the installation does not get on, as an operator would look.
_system_told() {
  kube -n "$SYSTEM" get pods -o wide
  kube -n "$SYSTEM" describe pods | grep -A 30 '^Events' | tail -n 60
  kube -n "$SYSTEM" logs --tail=20 --selector app.kubernetes.io/part-of=spoke --prefix || true
}

case_dry_run() {
  local overlay said
  _manifests_of_then || return 1
  for overlay in "$LAB_DIR"/kubernetes/overlays/*/ "$LAB_DIR"/kubernetes/{backup,restore}/; do
    # Three servers are not laid over one that runs (ha_test.sh installs them).
    if [[ $overlay == *-ha/ ]]; then continue; fi
    said=$(kube apply --dry-run=server -k "$overlay" 2>&1) ||
      { lab_error "the API server refuses $overlay: $said" && return 1; }
  done
  printf '{}\n' >"$LAB_DIR/values.yaml"
  _chart_taken "$LAB_DIR/values.yaml"
}

# _chart_taken VALUES.yaml: whether the API server takes what the chart renders with these.
_chart_taken() {
  local said
  GOPATH=/usr/share/gocode GO111MODULE=off GOFLAGS='' GOPROXY=off GOCACHE=$LAB_DIR/gocache \
    go run "$ROOT/tests/kubernetes/chart/main.go" render "$ROOT/conf/helm/spoke" "$1" >"$LAB_DIR/chart.yaml" || return 1
  sed -i "$POLICY_OF_THEN" "$LAB_DIR/chart.yaml" || return 1
  said=$(kube apply --dry-run=server -f "$LAB_DIR/chart.yaml" 2>&1) ||
    { lab_error "the API server refuses the chart: $said" && return 1; }
}

# _deployment NAME REPLICAS [NODE] [ANNOTATIONS] [PORTS]: pods that serve a file at WEB_PORT.
_deployment() {
  local node=${3:-} annotations=${4:-} ports=${5:-}
  kube apply -f - <<DEPLOYMENT
apiVersion: apps/v1
kind: Deployment
metadata: {name: $1}
spec:
  replicas: $2
  selector: {matchLabels: {app: $1}}
  template:
    metadata: {labels: {app: $1}, annotations: {$annotations}}
    spec:
      ${node:+nodeSelector: {kubernetes.io/hostname: $node\}}
      terminationGracePeriodSeconds: 1
      tolerations: [$POD_TOLERATIONS]
      containers:
        - name: web
          image: $LAB_TEST_IMAGE
          imagePullPolicy: Never
          command: [sh, -c, "mkdir -p /tmp/www; hostname >/tmp/www/index.html; truncate -s 8M /tmp/www/file; trap 'exit 0' TERM; httpd -f -p $WEB_PORT -h /tmp/www & wait"]
          ports: [$ports]
          resources: {requests: {cpu: 5m, memory: 8Mi}}
DEPLOYMENT
}

_deployed() {
  _deployment "$@" >/dev/null || return 1
  kube rollout status "deployment/$1" --timeout=120s >/dev/null
}

# _pod DEPLOYMENT [FIELD]: of its first running pod the name (1, the default), node (2) or address (3).
_pod() {
  kube_pods "app=$1" | awk -v field="${2:-1}" '$4 == "Running" {print $field; exit}'
}

_all_running() { [[ $(kube_pods "app=$1" | awk '$4 == "Running"' | wc -l) == "$2" ]]; }

case_hundred_pods() {
  local began=$EPOCHREALTIME took addresses
  _deployment crowd 100 >/dev/null || return 1
  lab_wait 180 "100 pods to run" "$(lab_node_log node1 kubelet)" _all_running crowd 100 || return 1
  took=$(((${EPOCHREALTIME/[.,]/} - ${began/[.,]/}) / 1000))
  addresses=$(kube_pods app=crowd | awk '{print $3}' | sort -u)
  if [[ $(wc -l <<<"$addresses") != 100 ]]; then
    lab_error "100 pods have $(wc -l <<<"$addresses") addresses"
    return 1
  fi
  if grep -qvE '^10\.20\.6[45]\.' <<<"$addresses"; then
    lab_error "some addresses are not of the pool: $(grep -vE '^10\.20\.6[45]\.' <<<"$addresses" | head -3)"
    return 1
  fi
  lab_say "100 pods ran after $took ms, each with an address of its own"
  kube delete deployment crowd --wait=true >/dev/null
}

case_pod_to_pod() {
  local from address source
  _deployed web1 1 node1 && _deployed web2 1 node2 || return 1
  from=$(_pod web1) address=$(_pod web2 3) source=$(_pod web1 3)
  lab_capture_start node2 || return 1
  kube exec "$from" -- ping -c 3 -i 0.2 -W 2 "$address" || return 1
  lab_capture_stop node2 || return 1
  lab_expect_on_wire node2 "$source" "$address"
}

# _fetch POD URL: what a web server says. (busybox' own time limit crashes it where it is static.)
_fetch() { kube exec "$1" -- timeout 5 wget -q -O - "$2"; }

case_service() {
  local address said
  kube expose deployment web2 --name=web2 --port=80 --target-port="$WEB_PORT" >/dev/null || return 1
  address=$(kube get service web2 -o jsonpath='{.spec.clusterIP}')
  lab_wait 20 "the Service to lead to its pod" "$(lab_node_log node1 kube-proxy)" \
    _fetch "$(_pod web1)" "http://$address/" || return 1
  said=$(_fetch "$(_pod web1)" "http://$address/") || return 1
  [[ $said == "$(_pod web2)" ]] || { lab_error "the Service leads to \"$said\"" && return 1; }
}

case_host_port() {
  local said
  _deployed ported 1 node2 '' "{containerPort: $WEB_PORT, hostPort: 18080}" || return 1
  said=$(lab_node_exec "$LAB_CONTROL" curl --noproxy '*' --silent --max-time 5 \
    "http://${LAB_ADDRESSES[node2]}:18080/") || return 1
  [[ $said == "$(_pod ported)" ]] || { lab_error "the host port leads to \"$said\"" && return 1; }
}

# _download_mbit POD URL: the rate of a download of 8 MiB, in Mbit/s.
_download_mbit() {
  kube exec "$1" -- sh -c "begin=\$(cut -d ' ' -f 1 /proc/uptime)
    wget -q -O /tmp/copy '$2' || exit 1
    echo \"\$begin \$(cut -d ' ' -f 1 /proc/uptime)\"" |
    awk '{printf "%d\n", 8 * 8.388608 / ($2 - $1)}'
}

case_bandwidth() {
  local rate
  _deployed limited 1 node2 'kubernetes.io/ingress-bandwidth: 20M' || return 1
  rate=$(_download_mbit "$(_pod limited)" "http://$(_pod web1 3):$WEB_PORT/file") || return 1
  lab_say "a pod limited to 20 Mbit/s downloads with $rate"
  ((rate >= 14 && rate <= 24)) || { lab_error "that is not its limit" && return 1; }
}

# The outside is a host that is no node of the cluster and in none of its networks.
case_egress() {
  local outside=${LAB_ADDRESSES[$LAB_INTERNET]} seen
  lab_node_exec "$LAB_INTERNET" mkdir -p /run/outside || return 1
  lab_node_spawn "$LAB_INTERNET" outside busybox httpd -f -vv -h /run/outside -p "$outside:8088" || return 1
  server_ctl apply -f - <<POLICY || return 1
apiVersion: spoke/v1
kind: ClusterNetwork
metadata: {name: main}
spec: {cluster: [10.20.0.0/$LAB_SUBNET_LENGTH, $KUBE_SERVICES]}
---
apiVersion: spoke/v1
kind: EgressPolicy
metadata: {name: outside}
spec: {destinationCIDRs: ["$outside/32"], mode: Masquerade, priority: 100}
POLICY
  lab_wait 20 "a translated request to reach the outside" "$(lab_node_log "$LAB_INTERNET" outside)" \
    _outside_saw "$(_pod web1)" "http://$outside:8088/" "${LAB_ADDRESSES[node1]}"
  seen=$?
  lab_node_kill "$LAB_INTERNET" outside KILL
  return "$seen"
}

_outside_saw() {
  _fetch "$1" "$2" || true
  grep -qF "$3" "$(lab_node_log "$LAB_INTERNET" outside)"
}

_prometheus_has() {
  lab_node_exec "$LAB_CONTROL" curl --noproxy '*' --silent --max-time 5 --get \
    --data-urlencode "query=$1" http://127.0.0.1:9090/api/v1/query | jq -e '.data.result | length > 0'
}

case_counters() {
  local token
  token=$(kube -n "$SYSTEM" get secret spoke-metrics -o 'jsonpath={.data.token}' | base64 -d) || return 1
  lab_node_write "$LAB_CONTROL" /etc/prometheus.yaml <<CONFIG || return 1
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: spoke-netagent
    authorization: {credentials: $token}
    static_configs: [{targets: ["${LAB_ADDRESSES[node1]}:9465", "${LAB_ADDRESSES[node2]}:9465"]}]
  - job_name: spoke-ipam-server
    authorization: {credentials: $token}
    static_configs: [{targets: ["${LAB_ADDRESSES[node1]}:9464"]}]
CONFIG
  lab_node_spawn "$LAB_CONTROL" prometheus prometheus --config.file=/etc/prometheus.yaml \
    --storage.tsdb.path=/run/prometheus --web.listen-address=127.0.0.1:9090 || return 1
  # Kubelets may take more than a minute to give agents a Secret that is newer than their pods.
  lab_wait 150 "Prometheus to read server and agents" "$(lab_node_log "$LAB_CONTROL" prometheus)" \
    _prometheus_has 'sum(up) == 3' || return 1
  kube exec "$(_pod web1)" -- wget -q -O /dev/null "http://$(_pod web2 3):$WEB_PORT/file" || return 1
  lab_wait 30 "the namespace's bytes" "$(lab_node_log "$LAB_CONTROL" prometheus)" \
    _prometheus_has 'sum(spoke_namespace_bytes_total{namespace="default"}) > 8000000'
}
