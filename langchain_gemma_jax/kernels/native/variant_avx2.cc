// For processors with AVX2: see how build.py compiles this file, and how cpu.h asks for it.
#define VARIANT_AVX2
#include "rounded.h"

DEFINE_VARIANT(avx2)
