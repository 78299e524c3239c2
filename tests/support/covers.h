// Ties a running test to the requirements it proves. The id goes into gtest's XML report, so that we list what ran, not
// what a comment claims.
#pragma once

#include <gtest/gtest.h>

// First line of a test, after any GTEST_SKIP. `id` exactly as in requirements/*.tsv.
#define COVERS(id) ::testing::Test::RecordProperty(id, 1)
