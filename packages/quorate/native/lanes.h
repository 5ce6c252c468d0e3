/* Forward–backward over eight documents of like length at once, each in a lane of the vectors.
 *
 * Every vector of LANES numbers holds one number of each document, so that a step costs eight documents what it would
 * cost one. The vector of label j at position t begins at (t · width + j) · LANES. A lane that has come to its end, or
 * has no document, has no evidence there, and adds nothing.
 *
 * Steps that the scheme forbids are not skipped: to look for them costs as much as they do.
 */
#ifndef QUORATE_LANES_H
#define QUORATE_LANES_H

#include "layout.h"
#include "room.h"
#include "single.h"

#define LANES 8

/* Probabilities of what was said and of words, in rows of `width`: one a set, and one a word, of a slice; each up to a
 * factor, whose logarithm is in `*_tops`. One row more of each is without evidence. `ends` [J] is 1, or 0 where a
 * document may not end so. */
typedef struct {
    int64_t J, width;
    double *sets, *words, *set_tops, *word_tops, *ends;
} Evidence;

/* Where a batch is worked on: evidence and alpha for L positions, sums before normalising and their inverses, beta of
 * two positions; pairs add up over batches. A lane has the tokens begin to begin + length; lost is the first position
 * where something may have been lost to underflow, or −1. set_row and word_row are the rows of the position at hand. */
typedef struct {
    double *evidence, *alpha, *totals, *inverses, *beta, *pairs;
    int64_t begin[LANES], length[LANES], lost[LANES], set_row[LANES], word_row[LANES];
} Batch;

/* For documents of up to L tokens. */
Batch batch_for(Room *room, int64_t L, int64_t J, int64_t width);

/* Give the lanes the documents from number `first` of those by length; returns the tokens of the longest. */
int64_t load_batch(Batch *batch, const Slice *piece, int64_t first);

/* Fills evidence, p(label | evidence up to t) and the sums before normalising. */
void forward(Batch *batch, const Slice *piece, int64_t L, const Steps *steps, const Evidence *given);

/* Σ ln of a lane's sums; nan if too much was lost to underflow. */
double log_totals(const Batch *batch, int lane, double least);

/* Take a lane's document out of what follows. */
void drop_lane(Batch *batch, int lane, int64_t J, int64_t width);

/* Turns alpha into the posterior; adds Σ s without the factor T, which is the same for all tokens. */
void backward(Batch *batch, int64_t L, const Steps *steps, int64_t width);

/* Add the posteriors of all lanes to their sets and words. */
void add_up(Batch *batch, const Slice *piece, int64_t L, int64_t width, double *of_sets, double *of_words);

#endif
