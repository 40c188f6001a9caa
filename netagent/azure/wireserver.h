// Reads what the host has programmed for a NIC from Azure's wire server, which a VM reaches at
// 168.63.129.16 whatever its network. It lists IPv4 alone.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "netagent/azure/fetch.h"
#include "netagent/azure/wireserver_interfaces.h"

namespace spoke::netagent::azure {

inline constexpr absl::Duration kWireserverTimeout = absl::Seconds(3);

// Asks once and waits. `url` is "http://168.63.129.16". Errors: kUnavailable (no answer, or another
// HTTP status than 200), kInvalidArgument (an answer that cannot be read); they name the URL.
absl::StatusOr<std::vector<HostInterface>> ReadWireserver(const std::string& url,
                                                          const Fetch& fetch);

// Returns the addresses of the NIC with that MAC, over all its subnets, blocks taken apart. Pure.
// Errors: kNotFound (no such NIC; the message has those there are); kInvalidArgument (more
// addresses than kMaxHostAddresses, which no NIC has).
inline constexpr uint64_t kMaxHostAddresses = 8192;
absl::StatusOr<std::set<ip::Address>> AddressesOf(const std::vector<HostInterface>& interfaces,
                                                  const ip::MacAddress& mac);

// Does both. Errors: those of both.
absl::StatusOr<std::set<ip::Address>> ReadHostAddresses(const std::string& url, const Fetch& fetch,
                                                        const ip::MacAddress& mac);

}  // namespace spoke::netagent::azure
