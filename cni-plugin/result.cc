#include "cni-plugin/result.h"

#include "cni-plugin/json/json.h"

namespace spoke::cni {
namespace {

bool IsV6(const PodAddress& address) { return address.address.find(':') != std::string::npos; }

// Appends `"key":"text"` to an object that is open, after a comma unless it is the first.
void AppendField(std::string_view key, std::string_view text, std::string& out) {
  if (!out.ends_with('{')) out += ',';
  json::AppendText(key, out);
  out += ':';
  json::AppendText(text, out);
}

void AppendNumber(std::string_view key, uint64_t number, std::string& out) {
  if (!out.ends_with('{')) out += ',';
  json::AppendText(key, out);
  out += ':';
  out += std::to_string(number);
}

// Appends the beginning of one more element of a list that `chained` may have opened.
void OpenElement(std::string& list) { list += list.empty() ? "{" : ",{"; }

std::string Interfaces(const Request& request, const Attachment& attachment) {
  const bool says_mtu = request.cni_version == "1.1.0" && attachment.mtu != 0;
  std::string list = request.chained.interfaces;
  OpenElement(list);
  AppendField("name", attachment.host_link, list);
  AppendField("mac", attachment.host_mac, list);
  if (says_mtu) AppendNumber("mtu", attachment.mtu, list);
  list += "},{";
  AppendField("name", request.ifname, list);
  AppendField("mac", attachment.pod_mac, list);
  if (says_mtu) AppendNumber("mtu", attachment.mtu, list);
  AppendField("sandbox", request.netns, list);
  return list + "}";
}

}  // namespace

std::string FormatResult(const Request& request, const Attachment& attachment) {
  const unsigned pod_interface = request.chained.interface_count + 1;
  // Versions up to 0.4.0 say each address's family.
  const bool says_family = request.cni_version.starts_with("0.");
  std::string ips = request.chained.ips;
  std::string routes = request.chained.routes;
  for (const PodAddress& address : attachment.addresses) {
    OpenElement(ips);
    if (says_family) AppendField("version", IsV6(address) ? "6" : "4", ips);
    AppendNumber("interface", pod_interface, ips);
    AppendField("address", address.address, ips);
    if (!address.gateway.empty()) {
      AppendField("gateway", address.gateway, ips);
      OpenElement(routes);
      AppendField("dst", IsV6(address) ? "::/0" : "0.0.0.0/0", routes);
      AppendField("gw", address.gateway, routes);
      routes += '}';
    }
    ips += '}';
  }
  std::string out = "{";
  AppendField("cniVersion", request.cni_version, out);
  out += ",\"interfaces\":[" + Interfaces(request, attachment) + "],\"ips\":[" + ips +
         "],\"routes\":[" + routes + "],\"dns\":" + request.dns + "}\n";
  return out;
}

std::string FormatError(const Error& error, std::string_view cni_version) {
  std::string out = "{";
  AppendField("cniVersion", cni_version.empty() ? kNewestVersion : cni_version, out);
  AppendNumber("code", error.code, out);
  AppendField("msg", error.message, out);
  if (!error.details.empty()) AppendField("details", error.details, out);
  return out + "}\n";
}

std::string FormatVersion() {
  std::string versions;
  for (const char* version : kSupportedVersions) {
    if (!versions.empty()) versions += ',';
    json::AppendText(version, versions);
  }
  std::string out = "{";
  AppendField("cniVersion", kNewestVersion, out);
  return out + ",\"supportedVersions\":[" + versions + "]}\n";
}

}  // namespace spoke::cni
