#include "netagent/egress/endpoint_text.h"

#include <string>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "nlohmann/json.hpp"

namespace spoke::netagent {
namespace {

using nlohmann::json;

// The deepest document: an object, list, object, list and object, and one for what others add.
constexpr int kMaxDepth = 6;
constexpr uint64_t kMaxPort = 65'535;

const json* Find(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

absl::Status Wrong(const char* key, const char* what) {
  return absl::InvalidArgumentError(fmt::format("{} is {}", key, what));
}

// Reads the address and the port of a service or an endpoint.
absl::StatusOr<NatEndpoint> ReadPlace(const json& object) {
  if (!object.is_object()) return absl::InvalidArgumentError("is no object");
  const json* address = Find(object, "address");
  const json* port = Find(object, "port");
  if (address == nullptr || !address->is_string()) return Wrong("address", "no text");
  if (port == nullptr || !port->is_number_unsigned()) return Wrong("port", "no number");
  const auto number = port->get<uint64_t>();
  if (number == 0 || number > kMaxPort) return Wrong("port", "not between 1 and 65535");
  ASSIGN_OR_RETURN(const ip::Address parsed,
                   ip::Address::Parse(address->get_ref<const std::string&>()));
  return NatEndpoint{parsed, static_cast<uint16_t>(number)};
}

absl::StatusOr<NatService> ReadService(const json& object) {
  ASSIGN_OR_RETURN(const NatEndpoint place, ReadPlace(object));
  NatService service{.address = place.address, .port = place.port};
  if (const json* protocol = Find(object, "protocol")) {
    if (*protocol == "UDP") {
      service.protocol = 17;
    } else if (*protocol != "TCP") {
      return Wrong("protocol", "neither TCP nor UDP");
    }
  }
  const json* endpoints = Find(object, "endpoints");
  if (endpoints == nullptr) return service;
  if (!endpoints->is_array()) return Wrong("endpoints", "no list");
  for (const json& one : *endpoints) {
    auto endpoint = ReadPlace(one);
    if (!endpoint.ok()) return base::Annotate(endpoint.status(), "endpoints");
    service.endpoints.push_back(*endpoint);
  }
  return service;
}

}  // namespace

absl::StatusOr<EndpointTable> ParseEndpoints(std::string_view text) {
  if (text.size() > kMaxEndpointBytes) return absl::InvalidArgumentError("the file is too long");
  bool too_deep = false;
  const json document = json::parse(
      text,
      [&](int depth, json::parse_event_t, json&) {
        too_deep = too_deep || depth > kMaxDepth;
        return depth <= kMaxDepth;
      },
      /*allow_exceptions=*/false);
  if (too_deep || !document.is_object()) return absl::InvalidArgumentError("is no JSON object");
  EndpointTable table;
  const json* generated = Find(document, "generated");
  std::string error;
  if (generated == nullptr || !generated->is_string() ||
      !absl::ParseTime(absl::RFC3339_full, generated->get_ref<const std::string&>(),
                       &table.generated, &error)) {
    return Wrong("generated", "no time as RFC 3339 has it");
  }
  const json* services = Find(document, "services");
  if (services == nullptr || !services->is_array()) return Wrong("services", "no list");
  for (const json& one : *services) {
    auto service = ReadService(one);
    if (!service.ok()) {
      return base::Annotate(service.status(), fmt::format("services[{}]", table.services.size()));
    }
    table.services.push_back(*std::move(service));
  }
  return table;
}

}  // namespace spoke::netagent
