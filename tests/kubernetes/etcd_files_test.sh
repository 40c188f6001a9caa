#!/usr/bin/env bash
# An etcd of three members starts from what scripts/etcd_files.sh makes, and lets nobody in who shows no
# certificate of its authority. In a network namespace of its own; without the right to make one, it is skipped.
# usage: etcd_files_test.sh
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

if [[ ${1:-} != --inside ]]; then
  if ! unshare --net true 2>/dev/null; then
    [[ -z ${NETNS_TESTS_REQUIRED:-} ]] || { printf 'etcd_files_test.sh: needs CAP_SYS_ADMIN\n' >&2 && exit 1; }
    printf 'etcd_files_test.sh: skipped, since it needs CAP_SYS_ADMIN\n' && exit 0
  fi
  exec unshare --net --pid --fork --kill-child "$0" --inside
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
ip link set lo up

fail() {
  printf 'etcd_files_test.sh: %s\n' "$*" >&2
  exit 1
}

make_files() {
  "$root/scripts/etcd_files.sh" -o "$scratch/files" --files "$scratch/files" --client-port 12379 --peer-port 12380 \
    "$@" >/dev/null
}

members=(spoke-etcd-0=127.0.0.1 spoke-etcd-1=127.0.0.2 spoke-etcd-2=127.0.0.3)
make_files "${members[@]}"
authority=$(cat "$scratch/files/ca.pem")
make_files "${members[@]}"
[[ $(cat "$scratch/files/ca.pem") == "$authority" ]] || fail "a second run makes another authority"
[[ $(stat -c %a "$scratch"/files/*.key | sort -u) == 600 ]] || fail "keys are not their owner's alone"
for wrong in a a=b/c A=127.0.0.1 a=b@c; do
  if make_files "$wrong" 2>/dev/null; then fail "it takes the member \"$wrong\""; fi
done
"$root/scripts/etcd_files.sh" -o "$scratch/also" --also 10.1.2.3 --also fd00::7 a=10.0.0.1 >/dev/null
[[ $(openssl x509 -in "$scratch/also/a.pem" -noout -ext subjectAltName) == *10.0.0.1*10.1.2.3*FD00:*:7* ]] ||
  fail "addresses that are asked for are not in the certificate"
if "$root/scripts/etcd_files.sh" -o "$scratch/also" --also node1 a=10.0.0.1 2>/dev/null; then fail "it takes the address \"node1\""; fi

for i in 0 1 2; do
  # Each has its own data, and its own port for health.
  sed -e "s|^data-dir: .*|data-dir: $scratch/data-$i|" -e "s|:2381$|:1338$i|" \
    "$scratch/files/spoke-etcd-$i.yaml" >"$scratch/member-$i.yaml"
  etcd --config-file="$scratch/member-$i.yaml" >"$scratch/log-$i" 2>&1 &
done
ask() { ETCDCTL_API=3 timeout 3 etcdctl --endpoints="$endpoints" --cacert="$scratch/files/ca.pem" "$@"; }
endpoints=https://127.0.0.1:12379,https://127.0.0.2:12379,https://127.0.0.3:12379
client=(--cert="$scratch/files/client.pem" --key="$scratch/files/client.key")
for ((i = 0; i < 40; ++i)); do
  if ask "${client[@]}" endpoint health >"$scratch/said" 2>&1; then break; fi
  sleep 0.2
done
((i < 40)) || { cat "$scratch"/log-* >&2 && fail "not healthy in time: $(cat "$scratch/said")"; }
(($(grep -c 'is healthy' "$scratch/said") == 3)) || fail "$(cat "$scratch/said")"
ask "${client[@]}" put a b >/dev/null || fail "a write is refused"
if ask get a >/dev/null 2>&1; then fail "somebody without a certificate may read"; fi
(
  rm -f "$scratch/files/ca.pem" "$scratch/files/ca.key" "$scratch/files/client.key"
  make_files "${members[@]}"
)
if ask "${client[@]}" get a >/dev/null 2>&1; then fail "somebody of another authority may read"; fi
printf 'etcd_files_test.sh: three members work, for those of their authority alone\n'
