// Workers: shells in place of this program on a host.
#include "tools/hosts/worker.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "common/base/clock.h"

namespace mosa::cli {
namespace {

using nlohmann::json;

constexpr std::string_view kGreeting = "\nworker 1\n";
// Shell commands.
const char* const kGreet = "printf '\\nworker 1\\n'; ";
const char* const kEcho = "exec cat";

// Starts a worker on a host that runs `script` whatever it is asked to run.
Worker Started(const std::string& script) {
  RunHost host;
  host.name = "h1";
  host.exec = {"/bin/sh", "-c", script};
  auto worker = StartWorker(host, {"work"}, kGreeting);
  EXPECT_TRUE(worker.ok()) << worker.status();
  return worker.ok() ? *std::move(worker) : Worker();
}

void End(Worker& worker) {
  EndWorker(worker, Seconds(5), SystemClock().Monotonic() + Seconds(10));
  EXPECT_EQ(worker.pid, -1);
}

// Waits for a message; none if the other side is gone first.
std::optional<json> NextOf(MessageSocket& socket) {
  for (;;) {
    if (std::optional<json> message = socket.Next()) return message;
    pollfd wait{socket.fd(), POLLIN, 0};
    if (poll(&wait, 1, 10'000) != 1 || !socket.Receive()) return std::nullopt;
  }
}

bool Says(MessageSocket& socket, const json& expected) {
  const std::optional<json> message = NextOf(socket);
  return message.has_value() && *message == expected;
}

bool IsGone(MessageSocket& socket) { return !NextOf(socket).has_value(); }

TEST(Worker, GetsMessagesWholeAndAsTheyAre) {
  Worker worker = Started(std::string("echo Welcome to h1; ") + kGreet + kEcho);
  json question;
  question["not text"] = "\xff\xfe";
  question["in pieces"] = std::string(100'000, 'x');
  ASSERT_TRUE(worker.socket.Send(question));
  ASSERT_TRUE(worker.socket.Send(json(2)));
  EXPECT_TRUE(Says(worker.socket, question)) << "the banner is skipped";
  EXPECT_TRUE(Says(worker.socket, json(2)));
  EXPECT_FALSE(worker.socket.Next().has_value()) << "there is no third";
  End(worker);
}

TEST(Worker, IsGoneWhenItsProcessIs) {
  // The last one dies within the length of a message.
  for (const char* const said : {"", "printf '\\3\\0'; "}) {
    Worker worker = Started(std::string(kGreet) + said + "exit 1");
    EXPECT_TRUE(IsGone(worker.socket)) << said;
    EXPECT_TRUE(worker.socket.greeted()) << said;
    EXPECT_FALSE(worker.socket.Send(json(1))) << said;
    End(worker);
  }
}

TEST(Worker, SaysNothingBeforeItsGreeting) {
  Worker worker = Started("echo command not found");
  EXPECT_TRUE(IsGone(worker.socket));
  EXPECT_FALSE(worker.socket.greeted());
  End(worker);
}

TEST(Worker, ThatDoesNotSpeakInMessagesIsHeardAsOneThatSaysNothing) {
  // Text: its first bytes are taken for a length that never comes.
  Worker worker = Started(std::string(kGreet) + "printf 'command not found'");
  EXPECT_TRUE(IsGone(worker.socket));
  EXPECT_TRUE(worker.socket.greeted());
  EXPECT_EQ(worker.socket.waiting_bytes(), 17U);
  End(worker);
  // Three bytes that are no MessagePack: a message, but without a value.
  worker =
      Started(std::string(kGreet) + "printf '\\3\\0\\0\\0\\0\\0\\0\\0\\301\\301\\301'; " + kEcho);
  const std::optional<json> message = NextOf(worker.socket);
  EXPECT_TRUE(message.has_value() && message->is_discarded());
  ASSERT_TRUE(worker.socket.Send(json(1)));
  EXPECT_TRUE(Says(worker.socket, json(1))) << "the next one is whole again";
  End(worker);
}

TEST(Worker, ThatDoesNotEndIsKilled) {
  Worker worker = Started("exec sleep 100");
  const SystemClock clock;
  const Time begun = clock.Monotonic();
  EndWorker(worker, Milliseconds(10), begun + Seconds(60));
  EXPECT_EQ(worker.pid, -1);
  EXPECT_LT(clock.Monotonic() - begun, Seconds(30));
}

TEST(Worker, NamesTheHostWhoseCommandCannotBeRun) {
  RunHost host;
  host.name = "h1";
  host.exec = {"/no/such/program"};
  const auto worker = StartWorker(host, {"work"}, kGreeting);
  EXPECT_EQ(worker.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(MessageOf(worker.status()),
            "cannot run '/no/such/program' for host h1: No such file or directory");
}

TEST(AnswerAll, AnswersEachQuestionUntilItsInputEnds) {
  MessageSocket socket;
  const auto theirs = socket.Connect();
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  std::thread answering([fd = theirs->get()] {
    AnswerAll(fd, fd, [](const json& question) { return json(2 * question.get<int>()); });
  });
  for (int number = 1; number <= 3; ++number) EXPECT_TRUE(socket.Send(json(number)));
  for (int number = 1; number <= 3; ++number) EXPECT_TRUE(Says(socket, json(2 * number))) << number;
  socket.Close();
  answering.join();
}

TEST(StatusJson, IsReadBack) {
  const Status status = StatusIn(StatusJson(NotFoundError("no such file")));
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(MessageOf(status), "no such file");
  EXPECT_TRUE(StatusIn(StatusJson(OkStatus())).ok());
  EXPECT_TRUE(StatusIn(json::object()).ok()) << "an answer without a code";
}

}  // namespace
}  // namespace mosa::cli
