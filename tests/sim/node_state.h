// What is on a node whatever becomes of its agent: the kernel, the files on tmpfs and on disk, and
// the network namespaces of its pods.
#pragma once

#include <fcntl.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "lib/netns/trace.h"
#include "lib/os/unique_fd.h"
#include "netagent/attach/assignments.h"
#include "netagent/links/testing/fake_kernel.h"
#include "tests/sim/basis.h"
#include "tests/sim/fabric.h"
#include "tests/sim/machine.h"

namespace spoke::sim {

// A pod's network namespace, and where it is mounted.
struct PodNetns {
  std::shared_ptr<os::UniqueFd> descriptor;
  netns::Trace trace;
};

// Returns one more descriptor of the same namespace.
inline os::UniqueFd CopyOf(const os::UniqueFd& descriptor) {
  return os::UniqueFd(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 0));
}

struct Tombstone {
  std::string content;
  absl::Time written;  // By the machine's time of day.
};

struct NodeState {
  NodeState(const Schedule& schedule, const CloudMachine& in_cloud, int64_t drift)
      : key(in_cloud.key),
        cloud(in_cloud),
        said_vm_id(key.vm_id),
        machine(schedule, key.name, drift) {
    Boot();
  }
  // Forgets what does not outlive a boot.
  void Boot() {
    kernel = std::make_unique<netagent::FakeKernel>();
    kernel->SetNic({.name = "eth0", .mac = cloud.mac, .mtu = 1500});
    journal.clear();
    tombstones.clear();
    token.clear();
    namespaces.clear();
  }

  const NodeKey key;
  const CloudMachine cloud;
  std::string said_vm_id;  // The id that its agent says; a mutant's differs from the key's.
  Machine machine;
  std::unique_ptr<netagent::FakeKernel> kernel;

  // --- On tmpfs. ---
  std::string journal;
  std::map<std::string, Tombstone> tombstones;  // By file name.
  std::string token;
  std::map<std::string, PodNetns> namespaces;  // By path.
  // --- On disk. ---
  std::string lasting_token;
};

}  // namespace spoke::sim
