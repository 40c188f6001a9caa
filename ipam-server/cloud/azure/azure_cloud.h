// Azure as the server's cloud: a thread that runs the machine over HTTP, with a token for each
// identity. Everything that is decided is in the machine; here are the clock, the wire and the
// waiting.
//
// A server that leads for a time only writes while that lasts: World::write_margin is asked before
// calls go, a write needs kWriteMargin of it (azure_state.h), and one that has not left in full
// within kWriteLeaves is given up. What a paused process or a slow network brings to Azure later
// all the same is refused by its ETag once the next leader has written, and waited for by it until
// then.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/cloud/azure/azure_state.h"
#include "ipam-server/cloud/azure/settings.h"
#include "ipam-server/cloud/azure/token_source.h"
#include "ipam-server/cloud/cloud.h"
#include "lib/http/transport.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"

namespace spoke::ipam::azure {

class AzureCloud final : public Cloud {
 public:
  // What it needs of the world. `transport` carries calls to ARM and for tokens alike.
  struct World {
    std::unique_ptr<http::Transport> transport;
    const os::Clock& clock;
    TokenSource::FileReader read_file;
    telemetry::Log& log;
    uint64_t seed = 0;  // The jitter's seed.
    // Returns how long nobody else can become the one server that writes, from now on.
    std::function<absl::Duration()> write_margin = [] { return absl::InfiniteDuration(); };
  };

  // `answer` is called on the cloud's own thread, as are those who asked for a listing. `settings`
  // has at least one identity, and scale sets that are such.
  AzureCloud(Settings settings, World world, CloudAnswer answer);
  AzureCloud(const AzureCloud&) = delete;
  AzureCloud& operator=(const AzureCloud&) = delete;
  ~AzureCloud() override;

  void Request(NicRequest desired) override;
  // Returns a forecast about a second old; what the thread has not looked at yet only waits.
  std::optional<CloudForecast> ForecastOf(const NodeKey& node) const override;
  CloudLoad Load() const override;
  void List(CloudListed listed) override;
  absl::Duration listing_period() const override { return settings_.listing; }
  // Instances of our Uniform scale sets; of Flexible ones, VMs that a listing has had.
  bool Covers(const std::string& instance) const override;
  bool ChoosesAddresses() const override { return true; }
  std::string Describe() const override;
  // Drops what is under way.
  void Stop() override;

  MachineCounts counts() const;

 private:
  struct Principal {
    TokenSource source;
    std::string logged;  // The last failure that was logged.
  };

  bool InOurSets(const std::string& instance) const;
  void Run();
  void TakeInbox(absl::Time now);
  void AskForTokens(absl::Time now);
  // The principal to send as, and its token: `wanted`, or another that has one.
  absl::StatusOr<std::string> TokenFor(size_t wanted, absl::Time now);
  bool HasToken(absl::Time now) const;
  void SendCalls(absl::Time now);
  void OnCompletion(http::Completion completion, absl::Time now);
  void OnToken(size_t principal, const absl::StatusOr<http::Response>& response, absl::Time now);
  void HandOver();
  void HandOverListings(std::vector<CloudListing> listings);
  // The forecasts, if something happened since the last time, and that is a second ago.
  void PublishForecasts(absl::Time now);
  absl::Time NextWake(absl::Time now) const;

  const Settings settings_;
  World world_;
  const CloudAnswer answer_;

  // The thread's own.
  std::vector<Principal> principals_;
  absl::flat_hash_map<uint64_t, std::string> token_of_;  // The tokens of calls under way.
  absl::Time without_token_since_;
  bool forecasts_stale_ = false;
  absl::Time published_at_ = absl::InfinitePast();

  // A lock that is held while the machine is at work, which may take as long as a page of a list
  // takes to be decoded: never to be taken by those who must not wait.
  mutable absl::Mutex machine_mutex_;
  AzureState machine_ ABSL_GUARDED_BY(machine_mutex_);

  mutable absl::Mutex mutex_;
  std::vector<NicRequest> inbox_ ABSL_GUARDED_BY(mutex_);
  std::map<NodeKey, CloudForecast> forecasts_ ABSL_GUARDED_BY(mutex_);  // Of requests that wait.
  size_t listings_asked_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<CloudListed> listings_ ABSL_GUARDED_BY(mutex_);  // Who waits, in order.
  std::set<std::string> listed_ ABSL_GUARDED_BY(mutex_);      // VMs of Flexible scale sets, ever.
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // It stands last, since it uses all of the above.
};

}  // namespace spoke::ipam::azure
