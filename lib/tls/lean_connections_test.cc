#include "lib/tls/lean_connections.h"

#include <openssl/ssl.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "lib/tls/openssl_objects.h"
#include "tests/support/temp_dir.h"

namespace spoke::tls {
namespace {

using Context = std::unique_ptr<SSL_CTX, OpensslDeleter<&SSL_CTX_free>>;

Context NewContext() { return Context(SSL_CTX_new(TLS_server_method())); }

TEST(LeanConnections, HaveNoTicketsAndGiveBackTheirBuffers) {
  const Context before = NewContext();
  ASSERT_GT(SSL_CTX_get_num_tickets(before.get()), 0U);
  const absl::Status status = MakeConnectionsLean();
  ASSERT_TRUE(status.ok()) << status;
  const Context since = NewContext();
  EXPECT_EQ(SSL_CTX_get_num_tickets(since.get()), 0U);
  EXPECT_EQ(SSL_CTX_get_options(since.get()), SSL_CTX_get_options(before.get()) | SSL_OP_NO_TICKET);
  EXPECT_EQ(SSL_CTX_get_mode(since.get()),
            SSL_CTX_get_mode(before.get()) | SSL_MODE_RELEASE_BUFFERS);
}

// A system that allows TLS 1.3 alone goes on doing so.
TEST(LeanConnections, LeaveOtherDefaultsOfTheSystemAlone) {
  const testing_support::TempDir dir;
  const std::string path = dir.path() + "/openssl.cnf";
  std::ofstream(path) << "openssl_conf = o\n[o]\nssl_conf = s\n[s]\nsystem_default = d\n"
                         "[d]\nMinProtocol = TLSv1.3\nOptions = PrioritizeChaCha\n";
  const auto check = [&] {
    ::setenv("OPENSSL_CONF", path.c_str(), 1);
    if (!MakeConnectionsLean().ok()) ::_Exit(1);
    const Context context = NewContext();
    if (SSL_CTX_get_min_proto_version(context.get()) != TLS1_3_VERSION) ::_Exit(2);
    if ((SSL_CTX_get_options(context.get()) & SSL_OP_PRIORITIZE_CHACHA) == 0) ::_Exit(3);
    if (SSL_CTX_get_num_tickets(context.get()) != 0) ::_Exit(4);
    ::_Exit(0);
  };
  EXPECT_EXIT(check(), testing::ExitedWithCode(0), "");
}

TEST(LeanConnections, NeedNoConfigurationOfTheSystem) {
  const auto check = [] {
    ::setenv("OPENSSL_CONF", "/nonexistent/openssl.cnf", 1);
    if (!MakeConnectionsLean().ok()) ::_Exit(1);
    ::_Exit(SSL_CTX_get_num_tickets(NewContext().get()) == 0 ? 0 : 2);
  };
  EXPECT_EXIT(check(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace spoke::tls
