// What goes first when a cloud takes only so many calls. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace spoke::ipam {

enum class CloudLane : uint8_t {
  kBlocking,  // Pods wait for it.
  kWarmUp,    // It is done so that none will have to wait.
  kRelease,
};

inline constexpr std::array<CloudLane, 3> kCloudLanes = {CloudLane::kBlocking, CloudLane::kWarmUp,
                                                         CloudLane::kRelease};

constexpr std::string_view NameOf(CloudLane lane) {
  switch (lane) {
    case CloudLane::kBlocking:
      return "blocking";
    case CloudLane::kWarmUp:
      return "warm-up";
    case CloudLane::kRelease:
      return "release";
  }
  return "";
}

}  // namespace spoke::ipam
