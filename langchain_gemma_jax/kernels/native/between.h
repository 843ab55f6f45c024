// The fused operations between a layer's products, in each instruction set: norms, residuals, rotation of heads, gates.
//
// They are computed row by row, in an order that depends only on a row's length: so a token has the same bits alone and
// in a batch.
#pragma once

#include <stdint.h>

// One row of activations, or one token's heads. Numbers are float32; lengths are multiples of 16.
struct HeadsOf {
  int64_t queries, pairs, dim;  // heads of queries, of keys (and values); numbers of a head, a multiple of 32
  bool values_apart;            // else values are keys that are not turned
  const float *sin, *cos;       // [dim / 2]
  const float *query_norm, *key_norm;  // [dim]; null: heads are not normed
  bool value_norm;
  float eps, size;              // queries are multiplied by the size at last
};

struct Between {
  const char* name;
  // out = x over its root mean square, times the scale if there is one
  void (*norm)(const float* x, const float* scale, int64_t n, float eps, float* out);
  // sum = x + h, which is normed first if `post` is there; out = sum, normed
  void (*join)(const float* x, const float* h, const float* post, const float* next, int64_t n, float eps, float* sum,
               float* out);
  // heads [queries + pairs (+ pairs), dim] of one token; a head's keys and values lie `stride` numbers apart
  void (*heads)(const HeadsOf& how, const float* x, float* queries, float* keys, float* values, int64_t stride);
  // out [n] = gelu(x [n]) * x [n + ...]
  void (*gated)(const float* x, int64_t n, float* out);
  // The largest of the first `valid` of n numbers, and the index of the first such; NaN at 0 if any of the n is NaN.
  void (*best)(const float* x, int64_t n, int64_t valid, float* out, int32_t* at);
};
