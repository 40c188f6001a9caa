// Runs a fuzz target without libFuzzer: every seed, then mutations of them. Deterministic: the same
// seeds, count and random seed give the same inputs on every machine, so a failure seen once is
// seen again. Usage: TARGET CORPUS_DIR [MUTATIONS [RANDOM_SEED]], or TARGET FILE for one input.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fmt/core.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#include <sanitizer/common_interface_defs.h>
#define SPOKE_HAS_DEATH_CALLBACK 1
#endif

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Input = std::vector<uint8_t>;

struct Seed {
  std::string file;
  Input bytes;
};

constexpr uint64_t kDefaultMutations = 5000;
constexpr uint64_t kDefaultRandomSeed = 1;
constexpr size_t kMaxInputBytes = 4096;  // The size is that of scripts/fuzz.sh.
constexpr size_t kShownBytes = 512;

// The name of what runs at the moment. It is global, since a signal handler has no arguments.
std::string g_running;  // NOLINT(cert-err58-cpp)

// Says which input broke the target, after the sanitizer or CHECK has said how.
void ReportRunningInput() {
  const ssize_t ignored = ::write(STDERR_FILENO, g_running.data(), g_running.size());
  static_cast<void>(ignored);
}

extern "C" void OnAbort(int /*signal*/) {
  ReportRunningInput();
  ::_exit(1);
}

void ReportInputOnDeath() {
#ifdef SPOKE_HAS_DEATH_CALLBACK
  __sanitizer_set_death_callback(ReportRunningInput);
#endif
  for (const int signal : {SIGABRT, SIGILL, SIGFPE}) std::signal(signal, OnAbort);
}

// splitmix64 (Steele, Lea, Flood 2014): the standard library's distributions differ by version.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  // Returns a number uniform enough in [0, bound); `bound` is positive.
  size_t Below(size_t bound) {
    state_ += 0x9E3779B97F4A7C15ULL;
    uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBULL;
    return static_cast<size_t>((mixed ^ (mixed >> 31U)) % bound);
  }

 private:
  uint64_t state_;
};

Input ReadInput(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// Returns a piece of `from`, at most as long as `from`; empty from empty.
Input PieceOf(const Input& from, Random* random) {
  const size_t begin = random->Below(from.size() + 1);
  const size_t length = random->Below(from.size() - begin + 1);
  const auto first = from.begin() + static_cast<std::ptrdiff_t>(begin);
  return {first, first + static_cast<std::ptrdiff_t>(length)};
}

void MutateOnce(const std::vector<Seed>& seeds, Input* input, Random* random) {
  const auto at = [&](size_t index) { return input->begin() + static_cast<std::ptrdiff_t>(index); };
  const auto any_byte = [&] { return static_cast<uint8_t>(random->Below(256)); };
  const size_t index = random->Below(input->size() + 1);
  switch (input->empty() ? 0 : random->Below(6)) {
    case 0:
      input->insert(at(index), any_byte());
      break;
    case 1:
      (*input)[index % input->size()] = any_byte();
      break;
    case 2:
      (*input)[index % input->size()] ^= static_cast<uint8_t>(1U << random->Below(8));
      break;
    case 3:
      input->erase(at(index), at(index + random->Below(input->size() - index + 1)));
      break;
    case 4: {
      const Input piece = PieceOf(*input, random);
      input->insert(at(index), piece.begin(), piece.end());
      break;
    }
    default: {
      const Input piece = PieceOf(seeds[random->Below(seeds.size())].bytes, random);
      input->insert(at(index), piece.begin(), piece.end());
      break;
    }
  }
  if (input->size() > kMaxInputBytes) input->resize(kMaxInputBytes);
}

void Run(const Input& input, const std::string& name) {
  g_running = fmt::format("replay: broken by {}, {} bytes in hexadecimal:\n", name, input.size());
  for (size_t i = 0; i < std::min(input.size(), kShownBytes); ++i) {
    g_running += fmt::format("{:02x}", input[i]);
  }
  g_running += input.size() > kShownBytes ? "...\n" : "\n";
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

std::vector<Seed> ReadSeeds(const std::filesystem::path& path) {
  std::vector<Seed> seeds;
  if (!std::filesystem::is_directory(path)) return {{path.string(), ReadInput(path)}};
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    seeds.push_back({entry.path().filename().string(), ReadInput(entry.path())});
  }
  // A directory has no order of its own.
  std::sort(seeds.begin(), seeds.end(),
            [](const Seed& a, const Seed& b) { return a.file < b.file; });
  return seeds;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "usage: %s CORPUS_DIR|FILE [MUTATIONS [RANDOM_SEED]]\n", argv[0]);
    return 2;
  }
  const bool one_file = std::filesystem::is_regular_file(argv[1]);
  const std::vector<Seed> seeds = ReadSeeds(argv[1]);
  if (seeds.empty()) {
    std::fprintf(stderr, "no seeds in %s\n", argv[1]);
    return 2;
  }
  uint64_t mutations = one_file ? 0 : kDefaultMutations;
  if (argc > 2) mutations = std::strtoull(argv[2], nullptr, 10);
  const uint64_t random_seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : kDefaultRandomSeed;

  ReportInputOnDeath();
  for (const Seed& seed : seeds) Run(seed.bytes, seed.file);
  Random random(random_seed);
  for (uint64_t i = 0; i < mutations; ++i) {
    const Seed& seed = seeds[random.Below(seeds.size())];
    Input input = seed.bytes;
    for (size_t rounds = random.Below(4) + 1; rounds > 0; --rounds) {
      MutateOnce(seeds, &input, &random);
    }
    Run(input, fmt::format("mutation {} of random seed {} (from {})", i, random_seed, seed.file));
  }
  std::printf("%zu seeds and %llu mutations with random seed %llu: ok\n", seeds.size(),
              static_cast<unsigned long long>(mutations),
              static_cast<unsigned long long>(random_seed));
  return 0;
}
