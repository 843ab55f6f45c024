// The products of rounded.h for several rows by AVX-512: sixteen outputs at a time, side by side. In each register are
// four numbers of every one of them, which four numbers of a row are multiplied by.
//
// They are unpacked once for all rows. What is scarce is multiplying: so codes are multiplied without their sign, as more
// than they are, and what that comes to is where a block's sum begins. The sums are those of rounded_output, in its order.
#pragma once

namespace {

enum { SIXTEEN = 16, ROWS_AT_ONCE = 8 };

struct SixteenOutputs {
  __m512i* codes;          // [block, eight fours], of whole groups of eight blocks
  float *scales, *offsets;  // [block, scale, output]: of offsets as many where there are any
};

// Where the same numbers of some outputs lie, so many bytes apart; what is missing to sixteen is one of them again.
template <bool ALL>
struct Sixteen {
  const char* from;
  int64_t apart;
  int some;
  INLINE_MEMBER const char* operator[](int r) const { return from + (ALL || r < some ? r : 0) * apart; }
};

// Up to 32 bytes, and zeros: what is behind them is not read.
template <bool ALL>
INLINE __m256i bytes_up_to(const void* p, int bytes) {
  if (ALL || bytes >= 32) return _mm256_loadu_si256((const __m256i*)p);
  return bytes <= 0 ? _mm256_setzero_si256() : _mm256_maskz_loadu_epi8(~0u >> (32 - bytes), p);
}

// 32 bytes of sixteen outputs: register k has number k, of 32 bits, of each of them.
template <bool ALL>
INLINE void eight_of_sixteen(const Sixteen<ALL>& outputs, int bytes, __m512i* to) {
  __m512i a[8], b[8];
  for (int i = 0; i < 8; i++) {
    const int r = i % 4 + i / 4 * 8;
    const __m256i low = bytes_up_to<ALL>(outputs[r], bytes), high = bytes_up_to<ALL>(outputs[r + 4], bytes);
    a[i] = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  }
  for (int i = 0; i < 8; i += 2) {
    b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]), b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    for (int j = 0; j < 2; j++) {
      a[i + 2 * j] = _mm512_unpacklo_epi64(b[i + j], b[i + j + 2]);
      a[i + 2 * j + 1] = _mm512_unpackhi_epi64(b[i + j], b[i + j + 2]);
    }
  }
  for (int j = 0; j < 4; j++) {
    to[j] = _mm512_shuffle_i32x4(a[j], a[j + 4], 0x88), to[j + 4] = _mm512_shuffle_i32x4(a[j], a[j + 4], 0xdd);
  }
}

INLINE void eight_floats(const float (*from)[16], int first, float* to, int64_t apart) {
  __m512i eight[8];
  eight_of_sixteen(Sixteen<true>{(const char*)(from[0] + first), sizeof *from, SIXTEEN}, 32, eight);
  for (int i = 0; i < 8; i++) _mm512_store_si512(to + i * apart, eight[i]);
}

// What a number is more than its code is, so that none is negative.
template <class F>
struct Fours {
  enum { MORE = F::OFFSETS ? 0 : 128 };
  template <bool ALL>
  INLINE void put(const Matrix& matrix, int64_t o, int outputs, int64_t at, int some, __m512i* to) {
    const int64_t count = matrix.inputs / 32;
    Codes codes[SIXTEEN];
    for (int r = 0; r < outputs; r++) {
      const int64_t run = (o + r) * count + at;
      const Runs runs = {matrix, run, F::SUPER ? run / 8 : 0};
      put_down_run<F, 0>(runs, some, codes[r]);
      put_down_run<F, 1>(runs, some, codes[r]);
      put_down_run<F, 2>(runs, some, codes[r]);
      put_down_run<F, 3>(runs, some, codes[r]);
      put_down_run<F, 4>(runs, some, codes[r]);
      put_down_run<F, 5>(runs, some, codes[r]);
      put_down_run<F, 6>(runs, some, codes[r]);
      put_down_run<F, 7>(runs, some, codes[r]);
    }
    ONCE for (int b = 0; b < some; b++, to += 8) {
      eight_of_sixteen(Sixteen<ALL>{(const char*)codes[0].code + 32 * b, sizeof codes[0], outputs}, 32, to);
      for (int k = 0; MORE && k < 8; k++) to[k] = _mm512_xor_si512(to[k], _mm512_set1_epi8((char)MORE));
    }
  }
};

