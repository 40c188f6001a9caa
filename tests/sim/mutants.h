// One-line defects that the simulation can switch on to prove that it would find them. They lie in
// the seams that the simulation owns: what a program would do if this line of it were wrong.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace spoke::sim {

enum class Mutant : uint8_t {
  kStoreWithoutFence,
  kStoreLosesTail,
  kStoreIgnoresRevisions,
  kStagesReversed,
  kAcknowledgedBeforeCommit,
  kMarginZero,
  kServerCooldownSkipped,
  kAgentCooldownSkipped,
  kCooldownForgottenAtRestart,
  kReclaimWithoutAgreement,
  kDenialTakenForAgreement,
  kAnswerOfOlderSession,
  kJournalBegunLost,
  kJournalBuiltLost,
  kJournalReleasedLost,
  kJournalWithdrawnLost,
  kJournalReplayedInReverse,
  kTornFrameEndsTheJournal,
  kLateDelTakesTheYounger,
  kDelFreesWithoutTheLink,
  kHelloForgetsInUse,
  kReportsLost,
  kReleasesReportedFirst,
  kWithdrawnLiftedByAnyList,
  kOneListingIsEnough,
  kSilentNodeIsGone,
  kWitnessForgotten,
  kTokenForgotten,
  kReplacedVmIsTheSame,
  kTombstonesIgnored,
  kLast = kTombstonesIgnored,
};

inline constexpr size_t kMutants = static_cast<size_t>(Mutant::kLast) + 1;

struct MutantText {
  std::string_view name;
  std::string_view defect;
};

inline constexpr std::array<MutantText, kMutants> kMutantTexts = {{
    {"store_without_fence", "a commit of a deposed leader is taken"},
    {"store_loses_tail", "a commit is acknowledged before it is synced, and lost at a crash"},
    {"store_ignores_revisions", "a put does not compare the revision it expects"},
    {"stages_reversed", "what is taken is stored before what is given up"},
    {"acknowledged_before_commit", "a failed commit is answered as if it had gone through"},
    {"margin_zero", "a leader trusts its lease whatever the time"},
    {"server_cooldown_skipped", "what has left a NIC can go to another at once"},
    {"agent_cooldown_skipped", "a released address is available at once"},
    {"cooldown_forgotten_at_restart", "a restarted agent finds nothing in cooldown"},
    {"reclaim_without_agreement", "an address is detached as soon as its agent is asked"},
    {"denial_taken_for_agreement", "an agent's denial is read as its agreement"},
    {"answer_of_older_session", "an answer to a request is kept for the next session"},
    {"journal_begun_lost", "the intent is not journalled"},
    {"journal_built_lost", "that a pod's link was built is not journalled"},
    {"journal_released_lost", "that an assignment is over is not journalled"},
    {"journal_withdrawn_lost", "what was given up is not journalled"},
    {"journal_replayed_in_reverse", "a restart reads the journal backwards"},
    {"torn_frame_ends_the_journal", "a torn frame makes the whole journal unreadable"},
    {"late_del_takes_the_younger", "a DEL that waited frees an assignment made since"},
    {"del_frees_without_the_link", "a DEL whose link could not be taken down frees all the same"},
    {"hello_forgets_in_use", "a hello does not say what pods use"},
    {"reports_lost", "one report in eight is dropped and never said again"},
    {"releases_reported_first", "a report's releases are taken before its assignments"},
    {"withdrawn_lifted_by_any_list", "any list of the server's lifts a withdrawal"},
    {"one_listing_is_enough", "a node without a session that one listing lacks is gone"},
    {"silent_node_is_gone", "a node without a session is listed as gone"},
    {"witness_forgotten", "a server that starts does not look at the mark beside its store"},
    {"token_forgotten", "agents do not show what they were told of the store"},
    {"replaced_vm_is_the_same", "a new VM under an old name says the old one's id"},
    {"tombstones_ignored", "a DEL that came while no agent was there is dropped"},
}};

inline std::string_view NameOf(Mutant mutant) {
  return kMutantTexts[static_cast<size_t>(mutant)].name;
}
// nullopt: no mutant is called so.
inline std::optional<Mutant> MutantOf(std::string_view name) {
  for (size_t i = 0; i < kMutants; ++i) {
    if (kMutantTexts[i].name == name) return static_cast<Mutant>(i);
  }
  return std::nullopt;
}

}  // namespace spoke::sim
