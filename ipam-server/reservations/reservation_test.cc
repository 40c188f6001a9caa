#include "ipam-server/reservations/reservation.h"

#include <algorithm>
#include <vector>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/random_seed.h"

namespace spoke::ipam {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);
constexpr ip::Family kV4 = ip::Family::kV4;

NodeRoom RoomIn(std::vector<size_t> pools, uint32_t held = 16) {
  return {{.family = kV4, .pools = std::move(pools), .held = held, .target = 16, .cap = 255}};
}

// Pool a for n1 and n2; b, smaller, for n2 and n3.
CapacityView TwoPools() {
  return {.pools = {{.name = "a", .free = 100}, {.name = "b", .free = 50}},
          .nodes = {{"n1", RoomIn({0})}, {"n2", RoomIn({0, 1})}, {"n3", RoomIn({1})}},
          .joining = RoomIn({0, 1}, 0)};
}

ReservationRequest Ask(std::string name, std::vector<std::string> nodes, uint32_t each) {
  return {.name = std::move(name),
          .nodes = std::move(nodes),
          .addresses_per_node = each,
          .ttl = absl::Hours(1)};
}

ReservationRequest AskForCount(std::string name, uint32_t count, uint32_t each) {
  ReservationRequest request = Ask(std::move(name), {}, each);
  request.count = count;
  return request;
}

void AddPlanned(ReservationBook& book, const ReservationRequest& request, const CapacityView& view,
                absl::Time now = kNow) {
  auto planned = book.Plan(request, view, now);
  ASSERT_TRUE(planned.ok()) << planned.status();
  book.Add(*std::move(planned), view);
}

TEST(ReservationBook, PromisesEachNodeWhatWasAskedFromThePoolsItMayUse) {
  ReservationBook book;
  const CapacityView view = TwoPools();
  AddPlanned(book, Ask("job", {"n1", "n2", "n3"}, 50), view);
  EXPECT_EQ(book.ReservedFor("n1"), 50U);
  const Promises promises = book.PromisesIn(view);
  EXPECT_EQ(promises.short_by, 0U);
  EXPECT_THAT(promises.by_pool, ElementsAre(100, 50));
  EXPECT_EQ(book.LeftFor("n2", kV4, 0, view), 50U) << "the other 50 are for n1";
  EXPECT_EQ(book.LeftFor("n2", kV4, 1, view), 0U) << "all are for n3";
  EXPECT_EQ(book.LeftFor("n3", kV4, 1, view), 50U);
  EXPECT_EQ(book.LeftFor("stranger", kV4, 0, view), 0U);
}

TEST(ReservationBook, LeavesToOthersWhatCanComeFromAnotherPool) {
  ReservationBook book;
  const CapacityView view = TwoPools();
  AddPlanned(book, Ask("job", {"n2"}, 40), view);
  EXPECT_EQ(book.LeftFor("stranger", kV4, 0, view), 100U) << "b has enough for n2";
  EXPECT_EQ(book.LeftFor("stranger", kV4, 1, view), 50U) << "a has enough for n2";
}

TEST(ReservationBook, PlanChangesNothing) {
  const ReservationBook book;
  ASSERT_TRUE(book.Plan(Ask("job", {"n1"}, 50), TwoPools(), kNow).ok());
  EXPECT_EQ(book.ReservedFor("n1"), 0U);
  EXPECT_THAT(book.all(), IsEmpty());
}

TEST(ReservationBook, WhatDoesNotFitWholeIsRefusedWithItsShortage) {
  ReservationBook book;
  const CapacityView view = TwoPools();
  AddPlanned(book, Ask("first", {"n1"}, 60), view);
  const auto planned = book.Plan(Ask("second", {"n2", "n3"}, 46), view, kNow);
  EXPECT_EQ(planned.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(planned.status().message()),
              AllOf(HasSubstr("\"second\" is short by 2 addresses"), HasSubstr("pools a, b"),
                    HasSubstr("150 free, 60 of them promised"), HasSubstr("92 wanted")));
  EXPECT_EQ(book.ReservedFor("n2"), 0U);
}