template <>
struct Fours<OfQ8_0> {
  enum { MORE = 128 };
  template <bool ALL>
  INLINE void put(const Matrix& matrix, int64_t o, int outputs, int64_t at, int some, __m512i* to) {
    const int64_t row = matrix.inputs;
    const char* from = (const char*)matrix.parts[1] + o * row + 32 * at;
    ONCE for (int b = 0; b < some; b++, to += 8) {
      eight_of_sixteen(Sixteen<ALL>{from + 32 * b, row, outputs}, 32, to);
      for (int k = 0; k < 8; k++) to[k] = _mm512_xor_si512(to[k], _mm512_set1_epi8((char)MORE));
    }
  }
};

// Sixteen bytes a block: lower nibbles are the first half, upper ones the second. A fifth bit is in a word, or what a nibble
// stands for in a table.
template <int CODES, int WORDS, const int8_t* TABLE = nullptr>
struct FoursOfNibbles {
  enum { MORE = TABLE ? 128 : 0 };
  template <bool ALL>
  INLINE void put(const Matrix& matrix, int64_t o, int outputs, int64_t at, int some, __m512i* to) {
    const int64_t count = matrix.inputs / 32, first = o * count + at;
    const char* from = (const char*)matrix.parts[CODES] + 16 * first;
    __m512i words[8], two[8];
    if constexpr (WORDS) {
      eight_of_sixteen(Sixteen<ALL>{(const char*)matrix.parts[WORDS] + 4 * first, 4 * count, outputs}, 4 * some, words);
    }
    for (int b = 0; b < some; b++, to += 8) {
      if (b % 2 == 0) eight_of_sixteen(Sixteen<ALL>{from + 16 * b, 16 * count, outputs}, 16 * (some - b), two);
      for (int k = 0; k < 4; k++) {
        const __m512i bytes = two[b % 2 * 4 + k];
        to[k] = whole<WORDS>(low_nibbles(bytes), WORDS ? words[b] : bytes, 4 * k);
        to[k + 4] = whole<WORDS>(high_nibbles(bytes), WORDS ? words[b] : bytes, 4 * k + 16);
      }
    }
  }
  template <int FIFTH>
  INLINE __m512i whole(__m512i nibbles, __m512i word, int bit) {
    if constexpr (TABLE != nullptr) {
      const __m512i table = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i*)TABLE));
      return _mm512_xor_si512(_mm512_shuffle_epi8(table, nibbles), _mm512_set1_epi8((char)MORE));
    }
    if constexpr (!FIFTH) return nibbles;
    const __m512i sixteens =  // for four bits, as many bytes
        _mm512_set_epi32(0x10101010, 0x10101000, 0x10100010, 0x10100000, 0x10001010, 0x10001000, 0x10000010, 0x10000000,
                         0x00101010, 0x00101000, 0x00100010, 0x00100000, 0x00001010, 0x00001000, 0x00000010, 0);
    return _mm512_or_si512(nibbles, _mm512_permutexvar_epi32(_mm512_srli_epi32(word, bit), sixteens));
  }
};

template <>
struct Fours<OfQ4_0> : FoursOfNibbles<1, 0> {};
template <>
struct Fours<OfINT4> : FoursOfNibbles<1, 0> {};
template <>
struct Fours<OfQ4_1> : FoursOfNibbles<2, 0> {};
template <>
struct Fours<OfQ5_0> : FoursOfNibbles<2, 1> {};
template <>
struct Fours<OfQ5_1> : FoursOfNibbles<3, 2> {};
template <>
struct Fours<OfIQ4_NL> : FoursOfNibbles<1, 0, NOT_LINEAR> {};
template <>
struct Fours<OfIQ4_XS> : FoursOfNibbles<2, 0, NOT_LINEAR> {};

// Some bits of each byte, the lowest of them bit FROM, to bit 4 and above.
template <int FROM, int BITS>
INLINE __m512i with_bits(__m512i nibbles, __m512i bytes) {
  const __m512i moved = FROM < 4 ? _mm512_slli_epi16(bytes, 4 - FROM) : _mm512_srli_epi16(bytes, FROM - 4);
  return _mm512_ternarylogic_epi32(nibbles, moved, _mm512_set1_epi8((char)BITS), 0xf8);  // a | b & c
}

