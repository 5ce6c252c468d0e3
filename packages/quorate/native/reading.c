/* How well probabilities of the truth predict what somebody said, read through one confusion matrix. */
#include <math.h>

#include "arrays.h"

/* Of items `low` to `high`, where `label` was said of `token`: adds to `right` [label, truth] the probability of each
 * truth after that, where `matrix` [label, truth] is how often a label is said of a truth. Without a matrix, that before
 * it. Returns Σ ln of how likely it was to be said, if `logs`. */
KERNEL double add_readings(Floats posterior, Ints token, Ints32 label, int64_t low, int64_t high, Floats matrix,
                           bool logs, Floats right) {
    int64_t J = posterior.m;
    double sum = 0.0;
    for (int64_t i = low; i < high; i++) {
        const double *p = posterior.at + token.at[i] * J;
        double *mine = right.at + label.at[i] * J, total = 0.0;
        if (!matrix.n) {
            for (int64_t j = 0; j < J; j++) mine[j] += p[j];
            continue;
        }
        const double *said = matrix.at + label.at[i] * J;
        for (int64_t j = 0; j < J; j++) total += p[j] * said[j];
        if (logs) sum += log(total);
        double share = 1.0 / total;
        for (int64_t j = 0; j < J; j++) mine[j] += p[j] * share;
    }
    return sum;
}
