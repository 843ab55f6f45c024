// The same on ARM's 64-bit processors: every register of the others is two of theirs.
//
// Included by simd.h alone. With VARIANT_DOTPROD there is an instruction for four products of eight bits and their sum;
// with VARIANT_I8MM one for eight numbers of two rows with eight of two others.
#pragma once

#include <arm_neon.h>

enum { ONE_PASS = 1, W = 8 };

struct V {
  float32x4_t a, b;
};
struct C32 {
  int8x16_t a, b;
};
INLINE V zero() { return {vdupq_n_f32(0), vdupq_n_f32(0)}; }
INLINE V load(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4)}; }
INLINE void store(float* p, V v) { vst1q_f32(p, v.a), vst1q_f32(p + 4, v.b); }
INLINE V all(float x) { return {vdupq_n_f32(x), vdupq_n_f32(x)}; }
INLINE V fma(V a, V b, V c) { return {vfmaq_f32(c.a, a.a, b.a), vfmaq_f32(c.b, a.b, b.b)}; }
INLINE V mul(V a, V b) { return {vmulq_f32(a.a, b.a), vmulq_f32(a.b, b.b)}; }
INLINE uint16x8_t eight_of_16(const uint16_t* p) {  // wherever they lie
  uint16x8_t found;
  memcpy(&found, p, sizeof found);
  return found;
}
INLINE V load_bf16(const uint16_t* p) {
  const uint16x8_t t = eight_of_16(p);
  return {vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vget_low_u16(t)), 16)),
          vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vget_high_u16(t)), 16))};
}
INLINE V load_i8(const int8_t* p) {
  const int16x8_t wide = vmovl_s8(vld1_s8(p));
  return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(wide)))};
}
INLINE V load_f16(const uint16_t* p) {
  const float16x8_t t = vreinterpretq_f16_u16(eight_of_16(p));
  return {vcvt_f32_f16(vget_low_f16(t)), vcvt_f32_f16(vget_high_f16(t))};
}
INLINE V floats_of(int8x8_t c) {
  const int16x8_t t = vmovl_s8(c);
  return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(t))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(t)))};
}
template <int I>
INLINE V widen(C32 c) {
  const int8x16_t half = I < 2 ? c.a : c.b;
  return floats_of(I % 2 ? vget_high_s8(half) : vget_low_s8(half));
}
INLINE float sum(V v) { return vaddvq_f32(vaddq_f32(v.a, v.b)); }
INLINE float one_f16(const uint16_t* p) {
  return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(get16(p)))), 0);
}
INLINE void eight_f16(const uint16_t* p, float* out) { store(out, load_f16(p)); }
INLINE void eight_bf16(const uint16_t* p, float* out) { store(out, load_bf16(p)); }
INLINE void u8_to_f32(const uint8_t* p, float times, float* out) {  // eight, each times a factor
  const uint16x8_t t = vmovl_u8(vld1_u8(p));
  store(out, mul({vcvtq_f32_u32(vmovl_u16(vget_low_u16(t))), vcvtq_f32_u32(vmovl_u16(vget_high_u16(t)))}, all(times)));
}
INLINE void i8_to_f32(const int8_t* p, float times, float* out) { store(out, mul(floats_of(vld1_s8(p)), all(times))); }
INLINE void i8_pairs_to_f32(const int8_t* p, float times, float* out) {  // eight first ones, then eight second ones
  const int8x8x2_t both = vld2_s8(p);
  store(out, mul(floats_of(both.val[0]), all(times)));
  store(out + 8, mul(floats_of(both.val[1]), all(times)));
}
INLINE C32 load_codes(const int8_t* p) { return {vld1q_s8(p), vld1q_s8(p + 16)}; }
INLINE C32 codes_of(uint8x16_t a, uint8x16_t b) { return {vreinterpretq_s8_u8(a), vreinterpretq_s8_u8(b)}; }
INLINE C32 with(C32 c, uint8x16_t a, uint8x16_t b) {
  const C32 more = codes_of(a, b);
  return {vorrq_s8(c.a, more.a), vorrq_s8(c.b, more.b)};
}
INLINE C32 nibbles_of_16(const uint8_t* p) {  // the lower halves of sixteen bytes, then the upper ones
  const uint8x16_t t = vld1q_u8(p);
  return codes_of(vandq_u8(t, vdupq_n_u8(15)), vshrq_n_u8(t, 4));
}
template <int UPPER>
INLINE C32 nibbles_of_32(const uint8_t* p) {
  const uint8x16_t a = vld1q_u8(p), b = vld1q_u8(p + 16), low = vdupq_n_u8(15);
  return UPPER ? codes_of(vshrq_n_u8(a, 4), vshrq_n_u8(b, 4)) : codes_of(vandq_u8(a, low), vandq_u8(b, low));
}
INLINE C32 set_bits(uint32_t word) {  // all bits of number i, where bit i of the word is set
  const uint8x8_t each = vcreate_u8(0x8040201008040201ULL);
  const uint8x16_t bit = vcombine_u8(each, each);
  const uint8x16_t a = vcombine_u8(vdup_n_u8((uint8_t)word), vdup_n_u8((uint8_t)(word >> 8)));
  const uint8x16_t b = vcombine_u8(vdup_n_u8((uint8_t)(word >> 16)), vdup_n_u8((uint8_t)(word >> 24)));
  return codes_of(vtstq_u8(a, bit), vtstq_u8(b, bit));
}
INLINE C32 looked_up(const int8_t* table, C32 nibbles) {  // in sixteen numbers
  const int8x16_t all_of_them = vld1q_s8(table);
  return {vqtbl1q_s8(all_of_them, vreinterpretq_u8_s8(nibbles.a)), vqtbl1q_s8(all_of_them, vreinterpretq_u8_s8(nibbles.b))};
}
template <int BIT>
INLINE uint8x16_t moved_to_4(const uint8_t* p, uint8_t kept) {  // what is kept of a byte from BIT on, from bit 4 on
  return vandq_u8(vshlq_u8(vld1q_u8(p), vdupq_n_s8(4 - BIT)), vdupq_n_u8(kept));
}
template <int BIT>
INLINE C32 with_bit_of_bytes(C32 c, const uint8_t* p) {  // a bit of byte i is worth 16 in number i
  return with(c, moved_to_4<BIT>(p, 16), moved_to_4<BIT>(p + 16, 16));
}
template <int BIT>
INLINE C32 with_two_bits_of_bytes(C32 c, const uint8_t* p) {  // two bits of byte i, from BIT on, above four of number i
  return with(c, moved_to_4<BIT>(p, 48), moved_to_4<BIT>(p + 16, 48));
}

