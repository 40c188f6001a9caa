#include "cni-plugin/annotations.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "cni-plugin/json/utf8.h"

namespace spoke::cni {
namespace {

using json::Value;

constexpr const char* kCapability = "io.kubernetes.cri.pod-annotations";
constexpr std::string_view kPrefix = "spoke.internal/";
constexpr const char* kIngress = "spoke.internal/internet-ingress-bandwidth";
constexpr const char* kEgress = "spoke.internal/internet-egress-bandwidth";
constexpr const char* kWeight = "spoke.internal/internet-weight";

// A full packet of 1,500 bytes must leave soon enough.
constexpr uint64_t kLeastRate = 1'000'000;
constexpr uint64_t kMostRate = 1'000'000'000'000;
constexpr uint64_t kMostWeight = 100;

Error Refused(std::string_view what, const Request& request, const Value& value,
              const char* details) {
  std::string message = ToUtf8(what) + " of " + NameOfPod(request) + " is ";
  if (value.IsString()) {
    message += '"' + ToUtf8(json::TextOf(&value)) + '"';
  } else {
    json::AppendValue(value, message);
  }
  return {kInvalidConfig, std::move(message), details};
}

// Takes "bit" and its multiple off the end of `text`; 0: it has no such unit.
uint64_t TakeUnit(std::string_view& text) {
  constexpr std::string_view kUnit = "bit";
  if (!text.ends_with(kUnit)) return 0;
  text.remove_suffix(kUnit.size());
  uint64_t bits = 1;
  for (const char multiple : std::string_view("kMGT")) {
    bits *= 1000;
    if (!text.ends_with(multiple)) continue;
    text.remove_suffix(1);
    return bits;
  }
  return 1;
}

// A rate in bits a second; 0: it is none, has a part of a bit, or is out of bounds.
uint64_t ToRate(std::string_view text) {
  uint64_t unit = TakeUnit(text);
  if (unit == 0 || text.empty() || text.front() == '.' || text.back() == '.') return 0;
  uint64_t rate = 0;
  bool fraction = false;
  for (const char c : text) {
    if (c == '.' && !fraction) {
      fraction = true;
      continue;
    }
    if (c < '0' || c > '9') return 0;
    const auto digit = static_cast<uint64_t>(c - '0');
    if (fraction) {
      if (unit % 10 != 0 && digit != 0) return 0;
      unit = unit % 10 == 0 ? unit / 10 : unit;
      rate += digit * unit;
    } else {
      // `rate` is at most kMostRate here, and so is `unit`.
      rate = rate * 10 + digit * unit;
    }
    if (rate > kMostRate) return 0;
  }
  return rate < kLeastRate ? 0 : rate;
}

std::optional<Error> ReadRate(const Value& annotations, const char* key, const Request& request,
                              uint64_t& rate) {
  const Value* value = json::Find(annotations, key);
  if (value == nullptr) return std::nullopt;
  rate = ToRate(json::TextOf(value));
  if (rate != 0) return std::nullopt;
  return Refused(key, request, *value,
                 "write a number and its unit, from 1Mbit to 1Tbit, such as 100Mbit or 1.5Gbit");
}

std::optional<Error> ReadWeight(const Value& annotations, const Request& request,
                                uint32_t& weight) {
  const Value* value = json::Find(annotations, kWeight);
  if (value == nullptr) return std::nullopt;
  const std::string_view text = json::TextOf(value);
  uint64_t number = 0;
  bool good = !text.empty();
  for (const char c : text) {
    good = good && c >= '0' && c <= '9';
    if (good) number = number * 10 + static_cast<uint64_t>(c - '0');
    good = good && number <= kMostWeight;
  }
  if (good && number != 0) {
    weight = static_cast<uint32_t>(number);
    return std::nullopt;
  }
  return Refused(kWeight, request, *value, "write a whole number from 1 to 100, such as 10");
}

// Whether a name is one of a limit of ours, right or misspelt.
bool LooksLikeLimit(std::string_view name) {
  if (!name.starts_with(kPrefix)) return false;
  std::string lower(name);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower.find("bandwidth") != std::string::npos;
}

std::optional<Error> RefuseMisspelt(const Value& annotations, const Request& request) {
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

}  // namespace

std::optional<Error> ReadAnnotations(const json::Value& config, Request& request) {
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

}  // namespace spoke::cni
