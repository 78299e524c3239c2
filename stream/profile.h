// Peer profiles: what is set differently, or kept on purpose, for a kind of peer that is known. Named by the driver of
// the peer, because drivers differ and RFCs do not: "linux-siw" is the kernel's software iWARP, "generic" any peer at
// all. Each value has its evidence in docs/PROFILES.md. Constants; all functions are thread-safe.
//
// A profile is a beginning: apply it first and set what you know better afterwards, which then stands.
//
//   const stream::Profile* siw = stream::find_profile("linux-siw");
//   siw->apply(connect_options.policy);   // or ListenOptions::policy
//   siw->apply(connect_options.mpa);      // or AcceptOptions::mpa
//   siw->apply(queue_pair_options.stream);
//   connect_options.policy.ird = 8;       // wins
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "iwarp/mpa/policy.h"
#include "iwarp/stream/connection.h"

namespace iwarp::stream {

// All that a profile can set.
struct ProfileSettings {
  mpa::Policy policy{};  // of a connection or a listener
  Options stream{};      // of a queue pair, and how it is driven

  friend bool operator==(const ProfileSettings&, const ProfileSettings&) = default;
};

// An option that profiles set: a member of mpa::Policy or stream::Options.
struct ProfileOption {
  // Of its values: yes or no, a count, milliseconds, or a word such as "emss".
  enum class Kind : std::uint8_t { kFlag, kCount, kMilliseconds, kWord };

  std::string_view name;    // the member: "peer_to_peer"
  Kind kind = Kind::kFlag;  // what its values mean
  // The value in settings, as a number: 0 and 1 of a flag, the place of a word in the enumeration.
  std::int64_t (*get)(const ProfileSettings& settings) = nullptr;
  // Puts it there.
  void (*set)(ProfileSettings& settings, std::int64_t value) = nullptr;
  std::span<const std::string_view> words{};  // of kWord: all of them

  // As the command line and docs/PROFILES.md write it: "yes", "128", "200 ms", "emss".
  [[nodiscard]] std::string text(std::int64_t value) const;
};

// One value of a profile.
struct ProfileValue {
  const ProfileOption* option = nullptr;  // what is set, never null
  std::int64_t value = 0;                 // to what
  std::string_view reason;                // one sentence or two; the sources are in docs/PROFILES.md

  // The value, as ProfileOption::text().
  [[nodiscard]] std::string text() const { return option->text(value); }
  // Of the library. Commands may have others: `iwarp gateway` asks for A=0 first.
  [[nodiscard]] std::int64_t default_value() const { return option->get({}); }
};

class Profile {
 public:
  // What it is given must live as long: these are constants of the program.
  constexpr Profile(std::string_view name, std::string_view peer, std::span<const ProfileValue> values)
      : name_(name), peer_(peer), values_(values) {}

  // "linux-siw"
  [[nodiscard]] constexpr std::string_view name() const { return name_; }
  // For which peer, in a line.
  [[nodiscard]] constexpr std::string_view peer() const { return peer_; }
  // What it sets; empty for "generic". Values that equal the default are there on purpose: they are to stay.
  [[nodiscard]] constexpr std::span<const ProfileValue> values() const { return values_; }
  // Sets these, and leaves the rest alone. The result is valid if what it was given is.
  void apply(ProfileSettings& settings) const;
  // The part of it that is MPA's. Where the policy is of a connection, or of a listener.
  void apply(mpa::Policy& policy) const;
  // The part of it that is the stream's, whole or in its two parts: QueuePair::Options::stream, ConnectOptions::mpa.
  void apply(Options& options) const;
  void apply(endpoint::Options& options) const;
  void apply(MpaOptions& options) const;

 private:
  std::string_view name_, peer_;
  std::span<const ProfileValue> values_;
};

// All profiles, "generic" first.
[[nodiscard]] std::span<const Profile> profiles();
// The profile of that name, which lives for ever; nullptr: there is none.
[[nodiscard]] const Profile* find_profile(std::string_view name);

}  // namespace iwarp::stream
