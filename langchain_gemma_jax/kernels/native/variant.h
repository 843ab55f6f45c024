// A variant: the same functions, compiled for one instruction set.
#pragma once

#include <stdint.h>

#include "attention.h"
#include "between.h"

enum { MOST_ROWS = 16, MOST_PARTS = 6 };  // rows with floats of a matrix in blocks; others may have any number

// One matrix in memory: the arrays of models/packed/block_formats.py in their order, or one dense array.
struct Matrix {
  const void* parts[MOST_PARTS];
  int64_t outputs, inputs;
};

// Rows of activations [row, inputs]: as they are, or rounded to eight bits in blocks of 32 with a scale each.
struct Rows {
  const float* numbers;
  const int8_t* codes;   // [row, inputs]
  const float* scales;   // [row, inputs / 32]
  const float* totals;   // the same: what a block comes to, once it is rounded
  const float* firsts;   // the same: what its first half comes to
  char* (*room)(int64_t bytes);  // memory of the thread's own, until it asks again
};

// out[row * outputs + o] for outputs first <= o < last, of all rows of x. The order of each sum depends only on
// `inputs`: so a result does not depend on the other rows, nor on how the outputs are shared among threads.
typedef void (*Product)(const Matrix& matrix, const Rows& x, int64_t rows, float* out, int64_t first, int64_t last);

// Every format of blocks, in the order of models/packed/block_formats.py.
#define EACH_IN_BLOCKS(DO)                                                                                           \
  DO(Q8_0) DO(Q4_0) DO(INT4) DO(Q4_1) DO(Q5_0) DO(Q5_1) DO(Q4_K) DO(Q5_K) DO(Q6_K) DO(Q2_K) DO(Q3_K) DO(IQ4_NL)      \
  DO(IQ4_XS) DO(IQ3_S) DO(IQ3_XXS) DO(IQ2_S) DO(IQ2_XS) DO(IQ2_XXS) DO(IQ1_M) DO(IQ1_S) DO(TQ1_0) DO(TQ2_0) DO(MXFP4) \
  DO(NVFP4) DO(Q1_0)

#define LISTED(KIND) KIND,
enum KindOf { F32, F16, BF16, EACH_IN_BLOCKS(LISTED) KINDS };

struct Variant {
  const char* name;
  Product products[KINDS];
  Product rounded[KINDS];  // the same with rounded rows; none for dense matrices
  void (*round)(const float* x, int64_t blocks, int8_t* codes, float* scales, float* totals, float* firsts);
  const Attention* attention;
  const Between* between;
  const Variant* others;  // whose products and parts are taken where it has none of its own
};

inline const Attention* attention_of(const Variant& variant) {
  return variant.attention ? variant.attention : attention_of(*variant.others);
}
inline const Between* between_of(const Variant& variant) {
  return variant.between ? variant.between : between_of(*variant.others);
}

extern const Variant portable;
#if defined(__x86_64__)
extern const Variant avx2, avx512, amx;  // amx: where the compiler knows its instructions
#elif defined(__aarch64__)
extern const Variant neon, dotprod, i8mm;
#endif

const Variant* chosen_variant();                 // by which XLA's calls are answered
const Variant* variant_named(const char* name);  // null, if it is none or this processor does not have it
