#include "lib/telemetry/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace spoke::telemetry {
namespace {

// The indices of the fields after the name, counted from 0 (proc(5) counts from 1, with two before
// them).
constexpr size_t kUserTicks = 11;
constexpr size_t kSystemTicks = 12;
constexpr size_t kThreads = 17;
constexpr size_t kStartTicks = 19;
constexpr size_t kVirtualBytes = 20;
constexpr size_t kResidentPages = 21;

double OpenDescriptors() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), &::closedir);
  if (folder == nullptr) return 0;
  double count = -3;  // The start leaves out ".", ".." and the folder itself.
  while (::readdir(folder.get()) != nullptr)
    ++count;  // NOLINT(concurrency-mt-unsafe): its own DIR.
  return count;
}

double MaxDescriptors() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<double>(limit.rlim_cur) : 0;
}

double BootSeconds() {
  timespec wall{};
  timespec since_boot{};
  ::clock_gettime(CLOCK_REALTIME, &wall);
  ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
  return static_cast<double>(wall.tv_sec - since_boot.tv_sec) +
         static_cast<double>(wall.tv_nsec - since_boot.tv_nsec) * 1e-9;
}

}  // namespace

absl::StatusOr<ProcessStat> ParseProcessStat(std::string_view text) {
  // The name stands in parentheses, and may have blanks and parentheses of its own.
  const size_t name_end = text.rfind(')');
  const std::string_view behind =
      name_end == std::string_view::npos ? std::string_view() : text.substr(name_end + 1);
  const std::vector<std::string> fields = absl::StrSplit(
      absl::string_view(behind.data(), behind.size()), absl::ByAnyChar(" \n"), absl::SkipEmpty());
  const auto number = [&](size_t index) -> std::optional<uint64_t> {
    uint64_t value = 0;
    if (index >= fields.size() || !absl::SimpleAtoi(fields[index], &value)) return std::nullopt;
    return value;
  };
  const auto user = number(kUserTicks);
  const auto system = number(kSystemTicks);
  const auto threads = number(kThreads);
  const auto start = number(kStartTicks);
  const auto size = number(kVirtualBytes);
  const auto pages = number(kResidentPages);
  if (!user || !system || !threads || !start || !size || !pages) {
    return absl::InvalidArgumentError("not the text of /proc/PID/stat");
  }
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return ProcessStat{.cpu_seconds = static_cast<double>(*user + *system) / ticks,
                     .start_seconds_after_boot = static_cast<double>(*start) / ticks,
                     .resident_bytes = *pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)),
                     .virtual_bytes = *size,
                     .threads = *threads};
}

std::vector<MetricSpec> ProcessMetricSpecs() {
  return {
      CounterSpec("process_cpu_seconds_total", "Processor time used, user and system"),
      GaugeSpec("process_resident_memory_bytes", "Memory in use"),
      GaugeSpec("process_virtual_memory_bytes", "Address space in use"),
      GaugeSpec("process_open_fds", "Open file descriptors"),
      GaugeSpec("process_max_fds", "File descriptors it may have"),
      GaugeSpec("process_threads", "Threads"),
      GaugeSpec("process_start_time_seconds", "When it was started, in seconds since 1970"),
  };
}

void AddProcessMetrics(Metrics& metrics) {
  const Counter cpu = metrics.GetCounter("process_cpu_seconds_total");
  const Gauge resident = metrics.GetGauge("process_resident_memory_bytes");
  const Gauge address_space = metrics.GetGauge("process_virtual_memory_bytes");
  const Gauge open = metrics.GetGauge("process_open_fds");
  const Gauge threads = metrics.GetGauge("process_threads");
  const Gauge start = metrics.GetGauge("process_start_time_seconds");
  metrics.GetGauge("process_max_fds").Set(MaxDescriptors());
  const auto update = [=, boot = BootSeconds()] {
    std::ifstream file("/proc/self/stat");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto stat = ParseProcessStat(text);
    if (!stat.ok()) return;  // The numbers of the last scrape stay.
    cpu.Add(std::max(0.0, stat->cpu_seconds - cpu.value()));
    resident.Set(static_cast<double>(stat->resident_bytes));
    address_space.Set(static_cast<double>(stat->virtual_bytes));
    threads.Set(static_cast<double>(stat->threads));
    start.Set(boot + stat->start_seconds_after_boot);
    open.Set(OpenDescriptors());
  };
  update();
  metrics.BeforeScrape(update);
}

}  // namespace spoke::telemetry
