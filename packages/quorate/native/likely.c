/* The spans that a token model thinks likely. T is the number of types; the other letters are as in output.h. */
#include "output.h"

/* One document: its evidence [L, J], the recursion, ln of beta [L, J] at every token before `reached`, as far as spans
 * were looked for there, and ln of alpha [J] before the token where spans begin. */
typedef struct {
    int64_t begin, L, reached;
    const BothWays *ways;
    const double *evidence, *before;
    double log_z, *behind;
} Document;

/* Where spans are written to, as far as there is room, and how many there are. */
typedef struct {
    Ints start, end, kind;
    Floats probability;
    int64_t n;
} Found;

static void note(Found *found, int64_t start, int64_t end, int64_t kind, double log_probability) {
    if (found->n < found->start.n) {
        found->start.at[found->n] = start;
        found->end.at[found->n] = end;
        found->kind.at[found->n] = kind;
        found->probability.at[found->n] = fmin(exp(log_probability), 1.0);
    }
    found->n++;
}

/* ln of beta [J] at a token: no earlier than where spans begin. Most tokens are in no likely span, and are not asked for. */
static const double *behind(Document *here, int64_t t) {
    int64_t J = here->ways->J;
    for (; here->reached <= t; here->reached++)
        log_beta_at(here->ways, here->reached, here->log_z, here->behind + here->reached * J);
    return here->behind + t * J;
}

/* The spans of type k that begin at a token: one of a single token, then longer ones, for as long as one may go on with
 * the probability that is asked for. */
static void spans_from(Document *here, int64_t first, int64_t k, const Steps *steps, const SpanShape *shape,
                       const SpanLabels *labels, double log_least, Found *found) {
    int64_t J = steps->log_start.n, L = here->L;
    const double *evidence = here->evidence, *trans = steps->log_trans.at;
    int64_t label = labels->single.at[k], at = labels->first.at[k], last = first + 1;
    double weight = log_weight_before(first, label, steps, shape, here->before, here->ways->terms);
    weight += evidence[first * J + label];
    /* The weight so far of a span that goes on. */
    double going_on = log_weight_before(first, at, steps, shape, here->before, here->ways->terms);
    going_on += evidence[first * J + at];
    while (true) {
        const double *log_beta = last < L ? behind(here, last) : NULL;
        weight += log_weight_behind(evidence, L, last, label, steps, shape, log_beta, here->ways->terms) - here->log_z;
        if (weight >= log_least) note(found, here->begin + first, here->begin + last, k, weight);
        if (last == L || going_on + behind(here, last - 1)[at] - here->log_z < log_least) return;
        int64_t inside = labels->inside.at[k];
        label = labels->last.at[k];
        weight = going_on + trans[at * J + label] + evidence[last * J + label];
        going_on += trans[at * J + inside] + evidence[last * J + inside];
        at = inside;
        last++;
    }
}

/* The probability that a span of type k begins at a token with this posterior [J]. */
static double opening(const double *posterior, const SpanLabels *labels, int64_t k) {
    int64_t first = labels->first.at[k], single = labels->single.at[k];
    return single != first ? posterior[first] + posterior[single] : posterior[first];
}

/* Start, end, type and probability of every span that has a probability of at least `least`, by its start; returns how
 * many there are, which may be more than there is room for.
 *
 * Tokens are counted from the slice's first. A span is looked for where one begins with that probability. */
KERNEL int64_t fill_likely_spans(const Slice *piece, const Rows *rows, const Steps *steps, const SpanShape *shape,
                                 const SpanLabels *labels, double least, Ints start, Ints end, Ints kind,
                                 Floats probability) {
    int64_t J = rows->cells.m, longest = longest_document(piece->doc_start);
    double log_least = log(least);
    Room room = {0};
    BothWays ways = both_ways_in(&room, longest, J);
    double *sets = set_evidence_in(&room, piece, rows), *evidence = doubles(&room, longest * J);
    double *posterior = doubles(&room, longest * J), *before = doubles(&room, J);
    double *log_beta = doubles(&room, longest * J);
    if (room.short_of_memory) return leave(&room);
    Found found = {start, end, kind, probability, 0};
    for (int64_t d = 0; d + 1 < piece->doc_start.n; d++) {
        int64_t begin = piece->doc_start.at[d], L = piece->doc_start.at[d + 1] - begin;
        if (L == 0) continue;
        document_evidence(piece, rows, sets, d, evidence);
        double log_z = both_ways(evidence, L, steps, &ways, posterior);
        if (!(log_z > -INFINITY)) continue;
        Document here = {begin, L, 0, &ways, evidence, before, log_z, log_beta};
        for (int64_t first = 0; first < L; first++) {
            bool any_before = false;
            for (int64_t k = 0; k < labels->first.n; k++) {
                if (opening(posterior + first * J, labels, k) < least) continue;
                if (first > 0 && !any_before) log_alpha_at(&ways, first - 1, before);
                any_before = true;
                here.reached = most_of(here.reached, first);
                spans_from(&here, first, k, steps, shape, labels, log_least, &found);
            }
        }
    }
    leave(&room);
    return found.n;
}
