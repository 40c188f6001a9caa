#include "tests/search/world.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lib/base/check.h"

namespace spoke::search {
namespace {

// Writes numbers of few bits one behind another.
class BitWriter {
 public:
  explicit BitWriter(std::string& bytes) : bytes_(bytes) {}
  void Flush() {
    while (used_ > 0) {
      bytes_.push_back(static_cast<char>(bits_ & 0xFFU));
      bits_ >>= 8U;
      used_ = used_ > 8 ? used_ - 8 : 0;
    }
    bits_ = 0;
  }
  template <typename Number>
  void operator()(const Number& number, unsigned bits) {
    const auto value = static_cast<uint64_t>(number);
    CHECK(value < (uint64_t{1} << bits), "a number has the bits that were thought of");
    bits_ |= value << used_;
    used_ += bits;
    while (used_ >= 8) {
      bytes_.push_back(static_cast<char>(bits_ & 0xFFU));
      bits_ >>= 8U;
      used_ -= 8;
    }
  }
  // Whether more follows.
  bool If(bool there) {
    (*this)(there, 1);
    return there;
  }

 private:
  std::string& bytes_;
  uint64_t bits_ = 0;
  unsigned used_ = 0;
};

class BitReader {
 public:
  explicit BitReader(std::string_view bytes) : bytes_(bytes) {}
  // The rest of the last byte is padding.
  void Flush() {
    bits_ = 0;
    there_ = 0;
  }
  template <typename Number>
  void operator()(Number& number, unsigned bits) {
    while (there_ < bits) {
      CHECK(at_ < bytes_.size(), "a state is read to its end and no further");
      bits_ |= uint64_t{static_cast<uint8_t>(bytes_[at_++])} << there_;
      there_ += 8;
    }
    number = static_cast<Number>(bits_ & ((uint64_t{1} << bits) - 1));
    bits_ >>= bits;
    there_ -= bits;
  }
  bool If(bool /*there*/) {
    bool there = false;
    (*this)(there, 1);
    return there;
  }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
  uint64_t bits_ = 0;
  unsigned there_ = 0;
};

constexpr unsigned kGeneration = 4;
constexpr unsigned kEpoch = 5;

template <typename Bits, typename Value>
void VisitRecord(Bits& bits, Value& record) {
  bits(record.present, 1);
  if (!record.present) return;
  bits(record.mode, 2);
  bits(record.boot, 2);
  for (auto& held : record.held) {
    bits(held.state, 2);
    if (held.state == 0) continue;
    bits(held.denied, 1);
    bits(held.use, 2);
    bits(held.old, 1);
    bits(held.generation, kGeneration);
    bits(held.pod, 2);
  }
  for (auto& released : record.released) bits(released, 2);
}

template <typename Bits, typename Value>
void VisitMessage(Bits& bits, Value& message) {
  bits(message.kind, 3);
  bits(message.a, 3);
  if (bits.If((message.b | message.c | message.d) != 0 || message.flag)) {
    bits(message.b, 3);
    bits(message.c, 3);
    bits(message.d, 3);
    bits(message.flag, 1);
  }
  const auto said = [](const auto& entry) { return entry.pod != 0; };
  if (bits.If(std::any_of(message.in_use.begin(), message.in_use.end(), said))) {
    for (auto& entry : message.in_use) {
      bits(entry.pod, 2);
      bits(entry.generation, kGeneration);
    }
  }
  const auto over = [](uint8_t generation) { return generation != 0; };
  if (bits.If(std::any_of(message.released.begin(), message.released.end(), over))) {
    for (auto& generation : message.released) bits(generation, kGeneration);
  }
  if (bits.If(message.epoch != 0)) {
    bits(message.epoch, kEpoch);
    bits(message.nodes, 3);
  }
  if (message.kind != MessageKind::kHello) return;
  bits(message.boot, 2);
  bits(message.vm, 1);
}

template <typename Bits, typename Value>
void VisitQueue(Bits& bits, Value& queue) {
  bits(queue.size, 3);
  for (size_t i = 0; i < queue.size; ++i) VisitMessage(bits, queue.messages[i]);
}

template <typename Bits, typename Value>
void VisitCall(Bits& bits, Value& call) {
  bits(call.there, 1);
  if (!call.there) return;
  bits(call.vm, 1);
  bits(call.on_nic, 3);
}

template <typename Bits, typename Value>
void VisitAgent(Bits& bits, Value& agent) {
  bits(agent.vm, 1);
  bits(agent.boot, 2);
  bits(agent.stream, 2);
  bits(agent.agreed, 3);
  for (auto& entry : agent.journal) {
    bits(entry.use, 3);
    if (entry.use == AgentUse::kAbsent) continue;
    bits(entry.listed, 1);
    bits(entry.withdrawn, 1);
    bits(entry.order, 2);
    if (entry.use != AgentUse::kInUse) continue;
    bits(entry.generation, kGeneration);
    bits(entry.pod, 2);
  }
  bits(agent.epoch, kEpoch);
  bits(agent.nodes, 3);
  for (auto& pod : agent.pods) bits(pod, 2);
  for (auto& late : agent.late_del) bits(late, 1);
}

template <typename Bits, typename Value>
void VisitNode(Bits& bits, Value& node) {
  for (auto& record : node.stored) VisitRecord(bits, record);
  for (auto& record : node.saved) VisitRecord(bits, record);
  for (auto& memory : node.memory) {
    bits(memory.missing, 1);
    bits(memory.spoken, 1);
    bits(memory.greet_anew, 1);
    bits(memory.claims, 3);
  }
  bits(node.session.open, 1);
  bits(node.session.vm, 1);
  bits(node.session.told, 3);
  bits(node.session.full_due, 1);
  bits(node.session.reclaim_pending, 1);
  bits(node.session.reclaim_next, 3);
  bits(node.nic, 3);
  VisitCall(bits, node.asked);
  VisitCall(bits, node.answer);
  VisitAgent(bits, node.agent);
  VisitQueue(bits, node.up);
  VisitQueue(bits, node.down);
  bits(node.ended, 3);
  bits(node.rebooted, 1);
}

template <typename Bits, typename Value>
void VisitRest(Bits& bits, Value& world) {
  const auto visit_store = [&](auto& store) {
    bits(store.epoch, kEpoch);
    bits(store.cause, 1);
    bits(store.cause_nodes, 2);
  };
  visit_store(world.store);
  bits(world.has_backup, 1);
  visit_store(world.backup);
  bits(world.phase, 2);
  bits(world.cause, 1);
  bits(world.cause_nodes, 2);
  bits(world.highest, kEpoch);
  bits(world.doubtful, 3);
  bits(world.restored, 1);
  for (auto& left : world.left) bits(left, 3);
  bits(world.faults_left, 3);
}

std::string EncodeNode(const Node& node) {
  std::string bytes;
  BitWriter bits(bytes);
  VisitNode(bits, node);
  bits.Flush();
  return bytes;
}

template <typename Take>
void ForEachGeneration(Node& node, const Take& take) {
  for (auto* records : {&node.stored, &node.saved}) {
    for (Record& record : *records) {
      for (Held& held : record.held) take(held.generation);
    }
  }
  for (Journalled& entry : node.agent.journal) take(entry.generation);
  for (Queue* queue : {&node.up, &node.down}) {
    for (size_t i = 0; i < queue->size; ++i) {
      for (AssignmentSaid& said : queue->messages[i].in_use) take(said.generation);
      for (uint8_t& generation : queue->messages[i].released) take(generation);
    }
  }
}

template <typename Take>
void ForEachEpoch(World& world, const Take& take) {
  take(world.store.epoch);
  take(world.backup.epoch);
  take(world.highest);
  for (Node& node : world.nodes) {
    take(node.agent.epoch);
    for (Queue* queue : {&node.up, &node.down}) {
      for (size_t i = 0; i < queue->size; ++i) take(queue->messages[i].epoch);
    }
  }
}

// The ranks of numbers that were seen; zero stays zero.
class Ranks {
 public:
  void See(uint8_t number) { seen_[number] = true; }
  void Finish() {
    uint8_t next = 0;
    for (size_t number = 1; number < seen_.size(); ++number) {
      if (seen_[number]) rank_[number] = ++next;
    }
  }
  void Replace(uint8_t& number) const { number = rank_[number]; }

