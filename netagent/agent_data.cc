// What an agent tells of its own past and state.
#include "lib/base/version.h"
#include "netagent/agent.h"
#include "netagent/agent_state.h"
#include "netagent/node/findings_report.h"

namespace spoke::netagent {

void Agent::Take(const node_api::NodeDataRequest& request) {
  NodeDataParts parts = {{"state", [this] {
                            return StateText({.identity = identity_,
                                              .version = std::string(base::kVersion),
                                              .not_serving = CniReason(),
                                              .assignments = attachments_.assignments(),
                                              .findings = findings_.latest(),
                                              .maintenance = maintenance_.told()});
                          }}};
  if (read_log_) parts.emplace("log", read_log_);
  session_.Answer(AnswerNodeData(request, parts));
}

}  // namespace spoke::netagent
