# What check_versions must refuse; scripts/check_test.sh reads it.
# shellcheck shell=bash disable=SC2154  # Its variables are that script's.

# One version everywhere, to which expect_version adds what is wrong.
versions_tree() {
  fresh_tree
  mkdir -p "$tree"/conf/{helm/spoke,kubernetes/base}
  printf 'project(spoke VERSION 1.2.3 LANGUAGES CXX)\n' >"$tree/CMakeLists.txt"
  printf 'name: spoke\nversion: 1.2.3\nappVersion: "1.2.3"\n' >"$tree/conf/helm/spoke/Chart.yaml"
  printf 'images:\n  - name: spoke\n    newTag: 1.2.3\n' >"$tree/conf/kubernetes/base/kustomization.yaml"
  # An image of others has a version of its own.
  printf '  - name: etcd\n    newTag: v3.4.23\n' >>"$tree/conf/kubernetes/base/kustomization.yaml"
}

# expect_version FILE EDIT MESSAGE_PART: after sed's EDIT of FILE the check fails and says so.
expect_version() {
  local output code=0
  versions_tree
  sed -i "$2" "$tree/$1"
  output=$("$scripts/check_versions" "$tree" 2>&1) || code=$?
  if ((code != 1)) || [[ $output != *"$3"* ]]; then
    printf 'check_versions: wanted "... %s ...", got %d and:\n%s\n' "$3" "$code" "$output" >&2
    failures=$((failures + 1))
  fi
}

test_versions() {
  local chart=conf/helm/spoke/Chart.yaml base=conf/kubernetes/base/kustomization.yaml
  versions_tree
  expect_clean check_versions
  expect_version CMakeLists.txt 's/1.2.3/1.3.0/' "$chart:2: has version 1.2.3, and CMakeLists.txt has 1.3.0"
  expect_version CMakeLists.txt 's/VERSION 1.2.3//' 'CMakeLists.txt:1: names no version'
  expect_version $chart 's/"1.2.3"/"9"/' "$chart:3: has appVersion 9"
  expect_version $chart '/^appVersion/d' "$chart:1: has no appVersion"
  expect_version $base 's/1.2.3/latest/' "$base:3: has newTag latest"
  expect_version $base 's/newTag/newName/' 'no kustomization names the version'
  versions_tree
  sed -i 's/1.2.3/1.3.0/' "$tree/CMakeLists.txt"
  "$scripts/check_versions" --fix "$tree" || failures=$((failures + 1))
  expect_clean check_versions
  if [[ $(cat "$tree/$chart" "$tree/$base") != *'"1.3.0"'*'newTag: 1.3.0'*v3.4.23* ]]; then
    printf 'check_versions --fix made:\n%s\n' "$(cat "$tree/$chart" "$tree/$base")" >&2
    failures=$((failures + 1))
  fi
}
