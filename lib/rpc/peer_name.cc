#include "lib/rpc/peer_name.h"

#include <charconv>
#include <system_error>

namespace spoke::rpc {

std::pair<ip::Address, uint16_t> ParsePeerName(std::string_view name) {
  const std::pair<ip::Address, uint16_t> none;
  const size_t scheme = name.find(':');
  const size_t colon = name.rfind(':');
  if (scheme == std::string_view::npos || colon <= scheme) return none;
  if (!name.starts_with("ipv4:") && !name.starts_with("ipv6:")) return none;
  std::string_view host = name.substr(scheme + 1, colon - scheme - 1);
  for (const std::string_view bracket : {"%5B", "["}) {
    if (host.starts_with(bracket)) host.remove_prefix(bracket.size());
  }
  for (const std::string_view bracket : {"%5D", "]"}) {
    if (host.ends_with(bracket)) host.remove_suffix(bracket.size());
  }
  const auto address = ip::Address::Parse(host.substr(0, host.find('%')));
  uint16_t port = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + colon + 1, end, port);
  if (!address.ok() || error != std::errc() || rest != end) return none;
  return {*address, port};
}

}  // namespace spoke::rpc
