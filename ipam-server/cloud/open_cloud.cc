#include "ipam-server/cloud/open_cloud.h"

#include <sys/random.h>

#include <utility>

#include "ipam-server/cloud/azure/azure_cloud.h"
#include "ipam-server/cloud/counted_transport.h"
#include "ipam-server/cloud/static_cloud.h"
#include "lib/http/curl_transport.h"
#include "lib/os/file.h"

namespace spoke::ipam {

absl::StatusOr<std::unique_ptr<Cloud>> OpenCloud(CloudOptions options, const CloudEdges& edges,
                                                 CloudAnswer answer) {
  if (!options.azure) {
    return std::make_unique<StaticCloud>(std::move(options.attachments_file), std::move(answer));
  }
  azure::Settings& settings = *options.azure;
  azure::AzureCloud::World world{
      .transport = std::make_unique<CountedTransport>(
          std::make_unique<http::CurlTransport>(
              http::CurlOptions{.ca_file = settings.ca_file, .proxy = settings.proxy}),
          edges.metrics, edges.clock),
      .clock = edges.clock,
      .read_file = [](const std::string& path) { return os::ReadFile(path); },
      .log = edges.log,
      .write_margin = edges.write_margin};
  if (::getrandom(&world.seed, sizeof(world.seed), 0) != static_cast<ssize_t>(sizeof(world.seed))) {
    return absl::InternalError("the kernel gives no random numbers");
  }
  return std::make_unique<azure::AzureCloud>(std::move(settings), std::move(world),
                                             std::move(answer));
}

}  // namespace spoke::ipam
