#include "admin-cli/pod/wanted_pods.h"

#include <algorithm>

#include "admin-cli/output/views.h"
#include "admin-cli/policy/objects.h"
#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

// Returns ", did you mean ...": the nearest name, or one that goes on as `word` begins, which is
// how the pods of a Deployment are called.
std::string Meant(const std::string& word, const std::set<std::string>& names,
                  const std::string& prefix) {
  std::string nearest = Nearest(word, {names.begin(), names.end()});
  const auto next = names.lower_bound(word + "-");
  if (nearest.empty() && next != names.end() && next->starts_with(word + "-")) nearest = *next;
  return nearest.empty() ? "" : fmt::format("; did you mean {}{}?", prefix, nearest);
}

}  // namespace

bool WantedPods::Has(std::string_view pod_namespace, std::string_view pod_name) const {
  if (namespaces && !namespaces->contains(std::string(pod_namespace))) return false;
  return name.empty() || name == pod_name;
}

std::optional<WantedPods> OnePod(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == 0 || slash == std::string_view::npos || slash + 1 == text.size() ||
      text.find('/', slash + 1) != std::string_view::npos) {
    return std::nullopt;
  }
  WantedPods wanted{.name = std::string(text.substr(slash + 1)),
                    .one_namespace = std::string(text.substr(0, slash))};
  wanted.namespaces = {wanted.one_namespace};
  return wanted;
}

std::vector<Parameter> PodOptions(const std::string& which) {
  return {{.name = "namespace",
           .value = "NAMESPACE",
           .help = fmt::format("Only {} pods of this namespace", which),
           .letter = 'n'},
          {.name = "pod",
           .value = "POD",
           .help = fmt::format("Only {} pods of this name; NAMESPACE/NAME is one pod", which)},
          {.name = "team",
           .value = "TEAM",
           .help = fmt::format("Only {} pods of this team's namespaces", which)}};
}

absl::StatusOr<WantedPods> WantedPodsOf(const Session& session) {
  const Arguments& arguments = session.arguments;
  WantedPods wanted{.name = arguments.Text("pod"), .one_namespace = arguments.Text("namespace")};
  if (wanted.name.find('/') != std::string::npos) {
    const std::optional<WantedPods> one = OnePod(wanted.name);
    if (!one) {
      return absl::InvalidArgumentError(
          fmt::format("--pod: \"{}\" is neither NAME nor NAMESPACE/NAME", wanted.name));
    }
    if (!wanted.one_namespace.empty() && wanted.one_namespace != one->one_namespace) {
      return absl::InvalidArgumentError(fmt::format(
          "--pod {} and --namespace {} are of two namespaces", wanted.name, wanted.one_namespace));
    }
    wanted = *one;
    wanted.namespaces.reset();
  }
  if (arguments.Has("team")) {
    ASSIGN_OR_RETURN(wanted.namespaces, NamespacesOf(session.client, arguments.Text("team")));
  }
  if (wanted.one_namespace.empty()) return wanted;
  const bool of_team = !wanted.namespaces || wanted.namespaces->contains(wanted.one_namespace);
  wanted.namespaces.emplace();
  if (of_team) wanted.namespaces->insert(wanted.one_namespace);
  return wanted;
}

absl::Status CheckThereAreSuch(const Session& session, const WantedPods& wanted) {
  const std::string& of = wanted.one_namespace;
  if (of.empty() && wanted.name.empty()) return absl::OkStatus();
  std::set<std::string> namespaces;
  std::set<std::string> pods;  // Those of the namespace, or of all.
  RETURN_IF_ERROR(
      session.client.Read(kListAddresses, {}, [&](const v1::ListAddressesResponse& batch) {
        for (const v1::AddressInfo& address : batch.addresses()) {
          if (address.pod_name().empty()) continue;
          namespaces.insert(address.pod_namespace());
          if (of.empty() || of == address.pod_namespace()) pods.insert(address.pod_name());
        }
        return absl::OkStatus();
      }));
  if (!of.empty() && pods.empty()) {
    return absl::NotFoundError(fmt::format("no pod of namespace {} has an address{}", of,
                                           Meant(of, namespaces, "namespace ")));
  }
  if (wanted.name.empty() || pods.contains(wanted.name)) return absl::OkStatus();
  return absl::NotFoundError(fmt::format("no pod {} has an address{}", PodOf(of, wanted.name),
                                         Meant(wanted.name, pods, of.empty() ? "" : of + "/")));
}

}  // namespace spoke::ctl
