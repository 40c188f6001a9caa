// ConfigText from any text. The laws: nothing is thrown or read out of bounds, whatever a reader
// asks for; Finish() is OK or a list of "FILE:LINE: ..." lines in the order of the file, each with
// a line the file has; and a text without mistakes has them neither the second time.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/config/config_text.h"

namespace spoke::config {
namespace {

constexpr std::string_view kFile = "f.yaml";

void ReadFields(const ConfigMap& map) {
  std::string text;
  bool flag = false;
  uint32_t number = 0;
  double fraction = 0;
  absl::Duration duration;
  std::vector<std::string> texts = {"default"};
  map.String("text", &text, Need::kRequired);
  map.Bool("flag", &flag, Need::kOptional);
  map.Uint32("number", &number, Need::kOptional, {0, 100});
  map.Double("fraction", &fraction, Need::kOptional, {-1, 1});
  map.Duration("duration", &duration, Need::kOptional);
  map.StringList("texts", &texts, Need::kOptional);
  CHECK(number <= 100, "no number outside its limits is taken");
  CHECK(fraction >= -1 && fraction <= 1, "no fraction outside its limits is taken");
  CHECK(duration >= absl::ZeroDuration() && duration < absl::InfiniteDuration(),
        "no duration outside its limits is taken");
}

// Reads the keys that are there, as maps whose keys are data do. It goes no deeper: ReadAll() does
// that.
void ReadOwnKeys(const ConfigMap& map) {
  for (const std::string& key : map.Keys()) {
    CHECK(map.Has(key), "a listed key is there");
    map.Custom(key, Need::kOptional, [](std::string_view value) {
      CHECK(!value.empty(), "empty text is refused before it is parsed");
      return absl::InvalidArgumentError(std::string(value));
    });
  }
}

void ReadAll(const ConfigMap& root) {
  std::vector<ConfigMap> open = {root};
  for (size_t i = 0; i < open.size() && i < 1000; ++i) {
    const ConfigMap map = open[i];
    ReadFields(map);
    if (map.Has("free")) ReadOwnKeys(map);
    open.push_back(map.Map("map", Need::kOptional));
    if (!open.back().present()) open.pop_back();
    for (const ConfigMap& item : map.MapList("list", Need::kOptional)) open.push_back(item);
  }
}

// Variables, of which one would be another if values were looked at again.
std::optional<std::string> LookUp(const std::string& name) {
  if (name.size() > 3) return std::nullopt;
  return name.size() == 1 ? "1" : "${" + name + "}";
}

void CheckMessage(const std::string& message, long lines_in_file) {
  std::istringstream stream(message);
  std::string line;
  long previous = 1;
  while (std::getline(stream, line)) {
    CHECK(line.starts_with(kFile) && line[kFile.size()] == ':', "a mistake names the file");
    if (line.find(": and ") == kFile.size()) continue;  // The line is "FILE: and 3 more".
    const long number = std::strtol(line.c_str() + kFile.size() + 1, nullptr, 10);
    CHECK(number >= previous && number <= lines_in_file, "mistakes are ordered, in the file");
    previous = number;
  }
}

}  // namespace
}  // namespace spoke::config

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using spoke::config::ConfigText;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const ConfigText config = ConfigText::Parse(text, std::string(spoke::config::kFile));
  spoke::config::ReadAll(config.Root());
  const absl::Status status = config.Finish();
  CHECK(config.Finish() == status, "Finish() gives the same twice");
  const ConfigText expanded =
      ConfigText::Parse(text, std::string(spoke::config::kFile), &spoke::config::LookUp);
  spoke::config::ReadAll(expanded.Root());
  const absl::Status expanded_status = expanded.Finish();
  const long lines_of_all = 1 + static_cast<long>(std::count(text.begin(), text.end(), '\n'));
  if (!expanded_status.ok()) {
    spoke::config::CheckMessage(std::string(spoke::base::MessageOf(expanded_status)), lines_of_all);
  }
  if (status.ok()) return 0;
  CHECK(status.code() == absl::StatusCode::kInvalidArgument, "mistakes have one code");
  spoke::config::CheckMessage(std::string(spoke::base::MessageOf(status)), lines_of_all);
  return 0;
}
