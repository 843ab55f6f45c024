// All that XLA calls, and Python: one unit, since XLA's headers take the compiler longest.

#include "product_calls.h"

#include "attention_calls.h"
#include "between_calls.h"
