/* The events of a corpus beside its pairs of document and annotator. */
#ifndef QUORATE_PAIRS_H
#define QUORATE_PAIRS_H

#include "arrays.h"
#include "room.h"

/* As the Python type of the same name, which says what is in it. */
typedef struct {
    Ints doc_start, event_start;
    Ints32 event_cell;
    Floats weight;
    Ints annotator, first_pair, who;
    int64_t n_annotators;
} PairedEvents;

/* Where the number of everybody's pair is looked up, document by document. */
static inline int64_t *pairs_by_annotator(const PairedEvents *events, Room *room) {
    return unfilled(room, events->n_annotators + 1, sizeof(int64_t));
}

static inline void look_at(const PairedEvents *events, int64_t d, int64_t *pair_of) {
    for (int64_t p = events->first_pair.at[d]; p < events->first_pair.at[d + 1]; p++) pair_of[events->who.at[p]] = p;
}

/* Whether an event says one label: of someone who gave probabilities, those above a half do. */
static inline bool is_sure(Floats weight, int64_t e) { return !weight.n || weight.at[e] > 0.5; }

#endif
