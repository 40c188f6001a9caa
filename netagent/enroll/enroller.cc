#include "netagent/enroll/enroller.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/ascii.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "lib/tls/certificate.h"
#include "netagent/enroll/enrollment.h"

namespace spoke::netagent {
namespace {

constexpr size_t kMaxPemBytes = 1U << 20U;
constexpr size_t kMaxTokenBytes = 64U << 10U;
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

// Reads the certificate that is there, if it is this node's and its authority is the present one.
absl::StatusOr<tls::CertificateFacts> Enroller::ReadPresent() const {
  const rpc::TlsFiles& files = settings_.files;
  ASSIGN_OR_RETURN(const std::string certificate, os::ReadFile(files.certificate, kMaxPemBytes));
  ASSIGN_OR_RETURN(const std::string key, os::ReadFile(files.key, kMaxPemBytes));
  RETURN_IF_ERROR(CheckIssued(certificate, key));
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

absl::Status Enroller::CheckIssued(const std::string& certificate, const std::string& key) const {
  ASSIGN_OR_RETURN(const std::string authority, os::ReadFile(settings_.files.ca, kMaxPemBytes));
  RETURN_IF_ERROR(tls::CheckKeyFits(certificate, key));
  RETURN_IF_ERROR(base::Annotate(tls::CheckSignedBy(certificate, authority), settings_.files.ca));
  ASSIGN_OR_RETURN(const tls::CertificateFacts facts, tls::ReadCertificate(certificate));
  if (!Bears(facts, settings_.node_name)) {
    return absl::FailedPreconditionError(
        fmt::format("the certificate does not bear the node's name {}", settings_.node_name));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Enroller::KeepCertificate() {
  const auto present = ReadPresent();
  if (present.ok() &&
      edges_.clock.Now() < RenewAt(present->not_before, present->not_after, jitter_)) {
    return false;
  }
  ASSIGN_OR_RETURN(const std::string key, KeyOfNode());
  EnrollAsk ask{.csr = "", .node_name = settings_.node_name, .vm_id = settings_.vm_id, .token = ""};
  ASSIGN_OR_RETURN(ask.csr, tls::MakeSigningRequest(key, kRequestName));
  ASSIGN_OR_RETURN(std::string token, os::ReadFile(settings_.token_file, kMaxTokenBytes));
  absl::StripTrailingAsciiWhitespace(&token);
  ask.token = std::move(token);
  ASSIGN_OR_RETURN(const std::string certificate, edges_.ask(ask));
  // A certificate that would not work is not taken: the present one may do for some days.
  RETURN_IF_ERROR(base::Annotate(CheckIssued(certificate, key), "the server's answer"));
  RETURN_IF_ERROR(Write(settings_.files.certificate, certificate));
  ASSIGN_OR_RETURN(const tls::CertificateFacts facts, tls::ReadCertificate(certificate));
  edges_.log.Info("enrolled", {{"node", settings_.node_name},
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
