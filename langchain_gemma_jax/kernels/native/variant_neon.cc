// For any of ARM's 64-bit processors.
#define VARIANT_NEON
#include "variant_parts.h"

DEFINE_PARTS(neon)
