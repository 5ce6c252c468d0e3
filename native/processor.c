/* What the processor can do. This file is part of the library that every processor runs. */
#include "arrays.h"

KERNEL bool has_avx2(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}
