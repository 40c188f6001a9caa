// What the server tells an agent, as values. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "lib/ip/address.h"

namespace spoke::ipam {

struct DesiredAddress {
  ip::Address address;
  std::string configuration;
  std::string pool;
  ip::MacAddress nic_mac;
  absl::Duration cooling;  // Not to be lent for this long.

  bool operator==(const DesiredAddress&) const = default;
};

struct PoolState {
  std::string name;
  std::string cidr;
  uint64_t usable = 0;
  uint64_t attached = 0;
  uint64_t free = 0;

  bool operator==(const PoolState&) const = default;
};

struct Welcome {
  uint64_t session_epoch = 0;

  bool operator==(const Welcome&) const = default;
};

struct DesiredState {
  uint64_t version = 0;
  bool full = false;
  std::vector<DesiredAddress> added;
  std::vector<ip::Address> removed;
  std::vector<PoolState> pools;

  bool operator==(const DesiredState&) const = default;
};

struct ReportAck {
  uint64_t sequence = 0;

  bool operator==(const ReportAck&) const = default;
};

using ToAgent = std::variant<Welcome, DesiredState, ReportAck>;

}  // namespace spoke::ipam
