# shellcheck shell=bash
# What operators expect of three servers and their etcd on a cluster, a function a case. To be sourced after
# cases.sh; each returns non-zero after saying why.

readonly SERVERS=(spoke-ipam-server-0 spoke-ipam-server-1 spoke-ipam-server-2)
readonly ETCD_IMAGE=docker.io/library/etcd
readonly KUBECTL_IMAGE=docker.io/library/kubectl
readonly HA_IMAGE_TAG=lab

# ha_images_make: what stands in for the images of etcd and kubectl that the manifests name.
ha_images_make() {
  local bin=${ETCD_BIN:-/usr/bin}
  mkdir -p "$LAB_DIR/images" || return 1
  "$LAB_HOME/make_image.py" "$LAB_DIR/images/etcd.tar" "$ETCD_IMAGE:$HA_IMAGE_TAG" "$bin/etcd" \
    "$bin/etcdctl" || return 1
  "$LAB_HOME/make_image.py" "$LAB_DIR/images/kubectl.tar" "$KUBECTL_IMAGE:$HA_IMAGE_TAG" "$KUBERNETES_BIN/kubectl"
}

# ha_node_up NODE: a node of the cluster that has the images.
ha_node_up() {
  kube_node_up "$1" && kube_image "$1" "$HA_IMAGE" && kube_image "$1" "$LAB_DIR/images/etcd.tar" &&
    kube_image "$1" "$LAB_DIR/images/kubectl.tar"
}

# _disk NODE NAME SIZE: an empty disk of that machine, and the volume for whoever is put there.
_disk() {
  kube delete persistentvolume "$2-$1" --ignore-not-found >/dev/null || return 1
  # shellcheck disable=SC2016  # Expanded by the inner shell.
  lab_node_exec "$1" sh -c 'rm -rf "/var/lib/disks/$1" && mkdir -p "/var/lib/disks/$1"' sh "$2" || return 1
  kube apply -f - >/dev/null <<VOLUME
apiVersion: v1
kind: PersistentVolume
metadata: {name: $2-$1}
spec:
  capacity: {storage: $3}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: local
  local: {path: /var/lib/disks/$2}
  nodeAffinity:
    required:
      nodeSelectorTerms:
        - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [$1]}]
VOLUME
}

# _disks: for a server and a member of etcd on each machine. Which machine that is, the scheduler decides.
_disks() {
  local node
  kube apply -f - >/dev/null <<'CLASS' || return 1
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
CLASS
  for node in "${LAB_NODES[@]}"; do
    _disk "$node" server 2Gi && _disk "$node" etcd 8Gi || return 1
  done
}

# _kustomization FOLDER BASE LINES...: FOLDER is BASE of conf/kubernetes with the images that this cluster has.
_kustomization() {
  local folder=$LAB_DIR/$1
  mkdir -p "$folder" || return 1
  {
    printf 'bases: [%s]\n' "$(realpath --relative-to "$folder" "$LAB_DIR/kubernetes/$2")"
    printf 'namespace: %s\n' "$SYSTEM"
    printf 'images:\n'
    printf -- '- {name: %s, newName: %s, newTag: %s}\n' registry.k8s.io/etcd "$ETCD_IMAGE" "$HA_IMAGE_TAG" \
      docker.io/alpine/k8s "$KUBECTL_IMAGE" "$HA_IMAGE_TAG"
    printf '%s\n' "${@:3}"
  } >"$folder/kustomization.yaml"
}

# The overlay of this cluster: its network is the lab's fabric, which the leader tells who has what.
_ha_overlay_make() {
  local overlay=$LAB_DIR/overlay
  mkdir -p "$overlay" || return 1
  chmod 0777 "$LAB_DIR/cloud"
  sed "s|attachments_file: .*|attachments_file: /run/fabric/attachments|" \
    "$LAB_DIR/kubernetes/overlays/static-ha/ipam-server.yaml" >"$overlay/ipam-server.yaml" || return 1
  # The lab's nodes share one machine, so one DMI UUID. (The agent expands the name.)
  {
    cat "$LAB_DIR/kubernetes/ha/netagent.yaml"
    printf 'vm_id: vm-%s\ncooldown: 2s\n' "\${NODE_NAME}"
  } >"$overlay/netagent.yaml"
  kube_fabric_patch >"$overlay/fabric.yaml"
  _kustomization overlay overlays/static-ha 'patchesStrategicMerge: [fabric.yaml]' 'configMapGenerator:' \
    '- {name: spoke-ipam-server-config, behavior: merge, files: [ipam-server.yaml]}' \
    '- {name: spoke-netagent-config, behavior: merge, files: [netagent.yaml]}'
}

