#include "netagent/cni/conflist.h"

#include "lib/base/status.h"
#include "lib/os/file.h"
#include "nlohmann/json.hpp"

namespace spoke::netagent {
namespace {

constexpr size_t kMaxConflistBytes = 1 << 20;

}  // namespace

absl::StatusOr<bool> InstallConflist(const ConflistSettings& settings) {
  ASSIGN_OR_RETURN(const std::string content, os::ReadFile(settings.source, kMaxConflistBytes));
  // A runtime that finds the first file broken uses none of the others either.
  if (!nlohmann::json::parse(content, nullptr, false).is_object()) {
    return absl::InvalidArgumentError(settings.source + " is not a JSON object");
  }
  const std::string path = settings.directory + "/" + settings.file;
  const absl::StatusOr<std::string> present = os::ReadFile(path, kMaxConflistBytes);
  if (present.ok() && *present == content) return false;
  // By way of FILE.tmp: runtimes load .conf, .conflist and .json.
  RETURN_IF_ERROR(os::WriteFileAtomic(path, content, os::Durability::kSurvivesPower));
  return true;
}

void ConflistKeeper::Tick(bool ready, absl::Time now) {
  if (!pending() || !ready || now < next_) return;
  next_ = now + kPause;
  const absl::StatusOr<bool> written = InstallConflist(*settings_);
  if (!written.ok()) {
    log_.Warn("conflist_not_written", {{"directory", settings_->directory},
                                       {"file", settings_->file},
                                       {"error", written.status()}});
    return;
  }
  done_ = true;
  log_.Info(*written ? "conflist_written" : "conflist_kept",
            {{"directory", settings_->directory}, {"file", settings_->file}});
}

}  // namespace spoke::netagent
