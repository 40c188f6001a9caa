// Whether somebody takes connections at a server's port.
#pragma once

#include <string>

namespace spoke::swarm {

// `target` is ipv4:HOST:PORT with a numeric host. False too when no answer comes within 50 ms, as
// from a process that stands still with a full backlog. A process that stands still otherwise takes
// connections: the kernel does it for it.
bool TakesConnections(const std::string& target);

}  // namespace spoke::swarm
