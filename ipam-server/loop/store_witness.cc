#include "ipam-server/loop/store_witness.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "lib/tls/message_code.h"

namespace spoke::ipam {
namespace {

constexpr size_t kKeyBytes = std::tuple_size_v<StoreKey>;
constexpr size_t kMaxFileBytes = 1024;
constexpr size_t kMaxTokenBytes = 256;
constexpr std::string_view kVersion = "1";

std::string TextOf(const StoreMark& mark) {
  return fmt::format("{}.{}.{}.{}", kVersion, mark.store_id, mark.epoch, mark.nodes);
}

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

// Returns the mark that TextOf() wrote; nullopt: it is none.
std::optional<StoreMark> ParseText(std::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(View(text), '.');
  StoreMark mark;
  if (parts.size() != 4 || parts[0] != kVersion || parts[1].empty() ||
      !absl::SimpleAtoi(parts[2], &mark.epoch) || !absl::SimpleAtoi(parts[3], &mark.nodes)) {
    return std::nullopt;
  }
  mark.store_id = parts[1];
  return mark;
}

absl::StatusOr<std::optional<std::string>> ReadIfThere(const std::string& path) {
  auto text = os::ReadFile(path, kMaxFileBytes);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  if (!text.ok()) return text.status();
  return *std::move(text);
}

struct Key {
  StoreKey bytes = {};
  bool made = false;
};

absl::StatusOr<Key> ReadOrMakeKey(const std::string& path) {
  ASSIGN_OR_RETURN(const std::optional<std::string> text, ReadIfThere(path));
  std::string bytes;
  if (!text) {
    ASSIGN_OR_RETURN(bytes, tls::RandomBytes(kKeyBytes));
    RETURN_IF_ERROR(os::WriteFileAtomic(path, absl::BytesToHexString(bytes) + "\n",
                                        os::Durability::kSurvivesPower, 0600));
  } else if (text->size() >= 2 * kKeyBytes) {
    bytes = absl::HexStringToBytes(View(*text).substr(0, 2 * kKeyBytes));
  }
  if (bytes.size() != kKeyBytes) {
    return absl::FailedPreconditionError(
        fmt::format("{} is no key: restore it, or remove it and let `spokectl recovery confirm` "
                    "take the nodes in anew",
                    path));
  }
  Key key{.made = !text};
  std::copy(bytes.begin(), bytes.end(), key.bytes.begin());
  return key;
}

}  // namespace

std::string SignMark(const StoreMark& mark, std::string_view key) {
  const std::string text = TextOf(mark);
  return fmt::format("{}.{}", text, absl::BytesToHexString(tls::CodeOf(key, text)));
}

absl::StatusOr<StoreMark> VerifyMark(std::string_view token, std::string_view key) {
  const size_t end = token.rfind('.');
  if (token.size() > kMaxTokenBytes || end == std::string_view::npos) {
    return absl::InvalidArgumentError("not the token of a store");
  }
  const std::string_view text = token.substr(0, end);
  const std::optional<StoreMark> mark = ParseText(text);
  if (!mark) return absl::InvalidArgumentError("not the token of a store");
  if (!tls::IsCodeOf(absl::HexStringToBytes(View(token.substr(end + 1))), key, text)) {
    return absl::UnauthenticatedError("the token of a store that this server's key has not signed");
  }
  return *mark;
}

std::string ThisBoot() {
  constexpr const char* kBootIdFile = "/proc/sys/kernel/random/boot_id";
  return std::string(
      absl::StripAsciiWhitespace(os::ReadFile(kBootIdFile, kMaxTokenBytes).value_or("")));
}

absl::StatusOr<StoreWitness> StoreWitness::Open(const std::string& directory, std::string boot_id,
                                                const std::optional<MarkKeys>& keys) {
  Witness found;
  Key key;
  if (keys) {
    CHECK(keys->present.size() == kKeyBytes, "a key of marks has its length");
    key.made = keys->made;
    std::copy(keys->present.begin(), keys->present.end(), key.bytes.begin());
  } else {
    ASSIGN_OR_RETURN(key, ReadOrMakeKey(directory + "/store.key"));
  }
  found.first_start = key.made;
  ASSIGN_OR_RETURN(const std::optional<std::string> text, ReadIfThere(directory + "/store.mark"));
  if (text) {
    const std::vector<std::string> lines = absl::StrSplit(*text, '\n');
    const std::optional<StoreMark> mark = ParseText(lines[0]);
    if (!mark || lines.size() < 2) {
      return absl::FailedPreconditionError(
          fmt::format("{}/store.mark says nothing: remove it; nodes will be asked what they were "
                      "told",
                      directory));
    }
    found.last = *mark;
    found.same_boot = !boot_id.empty() && lines[1] == boot_id;
    found.first_start = false;
  }
  StoreWitness witness(directory, std::move(boot_id), key.bytes, std::move(found));
  if (keys) witness.former_key_ = keys->former;
  return witness;
}

absl::StatusOr<StoreMark> StoreWitness::Verify(std::string_view token) const {
  auto mark = VerifyMark(token, key());
  if (former_key_.empty() || !absl::IsUnauthenticated(mark.status())) return mark;
  return VerifyMark(token, former_key_);
}

absl::Status StoreWitness::Remember(const StoreMark& mark) const {
  // The directory is the authority's, which only a leader makes.
  RETURN_IF_ERROR(os::MakeDirectory(directory_));
  return os::WriteFileAtomic(directory_ + "/store.mark",
                             fmt::format("{}\n{}\n", TextOf(mark), boot_id_),
                             os::Durability::kVisible, 0600);
}

}  // namespace spoke::ipam
