// Decides which addresses to ask the network about, when, and what the answers and other frames
// mean: that another machine has one of ours. Pure: no I/O, no clock.
//
// Asking. An address that is new on this node is asked about, as RFC 5227 section 2.1.1 and RFC
// 4862 section 5.4 have hosts do: kQuestionFrames frames, the answer within kAnswerTime of the
// last; a second in all. Many at once are spread: kFramesATurn frames every kQuestionTurn. Nothing
// waits for it: the caller prefers addresses that are not Open(), and takes one of those when there
// is no other.
//
// Control. Some networks answer for every address themselves (proxy ARP; the fabric of a cloud),
// and their answers say nothing. So with the first address of a pool its control is asked about:
// one that the server gives to no node. Whoever answers for that is a proxy, and is not believed
// for kProxyLasts. An address whose pool is not known has no control, and is not asked about.
//
// Hearing. A frame that claims one of our addresses for another machine is a conflict, asked for or
// not, and so is another machine's question about it: the machine is about to take it.
//
// A conflict is told at most every kTellEvery for each address, however many frames there are and
// from whom. It is asked about again every kAskAgain, and is over when nothing was heard of it for
// kConflictLasts and such a question was not answered. A frame can be forged; what follows from it
// is that an address is not assigned for a time, never that one is taken from a pod.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "netagent/attach/assignments.h"
#include "netagent/packets/neighbour_frame.h"

namespace spoke::netagent {

inline constexpr int kQuestionFrames = 3;
inline constexpr absl::Duration kQuestionPause = absl::Milliseconds(300);  // The time between two.
inline constexpr absl::Duration kAnswerTime = absl::Milliseconds(400);  // Counts from the last one.
inline constexpr absl::Duration kQuestionTurn = absl::Milliseconds(100);
inline constexpr size_t kFramesATurn = 16;
inline constexpr absl::Duration kNotSentPause = absl::Seconds(10);  // The pause after a failure.

inline constexpr absl::Duration kControlLasts = absl::Seconds(30);
inline constexpr absl::Duration kProxyLasts = absl::Minutes(10);
inline constexpr size_t kMaxProxies = 64;  // The most that are kept; further ones are believed.

inline constexpr absl::Duration kTellEvery = absl::Minutes(1);
inline constexpr absl::Duration kAskAgain = absl::Minutes(2);
inline constexpr absl::Duration kConflictLasts = absl::Minutes(10);

// The MAC with which Azure's fabric answers every ARP request ("virtualMacAddress" in Azure CNI's
// network_linux.go): it means nobody, should an agent on Azure not be told that it is there.
inline constexpr ip::MacAddress kAzureFabricMac{{0x12, 0x34, 0x56, 0x78, 0x9A, 0xBC}};

struct OwnAddress {
  ip::Address address;
  std::optional<ip::MacAddress> nic = std::nullopt;   // Which NIC it is on; nullopt: the first.
  std::optional<ip::Address> control = std::nullopt;  // The pool's; nullopt: not known.
  bool in_conflict = false;                           // Whether the journal says so.
};

// What to ask about, and on which NIC's network.
struct Question {
  ip::Address address;
  std::optional<ip::MacAddress> nic;  // The same as OwnAddress::nic.

  auto operator<=>(const Question&) const = default;
};

// Not thread-safe.
class AddressQuestions {
 public:
  // Sets the addresses that are ours now: these and no others. A new one is asked about; one that
  // was in conflict before is so until that is over.
  void SetOwn(const std::vector<OwnAddress>& own, absl::Time now);

  // Returns the questions to send now, at most kFramesATurn; they count as sent.
  std::vector<Question> TakeQuestions(absl::Time now);
  // Notes that those could not be sent: all that is asked is asked anew after kNotSentPause.
  void OnNotSent(absl::Time now);

  // Takes the claim of a machine that is not this node. Passes over addresses that are not ours.
  void OnHeard(const NeighbourClaim& claim, absl::Time now);

  // Returns the conflicts to tell now, new ones and those that go on.
  std::vector<ConflictNoted> TakeConflicts(absl::Time now);
  // Returns the addresses whose conflict is over, each once.
  std::vector<ip::Address> TakeOver(absl::Time now);
  // Returns the proxies found since the last call.
  std::vector<ip::MacAddress> TakeProxies() { return std::exchange(new_proxies_, {}); }

  // Our addresses that are being asked about for the first time.
  std::set<ip::Address> Open() const;
  // Whether answers may be on their way.
  bool IsAsking() const;
  // When a Take function has something to do next; nullopt: never, unless something is heard.
  std::optional<absl::Time> NextWake() const { return wake_; }
  bool IsDue(absl::Time now) const { return wake_ && *wake_ <= now; }

 private:
  // The frames of one question.
  struct Round {
    int sent = 0;
    absl::Time next = absl::InfinitePast();  // The time of the next frame, or of the end.

    bool IsOver(absl::Time now) const { return sent == kQuestionFrames && next <= now; }
  };
  struct Entry {
    std::optional<ip::MacAddress> nic;
    std::optional<ip::Address> control;
    bool asking = false;
    bool asked = false;  // Whether it was once asked to its end.
    Round round = {};
    std::optional<ip::MacAddress> answer;  // The answer to the question that is asked.

    bool in_conflict = false;
    bool unanswered = false;  // No answer when it was last asked since it was heard.
    absl::Time heard;
    absl::Time told = absl::InfinitePast();
    absl::Time ask_again;
  };

  static void Ask(Entry& entry, absl::Time now);
  // Drops from active_ what is neither asked about nor in conflict any more.
  void Calm();
  void AskControls(absl::Time now);
  void EndQuestions(absl::Time now);
  // Works out when there is something to do next. All that changes anything ends with it.
  void SetWake();
  void NoteConflict(const ip::Address& address, Entry& entry, const ip::MacAddress& mac,
                    absl::Time now);
  bool IsProxy(const ip::MacAddress& mac, absl::Time now) const;
  const Round* ControlOf(const Entry& entry) const;

  std::map<ip::Address, Entry> own_;
  // Those of own_ that are asked about or in conflict: of hundreds mostly none.
  std::set<ip::Address> active_;
  std::map<Question, Round> controls_;
  std::map<ip::MacAddress, absl::Time> proxies_;  // The time each last answered for a control.
  std::vector<ip::MacAddress> new_proxies_;
  std::map<ip::Address, ConflictNoted> to_tell_;
  absl::Time next_turn_ = absl::InfinitePast();
  std::optional<absl::Time> wake_;
};

}  // namespace spoke::netagent
