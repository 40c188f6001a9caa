#include "tests/azure-sim/imds_model.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "fmt/core.h"
#include "tests/azure-sim/tokens.h"

namespace spoke::azure_sim {
namespace {

// The versions, newest first, as the service names them; it knows some between these as well.
constexpr std::array<std::string_view, 14> kVersions = {
    "2025-04-07", "2024-07-17", "2024-03-15", "2023-11-15", "2023-07-01",
    "2021-12-13", "2021-11-15", "2021-10-01", "2021-02-01", "2021-01-01",
    "2020-09-01", "2019-06-01", "2018-10-01", "2017-12-01"};
constexpr size_t kNewest = 3;

http::Response Json200(const Json& body) {
  http::Response response;
  response.status = 200;
  response.headers = {{"Content-Type", "application/json; charset=utf-8"},
                      {"Server", "IMDS/150.870.65.1854"}};
  response.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  return response;
}

http::Response Failure(int status, const Json& body) {
  http::Response response = Json200(body);
  response.status = status;
  return response;
}

http::Response IdentityFailure(int status, std::string_view error, std::string_view description) {
  return Failure(status, {{"error", error}, {"error_description", description}});
}

http::Response BadVersion() {
  Json newest = Json::array();
  for (size_t i = 0; i < kNewest; ++i) newest.push_back(kVersions[i]);
  return Failure(400, {{"error",
                        "Bad request. api-version is invalid or was not specified in the request. "
                        "For more information refer to aka.ms/azureimds"},
                       {"newest-versions", std::move(newest)}});
}

// Lists a directory's entries, those that lead further with a slash.
std::string Listing(const Json& node) {
  std::string text;
  for (size_t i = 0; node.is_array() && i < node.size(); ++i) text += fmt::format("{}/\n", i);
  if (node.is_object()) {
    for (const auto& [key, value] : node.items()) {
      text += value.is_structured() ? key + "/\n" : key + "\n";
    }
  }
  if (!text.empty()) text.pop_back();
  return text;
}

const Json* Descend(const Json& document, const Target& target) {
  const Json* node = &document;
  for (size_t i = 2; i < target.size(); ++i) {
    if (node->is_array()) {
      size_t index = 0;
      const std::string& text = target.keys[i];
      const auto parsed = std::from_chars(text.data(), text.data() + text.size(), index);
      if (parsed.ec != std::errc() || index >= node->size()) return nullptr;
      node = &(*node)[index];
      continue;
    }
    const Json* found = nullptr;
    for (auto it = node->begin(); node->is_object() && it != node->end(); ++it) {
      if (Lower(it.key()) == target.keys[i]) found = &*it;
    }
    if (found == nullptr) return nullptr;
    node = found;
  }
  return node;
}

}  // namespace

bool ImdsModel::TakeOne(const std::string& key, int per_second, absl::Time now) {
  Rate& rate = rates_[key];
  const int64_t second = absl::ToUnixSeconds(now);
  if (rate.second != second) rate = {second, 0};
  return ++rate.calls <= per_second;
}

std::optional<http::Response> ImdsModel::Refuse(const http::Request& request, const Target& target,
                                                const Instance& instance, absl::Time now) {
  const Knobs& knobs = backend_.knobs();
  const bool identity = target.Key(1) == "identity";
  const auto header = request.headers.Find("Metadata");
  if (!header.has_value() || Lower(*header) != "true") {
    constexpr const char* kMissing = "Required metadata header not specified";
    return identity ? IdentityFailure(400, "bad_request_102", kMissing)
                    : Failure(400, {{"error", kMissing}});
  }
  if (request.headers.Find("X-Forwarded-For").has_value() || target.has_duplicates) {
    return Failure(400, {{"error",
                          "Bad request. The request was forwarded, or names a parameter "
                          "twice."}});
  }
  if (knobs.imds_gone) return Failure(410, {{"error", "Gone. Retry later."}});
  if (knobs.imds_fails_status != 0) {
    return Failure(knobs.imds_fails_status, {{"error", "The service failed."}});
  }
  const int per_second = identity ? knobs.identity_per_second : knobs.imds_per_second;
  if (!TakeOne(fmt::format("{}|{}", identity, instance.id), per_second, now)) {
    return Failure(429, {{"error", "Too many requests."}});
  }
  return std::nullopt;
}

http::Response ImdsModel::Handle(const http::Request& request, std::string_view instance_id,
                                 absl::Time now) {
  backend_.timeline().RunUntil(now);
  const Instance* instance = backend_.world().FindInstance(instance_id);
  if (instance == nullptr) return {};
  const Target target = ParseTarget(request.url);
  if (auto refused = Refuse(request, target, *instance, now)) return *std::move(refused);
  const std::string_view what = target.Key(1);
  if (target.Key(0) != "metadata") return Failure(404, {{"error", "Not found"}});
  if (what == "scheduledevents") return HandleEvents(request, *instance, now);
  if (request.method != "GET") return Failure(405, {{"error", "Method not allowed"}});
  if (what == "versions") {
    Json versions = Json::array();
    for (auto it = kVersions.rbegin(); it != kVersions.rend(); ++it) versions.push_back(*it);
    return Json200({{"apiVersions", std::move(versions)}});
  }
  if (what == "instance") return HandleInstance(target, *instance, now);
  if (what == "identity" && target.Key(2) == "oauth2" && target.Key(3) == "token") {
    return HandleToken(target, now);
  }
  return Failure(404, {{"error", "Not found"}});
}

http::Response ImdsModel::HandleInstance(const Target& target, const Instance& instance,
                                         absl::Time now) {
  const std::string version = target.api_version();
  if (std::find(kVersions.begin(), kVersions.end(), version) == kVersions.end()) {
    return BadVersion();
  }
  const Json document = Document(instance, now);
  const Json* node = Descend(document, target);
  if (node == nullptr) return Failure(404, {{"error", "Not found"}});
  const bool text = Lower(target.Query("format")) == "text";
  if (!text && !node->is_structured()) {
    return Failure(400, {{"error", "Bad request. The format json is not supported for a leaf."}});
  }
  if (!text) return Json200(*node);
  http::Response response;
  response.status = 200;
  response.headers = {{"Content-Type", "text/plain; charset=utf-8"},
                      {"Server", "IMDS/150.870.65.1854"}};
  response.body = node->is_structured() ? Listing(*node) : node->get<std::string>();
  return response;
}

Json ImdsModel::Document(const Instance& instance, absl::Time now) const {
  return {{"compute", Compute(instance)}, {"network", Network(instance, now)}};
}

Json ImdsModel::Compute(const Instance& instance) const {
  const ScaleSet& set = *instance.set;
  const bool flexible = set.spec.orchestration == Orchestration::kFlexible;
  const std::string domain = fmt::format("{}", instance.number % 5);
  std::string zone;
  if (!set.spec.zones.empty()) {
    zone = set.spec.zones[static_cast<size_t>(instance.number) % set.spec.zones.size()];
  }
  const Json image = {{"id", ""}, {"offer", ""}, {"publisher", ""}, {"sku", ""}, {"version", ""}};
  const Json disk = {{"caching", "ReadWrite"},
                     {"createOption", "FromImage"},
                     {"diffDiskSettings", {{"option", ""}}},
                     {"diskSizeGB", "128"},
                     {"encryptionSettings", {{"enabled", "false"}}},
                     {"image", {{"uri", ""}}},
                     {"managedDisk", {{"id", ""}, {"storageAccountType", "Premium_LRS"}}},
                     {"name", ""},
                     {"osType", "Linux"},
                     {"vhd", {{"uri", ""}}},
                     {"writeAcceleratorEnabled", "false"}};
  return {{"azEnvironment", "AzurePublicCloud"},
          {"customData", ""},
          {"evictionPolicy", ""},
          {"isHostCompatibilityLayerVm", "false"},
          {"licenseType", ""},
          {"location", set.spec.location},
          {"name", instance.name},
          {"offer", ""},
          {"osProfile",
           {{"adminUsername", "azureuser"},
            {"computerName", instance.computer_name},
            {"disablePasswordAuthentication", "true"}}},
          {"osType", "Linux"},
          {"placementGroupId", flexible ? "" : GuidOf(7, 7)},
          {"plan", {{"name", ""}, {"product", ""}, {"publisher", ""}}},
          {"platformFaultDomain", domain},
          {"platformUpdateDomain", domain},
          {"priority", ""},
          {"provider", "Microsoft.Compute"},
          {"publicKeys", Json::array()},
          {"publisher", ""},
          {"resourceGroupName", set.group->name},
          {"resourceId", instance.id},
          {"securityProfile", {{"secureBootEnabled", "false"}, {"virtualTpmEnabled", "false"}}},
          {"sku", ""},
          {"storageProfile",
           {{"dataDisks", Json::array()},
            {"imageReference", image},
            {"osDisk", disk},
            {"resourceDisk", {{"size", "14336"}}}}},
          {"subscriptionId", set.group->subscription},
          {"tags", ""},
          {"tagsList", Json::array()},
          {"userData", ""},
          {"version", ""},
          {"virtualMachineScaleSet", {{"id", flexible ? set.id : ""}}},
          {"vmId", instance.vm_id},
          {"vmScaleSetName", set.spec.name},
          {"vmSize", set.sku},
          {"zone", zone}};
}

Json ImdsModel::Network(const Instance& instance, absl::Time now) const {
  const Knobs& knobs = backend_.knobs();
  const bool late = now < instance.imds_changed + knobs.imds_lag &&
                    instance.imds_before.size() == instance.nics.size();
  Json interfaces = Json::array();
  for (size_t i = 0; i < instance.nics.size(); ++i) {
    const Nic& nic = *instance.nics[i];
    Json v4 = Json::array();
    Json v6 = Json::array();
    Json subnet = Json::array();
    std::vector<NicEntry> entries = late ? instance.imds_before[i] : nic.entries;
    // The primary one comes first: cloud-init relies on it.
    std::stable_partition(entries.begin(), entries.end(),
                          [](const NicEntry& entry) { return entry.primary; });
    for (const NicEntry& entry : entries) {
      const uint64_t count = knobs.local_views_expand_blocks ? entry.range.size() : 1;
      for (uint64_t n = 0; n < count; ++n) {
        Json address = {{"privateIpAddress", ip::Advance(entry.range.base(), n).ToString()}};
        if (!entry.range.base().is_v4()) {
          v6.push_back(std::move(address));
          continue;
        }
        address["publicIpAddress"] = "";
        v4.push_back(std::move(address));
      }
    }
    if (!entries.empty()) {
      const ip::Prefix& prefix = entries[0].subnet->v4.prefix();
      subnet.push_back(
          {{"address", prefix.base().ToString()}, {"prefix", fmt::format("{}", prefix.length())}});
    }
    interfaces.push_back({{"ipv4", {{"ipAddress", std::move(v4)}, {"subnet", std::move(subnet)}}},
                          {"ipv6", {{"ipAddress", std::move(v6)}}},
                          {"macAddress", BareMac(nic.mac)}});
  }
  return {{"interface", std::move(interfaces)}};
}

http::Response ImdsModel::HandleToken(const Target& target, absl::Time now) {
  const Knobs& knobs = backend_.knobs();
  if (target.api_version().empty()) {
    return IdentityFailure(400, "invalid_request",
                           "Required query variable 'api-version' is "
                           "missing");
  }
  const std::string resource = target.Query("resource");
  if (resource.empty()) {
    return IdentityFailure(400, "invalid_request", "Required query variable 'resource' is missing");
  }
  if (knobs.identity_missing) {
    return IdentityFailure(400, "invalid_request", "Identity not found");
  }
  std::string client = target.Query("client_id");
  if (client.empty()) client = target.Query("object_id");
  if (client.empty()) client = target.Query("mi_res_id");
  if (client.empty()) client = "system";
  std::replace(client.begin(), client.end(), '.', '-');
  const Token token{client, now, now + knobs.token_lifetime};
  return Json200({{"access_token", FormatToken(token)},
                  {"refresh_token", ""},
                  {"expires_in", fmt::format("{}", absl::ToInt64Seconds(knobs.token_lifetime))},
                  {"expires_on", fmt::format("{}", absl::ToUnixSeconds(token.expires))},
                  {"not_before", fmt::format("{}", absl::ToUnixSeconds(now - absl::Minutes(5)))},
                  {"resource", resource},
                  {"token_type", "Bearer"}});
}

std::string ImdsModel::Schedule(ScheduledEvent event) {
  if (event.id.empty()) event.id = backend_.random().Guid();
  events_.push_back(std::move(event));
  ++incarnation_;
  return events_.back().id;
}

void ImdsModel::MoveEvents(absl::Time now) {
  for (ScheduledEvent& event : events_) {
    if (event.started || now < event.not_before) continue;
    event.started = true;  // It starts whether or not anybody agreed.
    event.begun = now;
    ++incarnation_;
  }
  const size_t over = std::erase_if(events_, [&](const ScheduledEvent& event) {
    return event.started && now - event.begun >= event.over_after;
  });
  incarnation_ += over > 0 ? 1 : 0;
}

http::Response ImdsModel::HandleEvents(const http::Request& request, const Instance& instance,
                                       absl::Time now) {
  const Target target = ParseTarget(request.url);
  if (target.api_version().empty()) return BadVersion();
  MoveEvents(now);
  if (request.method == "POST") {
    const Json body = Json::parse(request.body, nullptr, false);
    const bool valid =
        body.is_object() && body.contains("StartRequests") && body["StartRequests"].is_array();
    if (!valid) return Failure(400, {{"error", "Bad request"}});
    for (const Json& start : body["StartRequests"]) {
      if (!start.is_object() || !start.contains("EventId")) continue;
      const auto found = std::find_if(
          events_.begin(), events_.end(),
          [&start](const ScheduledEvent& event) { return start["EventId"] == event.id; });
      if (found == events_.end()) return Failure(400, {{"error", "Unknown event"}});
      if (found->started) continue;
      ++incarnation_;
      found->started = true;
      found->begun = now;
    }
    http::Response response;
    response.status = 200;
    return response;
  }
  Json events = Json::array();
  for (const ScheduledEvent& event : events_) {
    // All VMs of the placement group hear of it.
    const std::string prefix = instance.set->spec.name + "_";
    const bool ours = std::any_of(
        event.resources.begin(), event.resources.end(),
        [&](const std::string& name) { return name.substr(0, prefix.size()) == prefix; });
    if (!ours) continue;
    events.push_back({{"EventId", event.id},
                      {"EventStatus", event.started ? "Started" : "Scheduled"},
                      {"EventType", event.type},
                      {"ResourceType", "VirtualMachine"},
                      {"Resources", event.resources},
                      {"NotBefore", event.started ? "" : FormatHttpDate(event.not_before)},
                      {"Description", event.description},
                      {"EventSource", event.source},
                      {"DurationInSeconds", event.duration_seconds}});
  }
  return Json200({{"DocumentIncarnation", incarnation_}, {"Events", std::move(events)}});
}

}  // namespace spoke::azure_sim
