#include "ipam-server/enroll/node_identity.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "fmt/format.h"

namespace spoke::ipam {
namespace {

// The scheme of Azure's VMs; what follows is the id that Resource Manager knows them by
// (kubernetes-sigs/cloud-provider-azure, "ProviderID").
constexpr std::string_view kAzureScheme = "azure://";

bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (!absl::StartsWithIgnoreCase({text.data(), text.size()}, {prefix.data(), prefix.size()})) {
    return false;
  }
  text.remove_prefix(prefix.size());
  return true;
}

absl::StatusOr<std::map<std::string, std::string>> LabelsIn(std::string_view text,
                                                            std::string_view node_name) {
  const size_t question = text.find('?');
  if (text.substr(0, question) != node_name) {
    return absl::InvalidArgumentError(
        fmt::format("the certificate of node {} bears the labels of another node: {}{}", node_name,
                    kNodeScheme, text.substr(0, std::min<size_t>(question, 253))));
  }
  std::map<std::string, std::string> labels;
  if (question == std::string_view::npos) return labels;
  const std::string query(text.substr(question + 1));
  const std::vector<std::string> pairs = absl::StrSplit(query, '&');
  for (const std::string& pair : pairs) {
    const size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return absl::InvalidArgumentError(
          fmt::format("a label in the certificate of node {} is not of the form KEY=VALUE: \"{}\"",
                      node_name, pair.substr(0, 320)));
    }
    labels.emplace(pair.substr(0, equals), pair.substr(equals + 1));
  }
  return labels;
}

}  // namespace

std::vector<std::string> IdentityUris(const NodeFacts& node) {
  std::vector<std::string> uris;
  if (!node.provider_id.empty()) uris.push_back(node.provider_id);
  std::string labels = std::string(kNodeScheme) + node.name;
  char separator = '?';
  for (const auto& [key, value] : node.labels) {
    labels += separator;
    labels += key + "=" + value;
    separator = '&';
  }
  uris.push_back(std::move(labels));
  return uris;
}

absl::StatusOr<NodeIdentity> IdentityIn(const std::vector<std::string>& uris,
                                        std::string_view node_name) {
  NodeIdentity out;
  for (const std::string& uri : uris) {
    std::string_view rest = uri;
    if (TakePrefix(rest, kAzureScheme)) {
      out.instance = absl::AsciiStrToLower({rest.data(), rest.size()});
    } else if (TakePrefix(rest, kNodeScheme)) {
      auto labels = LabelsIn(rest, node_name);
      if (!labels.ok()) return labels.status();
      out.labels = *std::move(labels);
    }
  }
  return out;
}

absl::Status TakeIdentity(const NodeIdentity& proved, node_api::Hello& hello) {
  if (proved.labels) hello.node.labels = *proved.labels;
  if (proved.instance.empty()) return absl::OkStatus();
  if (!hello.node.instance.empty() && hello.node.instance != proved.instance) {
    return absl::PermissionDeniedError(fmt::format(
        "the certificate of node {} is for the machine {}, and its agent says {}: enroll anew "
        "if the node has moved to another machine",
        hello.node.node_name, proved.instance, hello.node.instance));
  }
  hello.node.instance = proved.instance;
  return absl::OkStatus();
}

}  // namespace spoke::ipam
