#include "ipam-server/cloud/azure/resources/arm_id.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "lib/json_text/json_text.h"

namespace spoke::ipam::azure {
namespace {

constexpr size_t kMaxIdLength = 2048;
// "/subscriptions/{s}/resourcegroups/{rg}/providers/{namespace}/{type}/{name}", split at slashes.
constexpr size_t kSubscription = 2;
constexpr size_t kResourceGroup = 4;
constexpr size_t kNamespace = 6;
constexpr size_t kFirstType = 7;
constexpr size_t kPartsOfShortest = 9;

std::vector<std::string_view> SplitAtSlashes(std::string_view text) {
  std::vector<std::string_view> parts;
  for (const auto part : absl::StrSplit(absl::string_view(text.data(), text.size()), '/')) {
    parts.emplace_back(part.data(), part.size());
  }
  return parts;
}

bool IsUnreserved(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.' ||
         c == '~';
}

// Names have letters, digits and a few signs; resource groups letters of all scripts. What would
// end the path, climb in it or be decoded to something else is refused rather than escaped.
bool IsPart(std::string_view part) {
  if (part.empty() || part == "." || part == "..") return false;
  return std::all_of(part.begin(), part.end(), [](char c) {
    return IsUnreserved(c) || c == '(' || c == ')' || static_cast<unsigned char>(c) >= 0x80;
  });
}

ResourceKind KindOf(const std::vector<std::string_view>& parts) {
  std::string types(parts[kNamespace]);
  for (size_t i = kFirstType; i < parts.size(); i += 2) {
    types += '/';
    types += parts[i];
  }
  if (types == "microsoft.compute/virtualmachinescalesets") return ResourceKind::kScaleSet;
  if (types == "microsoft.compute/virtualmachinescalesets/virtualmachines") {
    return ResourceKind::kInstance;
  }
  if (types == "microsoft.compute/virtualmachinescalesets/virtualmachines/networkinterfaces") {
    return ResourceKind::kInstanceNic;
  }
  if (types == "microsoft.compute/virtualmachines") return ResourceKind::kVirtualMachine;
  if (types == "microsoft.network/networkinterfaces") return ResourceKind::kNic;
  if (types == "microsoft.network/virtualnetworks/subnets") return ResourceKind::kSubnet;
  return ResourceKind::kOther;
}

// Escapes `text` for a path or a query. '/' stays.
std::string Escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (IsUnreserved(c) || c == '/') {
      escaped += c;
    } else {
      escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

std::string Url(std::string_view resource_manager, std::string_view path,
                std::string_view version) {
  return fmt::format("{}{}?api-version={}", resource_manager, Escape(path), version);
}

// "https://host:port" in lower case, the port always written; empty when there is none.
std::string OriginOf(std::string_view url) {
  const size_t scheme_end = url.find("://");
  if (scheme_end == std::string_view::npos) return {};
  const std::string scheme = absl::AsciiStrToLower({url.data(), scheme_end});
  if (scheme != "https" && scheme != "http") return {};
  const size_t host_start = scheme_end + 3;
  const size_t host_end = std::min(url.find_first_of("/?#", host_start), url.size());
  const std::string_view host = url.substr(host_start, host_end - host_start);
  // A name before '@' is how a URL pretends to lead to one host and leads to another.
  if (host.empty() || host.find('@') != std::string_view::npos) return {};
  std::string origin = scheme + "://" + absl::AsciiStrToLower({host.data(), host.size()});
  const bool has_port = host.find(':') != std::string_view::npos && host.back() != ']';
  if (!has_port) origin += scheme == "https" ? ":443" : ":80";
  return origin;
}

}  // namespace

absl::StatusOr<ResourceId> ResourceId::Parse(std::string_view text) {
  const auto refuse = [text](std::string_view why) {
    return absl::InvalidArgumentError(
        fmt::format("no Azure resource id: \"{}\": {}", json_text::Excerpt(text), why));
  };
  if (text.size() > kMaxIdLength) return refuse("too long");
  if (!text.empty() && text.back() == '/') text.remove_suffix(1);
  ResourceId id;
  id.text_ = absl::AsciiStrToLower({text.data(), text.size()});
  const std::vector<std::string_view> parts = SplitAtSlashes(id.text_);
  if (parts.size() < kPartsOfShortest || parts.size() % 2 == 0 || !parts[0].empty() ||
      parts[1] != "subscriptions" || parts[3] != "resourcegroups" || parts[5] != "providers") {
    return refuse(
        "wanted /subscriptions/.../resourceGroups/.../providers/NAMESPACE/TYPE/NAME, and further "
        "pairs of type and name");
  }
  if (!std::all_of(parts.begin() + 1, parts.end(), IsPart)) {
    return refuse("a part is empty or has characters that names do not have");
  }
  id.kind_ = KindOf(parts);
  return id;
}

std::string_view ResourceId::subscription() const { return SplitAtSlashes(text_)[kSubscription]; }

std::string_view ResourceId::resource_group() const {
  return SplitAtSlashes(text_)[kResourceGroup];
}

std::string_view ResourceId::name() const {
  return std::string_view(text_).substr(text_.rfind('/') + 1);
}

std::optional<ResourceId> ResourceId::Parent() const {
  const size_t before_name = text_.rfind('/');
  const size_t before_type = text_.rfind('/', before_name - 1);
  auto parent = Parse(std::string_view(text_).substr(0, before_type));
  if (!parent.ok()) return std::nullopt;
  return *std::move(parent);
}

std::optional<ResourceId> ScaleSetOf(const ResourceId& id) {
  std::optional<ResourceId> at = id;
  while (at && at->kind() != ResourceKind::kScaleSet) at = at->Parent();
  return at;
}

std::string ResourceUrl(std::string_view resource_manager, const ResourceId& id,
                        std::string_view version) {
  return Url(resource_manager, id.text(), version);
}

std::string ResourceUrl(std::string_view resource_manager, const ResourceId& id) {
  switch (id.kind()) {
    case ResourceKind::kScaleSet:
    case ResourceKind::kInstance:
    case ResourceKind::kVirtualMachine:
      return ResourceUrl(resource_manager, id, kComputeVersion);
    case ResourceKind::kInstanceNic:
      return ResourceUrl(resource_manager, id, kScaleSetNicVersion);
    case ResourceKind::kNic:
    case ResourceKind::kSubnet:
    case ResourceKind::kOther:
      break;
  }
  return ResourceUrl(resource_manager, id, kNetworkVersion);
}

std::string NicsUrl(std::string_view resource_manager, const ResourceId& set_or_instance) {
  return Url(resource_manager, set_or_instance.text() + "/networkinterfaces", kScaleSetNicVersion);
}

std::string GroupNicsUrl(std::string_view resource_manager, const ResourceId& id) {
  return Url(resource_manager,
             fmt::format("/subscriptions/{}/resourcegroups/{}/providers/microsoft.network/"
                         "networkinterfaces",
                         id.subscription(), id.resource_group()),
             kNetworkVersion);
}

std::string FlexibleMachinesUrl(std::string_view resource_manager, const ResourceId& scale_set) {
  const std::string path =
      fmt::format("/subscriptions/{}/resourcegroups/{}/providers/microsoft.compute/virtualmachines",
                  scale_set.subscription(), scale_set.resource_group());
  return fmt::format("{}&$filter={}", Url(resource_manager, path, kComputeVersion),
                     Escape(fmt::format("'virtualMachineScaleSet/id' eq '{}'", scale_set.text())));
}

absl::StatusOr<std::string> FollowUrl(std::string_view resource_manager, std::string_view url) {
  if (url.size() > kMaxUrlLength) {
    return absl::InvalidArgumentError(
        fmt::format("a URL of {} characters is more than {}", url.size(), kMaxUrlLength));
  }
  // A backslash is a slash to some parsers and none to others; blanks and control characters could
  // end the request line.
  const bool clean = std::all_of(url.begin(), url.end(), [](char c) {
    return c > ' ' && static_cast<unsigned char>(c) < 0x7F && c != '\\';
  });
  const std::string origin = clean ? OriginOf(url) : std::string();
  if (origin.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("no URL to follow: \"{}\"", json_text::Excerpt(url)));
  }
  if (origin != OriginOf(resource_manager)) {
    return absl::PermissionDeniedError(fmt::format(
        "Azure sent us to {}, which is not {}: our token stays here", origin, resource_manager));
  }
  return std::string(url);
}

}  // namespace spoke::ipam::azure
