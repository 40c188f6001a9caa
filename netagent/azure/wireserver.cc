#include "netagent/azure/wireserver.h"

#include "fmt/format.h"
#include "lib/base/status.h"

namespace spoke::netagent::azure {
namespace {

constexpr std::string_view kInterfacesPath =
    "/machine/plugins?comp=nmagent&type=getinterfaceinfov1";

}  // namespace

absl::StatusOr<std::vector<HostInterface>> ReadWireserver(const std::string& url,
                                                          const Fetch& fetch) {
  const http::Request request{.url = fmt::format("{}{}", url, kInterfacesPath)};
  const auto response = fetch(request, kWireserverTimeout);
  if (!response.ok()) {
    return absl::UnavailableError(
        fmt::format("{}: {}", request.url, base::MessageOf(response.status())));
  }
  if (response->status != 200) {
    return absl::UnavailableError(fmt::format("{}: HTTP {}", request.url, response->status));
  }
  auto interfaces = ParseWireserverInterfaces(response->body);
  if (!interfaces.ok()) return base::Annotate(interfaces.status(), request.url);
  return interfaces;
}

absl::StatusOr<std::set<ip::Address>> AddressesOf(const std::vector<HostInterface>& interfaces,
                                                  const ip::MacAddress& mac) {
  std::set<ip::Address> addresses;
  std::vector<std::string> others;
  for (const HostInterface& nic : interfaces) {
    if (nic.mac != mac) {
      others.push_back(nic.mac.ToString());
      continue;
    }
    for (const HostSubnet& subnet : nic.subnets) {
      for (const HostAddress& address : subnet.addresses) {
        const uint64_t size = address.range.size();
        if (size > kMaxHostAddresses - addresses.size()) {
          return absl::InvalidArgumentError(
              fmt::format("NIC {} has more than {} addresses", mac.ToString(), kMaxHostAddresses));
        }
        for (uint64_t i = 0; i < size; ++i) {
          addresses.insert(ip::Advance(address.range.base(), i));
        }
      }
    }
  }
  if (others.size() == interfaces.size()) {
    return absl::NotFoundError(
        fmt::format("the host has no NIC with MAC {}, but {}", mac.ToString(),
                    others.empty() ? "none" : fmt::format("{}", fmt::join(others, ", "))));
  }
  return addresses;
}

absl::StatusOr<std::set<ip::Address>> ReadHostAddresses(const std::string& url, const Fetch& fetch,
                                                        const ip::MacAddress& mac) {
  ASSIGN_OR_RETURN(const std::vector<HostInterface> interfaces, ReadWireserver(url, fetch));
  return AddressesOf(interfaces, mac);
}

}  // namespace spoke::netagent::azure
