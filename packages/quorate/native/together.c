/* What annotators marked in documents that both of two saw. */
#include <math.h>
#include <stdlib.h>

#include "arrays.h"
#include "room.h"

/* As the Python type of the same name, which says what is in it. */
typedef struct {
    Ints document, who, first_pair, pair, first_own_pair;
    Floats marks;
    Ints marker, first_marker, span, first_own_span;
} Marked;

static int in_order_of_number(const void *a, const void *b) {
    int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

/* Finds every two annotators who marked at least `least` where both looked, the geometric mean of what each did; fills
 * who they are, that mean, and how many spans both marked, while there is room. Returns how many there are. */
KERNEL int64_t find_together(const Marked *events, double least, Ints one, Ints other, Floats mean, Floats both) {
    Room room = {0};
    int64_t n = 0, K = events->first_own_pair.n - 1, *met = unfilled(&room, K, sizeof(int64_t));
    double *mine = filled(&room, K, 0.0), *theirs = filled(&room, K, 0.0), *shared = filled(&room, K, 0.0);
    bool *is_met = zeros(&room, K, sizeof(bool));
    for (int64_t k = 0; k < K && !room.short_of_memory; k++) {
        int64_t people = 0;
        for (int64_t i = events->first_own_pair.at[k]; i < events->first_own_pair.at[k + 1]; i++) {
            int64_t own = events->pair.at[i], d = events->document.at[own];
            for (int64_t p = events->first_pair.at[d]; p < events->first_pair.at[d + 1]; p++) {
                int64_t l = events->who.at[p];
                if (l <= k) continue;
                if (!is_met[l]) met[people++] = l;
                is_met[l] = true;
                mine[l] += events->marks.at[own];
                theirs[l] += events->marks.at[p];
            }
        }
        for (int64_t i = events->first_own_span.at[k]; i < events->first_own_span.at[k + 1]; i++) {
            int64_t span = events->span.at[i];
            for (int64_t m = events->first_marker.at[span]; m < events->first_marker.at[span + 1]; m++)
                if (events->marker.at[m] > k) shared[events->marker.at[m]] += 1.0;
        }
        qsort(met, (size_t)people, sizeof(int64_t), in_order_of_number);
        for (int64_t i = 0; i < people; i++) {
            int64_t l = met[i];
            double spans = sqrt(mine[l] * theirs[l]);
            if (spans > 0.0 && spans >= least) {
                if (n < one.n) {
                    one.at[n] = k;
                    other.at[n] = l;
                    mean.at[n] = spans;
                    both.at[n] = shared[l];
                }
                n++;
            }
            mine[l] = theirs[l] = shared[l] = 0.0;
            is_met[l] = false;
        }
    }
    leave(&room);
    return n;
}