 private:
  std::array<bool, 256> seen_ = {};
  std::array<uint8_t, 256> rank_ = {};
};

}  // namespace

bool Queue::Push(const Message& message) {
  if (size == kQueue) return false;
  messages[size++] = message;
  return true;
}

Message Queue::Pop() {
  const Message first = messages[0];
  std::move(messages.begin() + 1, messages.begin() + size, messages.begin());
  messages[--size] = Message();
  return first;
}

void Queue::Clear() { *this = Queue(); }

bool Queue::HasHello() const {
  return std::any_of(messages.begin(), messages.begin() + size,
                     [](const Message& message) { return message.kind == MessageKind::kHello; });
}

void Normalise(World& world) {
  for (Node& node : world.nodes) {
    for (Record& record : node.stored) {
      if (!record.present) record = Record();
      for (Held& held : record.held) {
        if (held.state == 0) held = Held();
      }
    }
    if (!node.session.open) node.session = Session();
    if (node.agent.stream == Stream::kNone) node.agent.agreed = 0;
    if (node.ended == 0) node.rebooted = false;
    Ranks ranks;
    ForEachGeneration(node, [&](uint8_t generation) { ranks.See(generation); });
    ranks.Finish();
    ForEachGeneration(node, [&](uint8_t& generation) { ranks.Replace(generation); });
  }
  if (world.highest <= world.store.epoch) world.highest = 0;
  if (!world.has_backup) world.backup = Store{.epoch = 0};
  Ranks epochs;
  ForEachEpoch(world, [&](uint8_t epoch) { epochs.See(epoch); });
  epochs.Finish();
  ForEachEpoch(world, [&](uint8_t& epoch) { epochs.Replace(epoch); });
}

std::array<uint8_t, kNodes> Canonicalise(World& world) {
  std::array<std::string, kNodes> texts;
  for (size_t i = 0; i < kNodes; ++i) texts[i] = EncodeNode(world.nodes[i]);
  std::array<uint8_t, kNodes> order{};
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint8_t a, uint8_t b) { return texts[a] < texts[b]; });
  if (std::is_sorted(order.begin(), order.end())) return order;
  const std::array<Node, kNodes> before = world.nodes;
  for (size_t i = 0; i < kNodes; ++i) world.nodes[i] = before[order[i]];
  return order;
}

std::string Encode(const World& world) {
  std::string bytes;
  bytes.reserve(192);
  BitWriter bits(bytes);
  for (const Node& node : world.nodes) {
    VisitNode(bits, node);
    bits.Flush();
  }
  VisitRest(bits, world);
  bits.Flush();
  return bytes;
}

World Decode(std::string_view bytes) {
  World world;
  BitReader bits(bytes);
  for (Node& node : world.nodes) {
    VisitNode(bits, node);
    bits.Flush();
  }
  VisitRest(bits, world);
  return world;
}

}  // namespace spoke::search
