// NodeRoutes for tests, which say what is read.
#pragma once

#include <string>

#include "netagent/node/node_routes.h"

namespace spoke::netagent {

class FakeNodeRoutes : public NodeRoutes {
 public:
  absl::StatusOr<NodeNetwork> Read(const std::string& uplink) override {
    if (!status.ok()) return status;
    NodeNetwork answer = network;
    answer.uplink = uplink;
    return answer;
  }

  NodeNetwork network;
  absl::Status status;
};

}  // namespace spoke::netagent
