// Feeds what a runtime may send the plugin: never a crash, and never anything but a request that
// the agent can read, or an error that is one JSON object.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "cni-plugin/agent/request.h"
#include "cni-plugin/json/json.h"
#include "cni-plugin/result.h"
#include "lib/base/check.h"
#include "lib/base/utf8.h"
#include "proto/spoke/v1/cni.pb.h"

namespace {

using spoke::cni::Error;
using spoke::cni::Invocation;
using spoke::cni::Verb;

void CheckError(const Error& error) {
  const auto parsed = nlohmann::json::parse(FormatError(error, ""), nullptr, false);
  CHECK(parsed.is_object() && parsed.contains("code"), "an error is printed as one JSON object");
  CHECK(error.code >= 1 && error.code <= 7, "the code is one of those for bad input");
}

// The agent's decoder takes what the plugin sends.
void CheckSendable(const Invocation& request) {
  Invocation message = request;
  if (!request.expectations.empty()) message.expected = request.expectations[0].attachment;
  spoke::v1::CniRequest decoded;
  CHECK(decoded.ParseFromString(EncodeRequest(message)), "a request can be decoded");
  CHECK(decoded.options().addresses_size() <= 2, "at most one address a family is asked for");
  CHECK(decoded.options().mtu() <= 65535, "an MTU is within its limits");
  const auto& internet = decoded.options().internet();
  for (const uint64_t rate : {internet.ingress(), internet.egress()}) {
    CHECK(rate == 0 || (rate >= 1'000'000 && rate <= 1'000'000'000'000), "a rate is within bounds");
  }
  CHECK(internet.weight() <= 100, "a weight is within its limits");
}

}  // namespace

// Lines "NAME=VALUE" are the environment, up to an empty line; the rest is standard input.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  std::map<std::string, std::string> variables;
  while (!text.empty()) {
    const size_t line_end = std::min(text.find('\n'), text.size());
    const std::string line = text.substr(0, line_end);
    text.erase(0, line_end + 1);
    if (line.empty()) break;
    const size_t equals = std::min(line.find('='), line.size());
    variables[line.substr(0, equals)] = line.substr(std::min(equals + 1, line.size()));
  }
  auto request = spoke::cni::ParseEnvironment([&](const char* name) -> const char* {
    const auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  });
  if (!request.ok()) {
    CheckError(request.error());
    // What follows is looked at all the same.
    request = Invocation();
    request->verb = Verb::kAdd;
    request->container_id = "a";
    request->ifname = "eth0";
  }
  CHECK(spoke::base::IsUtf8(request->ifname), "a name that is accepted can be printed");
  if (const auto error = ReadConfig(text, *request)) {
    CheckError(*error);
    return 0;
  }
  CHECK(request->socket.starts_with('/'), "an accepted socket path is absolute");
  CHECK(request->add_timeout_ms >= 1000 && request->add_timeout_ms <= 50'000,
        "a timeout is bounded");
  CheckSendable(*request);
  const auto result = nlohmann::json::parse(
      FormatResult(*request, {.addresses = {{"10.1.0.5/32", "169.254.1.1"}}}), nullptr, false);
  CHECK(result.is_object(), "a result is one JSON object");
  CHECK(result["ips"].back()["interface"] == result["interfaces"].size() - 1,
        "our address points at our interface");
  return 0;
}
