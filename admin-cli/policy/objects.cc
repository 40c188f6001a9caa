#include "admin-cli/policy/objects.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "admin-cli/output/list_form.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "lib/units/text.h"

namespace spoke::ctl {
namespace {

using units::ByteCount;
using units::Rounded;

// The most bytes. gRPC servers take messages of 4 MiB; the rest is for names.
constexpr size_t kMaxBytes = 3UL << 20;
constexpr size_t kMaxFiles = 10'000;

bool IsPolicyFile(const std::filesystem::path& path) {
  return path.extension() == ".yaml" || path.extension() == ".yml";
}

template <typename Iterator>
absl::StatusOr<std::vector<std::string>> FilesBelow(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (Iterator it(folder, error); !error && it != Iterator(); it.increment(error)) {
    std::error_code unreadable;
    if (!it->is_regular_file(unreadable) || !IsPolicyFile(it->path())) continue;
    files.push_back(it->path().string());
    if (files.size() > kMaxFiles) {
      return absl::InvalidArgumentError(
          fmt::format("{}: more than {} files; is it the right folder?", folder, kMaxFiles));
    }
  }
  if (error) return base::ErrnoToStatus(error.value(), "read the folder " + folder);
  if (files.empty()) {
    return absl::InvalidArgumentError(fmt::format("{}: no *.yaml or *.yml in this folder", folder));
  }
  std::sort(files.begin(), files.end());
  return files;
}

absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& path, bool recursive) {
  std::error_code error;
  if (path == "-" || !std::filesystem::is_directory(path, error)) {
    return std::vector<std::string>{path};
  }
  return recursive ? FilesBelow<std::filesystem::recursive_directory_iterator>(path)
                   : FilesBelow<std::filesystem::directory_iterator>(path);
}

}  // namespace

absl::StatusOr<std::vector<v1::PolicyFile>> ReadPolicyFiles(const std::vector<std::string>& paths,
                                                            bool recursive, Console& console) {
  if (std::count(paths.begin(), paths.end(), "-") > 1) {
    return absl::InvalidArgumentError("-f -: standard input can be read only once");
  }
  std::vector<v1::PolicyFile> files;
  size_t bytes = 0;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, FilesOf(path, recursive));
    for (const std::string& name : names) {
      const auto text = name == "-" ? console.ReadInput(kMaxBytes) : os::ReadFile(name, kMaxBytes);
      if (text.ok()) bytes += text->size();
      if (absl::IsResourceExhausted(text.status()) || bytes > kMaxBytes) {
        return absl::InvalidArgumentError(fmt::format(
            "{}: more than {} in all, which is more than the server takes at once; do it in parts",
            name, Rounded(ByteCount(kMaxBytes))));
      }
      if (!text.ok()) return text.status();
      v1::PolicyFile& file = files.emplace_back();
      file.set_name(name == "-" ? "stdin" : name);
      file.set_text(*text);
    }
  }
  return files;
}

const std::vector<std::string>& KnownKinds() {
  static const std::vector<std::string> kinds = {
      "Pool",           "ClusterNetwork",  "Team",      "DestinationGroup", "EgressPolicy",
      "BandwidthLimit", "BandwidthBudget", "NodeRemedy"};
  return kinds;
}

std::string KindOf(std::string_view word) {
  const std::string lower = absl::AsciiStrToLower({word.data(), word.size()});
  for (const std::string& kind : KnownKinds()) {
    const std::string known = absl::AsciiStrToLower(kind);
    if (lower == known || lower == known + "s") return kind;
    if (known.back() == 'y' && lower == known.substr(0, known.size() - 1) + "ies") return kind;
  }
  return std::string(word);
}

absl::StatusOr<std::set<std::string>> NamespacesOf(const Client& client, const std::string& team) {
  v1::GetObjectsRequest request;
  request.set_kind("Team");
  request.set_name(team);
  ASSIGN_OR_RETURN(const v1::GetObjectsResponse response, client.Ask(kGetObjects, request));
  std::set<std::string> namespaces;
  for (const v1::PolicyObjectInfo& object : response.objects()) {
    const Json value = Json::parse(object.json(), nullptr, /*allow_exceptions=*/false);
    const Json::json_pointer where("/spec/namespaces");
    if (!value.contains(where)) continue;
    for (const Json& one : value[where]) {
      if (one.is_string()) namespaces.insert(one.get<std::string>());
    }
  }
  return namespaces;
}

absl::Status PrintChanges(const Session& session,
                          const google::protobuf::RepeatedPtrField<v1::ObjectChange>& changes,
                          bool dry_run) {
  if (session.is_table() || session.format == Format::kName) {
    for (const v1::ObjectChange& change : changes) {
      const std::string name = Printable(change.kind() + "/" + change.name());
      if (session.format == Format::kName) {
        session.Out(name + "\n");
        continue;
      }
      const Tone tone = change.action() == "unchanged" ? Tone::kFaint : Tone::kGood;
      session.Out(fmt::format("{} {}{}\n", name,
                              Coloured(Printable(change.action()), tone, session.colours),
                              dry_run ? " (dry run)" : ""));
    }
    return absl::OkStatus();
  }
  Json value = Json::array();
  for (const v1::ObjectChange& change : changes) {
    value.push_back({{"kind", change.kind()},
                     {"name", change.name()},
                     {"action", change.action()},
                     {"dry_run", dry_run}});
  }
  return session.PrintValue(value);
}

}  // namespace spoke::ctl
