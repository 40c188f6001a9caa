#include "netagent/cni/cni_messages.h"

#include <algorithm>
#include <string>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/ip/prefix.h"

namespace spoke::netagent {
namespace {

absl::StatusOr<ip::Address> AddressOf(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return ip::Address::Parse(text);
  ASSIGN_OR_RETURN(const ip::Address address, ip::Address::Parse(text.substr(0, slash)));
  const std::string length = text.substr(slash + 1);
  const bool number = !length.empty() && length.size() <= 3 &&
                      length.find_first_not_of("0123456789") == std::string::npos;
  if (!number || std::stoi(length) > address.bits()) {
    return absl::InvalidArgumentError(fmt::format("'{}' is no address", text));
  }
  return address;
}

}  // namespace

std::optional<CniVerb> VerbOf(const v1::CniRequest& request) {
  switch (request.verb()) {
    case v1::CniRequest::VERB_ADD:
      return CniVerb::kAdd;
    case v1::CniRequest::VERB_DEL:
      return CniVerb::kDel;
    case v1::CniRequest::VERB_CHECK:
      return CniVerb::kCheck;
    case v1::CniRequest::VERB_GC:
      return CniVerb::kGc;
    case v1::CniRequest::VERB_STATUS:
      return CniVerb::kStatus;
    default:
      return std::nullopt;
  }
}

absl::StatusOr<Assignment> AssignmentOf(const v1::CniRequest& request) {
  Assignment out{.key = {request.container_id(), request.ifname()},
                 .pod = {request.pod().namespace_(), request.pod().name(), request.pod().uid()},
                 .attempt = request.attempt(),
                 .netns_path = request.netns_path(),
                 .network = request.network_name()};
  if (!request.has_options()) return out;
  const v1::AttachmentOptions& options = request.options();
  if (!options.mac().empty()) {
    ASSIGN_OR_RETURN(out.options.pod_mac, ip::MacAddress::Parse(options.mac()));
  }
  out.options.mtu = options.mtu();
  out.options.bandwidth = {.ingress_rate = units::BitRate(options.bandwidth().ingress_rate()),
                           .ingress_burst = units::BitCount(options.bandwidth().ingress_burst()),
                           .egress_rate = units::BitRate(options.bandwidth().egress_rate()),
                           .egress_burst = units::BitCount(options.bandwidth().egress_burst())};
  out.options.internet = {
      .ingress = units::BitRate(options.internet().ingress()),
      .egress = units::BitRate(options.internet().egress()),
      .weight = std::clamp(options.internet().weight(), 1U, cni::kMaxPodWeight)};
  if (options.addresses_size() > kMaxRequests) {
    return absl::InvalidArgumentError(fmt::format(
        "{} addresses are asked for: an interface has one a family", options.addresses_size()));
  }
  for (const std::string& text : options.addresses()) {
    ASSIGN_OR_RETURN(out.addresses.emplace_back(), AddressOf(text));
  }
  return out;
}

absl::StatusOr<CheckExpectation> ExpectationOf(const v1::CniAttachment& expected) {
  CheckExpectation out{.host_link = expected.host_link(), .mtu = expected.mtu()};
  if (!expected.pod_mac().empty()) {
    ASSIGN_OR_RETURN(out.pod_mac, ip::MacAddress::Parse(expected.pod_mac()));
  }
  if (expected.addresses_size() > kMaxRequests) {
    return absl::InvalidArgumentError(
        fmt::format("{} addresses for one interface", expected.addresses_size()));
  }
  for (const v1::CniAddress& address : expected.addresses()) {
    ASSIGN_OR_RETURN(out.addresses.emplace_back(), AddressOf(address.address()));
  }
  return out;
}

std::vector<AttachmentKey> ValidOf(const v1::CniRequest& request) {
  std::vector<AttachmentKey> valid;
  valid.reserve(static_cast<size_t>(request.valid_size()));
  for (const v1::AttachmentRef& ref : request.valid()) {
    if (ref.container_id().empty() || ref.ifname().empty()) continue;
    valid.push_back({ref.container_id(), ref.ifname()});
  }
  return valid;
}

v1::CniResponse AttachmentResponse(const AttachSpec& spec) {
  v1::CniResponse response;
  v1::CniAttachment& attachment = *response.mutable_attachment();
  attachment.set_host_link(spec.host_link);
  attachment.set_host_mac(spec.host_mac.ToString());
  attachment.set_pod_mac(spec.pod_mac.ToString());
  attachment.set_mtu(spec.mtu);
  for (const ip::Address& address : spec.addresses) {
    v1::CniAddress& out = *attachment.add_addresses();
    out.set_address(fmt::format("{}/{}", address.ToString(), address.bits()));
    out.set_gateway(GatewayOf(address).ToString());
  }
  return response;
}

v1::CniResponse DoneResponse() {
  v1::CniResponse response;
  response.mutable_done();
  return response;
}

v1::CniResponse ErrorResponse(const CniFailure& failure) {
  v1::CniResponse response;
  v1::CniError& error = *response.mutable_error();
  error.set_code(failure.code);
  error.set_message(failure.message);
  error.set_details(failure.details);
  return response;
}

}  // namespace spoke::netagent
