// For processors with AMX, which have AVX512 too: see how build.py compiles this file, and how cpu.h asks for it.
#define VARIANT_AVX512
#include "tiles.h"

#define TILED(KIND) tiled<Of##KIND, KIND>,

extern const Variant amx = {"amx", {0}, {0, 0, 0, EACH_IN_BLOCKS(TILED)}, round_rows, 0, 0, &avx512};