// 32 bytes two runs, of blocks of 256: the lower nibbles are the first one, the upper ones the second. Fifth bits lie by
// runs, in 32 bytes of their own.
template <int CODES, int FIFTHS>
struct FoursOfRuns {
  enum { MORE = 0 };
  template <bool ALL>
  INLINE void put(const Matrix& matrix, int64_t o, int outputs, int64_t at, int, __m512i* to) {
    const int64_t supers = matrix.inputs / 256, super = o * supers + at / 8;
    __m512i fifths[8];
    if constexpr (FIFTHS) {
      eight_of_sixteen(Sixteen<ALL>{(const char*)matrix.parts[FIFTHS] + 32 * super, 32 * supers, outputs}, 32, fifths);
    }
    const Sixteen<ALL> from = {(const char*)matrix.parts[CODES] + 128 * super, 128 * supers, outputs};
    two_runs<0>(from, fifths, to);
    two_runs<2>(from, fifths, to);
    two_runs<4>(from, fifths, to);
    two_runs<6>(from, fifths, to);
  }
  template <int B, bool ALL>
  INLINE void two_runs(Sixteen<ALL> from, const __m512i* fifths, __m512i* to) {
    __m512i bytes[8];
    from.from += 16 * B;
    eight_of_sixteen(from, 32, bytes);
    for (int k = 0; k < 8; k++) {
      const __m512i low = low_nibbles(bytes[k]), high = high_nibbles(bytes[k]);
      to[8 * B + k] = FIFTHS ? with_bits<B, 16>(low, fifths[k]) : low;
      to[8 * B + 8 + k] = FIFTHS ? with_bits<B + 1, 16>(high, fifths[k]) : high;
    }
  }
};

template <>
struct Fours<OfQ4_K> : FoursOfRuns<4, 0> {};
template <>
struct Fours<OfQ5_K> : FoursOfRuns<5, 4> {};

// 32 bytes two runs, the upper nibbles that after the next, and two more bits of four runs in 32 bytes of their own.
template <>
struct Fours<OfQ6_K> {
  enum { MORE = 32 };
  template <bool ALL>
  INLINE void put(const Matrix& matrix, int64_t o, int outputs, int64_t at, int, __m512i* to) {
    const int64_t supers = matrix.inputs / 256, super = o * supers + at / 8;
    ONCE for (int half = 0; half < 2; half++, to += 32) {
      __m512i upper[8];
      eight_of_sixteen(Sixteen<ALL>{(const char*)matrix.parts[2] + 64 * super + 32 * half, 64 * supers, outputs}, 32, upper);
      const Sixteen<ALL> from = {(const char*)matrix.parts[3] + 128 * super + 64 * half, 128 * supers, outputs};
      two_runs<0>(from, upper, to);
      two_runs<1>(from, upper, to);
    }
  }
  template <int B, bool ALL>
  INLINE void two_runs(Sixteen<ALL> from, const __m512i* upper, __m512i* to) {
    __m512i bytes[8];
    from.from += 32 * B;
    eight_of_sixteen(from, 32, bytes);
    for (int k = 0; k < 8; k++) {
      to[8 * B + k] = with_bits<2 * B, 48>(low_nibbles(bytes[k]), upper[k]);
      to[8 * B + 16 + k] = with_bits<2 * B + 4, 48>(high_nibbles(bytes[k]), upper[k]);
    }
  }
};

template <class F, bool ALL>
INLINE void put_some(const Matrix& matrix, int64_t o, int outputs, int64_t at, int some, const SixteenOutputs& to) {
  const int64_t count = matrix.inputs / 32;
  Fours<F>::template put<ALL>(matrix, o, outputs, at, some, to.codes + 8 * at);
  alignas(64) float scales[SIXTEEN][16], offsets[SIXTEEN][16];
  for (int r = 0; r < SIXTEEN; r++) {
    const int64_t run = (o + (ALL || r < outputs ? r : 0)) * count + at;
    F::scales({matrix, run, F::SUPER ? run / 8 : 0}, some, scales[r], offsets[r]);
  }
  enum { S = F::SCALES, APART = 16 * S };
  float *scale = to.scales + APART * at, *offset = to.offsets + APART * at;
  for (int s = 0; s < S; s++) eight_floats(scales, 8 * s, scale + 16 * s, APART);
  if constexpr (F::OFFSETS) {
    if constexpr (S == 2) {
      for (int r = 0; r < SIXTEEN; r++)
        for (int b = 0; b < 8; b++) offsets[r][b] = more_of_first(offsets[r], b);
    }
    for (int s = 0; s < S; s++) eight_floats(offsets, 8 * (S - 1 - s), offset + 16 * s, APART);
  }
}

