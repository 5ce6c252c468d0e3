/* A sample whose totals are those of all documents: the cube method. See `audit/balanced.py`.
 *
 * Letters: D documents, q numbers that are balanced.
 */
#include <math.h>

#include "arrays.h"
#include "room.h"

#define DECIDED 1e-9 /* from 0 or 1: rounding alone */
#define NOTHING 1e-8 /* of a pivot, where numbers are about 1 */

static bool is_open(double p) { return DECIDED < p && p < 1.0 - DECIDED; }

/* Where the largest number stands, from row `rank` on, of columns that are no pivot yet; false if all are nothing. */
static bool find_pivot(const double *a, int64_t rank, int64_t q, const bool *is_pivot, int64_t *row, int64_t *column) {
    double largest = NOTHING;
    bool found = false;
    for (int64_t i = rank; i < q; i++)
        for (int64_t j = 0; j <= q; j++)
            if (!is_pivot[j] && fabs(a[i * (q + 1) + j]) > largest) {
                largest = fabs(a[i * (q + 1) + j]);
                *row = i;
                *column = j;
                found = true;
            }
    return found;
}

/* A direction [q + 1] along which a [q, q + 1] gives 0: by elimination, the largest pivot first. `a` is spoilt; pivot
 * [q] and is_pivot [q + 1] are room. */
static void line_of_no_change(double *a, int64_t q, double *line, int64_t *pivot, bool *is_pivot) {
    int64_t m = q + 1, rank = 0, row = 0, column = 0;
    for (int64_t j = 0; j < m; j++) is_pivot[j] = false;
    while (rank < q && find_pivot(a, rank, q, is_pivot, &row, &column)) {
        double *here = a + rank * m;
        for (int64_t j = 0; j < m; j++) {
            double swap = here[j];
            here[j] = a[row * m + j];
            a[row * m + j] = swap;
        }
        double by = here[column];
        for (int64_t j = 0; j < m; j++) here[j] /= by;
        for (int64_t i = 0; i < q; i++) {
            double factor = a[i * m + column];
            if (i != rank && factor != 0.0)
                for (int64_t j = 0; j < m; j++) a[i * m + j] -= factor * here[j];
        }
        pivot[rank] = column;
        is_pivot[column] = true;
        rank++;
    }
    int64_t free_column = 0;
    while (is_pivot[free_column]) free_column++;
    for (int64_t j = 0; j < m; j++) line[j] = 0.0;
    line[free_column] = 1.0;
    for (int64_t i = 0; i < rank; i++) line[pivot[i]] = -a[i * m + free_column];
}

/* Moves the probabilities of `n` documents along the line, to the end that the lot says. */
static void move_to_an_end(double *p, const int64_t *here, int64_t n, const double *line, double lot) {
    double up = INFINITY, down = INFINITY; /* how far it goes to either side */
    for (int64_t i = 0; i < n; i++) {
        double at = p[here[i]];
        if (line[i] > 0.0) {
            up = fmin(up, (1.0 - at) / line[i]);
            down = fmin(down, at / line[i]);
        } else if (line[i] < 0.0) {
            up = fmin(up, -at / line[i]);
            down = fmin(down, (at - 1.0) / line[i]);
        }
    }
    double far = lot * (up + down) < down ? up : -down;
    for (int64_t i = 0; i < n; i++) p[here[i]] = fmin(fmax(p[here[i]] + far * line[i], 0.0), 1.0);
}

/* p [D] comes as the probabilities and leaves as 0 or 1; share [D, q] is z/π of what is balanced, that of π first. */
KERNEL void decide(Floats p, Floats share, Floats lots) {
    Room room = {0};
    int64_t held = share.m, n_open = 0, following = 0, step = 0;
    int64_t *open_ones = unfilled(&room, held + 1, sizeof(int64_t)), *pivot = unfilled(&room, held, sizeof(int64_t));
    bool *is_pivot = unfilled(&room, held + 1, sizeof(bool));
    double *a = doubles(&room, held * (held + 1)), *line = doubles(&room, held + 1);
    while (!room.short_of_memory && step < lots.n) {
        for (; n_open <= held && following < p.n; following++)
            if (is_open(p.at[following])) open_ones[n_open++] = following;
        held = least_of(held, n_open - 1);
        if (held < 1) break;
        for (int64_t i = 0; i < held; i++)
            for (int64_t j = 0; j <= held; j++) a[i * (held + 1) + j] = share.at[open_ones[j] * share.m + i];
        line_of_no_change(a, held, line, pivot, is_pivot);
        move_to_an_end(p.at, open_ones, held + 1, line, lots.at[step++]);
        n_open = 0;
        for (int64_t i = 0; i <= held; i++)
            if (is_open(p.at[open_ones[i]])) open_ones[n_open++] = open_ones[i];
    }
    leave(&room);
}
