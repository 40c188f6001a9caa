#include "netagent/attach/attachment_check.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "netagent/links/attachment_state.h"

namespace spoke::netagent {
namespace {

constexpr size_t kMaxTold = 3;

std::string ListOf(const std::vector<ip::Address>& addresses) {
  std::string text;
  for (const ip::Address& address : addresses) {
    text += fmt::format("{}{}", text.empty() ? "" : " and ", address.ToString());
  }
  return text;
}

// What prevResult says that was never so.
std::vector<std::string> CompareWithResult(const Assignment& assignment, const AttachSpec& spec,
                                           const CheckExpectation& expected) {
  std::vector<std::string> texts;
  if (!expected.host_link.empty() && expected.host_link != spec.host_link) {
    texts.push_back(fmt::format("prevResult names host link {}, but it is {}", expected.host_link,
                                spec.host_link));
  }
  for (const ip::Address& address : expected.addresses) {
    if (std::find(assignment.addresses.begin(), assignment.addresses.end(), address) !=
        assignment.addresses.end()) {
      continue;
    }
    texts.push_back(fmt::format("prevResult has {}, but {} is assigned to this interface",
                                address.ToString(), ListOf(assignment.addresses)));
  }
  return texts;
}

absl::Status Told(const AttachmentKey& key, const std::vector<std::string>& texts) {
  if (texts.empty()) return absl::OkStatus();
  std::string message;
  for (size_t i = 0; i < std::min(texts.size(), kMaxTold); ++i) {
    message += fmt::format("{}{}", i == 0 ? "" : "; ", texts[i]);
  }
  if (texts.size() > kMaxTold) message += fmt::format("; and {} more", texts.size() - kMaxTold);
  return absl::DataLossError(
      fmt::format("{} of container {}: {}", key.ifname, key.container_id, message));
}

}  // namespace

AttachmentCheck::AttachmentCheck(SpecOf spec_of, Inspector& inspector,
                                 const Attachments& attachments, const Repairer& repairer)
    : spec_of_(std::move(spec_of)),
      inspector_(inspector),
      attachments_(attachments),
      repairer_(repairer) {}

absl::Status AttachmentCheck::Check(const AttachmentKey& key, const CheckExpectation& expected,
                                    int pod_netns) {
  const Assignment* const assignment = attachments_.assignments().Find(key);
  if (assignment == nullptr) return Told(key, {"this node has assigned it no address"});
  ASSIGN_OR_RETURN(const AttachSpec spec, spec_of_(*assignment));
  std::vector<std::string> texts = CompareWithResult(*assignment, spec, expected);

  auto hosts = inspector_.ReadHostSides();
  if (!hosts.ok()) return absl::UnavailableError(hosts.status().message());
  std::optional<PodSide> pod;
  auto read = inspector_.ReadPodSide(spec, pod_netns);
  if (read.ok()) {
    pod = *std::move(read);
  } else if (absl::IsFailedPrecondition(read.status())) {
    texts.emplace_back(base::MessageOf(read.status()));
  } else if (!absl::IsNotFound(read.status())) {
    return absl::UnavailableError(read.status().message());
  }
  // Without a host link Compare() says so, and there is nothing to look at in the pod.
  for (Difference& difference : Compare(spec, (*hosts)[spec.host_link], pod,
                                        {.mac = expected.pod_mac, .mtu = expected.mtu})) {
    texts.push_back(std::move(difference.text));
  }
  return Told(key, texts);
}

absl::Status AttachmentCheck::DataPath() const {
  const absl::Status health = repairer_.Health();
  return health.ok() ? health : absl::DataLossError(health.message());
}

}  // namespace spoke::netagent
