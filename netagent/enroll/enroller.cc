#include "netagent/enroll/enroller.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/ascii.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "lib/tls/renewal.h"
#include "netagent/enroll/enrollment.h"
#include "netagent/enroll/trusted_roots.h"

namespace spoke::netagent {
namespace {

constexpr size_t kMaxPemBytes = 1U << 20U;
constexpr size_t kMaxTokenBytes = 64U << 10U;
// A longer certificate, of a node with very many labels, has no room in a request.
constexpr size_t kMaxShownBytes = 9U << 10U;
// The name in the request, which only people look at: the server puts the name in.
constexpr const char* kRequestName = "spoke-netagent";

double RandomJitter() {
  std::random_device device;
  return std::uniform_real_distribution<double>(0.0, 1.0)(device);
}

// Writes a file. It need not survive a power cut: like the journal, it is on tmpfs.
absl::Status Write(const std::string& path, std::string_view content) {
  return os::WriteFileAtomic(path, content, os::Durability::kVisible, 0600);
}

bool Bears(const tls::CertificateFacts& facts, const std::string& node_name) {
  return facts.dns_names.size() == 1 && facts.dns_names.front() == node_name;
}

}  // namespace

Enroller::Enroller(Settings settings, Edges edges)
    : settings_(std::move(settings)), edges_(std::move(edges)), jitter_(RandomJitter()) {}

Enroller::~Enroller() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  if (edges_.cancel) edges_.cancel();
  if (thread_.joinable()) thread_.join();
}

void Enroller::Start() {
  thread_ = std::thread([this] { Run(); });
}

absl::Status Enroller::standing() const {
  absl::MutexLock lock(&mutex_);
  return standing_;
}

std::string Enroller::handed_file() const {
  return os::DirectoryOf(settings_.files.ca) + "/handed.pem";
}

// Writes the roots that are trusted now, where they have changed.
absl::Status Enroller::KeepRoots() const {
  RETURN_IF_ERROR(os::MakeDirectory(os::DirectoryOf(settings_.files.ca)));
  ASSIGN_OR_RETURN(const std::string configured, os::ReadFile(settings_.ca_file, kMaxPemBytes));
  const auto handed = os::ReadFile(handed_file(), kMaxPemBytes);
  const std::string roots = TrustedRoots(configured, handed.value_or(""));
  // TLS would trust the authorities of the whole world in place of none.
  if (roots.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("{} has no certificate in PEM", settings_.ca_file));
  }
  if (os::ReadFile(settings_.files.ca, kMaxPemBytes).value_or("") == roots) return absl::OkStatus();
  return Write(settings_.files.ca, roots);
}

// Reads the certificate that is there, if it is this node's and its authority is the present one.
absl::StatusOr<tls::CertificateFacts> Enroller::ReadPresent() const {
  const rpc::TlsFiles& files = settings_.files;
  ASSIGN_OR_RETURN(const std::string certificate, os::ReadFile(files.certificate, kMaxPemBytes));
  ASSIGN_OR_RETURN(const std::string key, os::ReadFile(files.key, kMaxPemBytes));
  ASSIGN_OR_RETURN(const std::string roots, os::ReadFile(files.ca, kMaxPemBytes));
  RETURN_IF_ERROR(CheckIssued(certificate, key, roots));
  return tls::ReadCertificate(certificate);
}

// A certificate that is past its renewal, but not its end, can connect.
bool Enroller::CanConnect() const {
  const auto present = ReadPresent();
  return present.ok() && edges_.clock.Now() < present->not_after;
}

// Returns the node's key, and makes it where there is none that is good for anything.
absl::StatusOr<std::string> Enroller::KeyOfNode() const {
  const std::string& path = settings_.files.key;
  RETURN_IF_ERROR(os::MakeDirectory(os::DirectoryOf(path)));
  auto present = os::ReadFile(path, kMaxPemBytes);
  if (present.ok() && tls::PublicKeyOf(*present).ok()) return present;
  ASSIGN_OR_RETURN(std::string key, tls::MakeKey());
  RETURN_IF_ERROR(Write(path, key));
  return key;
}

absl::Status Enroller::CheckIssued(const std::string& certificate, const std::string& key,
                                   const std::string& roots) const {
  RETURN_IF_ERROR(tls::CheckKeyFits(certificate, key));
  RETURN_IF_ERROR(base::Annotate(tls::CheckSignedBy(certificate, roots), settings_.files.ca));
  ASSIGN_OR_RETURN(const tls::CertificateFacts facts, tls::ReadCertificate(certificate));
  if (!Bears(facts, settings_.node_name)) {
    return absl::FailedPreconditionError(
        fmt::format("the certificate does not bear the node's name {}", settings_.node_name));
  }
  return absl::OkStatus();
}

