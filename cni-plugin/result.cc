#include "cni-plugin/result.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

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

std::string Interfaces(const Invocation& request, const Attachment& attachment) {
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

using json::Value;

Error Unreadable(const std::string& what) {
  return {kDecodingFailure, "\"prevResult\" cannot be read: " + what,
          "look at the plugin that comes before this one, and at the runtime's cache"};
}

// Reads a list of objects, each with a text under `key`; a list that is absent is empty.
std::optional<Error> CheckList(const Value& prev, const char* name, std::string_view key) {
  const Value* list = json::Find(prev, name);
  if (list == nullptr) return std::nullopt;
  const bool good = list->IsArray() && std::all_of(list->Begin(), list->End(), [&](const Value& v) {
                      return !json::TextOf(json::Find(v, key)).empty();
                    });
  if (good) return std::nullopt;
  return Unreadable(std::string(name) + " is no list of objects, each with the string \"" +
                    std::string(key) + "\"");
}

std::optional<Error> CheckShape(const Value& prev) {
  if (!prev.IsObject()) return Unreadable("it is no object");
  const Value* version = json::Find(prev, "cniVersion");
  const std::string text(json::TextOf(version));
  const bool known =
      text.empty() || std::any_of(std::begin(kSupportedVersions), std::end(kSupportedVersions),
                                  [&](const char* v) { return text == v; });
  if (!known) {
    return Error{kIncompatibleVersion, "\"prevResult\" is of the unknown version " + text,
                 "the plugin before this one must speak a version that this one speaks"};
  }
  if (const auto error = CheckList(prev, "interfaces", "name")) return error;
  if (const auto error = CheckList(prev, "ips", "address")) return error;
  if (const auto error = CheckList(prev, "routes", "dst")) return error;
  const Value* dns = json::Find(prev, "dns");
  if (dns != nullptr && !dns->IsObject()) return Unreadable("dns is no object");
  return std::nullopt;
}

// Appends the members of `object` except those called `left_out`, to an object that is open.
void AppendMembers(const Value& object, std::initializer_list<std::string_view> left_out,
                   std::string& out) {
  for (auto it = object.MemberBegin(); it != object.MemberEnd(); ++it) {
    const std::string_view name = json::TextOf(&it->name);
    if (std::find(left_out.begin(), left_out.end(), name) != left_out.end()) continue;
    if (!out.ends_with('{')) out += ',';
    json::AppendText(name, out);
    out += ':';
    json::AppendValue(it->value, out);
  }
}

// Returns an unsigned number within an int, as an index and an MTU are; 0 for anything else.
uint32_t NumberOf(const Value* value) {
  return value != nullptr && value->IsUint() ? value->GetUint() : 0;
}

Attachment AttachmentAt(const Value& prev, const Value& interfaces, rapidjson::SizeType index) {
  Attachment attachment;
  attachment.pod_mac = json::TextOf(json::Find(interfaces[index], "mac"));
  attachment.mtu = NumberOf(json::Find(interfaces[index], "mtu"));
  // This plugin puts the host's end before the pod's.
  if (index > 0 && json::TextOf(json::Find(interfaces[index - 1], "sandbox")).empty()) {
    attachment.host_link = json::TextOf(json::Find(interfaces[index - 1], "name"));
    attachment.host_mac = json::TextOf(json::Find(interfaces[index - 1], "mac"));
  }
  const Value* ips = json::Find(prev, "ips");
  for (rapidjson::SizeType i = 0; ips != nullptr && i < ips->Size(); ++i) {
    const Value* interface = json::Find((*ips)[i], "interface");
    if (interface == nullptr || !interface->IsUint() || interface->GetUint() != index) continue;
    attachment.addresses.push_back({std::string(json::TextOf(json::Find((*ips)[i], "address"))),
                                    std::string(json::TextOf(json::Find((*ips)[i], "gateway")))});
  }
  return attachment;
}

}  // namespace

std::string FormatResult(const Invocation& request, const Attachment& attachment) {
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

std::optional<Error> ReadChained(const Value& prev, Invocation& request) {
  if (const auto error = CheckShape(prev)) return error;
  ChainedResult chained;
  const bool has_newest_fields = request.cni_version == "1.1.0";
  const bool says_family = request.cni_version.starts_with("0.");
  if (const Value* interfaces = json::Find(prev, "interfaces")) {
    chained.interface_count = interfaces->Size();
    for (const Value& interface : interfaces->GetArray()) {
      OpenElement(chained.interfaces);
      if (has_newest_fields) {
        AppendMembers(interface, {}, chained.interfaces);
      } else {
        AppendMembers(interface, {"mtu", "socketPath", "pciID"}, chained.interfaces);
      }
      chained.interfaces += '}';
    }
  }
  if (const Value* ips = json::Find(prev, "ips")) {
    for (const Value& ip : ips->GetArray()) {
      const std::string_view address = json::TextOf(json::Find(ip, "address"));
      OpenElement(chained.ips);
      if (says_family) {
        chained.ips += address.find(':') == address.npos ? R"("version":"4")" : R"("version":"6")";
        chained.ips += ',';
      }
      // What follows is never empty: there is an address.
      std::string members = "{";
      AppendMembers(ip, {"version"}, members);
      chained.ips += members.substr(1) + "}";
    }
  }
  if (const Value* routes = json::Find(prev, "routes")) {
    for (const Value& route : routes->GetArray()) {
      OpenElement(chained.routes);
      AppendMembers(route, {}, chained.routes);
      chained.routes += '}';
    }
  }
  request.chained = std::move(chained);
  if (const Value* dns = json::Find(prev, "dns")) {
    request.dns.clear();
    json::AppendValue(*dns, request.dns);
  }
  return std::nullopt;
}

std::optional<Error> ReadExpectations(const Value& prev, Invocation& request) {
  if (const auto error = CheckShape(prev)) return error;
  request.expectations.clear();
  const Value* interfaces = json::Find(prev, "interfaces");
  for (rapidjson::SizeType i = 0; interfaces != nullptr && i < interfaces->Size(); ++i) {
    const std::string_view sandbox = json::TextOf(json::Find((*interfaces)[i], "sandbox"));
    if (sandbox.empty() || json::TextOf(json::Find((*interfaces)[i], "name")) != request.ifname) {
      continue;
    }
    request.expectations.push_back({std::string(sandbox), AttachmentAt(prev, *interfaces, i)});
  }
  if (!request.expectations.empty()) return std::nullopt;
  return Error{kInvalidConfig,
               "\"prevResult\" has no interface " + request.ifname + " in a sandbox",
               "the runtime passes the result of the ADD; was it for another interface?"};
}

}  // namespace spoke::cni
