#include "ipam-server/nodes/standing.h"

namespace spoke::ipam {

std::string_view NameOf(WriteResult result) {
  switch (result) {
    case WriteResult::kOk:
      return "ok";
    case WriteResult::kConflict:
      return "conflict";
    case WriteResult::kThrottled:
      return "throttled";
    case WriteResult::kDenied:
      return "denied";
    case WriteResult::kFailed:
      return "failed";
  }
  return "failed";
}

}  // namespace spoke::ipam
