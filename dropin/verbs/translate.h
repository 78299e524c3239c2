// Between the vocabulary of libibverbs and that of iwarp::verbs: pure functions over values.
#pragma once
