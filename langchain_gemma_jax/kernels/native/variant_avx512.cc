// For processors with AVX512: see how build.py compiles this file, and how cpu.h asks for it.
#define VARIANT_AVX512
#include "variant_parts.h"

DEFINE_PARTS(avx512)
