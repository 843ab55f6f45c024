// The grids of grids.h, unpacked to bytes while they are compiled.
#include "grid_rows.h"

#include "grids.h"

namespace {

template <class T, int ROWS, int COUNT>
constexpr GridRows<T, ROWS> unpacked(const uint16_t (&packed)[ROWS], const int8_t (&numbers)[COUNT], int more) {
  constexpr int lanes = sizeof(T), bits = lanes == 8 ? 2 : 3;
  GridRows<T, ROWS> found = {};
  for (int row = 0; row < ROWS; row++) {
    for (int lane = 0; lane < lanes; lane++) {
      const int number = numbers[packed[row] >> (bits * lane) & ((1 << bits) - 1)] + more;
      found.row[row] |= (T)(uint8_t)number << (8 * lane);
    }
  }
  return found;
}

constexpr GridRows<float, 256> halves() {
  GridRows<float, 256> found = {};
  for (int byte = 0; byte < 256; byte++) {
    const int exponent = byte >> 3 & 15, fraction = byte & 7;
    float value = (float)(exponent ? 8 + fraction : fraction) / 1024;
    for (int i = 1; i < exponent; i++) value *= 2;
    found.row[byte] = byte == 0x7f ? 0 : value;
  }
  return found;
}

constexpr auto e4m3 = halves();
constexpr auto iq1_s = unpacked<uint64_t>(ROWS_IQ1_S, NUMBERS_IQ1_S, 1);
constexpr auto iq2_xxs = unpacked<uint64_t>(ROWS_IQ2_XXS, NUMBERS_IQ2_XXS, 0);
constexpr auto iq2_xs = unpacked<uint64_t>(ROWS_IQ2_XS, NUMBERS_IQ2_XS, 0);
constexpr auto iq2_s = unpacked<uint64_t>(ROWS_IQ2_S, NUMBERS_IQ2_S, 0);
constexpr auto iq3_xxs = unpacked<uint32_t>(ROWS_IQ3_XXS, NUMBERS_IQ3_XXS, 0);
constexpr auto iq3_s = unpacked<uint32_t>(ROWS_IQ3_S, NUMBERS_IQ3_S, 0);

}  // namespace

const GridRows<uint64_t, 2048> rows_iq1_s = iq1_s;
const GridRows<uint64_t, 256> rows_iq2_xxs = iq2_xxs;
const GridRows<uint64_t, 512> rows_iq2_xs = iq2_xs;
const GridRows<uint64_t, 1024> rows_iq2_s = iq2_s;
const GridRows<uint32_t, 256> rows_iq3_xxs = iq3_xxs;
const GridRows<uint32_t, 512> rows_iq3_s = iq3_s;
const GridRows<float, 256> halves_of_e4m3 = e4m3;
