// For any processor.
#define VARIANT_PORTABLE
#include "rounded.h"

DEFINE_VARIANT(portable)
