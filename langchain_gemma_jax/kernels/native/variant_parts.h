// All that is made for each instruction set: one unit for each, since their headers take long.
#pragma once

#include "rounded.h"

#include "attention_spans.h"
#include "between_rows.h"

#define DEFINE_PARTS(NAME) \
  DEFINE_ATTENTION(NAME)   \
  DEFINE_BETWEEN(NAME)     \
  DEFINE_VARIANT(NAME)
