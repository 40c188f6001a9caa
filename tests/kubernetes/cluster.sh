# shellcheck shell=bash
# A Kubernetes cluster of the lab's machines: the control plane on one, kubelet, kube-proxy and
# containerd on the others. Nothing of it knows Spoke. To be sourced after lab.sh.
#
# KUBERNETES_BIN is the directory of the programs (scripts/kubernetes.sh).

readonly KUBE_API=${LAB_ADDRESSES[$LAB_CONTROL]}
readonly KUBE_SERVICES=10.96.0.0/16
readonly KUBE_API_SERVICE=10.96.0.1
readonly KUBE_ADMIN_TOKEN=lab-admin
KUBE_TAINTS=''  # What a test may set: taints that nodes register with.

# kube ARGUMENTS...: kubectl, as administrator.
kube() {
  lab_node_exec "$LAB_CONTROL" "$KUBERNETES_BIN/kubectl" --kubeconfig=/etc/kubernetes/admin.conf \
    --cache-dir=/run/kubectl "$@"
}

# _kube_log PROGRAM [MACHINE]
_kube_log() { lab_node_log "${2:-$LAB_CONTROL}" "$1"; }

# _kube_config TOKEN: a client's configuration.
_kube_config() {
  cat <<CONFIG
apiVersion: v1
kind: Config
clusters: [{name: lab, cluster: {server: "https://$KUBE_API:6443", certificate-authority: /etc/kubernetes/ca.crt}}]
users: [{name: user, user: {token: $1}}]
contexts: [{name: lab, context: {cluster: lab, user: user}}]
current-context: lab
CONFIG
}

# The API server's certificate and the key that signs tokens.
_kube_certificates() (
  lab_certificates || exit 1
  cd "$LAB_DIR/tls" || exit 1
  make_all() {
    _lab_certificate apiserver kube-apiserver "extendedKeyUsage = serverAuth" \
      "subjectAltName = IP:$KUBE_API, IP:$KUBE_API_SERVICE, DNS:kubernetes" &&
      openssl genrsa -out tokens.key 2048 &&
      openssl rsa -in tokens.key -pubout -out tokens.pub
  }
  if ! make_all >>openssl.log 2>&1; then
    lab_error "openssl makes no certificate for the API server"
    exit 1
  fi
)

_kube_copy() {
  local file
  for file in "${@:2}"; do
    lab_node_exec "$1" install -D -m 0600 "$LAB_DIR/tls/$file" "/etc/kubernetes/$file" || return 1
  done
}

_kube_ready() { [[ $(kube get --raw /readyz) == ok ]]; }

# kube_control_up: etcd, API server, controllers, scheduler.
kube_control_up() {
  local api=(
    --etcd-servers=http://127.0.0.1:2379 "--service-cluster-ip-range=$KUBE_SERVICES"
    "--bind-address=$KUBE_API" "--advertise-address=$KUBE_API" --secure-port=6443 --insecure-port=0
    --tls-cert-file=/etc/kubernetes/apiserver.crt --tls-private-key-file=/etc/kubernetes/apiserver.key
    --cert-dir=/run/kubernetes --token-auth-file=/etc/kubernetes/tokens.csv
    --authorization-mode=RBAC --service-account-issuer=https://kubernetes.lab
    --service-account-signing-key-file=/etc/kubernetes/tokens.key
    --service-account-key-file=/etc/kubernetes/tokens.pub
    --kubelet-preferred-address-types=InternalIP --allow-privileged=true)
  _kube_certificates || return 1
  _kube_copy "$LAB_CONTROL" ca.crt apiserver.crt apiserver.key tokens.key tokens.pub || return 1
  _kube_config "$KUBE_ADMIN_TOKEN" | lab_node_write "$LAB_CONTROL" /etc/kubernetes/admin.conf || return 1
  printf '%s,admin,admin,system:masters\n' "$KUBE_ADMIN_TOKEN" |
    lab_node_write "$LAB_CONTROL" /etc/kubernetes/tokens.csv || return 1
  lab_node_spawn "$LAB_CONTROL" etcd etcd --data-dir /var/lib/etcd --unsafe-no-fsync \
    --log-level error || return 1
  lab_node_spawn "$LAB_CONTROL" kube-apiserver "$KUBERNETES_BIN/kube-apiserver" "${api[@]}" || return 1
  lab_wait 90 "the API server to be ready" "$(_kube_log kube-apiserver)" _kube_ready || return 1
  # Short periods: a node that dies is to be seen within the patience of a test.
  lab_node_spawn "$LAB_CONTROL" kube-controller-manager "$KUBERNETES_BIN/kube-controller-manager" \
    --kubeconfig=/etc/kubernetes/admin.conf --root-ca-file=/etc/kubernetes/ca.crt \
    --service-account-private-key-file=/etc/kubernetes/tokens.key --leader-elect=false \
    --kube-api-qps=100 --kube-api-burst=200 --node-monitor-grace-period=10s \
    --pod-eviction-timeout=10s || return 1
  lab_node_spawn "$LAB_CONTROL" kube-scheduler "$KUBERNETES_BIN/kube-scheduler" \
    --kubeconfig=/etc/kubernetes/admin.conf --leader-elect=false --kube-api-qps=100 \
    --kube-api-burst=200 || return 1
  lab_wait 30 "the first service account" "$(_kube_log kube-controller-manager)" \
    kube get serviceaccount default
}

