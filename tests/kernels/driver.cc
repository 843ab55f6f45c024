// Runs a library of kernels without Python and XLA: under emulators of other processors, and under sanitizers of threads.
//
//   driver LIBRARY ROUNDS
//
// Each variant that the processor has is compared with the portable one, a row among others with the same row alone, and
// what threads share, through the doors that XLA uses, with what one thread makes. Ends with 1 where two differ.

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "xla/ffi/api/c_api.h"

#if XLA_FFI_API_MINOR >= 5  // newer names of the same places
#define XLA_FFI_ExecutionContext XLA_FFI_InvokeContext
#define XLA_FFI_Error_GetMessage XLA_FFI_Error_GetDetails
#define XLA_FFI_Error_GetMessage_Args XLA_FFI_Error_GetDetails_Args
#endif

// ---- XLA's side of a call: errors, and a pool of threads

struct XLA_FFI_Error {
  std::string message;
};

struct XLA_FFI_ExecutionContext {
  std::mutex mutex;
  std::condition_variable change;
  std::deque<XLA_FFI_ThreadPool_Schedule_Args> tasks;
  bool over = false;
  std::vector<std::thread> threads;

  explicit XLA_FFI_ExecutionContext(int count) {
    for (int i = 0; i < count; i++) threads.emplace_back([this] { work(); });
  }
  ~XLA_FFI_ExecutionContext() {
    { std::lock_guard<std::mutex> lock(mutex); over = true; }
    change.notify_all();
    for (auto& thread : threads) thread.join();
  }
  void work() {
    for (std::unique_lock<std::mutex> lock(mutex);;) {
      change.wait(lock, [this] { return over || !tasks.empty(); });
      if (tasks.empty()) return;
      const auto task = tasks.front();
      tasks.pop_front();
      lock.unlock(), task.task(task.data), lock.lock();
    }
  }
};

namespace {

XLA_FFI_Error* create(XLA_FFI_Error_Create_Args* args) { return new XLA_FFI_Error{args->message}; }
void message(XLA_FFI_Error_GetMessage_Args* args) { args->message = args->error->message.c_str(); }
void destroy(XLA_FFI_Error_Destroy_Args* args) { delete args->error; }
XLA_FFI_Error* schedule(XLA_FFI_ThreadPool_Schedule_Args* args) {
  { std::lock_guard<std::mutex> lock(args->ctx->mutex); args->ctx->tasks.push_back(*args); }
  args->ctx->change.notify_one();
  return nullptr;
}
XLA_FFI_Error* count_threads(XLA_FFI_ThreadPool_NumThreads_Args* args) {
  *args->num_threads = (int64_t)args->ctx->threads.size();
  return nullptr;
}

XLA_FFI_Api api() {
  XLA_FFI_Api api = {};
  api.struct_size = XLA_FFI_Api_STRUCT_SIZE;
  api.api_version = {XLA_FFI_Api_Version_STRUCT_SIZE, nullptr, XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR};
  api.XLA_FFI_Error_Create = create, api.XLA_FFI_Error_GetMessage = message, api.XLA_FFI_Error_Destroy = destroy;
  api.XLA_FFI_ThreadPool_Schedule = schedule, api.XLA_FFI_ThreadPool_NumThreads = count_threads;
  return api;
}

struct Array {
  void* data;
  XLA_FFI_DataType dtype;
  std::vector<int64_t> dims;
};

struct Attribute {  // in the order of their names
  const char* name;
  XLA_FFI_DataType dtype;
  double value;
};

void* symbol_of(void* library, const std::string& name) {
  void* found = dlsym(library, name.c_str());
  if (!found) std::printf("%s is missing\n", name.c_str()), std::exit(1);
  return found;
}

struct Called {
  std::vector<XLA_FFI_Buffer> buffers;
  std::vector<void*> pointers;

