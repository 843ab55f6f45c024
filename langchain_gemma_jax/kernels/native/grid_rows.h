// The rows of grids in bytes, and floats of eight bits, once for all variants: see grid_rows.cc.
#pragma once

#include <stdint.h>

template <class T, int ROWS>
struct GridRows {
  T row[ROWS];  // of eight numbers, or of four
};

extern const GridRows<uint64_t, 2048> rows_iq1_s;  // plus one
extern const GridRows<uint64_t, 256> rows_iq2_xxs;
extern const GridRows<uint64_t, 512> rows_iq2_xs;
extern const GridRows<uint64_t, 1024> rows_iq2_s;
extern const GridRows<uint32_t, 256> rows_iq3_xxs;
extern const GridRows<uint32_t, 512> rows_iq3_s;
extern const GridRows<float, 256> halves_of_e4m3;  // without a sign
