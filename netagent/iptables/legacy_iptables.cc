#include "netagent/iptables/legacy_iptables.h"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/file.h"

namespace spoke::netagent {
namespace {

constexpr const char* kFolders[] = {"/usr/sbin/", "/sbin/", "/usr/local/sbin/"};
// The seconds to wait for the lock that all programs of iptables-legacy share.
constexpr const char* kLockSeconds = "2";

std::string FindProgram(const std::string& root, const std::string& name) {
  for (const char* folder : kFolders) {
    std::string path = root + folder + name;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

// Returns the first line of what a program complained of.
std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

absl::StatusOr<std::string> OutputOf(const RunIptables& run,
                                     const std::vector<std::string>& command) {
  ASSIGN_OR_RETURN(os::ProgramResult result, run(command));
  if (result.exit_code == 0) return std::move(result.output);
  // The exit code 4 says that somebody else has the lock (iptables(8)).
  const auto code =
      result.exit_code == 4 ? absl::StatusCode::kUnavailable : absl::StatusCode::kInternal;
  return absl::Status(code, fmt::format("{} ended with {}: {}", command.front(), result.exit_code,
                                        FirstLine(result.errors)));
}

// Returns the names in the kernel's list; none where the kernel has no such tables.
absl::StatusOr<std::set<std::string>> NamesIn(const std::string& path) {
  const auto text = os::ReadFile(path);
  if (absl::IsNotFound(text.status())) return std::set<std::string>();
  if (!text.ok()) return text.status();
  std::set<std::string> names;
  for (size_t start = 0; start < text->size();) {
    const size_t end = std::min(text->find('\n', start), text->size());
    if (end > start) names.insert(text->substr(start, end - start));
    start = end + 1;
  }
  return names;
}

}  // namespace

std::optional<LegacyPrograms> FindLegacyPrograms(const std::string& root, const RunIptables& run) {
  LegacyPrograms found;
  if (const std::string iptables = FindProgram(root, "iptables"); !iptables.empty()) {
    const auto version = OutputOf(run, {iptables, "-V"});
    // Before 1.8 there was one back end, and the version did not name it.
    found.is_default = version.ok() && version->find("nf_tables") == std::string::npos;
  }
  const std::string ending = found.is_default ? "" : "-legacy";
  found.iptables = FindProgram(root, "iptables" + ending);
  found.save_v4 = FindProgram(root, "iptables" + ending + "-save");
  found.save_v6 = FindProgram(root, "ip6tables" + ending + "-save");
  if (found.iptables.empty() || found.save_v4.empty()) return std::nullopt;
  return found;
}

absl::StatusOr<std::vector<IptablesTable>> LegacyIptables::Read(
    ip::Family family, const std::vector<std::string>& names) {
  const bool v4 = family == ip::Family::kV4;
  ASSIGN_OR_RETURN(const std::set<std::string> present,
                   NamesIn(v4 ? settings_.names_v4 : settings_.names_v6));
  std::vector<IptablesTable> tables;
  for (const std::string& name : names) {
    // The program would make a table that is asked for and is not there.
    if (!present.contains(name)) continue;
    const std::string program = !settings_.programs ? ""
                                : v4                ? settings_.programs->save_v4
                                                    : settings_.programs->save_v6;
    if (program.empty()) {
      return absl::UnimplementedError(fmt::format(
          "there is a legacy table {}, and no iptables-legacy-save to read it with", name));
    }
    ASSIGN_OR_RETURN(const std::string text, OutputOf(settings_.run, {program, "-c", "-t", name}));
    auto read = ParseIptablesSave(text);
    if (!read.ok()) return base::Annotate(read.status(), program);
    for (IptablesTable& table : *read) tables.push_back(std::move(table));
  }
  return tables;
}

absl::StatusOr<size_t> LegacyIptables::Erase(const std::vector<PublishedRule>& rules) {
  ASSIGN_OR_RETURN(const std::vector<IptablesTable> tables,
                   Read(ip::Family::kV4, {std::string(kPublishedTable)}));
  const std::vector<PublishedRule> missing = MissingRules(rules, tables);
  size_t erased = 0;
  for (const PublishedRule& rule : rules) {
    if (std::find(missing.begin(), missing.end(), rule) != missing.end()) continue;
    std::vector<std::string> command = {settings_.programs->iptables, "-w", kLockSeconds, "-t",
                                        std::string(kPublishedTable), "-D", rule.chain};
    for (std::string& argument : rule.Arguments()) command.push_back(std::move(argument));
    RETURN_IF_ERROR(OutputOf(settings_.run, command).status());
    ++erased;
  }
  return erased;
}

absl::Status LegacyIptables::Append(const std::vector<PublishedRule>& rules) {
  if (!settings_.programs) return absl::UnimplementedError("iptables-legacy is not installed");
  for (const PublishedRule& rule : rules) {
    std::vector<std::string> command = {settings_.programs->iptables, "-w", kLockSeconds, "-t",
                                        std::string(kPublishedTable), "-A", rule.chain};
    for (std::string& argument : rule.Arguments()) command.push_back(std::move(argument));
    RETURN_IF_ERROR(OutputOf(settings_.run, command).status());
  }
  return absl::OkStatus();
}

}  // namespace spoke::netagent
