#!/usr/bin/env bash
# The Helm chart renders, says what its values ask for, and installs the objects of the kustomize base.
# usage: chart_test.sh
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../..
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  printf 'chart_test.sh: %s\n' "$*" >&2
  exit 1
}

# differs SED-SCRIPT FILE WORDS: with that change to the chart's FILE, the comparison says WORDS.
differs() {
  local said
  rm -rf "$scratch/chart"
  cp -r "$root/conf/helm/spoke" "$scratch/chart"
  sed -i "$1" "$scratch/chart/$2"
  if said=$("$scratch/tool" compare "$scratch/chart" "$root/conf/kubernetes/base"); then
    fail "the comparison does not see: $1"
  fi
  grep -qF -- "$3" <<<"$said" || fail "the comparison of \"$1\" says: $said"
}

GOPATH=/usr/share/gocode GO111MODULE=off GOFLAGS='' GOCACHE=${GOCACHE:-$scratch/cache} GOPROXY=off \
  go build -o "$scratch/tool" "$here/chart/main.go"
"$scratch/tool" compare "$root/conf/helm/spoke" "$root/conf/kubernetes/base" ||
  fail "the chart and the kustomize base differ"

differs 's/hostNetwork: true/hostNetwork: false/' templates/netagent.yaml 'DaemonSet spoke-netagent.spec'
differs 's/verbs: \[create\]/verbs: [get]/' templates/ipam-server-access.yaml 'ClusterRole spoke-ipam-server.rules'
differs 's/host_root: .host$/host_root: \/node/' values.yaml 'ConfigMap spoke-netagent-config netagent.yaml.host_root'
differs 's/^kind: Service$/kind: Endpoints/' templates/ipam-server.yaml 'Service spoke-ipam-server is not in the chart'

cat >"$scratch/values.yaml" <<'VALUES'
image: {repository: registry.example.com/spoke, tag: 9.9.9, pullPolicy: Always}
pullSecrets: [{name: mine}]
netagent:
  maxUnavailable: 25%
  nodeSelector: {gpu: h100}
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: Exists}]}]}}}
  podAnnotations: {example.com/team: network, prometheus.io/scrape: "false"}
  podLabels: {team: network, app.kubernetes.io/name: another}
ipamServer:
  azureWorkloadIdentity: true
  storage: {className: fast}
  tolerations: [{key: gpu, operator: Exists}]
  podAnnotations: {example.com/team: addresses}
  podLabels: {team: addresses}
VALUES
rendered=$("$scratch/tool" render "$root/conf/helm/spoke" "$scratch/values.yaml")
for line in 'image: registry.example.com/spoke:9.9.9' 'maxUnavailable: 25%' 'gpu: h100' \
  'storageClassName: fast' 'audience: api://AzureADTokenExchange' 'name: mine'; do
  grep -qF -- "$line" <<<"$rendered" || fail "the chart does not render: $line"
done
printf '%s\n' "$rendered" >"$scratch/rendered.yaml"
"$scratch/tool" objects "$scratch/rendered.yaml" >"$scratch/rendered.json"
# Both keep their selector's label, and the server the toleration that it was given, in the place of the chart's.
jq -e '[.[] | select(.kind == "DaemonSet" or .kind == "StatefulSet")] | length == 2 and all(.[];
  .spec.template as $pod | $pod.metadata.labels["app.kubernetes.io/name"] == .metadata.name
  and $pod.spec.nodeSelector["kubernetes.io/os"] == "linux"
  and all($pod.spec.containers[]; .imagePullPolicy == "Always")
  and if .kind == "DaemonSet" then
    $pod.metadata.labels.team == "network" and $pod.metadata.annotations["example.com/team"] == "network"
    and $pod.metadata.annotations["prometheus.io/scrape"] == "false" and $pod.spec.nodeSelector.gpu == "h100"
    and ($pod.spec.affinity | has("nodeAffinity"))
  else
    $pod.metadata.labels.team == "addresses" and $pod.metadata.annotations["example.com/team"] == "addresses"
    and $pod.metadata.annotations["prometheus.io/scrape"] == "true"
    and [$pod.spec.tolerations[].key] == ["gpu"] and ($pod.spec | has("affinity") | not)
  end)' "$scratch/rendered.json" >/dev/null || fail "values of the pods are not in the chart's pods"
