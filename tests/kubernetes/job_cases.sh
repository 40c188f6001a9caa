# shellcheck shell=bash
# What jobs and their cluster DNS expect of pods' network, a function a case. To be sourced after cases.sh; each
# returns non-zero after saying why.

readonly JOB_PODS=20  # As many as an all-reduce takes with two processors in less than half a minute.
readonly JOB_NAMESPACE=training
readonly DNS_IMAGE=docker.io/library/dns:test
readonly CLUSTER_DNS=10.96.0.10

# _image_everywhere ARCHIVE: gives every node the image.
_image_everywhere() {
  local node
  for node in "${LAB_NODES[@]}"; do kube_image "$node" "$1" || return 1; done
}

# _mpi_job PODS: they wait for mpirun, spread evenly over the nodes.
_mpi_job() {
  kube apply -f - >/dev/null <<JOB
apiVersion: batch/v1
kind: Job
metadata: {name: mpi, namespace: $JOB_NAMESPACE}
spec:
  parallelism: $1
  completions: $1
  backoffLimit: 0
  template:
    metadata: {labels: {app: mpi}}
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      topologySpreadConstraints:
        - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: mpi}}}
      containers:
        - name: rank
          image: $LAB_JOB_IMAGE
          imagePullPolicy: Never
          command: [sh, -c, "$LAB_JOB_COMMAND"]
          resources: {requests: {cpu: 5m, memory: 16Mi}}
JOB
}

# _reserved NAME: whether all nodes hold what was reserved.
_reserved() {
  server_ctl reserve list -o json | jq -ce --arg name "$1" '.[] | select(.name == $name)
    | (., .nodes_ready == (.nodes | length))'
}

# _attached_to NODE: how many addresses the cloud has put on its NIC for pods.
_attached_to() { server_ctl node list -o json | jq -r --arg node "$1" '.[] | select(.name == $node).attached'; }

_job_running() {
  kube -n "$JOB_NAMESPACE" get pods --selector app=mpi -o json |
    jq -ce --argjson count "$1" '[.items[] | select(.status.phase == "Running")] | length, length == $count'
}

# _mpi_sums HOSTS: mpirun of these hosts gives the sum, by ranks in their order.
_mpi_sums() {
  local hosts=$1 first said command began=$EPOCHREALTIME
  first=$(kube -n "$JOB_NAMESPACE" get pods -o json | jq -r --arg address "$(awk 'NR == 1 {print $1}' "$hosts")" \
    '.items[] | select(.status.podIP == $address).metadata.name')
  [[ -n $first ]] || { lab_error "no pod has the first address of $(head -n 1 "$hosts")" && return 1; }
  kube -n "$JOB_NAMESPACE" exec -i "$first" -- sh -c 'cat >/tmp/hosts' <"$hosts" || return 1
  mapfile -t command < <(lab_job_mpirun /tmp/hosts)
  said=$(kube -n "$JOB_NAMESPACE" exec "$first" -- timeout 120 "${command[@]}" 2>&1) || { lab_error "mpirun fails: $said" && return 1; }
  lab_job_expect "$hosts" "$said" || return 1
  lab_say "$(grep '^sum' <<<"$said"), after $(((${EPOCHREALTIME/[.,]/} - ${began/[.,]/}) / 1000)) ms"
}

# A job whose addresses are reserved starts whole, and its ranks reach each other by their pods' addresses.
case_mpi() {
  local node each=$((JOB_PODS / 2)) log hosts=$LAB_DIR/job/hosts
  declare -A before
  log=$(lab_node_log node1 kubelet)
  lab_job_image_make && _image_everywhere "$LAB_DIR/images/job.tar" || return 1
  for node in "${LAB_NODES[@]}"; do before[$node]=$(_attached_to "$node"); done
  server_ctl reserve create train --node node1 --node node2 --addresses-per-node "$each" --ttl 10m || return 1
  lab_wait 60 "both nodes to hold what is reserved" "" _reserved train || return 1
  for node in "${LAB_NODES[@]}"; do
    (($(_attached_to "$node") >= before[$node] + each)) ||
      { lab_error "$node had ${before[$node]} addresses, and has $(_attached_to "$node") with $each reserved" && return 1; }
  done
  kube create namespace "$JOB_NAMESPACE" >/dev/null && _mpi_job "$JOB_PODS" || return 1
  lab_wait 120 "the job's $JOB_PODS pods to run" "$log" _job_running "$JOB_PODS" || return 1
  server_ctl reserve hosts train --namespace "$JOB_NAMESPACE" --pods "$JOB_PODS" --slots 1 >"$hosts" || return 1
  _mpi_sums "$hosts" || return 1
  server_ctl reserve release train && kube delete namespace "$JOB_NAMESPACE" --wait=false >/dev/null
}

