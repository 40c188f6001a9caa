// A program that leads and counts up in one record until it no longer leads: for tests that stop
// it. Usage: etcd_holder ENDPOINT NAME. Ends with 3 when it has lost the leadership.
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "ipam-server/store/etcd/etcd_store.h"

int main(int argc, char** argv) {
  using spoke::ipam::CompareAndPut;
  if (argc != 3) return 2;
  spoke::ipam::EtcdOptions options;
  const std::vector<std::string> endpoints = {argv[1]};
  options.access.endpoints = spoke::ipam::etcd::ParseEndpoints(endpoints).value();
  options.leadership.name = argv[2];
  options.leadership.lease = absl::Seconds(2);
  options.leadership.on_lost = [](const absl::Status&) { ::_exit(3); };
  const auto store = spoke::ipam::EtcdStore::Open(options);
  if (!store.ok()) return 1;
  int64_t revision = 0;
  for (int i = 0;; ++i) {
    const std::vector<CompareAndPut> batch = {{"count", std::to_string(i), revision}};
    const auto revisions = (*store)->Commit(batch);
    if (!revisions.ok()) return absl::IsFailedPrecondition(revisions.status()) ? 3 : 1;
    revision = revisions->at(0);
    absl::SleepFor(absl::Milliseconds(5));
  }
}
