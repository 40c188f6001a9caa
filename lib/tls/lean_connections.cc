#include "lib/tls/lean_connections.h"

#include <openssl/conf.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <string_view>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/tls/openssl_objects.h"

namespace spoke::tls {
namespace {

using Configuration = std::unique_ptr<CONF, OpensslDeleter<&NCONF_free>>;

// Returns the lines that `system` has for all of TLS; none where it has no such section.
std::string DefaultsOf(const CONF* system) {
  const char* section = nullptr;
  for (const char* name : {"openssl_conf", "ssl_conf", "system_default"}) {
    section = NCONF_get_string(system, section, name);
    if (section == nullptr) return "";
  }
  std::string lines;
  const STACK_OF(CONF_VALUE)* values = NCONF_get_section(system, section);
  for (int i = 0; i < sk_CONF_VALUE_num(values); ++i) {
    const CONF_VALUE* value = sk_CONF_VALUE_value(values, i);
    lines += fmt::format("{} = {}\n", value->name, value->value);
  }
  return lines;
}

std::string SystemDefaults() {
  const Configuration system(NCONF_new(nullptr));
  char* const path = CONF_get1_default_config_file();
  if (system == nullptr || path == nullptr) return "";
  const bool is_read = NCONF_load(system.get(), path, nullptr) == 1;
  OPENSSL_free(path);
  return is_read ? DefaultsOf(system.get()) : "";
}

// Is called by OpenSSL for each context that is made; SSL_CTX_new() does not set the mode after
// that. NOLINTNEXTLINE(readability-function-size): CRYPTO_EX_new() is so.
void ReleaseBuffers(void* context, void* /*data*/, CRYPTO_EX_DATA* /*all*/, int /*index*/,
                    long /*argument*/,  // NOLINT(google-runtime-int)
                    void* /*pointer*/) {
  SSL_CTX_set_mode(static_cast<SSL_CTX*>(context), SSL_MODE_RELEASE_BUFFERS);
}

absl::Status LeaveOutTickets() {
  // What stands before a name's dot only makes it another one of the section.
  const std::string text = fmt::format(
      "openssl_conf = modules\n[modules]\nssl_conf = tls\n[tls]\nsystem_default = all\n[all]\n{}"
      "spoke.Options = -SessionTicket\nspoke.NumTickets = 0\n",
      SystemDefaults());
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  const Configuration ours(NCONF_new(nullptr));
  const bool is_taken = bio != nullptr && ours != nullptr &&
                        NCONF_load_bio(ours.get(), bio.get(), nullptr) == 1 &&
                        CONF_modules_load(ours.get(), nullptr, 0) == 1;
  if (!is_taken) {
    return OpensslError(absl::StatusCode::kInternal, "have OpenSSL hand out no session tickets");
  }
  ERR_clear_error();
  return absl::OkStatus();
}

}  // namespace

absl::Status MakeConnectionsLean() {
  // What the system has is read first, as it would be with the first use: what follows replaces its
  // section for TLS.
  OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CONFIG, nullptr);
  RETURN_IF_ERROR(LeaveOutTickets());
  // gRPC makes the contexts, and has no option for this.
  if (SSL_CTX_get_ex_new_index(0, nullptr, &ReleaseBuffers, nullptr, nullptr) < 0) {
    return OpensslError(absl::StatusCode::kInternal, "have OpenSSL give back its buffers");
  }
  return absl::OkStatus();
}

}  // namespace spoke::tls
