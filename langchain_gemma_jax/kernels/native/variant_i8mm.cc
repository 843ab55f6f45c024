// For ARM's 64-bit processors with its products of small matrices: see how build.py compiles this file.
#define VARIANT_NEON
#define VARIANT_DOTPROD
#define VARIANT_I8MM
#include "rounded.h"

DEFINE_VARIANT(i8mm)