  explicit Called(std::vector<Array>& arrays) {
    for (auto& a : arrays) {
      buffers.push_back({XLA_FFI_Buffer_STRUCT_SIZE, nullptr, a.dtype, a.data, (int64_t)a.dims.size(), a.dims.data()});
    }
    for (auto& b : buffers) pointers.push_back(&b);
  }
};

// Calls as XLA does.
void call(void* library, const std::string& name, XLA_FFI_ExecutionContext& context, std::vector<Array> given,
          std::vector<Array> made, std::vector<Attribute> attributes) {
  static const XLA_FFI_Api known = api();
  Called args(given), rets(made);
  std::vector<XLA_FFI_ArgType> arg_types(given.size(), XLA_FFI_ArgType_BUFFER);
  std::vector<XLA_FFI_RetType> ret_types(made.size(), XLA_FFI_RetType_BUFFER);
  const size_t n = attributes.size();
  std::vector<XLA_FFI_AttrType> attr_types(n, XLA_FFI_AttrType_SCALAR);
  std::vector<XLA_FFI_ByteSpan> spans(n);
  std::vector<XLA_FFI_ByteSpan*> names(n);
  std::vector<float> floats(n);
  std::vector<int64_t> wholes(n);
  std::vector<XLA_FFI_Scalar> scalars(n);
  std::vector<void*> attrs(n);
  for (size_t i = 0; i < n; i++) {
    const Attribute& a = attributes[i];
    floats[i] = (float)a.value, wholes[i] = (int64_t)a.value;
    spans[i] = {a.name, std::strlen(a.name)}, names[i] = &spans[i];
    scalars[i] = {a.dtype, a.dtype == XLA_FFI_DataType_F32 ? (void*)&floats[i] : (void*)&wholes[i]};
    attrs[i] = &scalars[i];
  }
  XLA_FFI_CallFrame frame = {};
  frame.struct_size = XLA_FFI_CallFrame_STRUCT_SIZE, frame.api = &known, frame.ctx = &context, frame.stage = XLA_FFI_ExecutionStage_EXECUTE;
  frame.args = {XLA_FFI_Args_STRUCT_SIZE, nullptr, (int64_t)given.size(), arg_types.data(), args.pointers.data()};
  frame.rets = {XLA_FFI_Rets_STRUCT_SIZE, nullptr, (int64_t)made.size(), ret_types.data(), rets.pointers.data()};
  frame.attrs = {XLA_FFI_Attrs_STRUCT_SIZE, nullptr, (int64_t)n, attr_types.data(), names.data(), attrs.data()};
  auto* handler = (XLA_FFI_Error * (*)(XLA_FFI_CallFrame*)) symbol_of(library, name);
  if (XLA_FFI_Error* error = handler(&frame)) {
    std::printf("%s: %s\n", name.c_str(), error->message.c_str());
    std::exit(1);
  }
}

// ---- what is made up

uint64_t state = 88172645463325252ull;
uint64_t random_bits() { return state ^= state << 13, state ^= state >> 7, state ^= state << 17; }
int64_t between(int64_t low, int64_t high) { return low + (int64_t)(random_bits() % (uint64_t)(high - low + 1)); }
float some_float() { return (float)between(-1000, 1000) / 500; }

std::vector<float> floats(int64_t count) {
  std::vector<float> found(count);
  for (auto& each : found) each = some_float();
  return found;
}

struct Type {
  XLA_FFI_DataType dtype;
  int bytes;
  bool exponent = false;  // of two, in a byte
};
const Type kF32 = {XLA_FFI_DataType_F32, 4}, kF16 = {XLA_FFI_DataType_F16, 2}, kBF16 = {XLA_FFI_DataType_BF16, 2},
           kS8 = {XLA_FFI_DataType_S8, 1}, kU8 = {XLA_FFI_DataType_U8, 1}, kU32 = {XLA_FFI_DataType_U32, 4},
           kU16 = {XLA_FFI_DataType_U16, 2}, kExponent = {XLA_FFI_DataType_U8, 1, true};

struct Kind {
  const char* name;
  int64_t elements;
  std::vector<std::pair<Type, int64_t>> parts;
};
const Kind kinds[] = {
    {"F32", 1, {{kF32, 1}}}, {"F16", 1, {{kF16, 1}}}, {"BF16", 1, {{kBF16, 1}}},
    {"Q8_0", 32, {{kF16, 1}, {kS8, 32}}}, {"Q4_0", 32, {{kF16, 1}, {kU8, 16}}}, {"INT4", 32, {{kBF16, 1}, {kU8, 16}}},
    {"Q4_1", 32, {{kF16, 1}, {kF16, 1}, {kU8, 16}}}, {"Q5_0", 32, {{kF16, 1}, {kU32, 1}, {kU8, 16}}},
    {"Q5_1", 32, {{kF16, 1}, {kF16, 1}, {kU32, 1}, {kU8, 16}}},
    {"Q4_K", 256, {{kF16, 1}, {kF16, 1}, {kU8, 8}, {kU8, 8}, {kU8, 128}}},
    {"Q5_K", 256, {{kF16, 1}, {kF16, 1}, {kU8, 8}, {kU8, 8}, {kU8, 32}, {kU8, 128}}},
    {"Q6_K", 256, {{kF16, 1}, {kS8, 16}, {kU8, 64}, {kU8, 128}}},
    {"Q2_K", 256, {{kF16, 1}, {kF16, 1}, {kU8, 16}, {kU8, 64}}}, {"Q3_K", 256, {{kF16, 1}, {kS8, 16}, {kU8, 32}, {kU8, 64}}},
    {"IQ4_NL", 32, {{kF16, 1}, {kU8, 16}}}, {"IQ4_XS", 256, {{kF16, 1}, {kS8, 8}, {kU8, 128}}},
    {"IQ3_S", 256, {{kF16, 1}, {kU8, 64}, {kU8, 8}, {kU8, 32}, {kU8, 4}}},
    {"IQ3_XXS", 256, {{kF16, 1}, {kU8, 64}, {kU8, 32}}},
    {"IQ2_S", 256, {{kF16, 1}, {kU8, 32}, {kU8, 32}, {kU8, 8}, {kU8, 8}}},
    {"IQ2_XS", 256, {{kF16, 1}, {kU8, 32}, {kU8, 32}, {kU8, 8}}}, {"IQ2_XXS", 256, {{kF16, 1}, {kU8, 32}, {kU8, 32}}},
    {"IQ1_M", 256, {{kF16, 1}, {kU8, 32}, {kU8, 16}, {kU16, 4}}}, {"IQ1_S", 256, {{kF16, 1}, {kU8, 32}, {kU16, 8}}},
    {"TQ1_0", 256, {{kF16, 1}, {kU8, 48}, {kU8, 4}}}, {"TQ2_0", 256, {{kF16, 1}, {kU8, 64}}},
    {"MXFP4", 32, {{kExponent, 1}, {kU8, 16}}}, {"NVFP4", 64, {{kU8, 4}, {kU8, 32}}}, {"Q1_0", 128, {{kF16, 1}, {kU8, 16}}},
};

std::vector<char> numbers_of(const Type& type, int64_t count) {
  std::vector<char> found(count * type.bytes);
  for (int64_t i = 0; i < count; i++) {
    if (type.dtype == XLA_FFI_DataType_F32) {
      const float value = some_float();
      std::memcpy(&found[4 * i], &value, 4);
    } else if (type.exponent) {
      found[i] = (char)between(118, 124);
    } else if (type.dtype == XLA_FFI_DataType_F16 || type.dtype == XLA_FFI_DataType_BF16) {  // either sign, and a size between 1 / 128 and 1 / 8
      const bool half = type.dtype == XLA_FFI_DataType_F16;
      const uint16_t value = (uint16_t)(between(0, 1) << 15 | (half ? between(8, 11) << 10 | between(0, 1023)
                                                                  : between(120, 123) << 7 | between(0, 127)));
      std::memcpy(&found[2 * i], &value, 2);
    } else {
      for (int b = 0; b < type.bytes; b++) found[type.bytes * i + b] = (char)random_bits();
    }
  }
  return found;
}

// ---- what is compared

int64_t comparisons = 0;

void near(const std::string& what, const std::vector<float>& found, const std::vector<float>& expected) {
  float most = 0;
  for (float each : expected) most = std::fabs(each) > most ? std::fabs(each) : most;
  for (size_t i = 0; i < expected.size(); i++) {
    if (std::fabs(found[i] - expected[i]) <= 2e-5f * most + 1e-6f) continue;
    std::printf("%s: number %zu is %g, expected %g\n", what.c_str(), i, found[i], expected[i]);
    std::exit(1);
  }
  comparisons++;
}

void same(const std::string& what, const float* found, const float* expected, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (!std::memcmp(found + i, expected + i, 4)) continue;
    std::printf("%s: number %zu is %.9g, expected these very bits: %.9g\n", what.c_str(), i, found[i], expected[i]);
    std::exit(1);
  }
  comparisons++;
}