# The Secrets, as KUBERNETES.md has them made.
_ha_secrets() {
  local etcd=$LAB_DIR/etcd members=() also=() i node
  for i in 0 1 2; do
    members+=("spoke-etcd-$i=$(kube -n "$SYSTEM" get service "spoke-etcd-$i" -o 'jsonpath={.spec.clusterIP}')")
  done
  for node in "${LAB_NODES[@]}"; do also+=(--also "${LAB_ADDRESSES[$node]}"); done
  "$ROOT/scripts/etcd_files.sh" -o "$etcd" --client-port 12379 --peer-port 12380 --metrics-port 12381 \
    --files /etc/etcd --data /var/lib/etcd/data "${also[@]}" "${members[@]}" >/dev/null || return 1
  mv "$etcd/ca.key" "$LAB_DIR/etcd-ca.key" || return 1
  openssl rand -hex 32 >"$LAB_DIR/seal.key" || return 1
  kube -n "$SYSTEM" create secret generic spoke-etcd --from-file="$etcd" &&
    kube -n "$SYSTEM" create secret generic spoke-etcd-client --from-file="$etcd/ca.pem" \
      --from-file="$etcd/client.pem" --from-file="$etcd/client.key" &&
    kube -n "$SYSTEM" create secret generic spoke-seal --from-file="$LAB_DIR/seal.key"
}

# _rolled_out OBJECT [SECONDS]
_rolled_out() {
  kube -n "$SYSTEM" rollout status "$1" --timeout="${2:-180}s" || { _system_told && return 1; }
}

# _node_of POD: the name of the node that it is on.
_node_of() { kube -n "$SYSTEM" get pod "$1" -o 'jsonpath={.spec.nodeName}'; }

# _living: the servers whose machines live.
_living() {
  local server node
  for server in "${SERVERS[@]}"; do
    node=$(_node_of "$server") || continue
    if [[ -n $node && -d $LAB_DIR/machine/$node ]]; then printf '%s\n' "$server"; fi
  done
}

# _at SERVER ARGUMENTS...: spokectl, where that server runs.
_at() { kube -n "$SYSTEM" exec -i "$1" -- /usr/bin/spokectl "${@:2}" </dev/null; }

# _leader: the name of the server that leads. A standby is known by its exit code.
_leader() {
  local server found='' code
  for server in $(_living); do
    code=0
    _at "$server" pool list >/dev/null 2>"$LAB_DIR/said" || code=$?
    case $code in
      0) found+=${found:+ }$server ;;
      5) ;;
      *) printf '%s: exit code %s: %s\n' "$server" "$code" "$(cat "$LAB_DIR/said")" >&2 && return 1 ;;
    esac
  done
  printf '%s\n' "$found"
  [[ -n $found && $found != *' '* ]]
}

# leader_ctl ARGUMENTS...: spokectl, where the server runs that leads.
leader_ctl() {
  local leader
  leader=$(_leader) || { printf 'no server leads, or several: "%s"\n' "$leader" >&2 && return 1; }
  _at "$leader" "$@"
}

# _connected NODE...: whether these nodes' agents have a session with the leader.
_connected() {
  local nodes
  nodes=$(leader_ctl node list -o json) || return 1
  printf '%s\n' "$nodes"
  jq -e --arg nodes "$*" '[.[] | select(.connected).name] | sort | join(" ") == $nodes' >/dev/null <<<"$nodes"
}

# _leading NODE...: whether the metrics of the servers there say that one of them leads. Asks from another
# machine, as Prometheus does, with the token that is published.
_leading() {
  local token node said=''
  token=$(kube -n "$SYSTEM" get secret spoke-metrics -o 'jsonpath={.data.token}' | base64 -d) || return 1
  for node in "$@"; do
    said+=$(lab_node_exec "$LAB_CONTROL" curl --noproxy '*' --silent --show-error --fail --max-time 5 \
      --header "Authorization: Bearer $token" "http://${LAB_ADDRESSES[$node]}:9464/metrics") || return 1
    said+=$'\n'
  done
  awk '$1 == "spoke_ipam_leading" {print; sum += $2; ++count} END {exit !(sum == 1 && count == '$#')}' <<<"$said"
}

