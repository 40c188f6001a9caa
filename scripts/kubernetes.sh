#!/usr/bin/env bash
# Makes the parts of Kubernetes that its test and its benchmark run. Debian has most of them in no
# binary package, but in the source of one; so they are built from there, once.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: scripts/kubernetes.sh

Prints the directory of kubelet, kube-apiserver, kube-controller-manager, kube-scheduler, kube-proxy
and kubectl; makes them in build/tools/kubernetes when they are missing, which takes some 10 minutes
of a processor and 3 GB of disk. Installs what that and a cluster of them need.
EOF
}

readonly source_package=kubernetes
readonly programs=(kubelet kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubectl)
readonly repository=k8s.io/kubernetes
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly here

# Go of Debian 12 takes this source only in the layout of before modules.
go_in_tree() {
  local folder=$1
  shift
  (
    cd "$folder/go/src/$repository"
    # PWD: Go must see the path below GOPATH, not what the link leads to.
    env "PWD=$folder/go/src/$repository" "GOPATH=$folder/go" GO111MODULE=off "GOCACHE=$folder/cache" \
      GOPROXY=off GOFLAGS='' CGO_ENABLED=0 go "$@" >&2
  )
}

# The API server needs one generated file that the source lacks: what its objects look like.
generate_openapi() {
  local folder=$1 packages
  go_in_tree "$folder" build -o "$folder/openapi-gen" \
    "$repository/vendor/k8s.io/kube-openapi/cmd/openapi-gen"
  packages=$(
    cd "$folder/go/src/$repository"
    {
      grep -rlE --include='*.go' '\+k8s:openapi-gen=' pkg
      find vendor/k8s.io/ -mindepth 1 -maxdepth 1 -exec grep -rlE --include='*.go' \
        '\+k8s:openapi-gen=' '{}/' ';'
    } | grep -vE 'code-generator|sample-apiserver|/testdata/|_test.go|zz_generated' |
      xargs -n 1 dirname | LC_ALL=C sort -u | sed "s#^#$repository/#" | paste -s -d ,
  )
  (
    cd "$folder/go/src/$repository"
    env "PWD=$PWD" "GOPATH=$folder/go" GO111MODULE=off "GOCACHE=$folder/cache" HOME="$folder" \
      "$folder/openapi-gen" -i "$packages" -p "$repository/pkg/generated/openapi" \
      -O zz_generated.openapi -h vendor/k8s.io/code-generator/hack/boilerplate.go.txt \
      -r "$folder/violations" >&2
  )
}

build() {
  local target=$1 folder source program version package
  folder=$(mktemp -d "$target.XXXXXX")
  # shellcheck disable=SC2064  # The folder of now.
  trap "chmod -R u+w '$folder'; rm -rf '$folder'" EXIT
  source=$("$here/scripts/debian_source.sh" "$source_package" "$folder")
  version=$(dpkg-parsechangelog -l "$source/debian/changelog" -S Version)
  version=v$(sed 's/.*+really//; s/-.*//' <<<"$version")
  mkdir -p "$folder/go/src/k8s.io" "$folder/bin"
  ln -s "$source" "$folder/go/src/$repository"
  generate_openapi "$folder"
  local flags='-s -w'
  for package in "$repository/vendor/k8s.io/component-base/version" \
    "$repository/vendor/k8s.io/client-go/pkg/version"; do
    flags+=" -X $package.gitVersion=$version -X $package.gitMajor=$(cut -d . -f 1 <<<"${version#v}")"
    flags+=" -X $package.gitMinor=$(cut -d . -f 2 <<<"$version")"
  done
  for program in "${programs[@]}"; do
    printf 'kubernetes.sh: building %s %s\n' "$program" "$version" >&2
    go_in_tree "$folder" build -trimpath -ldflags "$flags" -o "$folder/bin/$program" \
      "$repository/cmd/$program"
  done
  mv "$folder/bin" "$target"
}

main() {
  local tools
  case ${1:-} in
    '') ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  "$here/scripts/setup.sh" --also etcd-server conntrack >&2
  tools=$here/build/tools/kubernetes
  if [[ ! -d $tools ]]; then
    mkdir -p "${tools%/*}"
    build "$tools" || { printf 'kubernetes.sh: cannot build Kubernetes\n' >&2 && exit 1; }
  fi
  printf '%s\n' "$tools"
}

main "$@"