// What is asked for, with all that can vouch for this node: the token, the certificate, or both.
absl::StatusOr<EnrollAsk> Enroller::AskFor(const std::string& key) const {
  EnrollAsk ask{.csr = "", .node_name = settings_.node_name, .vm_id = settings_.vm_id, .token = ""};
  ASSIGN_OR_RETURN(ask.csr, tls::MakeSigningRequest(key, kRequestName));
  const auto present = os::ReadFile(settings_.files.certificate, kMaxPemBytes);
  if (present.ok() && present->size() <= kMaxShownBytes && tls::CheckKeyFits(*present, key).ok()) {
    ASSIGN_OR_RETURN(ask.proof, tls::ProveRenewal(key, ask.node_name, ask.csr));
    ask.certificate = *present;
  }
  auto token = os::ReadFile(settings_.token_file, kMaxTokenBytes);
  if (!token.ok() && ask.certificate.empty()) return token.status();
  ask.token = token.value_or("");
  absl::StripTrailingAsciiWhitespace(&ask.token);
  return ask;
}

// Puts the answer in force, unless it would not work: the present certificate may do for some
// hours.
absl::Status Enroller::Take(const EnrollAnswer& answer, const std::string& key) const {
  ASSIGN_OR_RETURN(const std::string configured, os::ReadFile(settings_.ca_file, kMaxPemBytes));
  ASSIGN_OR_RETURN(std::string roots, os::ReadFile(settings_.files.ca, kMaxPemBytes));
  const std::string handed = HandedText(configured, roots, answer.roots);
  if (!handed.empty()) roots = TrustedRoots(configured, handed);
  RETURN_IF_ERROR(
      base::Annotate(CheckIssued(answer.certificate, key, roots), "the server's answer"));
  if (!handed.empty()) {
    RETURN_IF_ERROR(Write(handed_file(), handed));
    RETURN_IF_ERROR(KeepRoots());
  }
  return Write(settings_.files.certificate, answer.certificate);
}

absl::StatusOr<bool> Enroller::KeepCertificate() {
  RETURN_IF_ERROR(KeepRoots());
  const auto present = ReadPresent();
  if (present.ok() &&
      edges_.clock.Now() < RenewAt(present->not_before, present->not_after, jitter_)) {
    return false;
  }
  ASSIGN_OR_RETURN(const std::string key, KeyOfNode());
  ASSIGN_OR_RETURN(const EnrollAsk ask, AskFor(key));
  ASSIGN_OR_RETURN(const EnrollAnswer answer, edges_.ask(ask));
  RETURN_IF_ERROR(Take(answer, key));
  ASSIGN_OR_RETURN(const tls::CertificateFacts facts, tls::ReadCertificate(answer.certificate));
  edges_.log.Info("enrolled", {{"node", settings_.node_name},
                               {"serial", facts.serial},
                               {"not_after", absl::FormatTime(facts.not_after)}});
  return true;
}

bool Enroller::Wait(absl::Duration pause) {
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&stopped_), pause);
  return !stopped_;
}

void Enroller::Tell(const absl::Status& status) {
  absl::Status before;
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_) return;  // The attempt was cancelled.
    before = std::exchange(standing_, status);
  }
  // A failure is logged once for each kind of reason: an attempt follows the other.
  if (status.ok() || status.code() == before.code()) return;
  edges_.log.Warn("enroll_failed", {{"node", settings_.node_name},
                                    {"error", status},
                                    {"connected_before", ready_ ? "yes" : "no"},
                                    {"remedy", EnrollRemedy(status)}});
}

void Enroller::Run() {
  std::mt19937_64 random(std::random_device{}());
  std::uniform_real_distribution<double> jitter(0.0, 1.0);
  int failures = 0;
  absl::Duration pause;
  do {
    absl::Status status = KeepCertificate().status();
    if (!ready_ && CanConnect()) {
      const absl::Status begun = edges_.on_ready();
      ready_ = begun.ok();
      if (status.ok()) status = begun;
    }
    Tell(status);
    failures = status.ok() ? 0 : std::min(failures + 1, 30);
    pause = status.ok() ? settings_.look : settings_.backoff.Delay(failures - 1, jitter(random));
  } while (Wait(pause));
}

}  // namespace spoke::netagent
