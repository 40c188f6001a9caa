#include "cni-plugin/annotations.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "cni-plugin/json/utf8.h"
#include "lib/units/bit_rate_reader.h"

namespace spoke::cni {
namespace {

using json::Value;

constexpr const char* kCapability = "io.kubernetes.cri.pod-annotations";
constexpr std::string_view kPrefix = "spoke.internal/";
constexpr const char* kIngress = "spoke.internal/internet-ingress-bandwidth";
constexpr const char* kEgress = "spoke.internal/internet-egress-bandwidth";
constexpr const char* kWeight = "spoke.internal/internet-weight";

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

std::optional<Error> ReadRate(const Value& annotations, const char* key, const Request& request,
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

// Returns whether a name is one of a limit of ours, right or misspelt.
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