// Eight sums of whole numbers, for activations in eight bits.
typedef V Eight;
struct Whole {
  int32x4_t a, b;
};
INLINE Eight eight_all(float x) { return all(x); }
INLINE Eight eight_load(const float* p) { return load(p); }
INLINE Eight eight_load_some(const float* p, int some) {  // and zeros; what is behind them is not read
  float eight[8] = {0};
  memcpy(eight, p, (size_t)some * sizeof(float));
  return load(eight);
}
INLINE Eight eight_fma(Eight a, Eight b, Eight c) { return fma(a, b, c); }
INLINE Eight eight_add(Eight a, Eight b) { return {vaddq_f32(a.a, b.a), vaddq_f32(a.b, b.b)}; }
INLINE Eight eight_sub(Eight a, Eight b) { return {vsubq_f32(a.a, b.a), vsubq_f32(a.b, b.b)}; }
INLINE Eight eight_mul(Eight a, Eight b) { return mul(a, b); }
INLINE Eight eight_of(Whole w) { return {vcvtq_f32_s32(w.a), vcvtq_f32_s32(w.b)}; }
INLINE float eight_sum(Eight v) {  // halves first, then lane i and i + 2: as eight outputs side by side are added
  const float32x4_t q = vaddq_f32(v.a, v.b);
  const float32x2_t two = vadd_f32(vget_low_f32(q), vget_high_f32(q));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
INLINE Whole no_whole() { return {vdupq_n_s32(0), vdupq_n_s32(0)}; }
INLINE Whole add_whole(Whole a, Whole b) { return {vaddq_s32(a.a, b.a), vaddq_s32(a.b, b.b)}; }
INLINE C32 four_of_row(const int8_t* p) {  // four numbers, eight times
  int four;
  memcpy(&four, p, 4);
  const int8x16_t all_of_them = vreinterpretq_s8_s32(vdupq_n_s32(four));
  return {all_of_them, all_of_them};
}

#if defined(VARIANT_DOTPROD)

#define DOTS  // of four products, added to sums in one instruction
INLINE Whole add_dot_signed(Whole sums, C32 w, C32 x) { return {vdotq_s32(sums.a, w.a, x.a), vdotq_s32(sums.b, w.b, x.b)}; }
INLINE Whole add_dot_unsigned(Whole sums, C32 u, C32 x) { return add_dot_signed(sums, u, x); }  // no code has the sign's bit
INLINE Whole dot_signed(C32 w, C32 x) { return add_dot_signed(no_whole(), w, x); }

#else

// Sums of two products in sixteen bits, which have to fit.
struct Pairs {
  int16x8_t a, b;
};
INLINE int16x8_t pairs_of(int8x16_t w, int8x16_t x) {
  return vpaddq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(x)), vmull_s8(vget_high_s8(w), vget_high_s8(x)));
}
INLINE Pairs pairs_signed(C32 w, C32 x) { return {pairs_of(w.a, x.a), pairs_of(w.b, x.b)}; }
INLINE Pairs pairs_unsigned(C32 u, C32 x) { return pairs_signed(u, x); }  // no code has the sign's bit
INLINE Pairs add_pairs(Pairs a, Pairs b) { return {vaddq_s16(a.a, b.a), vaddq_s16(a.b, b.b)}; }
INLINE Whole whole_of(Pairs p) { return {vpaddlq_s16(p.a), vpaddlq_s16(p.b)}; }
INLINE Whole dot_signed(C32 w, C32 x) { return whole_of(pairs_signed(w, x)); }

