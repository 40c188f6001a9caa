// The JSON that the dashboard's page shows, from what the server answers. Pure.
//
// Times are milliseconds since 1970, 0 for never, since the page tells them as times ago. Rates are
// bits a second. Names are as the server has them, whatever they hold: the page never takes them
// for HTML.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "admin-cli/output/list_form.h"
#include "proto/spoke/v1/admin.pb.h"

namespace spoke::ctl {

Json FleetJson(const v1::GetStatusResponse& status, const v1::RecoveryInfo& recovery);
Json PoolsJson(const v1::ListPoolsResponse& pools);
Json RolloutJson(const v1::GetRolloutResponse& rollout);
Json BudgetsJson(const v1::GetBudgetsResponse& budgets);
// Takes events oldest first, and gives the newest first.
Json EventsJson(const std::vector<v1::EventInfo>& events);
Json TrafficJson(const v1::GetTrafficCourseResponse& course);
Json StoryJson(const v1::ExplainRequest& request, const v1::ExplainResponse& response);

// Nodes as columns, since there may be 7,500: names, a letter for the fitness of each (see
// FitnessOf()), free addresses, and bits a second with the Internet. Then what is made of them: the
// nodes where pods wait or addresses are missing, and what waits for the cloud, by gate. `lossy`:
// the nodes whose network loses packets; their letter is 'l' unless it is 'd', 'a' or 'b'.
Json NodesJson(const std::vector<v1::NodeInfo>& nodes, const std::map<std::string, double>& rates,
               const std::set<std::string>& lossy);

// Returns the first of these that holds: 'd' (its machine is retired), 'a' (its agent is away), 'b'
// (a check finds what keeps pods from working), 's' (it has fewer addresses than it should), 'd'
// (it is draining or frozen), 'w' (a check warns), 'o' (it is well).
char FitnessOf(const v1::NodeInfo& node);

// Returns what is to be explained: an address, NAMESPACE/NAME of a pod, or else a node. Errors:
// kInvalidArgument (empty, longer than any name, or a pod without its namespace or name).
absl::StatusOr<v1::ExplainRequest> SubjectOf(std::string_view text);

// Returns the code of HTTP that tells the page of an error.
int HttpStatusOf(const absl::Status& status);

// Returns {"error": a stable word, "message": a sentence}.
Json ErrorJson(const absl::Status& status);

// Returns JSON of one line. Bytes that are no UTF-8 become U+FFFD.
std::string Line(const Json& value);

}  // namespace spoke::ctl
