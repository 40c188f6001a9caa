// A network configuration, and what its chained plugins answer to VERSION, after a NUL: never a
// crash, what is written is JSON if what was read is, and it offers no version that was not
// offered.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lib/base/check.h"
#include "netagent/cni/chained_versions.h"
#include "nlohmann/json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view conflist = text.substr(0, text.find('\0'));
  const std::string_view answer =
      conflist.size() < text.size() ? text.substr(conflist.size() + 1) : "";
  std::optional<spoke::netagent::CniVersions> versions;
  if (auto parsed = spoke::netagent::ParseVersionAnswer(answer); parsed.ok()) versions = *parsed;
  std::map<std::string, std::optional<spoke::netagent::CniVersions>> spoken;
  for (const auto& plugin : spoke::netagent::ChainedPlugins(conflist)) spoken[plugin] = versions;
  const std::string written = spoke::netagent::WithVersionsOfAll(conflist, spoken);
  const auto before = nlohmann::json::parse(conflist, nullptr, false);
  const auto after = nlohmann::json::parse(written, nullptr, false);
  CHECK(before.is_discarded() == after.is_discarded(), "JSON stays JSON");
  if (!before.is_object() || !after.contains("cniVersions")) return 0;
  if (written == conflist) return 0;
  for (const auto& version : after["cniVersions"]) {
    bool offered = false;
    for (const auto& known : before["cniVersions"]) offered = offered || known == version;
    CHECK(offered, "a version that was offered");
  }
  return 0;
}
