// One exchange with the agent: a request packet, with the pod's namespace as a descriptor, and an
// answer packet, under a deadline.
#pragma once

#include "cni-plugin/cni_error.h"
#include "cni-plugin/request.h"
#include "cni-plugin/result.h"

namespace spoke::cni {

// `netns`: a descriptor of the pod's namespace, borrowed; negative: none. Blocks for up to
// `deadline_ms`.
// Errors: code 11 where it may work later (no agent, no answer in time, no free address: `message`
// says which and what to do); 100 and the agent's own codes for the rest. No text of a DEL's error
// holds the words that runtimes take for "already gone".
Expected<Attachment> AskToAdd(const Request& request, int netns, int deadline_ms);
Expected<bool> AskToDel(const Request& request, int deadline_ms);

}  // namespace spoke::cni
