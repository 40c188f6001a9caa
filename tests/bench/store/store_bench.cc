// Measures how many records a second the SQLite store commits, against the plain append and
// fdatasync of as many bytes in the same run; and how long it takes to open, list, check and back
// up.
//
//   store_bench [DIRECTORY [RECORDS [BYTES]]]     a directory on the disk to measure; the node
//   count
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fmt/core.h"
#include "ipam-server/store/sqlite_store.h"
#include "lib/base/check.h"
#include "lib/os/unique_fd.h"

namespace spoke::ipam {
namespace {

constexpr int kRounds = 3;
constexpr double kSecondsEach = 1.0;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double SecondsOf(const std::function<void()>& work) {
  const double start = Now();
  work();
  return Now() - start;
}

double CpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Sample {
  double per_second = 0;  // The commits a second.
  double p50_ms = 0;
  double p99_ms = 0;
  double worst_ms = 0;
  // The CPU time of all threads, for each call: steadier than time on a shared machine.
  double cpu_us = 0;
};

// Returns the round in the middle.
Sample Median(std::vector<Sample> samples) {
  std::sort(samples.begin(), samples.end(),
            [](const Sample& a, const Sample& b) { return a.per_second < b.per_second; });
  return samples[samples.size() / 2];
}

Sample Repeat(const std::function<void()>& work) {
  std::vector<double> times;
  double total = 0;
  const double cpu = CpuSeconds();
  while (total < kSecondsEach) {
    times.push_back(SecondsOf(work));
    total += times.back();
  }
  std::sort(times.begin(), times.end());
  const size_t n = times.size();
  return {.per_second = static_cast<double>(n) / total,
          .p50_ms = 1e3 * times[n / 2],
          .p99_ms = 1e3 * times[n * 99 / 100],
          .worst_ms = 1e3 * times.back(),
          .cpu_us = 1e6 * (CpuSeconds() - cpu) / static_cast<double>(n)};
}

class Bench {
 public:
  Bench(const std::string& directory, size_t records, size_t bytes)
      : directory_(directory), bytes_(bytes), revisions_(records, 0) {}

  void Run() {
    Open();
    for (size_t at = 0; at < revisions_.size(); at += 1000) {
      std::vector<size_t> rows;
      for (size_t i = at; i < std::min(at + 1000, revisions_.size()); ++i) rows.push_back(i);
      Commit(rows);
    }
    fmt::print("{} records of about {} bytes\n\n", revisions_.size(), bytes_);
    fmt::print("{:>8} {:>12} {:>12} {:>9} {:>9} {:>9} {:>14} {:>7} {:>14}\n", "batch", "commits/s",
               "records/s", "p50 ms", "p99 ms", "worst ms", "raw writes/s", "ratio",
               "CPU us/record");
    for (const size_t batch : {1U, 16U, 64U, 512U, 2000U}) CompareBatch(batch);
    const StoreStats stats = store_->Stats();
    fmt::print("\ncheckpoints {}, commits that waited for one {}, log {} KiB, file {} KiB\n",
               stats.checkpoints, stats.waited_for_log, stats.log_bytes / 1024,
               stats.file_bytes / 1024);
    Rest();
  }

 private:
  void Open() {
    auto store = OpenSqliteStore(directory_ + "/bench.db");
    if (!store.ok()) fmt::print(stderr, "{}\n", std::string(store.status().message()));
    CHECK(store.ok(), "the store opens");
    store_ = *std::move(store);
  }

  void Commit(const std::vector<size_t>& rows) {
    std::vector<CompareAndPut> batch;
    for (const size_t i : rows) {
      // Lengths vary by a tenth, as records do when assignments come and go.
      batch.push_back({.key = fmt::format("node/worker-{:06}/4c4c4544-0050-3510-8030-{:012}", i, i),
                       .value = std::string(bytes_ * (95 + random_() % 11) / 100, 'x'),
                       .expected = revisions_[i]});
    }
    const auto revisions = store_->Commit(batch);
    if (!revisions.ok()) fmt::print(stderr, "{}\n", std::string(revisions.status().message()));
    CHECK(revisions.ok(), "a commit succeeds");
    for (size_t i = 0; i < rows.size(); ++i) revisions_[rows[i]] = revisions->at(i);
  }

  std::vector<size_t> RandomRows(size_t count) {
    std::map<size_t, bool> chosen;
    while (chosen.size() < std::min(count, revisions_.size())) {
      chosen[random_() % revisions_.size()] = true;
    }
    std::vector<size_t> rows;
    for (const auto& [row, unused] : chosen) rows.push_back(row);
    return rows;
  }

  void CompareBatch(size_t batch) {
    std::vector<Sample> ours;
    std::vector<Sample> raw;
    for (int round = 0; round < kRounds; ++round) {
      ours.push_back(Repeat([&] { Commit(RandomRows(batch)); }));
      const std::string path = directory_ + "/raw";
      const os::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
      CHECK(file.valid(), "a file can be made");
      const std::string bytes(batch * bytes_, 'x');
      raw.push_back(Repeat([&] {
        CHECK(::write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
              "a whole write");
        CHECK(::fdatasync(file.get()) == 0, "a sync");
      }));
      std::filesystem::remove(path);
    }
    const Sample our = Median(ours);
    const Sample plain = Median(raw);
    fmt::print(
        "{:>8} {:>12.0f} {:>12.0f} {:>9.2f} {:>9.2f} {:>9.2f} {:>14.0f} {:>7.2f} {:>14.1f}\n",
        batch, our.per_second, our.per_second * static_cast<double>(batch), our.p50_ms, our.p99_ms,
        our.worst_ms, plain.per_second, our.per_second / plain.per_second,
        our.cpu_us / static_cast<double>(batch));
  }

  void Rest() {
    size_t bytes = 0;
    const double list = SecondsOf([&] {
      CHECK(store_
                ->List("", [&](std::string_view,
                               const StoredRecord& record) { bytes += record.value.size(); })
                .ok(),
            "a list succeeds");
    });
    const double check =
        SecondsOf([&] { CHECK(store_->CheckIntegrity().ok(), "the store is sound"); });
    // Commits go on meanwhile, in a real server; here only the time of the copy is of interest.
    const double backup = SecondsOf(
        [&] { CHECK(store_->Backup(directory_ + "/backup.db").ok(), "a backup succeeds"); });
    const double close = SecondsOf([&] { store_.reset(); });
    const double open = SecondsOf([&] { Open(); });
    fmt::print(
        "list {:.3f} s ({} MiB), check {:.3f} s, backup {:.3f} s, close {:.3f} s, open {:.3f} s\n",
        list, bytes >> 20, check, backup, close, open);
  }

  const std::string directory_;
  const size_t bytes_;
  std::mt19937_64 random_{1};
  std::vector<int64_t> revisions_;
  std::unique_ptr<Store> store_;
};

}  // namespace
}  // namespace spoke::ipam

int main(int argc, char** argv) {
  std::string directory = argc > 1 ? argv[1] : std::filesystem::temp_directory_path().string();
  directory += "/store-bench-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) {
    std::perror(directory.c_str());
    return 1;
  }
  const size_t records = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 7500;
  const size_t bytes = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 2048;
  spoke::ipam::Bench(directory, records, bytes).Run();
  std::filesystem::remove_all(directory);
  return 0;
}
