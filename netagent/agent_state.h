// What an agent knows of itself and its node, as a document for whoever helps an operator. Pure.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/node_api/maintenance.h"
#include "lib/node_api/node_data.h"
#include "lib/node_api/node_findings.h"
#include "lib/node_api/session.h"
#include "netagent/attach/assignments.h"

namespace spoke::netagent {

struct AgentState {
  const node_api::NodeIdentity& identity;
  std::string version;
  std::string not_serving;  // Why runtimes may not use it; empty: they may.
  const Assignments& assignments;
  std::vector<node_api::NodeFinding> findings = {};  // What the checks of the node find.
  std::optional<node_api::Maintenance> maintenance = std::nullopt;  // nullopt: not known.
};

// Returns a JSON object, indented. It names pods, and has no keys or tokens.
std::string StateText(const AgentState& state);

// The parts of what an agent can tell, each made when it is asked for.
using NodeDataParts = std::map<std::string, std::function<std::string()>>;

// Answers with the parts that are asked for, or all; or with an error that names those there are.
node_api::NodeDataAnswer AnswerNodeData(const node_api::NodeDataRequest& request,
                                        const NodeDataParts& parts);

}  // namespace spoke::netagent
