// For any processor.
#define VARIANT_PORTABLE
#include "variant_parts.h"

DEFINE_PARTS(portable)
