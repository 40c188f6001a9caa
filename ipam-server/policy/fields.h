// Readers for the fields that several kinds have, on top of lib/config. Pure. What is wrong is
// recorded with its line, as config_text.h says; the destination is then not to be used.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "ipam-server/policy/objects/object.h"
#include "lib/config/config_text.h"
#include "lib/ip/address.h"
#include "lib/ip/endpoint.h"
#include "lib/ip/prefix.h"
#include "lib/policy/values.h"

namespace spoke::ipam {

inline constexpr size_t kMaxListItems = 4096;

// One item of a list and its line.
template <typename T>
struct Listed {
  T value;
  int line = 0;
};

// The items without their lines.
template <typename T>
std::vector<T> Values(const std::vector<Listed<T>>& listed) {
  std::vector<T> values;
  values.reserve(listed.size());
  for (const Listed<T>& item : listed) values.push_back(item.value);
  return values;
}

// Blocks or addresses as text.
template <typename T>
std::vector<std::string> Texts(const std::vector<T>& values) {
  std::vector<std::string> texts;
  for (const T& value : values) texts.push_back(value.ToString());
  return texts;
}

// What else an item must be; the message of an error becomes the item's mistake.
template <typename T>
using CheckItem = std::function<absl::Status(const T&)>;

// Returns CIDR blocks, sorted; a block that is listed twice is a mistake. An absent list has none.
std::vector<Listed<ip::Prefix>> ReadBlocks(const config::ConfigMap& map, std::string_view key,
                                           const CheckItem<ip::Prefix>& check = nullptr);

// What becomes of connections that are there before the object: "cut" or "keep", under the key
// "established"; kUnspecified when it is absent.
policy::Established ReadEstablished(const config::ConfigMap& map);
// Returns the name that the files have; it is not for kUnspecified.
std::string_view NameOf(policy::Established established);

// Names of Kubernetes namespaces, sorted; one that is listed twice is a mistake.
std::vector<Listed<std::string>> ReadNamespaces(const config::ConfigMap& map, std::string_view key,
                                                config::Need need);

// Names of other objects, `what` for messages ("a team"), sorted; one that is listed twice is a
// mistake. An absent list has none.
std::vector<Listed<std::string>> ReadNames(const config::ConfigMap& map, std::string_view key,
                                           std::string_view what);

// Returns IP addresses, sorted; one that is listed twice is a mistake. An absent list has none.
std::vector<Listed<ip::Address>> ReadAddresses(const config::ConfigMap& map, std::string_view key,
                                               const CheckItem<ip::Address>& check = nullptr);

// Returns addresses with their ports, sorted; one that is listed twice is a mistake. An absent list
// has none.
std::vector<Listed<ip::Endpoint>> ReadEndpoints(const config::ConfigMap& map, std::string_view key,
                                                const CheckItem<ip::Endpoint>& check = nullptr);

// Names of hosts and patterns of such (host_name.h), in lower case, sorted; one that is listed
// twice is a mistake. An absent list has none.
std::vector<Listed<std::string>> ReadHostNames(const config::ConfigMap& map, std::string_view key);

// A map of node labels, in the syntax of Kubernetes; values are text and not empty.
NodeLabels ReadNodeLabels(const config::ConfigMap& map, std::string_view key);

}  // namespace spoke::ipam
