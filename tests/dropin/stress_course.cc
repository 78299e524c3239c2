#include "tests/dropin/stress_course.h"

#include <random>

namespace iwarp::stress {
namespace {

class Die {
 public:
  Die(std::uint64_t seed, unsigned number) : random_(seed * 0x9e3779b97f4a7c15U + number) {}
  // 0 to sides - 1.
  unsigned operator()(unsigned sides) { return static_cast<unsigned>(random_() % sides); }
  bool one_in(unsigned sides) { return (*this)(sides) == 0; }

 private:
  std::mt19937_64 random_;
};

Op make_op(Die& die) {
  Op op{};
  op.kind = static_cast<Kind>(die(4) % 3);  // Sends twice as often
  op.length = die(4) == 0 ? die(kMostOctets + 1) : die(200);
  op.inlined = op.kind != Kind::kRead && op.length <= kMostInlined && die.one_in(2);
  return op;
}

Plan make_plan(Die& die) {
  Plan plan;
  const unsigned ops = die(kMostOps + 1);
  for (unsigned i = 0; i < ops; ++i) plan.ops.push_back(make_op(die));
  plan.end_after = die.one_in(2) ? ops : die(ops + 1);
  plan.way = static_cast<Way>(die(kWays));
  plan.own_channel = die.one_in(2);
  plan.migrates_before = die.one_in(4);
  plan.migrates_after = die.one_in(4);
  plan.late_ack = die.one_in(4);
  plan.late_receives = die.one_in(4);
  plan.polled_meanwhile = plan.way != Way::kError && die.one_in(4);
  plan.sleeps = die.one_in(2);
  plan.two_queues = die.one_in(2);
  plan.frees_at_once = die.one_in(2);
  plan.pause_us = die.one_in(2) ? 0 : die(2000);
  return plan;
}

Start make_start(Die& die) {
  const unsigned of_fifty = die(50);
  if (of_fifty < 31) return Start::kConnects;
  if (of_fifty < 34) return Start::kRejected;
  if (of_fifty < 36) return Start::kDropped;
  if (of_fifty < 41) return Start::kGivenUp;
  if (of_fifty < 43) return Start::kGivenUpEarly;
  if (of_fifty < 46) return Start::kAcceptedAndGone;
  return of_fifty < 49 ? Start::kCrowd : Start::kNobody;
}

const char* text_of(Start start) {
  switch (start) {
    case Start::kConnects:
      return "connects";
    case Start::kRejected:
      return "rejected";
    case Start::kDropped:
      return "dropped";
    case Start::kGivenUp:
      return "given up";
    case Start::kGivenUpEarly:
      return "given up early";
    case Start::kAcceptedAndGone:
      return "accepted and gone";
    case Start::kCrowd:
      return "crowd";
    case Start::kNobody:
      return "nobody listens";
  }
  return "?";
}

const char* text_of(Way way) {
  switch (way) {
    case Way::kDisconnect:
      return "disconnects";
    case Way::kDisconnectAndGo:
      return "disconnects and goes";
    case Way::kQueuePairFirst:
      return "destroys queue pair";
    case Way::kIdFirst:
      return "destroys id";
    case Way::kError:
      return "error state";
    case Way::kDeregister:
      return "deregisters";
  }
  return "?";
}

std::string text_of(const Plan& plan) {
  std::string text;
  for (const Op& op : plan.ops) {
    text += op.kind == Kind::kSend ? 'S' : op.kind == Kind::kWrite ? 'W' : 'R';
    text += std::to_string(op.length) + (op.inlined ? "i " : " ");
  }
  text += plan.ends ? "ends after " + std::to_string(plan.end_after) + ": " : "then: ";
  text += text_of(plan.way);
  if (plan.own_channel) text += ", own channel";
  if (plan.migrates_before) text += ", migrates before";
  if (plan.migrates_after) text += ", migrates after";
  if (plan.late_ack) text += ", late ack";
  if (plan.late_receives) text += ", late Receives";
  if (plan.polled_meanwhile) text += ", polled meanwhile";
  if (plan.sleeps) text += ", sleeps";
  if (plan.two_queues) text += ", two queues";
  if (plan.frees_at_once) text += ", frees at once";
  return text + ", pause " + std::to_string(plan.pause_us);
}

}  // namespace

Course::Course(std::uint64_t seed, unsigned of_number) : number(of_number) {
  Die die(seed, number);
  start = make_start(die);
  crowd = 1 + die(6);
  taken = die(crowd + 1);
  stage = die(kStages);
  pause_us = die(3000);
  for (Plan& plan : plans) plan = make_plan(die);
  const unsigned who = die(3);
  plans[0].ends = who != 1;
  plans[1].ends = who != 0;
}

std::string Course::text() const {
  return std::to_string(number) + " " + text_of(start) + ", crowd " + std::to_string(taken) + "/" +
         std::to_string(crowd) + ", stage " + std::to_string(stage) + ", pause " + std::to_string(pause_us) +
         "\n  client " + text_of(plans[0]) + "\n  server " + text_of(plans[1]);
}

}  // namespace iwarp::stress
