#include "tests/fabric/gateways.h"

#include <algorithm>
#include <charconv>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::fabric {
namespace {

// Returns `address` with all bits behind the first `length` cleared; `length` is 0 to
// address.bits().
ip::Address BaseOf(const ip::Address& address, int length) {
  const auto mask = [](int bits) {
    return bits <= 0 ? uint64_t{0} : ~uint64_t{0} << static_cast<unsigned>(64 - std::min(bits, 64));
  };
  if (address.is_v4()) {
    return ip::Address::V4(static_cast<uint32_t>(address.low() & (mask(length) >> 32U)));
  }
  return ip::Address::V6(address.high() & mask(length), address.low() & mask(length - 64));
}

}  // namespace

absl::StatusOr<Gateway> ParseGateway(std::string_view text) {
  const auto bad = [text](std::string_view why) {
    return absl::InvalidArgumentError(
        fmt::format("gateway \"{}\": {} (ADDRESS/LENGTH)", text, why));
  };
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return bad("no length");
  const absl::StatusOr<ip::Address> address = ip::Address::Parse(text.substr(0, slash));
  if (!address.ok()) return bad(base::MessageOf(address.status()));
  int length = -1;
  const char* const end = text.data() + text.size();
  const auto [read_to, error] = std::from_chars(text.data() + slash + 1, end, length);
  if (error != std::errc() || read_to != end || length < 0 || length > address->bits()) {
    return bad("no such length");
  }
  ASSIGN_OR_RETURN(const ip::Prefix subnet, ip::Prefix::Of(BaseOf(*address, length), length));
  return Gateway{*address, subnet};
}

absl::StatusOr<Gateways> Gateways::Build(std::vector<Gateway> all) {
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = i + 1; j < all.size(); ++j) {
      if (!all[i].subnet.Overlaps(all[j].subnet)) continue;
      return absl::InvalidArgumentError(fmt::format(
          "the subnets {} and {} overlap", all[i].subnet.ToString(), all[j].subnet.ToString()));
    }
  }
  return Gateways(std::move(all));
}

bool Gateways::Has(const ip::Address& address) const {
  return std::any_of(all_.begin(), all_.end(),
                     [&](const Gateway& gateway) { return gateway.address == address; });
}

const Gateway* Gateways::Of(const ip::Address& address) const {
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const Gateway& gateway) {
    return gateway.subnet.Contains(address);
  });
  return found == all_.end() ? nullptr : &*found;
}

bool Gateways::AreApart(const ip::Address& one, const ip::Address& other) const {
  const bool routed = std::any_of(all_.begin(), all_.end(), [&](const Gateway& gateway) {
    return gateway.address.is_v4() == one.is_v4();
  });
  if (!routed) return false;
  const Gateway* const near = Of(one);
  return near == nullptr || near != Of(other);
}

}  // namespace spoke::fabric
