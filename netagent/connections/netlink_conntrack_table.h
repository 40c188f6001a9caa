// ConntrackTable over ctnetlink: one dump, filtered here, then changes in batches. The kernel has
// no filter for a set of addresses (CTA_FILTER, Linux 5.8, knows one tuple).
#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "lib/netlink/socket.h"
#include "netagent/connections/conntrack_table.h"

namespace spoke::netagent {

// Works in the network namespace it was opened in. An entry that hardware or a flowtable forwards
// is not deleted before that ends (EBUSY), and so keeps its address in `left`.
class NetlinkConntrackTable final : public ConntrackTable {
 public:
  // Makes one for the calling thread's network namespace. Tries whether the kernel can do it, which
  // loads its module. Errors: kUnimplemented, kInternal (the kernel lacks ctnetlink or nfnetlink,
  // which the message names); kPermissionDenied (no CAP_NET_ADMIN); what errno says.
  static absl::StatusOr<std::unique_ptr<NetlinkConntrackTable>> Open();

  Outcome DeleteConnectionsOf(const AddressSet& addresses) override;
  absl::Status Count(ConnectionTally& tally) override;
  CutOutcome Cut(const CutRules& rules, Act act) override;

 private:
  explicit NetlinkConntrackTable(netlink::Socket socket) : socket_(std::move(socket)) {}

  netlink::Socket socket_;
};

}  // namespace spoke::netagent
