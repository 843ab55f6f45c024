// Products as XLA calls them, and Python's tests: checks, the choice of a variant, and the work shared over XLA's threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "calls.h"
#include "cpu.h"
#include "share.h"
#include "variant.h"

namespace multiplying {
namespace {

// ---- variants

struct Choice {
  const Variant* variant;
  bool (*has_it)();
};

bool always() { return true; }

const Choice choices[] = {
    {&portable, always},
#if defined(__x86_64__)
    {&avx2, has_avx2},
    {&avx512, has_avx512},
#if !defined(WITHOUT_AMX)
    {&amx, has_amx},
#endif
#elif defined(__aarch64__)
    {&neon, always},
    {&dotprod, has_dotprod},
    {&i8mm, has_i8mm},
#endif
};

const Choice* find(const char* name) {
  for (const Choice& choice : choices)
    if (!std::strcmp(name, choice.variant->name)) return &choice;
  return nullptr;
}

std::atomic<const Variant*> chosen{&portable};

Product product_by(const Variant* variant, int kind, bool rounded) {
  const Product found = (rounded ? variant->rounded : variant->products)[kind];
  return found || !variant->others ? found : product_by(variant->others, kind, rounded);
}

// ---- kinds: what is checked of the arrays that a matrix is kept in

struct Part {
  ffi::DataType dtype;
  int64_t each;  // numbers of a block
};

struct Kind {
  const char* name;
  int64_t elements;  // of a block
  int parts;
  Part part[MOST_PARTS];
};

constexpr ffi::DataType kF16 = ffi::DataType::F16, kBF16 = ffi::DataType::BF16, kF32 = ffi::DataType::F32,
                        kS8 = ffi::DataType::S8, kU8 = ffi::DataType::U8, kU16 = ffi::DataType::U16,
                        kU32 = ffi::DataType::U32;

const Kind kinds[KINDS] = {
    {"F32", 1, 1, {{kF32, 1}}},
    {"F16", 1, 1, {{kF16, 1}}},
    {"BF16", 1, 1, {{kBF16, 1}}},
    {"Q8_0", 32, 2, {{kF16, 1}, {kS8, 32}}},
    {"Q4_0", 32, 2, {{kF16, 1}, {kU8, 16}}},
    {"INT4", 32, 2, {{kBF16, 1}, {kU8, 16}}},
    {"Q4_1", 32, 3, {{kF16, 1}, {kF16, 1}, {kU8, 16}}},
    {"Q5_0", 32, 3, {{kF16, 1}, {kU32, 1}, {kU8, 16}}},
    {"Q5_1", 32, 4, {{kF16, 1}, {kF16, 1}, {kU32, 1}, {kU8, 16}}},
    {"Q4_K", 256, 5, {{kF16, 1}, {kF16, 1}, {kU8, 8}, {kU8, 8}, {kU8, 128}}},
    {"Q5_K", 256, 6, {{kF16, 1}, {kF16, 1}, {kU8, 8}, {kU8, 8}, {kU8, 32}, {kU8, 128}}},
    {"Q6_K", 256, 4, {{kF16, 1}, {kS8, 16}, {kU8, 64}, {kU8, 128}}},
    {"Q2_K", 256, 4, {{kF16, 1}, {kF16, 1}, {kU8, 16}, {kU8, 64}}},
    {"Q3_K", 256, 4, {{kF16, 1}, {kS8, 16}, {kU8, 32}, {kU8, 64}}},
    {"IQ4_NL", 32, 2, {{kF16, 1}, {kU8, 16}}},
    {"IQ4_XS", 256, 3, {{kF16, 1}, {kS8, 8}, {kU8, 128}}},
    {"IQ3_S", 256, 5, {{kF16, 1}, {kU8, 64}, {kU8, 8}, {kU8, 32}, {kU8, 4}}},
    {"IQ3_XXS", 256, 3, {{kF16, 1}, {kU8, 64}, {kU8, 32}}},
    {"IQ2_S", 256, 5, {{kF16, 1}, {kU8, 32}, {kU8, 32}, {kU8, 8}, {kU8, 8}}},
    {"IQ2_XS", 256, 4, {{kF16, 1}, {kU8, 32}, {kU8, 32}, {kU8, 8}}},
    {"IQ2_XXS", 256, 3, {{kF16, 1}, {kU8, 32}, {kU8, 32}}},
    {"IQ1_M", 256, 4, {{kF16, 1}, {kU8, 32}, {kU8, 16}, {kU16, 4}}},
    {"IQ1_S", 256, 3, {{kF16, 1}, {kU8, 32}, {kU16, 8}}},
    {"TQ1_0", 256, 3, {{kF16, 1}, {kU8, 48}, {kU8, 4}}},
    {"TQ2_0", 256, 2, {{kF16, 1}, {kU8, 64}}},
    {"MXFP4", 32, 2, {{kU8, 1}, {kU8, 16}}},
    {"NVFP4", 64, 2, {{kU8, 4}, {kU8, 32}}},
    {"Q1_0", 128, 2, {{kF16, 1}, {kU8, 16}}},
};

bool takes_rows(const Kind& kind, int64_t rows, bool rounded) {
  return rows > 0 && (rows <= MOST_ROWS || rounded || kind.elements == 1);
}

int64_t row_bytes(const Kind& kind, int64_t inputs) {
  int64_t found = 0;
  for (int i = 0; i < kind.parts; i++) {
    found += inputs / kind.elements * kind.part[i].each * (int64_t)ffi::ByteWidth(kind.part[i].dtype);
  }
  return found;
}

// ---- work, shared

constexpr int64_t kChunkBytes = 4 << 20;   // of weights: a thread is slow at the begin of each chunk
constexpr int64_t kMostBytes = 1 << 20;    // the same, of which other rows are to find much in a cache
constexpr int64_t kAloneBytes = 48 << 10;  // less than this is done before another thread would have woken

constexpr int64_t kAloneBlocks = 4096;     // of activations to be rounded

char* room(int64_t bytes) {
  thread_local std::vector<char> kept;
  if ((int64_t)kept.size() < bytes) kept.resize(bytes);
  return kept.data();
}

// Rounds rows, into memory that comes with them.
Rows rounded_rows(ffi::ThreadPool* pool, int64_t threads, const Variant& variant, const float* x, int64_t numbers,
                  std::unique_ptr<char[]>& scratch) {
  const int64_t blocks = numbers / 32, parts = (blocks + kAloneBlocks - 1) / kAloneBlocks;
  scratch.reset(new char[numbers + 3 * blocks * sizeof(float)]);
  float* scales = reinterpret_cast<float*>(scratch.get());
  int8_t* codes = reinterpret_cast<int8_t*>(scales + 3 * blocks);
  share(pool, threads, parts, [&variant, x, codes, scales, blocks, parts](int64_t index) {
    const int64_t first = blocks * index / parts, last = blocks * (index + 1) / parts;
    float* of = scales + first;
    variant.round(x + 32 * first, last - first, codes + 32 * first, of, of + blocks, of + 2 * blocks);
  });
  return {x, codes, scales, scales + blocks, scales + 2 * blocks, room};
}

// Outputs go through registers by one, three, four, eight or sixteen. Rounded up, so that no small share is left over,
// which one thread would do while the others wait.
int64_t outputs_at_a_time(int64_t outputs, int64_t bytes, int64_t rows, int64_t threads) {
  const int64_t of_each = outputs / (2 * threads);  // some shares for each thread, even if one begins late
  const int64_t worth = (rows > 8 ? kMostBytes : kChunkBytes) / bytes, wanted = worth < of_each ? worth : of_each;
  if (wanted >= 48) return (wanted + 15) / 16 * 16;
  if (wanted >= 24) return 24;
  if (of_each >= 24 && 24 * bytes <= kMostBytes) return 24;
  return wanted < 8 ? 8 : wanted / 8 * 8;
}

void multiply(ffi::ThreadPool& pool, Product product, const Matrix& matrix, int64_t bytes, const float* x, int64_t rows,
              float* out, const Variant* rounds) {
  std::unique_ptr<char[]> scratch;  // of rounded rows
  const int64_t total = bytes * matrix.outputs * ((rows + 3) / 4);
  const int64_t threads = total < kAloneBytes ? 1 : pool.num_threads();
  const Rows given = rounds ? rounded_rows(&pool, threads, *rounds, x, rows * matrix.inputs, scratch)
                            : Rows{x, nullptr, nullptr, nullptr, nullptr, nullptr};
  if (threads < 2) return product(matrix, given, rows, out, 0, matrix.outputs);
  const int64_t chunk = outputs_at_a_time(matrix.outputs, bytes, rows, threads);
  share(&pool, threads, (matrix.outputs + chunk - 1) / chunk, [&matrix, &given, product, rows, out, chunk](int64_t index) {
    const int64_t first = index * chunk, last = first + chunk;
    product(matrix, given, rows, out, first, last < matrix.outputs ? last : matrix.outputs);
  });
}

// ---- the handlers

ffi::Error wrong(const Kind& kind, const std::string& what) {
  return ffi::Error::InvalidArgument(std::string("gemma_jax_product_") + kind.name + ": " + what);
}

ffi::Error product_of(int number, bool rounded, ffi::ThreadPool& pool, const ffi::RemainingArgs& args,
                      const ffi::RemainingRets& rets) {
  const Kind& kind = kinds[number];
  const int given = (int)args.size() - 1;
  if (given != kind.parts && given != kind.parts + 1) {
    return wrong(kind, "expected " + std::to_string(kind.parts) + " arrays of weights, found " + std::to_string(given));
  }
  const auto x = args.get<ffi::AnyBuffer>(0);
  auto out = rets.get<ffi::AnyBuffer>(0);
  if (!x.has_value() || x->element_type() != kF32) return wrong(kind, "expected x in f32");
  if (rets.size() != 1 || !out.has_value() || (*out)->element_type() != kF32) {
    return wrong(kind, "expected one result in f32");
  }
  const Dims in = x->dimensions(), to = (*out)->dimensions();
  if (in.size() != 2 || !takes_rows(kind, in[0], rounded)) {
    return wrong(kind, "expected x of 1 to " + std::to_string(MOST_ROWS) + " rows, [row, in], found " + shape(in));
  }
  if (to.size() != 2 || to[0] != in[0] || to[1] < 1) {
    return wrong(kind, "expected a result [row, out] of " + std::to_string(in[0]) + " rows, found " + shape(to));
  }
  if (in[1] < 1 || in[1] % kind.elements) {
    return wrong(kind, "expected inputs in whole blocks of " + std::to_string(kind.elements) + ", found " +
                           std::to_string(in[1]));
  }
  Matrix matrix = {{}, to[1], in[1]};
  for (int i = 0; i < kind.parts; i++) {
    const auto part = args.get<ffi::AnyBuffer>(1 + i);
    if (!part.has_value()) return wrong(kind, "array " + std::to_string(i) + " of the weights is no array");
    if (part->element_type() != kind.part[i].dtype) {
      return wrong(kind, "array " + std::to_string(i) + " of the weights has another dtype, number " +
                             std::to_string((int)part->element_type()) + " of XLA's, for " +
                             std::to_string((int)kind.part[i].dtype));
    }
    const auto dims = part->dimensions();
    const int64_t blocks = matrix.inputs / kind.elements;
    int64_t each = 1;
    for (size_t j = 2; j < dims.size(); j++) each *= dims[j];
    if (dims.size() < 2 || dims[0] != matrix.outputs || dims[1] != blocks || each != kind.part[i].each) {
      return wrong(kind, "array " + std::to_string(i) + " of the weights: expected [" +
                             std::to_string(matrix.outputs) + ", " + std::to_string(blocks) + "] with " +
                             std::to_string(kind.part[i].each) + " numbers each, found " + shape(dims));
    }
    matrix.parts[i] = part->untyped_data();
  }
  int64_t real = in[0];  // rows; the others are padding, and their results are zeros
  if (given > kind.parts) {
    const auto told = args.get<ffi::AnyBuffer>(1 + kind.parts);
    if (!told.has_value() || told->element_type() != ffi::DataType::S32 || told->element_count() != 1) {
      return wrong(kind, "expected how many rows are real, one number in s32");
    }
    const int64_t count = told->typed_data<int32_t>()[0];
    real = count < 0 ? 0 : count < real ? count : real;
  }
  float* const results = (*out)->typed_data<float>();
  std::memset(results + real * matrix.outputs, 0, sizeof(float) * (size_t)((in[0] - real) * matrix.outputs));
  if (!real) return ffi::Error::Success();
  const Variant* variant = chosen.load(std::memory_order_relaxed);
  multiply(pool, product_by(variant, number, rounded), matrix, row_bytes(kind, matrix.inputs),
           x->typed_data<float>(), real, results, rounded ? variant : nullptr);
  return ffi::Error::Success();
}

ffi::Error product(int number, ffi::ThreadPool pool, ffi::RemainingArgs args, ffi::RemainingRets rets, ffi::Dictionary) {
  return product_of(number, false, pool, args, rets);
}

ffi::Error product_of_rounded(int number, ffi::ThreadPool pool, ffi::RemainingArgs args, ffi::RemainingRets rets,
                              ffi::Dictionary) {
  return product_of(number, true, pool, args, rets);
}

}  // namespace

#define DEFINE_PRODUCT(KIND) DEFINE_HANDLER(product_##KIND, product, KIND)
#define DEFINE_BOTH(KIND) DEFINE_PRODUCT(KIND) DEFINE_HANDLER(rounded_##KIND, product_of_rounded, KIND)
DEFINE_PRODUCT(F32)
DEFINE_PRODUCT(F16)
DEFINE_PRODUCT(BF16)
EACH_IN_BLOCKS(DEFINE_BOTH)

// ---- what Python calls

// 0: taken. 1: there is no variant of this name. 2: this processor does not have it.
EXPORTED int gemma_jax_choose(const char* name) {
  const Choice* found = find(name);
  if (!found) return 1;
  if (!found->has_it()) return 2;
  chosen.store(found->variant, std::memory_order_relaxed);
  return 0;
}

// The same without choosing it.
EXPORTED int gemma_jax_runs(const char* name) {
  const Choice* found = find(name);
  return !found ? 1 : !found->has_it() ? 2 : 0;
}

// A product by a variant, in this thread and without XLA: how variants are compared. 0: done.
EXPORTED int gemma_jax_product(const char* variant, const char* kind_name, const void* const* parts, int64_t outputs,
                               int64_t inputs, const float* x, int64_t rows, float* out, int64_t first, int64_t last,
                               int rounded) {
  const Variant* found = variant_named(variant);
  if (!found || rows < 1 || first < 0 || last > outputs) return 1;
  for (int k = 0; k < KINDS; k++) {
    if (std::strcmp(kinds[k].name, kind_name)) continue;
    if (inputs < 1 || inputs % kinds[k].elements || !takes_rows(kinds[k], rows, rounded)) return 1;
    Matrix matrix = {{}, outputs, inputs};
    for (int i = 0; i < kinds[k].parts; i++) matrix.parts[i] = parts[i];
    const Product run = product_by(found, k, rounded);
    if (!run) return 1;
    std::unique_ptr<char[]> scratch;
    const Rows given = rounded ? rounded_rows(nullptr, 1, *found, x, rows * inputs, scratch)
                               : Rows{x, nullptr, nullptr, nullptr, nullptr, nullptr};
    run(matrix, given, rows, out, first, last);
    return 0;
  }
  return 1;
}

}  // namespace multiplying

// ---- what the other handlers ask

const Variant* chosen_variant() { return multiplying::chosen.load(std::memory_order_relaxed); }

const Variant* variant_named(const char* name) {
  const multiplying::Choice* found = multiplying::find(name);
  return found && found->has_it() ? found->variant : nullptr;
}
