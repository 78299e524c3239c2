// DDP over SCTP (RFC 5043): any octets as a session control message, which survives being written; and the DDP-SSN
// window against a model that knows every message, under any order, duplicates, distances and budgets.
//
// Input: 0 | limit of Private Data (u16) | the message.
//    or: 1 | budget in units of 128 octets | operations: distance from the message that is due (u16), octets (u8).
#include "iwarp/sctp/session_control.h"

#include <set>
#include <vector>

#include "iwarp/sctp/ssn_window.h"
#include "tests/fuzz/check.h"

namespace iwarp::fuzz {
namespace {

void check_message(Script& in) {
  const std::size_t limit = in.u16();
  const std::vector<std::byte> octets(in.rest().begin(), in.rest().end());  // no room behind them
  const auto parsed = sctp::SessionControl::parse(octets, limit);
  if (!parsed) {
    FUZZ_CHECK(parsed.error().code == Errc::kSessionControl || parsed.error().code == Errc::kPrivateDataTooLong);
    return;
  }
  FUZZ_CHECK(parsed->private_data.size() <= sctp::max_ulp_bytes(parsed->function) && parsed->size() <= octets.size());
  FUZZ_CHECK(!parsed->to_string().empty());
  if (sctp::is_enhanced(parsed->function) && !parsed->data) return;  // a Reject that is taken, and never written
  std::vector<std::byte> written(parsed->size());
  parsed->write_to(written);
  FUZZ_CHECK(std::equal(written.begin(), written.end(), octets.begin()));
  FUZZ_CHECK(parsed->function == sctp::Function::kTerminate || written.size() == octets.size());
}

void check_window(Script& in) {
  sctp::HoldBudget budget(std::size_t{in.u8()} * 128);
  std::size_t delivered = 0;
  {
    sctp::SsnWindow window(budget);
    std::set<std::uint64_t> kept;  // by position since the beginning
    std::uint64_t due = 0;
    while (!in.done()) {
      const std::uint16_t distance = in.u16();
      std::vector<std::byte> message(sctp::kSsnBytes + in.u8());
      sctp::write_ssn(sctp::DdpSsn{static_cast<std::uint16_t>(due + distance)}, message);
      const auto taken = window.take({16, false, message});
      if (!taken) {
        const bool impossible = distance >= sctp::SsnWindow::kDefaultAhead || kept.contains(due + distance);
        FUZZ_CHECK(taken.error().code == (impossible ? Errc::kDdpSsn : Errc::kResource));
      } else if (!*taken) {
        FUZZ_CHECK(distance != 0 && kept.insert(due + distance).second);
      } else {
        FUZZ_CHECK(distance == 0);
        ++due;
        ++delivered;
        while (const auto next = window.next()) {
          FUZZ_CHECK(kept.erase(due) == 1 && sctp::parse_ssn(next->bytes)->value == due % 65536);
          ++due;
          ++delivered;
        }
      }
      FUZZ_CHECK(!kept.contains(due) && window.kept() == kept.size() && window.due().value == due % 65536);
      FUZZ_CHECK(budget.held() <= budget.limit() && (budget.held() == 0) == kept.empty());
    }
    FUZZ_CHECK(delivered == due);
  }
  FUZZ_CHECK(budget.held() == 0);
}

}  // namespace
}  // namespace iwarp::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace iwarp::fuzz;
  Script script(as_input(data, size));
  if (script.flag()) {
    check_window(script);
  } else {
    check_message(script);
  }
  return 0;
}