# Prometheus shows the token that the server publishes, and only where it is asked for.
printf 'podMonitor: {enabled: true, labels: {release: mine}}\n' >"$scratch/monitored.yaml"
monitored=$("$scratch/tool" render "$root/conf/helm/spoke" "$scratch/monitored.yaml")
for text in "$monitored" "$(cat "$root/conf/kubernetes/monitoring/pod-monitors.yaml")"; do
  (($(grep -c '^kind: PodMonitor$' <<<"$text") == 2)) || fail "not two objects PodMonitor"
  (($(grep -A 1 'name: spoke-metrics$' <<<"$text" | grep -c 'key: token') == 2)) || fail "a PodMonitor shows no token"
  # The operator's label namespace would take the place of that of spoke_namespace_bytes_total.
  (($(grep -c '^      honorLabels: true$' <<<"$text") == 2)) || fail "a PodMonitor overwrites labels of the metrics"
done
grep -qF 'release: mine' <<<"$monitored" || fail "PodMonitors do not have the labels of the values"
if grep -q PodMonitor <<<"$rendered"; then fail "there is a PodMonitor without being asked for"; fi

# The Prometheus Operator gets the rules of conf/, from the manifests and from the chart, and only where they are asked for.
rules=$root/conf/kubernetes/monitoring/prometheus-rules.yaml
# specs FILE KIND: what the objects of that kind in FILE say, by name.
specs() {
  "$scratch/tool" objects "$1" | jq -S --arg kind "$2" '[.[] | select(.kind == $kind) | {(.metadata.name): .spec}] | add'
}
# group_lists PREFIX: what conf/ has, with PREFIX in place of docs/runbooks.
group_lists() {
  "$scratch/tool" objects "$root/conf/alerts.yaml" >"$scratch/alerts.json"
  "$scratch/tool" objects "$root/conf/recording-rules.yaml" >"$scratch/recordings.json"
  jq -S -n --arg prefix "$1" --slurpfile alerts "$scratch/alerts.json" --slurpfile recordings "$scratch/recordings.json" \
    '{"spoke-alerts": $alerts[0][0], "spoke-recording-rules": $recordings[0][0]} |
     (.. | .runbook_url? // empty) |= sub("^docs/runbooks"; $prefix)'
}
# ruled VALUES PREFIX: with these values the chart has the rules of conf/.
ruled() {
  printf '%s\n' "$1" >"$scratch/rules.yaml"
  "$scratch/tool" render "$root/conf/helm/spoke" "$scratch/rules.yaml" >"$scratch/ruled.yaml"
  [[ $(specs "$scratch/ruled.yaml" PrometheusRule) == "$(group_lists "$2")" ]] || fail "with $1 the chart's rules are not those of conf/"
}
[[ $(specs "$rules" PrometheusRule) == "$(group_lists docs/runbooks)" ]] ||
  fail "conf/kubernetes/monitoring has other rules than conf/: scripts/check.sh --fix metrics"
(($(group_lists docs/runbooks | jq '[.. | .alert? // .record? // empty] | length') >= 50)) || fail "there are few rules"
printf '%s\n' "$monitored" >"$scratch/monitored-rendered.yaml"
[[ $(specs "$scratch/monitored-rendered.yaml" PodMonitor) == "$(specs "$root/conf/kubernetes/monitoring/pod-monitors.yaml" PodMonitor)" ]] ||
  fail "the chart's PodMonitors are not those of conf/kubernetes/monitoring"
if grep -q PrometheusRule <<<"$rendered$monitored"; then fail "there is a PrometheusRule without being asked for"; fi
ruled 'prometheusRule: {enabled: true, labels: {release: mine}}' docs/runbooks
(($(grep -c '^    release: mine$' "$scratch/ruled.yaml") == 2)) || fail "objects PrometheusRule do not have the labels of the values"
ruled 'prometheusRule: {enabled: true, runbooks: "https://docs.example.com/runbooks/"}' https://docs.example.com/runbooks

printf 'netagent: [\n' >"$scratch/broken.yaml"
if "$scratch/tool" render "$root/conf/helm/spoke" "$scratch/broken.yaml" >/dev/null 2>&1; then
  fail "values that are no YAML are taken"
fi

# With several servers the chart installs what the layers ha and etcd do.
printf 'ha: {enabled: true}\n' >"$scratch/ha.yaml"
"$scratch/tool" render "$root/conf/helm/spoke" "$scratch/ha.yaml" >"$scratch/ha-rendered.yaml"
"$scratch/tool" objects "$scratch/ha-rendered.yaml" >"$scratch/ha.json"
layers=$root/conf/kubernetes
"$scratch/tool" objects "$layers/ha/servers.yaml" "$layers/etcd/etcd.yaml" >"$scratch/layers.json"
jq -e -r --slurpfile want "$scratch/layers.json" \
  '[$want[0][] as $one | select(any(.[]; . == $one) | not) | "\($one.kind) \($one.metadata.name)"] | if . == [] then 1 else error(join(", ")) end' \
  "$scratch/ha.json" >/dev/null || fail "with ha, the chart lacks or changes objects of conf/kubernetes"
"$scratch/tool" objects "$layers/ha/ipam-server.yaml" >"$scratch/patch.json"
jq -e --slurpfile want "$scratch/patch.json" \
  'any(.[]; .kind == "StatefulSet" and .metadata.name == "spoke-ipam-server" and contains($want[0][0]))' \
  "$scratch/ha.json" >/dev/null || fail "with ha, the chart's servers lack something of conf/kubernetes/ha/ipam-server.yaml"
# configured NAME KEY FILE: that key of the ConfigMap NAME says what FILE does.
configured() {
  jq -r --arg name "$1" --arg key "$2" '.[] | select(.kind == "ConfigMap" and .metadata.name == $name) | .data[$key]' \
    "$scratch/ha.json" >"$scratch/config.yaml"
  [[ $("$scratch/tool" objects "$scratch/config.yaml" | jq -S .) == "$("$scratch/tool" objects "$3" | jq -S .)" ]] ||
    fail "with ha, the chart's $1 is not as $3"
}
configured spoke-netagent-config netagent.yaml "$layers/ha/netagent.yaml"
configured spoke-ipam-server-config ipam-server.yaml "$layers/overlays/static-ha/ipam-server.yaml"
# Operators reach each server, since only the one that leads answers them.
operators() {
  jq -r '[.[] | select(.kind == "Service" and any(.spec.ports[]; .name == "operators" and .port == 7447)) | .metadata.name] | sort | join(" ")' \
    "$1"
}
[[ $(operators "$scratch/ha.json") == "spoke-ipam-server-0 spoke-ipam-server-1 spoke-ipam-server-2" ]] ||
  fail "with ha, these Services have the operators' port: $(operators "$scratch/ha.json")"
printf 'ha: {enabled: true, operators: "off"}\n' >"$scratch/ha.yaml"
"$scratch/tool" render "$root/conf/helm/spoke" "$scratch/ha.yaml" >"$scratch/ha-rendered.yaml"
if grep -q 7447 "$scratch/ha-rendered.yaml"; then fail "there is a port of operators where they have none"; fi
grep -q 'operators: "off"' "$scratch/ha-rendered.yaml" || fail "the server's configuration does not say that operators have no port"
# Where the servers run may be said, beside the rule that keeps them apart and in its place.
# affinities AFFINITY: the kinds of affinity that the servers have with that value.
affinities() {
  printf 'ha: {enabled: true}\nipamServer: {affinity: %s}\n' "$1" >"$scratch/ha.yaml"
  "$scratch/tool" render "$root/conf/helm/spoke" "$scratch/ha.yaml" >"$scratch/ha-rendered.yaml"
  "$scratch/tool" objects "$scratch/ha-rendered.yaml" |
    jq -c '.[] | select(.kind == "StatefulSet" and .metadata.name == "spoke-ipam-server") | .spec.template.spec.affinity
      | map_values(keys)'
}
[[ $(affinities '{nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}') == \
  '{"nodeAffinity":["preferredDuringSchedulingIgnoredDuringExecution"],"podAntiAffinity":["requiredDuringSchedulingIgnoredDuringExecution"]}' ]] ||
  fail "with ha and an affinity, the servers are not kept apart"
[[ $(affinities '{podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}') == \
  '{"podAntiAffinity":["preferredDuringSchedulingIgnoredDuringExecution"]}' ]] ||
  fail "with ha, a podAntiAffinity of the values does not take the place of the chart's"
printf 'ha: {enabled: true, etcd: {enabled: false}}\n' >"$scratch/ha.yaml"
"$scratch/tool" render "$root/conf/helm/spoke" "$scratch/ha.yaml" >"$scratch/without-etcd.yaml"
if grep -q 'name: spoke-etcd$' "$scratch/without-etcd.yaml"; then
  fail "there is an etcd without being asked for"
fi

# The oldest Kubernetes that the chart takes is the one that the documents name.
oldest=$(sed -n 's/^kubeVersion: ">=\([0-9]*[.][0-9]*\)[.]0-0"$/\1/p' "$root/conf/helm/spoke/Chart.yaml")
[[ -n $oldest ]] || fail "Chart.yaml does not say which Kubernetes it needs"
for page in KUBERNETES.md QUICKSTART.md LIMITS.md; do
  grep -qF "Kubernetes $oldest or newer" "$root/docs/$page" || fail "docs/$page does not say: Kubernetes $oldest or newer"
  if grep -oE 'Kubernetes [0-9]+[.][0-9]+ or newer' "$root/docs/$page" | grep -vF "Kubernetes $oldest or newer"; then
    fail "docs/$page names another oldest Kubernetes than Chart.yaml's $oldest"
  fi
done

# The server has the memory that the table of sizes gives it.
memory=$("$scratch/tool" objects "$root/conf/helm/spoke/values.yaml" |
  jq -r '.[0].ipamServer.resources | "\(.requests.memory), \(.limits.memory)"')
grep -qF "| $memory: the manifests and the chart have these |" "$root/docs/LIMITS.md" ||
  fail "docs/LIMITS.md does not say that the server's memory is $memory"

version=$(sed -n 's/^project(spoke VERSION \([0-9.]*\) .*/\1/p' "$root/CMakeLists.txt")
[[ -n $version ]] || fail "CMakeLists.txt names no version"
found=$(grep -rEoh '(newTag|^version|^appVersion): .*' "$root/conf/kubernetes" "$root/conf/helm/spoke/Chart.yaml")
(($(wc -l <<<"$found") >= 5)) || fail "the versions that conf names are fewer than there were: $found"
if grep -v ": $version\$" <<<"$found"; then fail "conf names other versions than CMakeLists.txt's $version"; fi

# The agent's configuration on Azure is the base's and one thing more.
without_comments() { grep -v '^#' "$1" | grep .; }
[[ $(without_comments "$root/conf/kubernetes/azure/netagent.yaml") == \
  "$(without_comments "$root/conf/kubernetes/base/config/netagent.yaml")"$'\nazure: {}' ]] ||
  fail "conf/kubernetes/azure/netagent.yaml is not the base's configuration with azure: {}"
printf 'chart_test.sh: the chart and the base agree\n'
