// `iwarp gateway --draft-2005` and what goes with it: flags, and keys of a configuration file.
#include <gmock/gmock.h>

#include <fstream>

#include "tests/tools/recording.h"
#include "tools/gateway_config.h"
#include "tools/gateway_settings.h"

namespace iwarp::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using tools::ListenerFlags;
using tools::read_gateway_config;
using tools::SettingError;

const std::string kRdmaFront = "--rdma-listen 127.0.0.1:0 --tcp 127.0.0.1:2049 ";
const std::string kTcpFront = "--tcp-listen 127.0.0.1:0 --rdma 127.0.0.1:20049 ";
const std::string kRdmaListener = "[[listener]]\nname = 'a'\nrdma-listen = '127.0.0.1:0'\ntcp = '127.0.0.1:2049'\n";
const std::string kTcpListener = "[[listener]]\nname = 'a'\ntcp-listen = '127.0.0.1:0'\nrdma = '127.0.0.1:20049'\n";

gateway::Options of_flags(const std::string& words) {
  CLI::App app;
  ListenerFlags flags;
  flags.add(app);
  app.parse(words);
  return tools::listener_settings("", flags, {}, {}).options;
}

TEST(GatewayDraft2005, HasItsNumbersByFlag) {
  const auto o = of_flags(kRdmaFront + "--draft-2005 --config-program 0x20050202 --align 64 --done-deadline 3");
  EXPECT_TRUE(o.draft_2005.enabled);
  EXPECT_EQ(o.draft_2005.config_program, 0x20050202u);
  EXPECT_EQ(o.draft_2005.align, 64u);
  EXPECT_EQ(o.draft_2005.reply_align, 64u);
  EXPECT_EQ(o.draft_2005.done.patience, std::chrono::seconds(3));
  EXPECT_TRUE(o.draft_2005.offer_reply_memory);
  EXPECT_FALSE(of_flags(kTcpFront + "--draft-2005 --reply-reads").draft_2005.offer_reply_memory);
  EXPECT_EQ(of_flags(kRdmaFront + "--draft-2005 --align 0").draft_2005.align, 0u);
  EXPECT_EQ(of_flags(kRdmaFront + "--draft-2005 --align 65536").draft_2005.align, 65536u);
  EXPECT_EQ(of_flags(kTcpFront + "--draft-2005 --config-program 77").draft_2005.config_program, 77u);
}

TEST(GatewayDraft2005, HasTheUsualOnesOtherwise) {
  for (const std::string& front : {kRdmaFront, kTcpFront}) {
    const auto o = of_flags(front + "--draft-2005");
    EXPECT_EQ(o.draft_2005.config_program, rpcrdma::kConfigProgram);
    EXPECT_EQ(o.draft_2005.align, 512u);
    EXPECT_EQ(o.draft_2005.reply_align, 512u);
    EXPECT_TRUE(o.draft_2005.data_chunks);
    EXPECT_EQ(o.draft_2005.done.patience, std::chrono::seconds(10));
    EXPECT_FALSE(of_flags(front).draft_2005.enabled);
  }
}

TEST(GatewayDraft2005, HasItsNumbersByKey) {
  const Scratch scratch("gateway-draft-2005");
  std::ofstream(scratch.file("a.toml")) << kRdmaListener
                                        << "draft-2005 = true\nconfig-program = 0x20050202\nalign = 0x40\n"
                                           "done-deadline = 3\n";
  const auto r = read_gateway_config(scratch.file("a.toml"));
  ASSERT_THAT(r.errors, IsEmpty());
  const auto& o = r.config->service.listeners.front().options;
  EXPECT_EQ(o.draft_2005.config_program, 0x20050202u);
  EXPECT_EQ(o.draft_2005.align, 64u);
  EXPECT_EQ(o.draft_2005.done.patience, std::chrono::seconds(3));
}

struct Refused {
  const char* name;
  bool rdma_front;
  std::vector<std::string> others;  // flags with "=VALUE", the one that is refused behind them
  const char* flag;
  const char* value;  // of `flag`; empty: it has none
  const char* says;
};

