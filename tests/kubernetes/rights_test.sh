#!/usr/bin/env bash
# Tests what the containers of the manifests and of the chart may do: no more than they need, and the
# agent no more than its systemd unit lets it. A manifest that gives more is refused.
# usage: rights_test.sh
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  printf 'rights_test.sh: %s\n' "$*" >&2
  exit 1
}

# findings LEAST FILE...: a line for each, of at least LEAST containers.
findings() {
  "$scratch/tool" objects "${@:2}" | jq -r --arg capabilities "$capabilities" --argjson least "$1" -f "$here/rights.jq"
}

# refused FILE SED-SCRIPT WORDS: with that change to FILE of the base there is one finding, with WORDS.
refused() {
  local said
  sed "$2" "$root/conf/kubernetes/$1" >"$scratch/changed.yaml"
  said=$(findings 1 "$scratch/changed.yaml")
  [[ $said == *"$3"* && $said != *$'\n'* ]] || fail "of \"$2\" it says: $said"
}

# Reads what systemd itself reads: the last line counts, and words may be anywhere.
capabilities=$(sed -n 's/^CapabilityBoundingSet=//p' "$root/conf/systemd/spoke-netagent.service" |
  tail -n 1 | sed 's/CAP_//g' | tr ' ' '\n' | sort | paste -s -d ,)
[[ $capabilities == *,* ]] || fail "the unit has the capabilities \"$capabilities\""

# Private keys are in the memory of both.
for unit in "$root"/conf/systemd/*.service; do
  grep -qx 'LimitCORE=0' "$unit" || fail "$unit lets keys into core dumps"
done

GOPATH=/usr/share/gocode GO111MODULE=off GOFLAGS='' GOCACHE=${GOCACHE:-$scratch/cache} GOPROXY=off \
  go build -o "$scratch/tool" "$here/chart/main.go"
"$scratch/tool" render "$root/conf/helm/spoke" >"$scratch/chart.yaml"
printf 'ha: {enabled: true}\n' >"$scratch/ha.yaml"
"$scratch/tool" render "$root/conf/helm/spoke" "$scratch/ha.yaml" >"$scratch/chart-ha.yaml"
base=$root/conf/kubernetes/base
said=$(
  findings 2 "$base/netagent.yaml" "$base/ipam-server.yaml"
  findings 2 "$root/conf/kubernetes/cleanup/cleanup.yaml"
  findings 2 "$scratch/chart.yaml"
  findings 3 "$scratch/chart-ha.yaml"
  findings 1 "$root/conf/kubernetes/etcd/etcd.yaml"
  findings 3 "$root/conf/kubernetes/backup/backup.yaml" "$root/conf/kubernetes/restore/restore.yaml"
)
[[ -z $said ]] || fail "$said"

agent=base/netagent.yaml
refused $agent 's/readOnlyRootFilesystem: true/&\n            privileged: true/' 'netagent: is privileged'
refused $agent 's/SYS_ADMIN\]/SYS_ADMIN, SYS_PTRACE]/' 'netagent: has NET_ADMIN,NET_BROADCAST,NET_RAW,SYS_ADMIN,SYS_PTRACE'
refused $agent 's/NET_RAW, //' 'netagent: has NET_ADMIN,NET_BROADCAST,SYS_ADMIN, and the unit'
refused $agent 's/drop: \[ALL\]/drop: []/' 'netagent: keeps capabilities'
refused $agent 's/type: RuntimeDefault/type: Unconfined/' 'netagent: has no seccomp profile'
refused $agent 's/readOnlyRootFilesystem: true/readOnlyRootFilesystem: false/' 'netagent: can write its root'
refused $agent 's|path: /etc/cloud$|path: /etc|' 'netagent: sees too much of the node: /etc'
refused $agent '/mountPath: .host.etc.cloud/,/readOnly/ s/readOnly: true/readOnly: false/' \
  "netagent: can write the node's /etc/cloud"
refused $agent 's/hostNetwork: true/&\n      hostPID: true/' 'spoke-netagent: sees the processes'
refused base/ipam-server.yaml 's/runAsNonRoot: true/runAsNonRoot: false/' 'ipam-server: is root'
refused base/ipam-server.yaml 's/allowPrivilegeEscalation: false//' 'ipam-server: can gain privileges'
refused base/ipam-server.yaml 's|emptyDir: {}|hostPath: {path: /tmp}|' "ipam-server: sees the node's /tmp"
refused backup/backup.yaml 's/runAsNonRoot: true/runAsNonRoot: false/' 'backup: is root'
[[ $(findings 1 "$root/conf/kubernetes/base/namespace.yaml") == 'there are 0 containers'* ]] ||
  fail "where there is no container nothing is found"
printf 'rights_test.sh: containers have the rights that they need\n'
