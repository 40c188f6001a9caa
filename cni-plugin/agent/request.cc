#include "cni-plugin/agent/request.h"

#include <algorithm>

#include "cni-plugin/json/json.h"
#include "lib/base/utf8.h"

namespace spoke::cni {
namespace {

std::string_view TextOf(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

bool IsAlnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
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
void ReadArgs(std::string_view args, Request& request) {
  while (!args.empty()) {
    const size_t end = std::min(args.find(';'), args.size());
    const std::string_view pair = args.substr(0, end);
    args.remove_prefix(std::min(end + 1, args.size()));
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = pair.substr(0, equals);
    const std::string_view value = pair.substr(equals + 1);
    if (key == "K8S_POD_NAMESPACE") request.pod.namespace_name = ToUtf8(value);
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
std::optional<Error> ReadAttachmentVariables(const Environment& environment, Request& request) {
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

}  // namespace

bool IsIdentifier(std::string_view text) {
  return !text.empty() && IsAlnum(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsAlnum(c) || c == '_' || c == '.' || c == '-'; });
}

std::string NameOfPod(const Request& request) {
  if (request.pod.name.empty()) return "container " + request.container_id;
  return "pod " + request.pod.namespace_name + "/" + request.pod.name;
}

Expected<Request> ParseEnvironment(const Environment& environment) {
  Request request;
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

}  // namespace spoke::cni
