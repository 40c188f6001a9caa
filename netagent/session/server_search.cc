#include "netagent/session/server_search.h"

#include <algorithm>

namespace spoke::netagent {

void ServerSearch::BeginRound(size_t first, std::optional<size_t> without, absl::Time now) {
  round_ = true;
  rest_.clear();
  last_.reset();
  due_ = now;
  for (size_t i = 0; i < servers(); ++i) {
    const size_t server = (first + i) % servers();
    if (!dialled_[server] && server != without) rest_.push_back(server);
  }
}

std::optional<size_t> ServerSearch::Next(absl::Time now) {
  if (!round_ || now < due_ || rest_.empty()) return std::nullopt;
  last_ = rest_.front();
  rest_.pop_front();
  dialled_[*last_] = true;
  due_ = now + kHeadStart;
  return last_;
}

bool ServerSearch::EndRound(absl::Time now) {
  if (!round_ || now < due_ || !rest_.empty()) return false;
  round_ = false;
  return true;
}

bool ServerSearch::OnFailed(size_t server, absl::Time now, double random) {
  if (!dialled_[server]) return false;
  dialled_[server] = false;
  if (!rest_.empty()) {
    due_ = std::min(due_, now + kStep * random);
  } else if (server == last_) {
    due_ = std::min(due_, now);
  }
  return true;
}

bool ServerSearch::Stop() {
  const bool any = round_ || std::find(dialled_.begin(), dialled_.end(), true) != dialled_.end();
  round_ = false;
  rest_.clear();
  std::fill(dialled_.begin(), dialled_.end(), false);
  return any;
}

}  // namespace spoke::netagent
