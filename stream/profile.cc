#include "iwarp/stream/profile.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <type_traits>

namespace iwarp::stream {
namespace {

using Kind = ProfileOption::Kind;

// The object that a member belongs to: stream::Options has some from its base.
template <class Owner, class T>
auto& part(ProfileSettings& settings, T Owner::*) {
  if constexpr (std::is_base_of_v<Owner, mpa::Policy>) {
    return settings.policy;
  } else {
    return settings.stream;
  }
}

template <auto Member>
constexpr ProfileOption option(std::string_view name, Kind kind, std::span<const std::string_view> words = {}) {
  using T = std::remove_reference_t<decltype(part(std::declval<ProfileSettings&>(), Member).*Member)>;
  return {.name = name,
          .kind = kind,
          .get = [](const ProfileSettings& settings) -> std::int64_t {
            ProfileSettings copy = settings;
            const T& value = part(copy, Member).*Member;
            if constexpr (std::is_same_v<T, std::chrono::milliseconds>) {
              return value.count();
            } else {
              return static_cast<std::int64_t>(value);
            }
          },
          .set = [](ProfileSettings& settings,
                    std::int64_t value) { part(settings, Member).*Member = static_cast<T>(value); },
          .words = words};
}

// In the order of their enumerations.
constexpr std::string_view kCrcWords[] = {"on", "prefer-off", "off"};
constexpr std::string_view kMarkersWords[] = {"serve", "ask", "refuse"};
constexpr std::string_view kFpduWords[] = {"emss", "16k", "max"};

constexpr ProfileOption kCrc = option<&mpa::Policy::crc>("crc", Kind::kWord, kCrcWords);
constexpr ProfileOption kMarkers = option<&mpa::Policy::markers>("markers", Kind::kWord, kMarkersWords);
constexpr ProfileOption kPeerToPeer = option<&mpa::Policy::peer_to_peer>("peer_to_peer", Kind::kFlag);
constexpr ProfileOption kPeerToPeerFallback =
    option<&mpa::Policy::allow_peer_to_peer_fallback>("allow_peer_to_peer_fallback", Kind::kFlag);
constexpr ProfileOption kRevision1Fallback =
    option<&mpa::Policy::allow_revision_1_fallback>("allow_revision_1_fallback", Kind::kFlag);
constexpr ProfileOption kRtrWrite = option<&mpa::Policy::rtr_write>("rtr_write", Kind::kFlag);
constexpr ProfileOption kRtrRead = option<&mpa::Policy::rtr_read>("rtr_read", Kind::kFlag);
constexpr ProfileOption kMaxIrd = option<&mpa::Policy::max_ird>("max_ird", Kind::kCount);
constexpr ProfileOption kFpdu = option<&Options::fpdu>("fpdu", Kind::kWord, kFpduWords);
constexpr ProfileOption kEarlyWake = option<&Options::early_wake>("early_wake", Kind::kFlag);
constexpr ProfileOption kUnheardWait = option<&Options::unheard_wait>("unheard_wait", Kind::kMilliseconds);
constexpr ProfileOption kRfc7306 = option<&Options::rfc7306>("rfc7306", Kind::kFlag);

constexpr std::int64_t kYes = 1, kNo = 0;

template <class E>
constexpr std::int64_t place(E word) {
  return static_cast<std::int64_t>(word);
}
constexpr std::int64_t kCrcOn = place(mpa::Policy::Crc::kOn), kMarkersServe = place(mpa::Policy::Markers::kServe),
                       kFpduEmss = place(mpa::FpduPolicy::kEmss);

// The reasons are those of docs/PROFILES.md, where the sources stand: a test compares them.
constexpr ProfileValue kSiw[] = {
    {&kCrc, kCrcOn, "siw asks for no CRC, but uses it when iwarp asks. Where its CRC trap strikes, set prefer-off."},
    {&kMarkers, kMarkersServe, "siw never asks for Markers, and refuses a Request that does."},
    {&kPeerToPeer, kNo,
     "With A=1 the kernel of a siw responder crashes when the connection ends before siw has noticed the RTR."},
    {&kPeerToPeerFallback, kNo, "siw takes A=0 always: a connection that ends early is not to be tried with A=1."},
    {&kRevision1Fallback, kNo,
     "siw takes revision 2 always. With revision 1 it has no IRD and ORD, and its NFS server rejects the connection."},
    {&kMaxIrd, 128, "128 is the greatest IRD and ORD of siw."},
    {&kEarlyWake, kYes,
     "A siw responder overlooks what comes before it has taken over the socket, until more comes: empty RDMA Writes "
     "wake it."},
    {&kUnheardWait, 200, "An end that comes sooner may meet a siw that has not noticed the first FPDUs."},
    {&kRfc7306, kNo, "siw ends the connection at the opcodes of RFC 7306 (Terminate 0/2/6)."},
};

constexpr ProfileValue kCxgb4[] = {
    {&kCrc, kCrcOn, "iw_cxgb4 sets C=1 in every Reply, and in its Requests."},
    {&kMarkers, kMarkersServe, "Its module parameter markers_enabled makes it ask for Markers."},
    {&kPeerToPeer, kYes, "Its default is A=1 (peer2peer), as initiator too."},
    {&kRtrWrite, kNo,
     "Its RTR is Read: as responder it names Read whatever is offered, and as initiator it ends with Terminate 2/0/7 "
     "when a Reply names anything else, or both."},
    {&kRtrRead, kYes, "The only form that it offers and names."},
    {&kRevision1Fallback, kNo,
     "It speaks revision 2. In revision 1 its peer2peer wants a Read as first message, by a private convention that "
     "iwarp does not know."},
    {&kFpdu, kFpduEmss, "T6 receives FPDUs of up to 16 KiB; of T4 and T5 it is not known."},
    {&kEarlyWake, kNo,
     "Its hardware owns the TCP connection from the start, so nothing is overlooked; and it takes no Write as RTR."},
    {&kRfc7306, kNo, "It has Immediate Data with a layout that is not known, and no Atomics of RFC 7306 are known."},
};

constexpr ProfileValue kIrdma[] = {
    {&kCrc, kCrcOn, "irdma sets C=1 in every Request and Reply."},
    {&kMarkers, kMarkersServe, "irdma asks for Markers where its hardware needs them."},
    {&kPeerToPeer, kYes, "As responder irdma resets the connection when A=0."},
    {&kRtrWrite, kYes, "irdma offers Write and Read, and names Write when Read is not offered."},
    {&kRtrRead, kYes, "irdma names Read when it is offered."},
    {&kFpdu, kFpduEmss, "Intel hardware leaves longer FPDUs to a slow path in software."},
    {&kEarlyWake, kNo, "Its hardware owns the TCP connection from the start, so nothing is overlooked."},
};

constexpr ProfileValue kWindowsChelsio[] = {
    {&kCrc, kCrcOn, "siw had to require CRC of this peer."},
    {&kPeerToPeer, kYes, "siw had to ask for the peer-to-peer model."},
    {&kRtrWrite, kNo, "A Write as RTR was found not to work."},
    {&kRtrRead, kYes, "The RTR that is left."},
    {&kRevision1Fallback, kYes, "T404-BT speaks revision 1 only, T520-BT and T520-CR speak 2."},
    {&kFpdu, kFpduEmss, "T6 receives FPDUs of up to 16 KiB; of T4 and T5 it is not known."},
    {&kEarlyWake, kNo,
     "Its hardware owns the TCP connection from the start, so nothing is overlooked; and a wake is a "
     "Write, as the RTR that did not work."},
};

constexpr ProfileValue kWindowsSmbd[] = {
    {&kCrc, kCrcOn, "siw had to require CRC for SMB Direct with Windows."},
    {&kPeerToPeer, kYes, "siw had to ask for the peer-to-peer model."},
    {&kRtrWrite, kNo, "A Write as RTR was found not to work."},
    {&kRtrRead, kYes, "The RTR that is left."},
    {&kRevision1Fallback, kYes,
     "SMB Direct has private data of its own for revision 1, eight octets with IRD and ORD, which the application "
     "has to put there."},
    {&kEarlyWake, kNo, "A wake is a Write, as the RTR that did not work."},
};

constexpr std::array kProfiles = {
    Profile("generic", "any peer: the defaults", {}),
    Profile("linux-siw", "siw, the software iWARP of the Linux kernel", kSiw),
    Profile("linux-cxgb4", "Chelsio T4, T5 and T6 with the Linux driver iw_cxgb4", kCxgb4),
    Profile("linux-irdma", "Intel X722 and E810 with the Linux driver irdma", kIrdma),
    Profile("windows-chelsio", "Chelsio T4 and T5 with the Windows driver", kWindowsChelsio),
    Profile("windows-smbd", "SMB Direct of Windows, whatever the RNIC", kWindowsSmbd),
};

}  // namespace

std::string ProfileOption::text(std::int64_t value) const {
  switch (kind) {
    case Kind::kFlag:
      return value != 0 ? "yes" : "no";
    case Kind::kCount:
      return std::to_string(value);
    case Kind::kMilliseconds:
      return std::to_string(value) + " ms";
    case Kind::kWord:
      break;
  }
  return std::string(words[static_cast<std::size_t>(value)]);
}

void Profile::apply(ProfileSettings& settings) const {
  for (const ProfileValue& v : values_) v.option->set(settings, v.value);
}

void Profile::apply(mpa::Policy& policy) const {
  ProfileSettings all{.policy = policy};
  apply(all);
  policy = all.policy;
}

void Profile::apply(Options& options) const {
  ProfileSettings all{.stream = options};
  apply(all);
  options = all.stream;
}

void Profile::apply(endpoint::Options& options) const {
  Options both{options, {}};
  apply(both);
  options = both;
}

void Profile::apply(MpaOptions& options) const {
  Options both{{}, options};
  apply(both);
  options = both;
}

std::span<const Profile> profiles() {
  return kProfiles;
}

const Profile* find_profile(std::string_view name) {
  const auto* const found = std::ranges::find(kProfiles, name, &Profile::name);
  return found == kProfiles.end() ? nullptr : found;
}

}  // namespace iwarp::stream
