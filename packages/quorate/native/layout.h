/* A slice of a corpus, and what was observed in it, as the Python types of the same names. */
#ifndef QUORATE_LAYOUT_H
#define QUORATE_LAYOUT_H

#include "arrays.h"

typedef struct {
    Ints doc_start;
    Ints32 token_word, token_set;
    Ints set_start;
    Ints32 event_cell;
    Floats event_weight;
    Ints32 words, cells, known;
    Floats times;
    Ints by_length;
} Slice;

/* Log-likelihoods of cells [G, J] and of words [V, J], how much of a cell's row counts, what may end a document. */
typedef struct {
    Floats cells, words;
    double temper;
    Floats end;
} Rows;

/* The most tokens that a document has. */
static inline int64_t longest_document(Ints doc_start) {
    int64_t longest = 0;
    for (int64_t d = 0; d + 1 < doc_start.n; d++) longest = most_of(longest, doc_start.at[d + 1] - doc_start.at[d]);
    return longest;
}

/* Add to out [J] the table's rows of all that is in set u. */
static inline void add_set(const Slice *piece, int64_t u, Floats table, double *out) {
    int64_t J = table.m;
    bool weighted = piece->event_weight.n > 0;
    for (int64_t e = piece->set_start.at[u]; e < piece->set_start.at[u + 1]; e++) {
        const double *said = table.at + piece->cells.at[piece->event_cell.at[e]] * J;
        if (weighted) {
            double w = piece->event_weight.at[e];
            for (int64_t j = 0; j < J; j++) out[j] += w * said[j];
        } else {
            for (int64_t j = 0; j < J; j++) out[j] += said[j];
        }
    }
}

#endif
