// Asks the services that a node and its pods depend on (service_answers.h): the edge behind the
// checks of dns, metadata and the clock. What it costs: a packet and its answer for each resolver,
// some ten packets for the metadata service, a look at some files.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/node_checks/facts/facts.h"
#include "lib/node_checks/services/dns_probe.h"
#include "lib/node_checks/services/metadata_probe.h"
#include "lib/node_checks/services/service_answers.h"
#include "lib/os/unique_fd.h"

namespace spoke::node_checks {

// One thread at a time may Probe(); any may Interrupt().
class ServiceProber {
 public:
  struct Patience {
    DnsPatience dns;
    MetadataPatience metadata;
  };
  // `root` is where the node's root directory is mounted, whose resolvers are asked: "/", "/host".
  // Packets go the ways of the calling thread's network namespace.
  ServiceProber(std::string root, NodeSettings settings, Patience patience);
  ServiceProber(std::string root, NodeSettings settings)
      : ServiceProber(std::move(root), std::move(settings), Patience()) {}

  // Looks, and blocks for some milliseconds; where services are silent for as long as all
  // `patience`. Counts failures in a row by the looks before. What it says after Interrupt() is of
  // no meaning.
  ServiceAnswers Probe();

  // Ends the look that is under way, and all that come.
  void Interrupt();

 private:
  std::vector<ServiceAnswer> Ask(const std::vector<ResolverQuestion>& questions) const;
  std::vector<ip::Address> Nameservers() const;

  const std::string root_;
  const NodeSettings settings_;
  const Patience patience_;
  const os::UniqueFd stop_;  // An eventfd; readable: stop.
  ServiceAnswers before_;
};

// Returns where the node's resolvers are named, for a process that has the node's root directory at
// `root`: the node's /etc/resolv.conf, or `own`, this process's, where that is not there. A pod
// that has only parts of the node's root has a copy from kubelet, with dnsPolicy: Default.
std::string ResolvConfPath(const std::string& root, const std::string& own);

// Reads what the kernel is told of the clock; nullopt: it does not say, as where ProtectClock= of
// systemd.exec(5) keeps this process from asking.
std::optional<KeptClock> ReadKeptClock();

}  // namespace spoke::node_checks
