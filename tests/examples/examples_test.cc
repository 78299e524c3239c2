// Runs the examples as their users do: server and client are two processes on loopback.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

namespace {

constexpr std::chrono::seconds kPatience{60};

// A running example, whose output (both kinds) is read. Killed when it is still there at the end.
class Example {
 public:
  explicit Example(std::vector<std::string> words) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    words[0] = std::string(IWARP_EXAMPLES) + "/example_" + words[0];
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::dup2(ends[1], STDERR_FILENO);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    fd_ = ends[0];
  }
  ~Example() {
    ::close(fd_);
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Example(const Example&) = delete;
  Example& operator=(const Example&) = delete;

  // Reads until `text` has come; false when the output ends before, or time is up.
  bool says(const std::string& text) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (output_.find(text) == std::string::npos) {
      if (!read_some(until)) return false;
    }
    return true;
  }
  // Its whole output, when it has ended.
  std::string rest() {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (read_some(until)) {
    }
    return output_;
  }
  int status() {
    int status = -1;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void terminate() { ::kill(pid_, SIGTERM); }
  std::string port() {
    if (!says("\n")) throw std::runtime_error("the server does not listen: " + output_);
    return output_.substr(output_.rfind(' ') + 1, output_.find('\n') - output_.rfind(' ') - 1);
  }

 private:
  bool read_some(std::chrono::steady_clock::time_point until) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd ready{fd_, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) != 1) return false;
    char some[4096];
    const ssize_t n = ::read(fd_, some, sizeof some);
    if (n > 0) output_.append(some, static_cast<std::size_t>(n));
    return n > 0;
  }

  pid_t pid_ = -1;
  int fd_ = -1;
  std::string output_;
};

// What a program prints that is to end well, or with another status.
std::string run(std::vector<std::string> words, int status = 0) {
  Example example(std::move(words));
  std::string output = example.rest();
  EXPECT_EQ(example.status(), status) << output;
  return output;
}

TEST(Example, EchoReturnsWhatEachClientSends) {
  Example server({"echo", "server", "0"});
  const std::string port = server.port();
  EXPECT_EQ(run({"echo", "127.0.0.1", port, "hello"}), "hello\n");
  EXPECT_EQ(run({"echo", "localhost", port, "hello again"}), "hello again\n");
}

TEST(Example, EchoSaysThatNobodyListens) {
  std::string port;
  {
    Example server({"echo", "server", "0"});
    port = server.port();
  }
  EXPECT_NE(run({"echo", "127.0.0.1", port, "hello"}, 1).find("Connection refused"), std::string::npos);
}

TEST(Example, MeshConnectsAllToAll) {
  EXPECT_TRUE(run({"mesh", "2"}).starts_with("2 ranks, 1 connections, "));
  EXPECT_TRUE(run({"mesh", "5"}).starts_with("5 ranks, 10 connections, "));
  EXPECT_TRUE(run({"mesh", "16"}).starts_with("16 ranks, 120 connections, "));
}

TEST(Example, MeshSaysHowItIsUsed) {
  Example mesh({"mesh", "0"});
  EXPECT_NE(mesh.rest().find("usage: mesh N"), std::string::npos);
  EXPECT_EQ(mesh.status(), 2);
}

TEST(Example, RpcFilesComeBackUnchanged) {
  EXPECT_EQ(run({"rpc_files"}), "1048576 octets came back unchanged; the file that is not there: status 2\n");
}

TEST(Example, PutGetWritesAndReadsAdvertisedMemory) {
  Example server({"put_get", "server", "0"});
  EXPECT_EQ(
      run({"put_get", "127.0.0.1", server.port(), "some text"}),
      "the server offers 4096 octets\nread back: some text\nthe connection ended: closed by the local application\n");
  EXPECT_NE(server.rest().find("the memory holds: some text\nthe connection ended: peer closed the connection\n"),
            std::string::npos)
      << server.rest();
  EXPECT_EQ(server.status(), 0);
}

TEST(Example, PutGetTellsWhyTheServerEndsTheConnection) {
  Example server({"put_get", "server", "0"});
  const std::string client = run({"put_get", "127.0.0.1", server.port(), "text", "4095"}, 1);
  EXPECT_NE(client.find("failed: "), std::string::npos) << client;
  EXPECT_NE(client.find("the connection ended: peer sent a Terminate"), std::string::npos) << client;
  EXPECT_NE(server.rest().find("the connection ended: tagged segment leaves the registered range"), std::string::npos)
      << server.rest();
  EXPECT_EQ(server.status(), 0);
}

TEST(Example, EventLoopAnswersUntilItsClientCloses) {
  Example server({"event_loop", "0"});
  EXPECT_NE(run({"ping", "127.0.0.1", server.port(), "200"}).find("answer 200: 64 octets\n"), std::string::npos);
  EXPECT_NE(server.rest().find("the connection ended: peer closed the connection"), std::string::npos);
  EXPECT_EQ(server.status(), 0);
}

TEST(Example, EventLoopHearsOfASignal) {
  Example server({"event_loop", "0"});
  Example client({"ping", "127.0.0.1", server.port(), "100000000"});
  ASSERT_TRUE(client.says("answer 2: "));
  server.terminate();
  EXPECT_NE(server.rest().find("the connection ended: closed by the local application"), std::string::npos);
  EXPECT_EQ(server.status(), 0);
  (void)client.rest();
  EXPECT_EQ(client.status(), 1) << "the server has gone in the midst";
}

TEST(Example, PingTriesAgain) {
  std::string port;
  {
    Example server({"echo", "server", "0"});
    port = server.port();
  }
  Example client({"ping", "127.0.0.1", port, "1"});
  EXPECT_TRUE(client.says("attempt 1: Connection refused: nothing listens there\n"));
  const std::string all = client.rest();
  EXPECT_NE(all.find("attempt 3: "), std::string::npos) << all;
  EXPECT_EQ(client.status(), 1);
}

TEST(Example, SaysHowItIsCalled) {
  for (const char* name : {"echo", "put_get", "ping"})
    EXPECT_EQ(run({name}, 2).find(std::string("usage: ") + name), 0u) << name;
}

TEST(Example, RpcServerAdds) {
  Example server({"rpc_server", "0"});
  const std::string port = server.port();
  EXPECT_EQ(run({"rpc_client", "127.0.0.1", port, "40", "2"}), "42\n");
  EXPECT_EQ(run({"rpc_client", "127.0.0.1", port, "1", "1"}), "2\n");
}

}  // namespace
