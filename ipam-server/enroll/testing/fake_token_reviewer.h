// A cluster of tokens, pods and nodes in memory. Tests only.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/enroll/token_reviewer.h"
#include "lib/base/dns_name.h"

namespace spoke::ipam {

// Thread-safe.
class FakeTokenReviewer final : public TokenReviewer {
 public:
  // Makes `token` tell `facts` to who asks for one of their audiences.
  void AddToken(const std::string& token, const TokenFacts& facts) {
    absl::MutexLock lock(&mutex_);
    tokens_[token] = facts;
  }
  void AddPod(const PodFacts& pod) {
    absl::MutexLock lock(&mutex_);
    pods_[{pod.k8s_namespace, pod.name}] = pod;
  }
  void AddNode(const NodeFacts& node) {
    absl::MutexLock lock(&mutex_);
    nodes_[node.name] = node;
  }
  // Makes all calls end with it until it is OK again.
  void FailWith(const absl::Status& failure) {
    absl::MutexLock lock(&mutex_);
    failure_ = failure;
  }

  absl::StatusOr<TokenFacts> Review(const std::string& token,
                                    const std::string& audience) override {
    absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return failure_;
    const auto it = tokens_.find(token);
    if (it == tokens_.end()) return TokenFacts{.error = "invalid bearer token"};
    TokenFacts facts = it->second;
    if (!facts.authenticated) return TokenFacts{.error = facts.error};
    for (const std::string& good : it->second.audiences) {
      if (good != audience) continue;
      facts.audiences = {audience};
      return facts;
    }
    return TokenFacts{.error = "token audiences are invalid for the target audiences"};
  }

  absl::StatusOr<PodFacts> ReadPod(const std::string& k8s_namespace,
                                   const std::string& name) override {
    absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return failure_;
    if (!base::IsDnsName(k8s_namespace) || !base::IsDnsName(name)) {
      return absl::InvalidArgumentError("no pod's name");
    }
    const auto it = pods_.find({k8s_namespace, name});
    if (it == pods_.end()) return absl::NotFoundError("pods \"" + name + "\" not found");
    return it->second;
  }

  absl::StatusOr<NodeFacts> ReadNode(const std::string& name) override {
    absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return failure_;
    if (!base::IsDnsName(name)) return absl::InvalidArgumentError("no node's name");
    const auto it = nodes_.find(name);
    if (it == nodes_.end()) return absl::NotFoundError("nodes \"" + name + "\" not found");
    return it->second;
  }

 private:
  absl::Mutex mutex_;
  std::map<std::string, TokenFacts> tokens_ ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<std::string, std::string>, PodFacts> pods_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, NodeFacts> nodes_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::ipam