template <class F>
void put_sixteen(const Matrix& matrix, int64_t o, int outputs, const SixteenOutputs& to) {
  const int64_t count = matrix.inputs / 32;
  int64_t at = 0;
  const char* scales = (const char*)matrix.parts[0] + (o + SIXTEEN) * count * 2;
  for (int64_t line = 0; !F::SUPER && line < SIXTEEN * count * 2; line += 64) _mm_prefetch(scales + line, _MM_HINT_T0);
  if (outputs == SIXTEEN)
    for (; at + 8 <= count; at += 8) {
      put_some<F, true>(matrix, o, SIXTEEN, at, 8, to);
    }
  for (; at < count; at += 8) put_some<F, false>(matrix, o, outputs, at, count - at < 8 ? (int)(count - at) : 8, to);
}

typedef void (*PutSixteen)(const Matrix& matrix, int64_t o, int outputs, const SixteenOutputs& to);

// A block of M rows.
template <int SCALES, int M>
struct RowsOfBlock {
  int8_t codes[M][32];
  int32_t before[SCALES][M];  // where the sums of the block, or of its halves, begin
  float scales[M], totals[M], firsts[M];
};

template <int SCALES, int M>
void lay_out_for_sixteen(const Rows& x, int64_t count, int more, const int32_t* firsts, const int32_t* seconds, char* to) {
  RowsOfBlock<SCALES, M>* block = (RowsOfBlock<SCALES, M>*)to;
  for (int64_t at = 0; at < count; at++, block++) {
    for (int m = 0; m < M; m++) {
      const int64_t from = m * count + at;
      memcpy(block->codes[m], x.codes + 32 * from, 32);
      if (SCALES == 1) block->before[0][m] = -more * (firsts[from] + seconds[from]);
      else block->before[0][m] = -more * firsts[from], block->before[SCALES - 1][m] = -more * seconds[from];
      block->scales[m] = x.scales[from], block->totals[m] = x.totals[from], block->firsts[m] = x.firsts[from];
    }
  }
}

INLINE __m512i dots_with_four(__m512i before, __m512i codes, const int8_t* four) {
  int32_t those;
  memcpy(&those, four, 4);
  return _mm512_dpbusd_epi32(before, codes, _mm512_set1_epi32(those));
}

// Lines that are asked for meanwhile, some for each block.
struct Ahead {
  const char* next;
  int lines;
};

template <int SCALES, bool OFFSETS, int M>
void sixteen_with_rows(const SixteenOutputs& w, const char* rows, int64_t count, Ahead ahead, float* out,
                       int64_t outputs, int some) {
  const RowsOfBlock<SCALES, M>* blocks = (const RowsOfBlock<SCALES, M>*)rows;
  V parts[8][M];
  for (int b = 0; b < 8; b++) {
    V sums[M];
    for (int m = 0; m < M; m++) sums[m] = zero();
    for (int64_t at = b; at < count; at += 8) {
      for (int line = 0; line < ahead.lines; line++, ahead.next += 64) _mm_prefetch(ahead.next, _MM_HINT_T0);
      const RowsOfBlock<SCALES, M>& x = blocks[at];
      const float *scales = w.scales + 16 * SCALES * at, *offsets = w.offsets + 16 * SCALES * at;
      __m512i codes[8];
      for (int k = 0; k < 8; k++) codes[k] = w.codes[8 * at + k];
      for (int m = 0; m < M; m++) {
        if (OFFSETS) sums[m] = fma(load(offsets), all(x.totals[m]), sums[m]);
        if (OFFSETS && SCALES == 2) sums[m] = fma(load(offsets + 16), all(x.firsts[m]), sums[m]);
        for (int s = 0; s < SCALES; s++) {
          __m512i dots = _mm512_set1_epi32(x.before[s][m]);
          for (int k = 8 / SCALES * s; k < 8 / SCALES * (s + 1); k++) dots = dots_with_four(dots, codes[k], x.codes[m] + 4 * k);
          sums[m] = fma(_mm512_cvtepi32_ps(dots), mul(load(scales + 16 * s), all(x.scales[m])), sums[m]);
        }
      }
    }
    for (int m = 0; m < M; m++) parts[b][m] = sums[m];
  }
  const __mmask16 those = (__mmask16)((1u << some) - 1);
  for (int m = 0; m < M; m++) {
    V four[4];
    for (int b = 0; b < 4; b++) four[b] = _mm512_add_ps(parts[b][m], parts[b + 4][m]);  // as eight_sum does
    _mm512_mask_storeu_ps(out + m * outputs, those, _mm512_add_ps(_mm512_add_ps(four[0], four[2]), _mm512_add_ps(four[1], four[3])));
  }
}

