// A cluster of etcd for tests: real members from Debian's package etcd-server on loopback, with
// their data in a temporary directory. They end with the object, and with the test's process
// however that ends.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ipam-server/store/etcd/connection.h"
#include "tests/crash/child_process.h"
#include "tests/support/temp_dir.h"

namespace spoke::ipam::etcd {

struct ClusterOptions {
  size_t members = 1;
  int64_t quota_bytes = 0;              // 0: etcd's own.
  std::vector<std::string> flags = {};  // More of them, for each member.
  std::string scheme = "http";          // Of clients.
};

// Not thread-safe, and of the thread that made it: members end with that thread.
class EtcdCluster {
 public:
  // Ends the test when etcd cannot be started or does not become healthy.
  explicit EtcdCluster(ClusterOptions options = {});
  EtcdCluster(const EtcdCluster&) = delete;
  EtcdCluster& operator=(const EtcdCluster&) = delete;

  Access access() const;
  std::vector<std::string> endpoints() const;
  size_t size() const { return members_.size(); }

  void Kill(size_t member);
  void Start(size_t member);
  // From its next start on, a member listens for clients at another port, and at the first one
  // again when this is called again: who knows the one does not find it at the other.
  void SwapPort(size_t member);
  // Makes a member that was killed a new one, without data and of another cluster, at its next
  // start.
  void Forget(size_t member);
  void Stop(size_t member);      // SIGSTOP
  void Continue(size_t member);  // SIGCONT

  // The member that leads, once there is one.
  size_t Leader() const;

  // Runs etcdctl against the cluster, and ends the test when that fails; what it prints.
  std::string Ctl(const std::vector<std::string>& arguments) const;

 private:
  struct Member {
    uint16_t client_port = 0;
    uint16_t spare_port = 0;
    uint16_t peer_port = 0;
    std::optional<crash::ChildProcess> process;
  };
  void AwaitHealth() const;

  const ClusterOptions options_;
  int generation_ = 0;  // Of the cluster: rises when members forget what they were.
  const testing_support::TempDir directory_;
  std::vector<Member> members_;
};

}  // namespace spoke::ipam::etcd
