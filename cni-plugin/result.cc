#include "cni-plugin/result.h"

#include <nlohmann/json.hpp>

namespace spoke::cni {
namespace {

// Keeps the order of the spec, for people who read it.
using Json = nlohmann::ordered_json;

// What came in from outside may hold any bytes; the answer must be JSON all the same.
std::string Print(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

bool IsV6(const PodAddress& address) { return address.address.find(':') != std::string::npos; }

}  // namespace

std::string FormatResult(const Request& request, const Attachment& attachment) {
  constexpr int kPodInterface = 1;
  // Up to 0.4.0 each address says its family.
  const bool says_family = request.cni_version != "1.0.0";
  Json ips = Json::array();
  Json routes = Json::array();
  for (const PodAddress& address : attachment.addresses) {
    Json ip;
    if (says_family) ip["version"] = IsV6(address) ? "6" : "4";
    ip["interface"] = kPodInterface;
    ip["address"] = address.address;
    ip["gateway"] = address.gateway;
    ips.push_back(std::move(ip));
    routes.push_back({{"dst", IsV6(address) ? "::/0" : "0.0.0.0/0"}, {"gw", address.gateway}});
  }
  Json result;
  result["cniVersion"] = request.cni_version;
  result["interfaces"] = Json::array(
      {{{"name", attachment.host_link}, {"mac", attachment.host_mac}},
       {{"name", request.ifname}, {"mac", attachment.pod_mac}, {"sandbox", request.netns}}});
  result["ips"] = std::move(ips);
  result["routes"] = std::move(routes);
  result["dns"] =
      request.dns_json.empty() ? Json::object() : Json::parse(request.dns_json, nullptr, false);
  return Print(result);
}

std::string FormatError(const Error& error, const std::string& cni_version) {
  Json result;
  result["cniVersion"] = cni_version.empty() ? kNewestVersion : cni_version;
  result["code"] = error.code;
  result["msg"] = error.message;
  if (!error.details.empty()) result["details"] = error.details;
  return Print(result);
}

std::string FormatVersion() {
  Json result;
  result["cniVersion"] = kNewestVersion;
  result["supportedVersions"] = Json::array();
  for (const char* version : kSupportedVersions) result["supportedVersions"].push_back(version);
  return Print(result);
}

}  // namespace spoke::cni
