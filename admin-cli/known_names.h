// The names that the server has for what a value means: for shells that complete one, and for
// whoever has mistyped one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "admin-cli/client.h"
#include "admin-cli/command.h"

namespace spoke::ctl {

struct NameQuery {
  Values values = Values::kText;
  std::string context;  // The positional before: the kind of an object, what is explained.
  std::string prefix;   // How the names begin.
  size_t most = 0;      // The most names that are of use.
};

// Returns the names; none where there are none, and where the server does not say.
std::vector<std::string> NamesOf(const Client& client, const NameQuery& query);

// Returns the name that was probably meant by the first value of `arguments` that names nothing
// that there is; empty: every value is known, or nothing is like it. Asks the server.
std::string MeantName(const Client& client, const Command& command, const Arguments& arguments);

}  // namespace spoke::ctl
