// What a forked child finds.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace iwarp::dropin::test {

// Exit status of what `act` says in a forked child.
template <class Act>
int in_child(const Act& act) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    ::_exit(act() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

}  // namespace iwarp::dropin::test
