// The part of the unwinder that compiled code talks to, for Clang 14 with threads: that compiler
// takes __wasm_lpad_context for a plain variable, Emscripten's own unwinder for one per thread, so
// that no catch clause is ever found. Two threads that land at the same instant may still disturb
// each other; the pool's workers only catch everything (...), which needs no selector.
#include <unwind.h>

#include <cstdint>

extern "C" {

_Unwind_Reason_Code __gxx_personality_wasm0(int version, _Unwind_Action actions,
                                            std::uint64_t exception_class,
                                            _Unwind_Exception* exception, _Unwind_Context* context);

// Filled in by compiled code, but for the selector: which catch clause takes the exception.
struct LandingPad {
  std::uintptr_t index;
  std::uintptr_t table;
  std::uintptr_t selector;
} __wasm_lpad_context;

_Unwind_Reason_Code _Unwind_CallPersonality(void* pointer) {
  auto* exception = static_cast<_Unwind_Exception*>(pointer);
  __wasm_lpad_context.selector = 0;
  return __gxx_personality_wasm0(1, _UA_CLEANUP_PHASE, exception->exception_class, exception,
                                 reinterpret_cast<_Unwind_Context*>(&__wasm_lpad_context));
}

_Unwind_Reason_Code _Unwind_RaiseException(_Unwind_Exception* exception) {
  __builtin_wasm_throw(0, exception);
}

void _Unwind_DeleteException(_Unwind_Exception* exception) {
  if (exception->exception_cleanup)
    exception->exception_cleanup(_URC_FOREIGN_EXCEPTION_CAUGHT, exception);
}

void _Unwind_SetGR(_Unwind_Context* context, int index, _Unwind_Word value) {
  if (index == 1) reinterpret_cast<LandingPad*>(context)->selector = value;
}

_Unwind_Word _Unwind_GetIP(_Unwind_Context* context) {
  return reinterpret_cast<LandingPad*>(context)->index + 2;  // 1-based, after the call
}

void _Unwind_SetIP(_Unwind_Context*, _Unwind_Word) {}

void* _Unwind_GetLanguageSpecificData(_Unwind_Context* context) {
  return reinterpret_cast<void*>(reinterpret_cast<LandingPad*>(context)->table);
}

_Unwind_Ptr _Unwind_GetRegionStart(_Unwind_Context*) { return 0; }

}  // extern "C"
