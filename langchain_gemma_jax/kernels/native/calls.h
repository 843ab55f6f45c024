// What XLA's calls have in common: one signature, so that its templates, which take the compiler longest, are made once.
#pragma once

#include <string>

#include "xla/ffi/api/ffi.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace ffi = xla::ffi;

namespace {

typedef ffi::AnyBuffer::Dimensions Dims;
typedef ffi::Error (*Answer)(int which, ffi::ThreadPool, ffi::RemainingArgs, ffi::RemainingRets, ffi::Dictionary);

struct Call {
  Answer answer;
  int which;
  ffi::Error operator()(ffi::ThreadPool pool, ffi::RemainingArgs args, ffi::RemainingRets rets,
                        ffi::Dictionary attrs) const {
    return answer(which, pool, args, rets, attrs);
  }
};

ffi::Ffi* handler_of(Answer answer, int which) {
  return ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().RemainingArgs().RemainingRets().Attrs().To(Call{answer, which}).release();
}

std::string shape(Dims dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); i++) text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

}  // namespace

#define DEFINE_HANDLER(NAME, ANSWER, WHICH)                                    \
  EXPORTED XLA_FFI_Error* gemma_jax_##NAME(XLA_FFI_CallFrame* frame) {         \
    static const ffi::Ffi* const handler = handler_of(ANSWER, WHICH);          \
    return handler->Call(frame);                                               \
  }
