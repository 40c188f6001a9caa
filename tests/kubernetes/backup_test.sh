#!/usr/bin/env bash
# What the CronJob and the Job of conf/kubernetes run, with programs in the place of kubectl: a backup is whole
# or not there, of the server that leads, and old ones go; the newest is restored unless one is named.
# usage: backup_test.sh
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  printf 'backup_test.sh: %s\n' "$*" >&2
  exit 1
}

GOPATH=/usr/share/gocode GO111MODULE=off GOFLAGS='' GOCACHE=${GOCACHE:-$scratch/cache} GOPROXY=off \
  go build -o "$scratch/tool" "$here/chart/main.go"
"$scratch/tool" objects "$root/conf/kubernetes/backup/backup.yaml" "$root/conf/kubernetes/restore/restore.yaml" >"$scratch/objects.json"
jq -r '.[] | select(.kind == "CronJob").spec.jobTemplate.spec.template.spec.containers[0].args[0]' \
  "$scratch/objects.json" >"$scratch/backup.sh"
jq -r '.[] | select(.kind == "Job").spec.template.spec.initContainers[0].args[0]' "$scratch/objects.json" |
  sed "s|/restore/|$scratch/restore/|g" >"$scratch/copy.sh"

# The server $LEADER gives a store; others stand by.
mkdir "$scratch/bin" "$scratch/backup" "$scratch/restore"
cat >"$scratch/bin/kubectl" <<'KUBECTL'
#!/bin/sh
[ "$*" = "-n spoke-system exec $4 -- spokectl backup -" ] || exit 64
if [ "$4" != "$LEADER" ]; then echo "it stands by" >&2 && exit 3; fi
printf 'the store of %s' "$4"
exit "${CODE:-0}"
KUBECTL
chmod +x "$scratch/bin/kubectl"
export PATH=$scratch/bin:$PATH NAMESPACE=spoke-system BACKUP_DIR=$scratch/backup BACKUP_COUNT=3 BACKUP=''

backup() { LEADER=$1 sh -euc "$(cat "$scratch/backup.sh")" >"$scratch/said" 2>&1; }

backup spoke-ipam-server-1 || fail "no backup: $(cat "$scratch/said")"
made=("$BACKUP_DIR"/*)
[[ ${#made[@]} == 1 && ${made[0]} == */ipam-*.db && $(cat "${made[0]}") == 'the store of spoke-ipam-server-1' ]] ||
  fail "it has made ${made[*]}"
[[ $(stat -c %a "${made[0]}") == 600 ]] || fail "others may read the backup"
if CODE=1 backup spoke-ipam-server-2; then fail "a backup that was cut short is taken"; fi
if backup nobody; then fail "without a leader it succeeds"; fi
[[ $(ls "$BACKUP_DIR") == "${made[0]##*/}" ]] || fail "a failure leaves or removes files: $(ls "$BACKUP_DIR")"

for day in 1 2 3 4; do printf '%s' "$day" >"$BACKUP_DIR/ipam-2020010${day}T000000Z.db"; done
printf x >"$BACKUP_DIR/somebody-elses"
rm "${made[0]}"
backup spoke-ipam-server-0 || fail "$(cat "$scratch/said")"
[[ $(find "$BACKUP_DIR" -name 'ipam-2020*' -printf '%f\n' | sort | paste -s -d ,) == \
  ipam-20200103T000000Z.db,ipam-20200104T000000Z.db && -e $BACKUP_DIR/somebody-elses ]] ||
  fail "of five with three to keep are left: $(ls "$BACKUP_DIR")"

sh -euc "$(cat "$scratch/copy.sh")" >/dev/null
[[ $(cat "$scratch/restore/store.db") == 'the store of spoke-ipam-server-0' ]] || fail "the newest is not restored"
rm "$scratch/restore/store.db"
BACKUP=ipam-20200103T000000Z.db sh -euc "$(cat "$scratch/copy.sh")" >/dev/null
[[ $(cat "$scratch/restore/store.db") == 3 ]] || fail "the one that is named is not restored"
printf 'backup_test.sh: backups are whole, few and restored\n'