#endif

#if defined(VARIANT_I8MM)

#define MATRICES  // of two by two sums, each of eight products
typedef int32x4_t Squares;  // [row, output]
INLINE Squares no_squares() { return vdupq_n_s32(0); }
INLINE Squares add_squares(Squares sums, const int8_t* one, const int8_t* other, const int8_t* outputs) {
  return vmmlaq_s32(sums, vcombine_s8(vld1_s8(one), vld1_s8(other)), vld1q_s8(outputs));
}
INLINE int32x4_t row_of_two(int32x4_t a, int32x4_t b, bool second) {
  const int64x2_t x = vreinterpretq_s64_s32(a), y = vreinterpretq_s64_s32(b);
  return vreinterpretq_s32_s64(second ? vtrn2q_s64(x, y) : vtrn1q_s64(x, y));
}
INLINE Whole row_of_squares(const Squares* four, bool second) {
  return {row_of_two(four[0], four[1], second), row_of_two(four[2], four[3], second)};
}

#endif

INLINE Whole dot_unsigned(C32 u, C32 x) { return dot_signed(u, x); }
INLINE int32x4_t fours(int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d) {  // what each of them comes to
  return vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d));
}
INLINE void halves_of_eight(const Whole* d, Whole& first, Whole& second) {  // lane b: what half of dot b comes to
  first = {fours(d[0].a, d[1].a, d[2].a, d[3].a), fours(d[4].a, d[5].a, d[6].a, d[7].a)};
  second = {fours(d[0].b, d[1].b, d[2].b, d[3].b), fours(d[4].b, d[5].b, d[6].b, d[7].b)};
}
INLINE Whole totals_of_eight(const Whole* d) {  // lane b: what dot b comes to
  Whole first, second;
  halves_of_eight(d, first, second);
  return add_whole(first, second);
}
INLINE void turn_four(int8x16_t p, int8x16_t q, int8x16_t r, int8x16_t s, int8x16_t* to) {
  const int32x4_t a = vreinterpretq_s32_s8(p), b = vreinterpretq_s32_s8(q);
  const int32x4_t c = vreinterpretq_s32_s8(r), d = vreinterpretq_s32_s8(s);
  const int64x2_t even = vreinterpretq_s64_s32(vtrn1q_s32(a, b)), odd = vreinterpretq_s64_s32(vtrn2q_s32(a, b));
  const int64x2_t even2 = vreinterpretq_s64_s32(vtrn1q_s32(c, d)), odd2 = vreinterpretq_s64_s32(vtrn2q_s32(c, d));
  to[0] = vreinterpretq_s8_s64(vtrn1q_s64(even, even2)), to[1] = vreinterpretq_s8_s64(vtrn1q_s64(odd, odd2));
  to[2] = vreinterpretq_s8_s64(vtrn2q_s64(even, even2)), to[3] = vreinterpretq_s8_s64(vtrn2q_s64(odd, odd2));
}
INLINE void turn_fours(C32* v) {  // eight registers of eight fours: four k of register r becomes four r of register k
  int8x16_t low[8], high[8];
  turn_four(v[0].a, v[1].a, v[2].a, v[3].a, low), turn_four(v[4].a, v[5].a, v[6].a, v[7].a, high);
  turn_four(v[0].b, v[1].b, v[2].b, v[3].b, low + 4), turn_four(v[4].b, v[5].b, v[6].b, v[7].b, high + 4);
  for (int i = 0; i < 8; i++) v[i] = {low[i], high[i]};
}
INLINE void fetch(const void* p) { __builtin_prefetch(p); }

// ---- what a softmax takes beside

INLINE V add(V a, V b) { return eight_add(a, b); }
INLINE V sub(V a, V b) { return eight_sub(a, b); }
INLINE V div(V a, V b) { return {vdivq_f32(a.a, b.a), vdivq_f32(a.b, b.b)}; }
INLINE V larger(V a, V b) {  // b, if either is NaN
  return {vbslq_f32(vcgtq_f32(a.a, b.a), a.a, b.a), vbslq_f32(vcgtq_f32(a.b, b.b), a.b, b.b)};
}
INLINE float32x4_t cleared(float32x4_t v, uint32x4_t where) {
  return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(v), where));
}
INLINE V zero_below(V x, V limit, V v) {  // v, or 0 where x is below the limit
  return {cleared(v.a, vcltq_f32(x.a, limit.a)), cleared(v.b, vcltq_f32(x.b, limit.b))};
}
INLINE float32x4_t power_of_two_of(float32x4_t t) {
  return vreinterpretq_f32_u32(vaddq_u32(vshlq_n_u32(vreinterpretq_u32_f32(t), 23), vdupq_n_u32(127u << 23)));
}
INLINE V power_of_two(V t) { return {power_of_two_of(t.a), power_of_two_of(t.b)}; }  // 2^n, for t = TO_WHOLE + n
