#include "ipam-server/loop/cloud_edge.h"

#include <sys/random.h>

#include <map>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "ipam-server/cloud/azure/azure_cloud.h"
#include "ipam-server/cloud/counted_cloud.h"
#include "ipam-server/cloud/counted_transport.h"
#include "ipam-server/cloud/static_cloud.h"
#include "ipam-server/loop/attach_job.h"
#include "lib/base/status.h"
#include "lib/http/curl_transport.h"
#include "lib/os/file.h"

namespace spoke::ipam {
namespace {

constexpr absl::Duration kStaticListing = absl::Seconds(60);

class StaticEdge final : public CloudEdge, public CloudRequests {
 public:
  StaticEdge(std::string attachments_file, const Edges& edges, Answer answer)
      : cloud_(std::move(attachments_file)),
        counted_(cloud_, edges.metrics, edges.clock),
        job_(std::make_unique<AttachJob>(counted_, std::move(answer))) {}

  Cloud& cloud() override { return counted_; }
  CloudRequests& requests() override { return *this; }
  absl::Status Begin(const std::vector<NicAddresses>& nics) override { return cloud_.Begin(nics); }
  void Request(NicRequest desired) override { job_->Request(std::move(desired)); }
  absl::Duration listing_period() const override { return kStaticListing; }
  void Stop() override { job_.reset(); }

 private:
  StaticCloud cloud_;
  CountedCloud counted_;
  std::unique_ptr<AttachJob> job_;
};

class AzureEdge final : public CloudEdge, public CloudRequests {
 public:
  AzureEdge(const azure::Settings& settings, uint64_t seed, const Edges& edges, Answer answer)
      : listing_(settings.listing),
        edges_(edges),
        answer_(std::move(answer)),
        cloud_(settings,
               {.transport = std::make_unique<CountedTransport>(
                    std::make_unique<http::CurlTransport>(
                        http::CurlOptions{.ca_file = settings.ca_file, .proxy = settings.proxy}),
                    edges.metrics, edges.clock),
                .clock = edges.clock,
                .read_file = [](const std::string& path) { return os::ReadFile(path); },
                .log = edges.log,
                .seed = seed},
               [this](const NodeKey& node, absl::StatusOr<NicAddresses> result) {
                 OnAnswer(node, std::move(result));
               }),
        counted_(cloud_, edges.metrics, edges.clock) {}

  Cloud& cloud() override { return counted_; }
  CloudRequests& requests() override { return *this; }
  absl::Duration listing_period() const override { return listing_; }
  void Stop() override { cloud_.Stop(); }

  void Request(NicRequest desired) override {
    {
      absl::MutexLock lock(&mutex_);
      asked_.try_emplace(desired.node, edges_.clock.Now());
    }
    cloud_.Request(std::move(desired));
  }
  std::optional<CloudForecast> ForecastOf(const NodeKey& node) const override {
    return cloud_.ForecastOf(node);
  }

 private:
  void OnAnswer(const NodeKey& node, absl::StatusOr<NicAddresses> result) {
    const absl::Time now = edges_.clock.Now();
    absl::Time asked = now;
    {
      absl::MutexLock lock(&mutex_);
      if (const auto it = asked_.find(node); it != asked_.end()) {
        asked = it->second;
        asked_.erase(it);
      }
    }
    edges_.metrics.CountCloudCall(CloudCall::kApply, result.status(), now - asked);
    answer_(node, std::move(result));
  }

  const absl::Duration listing_;
  const Edges edges_;
  const Answer answer_;
  absl::Mutex mutex_;
  std::map<NodeKey, absl::Time> asked_ ABSL_GUARDED_BY(mutex_);
  azure::AzureCloud cloud_;  // Its thread uses all of the above.
  CountedCloud counted_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CloudEdge>> CloudEdge::Open(Options options, const Edges& edges,
                                                           Answer answer) {
  if (options.azure) {
    uint64_t seed = 0;
    if (::getrandom(&seed, sizeof(seed), 0) != static_cast<ssize_t>(sizeof(seed))) {
      return absl::InternalError("the kernel gives no random numbers");
    }
    return std::make_unique<AzureEdge>(*options.azure, seed, edges, std::move(answer));
  }
  return std::make_unique<StaticEdge>(std::move(options.attachments_file), edges,
                                      std::move(answer));
}

}  // namespace spoke::ipam
