// A passive SCTP peer in UDP whose messages a test makes by hand, in a thread of its own.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "iwarp/sctp_cm/stack.h"
#include "tests/tools/probe_sctp_answers.h"

namespace iwarp::test {

class SctpRawServer {
 public:
  // Called with each message that comes.
  using Behave = std::function<void(sctp_cm::Transport& to, sctp::StreamId stream, const SctpMessage& message)>;

  // Serves associations with `behave` until destroyed; throws where there is no SCTP to be had.
  explicit SctpRawServer(Behave behave, const sctp_cm::TransportOptions& options = {},
                         const sctp_cm::StackOptions& of_all = {})
      : behave_(std::move(behave)) {
    stack_ = sctp_cm::Stack::make(io_, of_all).value();
    listener_ = stack_
                    ->listen({boost::asio::ip::make_address("127.0.0.1"), 0}, 0, options,
                             [this](std::shared_ptr<sctp_cm::Association> association) {
                               users_.push_back(std::make_unique<User>(*this, association));
                               association->set_user(users_.back().get());
                             })
                    .value();
    address_ = "127.0.0.1:" + std::to_string(listener_->local().port());
    thread_ = std::thread([this] { io_.run(); });
  }
  ~SctpRawServer() {
    io_.stop();
    thread_.join();
    listener_.reset();
    stack_.reset();
  }
  SctpRawServer(const SctpRawServer&) = delete;
  SctpRawServer& operator=(const SctpRawServer&) = delete;

  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  struct User final : sctp_cm::TransportUser {
    User(SctpRawServer& server, std::shared_ptr<sctp_cm::Transport> transport)
        : server_(server), transport_(std::move(transport)) {}
    void on_up(const sctp_cm::TransportUp&) override {}
    void on_message(sctp::StreamId stream, const sctp::Message& m) override {
      server_.behave_(*transport_, stream, {m.ppid, m.ordered, {m.bytes.begin(), m.bytes.end()}});
    }
    void on_room() override {}
    void on_all_arrived() override {}
    void on_end(const Error&) override {}

    SctpRawServer& server_;
    std::shared_ptr<sctp_cm::Transport> transport_;
  };

  Behave behave_;
  boost::asio::io_context io_{1};
  std::unique_ptr<sctp_cm::Stack> stack_;
  std::unique_ptr<sctp_cm::AssociationListener> listener_;
  std::vector<std::unique_ptr<User>> users_;
  std::string address_;
  std::thread thread_;
};

inline void put(sctp_cm::Transport& to, sctp::StreamId stream, const SctpMessage& m) {
  (void)to.send(stream, sctp::Ppid{m.ppid}, !m.ordered, m.octets);
}

inline std::optional<tools::probe::RawControl> control_of(const SctpMessage& message) {
  return tools::probe::RawControl::parse(message);
}

// Answers each Initiate with these, whatever it is, and says nothing else.
inline SctpRawServer::Behave answering(std::vector<SctpMessage> answers) {
  return [answers = std::move(answers)](sctp_cm::Transport& to, sctp::StreamId stream, const SctpMessage& m) {
    const auto c = control_of(m);
    if (!c || !c->is(sctp::Function::kInitiate)) return;
    for (const SctpMessage& answer : answers) put(to, stream, answer);
  };
}
inline SctpRawServer::Behave answering(const SctpMessage& answer) {
  return answering(std::vector{answer});
}

}  // namespace iwarp::test
