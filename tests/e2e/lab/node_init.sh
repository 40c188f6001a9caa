#!/usr/bin/env bash
# Pid 1 of a node, in fresh namespaces: makes the file system private where it must be, then reaps.
# usage: node_init.sh NODE MACHINE_DIRECTORY
set -euo pipefail

node=$1
machine=$2
private=$machine/private

# Cgroups: version 1 hierarchies, each with the node's own root. A hybrid layout's cgroup2 is left
# out on purpose: with it mounted, runtimes take the machine for one that they refuse to handle.
mount_cgroups() {
  local group options target controller controllers
  if grep -q 'cgroup2$' "$machine/cgroups"; then
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    # Controllers can only be handed down by a group that has no processes of its own.
    mkdir /sys/fs/cgroup/machine
    printf '%s/machine\n' "$(cut -f 1 "$machine/cgroups")" >"$machine/cgroup-members"
    echo 1 >/sys/fs/cgroup/machine/cgroup.procs
    read -r -a controllers </sys/fs/cgroup/cgroup.controllers || true
    for controller in "${controllers[@]}"; do
      echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control || true
    done
    return
  fi
  mount -t tmpfs -o mode=755 cgroup /sys/fs/cgroup
  while IFS=$'\t' read -r group options; do
    target=/sys/fs/cgroup/$(basename "$(dirname "$group")")
    mkdir "$target"
    mount -t cgroup -o "$options" cgroup "$target" || rmdir "$target"
  done <"$machine/cgroups"
}

# What is written below /etc, /opt and /var/lib stays in the node; what the host has there is seen.
# The layers are on tmpfs, which any kernel takes, and go with the namespace.
mount_overlay() {
  local name=${1//\//_}
  mkdir "$private/$name" "$private/$name.work"
  mount -t overlay overlay \
    -o "lowerdir=$1,upperdir=$private/$name,workdir=$private/$name.work" "$1"
}

# An empty directory in place of whatever the host has at $1.
mount_empty() {
  local name=empty${1//\//_}
  mkdir -p "$1" "$private/$name"
  mount --bind "$private/$name" "$1"
}

hostname "$node"
mount -t sysfs sysfs /sys  # Shows the network devices of this namespace.
mount_cgroups
mount -t proc proc /proc
mount --make-rshared /

# Copies of bind mounts would keep other people's network namespaces alive.
awk '$2 ~ "^(/var)?/run/netns/" {print $2}' /proc/self/mounts | while read -r mounted; do
  umount -l "$mounted"
done

mount -t tmpfs -o mode=755 spoke-lab "$private"
for directory in /etc /opt /var/lib; do mount_overlay "$directory"; done
for directory in /run /etc/cni /etc/spoke /opt/cni /var/lib/cni /var/lib/containerd \
  /var/lib/spoke /var/log; do
  mount_empty "$directory"
done
mkdir -p /run/netns /run/lock /run/spoke /etc/cni/net.d /opt/cni/bin
for plugin in /usr/lib/cni/*; do
  if [[ -e $plugin ]]; then ln -s "$plugin" /opt/cni/bin/; fi
done

ip link set lo up
# Every Kubernetes node has this.
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/ipv6/conf/all/forwarding

: >"$machine/ready"

# bash reaps orphans by itself; wait ends at each of them.
set +e
trap : CHLD
sleep infinity &
while :; do wait $!; done