class GatewayDraft2005Refuses : public ::testing::TestWithParam<Refused> {};

const char* const kMustBe = "must be 0 or a power of two from 8 to 65536";
const char* const kRange = "65536";
const std::vector<std::string> kOn = {"draft-2005"};

INSTANTIATE_TEST_SUITE_P(
    Settings, GatewayDraft2005Refuses,
    ::testing::Values(
        Refused{"Version2", true, {"rpcrdma-version=2"}, "draft-2005", "", "does not go with --rpcrdma-version 2"},
        Refused{"ReplyReadsAlone", false, {}, "reply-reads", "", "goes with --draft-2005 and --tcp-listen"},
        Refused{"ReplyReadsOfAServer", true, kOn, "reply-reads", "", "goes with --draft-2005 and --tcp-listen"},
        Refused{"ProgramAlone", true, {}, "config-program", "77", "goes with --draft-2005: "},
        Refused{"ProgramAloneOfAClient", false, {}, "config-program", "77", "goes with --draft-2005: "},
        Refused{"AlignAlone", true, {}, "align", "64", "goes with --draft-2005 and --rdma-listen"},
        Refused{"UsualAlignAlone", true, {}, "align", "512", "goes with --draft-2005 and --rdma-listen"},
        Refused{"AlignOfAClient", false, kOn, "align", "64", "goes with --draft-2005 and --rdma-listen"},
        Refused{"DeadlineAlone", true, {}, "done-deadline", "3", "goes with --draft-2005 and --rdma-listen"},
        Refused{"UsualDeadlineAlone", true, {}, "done-deadline", "10", "goes with --draft-2005 and --rdma-listen"},
        Refused{"DeadlineOfAClient", false, kOn, "done-deadline", "3", "goes with --draft-2005 and --rdma-listen"},
        Refused{"Align9", true, kOn, "align", "9", kMustBe}, Refused{"Align4", true, kOn, "align", "4", kMustBe},
        Refused{"Align131072", true, kOn, "align", "131072", kRange},
        Refused{"Program0", true, kOn, "config-program", "0", "1"},
        Refused{"ProgramOf33Bits", true, kOn, "config-program", "4294967296", "4294967295"},
        Refused{"Deadline0", true, kOn, "done-deadline", "0", "86400"}),
    [](const auto& refused) { return std::string(refused.param.name); });

TEST_P(GatewayDraft2005Refuses, ByFlag) {
  const Refused& p = GetParam();
  std::string words = p.rdma_front ? kRdmaFront : kTcpFront;
  for (const std::string& other : p.others) words += "--" + other + " ";
  words += std::string("--") + p.flag + (*p.value != '\0' ? std::string("=") + p.value : "");
  std::string said;
  try {
    (void)of_flags(words);
  } catch (const SettingError& e) {
    EXPECT_EQ(e.option(), std::string("--") + p.flag);
    said = e.what();
  } catch (const CLI::ValidationError& e) {
    said = e.what();
    EXPECT_THAT(said, HasSubstr(p.flag));
  }
  EXPECT_THAT(said, HasSubstr(p.says)) << words;
}

TEST_P(GatewayDraft2005Refuses, ByKey) {
  const Refused& p = GetParam();
  const auto line = [](std::string key) {
    const auto equal = key.find('=');
    if (equal == std::string::npos) return key + " = true\n";
    return key.replace(equal, 1, " = ") + "\n";
  };
  std::string text = p.rdma_front ? kRdmaListener : kTcpListener;
  for (const std::string& other : p.others) text += line(other);
  text += line(p.flag + (*p.value != '\0' ? std::string("=") + p.value : ""));
  const Scratch scratch("gateway-draft-2005");
  std::ofstream(scratch.file("a.toml")) << text;
  std::string says = p.says;
  for (std::size_t at = 0; (at = says.find("--")) != std::string::npos;) says.erase(at, 2);
  EXPECT_THAT(read_gateway_config(scratch.file("a.toml")).errors,
              Contains(::testing::AllOf(HasSubstr(std::string(": ") + p.flag + ": "), HasSubstr(says))));
}

}  // namespace
}  // namespace iwarp::test
