#include "cni-plugin/agent/request.h"

#include <algorithm>
#include <string>
#include <utility>

#include "cni-plugin/agent/options.h"
#include "cni-plugin/json/json.h"
#include "cni-plugin/result.h"
#include "lib/base/utf8.h"

namespace spoke::cni {
namespace {

// ---- The environment.

std::string_view TextOf(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

bool IsAlnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Returns whether a text is a name of a container or network: "must start with an alphanumeric
// character, optionally followed by any combination of one or more alphanumeric characters,
// underscore (_), dot (.) or hyphen (-)".
bool IsIdentifier(std::string_view text) {
  return !text.empty() && IsAlnum(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsAlnum(c) || c == '_' || c == '.' || c == '-'; });
}

// Returns whether both the reference plugins and the kernel (dev_valid_name() in net/core/dev.c)
// take a name: 1 to 15 bytes of UTF-8, not "." or "..", no slash, colon or white space, and for
// terminals' sake no control characters. For the kernel byte A0 is white space, also inside a
// character.
bool IsInterfaceName(std::string_view name) {
  constexpr size_t kMaxLength = 15;
  if (name.empty() || name.size() > kMaxLength || name == "." || name == "..") return false;
  if (name.find_first_of("/:\xA0") != std::string_view::npos) return false;
  uint32_t character = 0;
  while (!name.empty()) {
    const size_t length = base::DecodeUtf8(name, character);
    if (length == 0 || character < 0x20 || character == 0x7F || IsWhiteSpace(character)) {
      return false;
    }
    name.remove_prefix(length);
  }
  return true;
}

// Reads "K=V;K2=V2" as the runtimes write it, in any order. It is lenient: what is malformed or
// unknown must not keep a pod from being attached, and still less from being removed.
void ReadArgs(std::string_view args, Invocation& request) {
  while (!args.empty()) {
    const size_t end = std::min(args.find(';'), args.size());
    const std::string_view pair = args.substr(0, end);
    args.remove_prefix(std::min(end + 1, args.size()));
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = pair.substr(0, equals);
    const std::string_view value = pair.substr(equals + 1);
    if (key == "K8S_POD_NAMESPACE") request.pod.pod_namespace = ToUtf8(value);
    if (key == "K8S_POD_NAME") request.pod.name = ToUtf8(value);
    if (key == "K8S_POD_UID") request.pod.uid = ToUtf8(value);
    if (key == "MAC") request.args_mac = ToUtf8(value);
    if (key == "IP") request.args_ip = ToUtf8(value);
  }
}

bool IsLowerHex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool IsZero(std::string_view digits) { return digits.find_first_not_of('0') == digits.npos; }

// Takes "00-<32 digits>-<16 digits>-<2 digits>"
// (https://www.w3.org/TR/trace-context/#traceparent-header); later versions may have more behind
// it. Returns an empty text for anything else.
std::string_view TraceParent(std::string_view text) {
  constexpr size_t kLength = 55;
  if (text.size() < kLength) return {};
  const std::string_view version = text.substr(0, 2);
  if (text.size() > kLength && (version == "00" || text[kLength] != '-')) return {};
  text = text.substr(0, kLength);
  const std::string_view trace = text.substr(3, 32);
  const std::string_view span = text.substr(36, 16);
  const bool dashes = text[2] == '-' && text[35] == '-' && text[52] == '-';
  const bool digits =
      IsLowerHex(version) && IsLowerHex(trace) && IsLowerHex(span) && IsLowerHex(text.substr(53));
  if (!dashes || !digits || version == "ff" || IsZero(trace) || IsZero(span)) return {};
  return text;
}

Expected<Verb> ParseVerb(std::string_view text) {
  constexpr struct {
    std::string_view name;
    Verb verb;
  } kVerbs[] = {{"ADD", Verb::kAdd}, {"DEL", Verb::kDel},       {"CHECK", Verb::kCheck},
                {"GC", Verb::kGc},   {"STATUS", Verb::kStatus}, {"VERSION", Verb::kVersion}};
  for (const auto& known : kVerbs) {
    if (text == known.name) return known.verb;
  }
  return Error{kInvalidEnvironment, "unknown CNI_COMMAND: " + ToUtf8(text),
               "this plugin knows ADD, DEL, CHECK, GC, STATUS and VERSION, in capitals"};
}

// Reads what names the attachment, for the verbs that are about one.
std::optional<Error> ReadAttachmentVariables(const Environment& environment, Invocation& request) {
  request.container_id = TextOf(environment, "CNI_CONTAINERID");
  request.ifname = TextOf(environment, "CNI_IFNAME");
  request.netns = TextOf(environment, "CNI_NETNS");
  std::string missing;
  const auto require = [&](bool there, std::string_view name) {
    if (there) return;
    if (!missing.empty()) missing += ", ";
    missing += name;
  };
  require(!request.container_id.empty(), "CNI_CONTAINERID");
  require(!request.ifname.empty(), "CNI_IFNAME");
  // After a reboot or a crash a DEL has no namespace any more.
  require(!request.netns.empty() || request.verb == Verb::kDel, "CNI_NETNS");
  if (!missing.empty()) {
    return Error{kInvalidEnvironment, "required environment variables missing: " + missing,
                 "a container runtime sets them; to try the plugin by hand, see docs/CNI.md"};
  }
  if (!IsIdentifier(request.container_id)) {
    return Error{kInvalidEnvironment,
                 "invalid characters in CNI_CONTAINERID: " + ToUtf8(request.container_id),
                 "it starts with a letter or digit and goes on with those, '_', '.' and '-'"};
  }
  if (!IsInterfaceName(request.ifname)) {
    return Error{kInvalidEnvironment,
                 "CNI_IFNAME is no name for a network interface: " + ToUtf8(request.ifname),
                 "it has 1 to 15 bytes, no white space, '/' or ':', and is not \".\" or \"..\""};
  }
  return std::nullopt;
}

// ---- The network configuration.

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

std::optional<Error> ReadName(const Value& config, Invocation& request) {
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

std::optional<Error> ReadVersion(const Value& config, Invocation& request) {
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

std::optional<Error> ReadSocket(const Value& config, Invocation& request) {
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
        "it is absolute and has at most 107 bytes; the agent's default is " + Invocation().socket);
  }
  return std::nullopt;
}

std::optional<Error> ReadTimeout(const Value& config, Invocation& request) {
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
std::optional<Error> ReadForAdd(const Value& config, Invocation& request) {
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
std::optional<Error> ReadValid(const Value& config, Invocation& request) {
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

std::string NameOfPod(const Invocation& request) {
  if (request.pod.name.empty()) return "container " + request.container_id;
  return "pod " + request.pod.pod_namespace + "/" + request.pod.name;
}

Expected<Invocation> ParseEnvironment(const Environment& environment) {
  Invocation request;
  const auto verb = ParseVerb(TextOf(environment, "CNI_COMMAND"));
  if (!verb.ok()) return verb.error();
  request.verb = *verb;
  // Runtimes probe with dummies in the other variables, so VERSION looks at none of them.
  if (request.verb == Verb::kVersion) return request;
  request.trace_parent = TraceParent(TextOf(environment, "TRACEPARENT"));
  if (request.verb == Verb::kGc || request.verb == Verb::kStatus) return request;
  ReadArgs(TextOf(environment, "CNI_ARGS"), request);
  if (const auto error = ReadAttachmentVariables(environment, request)) return *error;
  return request;
}

std::optional<Error> ReadConfig(std::string_view text, Invocation& request) {
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
