# shellcheck shell=bash
# What operators of two spokes expect, a function a case. To be sourced after cases.sh; each returns non-zero after
# saying why.

readonly SECOND_SYSTEM=spoke-second
readonly FIRST_POOL=10.20.64.0/23 SECOND_POOL=10.32.64.0/24 SECOND_NETWORK=10.32.0.0/16

# second_ctl ARGUMENTS...: spokectl beside the second spoke's server, as server_ctl is for the first.
second_ctl() { kube -n "$SECOND_SYSTEM" exec -i server -- /usr/bin/spokectl "$@"; }

# _second_up: a server of another spoke in a pod of this cluster, of the same image as ours. It has no nodes. On node2,
# since ours has its ports on node1.
_second_up() {
  local image
  image=$(kube -n "$SYSTEM" get pod spoke-ipam-server-0 -o 'jsonpath={.spec.containers[0].image}') || return 1
  kube create namespace "$SECOND_SYSTEM" >/dev/null || return 1
  kube -n "$SECOND_SYSTEM" create -f - >/dev/null <<SECOND || return 1
apiVersion: v1
kind: ConfigMap
metadata: {name: server}
data:
  ipam-server.yaml: |
    listen: {agents: 0.0.0.0:7443, admin: unix:/run/spoke/ipam-admin.sock}
    tls: {ca: /etc/spoke/tls/ca.crt, certificate: /etc/spoke/tls/server.crt, key: /etc/spoke/tls/server.key}
    store: {sqlite: /run/spoke/ipam.db}
    cloud: {static: {}}
    pools: [{name: second, cidr: $SECOND_POOL}]
---
apiVersion: v1
kind: Pod
metadata: {name: server}
spec:
  nodeName: node2
  hostNetwork: true
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 5
  containers:
    - name: ipam-server
      image: $image
      imagePullPolicy: Never
      command: [/usr/bin/spoke-ipam-server, --config=/etc/spoke/ipam-server.yaml]
      volumeMounts:
        - {name: config, mountPath: /etc/spoke}
        - {name: tls, mountPath: /etc/spoke/tls}
        - {name: run, mountPath: /run/spoke}
  volumes:
    - {name: config, configMap: {name: server}}
    - {name: tls, secret: {secretName: tls}}
    - {name: run, emptyDir: {}}
SECOND
  lab_node_exec "$LAB_CONTROL" install -d -m 0700 /run/second || return 1
  lab_node_exec "$LAB_CONTROL" install -m 0600 -t /run/second "$LAB_DIR"/tls/{ca.crt,server.crt,server.key} || return 1
  kube -n "$SECOND_SYSTEM" create secret generic tls --from-file=/run/second >/dev/null || return 1
  lab_wait 90 "the second spoke's server to answer" "$(lab_node_log node1 kubelet)" second_ctl pool list
}

# Two spokes of one cluster, each with the other's network in its policy: neither takes addresses that are the other's.
case_second_spoke() {
  _second_up || return 1
  lab_spokes_apart server_ctl default "$FIRST_POOL" "$SECOND_NETWORK" 10.32.65.0/24 || return 1
  server_ctl delete ClusterNetwork peers || return 1
  lab_spokes_apart second_ctl second "$SECOND_POOL" "$FIRST_POOL" 10.20.65.0/24 || return 1
  kube delete namespace "$SECOND_SYSTEM" --wait=false >/dev/null
}
