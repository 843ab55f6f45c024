// For any processor.
#define VARIANT_PORTABLE
#include "attention_spans.h"

DEFINE_ATTENTION(portable)
