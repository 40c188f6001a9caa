// Decides who may see the dashboard. Pure.
//
// The dashboard shows what its operator's certificate may see, and anybody on the machine may
// connect to its port. Three things keep others out: a token that only the operator was told, a
// path that only they know either (browsers send the cookies of one port to all ports of a host,
// but only below the cookie's path), and names of the host that no other site can have (so that a
// site whose name leads to 127.0.0.1 is not taken for this one).
#pragma once

#include <string>
#include <string_view>

namespace spoke::ctl {

// The secrets of one run of the dashboard, as hexadecimal digits.
struct DashboardKeys {
  std::string place;  // The first part of every path.
  std::string token;
};

// The parts of a request that decide. Borrowed.
struct PageRequest {
  std::string_view method;
  std::string_view path;        // The path without the query: "/PLACE/api/fleet".
  std::string_view token;       // The query's token; empty: none.
  std::string_view host;        // The header Host.
  std::string_view cookie;      // The header Cookie.
  std::string_view fetch_site;  // The header Sec-Fetch-Site; empty: the browser sends none.
};

enum class Admission {
  kShown,
  kLogIn,        // The token is right: give the cookie, and lead to the page.
  kWrongHost,    // It was asked by a name that is not this machine's own.
  kWrongPlace,   // The path is not below the place.
  kWrongMethod,  // Neither GET nor HEAD: nothing can be changed here.
  kWrongOrigin,  // A page of another site, or of another port, asks.
  kWrongToken,   // Neither the token nor the cookie is right.
};

Admission Admit(const DashboardKeys& keys, const PageRequest& request);

// Returns the path below the place: "api/fleet"; empty for the page itself, and for a path that is
// not below it.
std::string_view PathBelow(const DashboardKeys& keys, std::string_view path);

// Returns the value of Set-Cookie.
std::string CookieOf(const DashboardKeys& keys);

// Returns "/PLACE/".
std::string RootOf(const DashboardKeys& keys);

}  // namespace spoke::ctl
