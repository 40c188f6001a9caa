#include "tests/azure-sim/resources/profile.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "fmt/core.h"
#include "tests/azure-sim/resources/responses.h"
#include "tests/azure-sim/target.h"

namespace spoke::azure_sim {
namespace {

// NOLINTNEXTLINE(misc-no-recursion): as deep as the JSON of a request.
Json Sorted(const Json& value) {
  if (value.is_array()) {
    Json sorted = Json::array();
    for (const Json& item : value) sorted.push_back(Sorted(item));
    return sorted;
  }
  if (!value.is_object()) return value;
  std::vector<std::string> keys;
  for (const auto& [key, item] : value.items()) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  Json sorted = Json::object();
  for (const std::string& key : keys) sorted[key] = Sorted(value[key]);
  return sorted;
}

const Json* Find(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string Text(const Json& object, const char* key) {
  const Json* found = Find(object, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

http::Response Invalid(std::string_view target, std::string_view message) {
  return ErrorResponse(400, "InvalidParameter", message, Details::kNone, target);
}

// Reads what both forms have in common.
class EntryReader {
 public:
  EntryReader(const ProfileRules& rules, std::string_view nic, bool standalone)
      : rules_(rules), nic_(nic), standalone_(standalone) {}

  Parsed<std::vector<IpConfig>> ReadAll(const Json& list) {
    Parsed<std::vector<IpConfig>> parsed;
    if (!list.is_array() || list.empty()) {
      parsed.error = ErrorResponse(
          400, "InvalidIPConfigCount",
          fmt::format("Network interface {} must have one or more IP configurations.", nic_),
          Details::kEmpty);
      return parsed;
    }
    for (const Json& item : list) {
      IpConfig config;
      parsed.error = Read(item, &config);
      if (parsed.error.has_value()) return parsed;
      parsed.value.push_back(std::move(config));
    }
    parsed.error = CheckTogether(parsed.value);
    return parsed;
  }

 private:
  std::optional<http::Response> Read(const Json& item, IpConfig* config) {
    static const Json none = Json::object();
    config->name = Text(item, "name");
    if (config->name.empty()) return Invalid("ipConfiguration.name", "A name is required.");
    const Json* properties = Find(item, "properties");
    if (properties == nullptr) properties = &none;
    Json extra = Json::object();
    static_ = false;
    for (const auto& [key, value] : properties->items()) {
      if (value.is_null()) continue;
      if (auto error = ReadProperty(key, value, config, &extra)) return error;
    }
    // A client that sends back what it read names the address of each dynamic entry: that is no
    // wish.
    if (!static_) config->fixed.reset();
    if (config->subnet == nullptr) {
      return Invalid("ipConfiguration.subnet",
                     fmt::format("Required parameter 'subnet' of {} is missing.", config->name));
    }
    if (config->block_length != 0 && config->primary.value_or(false)) {
      return Invalid("privateIPAddressPrefixLength",
                     "A primary IP configuration cannot have a prefix.");
    }
    config->extra = MakeExtra(extra);
    return std::nullopt;
  }

  std::optional<http::Response> ReadProperty(const std::string& key, const Json& value,
                                             IpConfig* config, Json* extra) {
    if (key == "primary") {
      if (!value.is_boolean()) return Invalid(key, "primary has to be true or false.");
      config->primary = value.get<bool>();
    } else if (key == "subnet") {
      config->subnet = rules_.world.FindSubnet(Text(value, "id"));
      if (config->subnet == nullptr) {
        return ErrorResponse(400, "InvalidResourceReference",
                             fmt::format("Resource {} referenced by resource {} was not found.",
                                         Text(value, "id"), rules_.owner),
                             Details::kEmpty);
      }
    } else if (key == "privateIPAddressVersion") {
      config->family = value == "IPv6" ? ip::Family::kV6 : ip::Family::kV4;
    } else if (key == "privateIPAddressPrefixLength") {
      if (value != 28) return Invalid(key, "The prefix length has to be 28.");
      config->block_length = 28;
    } else if (key == "privateIPAddress") {
      return ReadAddress(value, config);
    } else if (key == "privateIPAllocationMethod") {
      static_ = value == "Static";
    } else if (key != "provisioningState") {
      (*extra)[key] = value;
    }
    return std::nullopt;
  }

  std::optional<http::Response> ReadAddress(const Json& value, IpConfig* config) {
    const std::string text = value.is_string() ? value.get<std::string>() : "";
    const auto address = ip::Address::Parse(text.substr(0, text.find('/')));
    if (!address.ok()) {
      return ErrorResponse(400, "InvalidIPAddress", fmt::format("{} is not an IP address.", text),
                           Details::kEmpty);
    }
    config->fixed = *address;
    return std::nullopt;
  }

  std::optional<http::Response> CheckTogether(std::vector<IpConfig>& configs) {
    std::set<std::string> names;
    size_t primaries = 0;
    for (const IpConfig& config : configs) {
      if (config.primary.value_or(false)) ++primaries;
      if (!names.insert(Lower(config.name)).second) {
        return ErrorResponse(400, "DuplicateResourceName",
                             fmt::format("{} has two IP configurations {}.", nic_, config.name));
      }
      // The code is unverified; that they have to be in one subnet is documented.
      if (config.subnet != configs[0].subnet) {
        return ErrorResponse(400, "IpConfigurationsOnSameNicCannotUseDifferentSubnets",
                             fmt::format("IP configurations of {} use two subnets.", nic_));
      }
      if (!SameGroups(config, configs[0])) {
        return ErrorResponse(
            400, "ApplicationSecurityGroupsOnNicMustBeTheSame",  // The code is unverified.
            fmt::format("IP configurations of {} have different security groups.", nic_));
      }
    }
    if (configs.size() > 1 && primaries != 1) {  // The code is unverified.
      return Invalid("ipConfigurations",
                     "Exactly one of several IP configurations has to be primary.");
    }
    return CheckCount(configs.size());
  }

  std::optional<http::Response> CheckCount(size_t count) {
    const size_t most = static_cast<size_t>(std::max(rules_.knobs.most_ip_configurations, 1)) +
                        (rules_.knobs.primary_counts ? 0 : 1);
    if (count <= most) return std::nullopt;
    if (standalone_) {  // The code is unverified.
      return ErrorResponse(
          400, "IpConfigurationsOnNicExceedsLimit",
          fmt::format("Network interface {} has {} IP configurations, {} are allowed.", nic_, count,
                      most),
          Details::kEmpty);
    }
    return ErrorResponse(
        400, "SecondaryIpConfigurationCountPerVMSSVMExceeded",
        fmt::format("The total number of secondary ipconfigurations {} in network profile for "
                    "scale set {} exceeds the maximum allowed value of {}.",
                    count - 1, rules_.owner, rules_.knobs.most_ip_configurations));
  }

  static bool SameGroups(const IpConfig& a, const IpConfig& b) {
    static const Json none;
    const auto groups = [](const IpConfig& config) -> const Json& {
      if (config.extra == nullptr) return none;
      const auto found = config.extra->find("applicationSecurityGroups");
      return found == config.extra->end() ? none : *found;
    };
    return &a == &b || groups(a) == groups(b);
  }

  const ProfileRules& rules_;
  std::string_view nic_;
  bool standalone_;
  bool static_ = false;
};

// Returns what Azure fills in where a client says nothing.
Json NicDefaults() {
  return {{"enableAcceleratedNetworking", false},
          {"disableTcpStateTracking", false},
          {"dnsSettings", {{"dnsServers", Json::array()}}},
          {"enableIPForwarding", false}};
}

}  // namespace

Extra MakeExtra(const Json& value) {
  if (value.empty()) return nullptr;
  return std::make_shared<const Json>(Sorted(value));
}

Parsed<NetworkProfile> ParseProfile(const Json& list, const ProfileRules& rules) {
  Parsed<NetworkProfile> parsed;
  if (!list.is_array() || list.empty()) {
    parsed.error = Invalid("networkInterfaceConfigurations",
                           "Required parameter 'networkInterfaceConfigurations' is missing.");
    return parsed;
  }
  if (list.size() > static_cast<size_t>(std::max(rules.knobs.most_nics, 1))) {
    parsed.error = ErrorResponse(400, "NetworkInterfaceCountExceeded",
                                 "The VM size does not allow that many network interfaces.");
    return parsed;
  }
  for (const Json& item : list) {
    NicConfig nic;
    nic.name = Text(item, "name");
    Json extra = NicDefaults();
    if (const Json* properties = Find(item, "properties"); properties != nullptr) {
      for (const auto& [key, value] : properties->items()) {
        if (value.is_null() || key == "ipConfigurations") continue;
        if (key == "primary") {
          nic.primary = value == true;
        } else {
          extra[key] = value;
        }
      }
      static const Json none = Json::array();
      const Json* entries = Find(*properties, "ipConfigurations");
      auto configs =
          EntryReader(rules, nic.name, false).ReadAll(entries == nullptr ? none : *entries);
      if (configs.error.has_value()) {
        parsed.error = std::move(configs.error);
        return parsed;
      }
      nic.ip_configs = std::move(configs.value);
    }
    if (list.size() == 1) nic.primary = true;
    nic.extra = MakeExtra(extra);
    parsed.value.push_back(std::move(nic));
  }
  return parsed;
}

std::optional<http::Response> CheckPrimaryStays(std::string_view primary,
                                                const std::vector<IpConfig>& next) {
  for (const IpConfig& config : next) {
    if (config.name != primary) continue;
    if (next.size() == 1 || config.primary.value_or(false)) return std::nullopt;
  }
  return ErrorResponse(400, "IpConfigDeleteNotSupported",
                       fmt::format("IP Configuration {} cannot be deleted. Deletion and renaming "
                                   "of primary IP Configuration is not supported",
                                   primary),
                       Details::kEmpty);
}

std::optional<http::Response> CheckSuccessor(const NetworkProfile& now,
                                             const NetworkProfile& next) {
  if (now.size() != next.size()) {  // The code is unverified.
    return Invalid("networkInterfaceConfigurations",
                   "Network interfaces of an instance cannot be added or removed.");
  }
  for (const NicConfig& nic : now) {
    const auto same = std::find_if(next.begin(), next.end(), [&nic](const NicConfig& other) {
      return other.name == nic.name;
    });
    if (same == next.end()) {
      return Invalid("networkInterfaceConfigurations",
                     fmt::format("Network interface {} cannot be removed.", nic.name));
    }
    for (const IpConfig& config : nic.ip_configs) {
      if (nic.ip_configs.size() > 1 && !config.primary.value_or(false)) continue;
      if (auto error = CheckPrimaryStays(config.name, same->ip_configs)) return error;
    }
  }
  return std::nullopt;
}

Parsed<std::vector<IpConfig>> ParseNicEntries(const Json& list, std::string_view nic,
                                              const ProfileRules& rules) {
  return EntryReader(rules, nic, true).ReadAll(list);
}

}  // namespace spoke::azure_sim
