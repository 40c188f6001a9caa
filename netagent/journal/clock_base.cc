#include "netagent/journal/clock_base.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "fmt/core.h"
#include "lib/os/file.h"

namespace spoke::netagent {
namespace {

constexpr size_t kMaxBytes = 200;

// The file is one line: the boot's id, a space, milliseconds.
std::optional<absl::Duration> Remembered(const std::string& path, std::string_view boot_id) {
  const auto text = os::ReadFile(path, kMaxBytes);
  if (!text.ok() || !text->ends_with('\n')) return std::nullopt;
  const std::string line = text->substr(0, text->size() - 1);
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  int64_t ms = 0;
  if (words.size() != 2 || words[0] != boot_id || !absl::SimpleAtoi(words[1], &ms)) {
    return std::nullopt;
  }
  return absl::Milliseconds(ms);
}

}  // namespace

absl::StatusOr<ClockBase> ReadClockBase(const std::string& path, std::string_view boot_id,
                                        absl::Duration ahead) {
  if (const auto remembered = Remembered(path, boot_id)) {
    return ClockBase{.ahead = *remembered, .first_of_boot = false};
  }
  ahead = absl::Floor(ahead, absl::Milliseconds(1));
  absl::Status written =
      os::WriteFileAtomic(path, fmt::format("{} {}\n", boot_id, absl::ToInt64Milliseconds(ahead)),
                          os::Durability::kVisible, 0600);
  if (!written.ok()) return written;
  return ClockBase{.ahead = ahead, .first_of_boot = true};
}

absl::Time UnrecordedUseEnd(const ClockBase& base, bool journal_is_empty, absl::Time now) {
  const absl::Time booted = absl::UnixEpoch() + base.ahead;  // The uptime was 0.
  return journal_is_empty && !base.first_of_boot ? now : booted;
}

}  // namespace spoke::netagent
