/* What the processor can do. */
#include "arrays.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* Whether the system keeps the wide registers of a process that has to wait. */
static bool keeps_wide_registers(void) {
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & 6) == 6;
}

KERNEL bool has_avx2(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_FMA)) return false;
    if (!(c & bit_OSXSAVE) || !keeps_wide_registers()) return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2) && (b & bit_BMI) && (b & bit_BMI2);
}
#else
KERNEL bool has_avx2(void) { return false; }
#endif
