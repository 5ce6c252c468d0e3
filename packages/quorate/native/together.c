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
KERNEL int64_t find_together(const Marked *said, double least, Ints one, Ints other, Floats mean, Floats both) {
    Room room = {0};
    int64_t n = 0, K = said->first_own_pair.n - 1, *met = unfilled(&room, K, sizeof(int64_t));
    double *mine = filled(&room, K, 0.0), *theirs = filled(&room, K, 0.0), *shared = filled(&room, K, 0.0);
    bool *is_met = zeros(&room, K, sizeof(bool));
    for (int64_t k = 0; k < K && !room.short_of_memory; k++) {
        int64_t people = 0;
        for (int64_t i = said->first_own_pair.at[k]; i < said->first_own_pair.at[k + 1]; i++) {
            int64_t own = said->pair.at[i], d = said->document.at[own];
            for (int64_t p = said->first_pair.at[d]; p < said->first_pair.at[d + 1]; p++) {
                int64_t l = said->who.at[p];
                if (l <= k) continue;
                if (!is_met[l]) met[people++] = l;
                is_met[l] = true;
                mine[l] += said->marks.at[own];
                theirs[l] += said->marks.at[p];
            }
        }
        for (int64_t i = said->first_own_span.at[k]; i < said->first_own_span.at[k + 1]; i++) {
            int64_t span = said->span.at[i];
            for (int64_t m = said->first_marker.at[span]; m < said->first_marker.at[span + 1]; m++)
                if (said->marker.at[m] > k) shared[said->marker.at[m]] += 1.0;
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
