# What containers may do more than they need: a line of text for each finding. The input is a list of
# Kubernetes objects; $capabilities are those of the agent's systemd unit, sorted, as "NET_ADMIN,NET_RAW".

# What the agent changes on a node. All else that it sees of one is read-only.
def writable: ["/etc/cni/net.d", "/opt/cni/bin", "/proc/sys/net", "/run/spoke", "/run/xtables.lock",
  "/var/lib/spoke/netagent"];
# What would show a container other programs' secrets, or sockets by which it could become root.
def too_much: ["/", "/boot", "/dev", "/etc", "/etc/kubernetes", "/home", "/opt", "/proc", "/proc/sys", "/root", "/run",
  "/run/systemd", "/sys", "/sys/fs", "/usr", "/var", "/var/lib", "/var/lib/kubelet", "/var/run"];
# The cleanup takes away folders of ours, and so needs those that they are in. It runs once.
def for_cleanup: ["/etc/cni", "/opt/cni", "/run", "/var/lib"];

def findings($pod; $where):
  ($pod.securityContext // {}) as $shared |
  ([$pod.volumes[]? | select(.hostPath) | {key: .name, value: .hostPath.path}] | from_entries) as $paths |
  (select($pod.hostPID or $pod.hostIPC) | "\($where): sees the processes of the node"),
  ($pod.initContainers[]?, $pod.containers[] | (.securityContext // {}) as $own |
    ($own.capabilities.add // [] | sort | join(",")) as $added |
    "\($where) \(.name)" as $name |
    ([.volumeMounts[]? | select($paths[.name]) | {path: $paths[.name], read_only: (.readOnly // false)}]) as $mounts |
    (select($own.privileged) | "\($name): is privileged"),
    (select($own.capabilities.drop != ["ALL"]) | "\($name): keeps capabilities of the runtime"),
    (select(($own.seccompProfile // $shared.seccompProfile // {}).type != "RuntimeDefault")
      | "\($name): has no seccomp profile"),
    (select($own.readOnlyRootFilesystem | not) | "\($name): can write its root"),
    (if $added != "" then
      (select($added != $capabilities) | "\($name): has \($added), and the unit \($capabilities)"),
      ($mounts[] | .path as $path | select(.read_only | not)
        | select((writable + if $where == "spoke-cleanup" then for_cleanup else [] end) | index($path) | not)
        | "\($name): can write the node's \(.path)"),
      ($mounts[] | .path as $path | select(too_much | index($path))
        | select($where != "spoke-cleanup" or (for_cleanup | index($path) | not))
        | "\($name): sees too much of the node: \(.path)")
    else
      (select($own.allowPrivilegeEscalation != false) | "\($name): can gain privileges"),
      (select(($own.runAsNonRoot // $shared.runAsNonRoot) != true) | "\($name): is root"),
      ($mounts[] | "\($name): sees the node's \(.path)")
    end));

[.[] | .spec |= (.jobTemplate.spec // .) | select(.spec.template.spec)] as $workloads |
([$workloads[] | .spec.template.spec | .initContainers[]?, .containers[]] | length) as $count |
(select($count < $least) | "there are \($count) containers, and not \($least)"),
($workloads[] | .metadata.name as $name | .spec.template.spec | findings(.; $name))
