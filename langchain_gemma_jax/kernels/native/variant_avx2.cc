// For processors with AVX2: see how build.py compiles this file, and how cpu.h asks for it.
#define VARIANT_AVX2
#include "variant_parts.h"

DEFINE_PARTS(avx2)
