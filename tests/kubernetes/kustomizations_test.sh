#!/usr/bin/env bash
# Kustomizations have no field that kustomize 5 warns of, and name files and folders that there are.
# usage: kustomizations_test.sh
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Fields of ours that are in kustomize's reference ("Kustomization File") and not deprecated there.
readonly FIELDS=' apiVersion kind namespace resources patches configMapGenerator generatorOptions images '

fail() {
  printf 'kustomizations_test.sh: %s\n' "$*" >&2
  exit 1
}

# strange FOLDER: a line for each field and file below it that should not be there.
strange() {
  local file field named
  while read -r file; do
    while read -r field; do
      [[ $FIELDS == *" $field "* ]] || printf '%s: the field %s\n' "$file" "$field"
    done < <(sed -n 's/^\([A-Za-z][A-Za-z0-9]*\):.*/\1/p' "$file")
    # Of configMapGenerator too, where a file may have another name in the ConfigMap.
    while read -r named; do
      [[ -e ${file%/*}/${named##*=} ]] || printf '%s: there is no %s\n' "$file" "$named"
    done < <(sed -n -e 's/^ *- path: \(.*\)$/\1/p' -e 's/^ *- \([^ :]*\(\.yaml\|\.json\|\.conflist\|\/[a-z-]*\)\)$/\1/p' "$file")
  done < <(find "$1" -name kustomization.yaml | sort)
}

said=$(strange "$root/conf/kubernetes"; strange "$root/conf/grafana")
[[ -z $said ]] || fail "$said"
(($(find "$root/conf/kubernetes" -name kustomization.yaml | wc -l) >= 10)) || fail "there are few kustomizations"

# Grafana gets each dashboard that there is.
for file in "$root"/conf/grafana/*.json; do
  grep -qxF "      - ${file##*/}" "$root/conf/grafana/kustomization.yaml" || fail "conf/grafana/kustomization.yaml lacks ${file##*/}"
done

# Each pod is for nodes with Linux and says when its images are pulled, and each namespace admits the agent without a warning.
# unsaid FOLDER: a line for each file below it where that is missing.
unsaid() {
  local file
  while read -r file; do
    if grep -q '^kind: Namespace$' "$file" && (($(grep -cE 'pod-security[.]kubernetes[.]io/(enforce|warn|audit): privileged$' "$file") != 3)); then
      printf '%s: a Namespace without the three labels of Pod Security\n' "$file"
    fi
    (($(grep -cE '^ +(- )?image: ' "$file") == $(grep -c 'imagePullPolicy: IfNotPresent$' "$file"))) ||
      printf '%s: an image without imagePullPolicy\n' "$file"
    if grep -qE '^ +(- )?image: ' "$file" && ! grep -q 'kubernetes.io/os: linux$' "$file"; then
      printf '%s: pods for any system\n' "$file"
    fi
  done < <(find "$1" -name '*.yaml' | sort)
}
said=$(unsaid "$root/conf/kubernetes")
[[ -z $said ]] || fail "$said"
# One line less in a file is found.
for line in 'base/namespace.yaml warn: privileged' 'base/netagent.yaml imagePullPolicy' 'etcd/etcd.yaml kubernetes.io.os'; do
  rm -rf "$scratch/kubernetes" && cp -r "$root/conf/kubernetes" "$scratch/"
  sed -i "\|${line#* }|d" "$scratch/kubernetes/${line%% *}"
  said=$(unsaid "$scratch/kubernetes")
  [[ $said == *"${line%% *}: "* && $said != *$'\n'* ]] || fail "without \"$line\" it says: $said"
done

# found SED-SCRIPT WORDS: with that change to one of them, the finding has WORDS.
found() {
  rm -rf "$scratch/kubernetes" "$scratch/grafana" && cp -r "$root/conf/kubernetes" "$root/conf/grafana" "$scratch/"
  sed -i "$1" "$scratch/kubernetes/ha/kustomization.yaml"
  said=$(strange "$scratch/kubernetes")
  [[ $said == *"$2"* && $said != *$'\n'* ]] || fail "of \"$1\" it says: $said"
}
found 's/^patches:/patchesStrategicMerge:/' 'the field patchesStrategicMerge'
found 's/^resources:/bases:/' 'the field bases'
found 's|path: ipam-server.yaml|path: ipam-servers.yaml|' 'there is no ipam-servers.yaml'
found 's|  - ../base$|  - ../basis|' 'there is no ../basis'
found 's|- servers.yaml|- server.yaml|' 'there is no server.yaml'
