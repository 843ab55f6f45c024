// The same products with activations in eight bits: blocks of 32 with a scale of their own, as the weights have them.
//
// Codes are multiplied by codes and summed as whole numbers, 32 at a time, which is exact; what is lost is lost when the
// activations are rounded.
#pragma once

#include "products.h"

namespace {

// As models/packed/activations.py defines it, to the bit. Sizes are compared as whole numbers, which have the same order:
// the largest of them is NaN or infinite where any is, so the scale is, and whatever comes of the block.
INLINE void round_block(const float* x, int8_t* code, float* scale, float* total) {
  float numbers[32];  // wherever they lie
  uint32_t bits[32], most = 0;
  memcpy(numbers, x, sizeof numbers);
  memcpy(bits, x, sizeof bits);
  for (int i = 0; i < 32; i++) {
    const uint32_t size = bits[i] & 0x7fffffff;
    most = size > most ? size : most;
  }
  const float d = f32_of_bits(most) * (1.0f / 127), inverse = d > 1e-37f ? 1 / d : 0;
  float moved[32];
  for (int i = 0; i < 32; i++) moved[i] = numbers[i] * inverse + 12582912.0f;  // 1.5 * 2^23: what is left of it is whole
  memcpy(bits, moved, sizeof bits);
  int sum = 0;
  for (int i = 0; i < 32; i++) {
    code[i] = (int8_t)bits[i];
    sum += code[i];
  }
  *scale = d, *total = d * (float)sum;
}

void round_rows(const float* x, int64_t blocks, int8_t* codes, float* scales, float* totals) {
  for (int64_t b = 0; b < blocks; b++) round_block(x + 32 * b, codes + 32 * b, scales + b, totals + b);
}

template <class F, int B, int M>
INLINE void rounded_run(const Runs& runs, const float (*scales)[8 * F::SCALES], const int8_t* x, int64_t n, Eight* sums) {
  C32 codes = F::template codes<B>(runs);
  if constexpr (F::SCALES == 2) codes = minus_32(codes);  // two halves with scales of their own: no offset is one for all
  for (int m = 0; m < M; m++) {
    const C32 those = load_codes(x + m * n + 32 * B);
    Whole dot;
    if constexpr (F::OFFSETS && F::SCALES == 1) dot = dot_unsigned(codes, those);
    else dot = dot_signed(codes, those);
    if constexpr (F::SCALES == 2) sums[m] = eight_fma(eight_of(dot), two(scales[m][2 * B], scales[m][2 * B + 1]), sums[m]);
    else sums[m] = eight_fma(eight_of(dot), eight_all(scales[m][B]), sums[m]);
  }
}

template <class F, int M, int R>
INLINE void rounded_outputs(const Matrix& matrix, int64_t o, const Rows& x, float* out) {
  const int64_t n = matrix.inputs, count = n / 32;
  Eight sums[R][M];
  for (int r = 0; r < R; r++)
    for (int m = 0; m < M; m++) sums[r][m] = eight_all(0);
  for (int64_t at = 0; at < count; at += 8) {
    const int some = count - at < 8 ? (int)(count - at) : 8;
    for (int r = 0; r < R; r++) {
      const Runs runs = {matrix, (o + r) * count + at, F::SUPER ? ((o + r) * count + at) / 8 : 0};
      fetch_next<F, R>(runs);
      float scale[8 * F::SCALES], offset[8 * F::SCALES], scales[M][8 * F::SCALES];
      F::scales(runs, some, scale, offset);
      for (int m = 0; m < M; m++) {
        const float* their = x.scales + m * count + at;
        for (int b = 0; b < some; b++)
          for (int s = 0; s < F::SCALES; s++) scales[m][b * F::SCALES + s] = scale[b * F::SCALES + s] * their[b];
        if (F::OFFSETS && F::SCALES == 1) {
          const float* totals = x.totals + m * count + at;
          if (some == 8) {
            sums[r][m] = eight_fma(eight_load(offset), eight_load(totals), sums[r][m]);
          } else {
            float padded[8] = {0}, those[8] = {0};
            for (int b = 0; b < some; b++) padded[b] = offset[b], those[b] = totals[b];
            sums[r][m] = eight_fma(eight_load(padded), eight_load(those), sums[r][m]);
          }
        }
      }
      const int8_t* from = x.codes + 32 * at;
      Eight* to = sums[r];
      rounded_run<F, 0, M>(runs, scales, from, n, to);
      if (F::SUPER || some > 1) rounded_run<F, 1, M>(runs, scales, from, n, to);
      if (F::SUPER || some > 2) rounded_run<F, 2, M>(runs, scales, from, n, to);
      if (F::SUPER || some > 3) rounded_run<F, 3, M>(runs, scales, from, n, to);
      if (F::SUPER || some > 4) rounded_run<F, 4, M>(runs, scales, from, n, to);
      if (F::SUPER || some > 5) rounded_run<F, 5, M>(runs, scales, from, n, to);
      if (F::SUPER || some > 6) rounded_run<F, 6, M>(runs, scales, from, n, to);
      if (F::SUPER || some > 7) rounded_run<F, 7, M>(runs, scales, from, n, to);
    }
  }
  for (int r = 0; r < R; r++)
    for (int m = 0; m < M; m++) out[m * matrix.outputs + o + r] = eight_sum(sums[r][m]);
}

// The same with 256 codes put down at a time: a function a format, and all else once for all formats that are alike.
// It compiles in a fifth of the time, and takes half as long again where registers hold all of the above.
struct Codes {
  int8_t code[256];
  float scale[16], offset[16];
};

template <class F, int B>
INLINE void put_down_run(const Runs& runs, int some, Codes& to) {
  if (!F::SUPER && some <= B) return;
  C32 codes = F::template codes<B>(runs);
  if constexpr (F::SCALES == 2) codes = minus_32(codes);
  memcpy(to.code + 32 * B, &codes, 32);
}

template <class F>
void put_down_codes(const Matrix& matrix, int64_t o, int64_t at, int some, Codes& to) {
  const int64_t count = matrix.inputs / 32;
  const Runs runs = {matrix, o * count + at, F::SUPER ? (o * count + at) / 8 : 0};
  fetch_next<F, 1>(runs);
  F::scales(runs, some, to.scale, to.offset);
  put_down_run<F, 0>(runs, some, to);
  put_down_run<F, 1>(runs, some, to);
  put_down_run<F, 2>(runs, some, to);
  put_down_run<F, 3>(runs, some, to);
  put_down_run<F, 4>(runs, some, to);
  put_down_run<F, 5>(runs, some, to);
  put_down_run<F, 6>(runs, some, to);
  put_down_run<F, 7>(runs, some, to);
}

typedef void (*PutDownCodes)(const Matrix& matrix, int64_t o, int64_t at, int some, Codes& to);

template <int SCALES, bool OFFSETS, int M>
void rounded_put_down(const Matrix& matrix, PutDownCodes put_down, const Rows& x, float* out, int64_t first, int64_t last) {
  const int64_t n = matrix.inputs, count = n / 32;
  Codes codes;
  for (int64_t o = first; o < last; o++) {
    Eight sums[M];
    for (int m = 0; m < M; m++) sums[m] = eight_all(0);
    for (int64_t at = 0; at < count; at += 8) {
      const int some = count - at < 8 ? (int)(count - at) : 8;
      put_down(matrix, o, at, some, codes);
      for (int b = some; b < 8; b++) codes.offset[b] = 0;  // of an output before, which may be anything
      for (int m = 0; m < M; m++) {
        const int64_t their = m * count + at;
        if (OFFSETS) {
          float totals[8] = {0};
          memcpy(totals, x.totals + their, (size_t)some * sizeof totals[0]);
          sums[m] = eight_fma(eight_load(codes.offset), eight_load(totals), sums[m]);
        }
        for (int b = 0; b < some; b++) {
          const Whole dot = dot_signed(load_codes(codes.code + 32 * b), load_codes(x.codes + m * n + 32 * (at + b)));
          const float* scale = codes.scale + SCALES * b;
          const float size = x.scales[their + b];
          const Eight scales = SCALES == 2 ? two(scale[0] * size, scale[SCALES - 1] * size) : eight_all(scale[0] * size);
          sums[m] = eight_fma(eight_of(dot), scales, sums[m]);
        }
      }
    }
    for (int m = 0; m < M; m++) out[m * matrix.outputs + o] = eight_sum(sums[m]);
  }
}

template <class F, int M>
void rounded_rows(const Matrix& matrix, const Rows& x, float* out, int64_t first, int64_t last) {
  if constexpr (ONE_PASS) {
    enum { R = M > 2 ? 1 : M > 1 ? 2 : 4 };
    int64_t o = first;
    for (; o + R <= last; o += R) rounded_outputs<F, M, R>(matrix, o, x, out);
    for (; o < last; o++) rounded_outputs<F, M, 1>(matrix, o, x, out);
  } else {
    rounded_put_down<F::SCALES, F::OFFSETS && F::SCALES == 1, M>(matrix, put_down_codes<F>, x, out, first, last);
  }
}

template <class F>
void rounded(const Matrix& matrix, const Rows& given, int64_t rows, float* out, int64_t first, int64_t last) {
  Rows x = given;
  while (rows > 0) {
    int64_t some = 1;
    if (rows >= 4) rounded_rows<F, 4>(matrix, x, out, first, last), some = 4;
    else if (rows >= 2) rounded_rows<F, 2>(matrix, x, out, first, last), some = 2;
    else rounded_rows<F, 1>(matrix, x, out, first, last);
    rows -= some, out += some * matrix.outputs;
    x.codes += some * matrix.inputs, x.scales += some * (matrix.inputs / 32), x.totals += some * (matrix.inputs / 32);
  }
}

}  // namespace

#define DEFINE_VARIANT(NAME)                                                                                        \
  extern const Variant NAME = {#NAME,                                                                               \
                               {dense<OfF32>, dense<OfF16>, dense<OfBF16>, blocks<OfQ8_0>, blocks<OfQ4_0>,          \
                                blocks<OfINT4>, blocks<OfQ4_1>, blocks<OfQ5_0>, blocks<OfQ5_1>, blocks<OfQ4_K>,     \
                                blocks<OfQ5_K>, blocks<OfQ6_K>},                                                   \
                               {0, 0, 0, rounded<OfQ8_0>, rounded<OfQ4_0>, rounded<OfINT4>, rounded<OfQ4_1>,        \
                                rounded<OfQ5_0>, rounded<OfQ5_1>, rounded<OfQ4_K>, rounded<OfQ5_K>,                 \
                                rounded<OfQ6_K>},                                                                   \
                               round_rows};
