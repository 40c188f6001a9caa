#!/usr/bin/env bash
# What the manifests and the chart install is what the published schemas of Kubernetes know: no other field, no value of
# another type. By the npm packages kubernetes-models, whose types and validators are made of those schemas, fetched
# the first time.
# usage: published_test.sh
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The versions of kubernetes-models, and of the Kubernetes whose schemas each is made of: its changelog says it, for 5.0.0
# the last time. None is made of 1.28's, so the first one is of the version before.
readonly VERSIONS=(4.4.2 4.5.1 5.1.0)
declare -rA KUBERNETES=([4.4.2]=1.27.1 [4.5.1]=1.33.0 [5.1.0]=1.36.0)
readonly TYPESCRIPT=5.9.2
passed=0 failed=0

# fetched VERSION: prints the folder with these packages.
fetched() {
  local folder=$root/build/tools/kubernetes-models-$1 making
  if [[ ! -d $folder ]]; then
    making=$(mktemp -d "$folder.XXXXXX")
    printf '{"private": true, "type": "module"}\n' >"$making/package.json"
    if ! npm install --prefix "$making" --no-audit --no-fund --ignore-scripts "kubernetes-models@$1" "typescript@$TYPESCRIPT" >&2; then
      rm -rf "$making"
      printf 'published_test.sh: npm does not fetch kubernetes-models %s\n' "$1" >&2
      return 1
    fi
    mv "$making" "$folder"
  fi
  printf '%s\n' "$folder"
}

# judge VERSION OBJECTS.json: says what is wrong by the schemas of that version, and how many objects were judged.
judge() {
  local folder run
  folder=$(fetched "$1") || return 1
  run=$(mktemp -d "$folder/run.XXXXXX")
  cp "$here/published_schemas.mjs" "$run/"
  if node "$run/published_schemas.mjs" "$2" "$run/objects.ts" &&
    "$folder/node_modules/.bin/tsc" --noEmit --strict --skipLibCheck --module nodenext --moduleResolution nodenext "$run/objects.ts"; then
    rm -rf "$run"
  else
    rm -rf "$run"
    return 1
  fi
}

# check NAME COMMAND...: one more passed, or failed.
check() {
  if "${@:2}" >"$scratch/said" 2>&1; then
    passed=$((passed + 1))
    printf 'ok      %s: %s\n' "$1" "$(tail -n 1 "$scratch/said")"
  else
    failed=$((failed + 1))
    printf 'FAILED  %s\n' "$1"
    cat "$scratch/said"
  fi
}

# refused VERSION SED-SCRIPT WORDS: the objects with that change are refused with these words.
refused() {
  local said
  sed "$2" "$scratch/all.json" >"$scratch/changed.json"
  if said=$(judge "$1" "$scratch/changed.json" 2>&1); then
    printf 'the schemas take it\n'
    return 1
  fi
  printf '%s\n' "$said"
  [[ $said == *"$3"* ]]
}

main() {
  local values version file sets=0
  GOPATH=/usr/share/gocode GO111MODULE=off GOFLAGS='' GOCACHE=${GOCACHE:-$scratch/cache} GOPROXY=off \
    go build -o "$scratch/tool" "$here/chart/main.go"
  # A patch is only a part of an object.
  while read -r file; do
    sets=$((sets + 1))
    "$scratch/tool" objects "$file" >"$scratch/objects-$sets.json"
  done < <(grep -rlE --include='*.yaml' '^apiVersion: ' "$root/conf/kubernetes" | grep -v '/kustomization.yaml$' |
    grep -vxFf <(find "$root/conf/kubernetes" -name kustomization.yaml |
      while read -r file; do sed -n "s|^ *- path: |${file%/*}/|p" "$file"; done))
  for values in '{}' 'ha: {enabled: true}' 'podMonitor: {enabled: true}' \
    'netagent: {podLabels: {a: b}, podAnnotations: {a: b}, affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}}'; do
    sets=$((sets + 1))
    printf '%s\n' "$values" >"$scratch/values.yaml"
    "$scratch/tool" render "$root/conf/helm/spoke" "$scratch/values.yaml" >"$scratch/chart.yaml"
    "$scratch/tool" objects "$scratch/chart.yaml" >"$scratch/objects-$sets.json"
  done
  jq -s add "$scratch"/objects-*.json >"$scratch/all.json"
  for version in "${VERSIONS[@]}"; do
    check "Kubernetes ${KUBERNETES[$version]} (kubernetes-models $version)" judge "$version" "$scratch/all.json"
    check "an unknown field, ${KUBERNETES[$version]}" refused "$version" 's/"hostNetwork":/"hostNetworks":/' hostNetworks
    check "a wrong type, ${KUBERNETES[$version]}" refused "$version" 's/"containerPort": 9464/"containerPort": "9464"/' containerPort
  done
  printf '%d passed, %d failed\n' "$passed" "$failed"
  ((failed == 0))
}

main
