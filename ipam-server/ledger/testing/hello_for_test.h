// What a node says of itself, for tests.
#pragma once

#include <string>
#include <utility>

#include "ipam-server/ledger/node_record.h"
#include "lib/node_api/session.h"

namespace spoke::ipam {

inline node_api::NodeIdentity IdentityOf(const NodeKey& key, std::string boot_id = "b",
                                         std::string instance = "") {
  return {.node_name = key.name,
          .vm_id = key.vm_id,
          .boot_id = std::move(boot_id),
          .instance = std::move(instance)};
}

}  // namespace spoke::ipam
