// The products of rounded.h for several rows by AVX-512: sixteen outputs at a time, side by side. In each register are
// four numbers of every one of them, which four numbers of a row are multiplied by.
//
// They are unpacked once for all rows. What is scarce is multiplying and loading: so codes are multiplied as more than
// they are, without a sign, and a block's sum begins with minus what that comes to. Whole numbers are exact, and all else
// is done in the order in which rounded.h does it: the numbers are the same to the bit.
//
// The codes of the outputs that come next are asked for meanwhile, a few lines with each block.
#pragma once

namespace {

enum { SIXTEEN = 16 };  // outputs

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

// What is asked for meanwhile: line after line.
struct Ahead {
  const char* next;
  INLINE_MEMBER void ask(int lines) {
    for (int line = 0; line < lines; line++, next += 64) _mm_prefetch(next, _MM_HINT_T0);
  }
};

INLINE void eight_floats(const float (*from)[16], int first, float* to, int64_t apart) {
  __m512i eight[8];
  eight_of_sixteen(Sixteen<true>{(const char*)(from[0] + first), sizeof *from, SIXTEEN}, 32, eight);
  for (int i = 0; i < 8; i++) _mm512_store_si512(to + i * apart, eight[i]);
}

// What lies beside the codes is asked for where it is read: that of outputs which come after the next.
template <bool ALL>
INLINE void eight_beside(const Sixteen<ALL>& outputs, int bytes, __m512i* to) {
  eight_of_sixteen(outputs, bytes, to);
  for (int r = 0; r < SIXTEEN; r++) _mm_prefetch(outputs.from + (r + 2 * SIXTEEN) * outputs.apart, _MM_HINT_T0);
}

// What a number is more than its code is, so that none is negative.
template <class F>
struct Fours {
  enum { MORE = F::OFFSETS ? 0 : 128 };
  template <bool ALL>
  INLINE void put(const Matrix& matrix, int64_t o, int outputs, int64_t at, int some, Ahead& ahead, int lines,
                  __m512i* to) {
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
      ahead.ask(lines);
      eight_of_sixteen(Sixteen<ALL>{(const char*)codes[0].code + 32 * b, sizeof codes[0], outputs}, 32, to);
      for (int k = 0; MORE && k < 8; k++) to[k] = _mm512_xor_si512(to[k], _mm512_set1_epi8((char)MORE));
    }
  }
};

template <>
struct Fours<OfQ8_0> {
  enum { MORE = 128 };
  template <bool ALL>
  INLINE void put(const Matrix& matrix, int64_t o, int outputs, int64_t at, int some, Ahead& ahead, int lines,
                  __m512i* to) {
    const int64_t row = matrix.inputs;
    const char* from = (const char*)matrix.parts[1] + o * row + 32 * at;
    ONCE for (int b = 0; b < some; b++, to += 8) {
      ahead.ask(lines);
      eight_of_sixteen(Sixteen<ALL>{from + 32 * b, row, outputs}, 32, to);
      for (int k = 0; k < 8; k++) to[k] = _mm512_xor_si512(to[k], _mm512_set1_epi8((char)MORE));
    }
  }
};