struct ForRows {
  void (*lay_out)(const Rows& x, int64_t count, int more, const int32_t* firsts, const int32_t* seconds, char* to);
  void (*multiply)(const SixteenOutputs& w, const char* rows, int64_t count, Ahead ahead, float* out, int64_t outputs,
                   int some);
  int64_t bytes;  // of a block
};

template <int SCALES, bool OFFSETS, int M>
constexpr ForRows FOR_ROWS = {lay_out_for_sixteen<SCALES, M>, sixteen_with_rows<SCALES, OFFSETS, M>, sizeof(RowsOfBlock<SCALES, M>)};

template <int SCALES, bool OFFSETS>
void in_sixteens(const Matrix& matrix, PutSixteen put, int more, const char* codes, int bytes, const Rows& given,
                 int64_t rows, float* out, int64_t first, int64_t last) {
  static constexpr ForRows for_rows[ROWS_AT_ONCE] = {
      FOR_ROWS<SCALES, OFFSETS, 1>, FOR_ROWS<SCALES, OFFSETS, 2>, FOR_ROWS<SCALES, OFFSETS, 3>, FOR_ROWS<SCALES, OFFSETS, 4>,
      FOR_ROWS<SCALES, OFFSETS, 5>, FOR_ROWS<SCALES, OFFSETS, 6>, FOR_ROWS<SCALES, OFFSETS, 7>, FOR_ROWS<SCALES, OFFSETS, 8>};
  const int64_t n = matrix.inputs, count = n / 32, whole = (count + 7) / 8 * 8;
  const int64_t groups = (rows + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;
  // Memory: sixteen outputs, the rows, and the sums of their codes.
  const int64_t of_outputs = whole * (512 + 2 * 64 * SCALES), of_rows = rows * count * (32 + 4 * SCALES + 12);
  char* room = given.room(64 + of_outputs + of_rows + 8 * (rows * count + 8));
  room += -(intptr_t)room & 63;
  float* scales = (float*)(room + 512 * whole);
  const SixteenOutputs w = {(__m512i*)room, scales, scales + 16 * SCALES * whole};
  char* const laid = room + of_outputs;
  int32_t *firsts = (int32_t*)(laid + of_rows), *seconds = firsts + rows * count + 8;
  sum_halves(given.codes, rows * count, firsts, seconds);
  char* to = laid;
  for (int64_t g = 0, m = 0; g < groups; g++) {
    const int64_t now = (rows - m + groups - g - 1) / (groups - g), from = m * count;
    const ForRows& by = for_rows[now - 1];
    by.lay_out(later_rows(given, m, n), count, more, firsts + from, seconds + from, to);
    to += count * by.bytes, m += now;
  }
  for (int64_t o = first; o < last; o += SIXTEEN) {
    const int some = last - o < SIXTEEN ? (int)(last - o) : SIXTEEN;
    put(matrix, o, some, w);
    const char* from = laid;
    for (int64_t g = 0, m = 0; g < groups; g++) {
      const int64_t now = (rows - m + groups - g - 1) / (groups - g);
      const ForRows& by = for_rows[now - 1];
      by.multiply(w, from, count, {codes + (o + SIXTEEN) * count * bytes, g ? 0 : bytes / 4}, out + m * matrix.outputs + o, matrix.outputs, some);
      from += count * by.bytes, m += now;
    }
  }
}

}  // namespace
