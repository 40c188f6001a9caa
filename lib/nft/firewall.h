// Values for what others' chains and rules do with packets that pass through the node, as far as
// that can be told without knowing the packet. Values. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spoke::nft {

enum class Fate : uint8_t {
  kNone,    // The next rule decides: it counts, marks, logs.
  kAccept,  // The chain accepts.
  kDrop,
  kReject,
  kReturn,
  kJump,
  kGoto,
  kMap,  // A map says it for the packet.
};

// A rule, without what it takes to run it.
struct RuleGist {
  Fate fate = Fate::kNone;
  std::string target;  // The chain that kJump and kGoto lead to.
  // Whether it looks at anything, so that some packets pass it by.
  bool conditional = false;
  // Whether the connection's state or a mark decides as well: the rule is then not for a flow's
  // first packet, or for those that another rule has chosen.
  bool on_state = false;
  // The devices it is about: "docker0", "cali*"; an index as "#7". Empty: any.
  std::vector<std::string> devices;

  bool operator==(const RuleGist&) const = default;
};

struct ChainGist {
  std::string family;  // The family, "ip", "ip6" or "inet", as nft has it.
  std::string table;
  std::string name;
  bool at_forward = false;  // Whether packets come to it by the hook forward.
  bool drops = false;       // Whether a chain at a hook drops by its policy.
  std::vector<RuleGist> rules;

  bool operator==(const ChainGist&) const = default;
};

}  // namespace spoke::nft
