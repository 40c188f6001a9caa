#include "admin-cli/context/target.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/base/time_text.h"
#include "lib/os/file.h"
#include "lib/tls/certificate.h"

namespace spoke::ctl {
namespace {

constexpr size_t kMaxPemBytes = size_t{1} << 20;

absl::StatusOr<Context> ChosenContext(const ContextFile& file, std::string name) {
  if (name.empty()) name = file.current;
  if (name.empty()) return Context();
  if (const auto found = file.contexts.find(name); found != file.contexts.end()) {
    return found->second;
  }
  return NoSuchContext(file, name);
}

std::string Beside(const std::string& path, const std::string& file) {
  return file.empty() || file.front() == '/' ? file : os::DirectoryOf(path) + "/" + file;
}

std::string Rfc3339(absl::Time time) { return base::ClockText(time); }

}  // namespace

absl::Status NoSuchContext(const ContextFile& file, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [one, context] : file.contexts) names.push_back(one);
  if (names.empty()) {
    return absl::NotFoundError(
        fmt::format("there is no context \"{}\", nor any other; make one: spokectl login, or "
                    "spokectl context set",
                    name));
  }
  const std::string nearest = Nearest(name, names);
  return absl::NotFoundError(
      fmt::format("there is no context \"{}\"; there are {}{}", name, absl::StrJoin(names, ", "),
                  nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest)));
}

absl::Status CheckCertificate(const rpc::TlsFiles& files, absl::Time now) {
  ASSIGN_OR_RETURN(const std::string ca, os::ReadFile(files.ca, kMaxPemBytes));
  ASSIGN_OR_RETURN(const std::string certificate, os::ReadFile(files.certificate, kMaxPemBytes));
  ASSIGN_OR_RETURN(const std::string key, os::ReadFile(files.key, kMaxPemBytes));
  const auto refuse = [&](const std::string& why) {
    return absl::FailedPreconditionError(fmt::format("{}: {}", files.certificate, why));
  };
  const auto facts = tls::ReadCertificate(certificate);
  if (!facts.ok()) return refuse(std::string(base::MessageOf(facts.status())));
  if (const absl::Status fits = tls::CheckKeyFits(certificate, key); !fits.ok()) {
    return refuse(fmt::format("it does not go with {}: {}; get both anew (spokectl login)",
                              files.key, base::MessageOf(fits)));
  }
  if (const absl::Status is_of = tls::CheckSignedBy(certificate, ca); !is_of.ok()) {
    return refuse(fmt::format("{} than {}: it is for another Spoke; use the context of this one",
                              base::MessageOf(is_of), files.ca));
  }
  if (facts->not_after <= now) {
    return refuse(fmt::format("the certificate of {} ended on {}; get a new one: spokectl login",
                              facts->common_name, Rfc3339(facts->not_after)));
  }
  if (facts->not_before > now) {
    return refuse(
        fmt::format("the certificate of {} begins on {}, and it is {} here; is this "
                    "machine's clock right?",
                    facts->common_name, Rfc3339(facts->not_before), Rfc3339(now)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Target> TargetOf(const Arguments& arguments,
                                const std::function<std::string(const std::string&)>& variable,
                                absl::Time now) {
  Target target;
  if (const std::string& server = arguments.Text("server"); !server.empty()) {
    target.servers = {server};
    // Such a one is asked without a certificate, and so without a context.
    if (server.starts_with("unix:")) return target;
    RETURN_IF_ERROR(base::Annotate(CheckServer(server), "--server"));
  }
  const std::string path = ContextPath(variable);
  ASSIGN_OR_RETURN(const ContextFile file, ReadContexts(path));
  ASSIGN_OR_RETURN(const Context context, ChosenContext(file, arguments.Text("context")));
  if (target.servers.empty()) target.servers = context.servers;
  if (target.servers.empty()) target.servers = {kDefaultServer};
  target.server_name = context.server_name;
  const bool over_tls =
      std::any_of(target.servers.begin(), target.servers.end(),
                  [](const std::string& server) { return !server.starts_with("unix:"); });
  if (!over_tls) return target;
  target.tls = {.ca = Beside(path, context.ca),
                .certificate = Beside(path, context.certificate),
                .key = Beside(path, context.key)};
  if (!target.tls.Validate().ok()) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is asked with a certificate, and there is no context that has one: spokectl login gets "
        "it, and spokectl context set names one that you have",
        target.servers.front()));
  }
  RETURN_IF_ERROR(CheckCertificate(target.tls, now));
  return target;
}

}  // namespace spoke::ctl