# kubelet sets sysctls of the whole machine: on NODE it is shown the values that it wants.
_kube_hide_sysctls() {
  # shellcheck disable=SC2016  # Expanded by the inner shell.
  lab_node_exec "$1" bash -c 'set -e
    for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
      kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
      file=/run/sysctls/${setting%=*}
      mkdir -p "${file%/*}"
      echo "${setting#*=}" >"$file"
      mount --bind "$file" "/proc/sys/${setting%=*}"
    done'
}

_kube_kubelet_config() {
  cat <<'CONFIG'
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
failSwapOn: false
oomScoreAdj: 0
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
clusterDomain: cluster.local
clusterDNS: [10.96.0.10]
healthzBindAddress: 127.0.0.1
evictionHard: {nodefs.available: "1%", imagefs.available: "1%", memory.available: 50Mi}
imageGCHighThresholdPercent: 100
syncFrequency: 10s
nodeStatusUpdateFrequency: 1s
kubeAPIQPS: 100
kubeAPIBurst: 200
eventRecordQPS: 50
maxPods: 110
resolvConf: ""
CONFIG
}

# kube_node_up NODE: containerd, kubelet and kube-proxy. Without a network configuration the node
# registers and stays NotReady.
kube_node_up() {
  local node=$1
  # The node is as bare as a new machine: what the lab has prepared for Spoke is not there.
  lab_node_exec "$node" bash -c 'rm -f /opt/cni/bin/spoke; rmdir /run/spoke' || return 1
  _kube_hide_sysctls "$node" || return 1
  _kube_copy "$node" ca.crt || return 1
  _kube_config "$KUBE_ADMIN_TOKEN" | lab_node_write "$node" /etc/kubernetes/kubelet.conf || return 1
  _kube_kubelet_config | lab_node_write "$node" /etc/kubernetes/kubelet.yaml || return 1
  # kubelet asks for a cloud's metadata, for seconds where nobody answers.
  lab_node_exec "$node" ip route add unreachable 169.254.0.0/16 || return 1
  lab_containerd_up "$node" || return 1
  lab_node_spawn "$node" kubelet "$KUBERNETES_BIN/kubelet" --config=/etc/kubernetes/kubelet.yaml \
    --kubeconfig=/etc/kubernetes/kubelet.conf "--hostname-override=$node" \
    "--node-ip=${LAB_ADDRESSES[$node]}" --container-runtime=remote \
    --container-runtime-endpoint=unix:///run/containerd/containerd.sock --cgroup-root=/ \
    --root-dir=/var/lib/kubelet --cert-dir=/var/lib/kubelet/pki "--register-with-taints=$KUBE_TAINTS" \
    "--pod-infra-container-image=$LAB_PAUSE_IMAGE" || return 1
  lab_node_spawn "$node" kube-proxy "$KUBERNETES_BIN/kube-proxy" \
    --kubeconfig=/etc/kubernetes/kubelet.conf "--hostname-override=$node" \
    --cluster-cidr=10.20.0.0/16 --proxy-mode=iptables --oom-score-adj=0 \
    --conntrack-max-per-core=0 --conntrack-tcp-timeout-established=0 \
    --conntrack-tcp-timeout-close-wait=0 --iptables-sync-period=10s --iptables-min-sync-period=0 || return 1
  lab_wait 60 "$node to register" "$(_kube_log kubelet "$node")" kube get node "$node"
}

# kube_image NODE ARCHIVE: gives NODE's runtime an image.
kube_image() {
  local log
  log=$(_kube_log containerd "$1")
  lab_node_exec "$1" ctr -n k8s.io images import "$2" >>"$log" 2>&1 ||
    { lab_error "containerd on $1 takes no image $2" && _lab_show_log "$log" 20 && return 1; }
}

# kube_condition NODE: why it is not ready; nothing when it is.
kube_condition() {
  kube get node "$1" -o json |
    jq -r '.status.conditions[] | select(.type == "Ready" and .status != "True") | .message'
}

_kube_node_ready() { [[ -z $(kube_condition "$1") ]]; }

# kube_wait_node NODE SECONDS: waits until it is ready.
kube_wait_node() {
  lab_wait "$2" "node $1 to be ready" "$(_kube_log kubelet "$1")" _kube_node_ready "$1"
}

# kube_pods SELECTOR: "name node address phase" of each pod in the default namespace.
kube_pods() {
  kube get pods --selector "$1" -o json | jq -r '.items[] |
    "\(.metadata.name) \(.spec.nodeName // "-") \(.status.podIP // "-") \(.status.phase)"'
}

# kube_fabric_patch: prints a patch that lets servers write what the lab's fabric reads.
kube_fabric_patch() {
  cat <<PATCH
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: spoke-ipam-server, namespace: $SYSTEM}
spec:
  template:
    spec:
      containers:
        - name: ipam-server
          volumeMounts: [{name: fabric, mountPath: /run/fabric}]
      volumes: [{name: fabric, hostPath: {path: $LAB_DIR/cloud}}]
PATCH
}
