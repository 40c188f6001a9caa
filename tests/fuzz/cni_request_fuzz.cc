// What a runtime may send the plugin: never a crash, and never anything but a request or an error
// that is one JSON object.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "cni-plugin/request.h"
#include "cni-plugin/result.h"
#include "lib/base/check.h"

namespace {

using spoke::cni::Expected;
using spoke::cni::Request;

void CheckOutcome(const Expected<Request>& outcome) {
  if (outcome.ok()) return;
  const std::string printed = FormatError(outcome.error(), "");
  const auto parsed = nlohmann::json::parse(printed, nullptr, false);
  CHECK(parsed.is_object() && parsed.contains("code"), "an error is printed as one JSON object");
}

}  // namespace

// The first line is used as each environment variable, the rest as standard input.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const size_t line_end = std::min(text.find('\n'), text.size());
  const std::string variable = text.substr(0, line_end);
  const std::string input = text.substr(std::min(line_end + 1, text.size()));

  CheckOutcome(spoke::cni::ParseEnvironment([&](const char* name) -> std::optional<std::string> {
    return std::string(name) == "CNI_COMMAND" ? "ADD" : variable;
  }));
  Request request;
  request.command = spoke::cni::Command::kAdd;
  const auto parsed = spoke::cni::ParseConfig(request, input);
  CheckOutcome(parsed);
  if (!parsed.ok()) return 0;
  CHECK(parsed->socket.starts_with('/'), "an accepted socket path is absolute");
  const auto result = nlohmann::json::parse(
      FormatResult(*parsed, {.addresses = {{"10.1.0.5/32", "169.254.1.1"}}}), nullptr, false);
  CHECK(result.is_object(), "a result is one JSON object");
  return 0;
}