struct Library {
  void* opened;
  XLA_FFI_ExecutionContext* pool;
  std::vector<std::string> variants;

  template <class F>
  F* get(const char* name) const { return (F*)symbol_of(opened, name); }
};

typedef int Choose(const char*);
typedef int Product(const char*, const char*, const void* const*, int64_t, int64_t, const float*, int64_t, float*, int64_t,
                    int64_t, int);
typedef int Attend(const char*, int, int, const int64_t*, float, const float*, const int32_t*, const int32_t*, const void*,
                   const void*, float*);
typedef int Between(const char*, int, const int64_t*, float, float, const float* const*, float* const*);

void done(int status, const std::string& what) {
  if (status) std::printf("%s could not be done: %d\n", what.c_str(), status), std::exit(1);
}

void try_products(const Library& library, bool large) {
  auto* product = library.get<Product>("gemma_jax_product");
  for (const Kind& kind : kinds) {
    const int64_t outputs = large ? 999 : between(1, 30), inputs = kind.elements * (large ? 1024 / kind.elements : kind.elements > 1 ? between(1, 768 / kind.elements) : between(1, 90));
    const int64_t rows = between(1, kind.elements > 1 ? 16 : 64), blocks = inputs / kind.elements;
    std::vector<std::vector<char>> parts;
    std::vector<const void*> at;
    std::vector<Array> arrays;
    std::vector<float> x = floats(rows * inputs);
    arrays.push_back({x.data(), XLA_FFI_DataType_F32, {rows, inputs}});
    for (const auto& part : kind.parts) parts.push_back(numbers_of(part.first, outputs * blocks * part.second));
    for (size_t i = 0; i < parts.size(); i++) {
      at.push_back(parts[i].data());
      arrays.push_back({parts[i].data(), kind.parts[i].first.dtype, {outputs, blocks, kind.parts[i].second}});
    }
    for (int rounded = 0; rounded < (kind.elements > 1 ? 2 : 1); rounded++) {
      std::vector<float> expected;
      for (const auto& variant : library.variants) {
        const std::string what = variant + (rounded ? " rounded " : " product ") + kind.name;
        std::vector<float> out(rows * outputs), one(outputs), shared(rows * outputs);
        done(product(variant.c_str(), kind.name, at.data(), outputs, inputs, x.data(), rows, out.data(), 0, outputs, rounded), what);
        if (expected.empty()) expected = out;
        near(what, out, expected);
        const int64_t row = between(0, rows - 1);
        done(product(variant.c_str(), kind.name, at.data(), outputs, inputs, x.data() + row * inputs, 1, one.data(), 0, outputs, rounded), what);
        same(what + " alone", one.data(), out.data() + row * outputs, outputs);
        library.get<Choose>("gemma_jax_choose")(variant.c_str());
        const std::string name = std::string(rounded ? "gemma_jax_rounded_" : "gemma_jax_product_") + kind.name;
        const std::vector<Array> made = {{shared.data(), XLA_FFI_DataType_F32, {rows, outputs}}};
        call(library.opened, name, *library.pool, arrays, made, {});
        same(what + " shared", shared.data(), out.data(), out.size());
        int32_t real = (int32_t)between(-1, rows + 1);  // the others are padding: of no number, and zeros come of them
        const int64_t kept = real < 0 ? 0 : real < rows ? real : rows;
        std::vector<float> padded(x);
        std::fill(padded.begin() + kept * inputs, padded.end(), std::nanf(""));
        std::fill(out.begin() + kept * outputs, out.end(), 0.0f), std::fill(shared.begin(), shared.end(), 7.0f);
        std::vector<Array> told = arrays;
        told[0].data = padded.data(), told.push_back({&real, XLA_FFI_DataType_S32, {}});
        call(library.opened, name, *library.pool, told, made, {});
        same(what + " of real rows", shared.data(), out.data(), out.size());
      }
    }
  }
}

