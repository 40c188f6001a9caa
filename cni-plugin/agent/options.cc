#include "cni-plugin/agent/options.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cni-plugin/json/json.h"
#include "lib/units/bit_rate_reader.h"

namespace spoke::cni {
namespace {

using json::Value;

constexpr const char* kCapability = "io.kubernetes.cri.pod-annotations";
constexpr std::string_view kPrefix = "spoke.internal/";
constexpr const char* kIngress = "spoke.internal/internet-ingress-bandwidth";
constexpr const char* kEgress = "spoke.internal/internet-egress-bandwidth";
constexpr const char* kWeight = "spoke.internal/internet-weight";

Error Refused(std::string_view what, const Invocation& request, const Value& value,
              const char* details) {
  std::string message = ToUtf8(what) + " of " + NameOfPod(request) + " is ";
  if (value.IsString()) {
    message += '"' + ToUtf8(json::TextOf(&value)) + '"';
  } else {
    json::AppendValue(value, message);
  }
  return {kInvalidConfig, std::move(message), details};
}

std::optional<Error> ReadRate(const Value& annotations, const char* key, const Invocation& request,
                              units::BitRate& rate) {
  const Value* value = json::Find(annotations, key);
  if (value == nullptr) return std::nullopt;
  const units::ReadRate read =
      units::ReadBitRate(json::TextOf(value), units::RateAliases::kRefused);
  rate = read.rate;
  if (read.mistake == units::RateMistake::kNone) return std::nullopt;
  return Refused(key, request, *value,
                 "write a number and its unit, from 1Mbit to 1Tbit, such as 100Mbit or 1.5Gbit");
}

std::optional<Error> ReadWeight(const Value& annotations, const Invocation& request,
                                uint32_t& weight) {
  const Value* value = json::Find(annotations, kWeight);
  if (value == nullptr) return std::nullopt;
  const std::string_view text = json::TextOf(value);
  uint64_t number = 0;
  bool good = !text.empty();
  for (const char c : text) {
    good = good && c >= '0' && c <= '9';
    if (good) number = number * 10 + static_cast<uint64_t>(c - '0');
    good = good && number <= kMaxPodWeight;
  }
  if (good && number != 0) {
    weight = static_cast<uint32_t>(number);
    return std::nullopt;
  }
  return Refused(kWeight, request, *value, "write a whole number from 1 to 100, such as 10");
}

// Returns whether a name is one of a limit of ours, right or misspelt.
bool LooksLikeLimit(std::string_view name) {
  if (!name.starts_with(kPrefix)) return false;
  std::string lower(name);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower.find("bandwidth") != std::string::npos;
}

std::optional<Error> RefuseMisspelt(const Value& annotations, const Invocation& request) {
  for (const auto& member : annotations.GetObject()) {
    const std::string_view name = json::TextOf(&member.name);
    if (name == kIngress || name == kEgress || !LooksLikeLimit(name)) continue;
    return Refused(
        name, request, member.value,
        "there is no such annotation: write spoke.internal/internet-ingress-bandwidth or "
        "spoke.internal/internet-egress-bandwidth, such as 100Mbit");
  }
  return std::nullopt;
}

using json::Value;

constexpr uint64_t kLeastMtu = 68;  // The smallest MTU, of RFC 791, section 3.2.
constexpr uint64_t kMostMtu = 65535;

Error BadOptions(const std::string& key, std::string_view value, const char* details) {
  return {kInvalidConfig, key + " is " + ToUtf8(value), details};
}

std::string Shown(const Value& value) {
  std::string text;
  json::AppendValue(value, text);
  return text;
}

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Returns "0E:11:22:33:44:55", "0e-11-22-33-44-55" or "0e11.2233.4455" in the first form and lower
// case; empty where it is none of these, a group's address or zero: no device can have those.
std::string ToMac(std::string_view text) {
  constexpr size_t kDigits = 12;
  const bool dotted = text.size() == 14;
  if (text.size() != 17 && !dotted) return {};
  const char separator = text[dotted ? 4 : 2];
  if (dotted ? separator != '.' : separator != ':' && separator != '-') return {};
  const size_t group = dotted ? 4 : 2;
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool between = i % (group + 1) == group;
    const int digit = DigitOf(text[i]);
    if (between ? text[i] != separator : digit < 0) return {};
    if (!between) digits.push_back("0123456789abcdef"[digit]);
  }
  if (digits.size() != kDigits || DigitOf(digits[1]) % 2 == 1) return {};
  if (digits.find_first_not_of('0') == std::string::npos) return {};
  std::string mac;
  for (size_t i = 0; i < kDigits; i += 2) {
    if (i > 0) mac.push_back(':');
    mac += digits.substr(i, 2);
  }
  return mac;
}

enum class Family : uint8_t { kNone, kV4, kV6 };

// Returns which family an address, with or without a prefix length, is of.
Family FamilyOf(std::string_view text) {
  const size_t slash = std::min(text.find('/'), text.size());
  const std::string address(text.substr(0, slash));
  if (address.find('\0') != std::string::npos) return Family::kNone;
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  const bool v4 = ::inet_pton(AF_INET, address.c_str(), bytes.data()) == 1;
  if (!v4 && ::inet_pton(AF_INET6, address.c_str(), bytes.data()) != 1) return Family::kNone;
  if (slash < text.size()) {
    const std::string_view length = text.substr(slash + 1);
    int bits = 0;
    if (length.empty() || length.size() > 3) return Family::kNone;
    for (const char c : length) {
      if (c < '0' || c > '9') return Family::kNone;
      bits = bits * 10 + (c - '0');
    }
    if (bits > (v4 ? 32 : 128)) return Family::kNone;
  }
  return v4 ? Family::kV4 : Family::kV6;
}

// The source of an option that counts: where it is found, for messages, and its value.
struct Source {
  std::string key;
  const Value* value = nullptr;
};

bool IsEmpty(const Value& value) {
  return (value.IsString() && value.GetStringLength() == 0) || (value.IsArray() && value.Empty());
}

// Looks in runtimeConfig, then args.cni; the result has no value where both say nothing.
Source FindSource(const Value& config, const char* key) {
  const Value* runtime = json::Find(config, "runtimeConfig");
  const Value* args = json::Find(config, "args");
  const Value* cni = args == nullptr ? nullptr : json::FindAnyCase(*args, "cni");
  for (const auto& [place, object] :
       {std::pair("runtimeConfig.", runtime), std::pair("args.cni.", cni)}) {
    const Value* value = object == nullptr ? nullptr : json::FindAnyCase(*object, key);
    if (value != nullptr && !IsEmpty(*value)) return {std::string(place) + key, value};
  }
  return {};
}

std::optional<Error> ReadMac(const Value& config, Invocation& request) {
  constexpr const char* kDetails = "ask for one device's address, such as 0e:11:22:33:44:55";
  const Source source = FindSource(config, "mac");
  if (source.value != nullptr && !source.value->IsString()) {
    return BadOptions(source.key, Shown(*source.value), kDetails);
  }
  const std::string_view text =
      source.value != nullptr ? json::TextOf(source.value) : std::string_view(request.args_mac);
  if (text.empty()) return std::nullopt;
  request.options.mac = ToMac(text);
  if (!request.options.mac.empty()) return std::nullopt;
  return BadOptions(source.value != nullptr ? source.key : "MAC in CNI_ARGS", text, kDetails);
}

// Adds what a list with commas has; returns false when a part is no address, or the second of its
// family.
bool AddAddresses(std::string_view list, Options& options) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    const std::string_view text = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    const Family family = FamilyOf(text);
    if (family == Family::kNone) return false;
    for (const std::string& other : options.addresses) {
      if (FamilyOf(other) == family) return false;
    }
    options.addresses.emplace_back(text);
  }
  return true;
}

