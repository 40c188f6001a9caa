#include "netagent/cni/cni_handler.h"

#include <algorithm>
#include <string>
#include <vector>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/base/version_skew.h"
#include "netagent/cni/cni_errors.h"

namespace spoke::netagent {
namespace {

cni::Response Done() { return {.outcome = cni::Response::Outcome::kDone}; }

cni::Response Failed(const cni::Error& error) {
  return {.outcome = cni::Response::Outcome::kError, .error = error};
}

bool IsKnown(cni::Verb verb) { return verb >= cni::Verb::kAdd && verb <= cni::Verb::kStatus; }
bool NeedsNetns(cni::Verb verb) { return verb == cni::Verb::kAdd || verb == cni::Verb::kCheck; }
bool NeedsKey(cni::Verb verb) { return verb != cni::Verb::kGc && verb != cni::Verb::kStatus; }

bool SameMajor(std::string_view one, std::string_view other) {
  const auto first = base::ParseVersion(one);
  const auto second = base::ParseVersion(other);
  return first.ok() && second.ok() && first->major == second->major;
}

// Returns why the request cannot be carried out, whatever the node has; nullopt: it can be.
std::optional<cni::Error> FaultOf(const cni::Request& request, bool has_netns) {
  if (!IsKnown(request.verb)) {
    return cni::Error{.message = fmt::format("this agent does not know request {}",
                                             static_cast<int>(request.verb)),
                      .details = "the plugin is newer than the agent: install the same version"};
  }
  // Our plugin does not send what follows.
  const char* const remedy = "call the plugin as the CNI specification says, section 2";
  if (NeedsKey(request.verb) && (request.container_id.empty() || request.ifname.empty())) {
    return cni::Error{cni::kInvalidEnvironment,
                      "CNI_CONTAINERID and CNI_IFNAME are needed, and one of them is empty",
                      remedy};
  }
  if (NeedsNetns(request.verb) && !has_netns) {
    return cni::Error{cni::kInvalidEnvironment,
                      "the request came without the pod's network namespace, CNI_NETNS", remedy};
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<CheckExpectation> ExpectationOf(const cni::Attachment& expected) {
  CheckExpectation out{.host_link = expected.host_link, .mtu = expected.mtu};
  if (!expected.pod_mac.empty()) {
    ASSIGN_OR_RETURN(out.pod_mac, ip::MacAddress::Parse(expected.pod_mac));
  }
  std::vector<std::string> addresses;
  addresses.reserve(expected.addresses.size());
  for (const cni::PodAddress& address : expected.addresses) addresses.push_back(address.address);
  ASSIGN_OR_RETURN(out.addresses, ReadAddresses(addresses));
  return out;
}

std::vector<AttachmentKey> ValidOf(const cni::Request& request) {
  std::vector<AttachmentKey> valid;
  if (!request.valid) return valid;
  valid.reserve(request.valid->size());
  for (const cni::AttachmentRef& ref : *request.valid) {
    if (ref.container_id.empty() || ref.ifname.empty()) continue;
    valid.push_back({ref.container_id, ref.ifname});
  }
  return valid;
}

void CniHandler::Handle(const cni::Request& request, os::UniqueFd pod_netns, Responder responder) {
  const auto reply = [&](const cni::Response& response) {
    const absl::Status sent = responder.Answer(response);
    if (sent.ok()) return;
    edges_.log.Warn(
        "cni_answer_lost",
        {{"container", request.container_id}, {"ifname", request.ifname}, {"error", sent}});
  };
  if (const auto fault = FaultOf(request, pod_netns.valid())) return reply(Failed(*fault));
  const absl::Status skew =
      base::CheckSkew({"the plugin", request.plugin_version}, {"spoke-netagent", edges_.version});
  if (!skew.ok()) {
    WarnOf(skew, request.plugin_version);
    if (request.verb == cni::Verb::kAdd && !SameMajor(request.plugin_version, edges_.version)) {
      return reply(Failed({cni::kVersionSkew, std::string(base::MessageOf(skew)),
                           "install the plugin of the agent's version on this node; an agent with "
                           "cni.bin_dir in its configuration does that itself"}));
    }
  }
  absl::Status status;
  switch (request.verb) {
    case cni::Verb::kAdd:
      return edges_.adds.Handle(request, std::move(pod_netns), std::move(responder));
    case cni::Verb::kDel:
      status = Del(request);
      break;
    case cni::Verb::kCheck:
      status = Check(request, pod_netns);
      break;
    case cni::Verb::kGc:
      status = CollectGarbage(request);
      break;
    case cni::Verb::kStatus:
      status = Status();
      break;
    case cni::Verb::kVersion:
      return;  // FaultOf() has said that it is not known.
  }
  reply(status.ok() ? Done() : Failed(ErrorOf(status, request.verb)));
  // The runtime does not wait for the log.
  LogOutcome(request, status);
}

// The warning comes once a version, since a plugin is exec'd for each pod.
void CniHandler::WarnOf(const absl::Status& skew, const std::string& plugin_version) {
  if (warned_plugin_ == plugin_version) return;
  warned_plugin_ = plugin_version;
  edges_.log.Warn("plugin_version_skew", {{"error", skew}});
}

void CniHandler::LogOutcome(const cni::Request& request, const absl::Status& status) {
  if (request.verb == cni::Verb::kDel) {
    const std::string trace = edges_.adds.TraceIdFor(request);
    if (status.ok()) {
      edges_.log.Info(
          "cni_del",
          {{"container", request.container_id}, {"ifname", request.ifname}, {"trace", trace}});
    } else {
      edges_.log.Warn("cni_del_failed", {{"container", request.container_id},
                                         {"ifname", request.ifname},
                                         {"trace", trace},
                                         {"error", status}});
    }
  } else if (request.verb == cni::Verb::kCheck && !status.ok()) {
    edges_.log.Warn(
        "cni_check_failed",
        {{"container", request.container_id}, {"ifname", request.ifname}, {"error", status}});
  }
}

absl::Status CniHandler::Del(const cni::Request& request) {
  const AttachmentKey key{request.container_id, request.ifname};
  // A pod whose ADD still waits would get an address after its end.
  edges_.adds.Forget(key);
  return edges_.attachments.Del(key);
}

absl::Status CniHandler::Check(const cni::Request& request, const os::UniqueFd& pod_netns) {
  if (edges_.checker == nullptr) {
    return absl::UnimplementedError("this agent cannot check attachments");
  }
  ASSIGN_OR_RETURN(const CheckExpectation expected,
                   ExpectationOf(request.expected.value_or(cni::Attachment())));
  return edges_.checker->Check({request.container_id, request.ifname}, expected, pod_netns.get());
}

absl::Status CniHandler::CollectGarbage(const cni::Request& request) {
  if (request.network_name.empty()) {
    // An empty name would stand for every attachment whose network is unknown, and for no other.
    return absl::InvalidArgumentError("GC came without the name of the network");
  }
  const std::vector<AttachmentKey> valid = ValidOf(request);
  size_t deleted = 0;
  const absl::Status status =
      edges_.attachments.CollectGarbage(request.network_name, valid, deleted);
  if (!status.ok()) {
    edges_.log.Warn("cni_gc_failed", {{"network", request.network_name},
                                      {"valid", valid.size()},
                                      {"deleted", deleted},
                                      {"error", status}});
    return status;
  }
  edges_.log.Info(
      "cni_gc", {{"network", request.network_name}, {"valid", valid.size()}, {"deleted", deleted}});
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
