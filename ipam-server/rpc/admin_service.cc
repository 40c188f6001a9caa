#include "ipam-server/rpc/admin_service.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/synchronization/notification.h"
#include "fmt/core.h"
#include "ipam-server/rpc/convert.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

constexpr absl::Duration kLoopDeadline = absl::Seconds(10);
constexpr int kNodesPerQuery = 256;  // Keeps one query well under a millisecond.
constexpr int kRowsPerMessage = 1000;

const Session* SessionOf(const FleetView& view, const NodeKey& key) {
  const auto it = view.sessions.find(key);
  return it == view.sessions.end() ? nullptr : &it->second;
}

}  // namespace

grpc::Status AdminService::Ask(std::function<void(const FleetView&)> query) {
  // Shared, since a query that comes too late still has to find its notification.
  auto done = std::make_shared<absl::Notification>();
  auto abandoned = std::make_shared<absl::Mutex>();
  auto wanted = std::make_shared<bool>(true);
  loop_.PostQuery([=, query = std::move(query)](const FleetView& view) {
    absl::MutexLock lock(abandoned.get());
    if (*wanted) query(view);
    done->Notify();
  });
  if (done->WaitForNotificationWithTimeout(kLoopDeadline)) return grpc::Status::OK;
  absl::MutexLock lock(abandoned.get());
  if (done->HasBeenNotified()) return grpc::Status::OK;
  *wanted = false;
  return {grpc::StatusCode::DEADLINE_EXCEEDED, "the server is too busy to answer; try again"};
}

grpc::Status AdminService::AskForNodes(
    const std::function<void(const FleetView&, const NodeRecord&)>& visit) {
  std::optional<NodeKey> last;
  bool more = true;
  while (more) {
    const grpc::Status status = Ask([&](const FleetView& view) {
      const auto& nodes = view.fleet.nodes();
      auto it = last ? nodes.upper_bound(*last) : nodes.begin();
      for (int i = 0; i < kNodesPerQuery && it != nodes.end(); ++i, ++it) {
        visit(view, it->second);
        last = it->first;
      }
      more = it != nodes.end();
    });
    if (!status.ok()) return status;
  }
  return grpc::Status::OK;
}

grpc::Status AdminService::GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*,
                                     v1::GetStatusResponse* response) {
  response->set_version(about_.version);
  response->set_started_unix_ms(absl::ToUnixMillis(about_.started));
  response->set_store(about_.store);
  response->set_cloud(about_.cloud);
  return Ask([&](const FleetView& view) {
    AddressCounts counts;
    for (const auto& [key, record] : view.fleet.nodes()) {
      for (const auto& [address, held] : record.addresses) counts.Add(held);
    }
    uint64_t usable = 0;
    for (const AddressPool& pool : view.fleet.pools()) usable += pool.usable();
    response->set_nodes(view.fleet.nodes().size());
    response->set_nodes_connected(view.sessions.size());
    response->set_addresses_usable(usable);
    response->set_addresses_attached(counts.attached());
    response->set_addresses_lent(counts.lent);
    response->set_addresses_cooling(counts.cooling);
    for (const std::string& problem : view.problems) response->add_problems(problem);
  });
}

grpc::Status AdminService::ListPools(grpc::ServerContext*, const v1::ListPoolsRequest*,
                                     v1::ListPoolsResponse* response) {
  return Ask([&](const FleetView& view) {
    for (const AddressPool& pool : view.fleet.pools()) {
      *response->add_pools() = DescribePool(view.fleet, pool);
    }
  });
}

grpc::Status AdminService::ListNodes(grpc::ServerContext*, const v1::ListNodesRequest*,
                                     grpc::ServerWriter<v1::ListNodesResponse>* writer) {
  std::vector<v1::ListNodesResponse> batches(1);
  const grpc::Status status = AskForNodes([&](const FleetView& view, const NodeRecord& record) {
    if (batches.back().nodes_size() >= kRowsPerMessage) batches.emplace_back();
    *batches.back().add_nodes() = DescribeNode(view.fleet, record, SessionOf(view, record.key));
  });
  if (!status.ok()) return status;
  for (const v1::ListNodesResponse& batch : batches) writer->Write(batch);
  return grpc::Status::OK;
}

grpc::Status AdminService::ListAddresses(grpc::ServerContext*,
                                         const v1::ListAddressesRequest* request,
                                         grpc::ServerWriter<v1::ListAddressesResponse>* writer) {
  std::vector<std::pair<ip::Address, v1::AddressInfo>> rows;
  const grpc::Status status = AskForNodes([&](const FleetView&, const NodeRecord& record) {
    if (!request->node().empty() && request->node() != record.key.name) return;
    for (const auto& [address, held] : record.addresses) {
      if (!request->pool().empty() && request->pool() != held.pool) continue;
      if (!request->state().empty() && request->state() != NameOf(held.state, held.use)) continue;
      rows.emplace_back(address, DescribeAddress(record, address, held));
    }
  });
  if (!status.ok()) return status;
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  v1::ListAddressesResponse batch;
  for (auto& [unused, row] : rows) {
    *batch.add_addresses() = std::move(row);
    if (batch.addresses_size() < kRowsPerMessage) continue;
    writer->Write(batch);
    batch.Clear();
  }
  if (batch.addresses_size() > 0) writer->Write(batch);
  return grpc::Status::OK;
}

grpc::Status AdminService::GetAddress(grpc::ServerContext*, const v1::GetAddressRequest* request,
                                      v1::AddressInfo* response) {
  const auto address = ip::Address::Parse(request->address());
  if (!address.ok()) {
    return {grpc::StatusCode::INVALID_ARGUMENT, std::string(address.status().message())};
  }
  bool found = false;
  const grpc::Status status = Ask([&](const FleetView& view) {
    if (const NodeRecord* record = view.fleet.HolderOf(*address); record != nullptr) {
      *response = DescribeAddress(*record, *address, record->addresses.at(*address));
      found = true;
    } else if (const AddressPool* pool = view.fleet.PoolOf(*address); pool != nullptr) {
      response->set_address(address->ToString());
      response->set_state(pool->Owns(*address) ? "free" : "reserved");
      response->set_pool(pool->spec().name);
      found = true;
    }
  });
  if (status.ok() && !found) {
    return {
        grpc::StatusCode::NOT_FOUND,
        fmt::format("{} is in none of the pools; see: spokectl pool list", address->ToString())};
  }
  return status;
}

}  // namespace spoke::ipam
