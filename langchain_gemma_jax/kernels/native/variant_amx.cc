// For processors with AMX, which have AVX512 too: see how build.py compiles this file, and how cpu.h asks for it.
#define VARIANT_AVX512
#include "tiles.h"

#define TILED(KIND) tiled<Of##KIND, KIND>

extern const Variant amx = {"amx",
                            {0},
                            {0, 0, 0, TILED(Q8_0), TILED(Q4_0), TILED(INT4), TILED(Q4_1), TILED(Q5_0), TILED(Q5_1),
                             TILED(Q4_K), TILED(Q5_K), TILED(Q6_K)},
                            round_rows,
                            0,
                            0,
                            &avx512};