TEST(ReservationBook, EachMistakeHasItsOwnCode) {
  ReservationBook book({.reservations = 2, .nodes = 10});
  const CapacityView view = TwoPools();
  const auto code = [&](const ReservationRequest& request) {
    return book.Plan(request, view, kNow).status().code();
  };
  AddPlanned(book, Ask("job", {"n1"}, 1), view);
  EXPECT_EQ(code(Ask("job", {"n1"}, 1)), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(code(Ask("x", {"nowhere"}, 1)), absl::StatusCode::kNotFound);
  EXPECT_EQ(code(Ask("", {"n1"}, 1)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Ask("a b", {"n1"}, 1)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Ask("x", {}, 1)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Ask("x", {"n1", "n1"}, 1)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Ask("x", {"n1"}, 0)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(AskForCount("x", 11, 1)), absl::StatusCode::kInvalidArgument);
  ReservationRequest both = Ask("x", {"n1"}, 1);
  both.count = 1;
  EXPECT_EQ(code(both), absl::StatusCode::kInvalidArgument);
  ReservationRequest forever = Ask("x", {"n1"}, 1);
  forever.ttl = absl::InfiniteDuration();
  EXPECT_EQ(code(forever), absl::StatusCode::kInvalidArgument);
  forever.ttl = absl::ZeroDuration();
  EXPECT_EQ(code(forever), absl::StatusCode::kInvalidArgument);
  AddPlanned(book, Ask("other", {"n1"}, 1), view);
  EXPECT_EQ(code(Ask("third", {"n1"}, 1)), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(book.Release("nothing").status().code(), absl::StatusCode::kNotFound);
}

TEST(ReservationBook, NoNicIsPromisedMoreThanItTakes) {
  ReservationBook book;
  CapacityView view = TwoPools();
  view.pools[0].free = 1000;
  AddPlanned(book, Ask("first", {"n1"}, 200), view);
  const auto planned = book.Plan(Ask("second", {"n1"}, 40), view, kNow);
  EXPECT_EQ(planned.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(planned.status().message()),
              AllOf(HasSubstr("node n1 takes 255 IPv4"), HasSubstr("16 are for the node itself"),
                    HasSubstr("200 for other"), HasSubstr("ask for 39")));
  EXPECT_TRUE(book.Plan(Ask("second", {"n1"}, 39), view, kNow).ok());
}

TEST(ReservationBook, ANodeWithoutAPoolIsToldSo) {
  CapacityView view = TwoPools();
  view.nodes["n1"].clear();
  const auto planned = ReservationBook().Plan(Ask("job", {"n1"}, 4), view, kNow);
  EXPECT_EQ(planned.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(planned.status().message()), HasSubstr("no pool is for node n1"));
}

TEST(ReservationBook, AddressesThatAreThereAlreadyCountOnceOnly) {
  ReservationBook book;
  CapacityView view = TwoPools();
  view.nodes["n1"] = RoomIn({0}, 16 + 30);
  AddPlanned(book, Ask("first", {"n1"}, 20), view);
  EXPECT_EQ(book.all().at("first").ReadyNodes(), 1U);
  AddPlanned(book, Ask("second", {"n1"}, 20), view);
  EXPECT_THAT(book.PromisesIn(view).by_pool, ElementsAre(10, 0));
}

TEST(ReservationBook, DeliveryRedeemsTheOldestPromiseFirst) {
  ReservationBook book;
  const CapacityView view = TwoPools();
  AddPlanned(book, Ask("b-first", {"n1"}, 20), view);
  AddPlanned(book, Ask("a-second", {"n1", "n2"}, 20), view, kNow + absl::Seconds(1));
  EXPECT_THAT(book.OnDelivered("n1", kV4, 15), ElementsAre("b-first"));
  EXPECT_THAT(book.OnDelivered("n1", kV4, 15), ElementsAre("a-second", "b-first"));
  EXPECT_EQ(book.all().at("b-first").ReadyNodes(), 1U);
  EXPECT_EQ(book.all().at("a-second").ReadyNodes(), 0U);
  EXPECT_THAT(book.OnDelivered("n1", ip::Family::kV6, 15), IsEmpty());
  EXPECT_THAT(book.OnDelivered("n3", kV4, 15), IsEmpty());
  EXPECT_EQ(book.ReservedFor("n1"), 40U) << "the target stays raised";
}

TEST(ReservationBook, ARestartCountsAnewWhatIsMissing) {
  ReservationBook book;
  CapacityView view = TwoPools();
  AddPlanned(book, Ask("first", {"n1", "n2"}, 20), view);
  AddPlanned(book, Ask("second", {"n1"}, 20), view);
  view.nodes["n1"][0].held += 25;
  book.Recount(view);
  EXPECT_EQ(book.all().at("first").missing.at("n1").at(kV4), 0U);
  EXPECT_EQ(book.all().at("second").missing.at("n1").at(kV4), 15U);
  EXPECT_EQ(book.all().at("first").missing.at("n2").at(kV4), 20U);
  EXPECT_THAT(book.OnDelivered("n1", kV4, 100), ElementsAre("second"));
}

TEST(ReservationBook, EndsByNameAndByTime) {
  ReservationBook book;
  const CapacityView view = TwoPools();
  AddPlanned(book, Ask("long", {"n1"}, 20), view);
  ReservationRequest brief = Ask("brief", {"n1"}, 20);
  brief.ttl = absl::Minutes(1);
  AddPlanned(book, brief, view);
  EXPECT_THAT(book.Expire(kNow + absl::Seconds(59)), IsEmpty());
  EXPECT_EQ(book.Expire(kNow + absl::Minutes(1)).at(0).name, "brief");
  EXPECT_EQ(book.ReservedFor("n1"), 20U);
  ASSERT_TRUE(book.Release("long").ok());
  EXPECT_EQ(book.ReservedFor("n1"), 0U);
  EXPECT_THAT(book.PromisesIn(view).by_pool, ElementsAre(0, 0));
}

TEST(ReservationBook, NodesThatJoinTakeOnePlaceEachTheOldestFirst) {
  ReservationBook book;
  CapacityView view = TwoPools();
  AddPlanned(book, AskForCount("b-first", 2, 20), view);
  AddPlanned(book, AskForCount("a-second", 1, 20), view, kNow + absl::Seconds(1));
  EXPECT_THAT(book.PromisesIn(view).by_pool, ElementsAre(60, 0));
  for (const char* node : {"m1", "m2", "m3", "m4"}) view.nodes[node] = RoomIn({0, 1}, 0);
  EXPECT_EQ(book.OnNodeJoined("m1", view), "b-first");
  EXPECT_EQ(book.OnNodeJoined("m1", view), std::nullopt) << "a reconnect is not a new node";
  EXPECT_EQ(book.OnNodeJoined("m2", view), "b-first");
  EXPECT_EQ(book.OnNodeJoined("m3", view), "a-second");
  EXPECT_EQ(book.OnNodeJoined("m4", view), std::nullopt);
  EXPECT_EQ(book.ReservedFor("m1"), 20U);
  EXPECT_EQ(book.ReservedFor("m4"), 0U);
}

TEST(ReservationBook, ANodeWhosePoolsCannotKeepThePromiseTakesNoPlace) {
  ReservationBook book;
  CapacityView view = TwoPools();
  AddPlanned(book, AskForCount("job", 2, 60), view);
  view.nodes["small"] = RoomIn({1}, 0);
  view.nodes["right"] = RoomIn({0, 1}, 0);
  EXPECT_EQ(book.OnNodeJoined("small", view), std::nullopt);
  EXPECT_EQ(book.ReservedFor("small"), 0U);
  EXPECT_EQ(book.OnNodeJoined("right", view), "job");
}

TEST(ReservationBook, ANodeThatIsGoneTakesItsPlaceWithIt) {
  ReservationBook book;
  const CapacityView view = TwoPools();
  AddPlanned(book, Ask("job", {"n1", "n2"}, 20), view);
  EXPECT_THAT(book.OnNodeGone("n1"), ElementsAre("job"));
  EXPECT_THAT(book.OnNodeGone("n1"), IsEmpty());
  EXPECT_EQ(book.ReservedFor("n1"), 0U);
  EXPECT_EQ(book.ReservedFor("n2"), 20U);
}

TEST(ReservationBook, APoolThatWasMadeSmallerShowsInWhatIsShort) {
  ReservationBook book;
  CapacityView view = TwoPools();
  AddPlanned(book, Ask("job", {"n1"}, 90), view);
  view.pools[0].free = 70;
  EXPECT_EQ(book.PromisesIn(view).short_by, 20U);
}

// A world that gives what was promised to whom it was promised, and to others what is left.
class World {
 public:
  explicit World(testing_support::Random& random) : random_(random) {
    const bool blocks = random_.OneIn(3);
    view_.pools.resize(random_.Between(1, 3));
    for (auto& pool : view_.pools) {
      pool.unit = blocks ? 16 : 1;
      pool.free = random_.Between(0, 12) * pool.unit;
      pool.name = "p";
    }
    view_.joining = RandomRoom();
    for (int i = 0; i < 3; ++i) view_.nodes[fmt::format("n{}", i)] = RandomRoom();
  }

  void Step() {
    switch (random_.Between(0, 8)) {
      case 0:
      case 1:
        return Reserve();
      case 2:
        return Deliver();
      case 3:
        return TakeForOthers();
      case 4:
        return Join();
      case 5:
        return Release();
      case 6:
        return Move();
      case 7:
        now_ += absl::Minutes(random_.Between(0, 5));
        book_.Expire(now_);
        return;
      default:
        return Leave();
    }
  }

  void Check() const {
    const Promises promises = book_.PromisesIn(view_);
    ASSERT_EQ(promises.short_by, 0U) << "nothing is promised that is not there";
    for (size_t i = 0; i < view_.pools.size(); ++i) {
      ASSERT_LE(promises.by_pool[i], view_.pools[i].free);
    }
    std::map<std::string, uint32_t> reserved;
    for (const auto& [name, reservation] : book_.all()) {
      for (const auto& [node, missing] : reservation.missing) {
        reserved[node] += reservation.addresses_per_node;
      }
    }
    for (const auto& [node, room] : view_.nodes) {
      ASSERT_EQ(book_.ReservedFor(node), reserved[node]);
      ASSERT_LE(room[0].target + book_.ReservedFor(node), room[0].cap);
    }
  }

  void EndAll() {
    while (!book_.all().empty()) {
      if (random_.OneIn(2)) {
        ASSERT_TRUE(book_.Release(book_.all().begin()->first).ok());
      } else {
        now_ += absl::Hours(1);
        book_.Expire(now_);
      }
    }
    const Promises promises = book_.PromisesIn(view_);
    ASSERT_EQ(promises.short_by, 0U);
    for (const uint64_t addresses : promises.by_pool) ASSERT_EQ(addresses, 0U);
    for (const auto& [node, room] : view_.nodes) ASSERT_EQ(book_.ReservedFor(node), 0U);
  }

  int granted() const { return granted_; }
  int refused() const { return refused_; }
  int joined() const { return joined_; }

 private:
  NodeRoom RandomRoom() {
    FamilyRoom room{.target = static_cast<uint32_t>(random_.Between(0, 8)), .cap = 60};
    for (size_t i = 0; i < view_.pools.size(); ++i) {
      if (random_.OneIn(2)) room.pools.push_back(i);
    }
    if (room.pools.empty()) room.pools.push_back(0);
    room.unit = UnitOf(room.pools);
    room.held = static_cast<uint32_t>(random_.Between(0, 12));
    return {room};
  }

  uint32_t UnitOf(const std::vector<size_t>& pools) const {
    uint32_t unit = 1;
    for (const size_t pool : pools) unit = std::max(unit, view_.pools[pool].unit);
    return unit;
  }

  void Reserve() {
    ReservationRequest request{.name = fmt::format("r{}", random_.Between(0, 5)),
                               .addresses_per_node = static_cast<uint32_t>(random_.Between(1, 20)),
                               .ttl = absl::Minutes(random_.Between(1, 20))};
    if (random_.OneIn(2)) {
      request.count = static_cast<uint32_t>(random_.Between(1, 3));
    } else {
      for (const auto& [node, room] : view_.nodes) {
        if (random_.OneIn(2)) request.nodes.push_back(node);
      }
    }
    auto planned = book_.Plan(request, view_, now_);
    ++(planned.ok() ? granted_ : refused_);
    if (planned.ok()) book_.Add(*std::move(planned), view_);
  }

  // Some of what a node is still missing, from the pools it may draw from.
  void Deliver() {
    std::map<std::string, uint64_t> missing;
    for (const auto& [name, reservation] : book_.all()) {
      for (const auto& [node, counts] : reservation.missing) missing[node] += counts.at(kV4);
    }
    for (const auto& [node, wanted] : missing) {
      FamilyRoom& room = view_.nodes.find(node)->second[0];
      for (const size_t pool : room.pools) {
        if (random_.OneIn(2)) continue;
        const uint32_t unit = view_.pools[pool].unit;
        const uint64_t left = book_.LeftFor(node, kV4, pool, view_);
        ASSERT_LE(left, view_.pools[pool].free);
        const uint64_t units = std::min((wanted + unit - 1) / unit, left / unit);
        if (units == 0) continue;
        const auto given = static_cast<uint32_t>(random_.Between(1, units) * unit);
        view_.pools[pool].free -= given;
        room.held += given;
        book_.OnDelivered(node, kV4, given);
      }
    }
  }

  void TakeForOthers() {
    const size_t pool = random_.Between(0, view_.pools.size() - 1);
    const uint64_t spare = book_.LeftFor("stranger", kV4, pool, view_);
    view_.pools[pool].free -= random_.Between(0, spare);
    if (random_.OneIn(2)) view_.pools[pool].free += random_.Between(0, 20);
  }

  // A node that may draw from other pools keeps its promises only if those can: else it stays.
  void Move() {
    const auto node = std::next(view_.nodes.begin(),
                                static_cast<int64_t>(random_.Between(0, view_.nodes.size() - 1)));
    const NodeRoom before = node->second;
    node->second[0].pools = RandomRoom()[0].pools;
    node->second[0].unit = UnitOf(node->second[0].pools);
    book_.OnPoolsChanged({.nodes = {{node->first, node->second}}});
    if (book_.PromisesIn(view_).short_by == 0) return;
    node->second = before;
    book_.OnPoolsChanged({.nodes = {{node->first, node->second}}});
  }

  void Join() {
    const std::string node = fmt::format("m{}", next_node_++);
    view_.nodes[node] = RandomRoom();
    view_.nodes[node][0].held = 0;
    if (book_.OnNodeJoined(node, view_)) ++joined_;
    ASSERT_FALSE(book_.OnNodeJoined(node, view_)) << "one place a node, or none";
  }

  void Release() {
    if (book_.all().empty()) return;
    ASSERT_TRUE(book_.Release(book_.all().begin()->first).ok());
  }

  void Leave() {
    if (view_.nodes.size() <= 3) return;
    const auto gone = view_.nodes.begin();
    book_.OnNodeGone(gone->first);
    view_.nodes.erase(gone);
  }

  testing_support::Random& random_;
  CapacityView view_;
  ReservationBook book_;
  absl::Time now_ = kNow;
  int next_node_ = 0;
  int granted_ = 0;
  int refused_ = 0;
  int joined_ = 0;
};

TEST(ReservationBook, NeverPromisesWhatIsNotThereWhateverTheOrder) {
  testing_support::Random random;
  int granted = 0;
  int refused = 0;
  int joined = 0;
  for (int i = 0; i < testing_support::kRandomCases / 20; ++i) {
    World world(random);
    for (int step = 0; step < 20; ++step) {
      world.Step();
      world.Check();
      if (::testing::Test::HasFatalFailure()) return;
    }
    world.EndAll();
    if (::testing::Test::HasFatalFailure()) return;
    granted += world.granted();
    refused += world.refused();
    joined += world.joined();
  }
  EXPECT_GT(granted, 5000);
  EXPECT_GT(refused, 5000);
  EXPECT_GT(joined, 500);
}

}  // namespace
}  // namespace spoke::ipam
