#include "tests/search/search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/time/clock.h"
#include "fmt/core.h"
#include "tests/search/actions.h"

namespace spoke::search {
namespace {

// States one behind another.
class States {
 public:
  void Push(std::string_view state) {
    const auto size = static_cast<uint16_t>(state.size());
    bytes_.push_back(static_cast<char>(size & 0xFFU));
    bytes_.push_back(static_cast<char>(size >> 8U));
    bytes_.append(state);
    ++count_;
  }
  std::string_view Pop() {
    const size_t size =
        static_cast<uint8_t>(bytes_[at_]) | (size_t{static_cast<uint8_t>(bytes_[at_ + 1])} << 8U);
    const std::string_view state = std::string_view(bytes_).substr(at_ + 2, size);
    at_ += 2 + size;
    --count_;
    return state;
  }
  bool empty() const { return count_ == 0; }

 private:
  std::string bytes_;
  size_t at_ = 0;
  size_t count_ = 0;
};

// From where a state was reached first, and how. Of a root `parent` is itself, and `action` which.
struct Link {
  uint32_t parent;
  uint16_t action;
};

class Run {
 public:
  Run(const std::vector<Root>& roots, const Bounds& bounds) : roots_(roots), bounds_(bounds) {}
  Found Go();

 private:
  bool IsOver() const;
  void From(size_t root);
  void Expand(uint32_t index, std::string_view state);
  void Take(World world, uint32_t parent, uint16_t action);
  void Note(std::string_view what, uint32_t parent, const Action& last);
  std::string StoryOf(uint32_t parent, const Action& last, std::string& root) const;

  const std::vector<Root>& roots_;
  const Bounds& bounds_;
  const absl::Time began_ = absl::Now();
  uint64_t most_states_ = 0;  // Of all, when the present root has had its share.
  absl::Time until_;
  absl::flat_hash_set<uint64_t> seen_;
  absl::flat_hash_set<uint64_t> worlds_;
  std::vector<Link> links_;
  States now_;
  States next_;
  uint32_t level_ = 0;
  std::map<std::string, Violation> violations_;  // Keyed by kind.
  Found found_;
};

bool Run::IsOver() const {
  if (bounds_.stop_at_first && !violations_.empty()) return true;
  if (links_.size() >= most_states_) return true;
  return found_.expanded % 1024 == 0 && absl::Now() > until_;
}

void Run::Take(World world, uint32_t parent, uint16_t action) {
  if (bounds_.symmetry) Canonicalise(world);
  const std::string state = Encode(world);
  if (!seen_.insert(absl::HashOf(std::string_view(state))).second) return;
  links_.push_back({parent, action});
  next_.Push(state);
  world.left = {};
  world.faults_left = 0;
  worlds_.insert(absl::HashOf(std::string_view(Encode(world))));
}

void Run::Expand(uint32_t index, std::string_view state) {
  const World world = Decode(state);
  ++found_.expanded;
  for (const Action& action : AllActions()) {
    const auto outcome = Apply(world, action, bounds_.defect);
    if (!outcome) continue;
    ++found_.transitions;
    if (outcome->world.overflow) {
      ++found_.overflows;
    } else if (!outcome->broken.empty()) {
      Note(outcome->broken, index, action);
    } else {
      Take(outcome->world, index, action.Pack());
    }
  }
}

// What follows from what is broken is of no interest.
void Run::Note(std::string_view what, uint32_t parent, const Action& last) {
  const auto [it, is_new] = violations_.try_emplace(std::string(what));
  if (!is_new) return;
  it->second.what = what;
  it->second.depth = level_ + 1;
  it->second.story = StoryOf(parent, last, it->second.root);
}

// Goes the way again, with the names that the nodes had at its beginning.
std::string Run::StoryOf(uint32_t parent, const Action& last, std::string& root) const {
  std::vector<Action> way = {last};
  uint32_t at = parent;
  for (; links_[at].parent != at; at = links_[at].parent) {
    way.push_back(Action::Unpack(links_[at].action));
  }
  std::reverse(way.begin(), way.end());
  const Root& from = roots_[links_[at].action];
  root = from.name;
  World world = from.world;
  std::string names = "abc";
  const auto canonicalise = [&] {
    if (!bounds_.symmetry) return;
    const auto order = Canonicalise(world);
    const std::string before = names;
    for (size_t i = 0; i < kNodes; ++i) names[i] = before[order[i]];
  };
  canonicalise();
  std::string story = Describe(world, names);
  for (const Action& action : way) {
    story += fmt::format("- {}\n", Describe(world, action, names));
    world = Apply(world, action, bounds_.defect)->world;
    if (&action != &way.back()) canonicalise();
  }
  return story + Describe(world, names);
}

void Run::From(size_t root) {
  const uint64_t after = roots_.size() - root;
  const uint64_t left = bounds_.states - std::min(bounds_.states, links_.size());
  const absl::Time now = absl::Now();
  most_states_ = links_.size() + left / after;
  until_ = now + (began_ + bounds_.time - now) / static_cast<int64_t>(after);
  RootFound found{.name = roots_[root].name};
  const size_t before = links_.size();
  next_ = States();
  auto index = static_cast<uint32_t>(before);
  Take(roots_[root].world, index, static_cast<uint16_t>(root));
  bool over = false;
  for (level_ = 0; !over && !next_.empty() && level_ < bounds_.depth; ++level_) {
    now_ = std::exchange(next_, States());
    while (!now_.empty() && !over) {
      Expand(index++, now_.Pop());
      over = IsOver();
    }
    if (!over || (now_.empty() && next_.empty())) found.depth = level_ + 1;
  }
  found.complete = now_.empty() && next_.empty();
  found.states = links_.size() - before;
  found_.roots.push_back(std::move(found));
}

Found Run::Go() {
  for (size_t root = 0; root < roots_.size(); ++root) {
    if (bounds_.stop_at_first && !violations_.empty()) break;
    From(root);
  }
  found_.states = links_.size();
  found_.worlds = worlds_.size();
  found_.took = absl::Now() - began_;
  for (auto& [what, violation] : violations_) found_.violations.push_back(std::move(violation));
  return std::move(found_);
}

}  // namespace

Found SearchFrom(const std::vector<Root>& roots, const Bounds& bounds) {
  return Run(roots, bounds).Go();
}

}  // namespace spoke::search