# _spread LABEL: whether its three pods are on three machines.
_spread() {
  local nodes
  nodes=$(kube -n "$SYSTEM" get pods --selector "app.kubernetes.io/name=$1" -o json |
    jq -r '.items[].spec.nodeName' | sort | paste -s -d ' ')
  [[ $nodes == "${LAB_NODES[*]}" ]] || { lab_error "the pods of $1 are on \"$nodes\"" && return 1; }
}

case_ha_install() {
  local node
  _manifests_of_then && _disks && _ha_overlay_make && lab_fabric_started || return 1
  kube apply -k "$LAB_DIR/overlay" && _ha_secrets || return 1
  _rolled_out statefulset/spoke-etcd && _rolled_out statefulset/spoke-ipam-server &&
    _rolled_out daemonset/spoke-netagent || return 1
  for node in "${LAB_NODES[@]}"; do kube_wait_node "$node" 60 || return 1; done
  _spread spoke-ipam-server && _spread spoke-etcd || return 1
  lab_wait 30 "one server to lead" "" _leader || return 1
  [[ $(kube -n "$SYSTEM" get endpoints spoke-ipam-server -o json | jq '[.subsets[].addresses[]] | length') == 3 ]] ||
    { lab_error "the Service does not have three ready endpoints" && return 1; }
  lab_wait 60 "three agents to be connected" "" _connected "${LAB_NODES[@]}" || return 1
  printf 'ha: {enabled: true}\n' >"$LAB_DIR/ha.yaml"
  _chart_taken "$LAB_DIR/ha.yaml" || return 1
  # Kubelets may take more than a minute to give pods a Secret that is newer than they are.
  lab_wait 150 "the metrics of all servers, for whom shows the token" "" _leading "${LAB_NODES[@]}" || return 1
  lab_say "$(_leader) leads"
  lab_show leader_ctl node list
}

# Servers and members are replaced one by one, while pods ping and new ones come.
case_ha_rollout() {
  local from
  _deployed web1 1 node1 && _deployed web2 1 node2 || return 1
  from=$(_pod web1)
  _ping_start "$from" "$(_pod web2 3)" || return 1
  kube -n "$SYSTEM" rollout restart statefulset/spoke-ipam-server && _rolled_out statefulset/spoke-ipam-server || return 1
  kube -n "$SYSTEM" rollout restart statefulset/spoke-etcd && _rolled_out statefulset/spoke-etcd || return 1
  lab_wait 60 "three agents to be connected" "" _connected "${LAB_NODES[@]}" || return 1
  _deployed afterrollout 30 || return 1
  kube delete deployment afterrollout --wait=true >/dev/null || return 1
  _ping_lost "$from"
}

# _in_use: "address node pod" of each address that a pod has, as the store says.
_in_use() {
  local addresses
  addresses=$(leader_ctl ip list --state in_use -o json) || return 1
  jq -r '.[] | "\(.address) \(.node) \(.pod_name)"' <<<"$addresses" | sort
}

# _pods_now: the same, as the API server says.
_pods_now() {
  kube get pods -o json | jq -r '.items[] | select(.metadata.deletionTimestamp == null and .status.phase == "Running") |
    "\(.status.podIP) \(.spec.nodeName) \(.metadata.name)"' | sort
}

_store_knows_pods() {
  diff <(_in_use) <(_pods_now)
}

_audited() { leader_ctl audit; }

_no_recovery() {
  local recovery
  recovery=$(leader_ctl recovery show -o json) || return 1
  printf '%s\n' "$recovery"
  jq -e '.phase != "recovering"' >/dev/null <<<"$recovery"
}

# The end of Spoke's etcd, with its disks: as KUBERNETES.md ("Backup and restore") has it.
_etcd_lost() {
  local node
  kube -n "$SYSTEM" scale statefulset spoke-ipam-server spoke-etcd --replicas=0 &&
    kube -n "$SYSTEM" delete pvc --timeout=120s data-spoke-etcd-{0,1,2} data-spoke-ipam-server-{0,1,2} || return 1
  for node in "${LAB_NODES[@]}"; do
    _disk "$node" server 2Gi && _disk "$node" etcd 8Gi || return 1
  done
}

