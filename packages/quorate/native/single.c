#include "single.h"

/* A step less likely than this sends nearly every document to log space anyway. */
#define LEAST_STEP 1e-150

bool exponentiate_steps(Steps *steps) {
    int64_t J = steps->log_start.n;
    bool in_logs = false;
    double least = 1.0;
    for (int64_t i = 0; i < J; i++) {
        steps->start.at[i] = exp(steps->log_start.at[i]);
        in_logs |= steps->start.at[i] == 0.0 && steps->log_start.at[i] > -INFINITY;
        for (int64_t j = 0; j < J; j++) {
            double chance = exp(steps->log_trans.at[i * J + j]);
            in_logs |= chance == 0.0 && steps->log_trans.at[i * J + j] > -INFINITY;
            if (chance > 0.0 && chance < least) least = chance;
            steps->trans.at[i * J + j] = chance;
            steps->back.at[j * J + i] = chance;
        }
    }
    steps->least = least > LEAST_STEP ? least : LEAST_STEP;
    steps->in_logs = in_logs;
    return in_logs;
}

Steps steps_in(Room *room, Floats log_start, Floats log_trans) {
    int64_t J = log_start.n;
    Steps steps = {.log_start = log_start, .log_trans = log_trans};
    steps.start = (Floats){doubles(room, J), J, 1};
    steps.trans = (Floats){doubles(room, J * J), J * J, 1};
    steps.back = (Floats){doubles(room, J * J), J * J, 1};
    if (!room->short_of_memory) exponentiate_steps(&steps);
    return steps;
}

/* For Python, which makes the room: returns the smallest step that is possible at all, and at most 1; negative if all
 * must be done in log space. */
KERNEL double fill_steps(Floats log_start, Floats log_trans, Floats start, Floats trans, Floats back) {
    Steps steps = {.log_start = log_start, .log_trans = log_trans, .start = start, .trans = trans, .back = back};
    return exponentiate_steps(&steps) ? -steps.least : steps.least;
}

double log_sum(const double *values, int64_t n) {
    double top = -INFINITY;
    for (int64_t j = 0; j < n; j++) top = values[j] > top ? values[j] : top;
    if (top == -INFINITY) return top;
    double total = 0.0;
    for (int64_t j = 0; j < n; j++) total += exp(values[j] - top);
    return top + log(total);
}

/* The scaled recursion for J labels: where their number is known beforehand, loops over them are not loops. */
static inline __attribute__((always_inline)) double recursion(double *evidence, int64_t L, int64_t J, const Steps *steps,
                                                              double *alpha, double *beta, double *scale,
                                                              double *so_far) {
    if (steps->in_logs) return NAN;
    double lost_below = LOST / steps->least;
    double fall = log(lost_below) + MARGIN;
    double log_z = 0.0, since_loss = 0.0;
    bool lost = false;
    for (int64_t t = 0; t < L; t++) {
        double *here = evidence + t * J, *a = alpha + t * J;
        double top = -INFINITY;
        for (int64_t j = 0; j < J; j++) top = here[j] > top ? here[j] : top;
        if (top == -INFINITY) return NAN;
        if (t == 0) {
            for (int64_t j = 0; j < J; j++) a[j] = steps->start.at[j];
        } else {
            const double *before = a - J;
            for (int64_t j = 0; j < J; j++) a[j] = 0.0;
            for (int64_t i = 0; i < J; i++) {
                double p = before[i];
                for (int64_t j = 0; j < J; j++) a[j] += p * steps->trans.at[i * J + j];
            }
        }
        double total = 0.0;
        for (int64_t j = 0; j < J; j++) {
            double weight = exp(here[j] - top), product = a[j] * weight;
            if (product < lost_below && a[j] > 0.0 && here[j] > -INFINITY) lost = true;
            here[j] = weight;
            a[j] = product;
            total += product;
        }
        if (!(total > LOST)) return NAN;
        double log_total = log(total);
        if (lost) {
            since_loss += log_total;
            if (since_loss < fall) return NAN;
        }
        double inverse = 1.0 / total;
        for (int64_t j = 0; j < J; j++) a[j] *= inverse;
        scale[t] = total;
        log_z += log_total + top;
        if (so_far != NULL) so_far[t] = log_z;
    }
    for (int64_t j = 0; j < J; j++) beta[(L - 1) * J + j] = 1.0;
    for (int64_t t = L - 1; t > 0; t--) {
        double *b = beta + (t - 1) * J;
        for (int64_t j = 0; j < J; j++) b[j] = 0.0;
        double inverse = 1.0 / scale[t];
        for (int64_t i = 0; i < J; i++) {
            double w = evidence[t * J + i] * beta[t * J + i] * inverse;
            for (int64_t j = 0; j < J; j++) b[j] += w * steps->back.at[i * J + j];
        }
        /* A label that cannot be reached has no posterior, however well it would explain the rest. */
        for (int64_t j = 0; j < J; j++)
            if (alpha[(t - 1) * J + j] == 0.0) b[j] = 0.0;
    }
    return log_z;
}

double forward_backward(double *evidence, int64_t L, const Steps *steps, double *alpha, double *beta, double *scale,
                        double *so_far) {
    int64_t J = steps->log_start.n;
    if (J == 3) return recursion(evidence, L, 3, steps, alpha, beta, scale, so_far); /* one type, in BIO */
    if (J == 9) return recursion(evidence, L, 9, steps, alpha, beta, scale, so_far); /* four types */
    return recursion(evidence, L, J, steps, alpha, beta, scale, so_far);
}

