/* The output pass: posteriors, the best path, the probability of every span in it. */
#include "output.h"

#define NO_VOTE 1e-100
#define TIE 1e-9

BothWays both_ways_in(Room *room, int64_t longest, int64_t J) {
    BothWays ways = {.J = J};
    ways.alpha = doubles(room, longest * J);
    ways.beta = doubles(room, longest * J);
    ways.scale = doubles(room, longest);
    ways.so_far = doubles(room, longest);
    ways.scaled = doubles(room, longest * J);
    ways.terms = doubles(room, J);
    return ways;
}

double *set_evidence_in(Room *room, const Slice *piece, const Rows *rows) {
    int64_t J = rows->cells.m, sets = piece->set_start.n - 1;
    double *out = filled(room, sets * J, 0.0);
    if (out == NULL) return NULL;
    for (int64_t u = 0; u < sets; u++) {
        add_set(piece, u, rows->cells, out + u * J);
        for (int64_t j = 0; j < J; j++) out[u * J + j] *= rows->temper;
    }
    return out;
}

void document_evidence(const Slice *piece, const Rows *rows, const double *sets, int64_t d, double *out) {
    int64_t J = rows->cells.m, first = piece->doc_start.at[d], last = piece->doc_start.at[d + 1];
    for (int64_t t = first; t < last; t++) {
        double *here = out + (t - first) * J;
        const double *said = sets + piece->token_set.at[t] * J;
        int64_t word = piece->words.at[piece->token_word.at[t]];
        if (word < rows->words.n)
            for (int64_t j = 0; j < J; j++) here[j] = said[j] + rows->words.at[word * J + j];
        else
            for (int64_t j = 0; j < J; j++) here[j] = said[j];
        if (piece->known.n > 0 && piece->known.at[t] >= 0)
            for (int64_t j = 0; j < J; j++)
                if (j != piece->known.at[t]) here[j] = -INFINITY;
    }
    if (last > first)
        for (int64_t j = 0; j < rows->end.n; j++) out[(last - first - 1) * J + j] += rows->end.at[j];
}

double both_ways(const double *evidence, int64_t L, const Steps *steps, BothWays *out, double *posterior) {
    for (int64_t i = 0; i < L * out->J; i++) out->scaled[i] = evidence[i];
    return posteriors(evidence, out->scaled, L, steps, false, posterior, out->alpha, out->beta, out->scale,
                      out->so_far, out->terms, &out->in_logs);
}

/* Logarithms of what the scaled recursion left, and what its scales add to them. */
static void log_row(const double *values, int64_t J, double add, double *out) {
    for (int64_t j = 0; j < J; j++) out[j] = values[j] > 0.0 ? log(values[j]) + add : -INFINITY;
}

static void copy_row(const double *values, int64_t J, double *out) {
    for (int64_t j = 0; j < J; j++) out[j] = values[j];
}

void log_alpha_at(const BothWays *ways, int64_t t, double *out) {
    const double *values = ways->alpha + t * ways->J;
    if (ways->in_logs)
        copy_row(values, ways->J, out);
    else
        log_row(values, ways->J, ways->so_far[t], out);
}

void log_beta_at(const BothWays *ways, int64_t t, double log_z, double *out) {
    const double *values = ways->beta + t * ways->J;
    if (ways->in_logs)
        copy_row(values, ways->J, out);
    else
        log_row(values, ways->J, log_z - ways->so_far[t], out);
}

/* Whether a span goes on from a label to the next one. */
static bool goes_on(const SpanShape *shape, int64_t label, int64_t next) {
    return shape->kind.at[label] == shape->kind.at[next] && !shape->closes.at[label] && !shape->opens.at[next];
}

double log_weight_before(int64_t first, int64_t label, const Steps *steps, const SpanShape *shape,
                         const double *log_alpha, double *terms) {
    int64_t J = steps->log_start.n;
    if (first == 0) return steps->log_start.at[label];
    for (int64_t j = 0; j < J; j++)
        terms[j] = goes_on(shape, j, label) ? -INFINITY : log_alpha[j] + steps->log_trans.at[j * J + label];
    return log_sum(terms, J);
}

double log_weight_behind(const double *evidence, int64_t L, int64_t last, int64_t label, const Steps *steps,
                         const SpanShape *shape, const double *log_beta, double *terms) {
    int64_t J = steps->log_start.n;
    if (last == L) return 0.0;
    for (int64_t j = 0; j < J; j++)
        terms[j] = goes_on(shape, label, j)
                       ? -INFINITY
                       : steps->log_trans.at[label * J + j] + evidence[last * J + j] + log_beta[j];
    return log_sum(terms, J);
}

