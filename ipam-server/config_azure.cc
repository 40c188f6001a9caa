#include "ipam-server/config_azure.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "fmt/core.h"
#include "ipam-server/cloud/azure/endpoints.h"
#include "ipam-server/cloud/azure/resources/arm_id.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

using azure::Identity;
using config::ConfigMap;
using config::Need;

// A projected token as the workload identity webhook mounts it.
constexpr std::string_view kProjectedToken = "/var/run/secrets/azure/tokens/azure-identity-token";

// An Azure name of an IP configuration: what begins with it, and up to 20 digits, fits into 80.
constexpr size_t kMaxNamePrefix = 60;

absl::Status CheckUrl(std::string_view text) {
  const bool web = text.starts_with("https://") || text.starts_with("http://");
  if (!web || text.ends_with('/') || text.find_first_of(" \t?#") != std::string_view::npos) {
    return absl::InvalidArgumentError(fmt::format(
        "\"{}\" is not a URL without a path, such as https://management.azure.com", text));
  }
  return absl::OkStatus();
}

void ReadUrl(const ConfigMap& map, std::string_view key, std::string& out) {
  map.Custom(key, Need::kOptional, [&](std::string_view text) {
    RETURN_IF_ERROR(CheckUrl(text));
    out = text;
    return absl::OkStatus();
  });
}

void ReadEndpoints(const ConfigMap& map, azure::Endpoints& out) {
  out = azure::EndpointsOf("public").value();
  map.Custom("environment", Need::kOptional, [&](std::string_view text) {
    ASSIGN_OR_RETURN(out, azure::EndpointsOf(text));
    return absl::OkStatus();
  });
  const ConfigMap urls = map.Map("endpoints", Need::kOptional);
  ReadUrl(urls, "resource_manager", out.resource_manager);
  ReadUrl(urls, "authority", out.authority);
  ReadUrl(urls, "metadata", out.metadata);
}

Identity ReadIdentity(const ConfigMap& map) {
  Identity identity;
  const ConfigMap managed = map.Map("managed", Need::kOptional);
  const ConfigMap workload = map.Map("workload", Need::kOptional);
  const ConfigMap secret = map.Map("client_secret", Need::kOptional);
  const int kinds = static_cast<int>(managed.present()) + static_cast<int>(workload.present()) +
                    static_cast<int>(secret.present());
  if (kinds != 1) {
    map.Error("", "name one of managed, workload and client_secret");
    return identity;
  }
  managed.String("client_id", &identity.client_id, Need::kOptional);
  if (workload.present()) {
    identity.kind = Identity::Kind::kWorkload;
    identity.token_file = kProjectedToken;
    workload.String("token_file", &identity.token_file, Need::kOptional);
  }
  if (secret.present()) {
    identity.kind = Identity::Kind::kClientSecret;
    secret.String("secret_file", &identity.secret_file, Need::kRequired);
  }
  const ConfigMap& with_tenant = workload.present() ? workload : secret;
  with_tenant.String("tenant", &identity.tenant, Need::kRequired);
  with_tenant.String("client_id", &identity.client_id, Need::kRequired);
  return identity;
}

void ReadIdentities(const ConfigMap& map, std::vector<Identity>& out) {
  for (const ConfigMap& one : map.MapList("identities", Need::kOptional)) {
    Identity identity = ReadIdentity(one);
    for (const Identity& other : out) {
      if (other == identity) one.Error("", "this identity is named twice");
    }
    out.push_back(std::move(identity));
  }
  if (map.IsEmptyList("identities")) map.Error("identities", "at least one is needed");
  if (out.empty()) out.push_back(Identity());  // The one the VM has been given by Azure.
}

void ReadScaleSets(const ConfigMap& map, std::vector<std::string>& out) {
  map.CustomList("scale_sets", Need::kRequired, [&](std::string_view text) {
    const auto id = azure::ResourceId::Parse(text);
    if (!id.ok() || id->kind() != azure::ResourceKind::kScaleSet) {
      return absl::InvalidArgumentError(
          fmt::format("\"{}\" is not the id of a scale set, "
                      "/subscriptions/ID/resourceGroups/NAME/providers/Microsoft.Compute/"
                      "virtualMachineScaleSets/NAME",
                      text));
    }
    if (std::find(out.begin(), out.end(), id->text()) != out.end()) {
      return absl::InvalidArgumentError(fmt::format("{} is named twice", text));
    }
    out.push_back(id->text());
    return absl::OkStatus();
  });
  if (map.IsEmptyList("scale_sets")) map.Error("scale_sets", "at least one is needed");
}

void ReadNamePrefix(const ConfigMap& map, std::string& out) {
  map.Custom("name_prefix", Need::kOptional, [&](std::string_view text) {
    const auto allowed = [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
    };
    const bool starts = !text.empty() && absl::ascii_isalnum(static_cast<unsigned char>(text[0]));
    if (!starts || text.size() > kMaxNamePrefix ||
        !std::all_of(text.begin(), text.end(), allowed)) {
      return absl::InvalidArgumentError(fmt::format(
          "\"{}\" cannot begin the name of an IP configuration: a letter or digit, then letters, "
          "digits, '-', '_' and '.', at most {} in all",
          text, kMaxNamePrefix));
    }
    out = text;
    return absl::OkStatus();
  });
}

}  // namespace

azure::Settings ReadAzure(const ConfigMap& map) {
  azure::Settings out;
  ReadEndpoints(map, out.endpoints);
  ReadIdentities(map, out.identities);
  ReadScaleSets(map, out.scale_sets);
  ReadNamePrefix(map, out.name_prefix);
  map.Double("share_for_others", &out.share_for_others, Need::kOptional, {0.0, 0.9});
  const ConfigMap blocks = map.Map("blocks", Need::kOptional);
  blocks.Bool("nics", &out.blocks_on_nics, Need::kOptional);
  blocks.Bool("scale_sets", &out.blocks_on_scale_sets, Need::kOptional);
  map.String("ca_file", &out.ca_file, Need::kOptional);
  map.String("proxy", &out.proxy, Need::kOptional);
  map.Duration("timeout", &out.timeout, Need::kOptional, {absl::Seconds(1), absl::Minutes(5)});
  map.Duration("listing", &out.listing, Need::kOptional, {absl::Seconds(10), absl::Hours(24)});
  return out;
}

}  // namespace spoke::ipam
