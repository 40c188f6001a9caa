// A pod as far as its traffic goes. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/ip/address.h"
#include "lib/nft/ruleset.h"
#include "netagent/links/attach_plan.h"

namespace spoke::netagent {

// One attachment of a pod. The addresses and the link are this pod's alone as long as it is
// attached.
struct TrafficPod {
  std::string host_link;
  uint32_t host_index = 0;  // The index of that device.
  std::vector<ip::Address> addresses;
  std::optional<ip::MacAddress> pod_mac = std::nullopt;  // The pod's MAC; nullopt: it is not known.
  std::string pod_namespace;
  std::string pod_name;
  std::string pod_uid;
  uint32_t mtu = 0;  // In bytes.
  // Whether its packets leave by the node's first NIC, whose rules the fast path follows.
  bool on_first_nic = true;
  // Whether what passes by its link is limited, so that none of it may pass by the link's queue.
  bool shaped = false;
  cni::Bandwidth bandwidth =
      {};  // The limits of the whole link: what it sends is shaped by a class.
  cni::InternetOptions internet = {};

  bool operator==(const TrafficPod&) const = default;
};

// The table of all that is ours, except kNamesTable.
inline const nft::TableKey kSpokeTable{nft::Family::kInet, "spoke"};
// The table of what only the next agent has to know, in names of counters that count nothing: a
// table of its own, so that whoever reads the counts does not read these as well.
inline const nft::TableKey kNamesTable{nft::Family::kInet, "spoke-names"};

}  // namespace spoke::netagent
