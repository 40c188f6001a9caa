#include "ipam-server/policy/kinds/node_remedy.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "fmt/core.h"
#include "ipam-server/policy/objects/object.h"
#include "lib/base/status.h"
#include "lib/config/config_text.h"
#include "nlohmann/json.hpp"

namespace spoke::ipam {
namespace {

using config::ConfigMap;
using config::Need;

constexpr absl::Duration kLongestDelay = absl::Hours(24);

struct Cause {
  std::string_view key;
  Remedy NodeRemedies::*remedy;
};

constexpr std::array kCauses = {Cause{"unfit", &NodeRemedies::unfit},
                                Cause{"noAddresses", &NodeRemedies::no_addresses},
                                Cause{"maintenance", &NodeRemedies::maintenance}};

class NodeRemedyObject : public Spec {
 public:
  NodeRemedyObject(std::string name, const NodeRemedies& remedies, int line)
      : name_(std::move(name)), remedies_(remedies), line_(line) {}

  std::string ToJson() const override {
    nlohmann::json json;
    for (const Cause& cause : kCauses) {
      const Remedy& remedy = remedies_.*cause.remedy;
      nlohmann::json& said = json[std::string(cause.key)];
      said = {{"effect", NameOf(remedy.effect)}};
      if (remedy.effect == TaintEffect::kNoExecute) {
        said["evictAfter"] = remedy.evict_after == absl::ZeroDuration()
                                 ? "0s"  // Zero is written without a unit.
                                 : absl::FormatDuration(remedy.evict_after);
      }
    }
    return json.dump();
  }

  // It speaks for all nodes, so there is one.
  std::vector<Claim> Claims() const override {
    return {{.space = "remedies",
             .share = name_,
             .what = std::string("all nodes"),
             .role = "the scope",
             .path = "spec",
             .line = line_}};
  }

  const NodeRemedies& remedies() const { return remedies_; }

 private:
  std::string name_;
  NodeRemedies remedies_;
  int line_;
};

void ReadEffect(const ConfigMap& map, Remedy& out) {
  if (!map.present()) return;
  map.Custom("effect", Need::kRequired, [&](std::string_view text) {
    ASSIGN_OR_RETURN(out.effect, ParseTaintEffect(text));
    return absl::OkStatus();
  });
}

void ReadEffectAndDelay(const ConfigMap& map, Remedy& out) {
  ReadEffect(map, out);
  map.Duration("evictAfter", &out.evict_after, Need::kOptional,
               {absl::ZeroDuration(), kLongestDelay});
  if (map.Has("evictAfter") && out.effect != TaintEffect::kNoExecute) {
    map.Error("evictAfter", fmt::format("means nothing with the effect {}: remove it, or take the "
                                        "effect NoExecute",
                                        NameOf(out.effect)));
  }
}

}  // namespace

std::shared_ptr<const Spec> ReadNodeRemedy(const ConfigMap& spec, const std::string& name) {
  NodeRemedies remedies;
  ReadEffectAndDelay(spec.Map("unfit", Need::kOptional), remedies.unfit);
  const ConfigMap no_addresses = spec.Map("noAddresses", Need::kOptional);
  ReadEffect(no_addresses, remedies.no_addresses);
  if (remedies.no_addresses.effect == TaintEffect::kNoExecute) {
    no_addresses.Error("effect",
                       "must be none or NoSchedule: the pods that run there have addresses");
  }
  ReadEffectAndDelay(spec.Map("maintenance", Need::kOptional), remedies.maintenance);
  if (std::none_of(kCauses.begin(), kCauses.end(),
                   [&](const Cause& cause) { return spec.Has(cause.key); })) {
    spec.Error("", "says nothing: give one of unfit, noAddresses and maintenance");
  }
  return std::make_shared<const NodeRemedyObject>(name, remedies, spec.line());
}

NodeRemedies RemediesOf(const ObjectSet& set) {
  for (const auto& [key, object] : set.objects()) {
    if (const auto* spec = SpecOf<NodeRemedyObject>(*object)) return spec->remedies();
  }
  return {};
}

}  // namespace spoke::ipam
