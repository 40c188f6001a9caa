#include "netagent/session/store_token.h"

#include <utility>

#include "lib/os/file.h"

namespace spoke::netagent {
namespace {

constexpr size_t kMaxTokenBytes = 256;

}  // namespace

StoreToken::StoreToken(std::vector<std::string> files, telemetry::Log& log)
    : files_(std::move(files)), log_(log) {
  for (const std::string& file : files_) {
    auto token = os::ReadFile(file, kMaxTokenBytes);
    if (!token.ok() || token->empty()) continue;
    token_ = *std::move(token);
    return;
  }
}

void StoreToken::Keep(const std::string& token) {
  if (token.empty() || token == token_ || token.size() > kMaxTokenBytes) return;
  token_ = token;
  for (const std::string& file : files_) {
    const absl::Status made = os::MakeDirectory(os::DirectoryOf(file));
    const absl::Status written =
        made.ok() ? os::WriteFileAtomic(file, token, os::Durability::kVisible, 0600) : made;
    if (written.ok() || complained_) continue;
    complained_ = true;
    log_.Warn("store_token_not_kept", {{"file", file}, {"error", written}});
  }
}

}  // namespace spoke::netagent
