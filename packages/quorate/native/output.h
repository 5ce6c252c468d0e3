/* What is asked of a document under a fitted model: its evidence, the recursion both ways, what stands around a span.
 *
 * Letters: L tokens of a document, J labels. Arrays of a document are [L, J], row by row.
 */
#ifndef QUORATE_OUTPUT_H
#define QUORATE_OUTPUT_H

#include "layout.h"
#include "room.h"
#include "scheme.h"
#include "single.h"

/* Where the recursion writes to: alpha and beta [L, J], scale [L]; `scaled` [L, J] and `terms` [J] are room.
 *
 * Scaled, ln of alpha is ln alpha[t] + so_far[t], and that of beta ln beta[t] − so_far[t] + ln Z. With `in_logs` they
 * are logarithms already. */
typedef struct {
    int64_t J;
    double *alpha, *beta, *scale, *so_far, *scaled, *terms;
    bool in_logs;
} BothWays;

BothWays both_ways_in(Room *room, int64_t longest, int64_t J);

/* [sets, J] Log-likelihood of all that was said of a token, for each set: there are fewer of them. */
double *set_evidence_in(Room *room, const Slice *piece, const Rows *rows);

/* The evidence [L, J] of document d, from that of sets; −inf off a known label. What may end a document is taken as
 * evidence at its last token. */
void document_evidence(const Slice *piece, const Rows *rows, const double *sets, int64_t d, double *out);

/* Posteriors of L tokens of a chain, and the recursion; returns ln Z, −inf if no path is possible. */
double both_ways(const double *evidence, int64_t L, const Steps *steps, BothWays *out, double *posterior);

/* Logarithms [J] of alpha and of beta at a token: few are needed. */
void log_alpha_at(const BothWays *ways, int64_t t, double *out);
void log_beta_at(const BothWays *ways, int64_t t, double log_z, double *out);

/* ln of the weight of all that may stand before a span that begins with `label` at token `first`: no label that it
 * continues. A label that always opens a span cannot have been continued from before. log_alpha [J] is that of the
 * token before, where there is one; `terms` is room for J numbers. */
double log_weight_before(int64_t first, int64_t label, const Steps *steps, const SpanShape *shape,
                         const double *log_alpha, double *terms);

/* ln of the weight of all that may stand after a span whose last label is `label`, from token `last` on: no label that
 * continues it. After one that always closes a span anything may stand. log_beta [J] is that of token `last`, where
 * there is one; `terms` is room for J numbers. */
double log_weight_behind(const double *evidence, int64_t L, int64_t last, int64_t label, const Steps *steps,
                         const SpanShape *shape, const double *log_beta, double *terms);

#endif
