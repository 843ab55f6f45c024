// The three functions of attention, in each instruction set.
//
// Positions are cut into spans, from position 0 on. For each span that a query sees, a part is computed separately: the
// largest score, the sum of the weights relative to it, and the weighted sum of the values. Parts are joined in the
// order of their positions. So a query's result depends only on the query, its position and the keys and values that it
// sees: not on their place in memory, on the number of other queries, or on the thread that computes a part.
#pragma once

#include <stdint.h>

enum { SPAN = 256 };  // positions

enum Stored { STORED_F32, STORED_F16, STORED_BF16, STORED_I8, STORED_WAYS };

// Numbers in eight bits are those of turned heads, see models/seams/kv_rounding.py: `dim` of them, and their scale.
enum { SCALE_BYTES = 4 };

// The keys and values of one head, in pages. A position is in page `table[position / tokens mod entries]`, in its slot
// `position mod tokens`. Slots of a page follow each other, and pages are `stride` numbers apart.
struct Pages {
  const void *keys, *values;  // of page 0
  const int32_t* table;
  int64_t entries, tokens, stride, count;
};

// Queries of one key-value head: those of each token that share it, then those of the next token. Query `row` lies at
// first + row / group * token + row % group * dim, in floats, and so does what is made of it.
struct Queries {
  const float* first;
  int64_t rows, group, token, dim;
  int64_t position;  // of the first one's token; the other tokens follow
  int64_t until;     // positions before it are seen even if they are later: the tokens of one picture see each other
};

struct Sight {
  int64_t window;  // how many positions a query sees, its own included
  float cap;       // scores are squashed into (-cap, cap); 0: they are not
};

// The state of some queries: a number each, and [row, dim] values that are not divided by the sums yet.
// A sum of zero: nothing was seen, and the other numbers are undefined.
struct Mixed {
  float *tops, *sums, *values;
};

struct Attention {
  const char* name;
  // The part of the span that begins at `from`. `scores` is room for [row, SPAN] floats.
  void (*part[STORED_WAYS])(const Pages&, const Queries&, const Sight&, int64_t from, float* scores, const Mixed& out);
  // Puts a later part to what is there.
  void (*join)(int64_t rows, int64_t dim, const Mixed& into, const Mixed& part);
  // Divides by the sums; out lies as queries do.
  void (*finish)(const Queries&, const Mixed& mixed, float* out);
  // Multiplies a head by its Hadamard matrix, in place.
  void (*turn)(float* head, int64_t dim);
  // Writes a turned head in eight bits, and its scale.
  void (*round)(const float* head, int64_t dim, int8_t* to);
};

// ---- what a query sees: positions low <= p < high

struct Seen {
  int64_t low, high;
};

static inline Seen seen_by(const Pages& at, const Queries& q, const Sight& sight, int64_t row) {
  const int64_t position = q.position + row / q.group;
  Seen seen = {position - sight.window + 1, position + 1};
  if (seen.high < q.until) seen.high = q.until;
  // Never more than there is, whatever the numbers say.
  if (seen.low < seen.high - at.entries * at.tokens) seen.low = seen.high - at.entries * at.tokens;
  if (seen.low < 0) seen.low = 0;
  return seen;
}
