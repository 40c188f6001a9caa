#include "netagent/cni/cni_handler.h"

#include <string>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "netagent/core/claims.h"

namespace spoke::netagent {
namespace {

v1::CniResponse ErrorResponse(const absl::Status& status) {
  v1::CniResponse response;
  response.mutable_error()->set_code(CniCodeOf(status.code()));
  response.mutable_error()->set_message(std::string(status.message()));
  return response;
}

}  // namespace

uint32_t CniCodeOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kCniTryAgainLater;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kInvalidArgument:
      return kCniInvalidEnvironment;
    case absl::StatusCode::kAlreadyExists:
      return kCniAlreadyExists;
    default:
      return kCniInternal;
  }
}

v1::CniResponse CniHandler::Handle(const v1::CniRequest& request, os::UniqueFd pod_netns) {
  v1::CniResponse response;
  const AttachmentKey key{request.container_id(), request.ifname()};
  if (key.container_id.empty() || key.ifname.empty()) {
    return ErrorResponse(absl::InvalidArgumentError("container id and interface name are needed"));
  }
  switch (request.verb()) {
    case v1::CniRequest::VERB_ADD: {
      auto attachment = Add(request, pod_netns);
      if (!attachment.ok()) {
        log_.Warn("cni_add_failed", {{"container", key.container_id},
                                     {"ifname", key.ifname},
                                     {"pod", request.pod().name()},
                                     {"error", attachment.status()}});
        return ErrorResponse(attachment.status());
      }
      log_.Info("cni_add", {{"container", key.container_id},
                            {"ifname", key.ifname},
                            {"pod", request.pod().name()},
                            {"address", attachment->addresses(0).address()}});
      *response.mutable_attachment() = *std::move(attachment);
      return response;
    }
    case v1::CniRequest::VERB_DEL:
      if (const absl::Status status = attachments_.Del(key); !status.ok()) {
        log_.Warn("cni_del_failed",
                  {{"container", key.container_id}, {"ifname", key.ifname}, {"error", status}});
        return ErrorResponse(status);
      }
      log_.Info("cni_del", {{"container", key.container_id}, {"ifname", key.ifname}});
      response.mutable_done();
      return response;
    default:
      return ErrorResponse(absl::UnimplementedError(
          fmt::format("this agent does not know request {}", static_cast<int>(request.verb()))));
  }
}

absl::StatusOr<v1::CniAttachment> CniHandler::Add(const v1::CniRequest& request,
                                                  const os::UniqueFd& netns) {
  if (request.deadline_monotonic_ms() != 0 && monotonic_ms_() >= request.deadline_monotonic_ms()) {
    // So many came at once that this one waited too long: the runtime has given it up.
    return absl::DeadlineExceededError("the plugin no longer waits for this ADD");
  }
  if (!netns.valid()) {
    return absl::InvalidArgumentError("ADD came without the pod's network namespace");
  }
  ASSIGN_OR_RETURN(
      const AttachSpec spec,
      attachments_.Add({request.container_id(), request.ifname()},
                       {request.pod().namespace_(), request.pod().name(), request.pod().uid()},
                       netns.get()));
  v1::CniAttachment attachment;
  attachment.set_host_link(spec.host_link);
  attachment.set_host_mac(spec.host_mac.ToString());
  attachment.set_pod_mac(spec.pod_mac.ToString());
  attachment.set_mtu(spec.mtu);
  for (const ip::Address& address : spec.addresses) {
    v1::CniAddress& out = *attachment.add_addresses();
    out.set_address(fmt::format("{}/{}", address.ToString(), address.bits()));
    out.set_gateway((address.is_v4() ? claims::kGatewayV4 : claims::kGatewayV6).ToString());
  }
  return attachment;
}

}  // namespace spoke::netagent