_restored() {
  kube -n "$SYSTEM" scale statefulset spoke-etcd --replicas=3 && _rolled_out statefulset/spoke-etcd || return 1
  kube apply -k "$LAB_DIR/restore" || return 1
  if ! kube -n "$SYSTEM" wait --for=condition=complete --timeout=120s job/spoke-restore; then
    kube -n "$SYSTEM" describe pods --selector job-name=spoke-restore | tail -n 40
    kube -n "$SYSTEM" logs --selector job-name=spoke-restore --all-containers --prefix
    return 1
  fi
  lab_show kube -n "$SYSTEM" logs --selector job-name=spoke-restore --all-containers || return 1
  kube delete -k "$LAB_DIR/restore" || return 1
  kube -n "$SYSTEM" scale statefulset spoke-ipam-server --replicas=3 && _rolled_out statefulset/spoke-ipam-server
}

# A backup now, by the CronJob that makes one each night.
_backed_up() {
  _disk node3 backup 20Gi && _kustomization backup backup && kube apply -k "$LAB_DIR/backup" || return 1
  kube -n "$SYSTEM" create job spoke-backup-now --from=cronjob/spoke-backup || return 1
  if ! kube -n "$SYSTEM" wait --for=condition=complete --timeout=120s job/spoke-backup-now; then
    kube -n "$SYSTEM" describe pods --selector job-name=spoke-backup-now | tail -n 40
    kube -n "$SYSTEM" logs --selector job-name=spoke-backup-now --prefix
    return 1
  fi
  lab_show kube -n "$SYSTEM" logs --selector job-name=spoke-backup-now
}

# What came and went between the backup and the loss is known to the nodes alone.
case_ha_restore() {
  local from before
  _deployed web1 1 node1 && _deployed web2 1 node2 && _deployed early 12 || return 1
  _backed_up && _kustomization restore restore || return 1
  _deployed late 12 && kube delete deployment early --wait=true >/dev/null || return 1
  lab_wait 60 "the store to have the pods that there are" "" _store_knows_pods || return 1
  before=$(_pods_now)
  from=$(_pod web1)
  _ping_start "$from" "$(_pod web2 3)" || return 1
  _etcd_lost || return 1
  _deployed orphan 3 || return 1
  _restored || return 1
  lab_wait 90 "the recovery to be over" "" _no_recovery || return 1
  lab_wait 60 "three agents to be connected" "" _connected "${LAB_NODES[@]}" || return 1
  lab_wait 60 "the store to have the pods that there are" "" _store_knows_pods || return 1
  diff <(printf '%s\n' "$before") <(_pods_now | grep -v ' orphan-') ||
    { lab_error "pods are not as before" && return 1; }
  lab_wait 30 "store, cloud and agents to agree" "" _audited || return 1
  lab_show leader_ctl audit
  _ping_lost "$from"
}

# _running_on NODES APP COUNT: whether so many of its pods run on these nodes; says how many do.
_running_on() {
  local running
  running=$(kube get pods --selector "app=$2" -o json | jq --arg nodes " $1 " '[.items[] |
    select(.metadata.deletionTimestamp == null and .status.phase == "Running") |
    select(.spec.nodeName as $node | $nodes | contains(" \($node) "))] | length')
  printf '%s run\n' "$running"
  ((running >= $3))
}

# _in_pods NODE: the address of each pod there, from within its network namespace.
_in_pods() {
  # shellcheck disable=SC2016  # Expanded by the inner shell.
  lab_node_exec "$1" bash -c 'for space in /run/netns/*; do
    nsenter --net="$space" ip -o -4 address show scope global; done' | awk '{sub("/.*", "", $4); print $4}'
}

# _had NODE: the addresses that it may still have, sorted: those that the store says are on its NIC, and those that
# the API server has seen in its pods.
_had() {
  local addresses
  addresses=$(leader_ctl ip list --node "$1" -o json) || return 1
  {
    jq -r '.[].address' <<<"$addresses"
    kube get pods --field-selector "spec.nodeName=$1" -o json | jq -r '.items[].status.podIP // empty'
  } | sort -u
}

