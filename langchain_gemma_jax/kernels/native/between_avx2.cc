// For processors with AVX2: see how build.py compiles this file, and how cpu.h asks for it.
#define VARIANT_AVX2
#include "between_rows.h"

DEFINE_BETWEEN(avx2)
