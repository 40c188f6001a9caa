#include "lib/tls/certificate_holder.h"

#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <span>

#include "lib/base/status.h"
#include "lib/tls/openssl_objects.h"

namespace spoke::tls {
namespace {

using Bytes = std::span<const unsigned char>;
using Long = long;  // NOLINT(google-runtime-int): OpenSSL measures with it.

struct Value {
  int kind = 0;   // V_ASN1_UNIVERSAL and so on.
  int tag = 0;    // Of that kind.
  Bytes whole;    // With tag and length.
  Bytes content;  // Without.
};

// Returns the value that `in` begins with, and takes it off. Errors: kInvalidArgument.
absl::StatusOr<Value> Next(Bytes& in) {
  Value out;
  const unsigned char* at = in.data();
  Long length = 0;
  const int outcome =
      ASN1_get_object(&at, &length, &out.tag, &out.kind, static_cast<Long>(in.size()));
  // The lowest bit stands for a length that is not said, which DER does not have.
  if ((outcome & 0x81) != 0) {
    return OpensslError(absl::StatusCode::kInvalidArgument, "a certificate that is not in DER");
  }
  const auto header = static_cast<size_t>(at - in.data());
  const auto size = static_cast<size_t>(length);
  out.whole = in.first(header + size);
  out.content = in.subspan(header, size);
  in = in.subspan(out.whole.size());
  return out;
}

// Does so with one of the universal type `tag`.
absl::StatusOr<Value> Take(int tag, Bytes& in) {
  ASSIGN_OR_RETURN(const Value out, Next(in));
  if (out.kind != V_ASN1_UNIVERSAL || out.tag != tag) {
    return absl::InvalidArgumentError("a certificate whose parts are not in their places");
  }
  return out;
}

// Makes one of OpenSSL's objects of all of `der`; null: it cannot be read.
template <typename Object, auto Read>
Object Decode(Bytes der) {
  const unsigned char* at = der.data();
  return Object(Read(nullptr, &at, static_cast<Long>(der.size())));
}

absl::StatusOr<absl::Time> NotAfterOf(Bytes validity) {
  RETURN_IF_ERROR(Next(validity).status());  // From when on.
  ASSIGN_OR_RETURN(const Value end, Next(validity));
  const auto time = Decode<Asn1Time, &d2i_ASN1_TIME>(end.whole);
  if (time == nullptr) {
    return OpensslError(absl::StatusCode::kInvalidArgument, "a certificate's dates");
  }
  return TimeOf(time.get());
}

absl::StatusOr<CertificateHolder> HolderOf(Bytes der) {
  ASSIGN_OR_RETURN(Value certificate, Take(V_ASN1_SEQUENCE, der));
  ASSIGN_OR_RETURN(const Value body, Take(V_ASN1_SEQUENCE, certificate.content));
  Bytes rest = body.content;
  Bytes behind = rest;
  ASSIGN_OR_RETURN(const Value version, Next(behind));
  if (version.kind == V_ASN1_CONTEXT_SPECIFIC && version.tag == 0) rest = behind;
  ASSIGN_OR_RETURN(const Value serial, Take(V_ASN1_INTEGER, rest));
  RETURN_IF_ERROR(Take(V_ASN1_SEQUENCE, rest).status());  // How it is signed.
  RETURN_IF_ERROR(Take(V_ASN1_SEQUENCE, rest).status());  // Who has signed it.
  ASSIGN_OR_RETURN(const Value validity, Take(V_ASN1_SEQUENCE, rest));
  ASSIGN_OR_RETURN(const Value subject, Take(V_ASN1_SEQUENCE, rest));

  const auto number = Decode<Asn1Integer, &d2i_ASN1_INTEGER>(serial.whole);
  const auto name = Decode<SubjectName, &d2i_X509_NAME>(subject.whole);
  if (number == nullptr || name == nullptr) {
    return OpensslError(absl::StatusCode::kInvalidArgument, "a certificate's serial or subject");
  }
  CertificateHolder out;
  ASSIGN_OR_RETURN(out.serial, SerialOf(number.get()));
  ASSIGN_OR_RETURN(out.not_after, NotAfterOf(validity.content));
  out.organizations = OrganizationsOf(name.get());
  return out;
}

}  // namespace

absl::StatusOr<CertificateHolder> ReadCertificateHolder(std::string_view pem) {
  ASSIGN_OR_RETURN(const std::string der, CertificateDer(pem));
  auto holder = HolderOf(Bytes(reinterpret_cast<const unsigned char*>(der.data()), der.size()));
  ERR_clear_error();
  return holder;
}

}  // namespace spoke::tls
