#include "lib/node_checks/services/service_prober.h"

#include <sys/eventfd.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "lib/node_checks/services/nameservers.h"
#include "lib/os/file.h"

namespace spoke::node_checks {
namespace {

constexpr const char* kResolvConf = "/etc/resolv.conf";
constexpr size_t kMaxResolvConfBytes = size_t{64} << 10U;

}  // namespace

std::string ResolvConfPath(const std::string& root, const std::string& own) {
  if (root == "/") return own;
  std::string path = root + kResolvConf;
  std::error_code error;
  // It is often a link, and one from the node's root leads elsewhere for a process with another.
  const auto target = std::filesystem::read_symlink(path, error);
  if (!error && target.is_absolute()) path = root + target.string();
  return std::filesystem::exists(path, error) ? path : own;
}

std::optional<KeptClock> ReadKeptClock() {
  timex state{};  // No mode is set: it is only read.
  if (::adjtimex(&state) < 0) return std::nullopt;
  return KeptClock{.synchronized = (state.status & STA_UNSYNC) == 0,
                   .max_error = absl::Microseconds(state.maxerror)};
}

ServiceProber::ServiceProber(std::string root, NodeSettings settings, Patience patience)
    : root_(std::move(root)),
      settings_(std::move(settings)),
      patience_(patience),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void ServiceProber::Interrupt() {
  const uint64_t one = 1;
  // It fails when it is readable already, or where there was no descriptor left for it: then a look
  // that is under way ends by itself.
  [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof(one));
}

std::vector<ip::Address> ServiceProber::Nameservers() const {
  const auto text = os::ReadFile(ResolvConfPath(root_, kResolvConf), kMaxResolvConfBytes);
  return text.ok() ? ParseNameservers(*text) : std::vector<ip::Address>();
}

std::vector<ServiceAnswer> ServiceProber::Ask(
    const std::vector<ResolverQuestion>& questions) const {
  const std::vector<absl::Status> results = AskResolvers(questions, patience_.dns, stop_.get());
  std::vector<ServiceAnswer> answers;
  for (size_t i = 0; i < questions.size(); ++i) {
    answers.push_back({.service = questions[i].resolver.ToString(),
                       .question = questions[i].name,
                       .status = results[i]});
  }
  return answers;
}

ServiceAnswers ServiceProber::Probe() {
  std::vector<ResolverQuestion> questions =
      NodeQuestions(settings_.services, Nameservers(), settings_.servers);
  const size_t of_node = questions.size();
  for (ResolverQuestion& question : ClusterQuestions(settings_.services)) {
    questions.push_back(std::move(question));
  }
  // They are asked all at once: what is silent makes the look no longer than one that is.
  std::vector<ServiceAnswer> answers = Ask(questions);
  const auto middle = answers.begin() + static_cast<ptrdiff_t>(of_node);
  ServiceAnswers now;
  now.node_resolvers.assign(answers.begin(), middle);
  now.cluster_resolvers.assign(middle, answers.end());
  if (const auto service = ParseMetadataUrl(settings_.metadata_url)) {
    now.metadata = {.service = settings_.metadata_url,
                    .question = std::string(kMetadataPath),
                    .status = AskMetadata(*service, patience_.metadata, stop_.get())};
  }
  now.clock = ReadKeptClock();
  CountFailures(before_, now);
  before_ = now;
  return now;
}

}  // namespace spoke::node_checks
