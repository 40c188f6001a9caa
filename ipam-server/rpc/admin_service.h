// What operators ask, answered from the loop's state. Reads only; a query is short on the loop's
// thread, and long lists are taken node by node.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "ipam-server/jobs/fleet_loop.h"
#include "proto/spoke/v1/admin.grpc.pb.h"

namespace spoke::ipam {

// Thread-safe. Errors of every call: DEADLINE_EXCEEDED (the loop did not answer in time).
class AdminService final : public v1::AdminService::Service {
 public:
  struct About {
    std::string version;
    std::string store;
    std::string cloud;
    absl::Time started;
  };
  // Borrows `loop`.
  AdminService(FleetLoop& loop, About about) : loop_(loop), about_(std::move(about)) {}

  grpc::Status GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest* request,
                         v1::GetStatusResponse* response) override;
  grpc::Status ListPools(grpc::ServerContext* context, const v1::ListPoolsRequest* request,
                         v1::ListPoolsResponse* response) override;
  grpc::Status ListNodes(grpc::ServerContext* context, const v1::ListNodesRequest* request,
                         grpc::ServerWriter<v1::ListNodesResponse>* writer) override;
  grpc::Status ListAddresses(grpc::ServerContext* context, const v1::ListAddressesRequest* request,
                             grpc::ServerWriter<v1::ListAddressesResponse>* writer) override;
  grpc::Status GetAddress(grpc::ServerContext* context, const v1::GetAddressRequest* request,
                          v1::AddressInfo* response) override;

 private:
  grpc::Status Ask(std::function<void(const FleetView&)> query);
  // Visits every node, a bounded number a query.
  grpc::Status AskForNodes(const std::function<void(const FleetView&, const NodeRecord&)>& visit);

  FleetLoop& loop_;
  const About about_;
};

}  // namespace spoke::ipam
