#!/usr/bin/env bash
# Executes a program on a node with the rights of a container: with these capabilities and no others, and
# with /proc/sys and /sys read-only. The node's /proc/sys/net is below /run/host, as the manifests have it
# below /host. What is mounted on the node later is seen.
# usage: contained.sh CAPABILITY,... COMMAND...
set -euo pipefail

if [[ ${LAB_CONTAINED:-} != yes ]]; then
  LAB_CONTAINED=yes exec unshare --mount --propagation slave "${BASH_SOURCE[0]}" "$@"
fi
capabilities=${1,,}
shift
mkdir -p /run/host/proc/sys/net
mount --bind /proc/sys/net /run/host/proc/sys/net
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount -o remount,bind,ro /sys
exec setpriv --inh-caps=-all --ambient-caps=-all --bounding-set="-all,+${capabilities//,/,+}" "$@"
