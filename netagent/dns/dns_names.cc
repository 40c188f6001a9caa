#include "netagent/dns/dns_names.h"

#include <algorithm>

#include "fmt/core.h"
#include "lib/node_checks/services/nameservers.h"
#include "lib/os/file.h"
#include "netagent/dns/dns_answer.h"

namespace spoke::netagent {
namespace {

constexpr absl::Duration kSecond = absl::Seconds(1);
constexpr size_t kMaxResolvConf = 64UL << 10;

}  // namespace

DnsNames::DnsNames(Settings settings, const Edges& edges)
    : settings_(std::move(settings)), edges_(edges) {}

DnsNames::~DnsNames() {
  StopReading();
  edges_.listener.Close();
}

void DnsNames::SetNames(const std::vector<std::pair<std::string, ClassNumber>>& names,
                        std::vector<ip::Prefix> services) {
  changed_ = names_.SetNames(names) || changed_;
  services_ = std::move(services);
  Listen(edges_.clock.Now());
}

std::vector<ip::Prefix> DnsNames::Resolvers() const {
  std::vector<ip::Prefix> out;
  const auto add = [&](const ip::Prefix& block) {
    if (std::find(out.begin(), out.end(), block) == out.end()) out.push_back(block);
  };
  for (const ip::Address& address : settings_.resolvers) add(ip::Prefix::Host(address));
  // A node without the file asks itself (resolv.conf(5)), and then says so by `resolvers`.
  const auto text = os::ReadFile(settings_.resolv_conf, kMaxResolvConf);
  if (text.ok()) {
    for (const ip::Address& address : node_checks::ParseNameservers(*text)) {
      add(ip::Prefix::Host(address));
    }
  }
  for (const ip::Prefix& block : services_) add(block);
  return out;
}

void DnsNames::Listen(absl::Time now) {
  if (!names_.has_names()) {
    StopReading();
    edges_.listener.Close();
    heard_.clear();
    pausing_ = false;
    next_look_ = absl::InfiniteFuture();
    NoteProblem(absl::OkStatus());
    return;
  }
  next_look_ = now + kLook;
  std::vector<ip::Prefix> wanted = Resolvers();
  absl::Status problem;
  if (wanted.size() > DnsListener::kMaxResolvers) {
    problem = absl::InvalidArgumentError(fmt::format(
        "{} resolvers to hear, but at most {} can be: those from {} on are not", wanted.size(),
        DnsListener::kMaxResolvers, wanted[DnsListener::kMaxResolvers].ToString()));
    wanted.resize(DnsListener::kMaxResolvers);
  }
  if (edges_.listener.fd() < 0 || wanted != heard_) {
    StopReading();  // Opening closes the descriptor.
    if (const absl::Status status = edges_.listener.Open(wanted); !status.ok()) {
      // The loop goes on to read what was heard before.
      if (edges_.listener.fd() >= 0 && !pausing_) BeginReading(now);
      next_look_ = now + kRetry;
      NoteProblem(status);
      return;
    }
    heard_ = std::move(wanted);
    if (!pausing_) BeginReading(now);
  }
  if (watched_ >= 0 || pausing_) NoteProblem(problem);
}

void DnsNames::BeginReading(absl::Time now) {
  const int fd = edges_.listener.fd();
  if (const absl::Status status = edges_.loop.AddReader(fd, [this] { OnReadable(); });
      !status.ok()) {
    Fail(now, status);
    return;
  }
  watched_ = fd;
}

void DnsNames::StopReading() {
  if (watched_ >= 0) edges_.loop.Remove(watched_);
  watched_ = -1;
}

void DnsNames::Fail(absl::Time now, const absl::Status& problem) {
  StopReading();
  edges_.listener.Close();
  heard_.clear();
  next_look_ = now + kRetry;
  NoteProblem(problem);
}

void DnsNames::NoteProblem(const absl::Status& problem) {
  if (!problem.ok() && problem != problem_) edges_.log.Warn("dns_not_heard", {{"error", problem}});
  problem_ = problem;
}

void DnsNames::OnReadable() {
  const absl::Time now = edges_.clock.Now();
  // A clock that was set back begins anew as well.
  if (now >= second_ + kSecond || now < second_) {
    second_ = now;
    used_ = 0;
  }
  const auto heard = edges_.listener.Take(std::min(kMaxAtOnce, kMaxASecond - used_));
  if (!heard.ok()) {
    Fail(now, heard.status());
    return;
  }
  used_ += heard->looked_at;
  skipped_ += heard->lost;
  for (const DnsMessage& message : heard->messages) {
    const auto answer = ParseDnsAnswer(message.bytes);
    if (!answer.ok()) {
      ++refused_;
      continue;
    }
    ++answers_;
    changed_ = names_.OnAnswer(*answer, now) || changed_;
  }
  if (used_ < kMaxASecond) return;
  pausing_ = true;
  StopReading();
}

void DnsNames::Tick() {
  const absl::Time now = edges_.clock.Now();
  changed_ = names_.Expire(now) || changed_;
  if (pausing_ && (now >= second_ + kSecond || now < second_)) {
    pausing_ = false;
    if (edges_.listener.fd() >= 0) BeginReading(now);
  }
  if (now >= next_look_) Listen(now);
  if (!changed_) return;
  changed_ = false;
  edges_.on_learned(names_.At(now));
}

absl::Time DnsNames::NextWake() const {
  if (changed_) return absl::InfinitePast();
  const absl::Time resume = pausing_ ? second_ + kSecond : absl::InfiniteFuture();
  return std::min({names_.NextExpiry(), next_look_, resume});
}

DnsNamesState DnsNames::state() const {
  return {.addresses = names_.size(),
          .shared = names_.shared(),
          .answers = answers_,
          .refused = refused_,
          .skipped = skipped_,
          .problem = problem_};
}

}  // namespace spoke::netagent