std::optional<Error> ReadAddresses(const Value& config, Invocation& request) {
  constexpr const char* kDetails =
      "ask for at most one address a family, such as 10.1.0.5 or fd00::5/128";
  const Source source = FindSource(config, "ips");
  if (source.value == nullptr) {
    if (AddAddresses(request.args_ip, request.options)) return std::nullopt;
    return BadOptions("IP in CNI_ARGS", request.args_ip, kDetails);
  }
  bool good = source.value->IsArray() || source.value->IsString();
  if (source.value->IsString()) good = AddAddresses(json::TextOf(source.value), request.options);
  for (rapidjson::SizeType i = 0; good && source.value->IsArray() && i < source.value->Size();
       ++i) {
    good = (*source.value)[i].IsString() &&
           AddAddresses(json::TextOf(&(*source.value)[i]), request.options);
  }
  if (good) return std::nullopt;
  return BadOptions(source.key, Shown(*source.value), kDetails);
}

std::optional<Error> ReadMtu(const Value& config, Invocation& request) {
  const Value* value = json::Find(config, "mtu");
  if (value == nullptr) return std::nullopt;
  const uint64_t mtu = value->IsUint64() ? value->GetUint64() : 1;
  if (mtu != 0 && (mtu < kLeastMtu || mtu > kMostMtu)) {
    return BadOptions("\"mtu\"", Shown(*value),
                      "it is a whole number from 68 to 65535, or 0 for the node's choice");
  }
  request.options.mtu = static_cast<uint32_t>(mtu);
  return std::nullopt;
}

