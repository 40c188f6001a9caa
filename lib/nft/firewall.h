// What others' chains and rules do with packets that pass through the node, as far as that can be
// told without knowing the packet. Values. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spoke::nft {

enum class Fate : uint8_t {
  kNone,    // The next rule decides: it counts, marks, logs.
  kAccept,  // By this chain.
  kDrop,
  kReject,
  kReturn,
  kJump,
  kGoto,
  kMap,  // What a map says for the packet.
};

// A rule, without what it takes to run it.
struct RuleGist {
  Fate fate = Fate::kNone;
  std::string target;  // The chain of kJump and kGoto.
  // It looks at more than nothing, so that some packets pass it by.
  bool conditional = false;
  // What the connection's state or a mark says decides as well: not for a flow's first packet, or
  // for those that another rule has chosen.
  bool on_state = false;
  // The devices it is about: "docker0", "cali*"; an index as "#7". Empty: any.
  std::vector<std::string> devices;

  bool operator==(const RuleGist&) const = default;
};

struct ChainGist {
  std::string family;  // "ip", "ip6", "inet", as nft has it.
  std::string table;
  std::string name;
  bool at_forward = false;  // Packets come to it by the hook forward.
  bool drops = false;       // Its policy, of a chain at a hook.
  std::vector<RuleGist> rules;

  bool operator==(const ChainGist&) const = default;
};

}  // namespace spoke::nft
