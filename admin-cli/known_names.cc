#include "admin-cli/known_names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "admin-cli/policy/objects.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/node_api/traffic_classes.h"

namespace spoke::ctl {
namespace {

// The most names that a mistyped one is compared with: those of the largest cluster's nodes.
constexpr size_t kMostCompared = 10'000;

class Collected {
 public:
  explicit Collected(const NameQuery& query) : query_(query) {}

  void Add(const std::string& name) {
    if (name.starts_with(query_.prefix) && names_.size() < query_.most) names_.push_back(name);
  }
  // Returns an error once there are enough, which ends a stream.
  absl::Status Wanted() const {
    return names_.size() < query_.most ? absl::OkStatus() : absl::CancelledError("enough");
  }
  std::vector<std::string> names() && { return std::move(names_); }

 private:
  const NameQuery& query_;
  std::vector<std::string> names_;
};

void AddNodes(const Client& client, Collected& out) {
  client
      .Read(kListNodes, {},
            [&](const v1::ListNodesResponse& batch) {
              for (const v1::NodeInfo& node : batch.nodes()) out.Add(node.name());
              return out.Wanted();
            })
      .IgnoreError();
}

void AddAddresses(const Client& client, bool pods, Collected& out) {
  client
      .Read(kListAddresses, {},
            [&](const v1::ListAddressesResponse& batch) {
              for (const v1::AddressInfo& address : batch.addresses()) {
                if (!pods) out.Add(address.address());
                if (pods && !address.pod_name().empty()) {
                  out.Add(address.pod_namespace() + "/" + address.pod_name());
                }
              }
              return out.Wanted();
            })
      .IgnoreError();
}

void AddBudgets(const Client& client, Collected& out) {
  const auto answer = client.Ask(kGetBudgets);
  if (!answer.ok()) return;
  for (const v1::BudgetInfo& budget : answer->budgets()) out.Add(budget.name());
}

void AddTeams(const Client& client, const std::string& of, Collected& out) {
  const auto answer = client.Ask(kGetBudgets);
  if (!answer.ok()) return;
  for (const v1::BudgetInfo& budget : answer->budgets()) {
    if (budget.name() != of) continue;
    for (const v1::BudgetTeamInfo& team : budget.teams()) out.Add(team.name());
  }
}

// The server has the groups; what nodes call their other classes does not change.
void AddClasses(const Client& client, Collected& out) {
  for (const std::string_view name : node_api::kTrafficClasses) out.Add(std::string(name));
  out.Add(std::string(node_api::kExternalTraffic));
  v1::GetObjectsRequest request;
  request.set_kind("DestinationGroup");
  const auto groups = client.Ask(kGetObjects, request);
  if (!groups.ok()) return;
  for (const v1::PolicyObjectInfo& group : groups->objects()) {
    out.Add(std::string(node_api::kGroupTraffic) + group.name());
  }
}

void AddObjects(const Client& client, const std::string& kind, Collected& out) {
  v1::GetObjectsRequest request;
  request.set_kind(KindOf(kind));
  const auto objects = client.Ask(kGetObjects, request);
  if (!objects.ok()) return;
  for (const v1::PolicyObjectInfo& object : objects->objects()) out.Add(object.name());
}

Values MeaningOf(const NameQuery& query) {
  if (query.values != Values::kExplained) return query.values;
  if (query.context == "node") return Values::kNode;
  return query.context == "ip" ? Values::kAddress : query.values;
}

// Returns whether a mistyped value can be told from the names that there are, and these are few.
bool IsName(Values values) {
  return values == Values::kNode || values == Values::kPool || values == Values::kReservation ||
         values == Values::kBudget || values == Values::kBudgetTeam || values == Values::kKind ||
         values == Values::kObject || values == Values::kTrafficClass;
}

// Returns the name that `value` is most like, whatever their case; empty: it is one of them, or
// like none.
std::string NearestOf(const std::string& value, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), value) != names.end()) return "";
  std::vector<std::string> compared;
  compared.reserve(names.size());
  for (const std::string& name : names) compared.push_back(absl::AsciiStrToLower(name));
  const std::string nearest = Nearest(absl::AsciiStrToLower(value), compared);
  const auto found = std::find(compared.begin(), compared.end(), nearest);
  return found == compared.end() ? "" : names[static_cast<size_t>(found - compared.begin())];
}

}  // namespace

std::vector<std::string> NamesOf(const Client& client, const NameQuery& query) {
  Collected out(query);
  switch (MeaningOf(query)) {
    case Values::kNode:
      AddNodes(client, out);
      break;
    case Values::kAddress:
      AddAddresses(client, false, out);
      break;
    case Values::kExplained:
      if (query.context == "pod") AddAddresses(client, true, out);
      break;
    case Values::kPool:
      if (const auto pools = client.Ask(kListPools); pools.ok()) {
        for (const v1::PoolInfo& pool : pools->pools()) out.Add(pool.name());
      }
      break;
    case Values::kReservation:
      if (const auto reservations = client.Ask(kListReservations); reservations.ok()) {
        for (const auto& reservation : reservations->reservations()) out.Add(reservation.name());
      }
      break;
    case Values::kBudget:
      AddBudgets(client, out);
      break;
    case Values::kBudgetTeam:
      AddTeams(client, query.context, out);
      break;
    case Values::kKind:
      for (const std::string& kind : KnownKinds()) out.Add(kind);
      break;
    case Values::kTrafficClass:
      AddClasses(client, out);
      break;
    case Values::kObject:
      AddObjects(client, query.context, out);
      break;
    default:
      break;
  }
  return std::move(out).names();
}

std::string MeantName(const Client& client, const Command& command, const Arguments& arguments) {
  std::vector<Parameter> parameters = command.positionals;
  parameters.insert(parameters.end(), command.options.begin(), command.options.end());
  std::string context;
  for (const Parameter& parameter : parameters) {
    const NameQuery query{.values = parameter.values, .context = context, .most = kMostCompared};
    if (!arguments.All(parameter.name).empty()) context = arguments.Text(parameter.name);
    const Values meaning = MeaningOf(query);
    if (!IsName(meaning) || arguments.All(parameter.name).empty()) continue;
    const std::vector<std::string> names = NamesOf(client, query);
    for (const std::string& value : arguments.All(parameter.name)) {
      if (const size_t slash = value.find('/');
          meaning == Values::kKind && slash != std::string::npos) {
        const std::string kind = KindOf(value.substr(0, slash));
        const NameQuery of_kind{.values = Values::kObject, .context = kind, .most = kMostCompared};
        const std::string object = NearestOf(value.substr(slash + 1), NamesOf(client, of_kind));
        if (!object.empty()) return fmt::format("{}/{}", kind, object);
      }
      // A kind may be written in several ways.
      const std::string meant =
          meaning == Values::kKind ? KindOf(value.substr(0, value.find('/'))) : value;
      if (std::find(names.begin(), names.end(), meant) != names.end()) continue;
      const std::string nearest = NearestOf(value, names);
      const bool plural = meaning == Values::kKind && nearest.empty() && value.ends_with('s');
      return plural ? NearestOf(value.substr(0, value.size() - 1), names) : nearest;
    }
  }
  return "";
}

}  // namespace spoke::ctl
