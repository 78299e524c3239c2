#include "dropin/verbs/translate.h"
