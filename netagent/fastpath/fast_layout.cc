#include "netagent/fastpath/fast_layout.h"

#include "fmt/core.h"
#include "lib/base/status.h"
#include "netagent/bpf/maps.h"

namespace spoke::netagent {
namespace {

static_assert(kMaxFastHops == SPOKE_MAX_HOPS);

// Appends the hop. Errors: those of Configure().
absl::Status AppendHop(const FastHop& in, spoke_table& out) {
  const ip::Family family = in.first.family();
  if (in.last.family() != family || (in.gateway && in.gateway->family() != family)) {
    return absl::InvalidArgumentError(fmt::format("the fast path to {} - {}: two families in one",
                                                  in.first.ToString(), in.last.ToString()));
  }
  uint32_t& count = family == ip::Family::kV4 ? out.count4 : out.count6;
  if (count == SPOKE_MAX_HOPS) {
    return absl::InvalidArgumentError(
        fmt::format("the fast path has room for {} hops of a family", uint32_t{SPOKE_MAX_HOPS}));
  }
  if (family == ip::Family::kV4) {
    spoke_hop4& hop = out.hop4[count++];
    hop.first = static_cast<uint32_t>(in.first.low());
    hop.last = static_cast<uint32_t>(in.last.low());
    if (in.gateway) hop.via = ToLayout(*in.gateway).word[0];
  } else {
    spoke_hop6& hop = out.hop6[count++];
    hop.first = {in.first.high(), in.first.low()};
    hop.last = {in.last.high(), in.last.low()};
    if (in.gateway) hop.via = ToLayout(*in.gateway);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<spoke_table> ToLayout(const FastPathTable& in, uint32_t uplink) {
  spoke_table out{};
  out.layout = SPOKE_LAYOUT;
  out.uplink = uplink;
  for (const FastHop& hop : in.hops) RETURN_IF_ERROR(AppendHop(hop, out));
  return out;
}

}  // namespace spoke::netagent
