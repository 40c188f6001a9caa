// Feeds what may come back from Azure, or from whatever answers in its place: never a crash, never
// a PUT that takes off what is not ours, never a URL that leads elsewhere. The first byte picks who
// reads the rest.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "ipam-server/cloud/azure/resources/arm_error.h"
#include "ipam-server/cloud/azure/resources/arm_id.h"
#include "ipam-server/cloud/azure/resources/instance_model.h"
#include "ipam-server/cloud/azure/resources/list_page.h"
#include "ipam-server/cloud/azure/resources/nic_resource.h"
#include "ipam-server/cloud/azure/resources/operation.h"
#include "ipam-server/cloud/azure/resources/throttle_headers.h"
#include "ipam-server/cloud/azure/scale_set.h"
#include "ipam-server/cloud/azure/token_request.h"
#include "lib/base/check.h"
#include "lib/json_text/json_text.h"

namespace spoke::ipam::azure {
namespace {

using nlohmann::json;

constexpr std::string_view kArm = "https://management.azure.com";

NicChange ChangeOf(const std::string& nic_name) {
  return {.nic_name = nic_name,
          .add = {{"spoke-new"}, {"spoke-block", ip::Family::kV4, 28}},
          .remove = {"spoke-old"},
          .prefix = "spoke-"};
}

void ReadInstance(std::string_view text) {
  const auto model = DecodeInstance(http::Response{200, {{"ETag", "\"1\""}}, std::string(text)});
  if (!model.ok() || !model->nics) return;
  for (const ModelNic& nic : *model->nics) {
    const auto body = BuildInstancePut(*model, ChangeOf(nic.name));
    if (!body.ok()) continue;
    json sent = json::parse(*body);
    sent["id"] = model->id.text();
    const auto again = DecodeInstance(sent);
    CHECK(again.ok() && again->nics && again->nics->size() == model->nics->size(),
          "what we send is what we would read");
  }
}

void ReadNic(std::string_view text) {
  const auto document = json_text::ParseJson(text);
  if (!document.ok()) return;
  const auto nic = DecodeNic(*document);
  if (!nic.ok()) return;
  CHECK(std::is_sorted(nic->configurations.begin(), nic->configurations.end()), "sorted");
  const auto body = BuildNicPut(*document, ChangeOf(nic->name));
  if (!body.ok()) return;
  const auto again = DecodeNic(json::parse(*body));
  CHECK(again.ok() && again->configurations.size() >= nic->configurations.size(),
        "at most one entry was to go, and two to come");
}

void ReadError(std::string_view text) {
  for (const int status : {200, 400, 404, 409, 429, 503}) {
    const ArmError error = DecodeArmError(
        {status, {{"Retry-After", std::string(text)}}, std::string(text)}, absl::UnixEpoch());
    const std::string line = Describe(error);
    CHECK(line.size() < 1200 && line.find('\n') == std::string::npos, "one bounded line");
  }
}

void ReadHeaders(std::string_view text) {
  const std::string value(text);
  DecodeThrottleHeaders({{"x-ms-ratelimit-remaining-resource", value},
                         {"x-ms-ratelimit-remaining-" + value, value},
                         {"x-ms-request-charge", value}});
  const auto headers = DecodeOperationHeaders(
      {{"Azure-AsyncOperation", value}, {"Retry-After", value}}, kArm, absl::UnixEpoch());
  if (headers.ok() && !value.empty()) {
    CHECK(headers->operation_url == value, "followed as it is");
  }
}

void ReadScaleSet(std::string_view text) {
  static_cast<void>(DecodeScaleSet(text));
  if (const auto document = json_text::ParseJson(text); document.ok()) {
    static_cast<void>(DecodeFlexibleVm(*document));
  }
}

void ReadTokenAnswer(std::string_view text) {
  const http::Response response{200, {{"Date", std::string(text)}}, std::string(text)};
  const auto token = DecodeToken(response, absl::UnixEpoch());
  if (token.ok()) {
    CHECK(token->expires > absl::UnixEpoch() && token->refresh > absl::UnixEpoch(),
          "a token lives");
  }
  CHECK(DescribeTokenError(response).find('\n') == std::string::npos, "one line");
}

void ReadId(std::string_view text) {
  const auto id = ResourceId::Parse(text);
  if (!id.ok()) return;
  const auto again = ResourceId::Parse(id->text());
  CHECK(again.ok() && *again == *id, "an id is its own text");
  ScaleSetOf(*id);
  CHECK(FollowUrl(kArm, ResourceUrl(kArm, *id)).ok(), "its URL leads to ARM");
}

}  // namespace
}  // namespace spoke::ipam::azure

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spoke::ipam::azure;  // NOLINT(google-build-using-namespace): the only function.
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'i':
      ReadInstance(text);
      break;
    case 'n':
      ReadNic(text);
      break;
    case 'l':
      static_cast<void>(DecodeListPage(text));
      break;
    case 'o':
      static_cast<void>(DecodeOperation(text));
      break;
    case 'e':
      ReadError(text);
      break;
    case 't':
      ReadTokenAnswer(text);
      break;
    case 's':
      ReadScaleSet(text);
      break;
    case 'h':
      ReadHeaders(text);
      break;
    default:
      ReadId(text);
  }
  return 0;
}
