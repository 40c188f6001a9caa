// Blocks, addresses and endpoints for tests' policies, from their texts.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "lib/ip/address.h"
#include "lib/ip/endpoint.h"
#include "lib/ip/prefix.h"

namespace spoke::policy {

// Each text must be a CIDR block.
inline std::vector<ip::Prefix> Blocks(std::initializer_list<std::string_view> texts) {
  std::vector<ip::Prefix> blocks;
  for (const std::string_view text : texts) blocks.push_back(ip::Prefix::Parse(text).value());
  return blocks;
}

// Each text must be an address.
inline std::vector<ip::Address> Addresses(std::initializer_list<std::string_view> texts) {
  std::vector<ip::Address> addresses;
  for (const std::string_view text : texts) {
    addresses.push_back(ip::Address::Parse(text).value());
  }
  return addresses;
}

// Each text must be an address with a port.
inline std::vector<ip::Endpoint> Endpoints(std::initializer_list<std::string_view> texts) {
  std::vector<ip::Endpoint> endpoints;
  for (const std::string_view text : texts) {
    endpoints.push_back(ip::Endpoint::Parse(text).value());
  }
  return endpoints;
}

}  // namespace spoke::policy
