#include "netagent/connections/netlink_conntrack_table.h"

#include <algorithm>
#include <span>
#include <vector>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/netlink/conntrack.h"
#include "lib/netlink/socket.h"

namespace spoke::netagent {
namespace {

using netlink::TrackedConnection;

// Adds those of `addresses` that are an end of `connection`.
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

struct Fated {
  TrackedConnection connection;
  FlowFate fate = FlowFate::kStays;
};

absl::Status ChangeBatch(netlink::Socket& socket, std::span<const Fated> connections) {
  std::vector<netlink::Request> batch;
  batch.reserve(connections.size());
  for (const auto& [connection, fate] : connections) {
    batch.push_back(
        fate == FlowFate::kCut
            ? netlink::MarkTrackedConnection(connection, claims::kFlowCut, claims::kFlowMarkMask)
            : netlink::DeleteTrackedConnection(connection));
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

ConntrackTable::CutOutcome NetlinkConntrackTable::Cut(const CutRules& rules, Act act) {
  CutOutcome outcome;
  std::vector<Fated> fated;
  bool more = false;
  const absl::Status listed = netlink::DumpTrackedConnections(
      socket_,
      [&] {
        outcome = CutOutcome();
        fated.clear();
        more = false;
      },
      [&](const TrackedConnection& connection) {
        const TrackedFlow flow{.ends = connection.ends,
                               .mark = connection.mark & claims::kFlowMarkMask,
                               .closed = connection.closed};
        const FlowFate fate = rules.FateOf(flow);
        rules.Count(flow, fate, outcome.found);
        if (fate == FlowFate::kStays || act == Act::kCount) return absl::OkStatus();
        more = more || fated.size() == kMaxDeletions;
        if (!more) fated.push_back({connection, fate});
        return absl::OkStatus();
      });
  if (!listed.ok()) return {.status = listed};
  if (more) {
    outcome.status = absl::ResourceExhaustedError(
        fmt::format("more than {} connections are to be cut at once", kMaxDeletions));
  }
  for (size_t begin = 0; begin < fated.size(); begin += netlink::kMaxBatch) {
    const auto batch =
        std::span(fated).subspan(begin, std::min(netlink::kMaxBatch, fated.size() - begin));
    const absl::Status changed = ChangeBatch(socket_, batch);
    outcome.status.Update(changed);
    if (!changed.ok()) continue;  // Which of them are left, the next call finds out.
    for (const Fated& done : batch) outcome.Add(done.fate);
  }
  return outcome;
}

}  // namespace spoke::netagent
