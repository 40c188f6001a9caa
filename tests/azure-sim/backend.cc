#include "tests/azure-sim/backend.h"

#include <algorithm>
#include <charconv>

#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/fnv1a.h"

namespace spoke::azure_sim {
namespace {

constexpr std::string_view kPageKey = "page:";

std::string ToHex(std::string_view text) {
  std::string hex;
  for (const char c : text) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

std::string_view WordOf(Operation::Status status) {
  switch (status) {
    case Operation::Status::kInProgress:
      return "InProgress";
    case Operation::Status::kSucceeded:
      return "Succeeded";
    case Operation::Status::kFailed:
      return "Failed";
    case Operation::Status::kCanceled:
      return "Canceled";
  }
  return "";
}

// Returns what makes the URL of an operation unguessable: a client has to use it as it is.
std::string SignatureOf(std::string_view id) { return fmt::format("{:016x}", base::Fnv1a(id)); }

std::string_view NameOf(Provider provider) {
  return provider == Provider::kNetwork ? "Microsoft.Network" : "Microsoft.Compute";
}

}  // namespace

Direction Call::direction() const {
  if (request.method == "GET" || request.method == "HEAD") return Direction::kRead;
  return request.method == "DELETE" ? Direction::kDelete : Direction::kWrite;
}

std::string_view Call::if_match() const {
  return request.headers.Find("If-Match").value_or(std::string_view());
}

bool Call::wants_new() const { return request.headers.Find("If-None-Match") == "*"; }

uint64_t Counters::Total() const {
  uint64_t total = 0;
  for (const auto& [key, count] : calls) total += count;
  return total;
}

uint64_t Counters::Of(std::string_view kind) const {
  uint64_t total = 0;
  for (const auto& [key, count] : calls) {
    if (key.first == kind) total += count;
  }
  return total;
}

uint64_t Counters::Of(std::string_view kind, int status) const {
  const auto found = calls.find({std::string(kind), status});
  return found == calls.end() ? 0 : found->second;
}

Backend::Backend(std::unique_ptr<World> world, uint64_t seed, Knobs knobs)
    : world_(std::move(world)),
      knobs_(std::move(knobs)),
      random_(seed * 2 + 1),
      throttle_(knobs_.limits) {}

Renderer Backend::RendererFor(const Call& call) {
  const auto version = call.target.query.find("api-version");
  return {knobs_, random_,
          version == call.target.query.end() ? std::string_view() : version->second, call.now};
}

std::optional<http::Response> Backend::Ask(Call& call, Policy policy, const Throttle::Scope& scope,
                                           double units) {
  const bool network = policy == Policy::kNetworkRead || policy == Policy::kNetworkWrite;
  call.provider = network ? Provider::kNetwork : Provider::kCompute;
  Grant grant = throttle_.AskProvider(policy, scope, units, call.now);
  call.remaining.insert(call.remaining.end(), grant.remaining.begin(), grant.remaining.end());
  if (!network) call.charge = call.charge.value_or(0) + static_cast<int64_t>(units);
  if (grant.allowed) return std::nullopt;
  ++counters_.throttled;
  return Throttled(grant, network ? ThrottledBy::kNetwork : ThrottledBy::kCompute,
                   scope.subscription, knobs_, call.now);
}

Operation& Backend::Start(const Call& call, Provider provider, std::string_view subscription,
                          std::string_view location) {
  Operation operation;
  operation.id = random_.Guid();
  operation.provider = provider;
  operation.subscription = std::string(subscription);
  operation.location = std::string(location);
  operation.started = call.now;
  if (call.request.method == "DELETE") operation.end_status = 204;
  const std::string id = operation.id;
  return operations_.emplace(id, std::move(operation)).first->second;
}

Operation* Backend::Find(std::string_view id) {
  const auto found = operations_.find(std::string(id));
  return found == operations_.end() ? nullptr : &found->second;
}

void Backend::End(Operation& operation, absl::Time when, Operation::Status status,
                  std::string_view code, std::string_view message) {
  CHECK(operation.running(), "an operation ends once");
  operation.status = status;
  operation.ended = when;
  operation.code = std::string(code);
  operation.message = std::string(message);
  ++(status == Operation::Status::kSucceeded ? counters_.operations_succeeded
                                             : counters_.operations_failed);
  timeline_.At(when + knobs_.operation_kept,
               [this, id = operation.id](absl::Time) { operations_.erase(id); });
}

Backend::Fate Backend::Draw(const Latency& latency, absl::Time now) {
  Fate fate;
  fate.when = now + random_.Of(latency);
  if (random_.Chance(knobs_.failed_operations)) {
    fate.status = Operation::Status::kFailed;
    fate.nic_written = random_.Chance(knobs_.failed_after_write);
  } else if (random_.Chance(knobs_.canceled_operations)) {
    fate.status = Operation::Status::kCanceled;
  }
  return fate;
}

void Backend::AddAsyncHeaders(const Call& call, const Operation& operation, bool with_location,
                              http::Response* response) {
  const std::string signature = SignatureOf(operation.id);
  const std::string tail = fmt::format(
      "{}api-version={}&t={}&c={}&s={}&h={}",
      operation.provider == Provider::kCompute ? fmt::format("p={}&", GuidOf(7, 7)) : "",
      PercentEncode(call.target.api_version()), absl::ToUnixSeconds(operation.started),
      std::string(static_cast<size_t>(std::max(knobs_.operation_url_bytes, 0)), 'M'), signature,
      SignatureOf(signature));
  const std::string base =
      fmt::format("{}/subscriptions/{}/providers/{}/locations/{}", call.target.host,
                  operation.subscription, NameOf(operation.provider), operation.location);
  if (operation.provider == Provider::kCompute || knobs_.network_async_notification) {
    response->headers.Add("Azure-AsyncNotification", "Enabled");
  }
  response->headers.Add("Azure-AsyncOperation",
                        fmt::format("{}/operations/{}?{}", base, operation.id, tail));
  if (!with_location) return;
  if (operation.provider == Provider::kCompute) {
    response->headers.Add(
        "Location", fmt::format("{}/operations/{}?monitor=true&{}", base, operation.id, tail));
  } else {
    response->headers.Add("Location",
                          fmt::format("{}/operationResults/{}?{}", base, operation.id, tail));
  }
}

http::Response Backend::OperationStatus(Call& call) {
  call.kind = "operation.get";
  const bool network = call.target.Key(3) == "microsoft.network";
  // Polls are counted for the operation, as if it were the resource.
  const Throttle::Scope scope{call.target.Key(1), call.target.Key(5), call.target.Key(7)};
  if (auto refused = Ask(call, network ? Policy::kNetworkRead : Policy::kGetOperation, scope)) {
    return *std::move(refused);
  }
  if (!network) call.charge.reset();
  const Operation* operation = Find(call.target.Key(7));
  if (operation == nullptr || Lower(operation->subscription) != call.target.Key(1) ||
      call.target.Query("s") != SignatureOf(operation->id)) {
    return ErrorResponse(404, "NotFound",
                         fmt::format("The operation '{}' was not found.", call.target.Segment(7)));
  }
  if (!network && call.target.Query("monitor") == "true") return OperationResult(call);
  Json body = Json::object();
  if (!network) {
    body["startTime"] = TimeText(operation->started);
    if (!operation->running()) body["endTime"] = TimeText(operation->ended);
  }
  body["status"] = WordOf(operation->status);
  if (!network) body["name"] = operation->id;
  if (!operation->code.empty()) {
    body["error"] = {{"code", operation->code}, {"message", operation->message}};
    if (network) body["error"]["details"] = Json::array();
  }
  http::Response response = JsonResponse(200, body);
  if (operation->running() && (network || knobs_.retry_after_on_compute_operations)) {
    AddRetryAfter(absl::Seconds(10), knobs_.retry_after, call.now, &response);
  }
  return response;
}

http::Response Backend::OperationResult(Call& call) {
  call.kind = "operation.result";
  const Operation* operation = Find(call.target.Key(7));
  if (operation == nullptr) {
    return ErrorResponse(404, "NotFound",
                         fmt::format("The operation '{}' was not found.", call.target.Segment(7)));
  }
  if (!operation->running()) return EmptyResponse(operation->end_status);
  http::Response response = EmptyResponse(202);
  response.headers.Add("Location", call.request.url);
  AddRetryAfter(absl::Seconds(10), knobs_.retry_after, call.now, &response);
  return response;
}

std::optional<std::vector<NicEntry>> Backend::Plan(const Nic& nic,
                                                   const std::vector<IpConfig>& wanted,
                                                   AssignError* error) {
  std::unordered_map<std::string_view, const NicEntry*> by_name;
  for (const NicEntry& entry : nic.entries) by_name.emplace(entry.name, &entry);
  std::vector<NicEntry> planned;
  planned.reserve(wanted.size());
  for (const IpConfig& config : wanted) {
    const auto found = by_name.find(config.name);
    const bool stays = found != by_name.end() && found->second->subnet == config.subnet &&
                       found->second->block_length == config.block_length &&
                       (!config.fixed.has_value() || found->second->range.base() == *config.fixed);
    std::optional<NicEntry> entry;
    if (stays) {
      entry = *found->second;
      entry->extra = config.extra;
      entry->is_static = config.fixed.has_value();
    } else {
      entry = World::Assign(config);
    }
    if (!entry.has_value()) {
      const SubnetPool& pool = config.subnet->v4;
      if (config.fixed.has_value()) {
        *error = {"PrivateIPAddressIsAllocated",
                  fmt::format("IP configuration {}/ipConfigurations/{} is using the private IP "
                              "address {} which is already allocated to another resource.",
                              nic.id, config.name, config.fixed->ToString())};
      } else {
        *error = {"SubnetIsFull",
                  fmt::format("Subnet {} with address prefix {} does not have enough capacity for "
                              "{} IP addresses.",
                              config.subnet->name, pool.prefix().ToString(),
                              config.block_length != 0 ? 16 : 1)};
      }
      Undo(nic, planned);
      return std::nullopt;
    }
    entry->primary = wanted.size() == 1 || config.primary.value_or(false);
    planned.push_back(*std::move(entry));
  }
  return planned;
}

void Backend::Undo(const Nic& nic, const std::vector<NicEntry>& planned) {
  for (const NicEntry& entry : planned) {
    const NicEntry* kept = nic.FindEntry(entry.name);
    if (kept == nullptr || kept->range != entry.range) World::Release(entry);
  }
}

void Backend::Release(const NicEntry& entry, absl::Time when, absl::Duration delay) {
  if (delay <= absl::ZeroDuration()) return World::Release(entry);
  timeline_.At(when + delay, [entry](absl::Time) { World::Release(entry); });
}

void Backend::Commit(Nic& nic, std::vector<NicEntry> planned, absl::Time when) {
  if (nic.vm != nullptr && knobs_.imds_lag > absl::ZeroDuration()) {
    Instance& vm = *nic.vm;
    vm.imds_before.clear();
    for (const Nic* each : vm.nics) vm.imds_before.push_back(each->entries);
    vm.imds_changed = when;
  }
  std::unordered_map<std::string_view, const NicEntry*> stays;
  for (const NicEntry& entry : planned) stays.emplace(entry.name, &entry);
  std::vector<NicEntry> old = std::move(nic.entries);
  for (const NicEntry& entry : old) {
    const auto found = stays.find(entry.name);
    if (found != stays.end() && found->second->range == entry.range) continue;
    Release(entry, when, knobs_.free_after_removal);
  }
  nic.entries = std::move(planned);
  if (knobs_.nic_lag > absl::ZeroDuration()) {
    // Two changes within the lag: readers see the older of the two until the later is due.
    if (when >= nic.shown_from) {
      nic.before = std::move(old);
      nic.version_before = nic.version;
    }
    nic.shown_from = when + knobs_.nic_lag;
  } else {
    nic.before.clear();
    nic.shown_from = absl::InfinitePast();
  }
  ++nic.version;
  world_->WireChanged();
}

void Backend::TakeDown(Nic& nic, absl::Time when) {
  for (const NicEntry& entry : nic.entries) Release(entry, when, knobs_.free_after_delete);
  nic.entries.clear();
  nic.before.clear();
  nic.shown_from = absl::InfinitePast();
  world_->WireChanged();
}

http::Response Backend::Page(const Call& call, size_t size,
                             const std::function<Json(size_t)>& show) {
  const std::optional<uint64_t> cursor = CursorOf(call);
  if (!cursor.has_value()) {
    return ErrorResponse(400, "InvalidSkipToken", "The skip token is invalid.", Details::kNone,
                         "$skiptoken");
  }
  // A list may have become shorter since the page before.
  const auto begin = static_cast<size_t>(std::min<uint64_t>(*cursor, size));
  const size_t end = std::min(size, begin + static_cast<size_t>(std::max(knobs_.page_size, 1)));
  Json page = {{"value", Json::array()}};
  for (size_t at = begin; at < end; ++at) {
    if (!random_.Chance(knobs_.list_omits)) page["value"].push_back(show(at));
  }
  if (end < size) page["nextLink"] = NextLink(call, end);
  return JsonResponse(200, page);
}

std::optional<uint64_t> Backend::CursorOf(const Call& call) {
  const std::string token = call.target.Query("$skiptoken");
  if (token.empty()) return 0;
  std::string text;
  for (size_t i = 0; i + 1 < token.size(); i += 2) {
    unsigned byte = 0;
    const char* const begin = token.data() + i;
    if (std::from_chars(begin, begin + 2, byte, 16).ptr != begin + 2) return std::nullopt;
    text.push_back(static_cast<char>(byte));
  }
  if (text.substr(0, kPageKey.size()) != kPageKey) return std::nullopt;
  uint64_t cursor = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + kPageKey.size(), end, cursor);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return cursor;
}

std::string Backend::NextLink(const Call& call, uint64_t cursor) {
  std::string link = call.target.host + call.target.path + "?";
  for (const auto& [key, value] : call.target.query) {
    if (key == "$skiptoken") continue;
    link += fmt::format("{}={}&", PercentEncode(key), PercentEncode(value));
  }
  return link + "$skiptoken=" + ToHex(fmt::format("{}{}", kPageKey, cursor));
}

}  // namespace spoke::azure_sim
