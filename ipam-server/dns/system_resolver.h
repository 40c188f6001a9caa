// HostResolver by getaddrinfo(3): what the machine's files, resolvers and search list say.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ipam-server/dns/host_resolver.h"

namespace spoke::ipam {

// Thread-safe. getaddrinfo() cannot be called off, and may take half a minute when servers are
// silent. So threads of the resolver's own ask, as few as there are names and at most kMaxThreads;
// when the time is over they are left behind, end with the answer they wait for, and touch nothing
// of the resolver, which may be gone by then. While all threads hang so, names are left out.
class SystemResolver final : public HostResolver {
 public:
  static constexpr int kMaxThreads = 8;

  // The addresses of one name; none: it is not known. Called on several threads at once, also after
  // the resolver has gone.
  using LookUp = std::function<std::vector<ip::Address>(const std::string& name)>;

  SystemResolver();
  explicit SystemResolver(LookUp look_up);
  ~SystemResolver() override;

  HostAddresses Resolve(const std::vector<std::string>& names, absl::Duration limit) override;

 private:
  struct Threads;
  const std::shared_ptr<Threads> threads_;
};

}  // namespace spoke::ipam
