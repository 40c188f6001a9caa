// A node as its kernel and files have it, for a cleanup.
#pragma once

#include <memory>
#include <vector>

#include "lib/netlink/network_layer.h"
#include "lib/netlink/socket.h"
#include "lib/nft/connection.h"
#include "netagent/cleanup/cleanup.h"
#include "netagent/cleanup/file_traces.h"
#include "netagent/iptables/iptables.h"

namespace spoke::netagent {

// Works in the network namespace it was made in. Needs CAP_NET_ADMIN. Not thread-safe.
class NodeCleaner final : public CleanupEdge {
 public:
  struct Settings {
    CleanupPaths paths;
    std::vector<PublishedRule> published;  // The rules that the agent lays down.
  };
  // Borrows the back ends of iptables. Errors: kPermissionDenied; what errno says.
  static absl::StatusOr<std::unique_ptr<NodeCleaner>> Open(Settings settings, Iptables& nft,
                                                           Iptables& legacy);

  std::vector<absl::Status> Read(NodeTraces& traces) override;
  absl::StatusOr<bool> Remove(const Removal& removal) override;

 private:
  struct Published {
    Iptables* backend;
    PublishedRule rule;
  };

  NodeCleaner(Settings settings, netlink::Socket socket, nft::Connection tables)
      : settings_(std::move(settings)), socket_(std::move(socket)), tables_(std::move(tables)) {}

  absl::Status ReadLinks(NodeTraces& traces);
  absl::Status ReadRules(NodeTraces& traces);
  absl::Status ReadRoutes(NodeTraces& traces);
  absl::Status ReadTables(NodeTraces& traces);
  absl::Status ReadPublished(Iptables& backend, std::string_view name, NodeTraces& traces);
  absl::Status Send(const netlink::Request& request);

  const Settings settings_;
  netlink::Socket socket_;
  nft::Connection tables_;
  Iptables* nft_ = nullptr;
  Iptables* legacy_ = nullptr;

  // The traces of the last Read(). The other lists belong to the entries with the same place in it.
  NodeTraces traces_;
  std::vector<netlink::Rule> rules_;
  std::vector<netlink::Route> routes_;
  std::vector<nft::TableKey> keys_;
  std::vector<Published> published_;
};

}  // namespace spoke::netagent
