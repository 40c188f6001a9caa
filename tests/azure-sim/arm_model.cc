#include "tests/azure-sim/arm_model.h"

#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "tests/azure-sim/tokens.h"

namespace spoke::azure_sim {
namespace {

http::Response Unauthorized(std::string_view code, std::string_view message) {
  http::Response response = ErrorResponse(401, code, message);
  response.headers.Add(
      "WWW-Authenticate",
      fmt::format(
          "Bearer authorization_uri=\"https://login.windows.net/\", error=\"invalid_token\", "
          "error_description=\"{}\"",
          message));
  return response;
}

http::Response Forbidden(const Call& call) {
  return ErrorResponse(
      403, "AuthorizationFailed",
      fmt::format("The client '{}' with object id '{}' does not have authorization to perform "
                  "action on {} over scope '{}' or the scope is invalid. If access was recently "
                  "granted, please refresh your credentials.",
                  call.principal, call.principal, call.request.method, call.target.path));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ArmModel>> ArmModel::Build(const SimSpec& spec, absl::Time now,
                                                          Knobs knobs) {
  ASSIGN_OR_RETURN(std::unique_ptr<World> world, World::Build(spec, now));
  return std::unique_ptr<ArmModel>(new ArmModel(std::move(world), spec.seed, std::move(knobs)));
}

const Counters& ArmModel::counters() {
  backend_.counters().sent_into_closed_gate = backend_.throttle().sent_into_closed_gate();
  return backend_.counters();
}

std::vector<ArmModel::OnWire> ArmModel::Wire() const {
  std::vector<OnWire> wire;
  for (const auto& [subscription, groups] : backend_.world().groups()) {
    for (const auto& [name, group] : groups) {
      for (const auto& [set_name, set] : group->sets) {
        for (const auto& [number, instance] : set->instances) {
          for (const Nic* nic : instance->nics) {
            for (const NicEntry& entry : nic->entries) {
              wire.push_back({instance.get(), nic, &entry});
            }
          }
        }
      }
    }
  }
  return wire;
}

http::Response ArmModel::Handle(const http::Request& request, absl::Time now) {
  Advance(now);
  const Target target = ParseTarget(request.url);
  Call call{request, target, now};
  front_door_.clear();
  http::Response response = Answer(call);
  Decorate(call, &response);
  const bool read = call.direction() == Direction::kRead;
  const Knobs& knobs = backend_.knobs();
  if (response.status != 429 &&
      backend_.random().Chance(read ? knobs.lost_reads : knobs.lost_responses)) {
    response = {};
  }
  Count(call, response.status);
  return response;
}

http::Response ArmModel::Answer(Call& call) {
  if (auto refused = Admit(call)) return *std::move(refused);
  const Knobs& knobs = backend_.knobs();
  if (backend_.random().Chance(knobs.server_errors)) {
    return ErrorResponse(knobs.server_error_status, "InternalServerError",
                         "Encountered internal server error.");
  }
  const bool write = call.direction() != Direction::kRead;
  if (write ? knobs.deny_writes : knobs.deny_reads) return Forbidden(call);
  if (write && knobs.scope_locked) {
    return ErrorResponse(409, "ScopeLocked",
                         fmt::format("The scope '{}' cannot perform write operation because "
                                     "following scope(s) are locked.",
                                     call.target.path));
  }
  return Route(call);
}

std::optional<http::Response> ArmModel::Admit(Call& call) {
  const Knobs& knobs = backend_.knobs();
  std::string_view bearer = call.request.headers.Find("Authorization").value_or("");
  constexpr std::string_view kScheme = "Bearer ";
  std::optional<Token> token;
  if (Lower(bearer.substr(0, kScheme.size())) == "bearer ") {
    token = ParseToken(bearer.substr(kScheme.size()));
  }
  if (token.has_value()) {
    if (call.now >= token->expires || token->issued < knobs.tokens_valid_from) {
      return Unauthorized("ExpiredAuthenticationToken",
                          "The access token expiry UTC time is earlier than current UTC time.");
    }
    call.principal = token->principal;
  } else if (knobs.require_token) {
    return bearer.empty()
               ? Unauthorized("AuthenticationFailed",
                              "Authentication failed. The 'Authorization' header is missing.")
               : Unauthorized("InvalidAuthenticationToken", "The access token is invalid.");
  }
  if (call.target.api_version().empty()) return MissingApiVersion();
  const std::string_view subscription = call.target.Key(1);
  if (call.target.Key(0) != "subscriptions" || !backend_.world().HasSubscription(subscription)) {
    return SubscriptionNotFound(call.target.Segment(1));
  }
  Grant grant =
      backend_.throttle().AskFrontDoor(subscription, call.principal, call.direction(), call.now);
  front_door_ = std::move(grant.remaining);
  if (grant.allowed) return std::nullopt;
  ++backend_.counters().throttled;
  call.kind = "front door";
  return Throttled(grant, ThrottledBy::kFrontDoor, subscription, knobs, call.now);
}

http::Response ArmModel::Route(Call& call) {
  const Target& target = call.target;
  const std::string version = target.api_version();
  ResourceGroup* group = nullptr;
  size_t provider = 2;
  if (target.Key(2) == "resourcegroups") {
    group = backend_.world().FindGroup(target.Key(1), target.Key(3));
    if (group == nullptr) return GroupNotFound(target.Segment(3));
    provider = 4;
  }
  const Knobs& knobs = backend_.knobs();
  if (target.Key(provider) != "providers" || target.size() < provider + 3) {
    if (!HasVersion(Api::kResourceManager, version, knobs)) return InvalidVersion(version, knobs);
    return ErrorResponse(501, "NotSimulated",
                         "Subscriptions and resource groups can only be in the path of what they "
                         "contain: their own operations are not simulated.");
  }
  const std::string_view name = target.Key(provider + 1);
  if (name != "microsoft.compute" && name != "microsoft.network") {
    return ErrorResponse(404, "InvalidResourceNamespace",
                         fmt::format("The resource namespace '{}' is invalid. The simulator has "
                                     "Microsoft.Compute and Microsoft.Network.",
                                     target.Segment(provider + 1)));
  }
  if (!IsVersionForm(version)) return InvalidVersion(version, knobs);
  const PathOperations& path =
      OperationsAt(target, provider + 1, group == nullptr ? Scope::kSubscription : Scope::kGroup);
  if (auto refused = RefuseOperation(call, path, group)) return *std::move(refused);
  if (name == "microsoft.network") return network_.Handle(call, group, provider + 2);
  if (path.operations.front()->api == Api::kScaleSetNics) {
    return network_.HandleBelowScaleSet(call, *group);
  }
  return compute_.Handle(call, group, provider + 2);
}

std::optional<http::Response> ArmModel::RefuseOperation(Call& call, const PathOperations& path,
                                                        const ResourceGroup* group) {
  const Target& target = call.target;
  const std::string version = target.api_version();
  const Knobs& knobs = backend_.knobs();
  call.kind = "refused";
  if (path.empty()) {
    const size_t provider = group == nullptr ? 3 : 5;
    const Api api = target.Key(provider) == "microsoft.network" ? Api::kNetwork : Api::kCompute;
    return UnknownResourceType(target.Segment(provider + 1), api, version, knobs);
  }
  const ApiOperation& any = *path.operations.front();
  if (!HasVersion(any.api, version, knobs)) {
    if (group == nullptr || !NamesResource(any)) {
      return UnknownResourceType(TypeOf(any), any.api, version, knobs);
    }
    return UnsupportedVersion(any, group->location, version, knobs);
  }
  call.provider = any.api == Api::kCompute ? Provider::kCompute : Provider::kNetwork;
  call.operation = path.Of(call.request.method);
  if (call.operation == nullptr) return MethodNotAllowed(call.request.method, path);
  if (call.operation->simulated == Simulated::kNo) return NotSimulated(*call.operation);
  return std::nullopt;
}

void ArmModel::Decorate(const Call& call, http::Response* response) {
  http::Headers& headers = response->headers;
  headers.Add("x-ms-request-id", backend_.random().Guid());
  if (headers.Find("X-Ms-Failure-Cause").has_value()) return;
  const Knobs& knobs = backend_.knobs();
  if (call.provider == Provider::kCompute) {
    headers.Add("X-Ms-Need-To-Refresh-Epl-Cache", "False");
    if (call.charge.has_value() && response->status != 412) {
      headers.Add("X-Ms-Request-Charge", fmt::format("{}", *call.charge));
    }
  }
  if (!knobs.expose_throttle_headers) return;
  for (const auto& [limit, left] : front_door_) {
    const bool global = limit.find("-global-") != std::string::npos;
    if (global && call.provider == Provider::kNetwork && !knobs.network_global_limits) continue;
    headers.Add(fmt::format("x-ms-ratelimit-remaining-{}", limit), fmt::format("{}", left));
  }
  if (call.provider != Provider::kCompute || call.remaining.empty()) return;
  constexpr const char* kRemaining = "x-ms-ratelimit-remaining-resource";
  std::string joined;
  for (const auto& [limit, left] : call.remaining) {
    std::string value = fmt::format("Microsoft.Compute/{};{}", limit, left);
    if (knobs.repeat_headers) {
      headers.Add(kRemaining, std::move(value));
    } else {
      joined += (joined.empty() ? "" : ",") + value;
    }
  }
  if (!knobs.repeat_headers) headers.Add(kRemaining, std::move(joined));
}

void ArmModel::Count(const Call& call, int status) {
  ++backend_.counters().calls[{std::string(call.kind), status}];
}

}  // namespace spoke::azure_sim
