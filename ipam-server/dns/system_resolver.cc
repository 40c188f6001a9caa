#include "ipam-server/dns/system_resolver.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace spoke::ipam {
namespace {

// Whether `from` is of IPv4 or IPv6.
bool ToAddress(const sockaddr& from, ip::Address& out) {
  if (from.sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &from, sizeof(v4));
    out = ip::Address::V4(ntohl(v4.sin_addr.s_addr));
    return true;
  }
  if (from.sa_family != AF_INET6) return false;
  sockaddr_in6 v6{};
  std::memcpy(&v6, &from, sizeof(v6));
  std::string_view bytes(reinterpret_cast<const char*>(&v6.sin6_addr), sizeof(v6.sin6_addr));
  // A packet to ::ffff:10.0.0.1 goes to 10.0.0.1.
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) bytes.remove_prefix(12);
  const auto address = ip::Address::FromBytes(bytes);
  if (address.ok()) out = *address;
  return address.ok();
}

std::vector<ip::Address> AskSystem(const std::string& name) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;  // Otherwise each address comes once for each type.
  addrinfo* answer = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &answer) != 0) return {};
  std::vector<ip::Address> addresses;
  for (const addrinfo* info = answer; info != nullptr; info = info->ai_next) {
    ip::Address address;
    if (ToAddress(*info->ai_addr, address)) addresses.push_back(address);
  }
  ::freeaddrinfo(answer);
  return addresses;
}

// What one caller has asked for. Its threads share it with the caller, who may leave first.
struct Question {
  absl::Mutex mutex;
  std::vector<std::string> names ABSL_GUARDED_BY(mutex);  // Names no thread has taken yet.
  size_t open ABSL_GUARDED_BY(mutex) = 0;                 // Names without an answer.
  bool over ABSL_GUARDED_BY(mutex) = false;               // True: nobody waits.
  HostAddresses found ABSL_GUARDED_BY(mutex);
};

void Answer(Question& question, const SystemResolver::LookUp& look_up) {
  absl::MutexLock lock(&question.mutex);
  while (!question.over && !question.names.empty()) {
    const std::string name = std::move(question.names.back());
    question.names.pop_back();
    question.mutex.Unlock();
    std::vector<ip::Address> addresses = look_up(name);
    std::sort(addresses.begin(), addresses.end());
    addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
    question.mutex.Lock();
    --question.open;
    if (!question.over && !addresses.empty()) question.found[name] = std::move(addresses);
  }
}

}  // namespace

struct SystemResolver::Threads {
  explicit Threads(LookUp function) : look_up(std::move(function)) {}

  // Whether there is room for one more.
  bool Enter() {
    absl::MutexLock lock(&mutex);
    if (running == kMaxThreads) return false;
    ++running;
    return true;
  }
  void Leave() {
    absl::MutexLock lock(&mutex);
    --running;
  }

  const LookUp look_up;
  absl::Mutex mutex;
  int running ABSL_GUARDED_BY(mutex) = 0;
};

SystemResolver::SystemResolver() : SystemResolver(AskSystem) {}

SystemResolver::SystemResolver(LookUp look_up)
    : threads_(std::make_shared<Threads>(std::move(look_up))) {}

SystemResolver::~SystemResolver() = default;

HostAddresses SystemResolver::Resolve(const std::vector<std::string>& names, absl::Duration limit) {
  const auto question = std::make_shared<Question>();
  {
    absl::MutexLock lock(&question->mutex);
    question->names = names;
    question->open = names.size();
  }
  size_t started = 0;
  while (started < names.size() && threads_->Enter()) {
    try {
      std::thread([threads = threads_, question] {
        Answer(*question, threads->look_up);
        threads->Leave();
      }).detach();
      ++started;
    } catch (const std::system_error&) {  // The machine has no thread left.
      threads_->Leave();
      break;
    }
  }
  absl::MutexLock lock(&question->mutex);
  if (started > 0) {
    question->mutex.AwaitWithTimeout(
        absl::Condition(
            +[](Question* it) ABSL_NO_THREAD_SAFETY_ANALYSIS { return it->open == 0; },
            question.get()),
        limit);
  }
  question->over = true;
  return std::move(question->found);
}

}  // namespace spoke::ipam
