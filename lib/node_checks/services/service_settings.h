// Reads the section `node_checks` of the agent's configuration, for the agent and for programs that
// check its node.
#pragma once

#include "lib/config/config_text.h"
#include "lib/node_checks/services/service_answers.h"

namespace spoke::node_checks {

// Puts what the section says into `settings`; what it does not say stays. A value with an
// environment variable ("${NAME}") whose content the caller's parser did not know is passed over.
// Mistakes are noted in the document: no address, more than kMaxAskedResolvers, no host name. Pure.
void ReadServiceSettings(const config::ConfigMap& root, ServiceSettings* settings);

}  // namespace spoke::node_checks