/* ln of the weight of all paths in which tokens `first` to `last` carry these labels and are one whole span. */
static double weight_of_span(const double *evidence, int64_t L, const Steps *steps, const SpanShape *shape,
                             const double *log_alpha, const double *log_beta, const int32_t *path, int64_t first,
                             int64_t last, double *terms) {
    int64_t J = steps->log_start.n;
    double score = log_weight_before(first, path[first], steps, shape, log_alpha, terms);
    score += evidence[first * J + path[first]];
    for (int64_t t = first + 1; t < last; t++)
        score += steps->log_trans.at[path[t - 1] * J + path[t]] + evidence[t * J + path[t]];
    return score + log_weight_behind(evidence, L, last, path[last - 1], steps, shape, log_beta, terms);
}

/* Posteriors of L tokens that stand alone; returns ln Z, −inf if one of them can have no label. */
static double alone(const double *evidence, int64_t L, Floats log_start, double *posterior) {
    int64_t J = log_start.n;
    double log_z = 0.0;
    for (int64_t t = 0; t < L; t++) {
        double *row = posterior + t * J, top = -INFINITY, z = 0.0;
        for (int64_t j = 0; j < J; j++) {
            row[j] = log_start.at[j] + evidence[t * J + j];
            top = row[j] > top ? row[j] : top;
        }
        if (top == -INFINITY) return top;
        for (int64_t j = 0; j < J; j++) {
            row[j] = exp(row[j] - top);
            z += row[j];
        }
        double inverse = 1.0 / z;
        for (int64_t j = 0; j < J; j++) row[j] *= inverse;
        log_z += log(z) + top;
    }
    return log_z;
}

/* As weight_of_span, where tokens stand alone: the posteriors within, and that no neighbour continues. */
static double span_probability_alone(const double *posterior, int64_t L, int64_t J, const SpanShape *shape,
                                     const int32_t *path, int64_t first, int64_t last) {
    double probability = 1.0, continued = 0.0, continues = 0.0;
    for (int64_t t = first; t < last; t++) probability *= posterior[t * J + path[t]];
    if (first > 0)
        for (int64_t j = 0; j < J; j++)
            if (goes_on(shape, j, path[first])) continued += posterior[(first - 1) * J + j];
    if (last < L)
        for (int64_t j = 0; j < J; j++)
            if (goes_on(shape, path[last - 1], j)) continues += posterior[last * J + j];
    return probability * fmax(0.0, 1.0 - continued) * fmax(0.0, 1.0 - continues);
}

/* One past the last token of the span that begins at `first`; where none does, one past `first`. */
static int64_t end_of_span(const int32_t *path, int64_t L, int64_t first, const SpanShape *shape) {
    int64_t stop = first + 1;
    if (shape->kind.at[path[first]] >= 0)
        while (stop < L && goes_on(shape, path[stop - 1], path[stop])) stop++;
    return stop;
}

/* The likeliest label of each token; of several, the lower. */
static void best_labels(const double *posterior, int64_t L, int64_t J, int32_t *path) {
    for (int64_t t = 0; t < L; t++) {
        const double *row = posterior + t * J;
        path[t] = 0;
        for (int64_t j = 1; j < J; j++)
            if (row[j] > row[path[t]]) path[t] = (int32_t)j;
    }
}

/* Posterior, decoded path with its probability, its spans with theirs; returns the first document without a path, or
 * −1.
 *
 * All of one slice, its tokens and documents counted from its first. Where labels are not `coupled`, every token stands
 * alone under steps.log_start. `allowed` and `allowed_end` are for the best path: the steps, and the last labels,
 * without what the scheme forbids. A span that begins at token t is written to span_end[t] and span_probability[t]. */
KERNEL int64_t decode_slice(const Slice *piece, const Rows *rows, const Steps *steps, bool coupled,
                            const Steps *allowed, Floats allowed_end, const SpanShape *shape, bool by_token,
                            Floats posterior, Ints32 path, Floats log_probability, Floats log_zs, Ints32 span_end,
                            Floats span_probability) {
    int64_t J = rows->cells.m, longest = longest_document(piece->doc_start), stuck = -1;
    Room room = {0};
    BothWays ways = both_ways_in(&room, longest, J);
    double *sets = set_evidence_in(&room, piece, rows), *evidence = doubles(&room, longest * J);
    double *before = doubles(&room, J), *after = doubles(&room, J), *best = doubles(&room, 2 * J);
    int32_t *back = unfilled(&room, longest * J, sizeof(int32_t));
    if (room.short_of_memory) return leave(&room);
    for (int64_t d = 0; d + 1 < piece->doc_start.n; d++) {
        int64_t begin = piece->doc_start.at[d], L = piece->doc_start.at[d + 1] - begin;
        if (L == 0) continue;
        double *here_posterior = posterior.at + begin * J;
        int32_t *here = path.at + begin;
        document_evidence(piece, rows, sets, d, evidence);
        double log_z = coupled ? both_ways(evidence, L, steps, &ways, here_posterior)
                               : alone(evidence, L, steps->log_start, here_posterior);
        if (!(log_z > -INFINITY)) {
            stuck = d;
            break;
        }
        log_zs.at[d] = log_z;
        if (by_token)
            best_labels(here_posterior, L, J, here);
        else
            best_path(evidence, L, allowed, allowed_end.at, back, best, here);
        log_probability.at[d] = path_score(evidence, L, steps, here) - log_z;
        for (int64_t t = 0, stop; t < L; t = stop) {
            stop = end_of_span(here, L, t, shape);
            if (shape->kind.at[here[t]] < 0) continue;
            span_end.at[begin + t] = (int32_t)(begin + stop);
            if (coupled) {
                if (t > 0) log_alpha_at(&ways, t - 1, before);
                if (stop < L) log_beta_at(&ways, stop, log_z, after);
                double weight = weight_of_span(evidence, L, steps, shape, before, after, here, t, stop, ways.terms);
                span_probability.at[begin + t] = exp(weight - log_z);
            } else {
                span_probability.at[begin + t] = span_probability_alone(here_posterior, L, J, shape, here, t, stop);
            }
        }
    }
    leave(&room);
    return stuck;
}