void try_attention(const Library& library, bool large) {
  const Type types[] = {kF32, kF16, kBF16, kS8};
  for (int stored = 0; stored < 4; stored++) {
    const int64_t rows = between(1, 2), tokens = large ? between(1, 40) : between(1, 5), kv_heads = between(1, 2);
    const int64_t heads = kv_heads * between(1, 4), dim = 16 * between(1, 4), known = large ? between(900, 1500) : between(0, 600);
    const int64_t slots = large ? 64 : between(1, 64), entries = (known + tokens + slots - 1) / slots, pages = rows * entries + between(0, 3);
    const int64_t window = between(0, 1) ? 1 << 30 : between(1, 300);
    const float cap = between(0, 1) ? 30 : 0;
    const auto queries = floats(rows * tokens * heads * dim);
    const int64_t each = stored == 3 ? dim + 4 : dim;  // in eight bits, a head has its scale behind it
    auto keys = numbers_of(types[stored], pages * kv_heads * slots * each), values = numbers_of(types[stored], pages * kv_heads * slots * each);
    for (int64_t head = 1; stored == 3 && head <= pages * kv_heads * slots; head++) {
      for (char* of : {keys.data(), values.data()}) {
        const float scale = (float)between(1, 4) / 256;
        std::memcpy(of + head * each - 4, &scale, 4);
      }
    }
    std::vector<int32_t> places, table(rows * entries);
    for (int64_t row = 0; row < rows; row++) {  // first, count, until
      const int64_t from = between(0, known);
      for (int64_t each : {from, between(0, 3) ? tokens : between(0, tokens), between(0, 3) ? 0 : from + tokens}) places.push_back((int32_t)each);
    }
    for (size_t i = 0; i < table.size(); i++) table[i] = (int32_t)i;
    for (size_t i = table.size(); i-- > 1;) std::swap(table[i], table[between(0, i)]);  // pages lie anywhere
    const int64_t sizes[] = {rows, tokens, heads, kv_heads, dim, pages, slots, entries, window};
    std::vector<float> expected;
    for (const auto& variant : library.variants) {
      const std::string what = variant + " attention " + std::to_string(stored);
      std::vector<float> out(queries.size()), apart(queries.size()), shared(queries.size());
      auto* attend = library.get<Attend>("gemma_jax_attend");
      done(attend(variant.c_str(), stored, 0, sizes, cap, queries.data(), places.data(), table.data(), keys.data(), values.data(), out.data()), what);
      if (expected.empty()) expected = out;
      near(what, out, expected);
      done(attend(variant.c_str(), stored, 1, sizes, cap, queries.data(), places.data(), table.data(), keys.data(), values.data(), apart.data()), what);
      same(what + " apart", apart.data(), out.data(), out.size());
      library.get<Choose>("gemma_jax_choose")(variant.c_str());
      call(library.opened, "gemma_jax_attention", *library.pool,
           {{(void*)queries.data(), XLA_FFI_DataType_F32, {rows, tokens, heads, dim}}, {places.data(), XLA_FFI_DataType_S32, {rows, 3}},
            {table.data(), XLA_FFI_DataType_S32, {rows, entries}}, {keys.data(), types[stored].dtype, {pages, kv_heads, slots, each}},
            {values.data(), types[stored].dtype, {pages, kv_heads, slots, each}}},
           {{shared.data(), XLA_FFI_DataType_F32, {rows, tokens, heads * dim}}},
           {{"cap", XLA_FFI_DataType_F32, cap}, {"window", XLA_FFI_DataType_S64, (double)window}});
      same(what + " shared", shared.data(), out.data(), out.size());
    }
  }
}

