#include "netagent/cni/cni_handler.h"

#include <algorithm>
#include <string>
#include <vector>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/base/version_skew.h"
#include "netagent/cni/cni_messages.h"

namespace spoke::netagent {
namespace {

// The failure of a client that does not keep to the protocol; our plugin never sees this.
CniFailure Malformed(std::string_view message) {
  return {.code = kCniInvalidEnvironment,
          .message = std::string(message),
          .details = "call the plugin as the CNI specification says, section 2"};
}

bool NeedsNetns(CniVerb verb) { return verb == CniVerb::kAdd || verb == CniVerb::kCheck; }
bool NeedsKey(CniVerb verb) { return verb != CniVerb::kGc && verb != CniVerb::kStatus; }

}  // namespace

void CniHandler::Handle(const v1::CniRequest& request, os::UniqueFd pod_netns,
                        Responder responder) {
  const auto reply = [&](const v1::CniResponse& response) {
    const absl::Status sent = responder.Answer(response);
    if (sent.ok()) return;
    edges_.log.Warn(
        "cni_answer_lost",
        {{"container", request.container_id()}, {"ifname", request.ifname()}, {"error", sent}});
  };
  const auto verb = VerbOf(request);
  if (!verb) {
    return reply(
        ErrorResponse({.code = kCniInternal,
                       .message = fmt::format("this agent does not know request {}",
                                              static_cast<int>(request.verb())),
                       .details = "the plugin is newer than the agent: install the same version"}));
  }
  if (NeedsKey(*verb) && (request.container_id().empty() || request.ifname().empty())) {
    return reply(ErrorResponse(
        Malformed("CNI_CONTAINERID and CNI_IFNAME are needed, and one of them is empty")));
  }
  if (NeedsNetns(*verb) && !pod_netns.valid()) {
    return reply(ErrorResponse(
        Malformed("the request came without the pod's network namespace, CNI_NETNS")));
  }
  WarnOfSkew(request.plugin_version());
  if (const auto refusal = RefusalOfPlugin(request.plugin_version(), edges_.version, *verb)) {
    return reply(ErrorResponse(*refusal));
  }
  absl::Status status;
  switch (*verb) {
    case CniVerb::kAdd:
      return edges_.adds.Handle(request, std::move(pod_netns), std::move(responder));
    case CniVerb::kDel:
      status = Del(request);
      break;
    case CniVerb::kCheck:
      status = Check(request, pod_netns);
      break;
    case CniVerb::kGc:
      status = CollectGarbage(request);
      break;
    case CniVerb::kStatus:
      status = Status();
      break;
  }
  reply(status.ok() ? DoneResponse() : ErrorResponse(FailureOf(status, *verb)));
  // The runtime does not wait for the log.
  LogOutcome(request, *verb, status);
}

// The warning comes once a version, since a plugin is exec'd for each pod.
void CniHandler::WarnOfSkew(std::string_view plugin_version) {
  const absl::Status skew =
      base::CheckSkew({"the plugin", plugin_version}, {"spoke-netagent", edges_.version});
  if (skew.ok() || warned_plugin_ == plugin_version) return;
  warned_plugin_ = std::string(plugin_version);
  edges_.log.Warn("plugin_version_skew", {{"error", skew}});
}

void CniHandler::LogOutcome(const v1::CniRequest& request, CniVerb verb,
                            const absl::Status& status) {
  if (verb == CniVerb::kDel) {
    const std::string trace = edges_.adds.TraceIdFor(request);
    if (status.ok()) {
      edges_.log.Info(
          "cni_del",
          {{"container", request.container_id()}, {"ifname", request.ifname()}, {"trace", trace}});
    } else {
      edges_.log.Warn("cni_del_failed", {{"container", request.container_id()},
                                         {"ifname", request.ifname()},
                                         {"trace", trace},
                                         {"error", status}});
    }
  } else if (verb == CniVerb::kCheck && !status.ok()) {
    edges_.log.Warn(
        "cni_check_failed",
        {{"container", request.container_id()}, {"ifname", request.ifname()}, {"error", status}});
  }
}

absl::Status CniHandler::Del(const v1::CniRequest& request) {
  const AttachmentKey key{request.container_id(), request.ifname()};
  // A pod whose ADD still waits would get an address after its end.
  edges_.adds.Forget(key);
  return edges_.attachments.Del(key);
}

absl::Status CniHandler::Check(const v1::CniRequest& request, const os::UniqueFd& pod_netns) {
  if (edges_.checker == nullptr) {
    return absl::UnimplementedError("this agent cannot check attachments");
  }
  ASSIGN_OR_RETURN(const CheckExpectation expected, ExpectationOf(request.expected()));
  return edges_.checker->Check({request.container_id(), request.ifname()}, expected,
                               pod_netns.get());
}

absl::Status CniHandler::CollectGarbage(const v1::CniRequest& request) {
  if (request.network_name().empty()) {
    // An empty name would stand for every attachment whose network is unknown, and for no other.
    return absl::InvalidArgumentError("GC came without the name of the network");
  }
  const std::vector<AttachmentKey> valid = ValidOf(request);
  size_t deleted = 0;
  const absl::Status status =
      edges_.attachments.CollectGarbage(request.network_name(), valid, deleted);
  if (!status.ok()) {
    edges_.log.Warn("cni_gc_failed", {{"network", request.network_name()},
                                      {"valid", valid.size()},
                                      {"deleted", deleted},
                                      {"error", status}});
    return status;
  }
  edges_.log.Info(
      "cni_gc",
      {{"network", request.network_name()}, {"valid", valid.size()}, {"deleted", deleted}});
  return status;
}

absl::Status CniHandler::Status() {
  absl::Status status = edges_.checker != nullptr ? edges_.checker->DataPath() : absl::OkStatus();
  // This is what a pod of no particular namespace would get.
  if (status.ok()) status = edges_.attachments.Plan({.key = {"status", "status"}}).status();
  if (absl::IsPermissionDenied(status)) {
    // All pools are for namespaces, so one of them with an available address will do.
    const auto counts = edges_.attachments.assignments().CountByPool();
    if (std::any_of(counts.begin(), counts.end(),
                    [](const auto& pool) { return pool.second.available > 0; })) {
      status = absl::OkStatus();
    }
  }
  if (absl::IsResourceExhausted(status) && !edges_.strict_status) {
    const auto counts = edges_.attachments.assignments().CountByPool();
    if (std::any_of(counts.begin(), counts.end(), [](const auto& pool) {
          return pool.second.in_use + pool.second.cooldown > 0;
        })) {
      status = absl::OkStatus();
    }
  }
  if (!status.ok() && !absl::IsDataLoss(status)) {
    if (const std::string forecast = edges_.adds.ForecastText(); !forecast.empty()) {
      status =
          absl::Status(status.code(), fmt::format("{}; {}", base::MessageOf(status), forecast));
    }
  }
  // Runtimes ask every five seconds: only what is new is said.
  if (last_status_ != status.code()) {
    edges_.log.Info("cni_status", {{"answer", status}});
    last_status_ = status.code();
  }
  return status;
}

}  // namespace spoke::netagent
