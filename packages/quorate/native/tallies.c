/* Sums over what was said, token by token. Events lie in the order of their tokens. */
#include "arrays.h"

/* Adds to `out` [G, J] the posterior [N, J] of the events of each cell; without `weight`, each counts once. */
KERNEL void add_cell_counts(Ints event_start, Ints32 event_cell, Floats weight, Floats posterior, Floats out) {
    int64_t J = posterior.m;
    for (int64_t n = 0; n < posterior.n; n++)
        for (int64_t e = event_start.at[n]; e < event_start.at[n + 1]; e++) {
            double w = weight.n ? weight.at[e] : 1.0;
            double *sums = out.at + event_cell.at[e] * J;
            for (int64_t j = 0; j < J; j++) sums[j] += w * posterior.at[n * J + j];
        }
}

/* Adds everybody's votes [N], those for a span that begins [N], and those for each type [T, N]. */
KERNEL void add_votes(Ints event_start, Ints32 event_cell, Floats weight, Ints kind, Bools begins, Floats everybody,
                      Floats opening, Floats of_type) {
    int64_t N = everybody.n;
    for (int64_t n = 0; n < N; n++)
        for (int64_t e = event_start.at[n]; e < event_start.at[n + 1]; e++) {
            double w = weight.n ? weight.at[e] : 1.0;
            int64_t cell = event_cell.at[e];
            everybody.at[n] += w;
            if (begins.at[cell]) opening.at[n] += w;
            if (kind.at[cell] >= 0) of_type.at[kind.at[cell] * N + n] += w;
        }
}