# _dns_pods SERVICE_ADDRESS: name servers on both nodes, behind the Service that every cluster has. Each knows the name
# `named` of the namespace default, and says at `instance` which node it is on.
_dns_pods() {
  kube apply -f - >/dev/null <<DNS
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: dns, namespace: kube-system}
spec:
  selector: {matchLabels: {app: dns}}
  template:
    metadata: {labels: {app: dns}}
    spec:
      dnsPolicy: Default
      terminationGracePeriodSeconds: 1
      containers:
        - name: dnsmasq
          image: $DNS_IMAGE
          imagePullPolicy: Never
          env: [{name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
          command: [dnsmasq, --keep-in-foreground, --user=root, --group=root, --conf-file=/dev/null, --pid-file=/tmp/dnsmasq.pid, --no-hosts, --no-resolv,
            --log-facility=-, --local=/cluster.local/, "--txt-record=instance.cluster.local,\$(NODE_NAME)",
            "--host-record=named.default.svc.cluster.local,$1"]
          resources: {requests: {cpu: 5m, memory: 8Mi}}
---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec:
  clusterIP: $CLUSTER_DNS
  selector: {app: dns}
  ports:
    - {name: dns, port: 53, protocol: UDP}
    - {name: dns-tcp, port: 53, protocol: TCP}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: asking}
spec:
  selector: {matchLabels: {app: asking}}
  template:
    metadata: {labels: {app: asking}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: asking, image: $DNS_IMAGE, imagePullPolicy: Never}]
DNS
}

# _dns_resolves POD UDP|TCP ADDRESS: what kubelet has written into the pod's resolv.conf leads to that address, over
# that protocol.
_dns_resolves() {
  local said how=+notcp
  if [[ $2 == TCP ]]; then how=+tcp; fi
  said=$(kube exec "$1" -- dig +search +tries=1 +timeout=2 "$how" named A) || { printf '%s\n' "$said" && return 1; }
  printf '%s\n' "$said"
  grep -q "^named\.default\.svc\.cluster\.local\..*[[:space:]]A[[:space:]]$3\$" <<<"$said" &&
    grep -qF "SERVER: $CLUSTER_DNS#53($CLUSTER_DNS) ($2)" <<<"$said"
}

# _dns_instances POD UDP|TCP: the nodes whose name servers answer the pod's questions, of which there are 24.
_dns_instances() {
  local how=+notcp
  if [[ $2 == TCP ]]; then how=+tcp; fi
  # shellcheck disable=SC2016  # Expanded by the pod's shell.
  kube exec "$1" -- sh -c 'for i in $(seq 24); do dig +short +tries=1 +timeout=2 "$1" instance.cluster.local TXT || exit 1; done' \
    sh "$how" | sort -u | tr -d '"' | paste -s -d ' '
}

# Names resolve in pods on either node, over UDP and TCP, by name servers in pods on either node.
case_cluster_dns() {
  local node pod address protocol said
  "$LAB_HOME/make_image.py" "$LAB_DIR/images/dns.tar" "$DNS_IMAGE" --package dnsmasq-base /usr/bin/dig || return 1
  _image_everywhere "$LAB_DIR/images/dns.tar" && _deployed named 1 node2 || return 1
  kube expose deployment named --port=80 --target-port="$WEB_PORT" >/dev/null || return 1
  address=$(kube get service named -o jsonpath='{.spec.clusterIP}') && _dns_pods "$address" || return 1
  kube -n kube-system rollout status daemonset/dns --timeout=120s >/dev/null &&
    kube rollout status daemonset/asking --timeout=120s >/dev/null || return 1
  for node in "${LAB_NODES[@]}"; do
    pod=$(kube_pods app=asking | awk -v node="$node" '$2 == node {print $1}')
    for protocol in UDP TCP; do
      lab_wait 20 "$pod on $node to resolve a name over $protocol" "$(lab_node_log "$node" kube-proxy)" \
        _dns_resolves "$pod" "$protocol" "$address" || return 1
      said=$(_dns_instances "$pod" "$protocol") || return 1
      [[ $said == 'node1 node2' ]] || { lab_error "on $node, over $protocol, name servers on \"$said\" answer" && return 1; }
    done
  done
  said=$(_fetch "$(_pod named)" "http://$address/") || return 1
  [[ $said == "$(_pod named)" ]] || { lab_error "the name leads to \"$said\"" && return 1; }
  lab_say "pods on both nodes resolve by name servers on both, over UDP and TCP"
  kube delete service named >/dev/null && kube -n kube-system delete service kube-dns >/dev/null &&
    kube delete deployment named >/dev/null && kube delete daemonset asking >/dev/null &&
    kube -n kube-system delete daemonset dns >/dev/null
}