# _begun LEAST MOST: whether so many pods have a network namespace, on all living machines together.
_begun() {
  local node begun=0
  for node in "${LAB_NODES[@]}"; do
    if [[ -d $LAB_DIR/machine/$node ]]; then
      begun=$((begun + $(find "/proc/$(_lab_node_pid "$node")/root/run/netns" -mindepth 1 | wc -l)))
    fi
  done
  printf '%s have begun\n' "$begun"
  ((begun >= $1 && begun <= $2))
}

# _machine_dies NODE: nothing that it sends arrives any more, not even that its connections are closed.
_machine_dies() {
  lab_fabric_exec ip link set "$(lab_fabric_port "$1")" down || return 1
  lab_node_down "$1"
}

# _standbys_proven NODE...: whether the servers there have noted how far the store has come, and so need not ask
# nodes when they take over.
_standbys_proven() {
  local node
  for node in "$@"; do lab_node_exec "$node" test -s /var/lib/disks/server/ca/store.mark || return 1; done
}

# _none_twice DEAD NODES...: no address is in two pods, by what the pods themselves have, and none that the dead
# machine may still have is in one.
_none_twice() {
  local node pods doubled
  pods=$(for node in "${@:2}"; do _in_pods "$node"; done)
  (($(wc -l <<<"$pods") >= 100)) || { lab_error "in the pods' network namespaces are $(wc -l <<<"$pods") addresses" && return 1; }
  doubled=$(sort <<<"$pods" | uniq -d)
  [[ -z $doubled ]] || { lab_error "two pods have $doubled" && return 1; }
  doubled=$(comm -12 <(sort <<<"$pods") "$LAB_DIR/had-$1")
  [[ -z $doubled ]] || { lab_error "pods have addresses that are on the NIC of $1: $doubled" && return 1; }
  doubled=$(grep -v '^#' "$(lab_attachments)" | cut -f 1 | sort | uniq -d)
  [[ -z $doubled ]] || { lab_error "the network delivers $doubled to two machines" && return 1; }
}

# _store_has_crowd NODES...: whether store and API server say the same of the pods there.
_store_has_crowd() {
  local there
  there=" ($(tr ' ' '|' <<<"$*")) "
  diff <(_in_use | grep -E "$there") <(_pods_now | grep -E "$there")
}

# _hundred_while_leader_dies LEADER NODE OTHERS...: 100 pods start, and the machine dies as some have.
_hundred_while_leader_dies() {
  local leader=$1 node=$2 others=("${@:3}") began led ran
  lab_wait 90 "all pods to go" "" _begun 0 0 || return 1
  _deployment crowd 100 >/dev/null || return 1
  lab_wait 60 "the first of 100 pods to begin" "" _begun 20 1000 || return 1
  _machine_dies "$node" || return 1
  began=$EPOCHREALTIME
  ran=$(_running_on "${LAB_NODES[*]}" crowd 0)
  [[ $ran != '100 run' ]] || { lab_error "all 100 pods ran before $node died" && return 1; }
  lab_wait 60 "another server to lead" "" _leader || return 1
  led=$(((${EPOCHREALTIME/[.,]/} - ${began/[.,]/}) / 1000))
  lab_say "of 100 pods $ran as $node dies, where $leader leads; $(_leader) leads, seen after $led ms"
  [[ $(_leader) != "$leader" ]] || { lab_error "$leader is said to lead, and its machine is gone" && return 1; }
  leader_ctl recovery show -o json | jq -e '.phase == "open"' >/dev/null ||
    { lab_error "it asks nodes first: $(leader_ctl recovery show)" && return 1; }
  # As a cloud's node controller does when the machine is no more: its pods are then made anew elsewhere. Kubernetes 1.20
  # by itself leaves them there: while no node of a new cluster is ready, its queue of nodes for the taint NoExecute gets
  # each several times (SetRemove and Add), and one that is ready again is never removed from its head (RemoveFromQueue).
  kube delete node "$node" >/dev/null || return 1
  if ! lab_wait 240 "100 pods to run on ${others[*]}" "" _running_on "${others[*]}" crowd 100; then
    kube get pods --output wide | grep -v Running
    return 1
  fi
  lab_say "100 pods run on ${others[*]}, $(((${EPOCHREALTIME/[.,]/} - ${began/[.,]/}) / 1000)) ms after it died"
}

