/* One document by itself: forward–backward, scaled, or in log space where scaling would lose too much; and Viterbi.
 *
 * Letters: L tokens of a document, J labels. Arrays of a document are [L, J], row by row.
 */
#ifndef QUORATE_SINGLE_H
#define QUORATE_SINGLE_H

#include <math.h>

#include "arrays.h"
#include "room.h"

/* A label whose scaled probability is below LOST may underflow to 0 in the next step. If the sum over labels then falls
 * to within MARGIN nats of LOST, the lost label might have mattered: the document is done in log space. */
#define LOST 1e-300
#define MARGIN 115.0

/* As the Python type of the same name: the truth's first label [J] and steps [J, J], as logarithms and as they are. */
typedef struct {
    Floats log_start, log_trans, start, trans, back;
    double least;
    bool in_logs;
} Steps;

/* Fills start, trans and its transpose `back` from the logarithms; returns whether some step is possible and yet 0 as a
 * number, so that all must be done in log space. */
bool exponentiate_steps(Steps *steps);

/* The steps from their logarithms, in room of its own. */
Steps steps_in(Room *room, Floats log_start, Floats log_trans);

/* ln Σ e^x, −inf for all −inf. */
double log_sum(const double *values, int64_t n);

/* The scaled recursion; returns ln Z, or nan if too much was lost to underflow. `evidence` becomes exp(evidence − its
 * maximum), in place; alpha[t] is p(label | evidence up to t), beta is scaled so that alpha·beta is the posterior,
 * scale[t] is the sum before normalising, so_far[t] ln Z up to t, unless it is NULL. */
double forward_backward(double *evidence, int64_t L, const Steps *steps, double *alpha, double *beta, double *scale,
                        double *so_far);

/* The recursion in log space; returns ln Z, −inf if no path is possible. `terms` is room for J numbers. */
double log_recursion(const double *evidence, int64_t L, const Steps *steps, double *log_alpha, double *log_beta,
                            double *terms);

/* Fills the posterior; returns ln Z, −inf if no path is possible. `*lost` says whether alpha and beta are logarithms:
 * they are if that is asked for, or if scaling would lose too much; else they, `scale`, `so_far` and `spoilt`, which
 * comes as a copy of `evidence`, are as forward_backward leaves them. `terms` is room for J numbers. */
double posteriors(const double *evidence, double *spoilt, int64_t L, const Steps *steps, bool in_logs,
                  double *posterior, double *alpha, double *beta, double *scale, double *so_far, double *terms,
                  bool *lost);

/* Fills the posterior, and *adds* expected neighbours to pairs [J, J]; returns ln Z, −inf (and nothing is added) if no
 * path is possible. The others are room to work in: alpha, beta and weight [L, J], totals [L], terms [J]. */
double chain_expectations(const double *evidence, int64_t L, const Steps *steps, bool in_logs, double *posterior,
                          double *pairs, double *alpha, double *beta, double *weight, double *totals, double *terms);

/* The best path; ties go to the lower label. end [J] is added at the last token. Room: back [L, J], best [2, J]. */
void best_path(const double *evidence, int64_t L, const Steps *steps, const double *end, int32_t *back, double *best,
               int32_t *path);

/* ln of the joint weight of a path and the evidence. */
double path_score(const double *evidence, int64_t L, const Steps *steps, const int32_t *path);

#endif
