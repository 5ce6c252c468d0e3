/* How a scheme writes spans, as the Python types of the same names. */
#ifndef QUORATE_SCHEME_H
#define QUORATE_SCHEME_H

#include "arrays.h"

/* For each label: does it always open a span, or always close one (1 or 0), and of which type is it (−1: none). */
typedef struct {
    Ints32 opens, closes, kind;
} SpanShape;

/* For each type: the label of a span of one token, and of a longer one's first, inner and last token. */
typedef struct {
    Ints single, first, inside, last;
} SpanLabels;

#endif
