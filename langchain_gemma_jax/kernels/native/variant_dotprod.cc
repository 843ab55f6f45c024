// For ARM's 64-bit processors with its dot product: see how build.py compiles this file, and how cpu.h asks for it.
#define VARIANT_NEON
#define VARIANT_DOTPROD
#include "variant_parts.h"

DEFINE_PARTS(dotprod)