case_ha_leader_dies() {
  local leader node one others=()
  kube delete deployment --all --wait=true >/dev/null || return 1
  leader=$(_leader) && node=$(_node_of "$leader") || return 1
  for one in "${LAB_NODES[@]}"; do if [[ $one != "$node" ]]; then others+=("$one"); fi; done
  lab_wait 120 "the standbys to be proven" "" _standbys_proven "${others[@]}" || return 1
  _hundred_while_leader_dies "$leader" "$node" "${others[@]}" || return 1
  lab_wait 60 "the agents of ${others[*]} to be connected" "" _connected "${others[@]}" || return 1
  _leading "${others[@]}" || { lab_error "metrics do not say that one server leads" && return 1; }
  _had "$node" >"$LAB_DIR/had-$node" || return 1
  [[ -s $LAB_DIR/had-$node ]] || { lab_error "$node had no address" && return 1; }
  _none_twice "$node" "${others[@]}" || return 1
  lab_wait 60 "the store to have each of them" "" _store_has_crowd "${others[@]}" || return 1
  lab_wait 60 "store, cloud and agents to agree" "" _audited || return 1
  lab_show leader_ctl audit
  lab_show leader_ctl node list
}

# _machine_replaced NODE: a new machine of that name, with empty disks, where the one was that died.
_machine_replaced() {
  mv "$LAB_DIR/log/$1" "$LAB_DIR/log/$1-that-died" && lab_node_up "$1" &&
    lab_nic_add "$1" "$(lab_mac "$1")" "${LAB_ADDRESSES[$1]}/$LAB_SUBNET_LENGTH" || return 1
  lab_node_kill "$LAB_FABRIC" spoke-fabric && lab_fabric_start "$(lab_attachments)" || return 1
  lab_node_exec "$1" mkdir -p /var/lib/disks/server /var/lib/disks/etcd && ha_node_up "$1"
}

# _etcdctl MEMBER ARGUMENTS...: etcdctl, where that member runs.
_etcdctl() {
  kube -n "$SYSTEM" exec -i "$1" -- env ETCDCTL_API=3 etcdctl --endpoints=https://127.0.0.1:12379 \
    --cacert=/etc/etcd/ca.pem --cert=/etc/etcd/client.pem --key=/etc/etcd/client.key "${@:2}" </dev/null
}

# _member_replaced DEAD LIVING: the member DEAD has lost its data, as KUBERNETES.md ("Several servers") has it.
_member_replaced() {
  local id address
  id=$(_etcdctl "$2" member list | awk -F ', ' -v name="$1" '$3 == name {print $1}') || return 1
  address=https://$(kube -n "$SYSTEM" get service "$1" -o 'jsonpath={.spec.clusterIP}'):12380 || return 1
  _etcdctl "$2" member remove "$id" && _etcdctl "$2" member add "$1" --peer-urls="$address" || return 1
  sed -i 's/^initial-cluster-state: new$/initial-cluster-state: existing/' "$LAB_DIR/etcd/$1.yaml" || return 1
  kube -n "$SYSTEM" create secret generic spoke-etcd --from-file="$LAB_DIR/etcd" --dry-run=client -o yaml |
    kube -n "$SYSTEM" apply -f - && kube -n "$SYSTEM" delete pod "$1"
}

# The machine that ha_leader_dies has ended comes again, with nothing on it.
case_ha_machine_replaced() {
  local node dead='' member lost='' living=''
  for node in "${LAB_NODES[@]}"; do [[ -d $LAB_DIR/machine/$node ]] || dead=$node; done
  [[ -n $dead ]] || { lab_error "no machine is gone" && return 1; }
  _machine_replaced "$dead" && kube_wait_node "$dead" 120 || return 1
  for member in spoke-etcd-{0,1,2}; do
    if [[ $(_node_of "$member") != "$dead" ]]; then living=$member; else lost=$member; fi
  done
  _member_replaced "$lost" "$living" || return 1
  _rolled_out statefulset/spoke-etcd && _rolled_out statefulset/spoke-ipam-server || return 1
  lab_show _etcdctl "$living" endpoint health --cluster || return 1
  lab_wait 60 "one server to lead" "" _leader || return 1
  lab_wait 60 "three agents to be connected" "" _connected "${LAB_NODES[@]}" || return 1
  _deployed back 10 "$dead" || return 1
  lab_wait 60 "the store to have the pods that there are" "" _store_knows_pods || return 1
  lab_wait 60 "store, cloud and agents to agree" "" _audited
}
