# shellcheck shell=bash
# A container runtime on a node, spoken to as kubelet does. Part of lab.sh.

readonly LAB_PAUSE_IMAGE=registry.k8s.io/pause:3.6
readonly LAB_TEST_IMAGE=docker.io/library/busybox:test

# _lab_images_make: the images' archives, once a lab.
_lab_images_make() {
  mkdir -p "$LAB_DIR/images"
  if [[ -e $LAB_DIR/images/test.tar ]]; then return 0; fi
  "$LAB_HOME/make_image.py" "$LAB_DIR/images/pause.tar" "$LAB_PAUSE_IMAGE" &&
    "$LAB_HOME/make_image.py" "$LAB_DIR/images/test.tar" "$LAB_TEST_IMAGE"
}

# The daemon's own defaults for paths lead to the node's private directories. What differs:
# - restrict_oom_score_adj: sandboxes want a score of -998, which takes a capability that root in a
#   virtual machine or a container may lack;
# - AppArmor's profile cannot be loaded where there is no AppArmor.
_lab_containerd_config() {
  cat <<'CONFIG'
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
required_plugins = ["io.containerd.grpc.v1.cri"]
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp",
  "io.containerd.internal.v1.tracing",
]
[grpc]
  address = "/run/containerd/containerd.sock"
[metrics]
  address = "127.0.0.1:1338"
  grpc_histogram = true
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
CONFIG
  printf '  sandbox_image = "%s"\n' "$LAB_PAUSE_IMAGE"
  cat <<'CONFIG'
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
CONFIG
}

# lab_containerd_up NODE: starts containerd on NODE, with the pause and test images in it. Called
# again after it was killed, it starts it again.
lab_containerd_up() {
  local node=$1 log
  log=$(lab_node_log "$node" containerd)
  _lab_images_make || return 1
  _lab_containerd_config | lab_node_write "$node" /etc/containerd/config.toml || return 1
  lab_node_spawn "$node" containerd containerd --config /etc/containerd/config.toml || return 1
  lab_wait 30 "containerd on $node to answer" "$log" lab_node_exec "$node" ctr version || return 1
  lab_image_import "$node" "$LAB_DIR/images/pause.tar" && lab_image_import "$node" "$LAB_DIR/images/test.tar"
}

# lab_image_import NODE ARCHIVE: gives NODE's containerd an image.
lab_image_import() {
  local log
  log=$(lab_node_log "$1" containerd)
  lab_node_exec "$1" ctr -n k8s.io images import "$2" >>"$log" 2>&1 ||
    { lab_error "containerd on $1 takes no image $2" && _lab_show_log "$log" 30 && return 1; }
}

# lab_cri NODE ARGUMENTS...: spoke-cri on NODE's containerd.
lab_cri() {
  local node=$1 program
  shift
  program=$(lab_tool spoke-cri) || return 1
  lab_node_exec "$node" "$program" --socket /run/containerd/containerd.sock "$@"
}

# lab_network_ready NODE SECONDS: waits until NODE's containerd has read a network configuration.
lab_network_ready() {
  lab_wait "$2" "containerd on $1 to find its network" "$(lab_node_log "$1" containerd)" \
    lab_cri "$1" ready
}