/* The best path of each document and where its spans end, as decode_slice has them, and nothing besides. */
KERNEL void best_paths_slice(const Slice *piece, const Rows *rows, const Steps *allowed, Floats allowed_end,
                             const SpanShape *shape, Ints32 path, Ints32 span_end) {
    int64_t J = rows->cells.m, longest = longest_document(piece->doc_start);
    Room room = {0};
    double *sets = set_evidence_in(&room, piece, rows), *evidence = doubles(&room, longest * J);
    double *best = doubles(&room, 2 * J);
    int32_t *back = unfilled(&room, longest * J, sizeof(int32_t));
    if (room.short_of_memory) {
        leave(&room);
        return;
    }
    for (int64_t d = 0; d + 1 < piece->doc_start.n; d++) {
        int64_t begin = piece->doc_start.at[d], L = piece->doc_start.at[d + 1] - begin;
        if (L == 0) continue;
        int32_t *here = path.at + begin;
        document_evidence(piece, rows, sets, d, evidence);
        best_path(evidence, L, allowed, allowed_end.at, back, best, here);
        for (int64_t t = 0, stop; t < L; t = stop) {
            stop = end_of_span(here, L, t, shape);
            if (shape->kind.at[here[t]] >= 0) span_end.at[begin + t] = (int32_t)(begin + stop);
        }
    }
    leave(&room);
}

/* As best_labels, for shares of votes: of labels with equal shares the one of lower rank. Rows of rank lie `apart`
 * numbers apart (0: one for all tokens). */
static void most_voted(const double *shares, const double *rank, int64_t apart, int64_t L, int64_t J, int32_t *path) {
    for (int64_t t = 0; t < L; t++) {
        double most = -1.0;
        for (int64_t j = 0; j < J; j++) {
            double share = shares[t * J + j] * (1.0 - TIE * rank[t * apart + j]);
            if (share > most) {
                most = share;
                path[t] = (int32_t)j;
            }
        }
    }
}

/* As decode_slice, for shares of votes [N, J]. Of labels with equal shares the one of lower rank wins.
 *
 * `rank` is [N, J], or [1, J] for all tokens alike. A label without a vote has a tiny share, not 0. */
KERNEL void decode_votes_slice(Ints doc_start, Floats shares, Floats rank, const Steps *allowed, Floats allowed_end,
                               const SpanShape *shape, bool by_token, int64_t first, int64_t last, Ints32 path,
                               Floats log_probability, Ints32 span_end, Floats span_probability) {
    int64_t J = shares.m, apart = rank.n > 1 ? J : 0, longest = 0;
    for (int64_t d = first; d < last; d++) longest = most_of(longest, doc_start.at[d + 1] - doc_start.at[d]);
    Room room = {0};
    double *evidence = doubles(&room, longest * J), *best = doubles(&room, 2 * J);
    int32_t *back = unfilled(&room, longest * J, sizeof(int32_t));
    if (room.short_of_memory) {
        leave(&room);
        return;
    }
    for (int64_t d = first; d < last; d++) {
        int64_t begin = doc_start.at[d], L = doc_start.at[d + 1] - begin;
        if (L == 0) continue;
        const double *here_shares = shares.at + begin * J, *order = rank.at + begin * apart;
        int32_t *here = path.at + begin;
        if (by_token) {
            most_voted(here_shares, order, apart, L, J, here);
        } else {
            for (int64_t t = 0; t < L; t++)
                for (int64_t j = 0; j < J; j++)
                    evidence[t * J + j] = log(fmax(here_shares[t * J + j], NO_VOTE)) - TIE * order[t * apart + j];
            best_path(evidence, L, allowed, allowed_end.at, back, best, here);
        }
        for (int64_t t = 0; t < L; t++) log_probability.at[d] += log(fmax(here_shares[t * J + here[t]], NO_VOTE));
        for (int64_t t = 0, stop; t < L; t = stop) {
            stop = end_of_span(here, L, t, shape);
            if (shape->kind.at[here[t]] < 0) continue;
            span_end.at[begin + t] = (int32_t)(begin + stop);
            span_probability.at[begin + t] = span_probability_alone(here_shares, L, J, shape, here, t, stop);
        }
    }
    leave(&room);
}
