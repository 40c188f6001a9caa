#include "netagent/kernel/netlink_conntrack_table.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/netlink/conntrack.h"
#include "lib/netlink/exchange.h"

namespace spoke::netagent {
namespace {

using netlink::TrackedConnection;

// Those of `addresses` that are an end of `connection`.
void AddEnds(const TrackedConnection& connection, const AddressSet& addresses,
             std::set<ip::Address>& found) {
  for (const ip::Address& end : connection.ends) {
    if (addresses.contains(end)) found.insert(end);
  }
}

absl::Status DeleteBatch(netlink::Socket& socket, std::span<const TrackedConnection> connections) {
  std::vector<netlink::Request> batch;
  batch.reserve(connections.size());
  for (const TrackedConnection& connection : connections) {
    batch.push_back(netlink::DeleteTrackedConnection(connection));
  }
  return netlink::SendBatch(socket, batch).status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<NetlinkConntrackTable>> NetlinkConntrackTable::Open() {
  ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open(netlink::Protocol::kNetfilter));
  RETURN_IF_ERROR(netlink::ProbeConntrack(socket));
  return std::unique_ptr<NetlinkConntrackTable>(new NetlinkConntrackTable(std::move(socket)));
}

ConntrackTable::Outcome NetlinkConntrackTable::DeleteConnectionsOf(const AddressSet& addresses) {
  Outcome outcome;
  std::vector<TrackedConnection> found;
  const absl::Status listed = netlink::DumpTrackedConnections(
      socket_,
      [&] {
        outcome = Outcome();
        found.clear();
      },
      [&](const TrackedConnection& connection) {
        ++outcome.seen;
        if (!IsOfAny(connection.ends, addresses)) return absl::OkStatus();
        if (found.size() < kMaxDeletions) {
          found.push_back(connection);
        } else {
          AddEnds(connection, addresses, outcome.left);
        }
        return absl::OkStatus();
      });
  if (!listed.ok()) {
    outcome.status = listed;
    outcome.left = {addresses.begin(), addresses.end()};
    return outcome;
  }
  if (!outcome.left.empty()) {
    outcome.status = absl::ResourceExhaustedError(
        fmt::format("more than {} connections are to be deleted at once", kMaxDeletions));
  }
  for (size_t begin = 0; begin < found.size(); begin += netlink::kMaxBatch) {
    const auto batch =
        std::span(found).subspan(begin, std::min(netlink::kMaxBatch, found.size() - begin));
    const absl::Status deleted = DeleteBatch(socket_, batch);
    if (deleted.ok()) {
      outcome.deleted += batch.size();
      continue;
    }
    // Which of them are left is not known; the next call finds out.
    for (const TrackedConnection& connection : batch) {
      AddEnds(connection, addresses, outcome.left);
    }
    outcome.status.Update(deleted);
  }
  return outcome;
}

absl::Status NetlinkConntrackTable::Count(ConnectionTally& tally) {
  return netlink::DumpTrackedConnections(
      socket_, [&] { tally.Reset(); },
      [&](const TrackedConnection& connection) {
        tally.Add(connection.ends, connection.protocol, connection.answering_port);
        return absl::OkStatus();
      });
}

}  // namespace spoke::netagent
