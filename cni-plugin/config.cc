#include "cni-plugin/config.h"

#include <string>
#include <utility>

#include "cni-plugin/agent/options.h"
#include "cni-plugin/json/json.h"
#include "cni-plugin/result.h"

namespace spoke::cni {
namespace {

using json::Value;

// The longest timeout; runtimes give a failed ADD's clean-up a minute.
constexpr int64_t kMostTimeoutSeconds = 50;
// The second is what the first text of spec 1.1.0 had, and what some runtimes still send.
constexpr std::string_view kValidKeys[] = {"cni.dev/valid-attachments", "cni.dev/attachments"};

Error BadConfig(std::string message, std::string details = "correct the network configuration") {
  return {kInvalidConfig, std::move(message), std::move(details)};
}

std::string SupportedVersions() {
  std::string text;
  for (const char* version : kSupportedVersions) {
    if (!text.empty()) text += ", ";
    text += version;
  }
  return text;
}

// Returns where a version stands in kSupportedVersions; negative: it is none of them.
int RankOf(std::string_view version) {
  int rank = 0;
  for (const char* supported : kSupportedVersions) {
    if (version == supported) return rank;
    ++rank;
  }
  return -1;
}

std::optional<Error> ReadName(const Value& config, Request& request) {
  const Value* name = json::Find(config, "name");
  if (name != nullptr && !name->IsString()) {
    return Error{kDecodingFailure, "\"name\" in the network configuration is no string",
                 "correct the network configuration"};
  }
  if (name == nullptr || name->GetStringLength() == 0) {
    return BadConfig("the network configuration has no \"name\"");
  }
  if (!IsIdentifier(json::TextOf(name))) {
    return BadConfig("invalid characters in the network's name: " + ToUtf8(json::TextOf(name)),
                     "it starts with a letter or digit and goes on with those, '_', '.' and '-'");
  }
  request.network_name = json::TextOf(name);
  return std::nullopt;
}

std::optional<Error> ReadVersion(const Value& config, Request& request) {
  const Value* value = json::Find(config, "cniVersion");
  if (value != nullptr && !value->IsString()) {
    return Error{kDecodingFailure, "\"cniVersion\" in the network configuration is no string",
                 "correct the network configuration"};
  }
  // What has no version is of 0.1.0, as the reference has it.
  std::string version(json::TextOf(value));
  if (version.empty()) version = "0.1.0";
  const int rank = RankOf(version);
  if (rank < 0) {
    return Error{kIncompatibleVersion, "incompatible CNI versions",
                 "config is \"" + version + "\", plugin supports " + SupportedVersions()};
  }
  request.cni_version = version;
  const auto refuse = [&](const char* verb, const char* since) {
    return Error{kIncompatibleVersion, std::string("config version does not allow ") + verb,
                 "config is \"" + version + "\", " + verb + " needs " + since + " or later"};
  };
  if (request.verb == Verb::kCheck && rank < RankOf("0.4.0")) return refuse("CHECK", "0.4.0");
  if (request.verb == Verb::kGc && rank < RankOf("1.1.0")) return refuse("GC", "1.1.0");
  if (request.verb == Verb::kStatus && rank < RankOf("1.1.0")) {
    return refuse("STATUS", "1.1.0");
  }
  return std::nullopt;
}

std::optional<Error> ReadSocket(const Value& config, Request& request) {
  constexpr size_t kMaxLength = 107;  // The size of sun_path of sockaddr_un(7), less the NUL.
  const Value* value = json::Find(config, "socket");
  if (value == nullptr) return std::nullopt;
  const std::string_view path = json::TextOf(value);
  const bool usable =
      path.starts_with('/') && path.size() <= kMaxLength && path.find('\0') == path.npos;
  if (usable) {
    request.socket = path;
  } else if (request.verb != Verb::kDel) {
    return BadConfig(
        "\"socket\" is no path for the agent's socket: " + ToUtf8(path),
        "it is absolute and has at most 107 bytes; the agent's default is " + Request().socket);
  }
  return std::nullopt;
}

std::optional<Error> ReadTimeout(const Value& config, Request& request) {
  const Value* value = json::Find(config, "timeoutSeconds");
  if (value == nullptr) return std::nullopt;
  if (!value->IsInt64() || value->GetInt64() < 1 || value->GetInt64() > kMostTimeoutSeconds) {
    std::string shown;
    json::AppendValue(*value, shown);
    return BadConfig("\"timeoutSeconds\" is " + shown,
                     "it is how long an ADD may wait: a whole number from 1 to 50");
  }
  request.add_timeout_ms = static_cast<int>(value->GetInt64()) * 1000;
  return std::nullopt;
}

bool IsTextList(const Value& value) {
  if (!value.IsArray()) return false;
  for (const Value& element : value.GetArray()) {
    if (!element.IsString()) return false;
  }
  return true;
}

// Prints what is set of an object with DNS settings into `out`, or leaves `out` alone where nothing
// is: an empty list is set. `keys` are the object's names of nameservers, domain, search and
// options.
std::optional<Error> ReadDns(const Value* dns, const char* const (&keys)[4], std::string& out) {
  constexpr const char* kPrinted[] = {"nameservers", "domain", "search", "options"};
  constexpr size_t kDomain = 1;
  if (dns == nullptr) return std::nullopt;
  if (!dns->IsObject()) return BadConfig("\"dns\" is no object");
  std::string text = "{";
  for (size_t i = 0; i < 4; ++i) {
    const Value* value = json::FindAnyCase(*dns, keys[i]);
    if (value == nullptr) continue;
    if (i == kDomain ? !value->IsString() : !IsTextList(*value)) {
      return BadConfig(std::string("\"") + keys[i] + "\" of \"dns\" is no " +
                       (i == kDomain ? "string" : "list of strings"));
    }
    if (text.size() > 1) text += ',';
    json::AppendText(kPrinted[i], text);
    text += ':';
    json::AppendValue(*value, text);
  }
  if (text.size() > 1) out = text + "}";
  return std::nullopt;
}

// Reads what only an ADD needs.
std::optional<Error> ReadForAdd(const Value& config, Request& request) {
  constexpr const char* kConfigKeys[] = {"nameservers", "domain", "search", "options"};
  constexpr const char* kRuntimeKeys[] = {"servers", "domain", "searches", "options"};
  if (const auto error = ReadTimeout(config, request)) return error;
  const Value* runtime = json::Find(config, "runtimeConfig");
  if (runtime != nullptr && !runtime->IsObject()) {
    return BadConfig("\"runtimeConfig\" is no object");
  }
  if (const auto error = ReadOptions(config, request)) return error;
  if (const Value* prev = json::Find(config, "prevResult")) {
    if (const auto error = ReadChained(*prev, request)) return error;
  }
  // The last that says something counts: prevResult, what the runtime knows, the administrator.
  const Value* of_runtime = runtime == nullptr ? nullptr : json::FindAnyCase(*runtime, "dns");
  if (const auto error = ReadDns(of_runtime, kRuntimeKeys, request.dns)) return error;
  return ReadDns(json::Find(config, "dns"), kConfigKeys, request.dns);
}

// Go prints a list without elements as null, so here, and only here, null is not "absent".
std::optional<Error> ReadValid(const Value& config, Request& request) {
  for (const std::string_view key : kValidKeys) {
    if (!json::Has(config, key)) continue;
    std::vector<AttachmentRef> valid;
    const Value* list = json::Find(config, key);
    const auto bad = [&] {
      return BadConfig("\"" + std::string(key) + "\" is no list of attachments",
                       "each is an object with the strings \"containerID\" and \"ifname\"; nothing "
                       "was deleted");
    };
    if (list != nullptr && !list->IsArray()) return bad();
    for (rapidjson::SizeType i = 0; list != nullptr && i < list->Size(); ++i) {
      const std::string_view id = json::TextOf(json::FindAnyCase((*list)[i], "containerID"));
      const std::string_view ifname = json::TextOf(json::FindAnyCase((*list)[i], "ifname"));
      if (id.empty() || ifname.empty()) return bad();
      valid.push_back({std::string(id), std::string(ifname)});
    }
    request.valid = std::move(valid);
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Error> ReadConfig(std::string_view text, Request& request) {
  json::Document config;
  if (!json::Parse(text, config) || !config.IsObject()) {
    return Error{kDecodingFailure, "the network configuration on standard input is no JSON object",
                 "it has to be one object in UTF-8, nested at most 64 deep"};
  }
  if (const auto error = ReadName(config, request)) return error;
  if (const auto error = ReadVersion(config, request)) return error;
  if (const auto error = ReadSocket(config, request)) return error;
  switch (request.verb) {
    case Verb::kAdd:
      return ReadForAdd(config, request);
    case Verb::kCheck: {
      const Value* prev = json::Find(config, "prevResult");
      if (prev == nullptr) {
        return BadConfig("CHECK without a \"prevResult\"",
                         "the runtime passes the result of the ADD; was there one?");
      }
      return ReadExpectations(*prev, request);
    }
    case Verb::kGc:
      return ReadValid(config, request);
    case Verb::kDel:
    case Verb::kStatus:
    case Verb::kVersion:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace spoke::cni
