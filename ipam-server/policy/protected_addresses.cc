#include "ipam-server/policy/protected_addresses.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>

#include "ipam-server/policy/platform_blocks.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

// Returns "10.0.0.1" of "10.0.0.1:7443", "::" of "[::]:7443".
std::string_view HostOf(std::string_view listen) {
  const size_t colon = listen.rfind(':');
  std::string_view host = listen.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  return host;
}

bool IsAny(const ip::Address& address) { return address.high() == 0 && address.low() == 0; }

bool CanBeCut(const ip::Address& address) {
  const auto& platform = PlatformBlocks();
  return std::none_of(platform.begin(), platform.end(),
                      [&](const ip::Prefix& block) { return block.Contains(address); });
}

std::string_view BytesOf(const void* data, size_t size) {
  return {static_cast<const char*>(data), size};
}

}  // namespace

std::vector<ProtectedAddress> ProtectedAddressesOf(std::string_view listen,
                                                   std::span<const ip::Address> own,
                                                   std::span<const ip::Address> advertised) {
  std::vector<ProtectedAddress> out;
  const auto add = [&](const ip::Address& address, std::string_view what) {
    const bool known = std::any_of(out.begin(), out.end(), [&](const ProtectedAddress& other) {
      return other.address == address;
    });
    if (!known && CanBeCut(address)) out.push_back({address, std::string(what)});
  };
  for (const ip::Address& address : advertised) add(address, "at which agents reach this server");
  const auto host = ip::Address::Parse(HostOf(listen));
  if (host.ok() && !IsAny(*host)) {
    add(*host, "at which agents reach this server");
  } else if (host.ok()) {
    for (const ip::Address& address : own) add(address, "an address of this server's own machine");
  }
  return out;
}

absl::StatusOr<std::vector<ip::Address>> OwnAddresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) < 0) return base::ErrnoToStatus(errno, "list this machine's addresses");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<ip::Address> out;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr) continue;
    absl::StatusOr<ip::Address> address = absl::NotFoundError("");
    if (at->ifa_addr->sa_family == AF_INET) {
      const auto* in = reinterpret_cast<const sockaddr_in*>(at->ifa_addr);
      address = ip::Address::FromBytes(BytesOf(&in->sin_addr, sizeof(in->sin_addr)));
    } else if (at->ifa_addr->sa_family == AF_INET6) {
      const auto* in = reinterpret_cast<const sockaddr_in6*>(at->ifa_addr);
      address = ip::Address::FromBytes(BytesOf(&in->sin6_addr, sizeof(in->sin6_addr)));
    }
    if (address.ok()) out.push_back(*address);
  }
  return out;
}

}  // namespace spoke::ipam