void try_between(const Library& library, bool large) {
  const char* const names[] = {"norm", "join", "heads", "gated", "best"};
  const int64_t tokens = large ? 64 : between(1, 6), pairs = between(1, 2), queries = between(1, 4), dim = 32 * between(1, 4);
  const int64_t n = 16 * (large ? between(60, 90) : between(1, 20)), valid = between(1, n), total = queries + 2 * pairs;
  const auto x = floats(tokens * n), h = floats(tokens * n), two = floats(tokens * 2 * n), scale = floats(n), post = floats(n);
  const auto all = floats(tokens * total * dim), sin = floats(tokens * dim / 2), cos = floats(tokens * dim / 2), norm = floats(dim);
  for (int which = 0; which < 5; which++) {
    const int64_t sizes[8] = {which == 2 ? 1 * tokens : tokens, which == 2 ? total * dim : n, which == 4 ? valid : which == 2 ? tokens : 1, queries, pairs, dim, 1, 1};
    const std::vector<std::vector<const float*>> given = {
        {x.data(), scale.data(), nullptr, nullptr, nullptr}, {x.data(), h.data(), scale.data(), post.data(), nullptr},
        {all.data(), sin.data(), cos.data(), norm.data(), norm.data()}, {two.data(), nullptr, nullptr, nullptr, nullptr},
        {x.data(), nullptr, nullptr, nullptr, nullptr}};
    const std::vector<std::vector<std::vector<int64_t>>> shapes = {
        {{tokens, n}, {n}}, {{tokens, n}, {tokens, n}, {n}, {n}},
        {{1, tokens, total, dim}, {1, tokens, 1, dim / 2}, {1, tokens, 1, dim / 2}, {dim}, {dim}}, {{tokens, 2 * n}}, {{tokens, n}}};
    const std::vector<std::vector<std::vector<int64_t>>> results = {
        {{tokens, n}}, {{tokens, n}, {tokens, n}},
        {{1, tokens, queries, dim}, {1, pairs, tokens, dim}, {1, pairs, tokens, dim}}, {{tokens, n}}, {{tokens}, {tokens}}};
    std::vector<std::vector<float>> expected;
    for (const auto& variant : library.variants) {
      const std::string what = variant + " " + names[which];
      std::vector<std::vector<float>> out(3, std::vector<float>(tokens * (total * dim + n))), shared = out;
      float* const to[] = {out[0].data(), out[1].data(), out[2].data()};
      done(library.get<Between>("gemma_jax_between")(variant.c_str(), which, sizes, 1e-6f, 0.5f, given[which].data(), to), what);
      if (expected.empty()) expected = out;
      std::vector<Array> in, made;
      for (size_t i = 0; i < shapes[which].size(); i++) in.push_back({(void*)given[which][i], XLA_FFI_DataType_F32, shapes[which][i]});
      for (size_t i = 0; i < results[which].size(); i++) {
        const bool whole = which == 4 && i == 1;
        if (whole) same(what, out[i].data(), expected[i].data(), tokens);
        else near(what, out[i], expected[i]);
        made.push_back({shared[i].data(), whole ? XLA_FFI_DataType_S32 : XLA_FFI_DataType_F32, results[which][i]});
      }
      library.get<Choose>("gemma_jax_choose")(variant.c_str());
      call(library.opened, std::string("gemma_jax_") + names[which], *library.pool, in, made,
           {{"eps", XLA_FFI_DataType_F32, 1e-6}, {"size", XLA_FFI_DataType_F32, 0.5}, {"valid", XLA_FFI_DataType_S64, (double)valid},
            {"value_norm", XLA_FFI_DataType_S64, 1}});
      for (size_t i = 0; i < results[which].size(); i++) same(what + " shared", shared[i].data(), out[i].data(), out[i].size());
    }
  }
}

}  // namespace

int main(int count, char** given) {
  if (count != 3) return std::printf("expected a library and how many rounds\n"), 2;
  Library library = {dlopen(given[1], RTLD_NOW), nullptr, {}};
  if (!library.opened) return std::printf("%s\n", dlerror()), 2;
  for (const char* name : {"portable", "avx2", "avx512", "amx", "neon", "dotprod", "i8mm"}) {
    if (library.get<Choose>("gemma_jax_runs")(name) == 0) library.variants.push_back(name);
  }
  {
    XLA_FFI_ExecutionContext pool(4);
    library.pool = &pool;
    for (int round = 0; round < std::atoi(given[2]); round++) {
      try_products(library, round % 8 == 7), try_attention(library, round % 8 == 7), try_between(library, round % 8 == 7);
    }
  }
  for (const auto& name : library.variants) std::printf("%s ", name.c_str());
  std::printf("agree: %lld comparisons\n", (long long)comparisons);
  return 0;
}