double log_recursion(const double *evidence, int64_t L, const Steps *steps, double *log_alpha, double *log_beta,
                            double *terms) {
    int64_t J = steps->log_start.n;
    const double *trans = steps->log_trans.at;
    for (int64_t t = 0; t < L; t++)
        for (int64_t j = 0; j < J; j++) {
            if (t == 0) {
                log_alpha[j] = steps->log_start.at[j] + evidence[j];
            } else {
                for (int64_t i = 0; i < J; i++) terms[i] = log_alpha[(t - 1) * J + i] + trans[i * J + j];
                log_alpha[t * J + j] = log_sum(terms, J) + evidence[t * J + j];
            }
        }
    for (int64_t j = 0; j < J; j++) log_beta[(L - 1) * J + j] = 0.0;
    for (int64_t t = L - 1; t > 0; t--)
        for (int64_t i = 0; i < J; i++) {
            for (int64_t j = 0; j < J; j++) terms[j] = trans[i * J + j] + evidence[t * J + j] + log_beta[t * J + j];
            log_beta[(t - 1) * J + i] = log_sum(terms, J);
        }
    return log_sum(log_alpha + (L - 1) * J, J);
}

double posteriors(const double *evidence, double *spoilt, int64_t L, const Steps *steps, bool in_logs,
                  double *posterior, double *alpha, double *beta, double *scale, double *so_far, double *terms,
                  bool *lost) {
    int64_t J = steps->log_start.n;
    double log_z = in_logs ? NAN : forward_backward(spoilt, L, steps, alpha, beta, scale, so_far);
    *lost = isnan(log_z);
    if (!*lost) {
        for (int64_t i = 0; i < L * J; i++) posterior[i] = alpha[i] * beta[i];
        return log_z;
    }
    log_z = log_recursion(evidence, L, steps, alpha, beta, terms);
    if (log_z > -INFINITY)
        for (int64_t i = 0; i < L * J; i++) posterior[i] = exp(alpha[i] + beta[i] - log_z);
    return log_z;
}

double chain_expectations(const double *evidence, int64_t L, const Steps *steps, bool in_logs, double *posterior,
                          double *pairs, double *alpha, double *beta, double *weight, double *totals, double *terms) {
    int64_t J = steps->log_start.n;
    for (int64_t i = 0; i < L * J; i++) weight[i] = evidence[i];
    bool lost;
    double log_z = posteriors(evidence, weight, L, steps, in_logs, posterior, alpha, beta, totals, NULL, terms, &lost);
    if (!(log_z > -INFINITY)) return log_z;
    for (int64_t t = 1; t < L; t++)
        for (int64_t i = 0; i < J; i++) {
            double before = alpha[(t - 1) * J + i];
            if (!lost) before /= totals[t];
            for (int64_t j = 0; j < J; j++) {
                int64_t step = i * J + j, here = t * J + j;
                if (lost)
                    pairs[step] += exp(before + (steps->log_trans.at[step] + evidence[here]) + beta[here] - log_z);
                else
                    pairs[step] += before * steps->trans.at[step] * weight[here] * beta[here];
            }
        }
    return log_z;
}

void best_path(const double *evidence, int64_t L, const Steps *steps, const double *end, int32_t *back, double *best,
               int32_t *path) {
    int64_t J = steps->log_start.n;
    double *step = best + J;
    for (int64_t j = 0; j < J; j++) best[j] = steps->log_start.at[j] + evidence[j];
    for (int64_t t = 1; t < L; t++) {
        int32_t *from = back + t * J;
        for (int64_t j = 0; j < J; j++) {
            step[j] = -INFINITY;
            from[j] = 0;
        }
        for (int64_t i = 0; i < J; i++)
            for (int64_t j = 0; j < J; j++) {
                double score = best[i] + steps->log_trans.at[i * J + j];
                bool better = score > step[j];
                step[j] = better ? score : step[j];
                from[j] = better ? (int32_t)i : from[j];
            }
        for (int64_t j = 0; j < J; j++) best[j] = step[j] + evidence[t * J + j];
    }
    double top = -INFINITY;
    for (int64_t j = 0; j < J; j++)
        if (best[j] + end[j] > top) {
            top = best[j] + end[j];
            path[L - 1] = (int32_t)j;
        }
    for (int64_t t = L - 1; t > 0; t--) path[t - 1] = back[t * J + path[t]];
}

double path_score(const double *evidence, int64_t L, const Steps *steps, const int32_t *path) {
    int64_t J = steps->log_start.n;
    double score = steps->log_start.at[path[0]] + evidence[path[0]];
    for (int64_t t = 1; t < L; t++)
        score += steps->log_trans.at[path[t - 1] * J + path[t]] + evidence[t * J + path[t]];
    return score;
}

KERNEL void viterbi(Floats evidence, int64_t L, const Steps *steps, Floats end, Ints32 back, Ints32 path) {
    Room room = {0};
    double *best = doubles(&room, 2 * steps->log_start.n);
    if (!room.short_of_memory) best_path(evidence.at, L, steps, end.at, back.at, best, path.at);
    leave(&room);
}
