// The leader's port for its standbys: they hold a connection each, and notice by its end that this
// process is gone, well before its lease ends. Nothing is said there.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "ipam-server/store/etcd/endpoint.h"
#include "lib/os/unique_fd.h"

namespace spoke::ipam {

// Thread-safe; works on a thread of its own, which ends with it.
class StandbyPort {
 public:
  // More than any cluster has standbys. Whoever comes beyond is let go at once.
  static constexpr size_t kMostConnections = 64;

  // Listens at `address`, host:port; port 0: any free one. Errors: kInvalidArgument (no such
  // address), kUnavailable (in use, or not of this machine), kResourceExhausted.
  static absl::StatusOr<std::unique_ptr<StandbyPort>> Open(const std::string& address);
  ~StandbyPort();
  StandbyPort(const StandbyPort&) = delete;
  StandbyPort& operator=(const StandbyPort&) = delete;

  int port() const { return port_; }

 private:
  StandbyPort(std::vector<os::UniqueFd> sockets, os::UniqueFd wake, int port);
  void Run();

  const std::vector<os::UniqueFd> sockets_;
  const os::UniqueFd wake_;  // An eventfd that says that the end has come.
  const int port_;
  std::thread thread_;
};

// Where standbys reach a port at `listen` of this machine, as host:port with a numeric host. Where
// `listen` is all addresses, it is the one from which `endpoints` of etcd are reached: standbys
// reach those as well. Empty: nobody can say.
std::string ReachedAt(const std::string& listen, int port,
                      const std::vector<etcd::Endpoint>& endpoints);

}  // namespace spoke::ipam
