#include "tools/probe/rules.h"

#include <array>

namespace iwarp::tools::probe {
namespace {

constexpr std::array<RuleText, static_cast<std::size_t>(Rule::kCount)> kRules = {{
    {"RFC5044-7.1.1-5", "MUST", "a Reply begins with the Reply Key"},
    {"RFC6581-6-4", "MUST", "reserved bits are sent as zero"},
    {"RFC5044-7.1.1-24", "MUST", "Rev names a revision that exists, and not above that of the Request"},
    {"RFC5044-7.1.1-29", "MUST", "PD_Length is the number of octets that follow"},
    {"RFC5044-7.1.1-34", "MUST", "Private Data is at most 512 octets long"},
    {"RFC5044-7.1.2-18", "MUST", "nothing follows the Reply before the Initiator's first FPDU"},
    {"RFC5044-7.1.2-8", "SHOULD", "a well-formed Request is answered by a Reply"},
    {"RFC5044-7.1.2-28", "MUST", "there is room for the Private Data that PD_Length announces"},
    {"RFC5044-7.1.1-26", "MUST", "a revision that it cannot interoperate with makes it close"},
    {"RFC5044-4.3-2", "MUST", "every implementation can send Markers to a peer that asks for them"},
    {"RFC5044-4.4-1", "MUST", "CRCs are implemented: a peer that wants them gets them"},
    {"RFC5044-7.1.1-16", "MUST", "with C=1 in either startup frame FPDUs have a valid CRC"},
    {"RFC6581-6-5", "MUST NOT", "reserved bits are not checked"},
    {"RFC6581-6-9", "MUST", "Requests of revision 1 are taken"},
    {"RFC6581-10-6", "MUST", "unenhanced Requests are taken"},
    {"RFC6581-10-8", "MUST", "an enhanced Request gets an enhanced Reply"},
    {"RFC6581-10-4", "MUST", "an unenhanced Request gets an unenhanced Reply"},
    {"RFC6581-6-7", "MUST", "an enhanced frame has revision 2 or higher"},
    {"RFC6581-6-11", "MUST", "with S=1 the Private Data begins with the enhanced data"},
    {"RFC6581-9.2-11", "MUST", "A=1 is answered by A=1"},
    {"RFC6581-9.2-23", "MUST", "A=0 is answered by A=0"},
    {"RFC6581-9.2-24", "MUST", "with A=0 the flags B, C and D are zero"},
    {"RFC6581-9.2-16", "MUST", "with A=1 at least one RTR form is named"},
    {"RFC6581-9.2-12", "SHOULD", "each offered RTR form that it supports is named"},
    {"RFC6581-9.1-12", "MUST", "its ORD is at most the IRD of the Request"},
    {"RFC6581-9.1-24", "MUST", "ORD 16383 is answered by IRD 16383"},
    {"RFC6581-9.1-27", "MUST", "IRD 16383 is answered by ORD 16383"},
    {"RFC6581-9.2-6", "spec", "a Read RTR needs an IRD of at least 1, and gets an empty Read Response"},
    {"RFC6581-1.1-2", "spec", "each RTR form that was offered and named is taken"},
    {"RFC8797-4-8", "MUST", "reserved bits of the RPC-over-RDMA private data are zero"},
    {"RFC5044-7.1.1-2", "MUST", "a Request begins with the Request Key"},
    {"RFC5044-7.1.1-24", "MUST", "Rev names a revision that exists"},
    {"RFC5044-7.1.1-19", "spec", "R is zero in a Request"},
    {"RFC5044-7.1.2-13", "MUST", "nothing follows the Request before the Reply has come"},
    {"RFC6581-9.2-9", "MUST", "with A=1 each RTR form that it supports is offered"},
    {"RFC6581-9.2-17", "MUST", "one of the RTR forms that were offered and named is sent"},
    {"RFC6581-5-2", "MUST NOT", "no other FPDU leaves before the RTR"},
    {"RFC6581-9.2-18", "MUST", "a Terminate tells that there is no common RTR form"},
    {"RFC6581-9.2-20", "MUST", "that Terminate says 2/0/7"},
    {"RFC6581-9.2-19", "MUST", "the connection ends after that Terminate"},
    {"RFC6581-9.1-16", "MUST", "its ORD is at most the IRD of the Reply"},
    {"RFC6581-9.1-19", "MUST", "a Terminate for an ORD above its IRD says 2/0/6"},
    {"RFC5044-7.1.2-17", "SHOULD", "it goes on after a Reply that accepts"},
    {"RFC5044-7.1.2-16", "MUST", "it leaves MPA after R=1: no FPDU follows"},
    {"RFC5044-7.1.1-7", "MUST", "another Key than that of a Reply makes it close"},
    {"RFC5044-7.1.2-14", "MUST", "an improperly formatted Reply makes it close"},
    {"RFC5043-8-4", "MUST", "it asks for as many streams one way as the other"},
    {"RFC5043-10-1", "MUST", "all Data Chunks are unordered"},
    {"RFC5043-5.2-1", "spec", "Data Chunks have the PPID of a DDP Segment (16) or of session control (17)"},
    {"RFC5043-5.2.1-1", "spec", "each message begins with a DDP-SSN of 16 bits"},
    {"RFC5043-5.2.3-1", "spec", "a session control message has a DDP-SSN and a Function Code"},
    {"RFC5043-5.2.3-2", "spec", "Function Codes are 1 to 4; RFC 6581 adds 5 to 7"},
    {"RFC5043-5.2.3-5", "MUST NOT", "Private Data is never longer than 512 octets"},
    {"RFC5043-5.2.3-6", "MUST NOT", "a Terminate has no Private Data"},
    {"RFC6581-7-21", "spec", "an enhanced Accept has the 4 octets of enhanced data"},
    {"RFC5043-6.1-1", "spec", "the first message of each direction of a session has DDP-SSN 0"},
    {"RFC5043-5.2.1-2", "MUST", "the DDP-SSN is one more for each message of a stream"},
    {"RFC5043-6-2", "MUST NOT", "the DDP-SSNs of a session have no gap"},
    {"RFC5043-6.1-2", "MUST", "in the order of the DDP-SSN a session fits a legal sequence"},
    {"RFC5043-6.1-3", "MUST", "what fits no legal sequence ends the session"},
    {"RFC5043-5.2.3-7", "SHOULD", "an Initiate is reported to the ULP, which accepts or rejects it"},
    {"RFC6581-7-22", "spec", "like is answered with like: enhanced with enhanced, plain with plain"},
    {"RFC6581-7-3", "MUST", "an enhanced Initiate is refused with an Enhanced Reject"},
    {"RFC6581-10-13", "spec", "plain Initiates are taken as well as enhanced ones"},
    {"RFC5043-9-3", "spec", "a session control message of full length gets through: 512 octets of Private Data"},
    {"RFC5043-11.3-5", "spec", "the end of a session leaves the association and its other sessions alone"},
}};

}  // namespace

const RuleText& text(Rule rule) {
  return kRules[static_cast<std::size_t>(rule)];
}

std::string section(std::string_view id) {
  const std::size_t first = id.find('-'), last = id.rfind('-');
  return "RFC " + std::string(id.substr(3, first - 3)) + " s" + std::string(id.substr(first + 1, last - first - 1));
}

}  // namespace iwarp::tools::probe