std::optional<Error> CheckLimit(const char* direction, units::BitRate rate, units::BitCount burst,
                                const Invocation& request) {
  // The highest burst, below 4 GiB - 1 bytes, as the reference plugin "bandwidth" has it. The burst
  // that CRI-O sets where a pod says nothing is the greatest that passes.
  constexpr uint64_t kBurstLimitBytes = UINT32_MAX;
  const char* rule = nullptr;
  if (burst.is_zero() && !rate.is_zero()) rule = "if rate is set, burst must also be set";
  if (rate.is_zero() && !burst.is_zero()) rule = "if burst is set, rate must also be set";
  if (burst.count() / 8 >= kBurstLimitBytes) rule = "burst cannot be more than 4GB";
  if (rule == nullptr) return std::nullopt;
  return Error{kInvalidConfig,
               std::string(direction) + " bandwidth of " + NameOfPod(request) + ": " + rule,
               "rate is " + std::to_string(rate.count()) + " bits a second, burst " +
                   std::to_string(burst.count()) + " bits"};
}

std::optional<Error> ReadBandwidth(const Value& config, Invocation& request) {
  using Finder = const Value* (*)(const Value&, std::string_view);
  uint64_t ingress_rate = 0;
  uint64_t ingress_burst = 0;
  uint64_t egress_rate = 0;
  uint64_t egress_burst = 0;
  const std::pair<const char*, uint64_t*> fields[] = {{"ingressRate", &ingress_rate},
                                                      {"ingressBurst", &ingress_burst},
                                                      {"egressRate", &egress_rate},
                                                      {"egressBurst", &egress_burst}};
  const Value* source = &config;
  Finder find = &json::Find;
  const auto is_set = [&](const auto& field) { return find(*source, field.first) != nullptr; };
  if (std::none_of(std::begin(fields), std::end(fields), is_set)) {
    const Value* runtime = json::Find(config, "runtimeConfig");
    source = runtime == nullptr ? nullptr : json::FindAnyCase(*runtime, "bandwidth");
    find = &json::FindAnyCase;
    if (source == nullptr) return std::nullopt;
    if (!source->IsObject()) {
      return BadOptions("runtimeConfig.bandwidth", Shown(*source),
                        "it is an object with rates and bursts");
    }
  }
  for (const auto& [key, field] : fields) {
    const Value* value = find(*source, key);
    if (value == nullptr) continue;
    if (!value->IsUint64()) {
      return BadOptions(std::string(key) + " of " + NameOfPod(request), Shown(*value),
                        "it is a whole number of bits (a second), not negative");
    }
    *field = value->GetUint64();
  }
  Bandwidth& limits = request.options.bandwidth;
  limits = {.ingress_rate = units::BitRate(ingress_rate),
            .ingress_burst = units::BitCount(ingress_burst),
            .egress_rate = units::BitRate(egress_rate),
            .egress_burst = units::BitCount(egress_burst)};
  if (const auto error =
          CheckLimit("ingress", limits.ingress_rate, limits.ingress_burst, request)) {
    return error;
  }
  return CheckLimit("egress", limits.egress_rate, limits.egress_burst, request);
}

}  // namespace

std::optional<Error> ReadAnnotations(const json::Value& config, Invocation& request) {
  const Value* runtime = json::Find(config, "runtimeConfig");
  const Value* annotations =
      runtime == nullptr ? nullptr : json::FindAnyCase(*runtime, kCapability);
  if (annotations == nullptr) return std::nullopt;
  if (!annotations->IsObject()) {
    return Refused("runtimeConfig.io.kubernetes.cri.pod-annotations", request, *annotations,
                   "it is an object of texts");
  }
  if (auto error = RefuseMisspelt(*annotations, request)) return error;
  InternetOptions& options = request.options.internet;
  if (auto error = ReadRate(*annotations, kIngress, request, options.ingress)) return error;
  if (auto error = ReadRate(*annotations, kEgress, request, options.egress)) return error;
  return ReadWeight(*annotations, request, options.weight);
}

std::optional<Error> ReadOptions(const json::Value& config, Invocation& request) {
  request.options = Options();
  if (const auto error = ReadMac(config, request)) return error;
  if (const auto error = ReadAddresses(config, request)) return error;
  if (const auto error = ReadMtu(config, request)) return error;
  if (const auto error = ReadBandwidth(config, request)) return error;
  return ReadAnnotations(config, request);
}

}  // namespace spoke::cni
