#include "ipam-server/enroll/enrollment.h"

#include <grpcpp/server_builder.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/enroll/published_objects.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "lib/tls/certificate.h"

namespace spoke::ipam {
namespace {

// A token and a request for a key are far below.
constexpr int kMaxMessageBytes = 16 << 10;
// An authority that ends takes the whole cluster with it, and replacing it takes planning.
constexpr absl::Duration kWarnOfEnd = absl::Hours(24 * 180);

EnrollmentSettings WithNamespace(EnrollmentSettings settings) {
  if (settings.rules.k8s_namespace.empty()) {
    settings.rules.k8s_namespace = settings.access.k8s_namespace;
  }
  return settings;
}

}  // namespace

Enrollment::Enrollment(EnrollmentSettings settings, std::unique_ptr<ClusterAuthority> authority,
                       const Edges& edges)
    : settings_(WithNamespace(std::move(settings))),
      authority_(std::move(authority)),
      clock_(edges.clock),
      log_(edges.log),
      api_(settings_.access),
      kubernetes_(api_),
      reviewer_(kubernetes_, uptime_),
      service_({.rules = settings_.rules,
                .certificate_life = settings_.certificate_life,
                .operators = settings_.operators},
               *authority_,
               {.reviewer = reviewer_,
                .revocations = edges.revocations,
                .clock = edges.clock,
                .log = edges.log,
                .margin = edges.margin}),
      is_stored_(edges.place.has_value()) {}

absl::StatusOr<std::unique_ptr<Enrollment>> Enrollment::Open(EnrollmentSettings settings,
                                                             Edges edges) {
  const os::Clock& clock = edges.clock;
  telemetry::Log& log = edges.log;
  if (settings.rules.k8s_namespace.empty() && settings.access.k8s_namespace.empty()) {
    return absl::FailedPreconditionError(
        "enroll: which namespace agents are in is not known; set enroll.namespace");
  }
  const bool stored = edges.place.has_value();
  auto authority = stored
                       ? ClusterAuthority::OpenStored(*std::move(edges.place),
                                                      settings.certificate_life, clock.Now(), log)
                       : ClusterAuthority::OpenDirectory(settings.directory, clock.Now());
  if (!authority.ok()) return base::Annotate(authority.status(), "the authority");
  ASSIGN_OR_RETURN(const tls::CertificateFacts facts,
                   tls::ReadCertificate((*authority)->signing().certificate));
  log.Info("authority_opened", {{"in", stored ? "the store" : settings.directory},
                                {"name", facts.common_name},
                                {"roots", (*authority)->roots().size()},
                                {"not_after", absl::FormatTime(facts.not_after)}});
  if (facts.not_after < clock.Now() + kWarnOfEnd) {
    log.Warn("authority_ends_soon",
             {{"directory", settings.directory}, {"not_after", absl::FormatTime(facts.not_after)}});
  }
  std::unique_ptr<Enrollment> enrollment(
      new Enrollment(std::move(settings), *std::move(authority), edges));
  RETURN_IF_ERROR(enrollment->KeepCertificates());
  return enrollment;
}

Enrollment::~Enrollment() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  if (server_ != nullptr) {
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status Enrollment::Serve() {
  ASSIGN_OR_RETURN(const auto credentials,
                   rpc::RenewedServerCredentials(settings_.files, rpc::ClientCertificate::kNone,
                                                 settings_.reload));
  grpc::ServerBuilder builder;
  builder.RegisterService(&service_);
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  auto server = rpc::BoundedServer::Start(builder,
                                          {.name = "enroll",
                                           .address = settings_.address,
                                           .credentials = credentials,
                                           .limits = rpc::kEnrollLimits},
                                          log_);
  if (!server.ok()) return base::Annotate(server.status(), "enrollment (enroll.address)");
  server_ = *std::move(server);
  thread_ = std::thread([this] { LookAfter(); });
  log_.Info("enroll_serving",
            {{"address", settings_.address},
             {"agents", fmt::format("system:serviceaccount:{}:{}", settings_.rules.k8s_namespace,
                                    settings_.rules.service_account)}});
  return absl::OkStatus();
}

absl::Status Enrollment::KeepCertificates() {
  const tls::Authority signing = authority_->signing();
  std::vector<OwnCertificate> all = {ServerCertificate(settings_.server_names)};
  if (settings_.serves_operators) all.push_back(OperatorCertificate());
  for (const OwnCertificate& own : all) {
    const auto issued = KeepCertificate(settings_.directory, own, signing, clock_.Now());
    if (!issued.ok()) {
      return base::Annotate(issued.status(), fmt::format("our own certificate {}/{}.pem",
                                                         settings_.directory, own.name));
    }
    if (*issued) log_.Info("certificate_issued", {{"name", own.name}});
  }
  return absl::OkStatus();
}

absl::Status Enrollment::PublishAll() {
  PublishedFiles files{.authority = authority_->trusted(),
                       .operator_certificate = "",
                       .operator_key = "",
                       .metrics_token = ""};
  if (settings_.serves_operators) {
    ASSIGN_OR_RETURN(files.operator_certificate,
                     os::ReadFile(settings_.directory + "/operator.pem"));
    ASSIGN_OR_RETURN(files.operator_key, os::ReadFile(settings_.directory + "/operator.key"));
  }
  std::string published;
  if (is_stored_) {
    ASSIGN_OR_RETURN(published, PublishedMetricsToken(api_, settings_.rules.k8s_namespace));
  }
  ASSIGN_OR_RETURN(files.metrics_token, KeepMetricsToken(settings_.directory, published));
  ASSIGN_OR_RETURN(const bool written, Publish(api_, settings_.rules.k8s_namespace, files));
  if (written) {
    log_.Info("authority_published",
              {{"namespace", settings_.rules.k8s_namespace},
               {"config_map", kAuthorityConfigMap},
               {"secrets", settings_.serves_operators
                               ? fmt::format("{},{}", kOperatorSecret, kMetricsSecret)
                               : kMetricsSecret}});
  }
  if (settings_.serves_operators || told_unused_) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool unused, HasOperatorSecret(api_, settings_.rules.k8s_namespace));
  if (unused) {
    log_.Warn("operator_secret_unused",
              {{"namespace", settings_.rules.k8s_namespace}, {"secret", kOperatorSecret}});
  }
  told_unused_ = true;
  return absl::OkStatus();
}

// Does what is due of a rotation. Certificates of our own come after it: the root that signs is
// another one by then.
absl::Status Enrollment::TurnRoots() {
  ASSIGN_OR_RETURN(const bool changed, authority_->Step(clock_.Now()));
  if (!changed) return absl::OkStatus();
  for (const Root& root : authority_->roots()) {
    const auto facts = tls::ReadCertificate(root.certificate);
    log_.Info("authority_rotated", {{"root", facts.ok() ? facts->common_name : ""},
                                    {"state", std::string(NameOf(root.state))}});
  }
  return absl::OkStatus();
}

void Enrollment::LookAfter() {
  // What was said last, so that it is said once.
  absl::Status turned;
  absl::Status kept;
  absl::Status published;
  while (true) {
    const absl::Status turning = TurnRoots();
    if (!turning.ok() && turning.code() != turned.code()) {
      log_.Warn("authority_not_rotated", {{"error", turning}});
    }
    turned = turning;
    const absl::Status keeping = KeepCertificates();
    if (!keeping.ok() && keeping.code() != kept.code()) {
      log_.Error("certificate_not_renewed", {{"error", keeping}});
    }
    kept = keeping;
    const absl::Status publishing = PublishAll();
    if (!publishing.ok() && publishing.code() != published.code()) {
      log_.Warn("authority_not_published",
                {{"namespace", settings_.rules.k8s_namespace}, {"error", publishing}});
    }
    published = publishing;
    // An API server that is not there yet, at the start of a cluster, is soon.
    const absl::Duration pause =
        publishing.ok() ? settings_.look : std::min(settings_.look, absl::Seconds(5));
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&stopped_), pause)) return;
  }
}

}  // namespace spoke::ipam
