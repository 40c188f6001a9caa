#include "lib/config/health_field.h"

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/ip/address.h"
#include "lib/ip/socket_address.h"
#include "lib/os/file.h"
#include "lib/rpc/health_text.h"

namespace spoke::config {

void ReadHealth(const ConfigMap& root,
                const std::function<absl::Status(const std::string&)>& check_directory,
                std::string* address) {
  root.Custom("health", Need::kOptional, [&](std::string_view text) -> absl::Status {
    if (text == "off") {
      address->clear();
      return absl::OkStatus();
    }
    if (const absl::Status status = rpc::CheckHealthAddress(text); !status.ok()) {
      return absl::InvalidArgumentError(fmt::format("{}; or off", base::MessageOf(status)));
    }
    const std::string path(rpc::SocketPathOf(text));
    if (!path.empty()) {
      const absl::Status status = check_directory(os::DirectoryOf(path));
      if (!status.ok()) {
        return absl::InvalidArgumentError(
            fmt::format("{}; create it first", base::MessageOf(status)));
      }
    }
    *address = std::string(text);
    return absl::OkStatus();
  });
}

void ReadHealthHttp(const ConfigMap& root, std::string* address) {
  root.Custom("health_http", Need::kOptional, [&](std::string_view text) -> absl::Status {
    if (text == "off") {
      address->clear();
      return absl::OkStatus();
    }
    std::string_view host = text.substr(0, text.rfind(':'));
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    const auto address_of_host = ip::Address::Parse(host);
    if (!rpc::CheckHealthAddress(text).ok() || !address_of_host.ok() ||
        !ip::IsLoopback(*address_of_host)) {
      return absl::InvalidArgumentError(fmt::format(
          "must be a loopback address with a port, as 127.0.0.1:9469, or off, not '{}'", text));
    }
    *address = std::string(text);
    return absl::OkStatus();
  });
}

}  // namespace spoke::config
