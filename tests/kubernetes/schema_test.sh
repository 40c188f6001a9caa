#!/usr/bin/env bash
# The schema of the chart's values takes the values that users may give, and refuses wrong ones, as Helm does before it
# installs anything.
# usage: schema_test.sh
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../..
chart=$root/conf/helm/spoke
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  printf 'schema_test.sh: %s\n' "$*" >&2
  exit 1
}

GOPATH=/usr/share/gocode GO111MODULE=off GOFLAGS='' GOCACHE=${GOCACHE:-$scratch/cache} GOPROXY=off \
  go build -o "$scratch/tool" "$here/chart/main.go"
"$scratch/tool" objects "$chart/values.yaml" | jq '.[0]' >"$scratch/defaults.json"

# judge: what the schema says of the chart's values with those of standard input (YAML) over them.
judge() {
  cat >"$scratch/values.yaml"
  "$scratch/tool" objects "$scratch/values.yaml" | jq '.[0]' >"$scratch/over.json"
  jq -s '.[0] * .[1]' "$scratch/defaults.json" "$scratch/over.json" >"$scratch/values.json"
  "$here/check_schema.py" "$chart/values.schema.json" "$scratch/values.json"
}

takes() {
  local said
  said=$(judge <<<"$1") || fail "the schema refuses $1: $said"
}

# refuses YAML WHERE: the schema refuses it, and says where it is wrong.
refuses() {
  local said
  if said=$(judge <<<"$1"); then fail "the schema takes $1"; fi
  grep -qF -- "$2:" <<<"$said" || fail "the schema says of $1: $said"
}

# Every value that the chart has is known to the schema by its name.
jq -e --slurpfile schema "$chart/values.schema.json" 'keys - ($schema[0].properties | keys) == []' \
  "$scratch/defaults.json" >/dev/null || fail "values.yaml has keys that values.schema.json lacks"

takes '{image: {tag: 9.9.9}}'
takes '{image: {repository: registry.example.com/spoke}, pullSecrets: [{name: mine}]}'
takes '{image: {pullPolicy: Always}}'
takes '{netagent: {affinity: {nodeAffinity: {}}, podAnnotations: {team: net}, podLabels: {team: net}}}'
takes '{ipamServer: {affinity: {podAntiAffinity: {}}, podAnnotations: {team: net}, podLabels: {team: net}}}'
takes '{netagent: {maxUnavailable: 3}}'
takes '{netagent: {maxUnavailable: 100%, nodeSelector: {gpu: h100}, config: {azure: {}}}}'
takes '{ipamServer: {azureWorkloadIdentity: true, storage: {className: fast, size: 1.5Ti}, resources: {limits: {cpu: 2}}}}'
takes '{podMonitor: {enabled: true, labels: {release: mine}}}'
takes '{prometheusRule: {enabled: true, labels: {release: mine}, runbooks: "https://docs.example.com/spoke/runbooks"}}'
takes '{ha: {enabled: true, operators: "off", etcd: {enabled: false}}}'
takes '{global: {anything: 1}}'

refuses '{netAgent: {}}' values.netAgent
refuses '{image: {repo: spoke}}' values.image.repo
refuses '{image: {repository: ""}}' values.image.repository
refuses '{image: {tag: 1.2}}' values.image.tag
refuses '{image: {pullPolicy: Sometimes}}' values.image.pullPolicy
refuses '{netagent: {affinity: {gpuAffinity: {}}}}' values.netagent.affinity.gpuAffinity
refuses '{ipamServer: {affinity: {nodeAffinity: []}}}' values.ipamServer.affinity.nodeAffinity
refuses '{netagent: {podAnnotations: {scrape: true}}}' values.netagent.podAnnotations.scrape
refuses '{ipamServer: {podLabels: [mine]}}' values.ipamServer.podLabels
refuses '{ipamServer: {nodeSelector: {gpu: 1}}}' values.ipamServer.nodeSelector.gpu
refuses '{pullSecrets: [mine]}' 'values.pullSecrets[0]'
refuses '{pullSecrets: [{}]}' 'values.pullSecrets[0]'
refuses '{podMonitor: {enabled: "yes"}}' values.podMonitor.enabled
refuses '{podMonitor: {labels: {release: 1}}}' values.podMonitor.labels.release
refuses '{prometheusRule: {enabled: 1}}' values.prometheusRule.enabled
refuses '{prometheusRule: {runbooks: docs.example.com}}' values.prometheusRule.runbooks
refuses '{prometheusRule: {runbookUrl: ""}}' values.prometheusRule.runbookUrl
refuses '{netagent: {maxUnavailable: 0}}' values.netagent.maxUnavailable
refuses '{netagent: {maxUnavailable: 101%}}' values.netagent.maxUnavailable
refuses '{netagent: {maxUnavailable: true}}' values.netagent.maxUnavailable
refuses '{netagent: {tolerations: [{operator: Exist}]}}' 'values.netagent.tolerations[0].operator'
refuses '{netagent: {config: {nic: ""}}}' values.netagent.config.nic
refuses '{netagent: {conflist: {plugins: []}}}' values.netagent.conflist.plugins
refuses '{ipamServer: {storage: {size: 2 GB}}}' values.ipamServer.storage.size
refuses '{ipamServer: {resources: {limits: {memory: lots}}}}' values.ipamServer.resources.limits.memory
refuses '{ipamServer: {config: {pools: [{name: default}]}}}' 'values.ipamServer.config.pools[0]'
# Helm reads `off` without quotes as false.
refuses '{ha: {operators: false}}' values.ha.operators
refuses '{ha: {operators: "7447"}}' values.ha.operators
refuses '{ha: {advertised: []}}' values.ha.advertised
refuses '{ha: {agents: {servers: a:7443}}}' values.ha.agents.servers

# A keyword that the check does not know is no silent success.
jq '.properties.image.maxProperties = 1' "$chart/values.schema.json" >"$scratch/schema.json"
if "$here/check_schema.py" "$scratch/schema.json" "$scratch/defaults.json" 2>/dev/null; then
  fail "a keyword that nobody checks is taken"
fi
printf 'schema_test.sh: the schema takes good values and refuses wrong ones\n'