// Sixteen bytes a block: lower nibbles are the first half, upper ones the second. A fifth bit is in a word, or what a
// nibble stands for in a table.
template <int CODES, int WORDS, const int8_t* TABLE = nullptr>
struct FoursOfNibbles {
  enum { MORE = TABLE ? 128 : 0 };
  template <bool ALL>
  INLINE void put(const Matrix& matrix, int64_t o, int outputs, int64_t at, int some, Ahead& ahead, int lines,
                  __m512i* to) {
    const int64_t count = matrix.inputs / 32, first = o * count + at;
    const char* from = (const char*)matrix.parts[CODES] + 16 * first;
    __m512i words[8], two[8];
    if constexpr (WORDS) {
      eight_beside(Sixteen<ALL>{(const char*)matrix.parts[WORDS] + 4 * first, 4 * count, outputs}, 4 * some, words);
    }
    for (int b = 0; b < some; b++, to += 8) {
      ahead.ask(lines);
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

// 32 bytes two runs, of blocks of 256: the lower nibbles are the first one, the upper ones the second. Fifth bits lie
// by runs, in 32 bytes of their own.
template <int CODES, int FIFTHS>
struct FoursOfRuns {
  enum { MORE = 0 };
  template <bool ALL>
  INLINE void put(const Matrix& matrix, int64_t o, int outputs, int64_t at, int, Ahead& ahead, int lines, __m512i* to) {
    const int64_t supers = matrix.inputs / 256, super = o * supers + at / 8;
    __m512i fifths[8];
    if constexpr (FIFTHS) {
      eight_beside(Sixteen<ALL>{(const char*)matrix.parts[FIFTHS] + 32 * super, 32 * supers, outputs}, 32, fifths);
    }
    const Sixteen<ALL> from = {(const char*)matrix.parts[CODES] + 128 * super, 128 * supers, outputs};
    ahead.ask(2 * lines), two_runs<0>(from, fifths, to);
    ahead.ask(2 * lines), two_runs<2>(from, fifths, to);
    ahead.ask(2 * lines), two_runs<4>(from, fifths, to);
    ahead.ask(2 * lines), two_runs<6>(from, fifths, to);
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
  INLINE void put(const Matrix& matrix, int64_t o, int outputs, int64_t at, int, Ahead& ahead, int lines, __m512i* to) {
    const int64_t supers = matrix.inputs / 256, super = o * supers + at / 8;
    ONCE for (int half = 0; half < 2; half++, to += 32) {
      __m512i upper[8];
      const Sixteen<ALL> bits = {(const char*)matrix.parts[2] + 64 * super + 32 * half, 64 * supers, outputs};
      eight_beside(bits, 32, upper);
      const Sixteen<ALL> from = {(const char*)matrix.parts[3] + 128 * super + 64 * half, 128 * supers, outputs};
      ahead.ask(2 * lines), two_runs<0>(from, upper, to);
      ahead.ask(2 * lines), two_runs<1>(from, upper, to);
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
INLINE void put_eight(const Matrix& matrix, int64_t o, int outputs, int64_t at, int some, Ahead& ahead, int lines,
                      const SixteenOutputs& to) {
  const int64_t count = matrix.inputs / 32;
  Fours<F>::template put<ALL>(matrix, o, outputs, at, some, ahead, lines, to.codes + 8 * at);
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
void put_sixteen(const Matrix& matrix, int64_t o, int outputs, Ahead& given, int lines, const SixteenOutputs& to) {
  const int64_t count = matrix.inputs / 32;
  Ahead ahead = given;
  if (!F::SUPER) {  // scales have a place of their own
    Ahead scales = {(const char*)matrix.parts[0] + 2 * count * (o + SIXTEEN)};
    scales.ask((int)count / 2);
  }
  for (int64_t at = 0; at < count; at += 8) {
    const int some = count - at < 8 ? (int)(count - at) : 8;
    if (outputs == SIXTEEN && some == 8) put_eight<F, true>(matrix, o, SIXTEEN, at, 8, ahead, lines, to);
    else put_eight<F, false>(matrix, o, outputs, at, some, ahead, lines, to);
  }
  given = ahead;
}

typedef void (*PutSixteen)(const Matrix& matrix, int64_t o, int outputs, Ahead& ahead, int lines,
                           const SixteenOutputs& to);

// A block of M rows.
template <int SCALES, int M>
struct RowsOfBlock {
  int8_t codes[M][32];
  int32_t before[SCALES][M];  // where the sums of the block, or of its halves, begin
  float scales[M], totals[M], firsts[M];
};

template <int SCALES, int M>
void lay_out_for_sixteen(const Rows& x, int64_t count, int more, const int32_t* firsts, const int32_t* seconds,
                         char* to) {
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

// Four numbers of a row, with those of sixteen outputs.
INLINE __m512i dots_with_four(__m512i before, __m512i codes, const int8_t* four) {
  int32_t those;
  memcpy(&those, four, 4);
  return _mm512_dpbusd_epi32(before, codes, _mm512_set1_epi32(those));
}

// A block of M rows, added to their sums: row by row, with the codes in registers.
template <int SCALES, bool OFFSETS, int M>
INLINE void one_sixteen(const SixteenOutputs& w, int64_t at, const RowsOfBlock<SCALES, M>& x, V* sums) {
  __m512i codes[8];
  for (int k = 0; k < 8; k++) codes[k] = w.codes[8 * at + k];
  const float *scales = w.scales + SIXTEEN * SCALES * at, *offsets = w.offsets + SIXTEEN * SCALES * at;
  for (int m = 0; m < M; m++) {
    if (OFFSETS) sums[m] = fma(load(offsets), all(x.totals[m]), sums[m]);
    if (OFFSETS && SCALES == 2) sums[m] = fma(load(offsets + SIXTEEN), all(x.firsts[m]), sums[m]);
    for (int s = 0; s < SCALES; s++) {
      __m512i dots = _mm512_set1_epi32(x.before[s][m]);
      for (int k = 8 / SCALES * s; k < 8 / SCALES * (s + 1); k++) {
        dots = dots_with_four(dots, codes[k], x.codes[m] + 4 * k);
      }
      sums[m] = fma(_mm512_cvtepi32_ps(dots), mul(load(scales + SIXTEEN * s), all(x.scales[m])), sums[m]);
    }
  }
}

// The same of twice sixteen outputs, where four numbers of a row are loaded once for both.
template <int SCALES, bool OFFSETS, int M>
INLINE void two_sixteens(const SixteenOutputs* w, int64_t at, const RowsOfBlock<SCALES, M>& x, V (*sums)[M]) {
  const float *scales[2], *offsets[2];
  for (int r = 0; r < 2; r++) {
    scales[r] = w[r].scales + SIXTEEN * SCALES * at, offsets[r] = w[r].offsets + SIXTEEN * SCALES * at;
    for (int m = 0; OFFSETS && m < M; m++) {
      sums[r][m] = fma(load(offsets[r]), all(x.totals[m]), sums[r][m]);
      if (SCALES == 2) sums[r][m] = fma(load(offsets[r] + SIXTEEN), all(x.firsts[m]), sums[r][m]);
    }
  }
  for (int s = 0; s < SCALES; s++) {
    __m512i dots[2][M];
    for (int m = 0; m < M; m++) dots[0][m] = dots[1][m] = _mm512_set1_epi32(x.before[s][m]);
    for (int k = 8 / SCALES * s; k < 8 / SCALES * (s + 1); k++) {
      for (int m = 0; m < M; m++) {
        for (int r = 0; r < 2; r++) dots[r][m] = dots_with_four(dots[r][m], w[r].codes[8 * at + k], x.codes[m] + 4 * k);
      }
    }
    for (int m = 0; m < M; m++) {
      for (int r = 0; r < 2; r++) {
        const V scale = mul(load(scales[r] + SIXTEEN * s), all(x.scales[m]));
        sums[r][m] = fma(_mm512_cvtepi32_ps(dots[r][m]), scale, sums[r][m]);
      }
    }
  }
}

// R sixteens of outputs with M rows.
template <int SCALES, bool OFFSETS, int R, int M>
void sixteens_with_rows(const SixteenOutputs* w, const char* rows, int64_t count, Ahead& given, int lines, float* out,
                        int64_t outputs, int some) {
  const RowsOfBlock<SCALES, M>* blocks = (const RowsOfBlock<SCALES, M>*)rows;
  Ahead ahead = given;
  V parts[8][R][M];
  for (int b = 0; b < 8; b++) {
    V sums[R][M];
    for (int r = 0; r < R; r++)
      for (int m = 0; m < M; m++) sums[r][m] = zero();
    for (int64_t at = b; at < count; at += 8) {
      ahead.ask(lines);
      if constexpr (R == 1) one_sixteen<SCALES, OFFSETS, M>(w[0], at, blocks[at], sums[0]);
      else two_sixteens<SCALES, OFFSETS, M>(w, at, blocks[at], sums);
    }
    for (int r = 0; r < R; r++)
      for (int m = 0; m < M; m++) parts[b][r][m] = sums[r][m];
  }
  given = ahead;
  for (int r = 0; r < R && some > SIXTEEN * r; r++) {
    const int left = some - SIXTEEN * r;
    const __mmask16 those = left >= SIXTEEN ? 0xffff : (__mmask16)((1u << left) - 1);
    for (int m = 0; m < M; m++) {
      V four[4];
      for (int b = 0; b < 4; b++) four[b] = _mm512_add_ps(parts[b][r][m], parts[b + 4][r][m]);  // as eight_sum does
      const V found = _mm512_add_ps(_mm512_add_ps(four[0], four[2]), _mm512_add_ps(four[1], four[3]));
      _mm512_mask_storeu_ps(out + m * outputs + SIXTEEN * r, those, found);
    }
  }
}

struct ForRows {
  void (*lay_out)(const Rows& x, int64_t count, int more, const int32_t* firsts, const int32_t* seconds, char* to);
  void (*multiply)(const SixteenOutputs* w, const char* rows, int64_t count, Ahead& ahead, int lines, float* out,
                   int64_t outputs, int some);
  int64_t bytes;  // of a block
};

template <int SCALES, bool OFFSETS, int R, int M>
constexpr ForRows FOR_ROWS = {lay_out_for_sixteen<SCALES, M>, sixteens_with_rows<SCALES, OFFSETS, R, M>,
                              sizeof(RowsOfBlock<SCALES, M>)};

// A matrix in blocks: how sixteen outputs are put down, what their codes are more than they are, and where codes lie.
struct InSixteens {
  PutSixteen put;
  int more;
  const char* codes;
  int bytes;  // of 32 codes
};

// R sixteens of outputs at a time, with as many as MOST rows. The rows are shared as evenly as they can be.
template <int SCALES, int R, int MOST>
void sixteens_with_all(const ForRows* for_rows, const Matrix& matrix, const InSixteens& how, const Rows& given,
                       int64_t rows, float* out, int64_t first, int64_t last) {
  const int64_t count = matrix.inputs / 32, whole = (count + 7) / 8 * 8, groups = (rows + MOST - 1) / MOST;
  // Memory: the outputs, the rows, and the sums of their codes.
  const int64_t of_outputs = whole * (512 + 2 * 64 * SCALES);
  const int64_t of_rows = rows * count * (int64_t)sizeof(RowsOfBlock<SCALES, 1>), of_sums = 4 * (rows * count + 8);
  char* room = given.room(64 + R * of_outputs + of_rows + 2 * of_sums);
  room += -(intptr_t)room & 63;
  SixteenOutputs w[R];
  for (int r = 0; r < R; r++, room += of_outputs) {
    float* scales = (float*)(room + 512 * whole);
    w[r] = {(__m512i*)room, scales, scales + SIXTEEN * SCALES * whole};
  }
  int32_t *firsts = (int32_t*)(room + of_rows), *seconds = (int32_t*)(room + of_rows + of_sums);
  sum_halves(given.codes, rows * count, firsts, seconds);
  char* laid = room;
  for (int64_t g = 0, m = 0; g < groups; g++) {
    const int64_t now = (rows - m) / (groups - g), from = m * count;
    const ForRows& by = for_rows[now - 1];
    by.lay_out(later_rows(given, m, matrix.inputs), count, how.more, firsts + from, seconds + from, laid);
    laid += count * by.bytes, m += now;
  }
  // Lines for each block: half of them while it is put down, where it is multiplied by a few rows alone.
  const int lines = R * how.bytes / 4, in_put = rows <= 4 ? how.bytes / 8 : 0;
  const int of_each = (lines - R * in_put) / (int)(groups < 4 ? groups : 4);
  for (int64_t o = first; o < last; o += R * SIXTEEN) {
    const int some = last - o < R * SIXTEEN ? (int)(last - o) : R * SIXTEEN;
    Ahead ahead = {how.codes + (o + some) * count * how.bytes};
    for (int r = 0; r < R && some > SIXTEEN * r; r++) {
      const int left = some - SIXTEEN * r;
      how.put(matrix, o + SIXTEEN * r, left < SIXTEEN ? left : SIXTEEN, ahead, in_put, w[r]);
    }
    const char* from = room;
    for (int64_t g = 0, m = 0; g < groups; g++) {
      const int64_t now = (rows - m) / (groups - g);
      const ForRows& by = for_rows[now - 1];
      float* to = out + m * matrix.outputs + o;
      by.multiply(w, from, count, ahead, g < 4 ? of_each : 0, to, matrix.outputs, some);
      from += count * by.bytes, m += now;
    }
  }
}

enum { INPUTS_OF_TWO = 1024 };  // of which a core keeps twice sixteen outputs, side by side, nearest to it

template <int SCALES, bool OFFSETS>
void in_sixteens(const Matrix& matrix, const InSixteens& how, const Rows& x, int64_t rows, float* out, int64_t first,
                 int64_t last) {
  static constexpr ForRows one[8] = {FOR_ROWS<SCALES, OFFSETS, 1, 1>, FOR_ROWS<SCALES, OFFSETS, 1, 2>,
                                     FOR_ROWS<SCALES, OFFSETS, 1, 3>, FOR_ROWS<SCALES, OFFSETS, 1, 4>,
                                     FOR_ROWS<SCALES, OFFSETS, 1, 5>, FOR_ROWS<SCALES, OFFSETS, 1, 6>,
                                     FOR_ROWS<SCALES, OFFSETS, 1, 7>, FOR_ROWS<SCALES, OFFSETS, 1, 8>};
  static constexpr ForRows two[4] = {FOR_ROWS<SCALES, OFFSETS, 2, 1>, FOR_ROWS<SCALES, OFFSETS, 2, 2>,
                                     FOR_ROWS<SCALES, OFFSETS, 2, 3>, FOR_ROWS<SCALES, OFFSETS, 2, 4>};
  if (matrix.inputs <= INPUTS_OF_TWO) sixteens_with_all<SCALES, 2, 4>(two, matrix, how, x, rows, out, first, last);
  else sixteens_with_all<SCALES, 1, 8>(one, matrix, how, x, rows, out, first, last);
}

}  // namespace
