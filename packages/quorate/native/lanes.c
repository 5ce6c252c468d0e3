#include "lanes.h"

#include "vectors.h"

#define HALVES (LANES / WIDTH)
#define BLOCK 4 /* labels that are done together, so that what they share is loaded once */

Batch batch_for(Room *room, int64_t L, int64_t J, int64_t width) {
    Batch batch = {0};
    batch.evidence = doubles(room, L * width * LANES);
    batch.alpha = filled(room, L * width * LANES, 0.0);
    batch.totals = doubles(room, L * LANES);
    batch.inverses = doubles(room, L * LANES);
    batch.beta = doubles(room, 2 * J * LANES);
    batch.pairs = filled(room, J * J * LANES, 0.0);
    return batch;
}

int64_t load_batch(Batch *batch, const Slice *piece, int64_t first) {
    int64_t L = 0;
    for (int lane = 0; lane < LANES; lane++) {
        batch->lost[lane] = -1;
        batch->length[lane] = 0;
        if (first + lane < piece->by_length.n) {
            int64_t d = piece->by_length.at[first + lane];
            batch->begin[lane] = piece->doc_start.at[d];
            batch->length[lane] = piece->doc_start.at[d + 1] - piece->doc_start.at[d];
        }
        L = most_of(L, batch->length[lane]);
    }
    return L;
}

/* Each lane's rows of sets and words at a position; past its end those that follow all others. */
static void point_at_rows(Batch *batch, const Slice *piece, int64_t t, int64_t width) {
    for (int lane = 0; lane < LANES; lane++) {
        if (t < batch->length[lane]) {
            batch->set_row[lane] = piece->token_set.at[batch->begin[lane] + t] * width;
            batch->word_row[lane] = piece->token_word.at[batch->begin[lane] + t] * width;
        } else {
            batch->set_row[lane] = (piece->set_start.n - 1) * width;
            batch->word_row[lane] = piece->words.n * width;
        }
    }
}

/* For four labels: the product of each lane's rows, turned so that a label's lanes lie together. */
static void collect(double *out, const Batch *batch, const Evidence *given, int64_t j) {
    for (int half = 0; half < HALVES; half++) {
        quad x[WIDTH];
        for (int n = 0; n < WIDTH; n++) {
            int lane = half * WIDTH + n;
            x[n] = load(given->sets + batch->set_row[lane] + j) * load(given->words + batch->word_row[lane] + j);
        }
        turn(x);
        for (int n = 0; n < WIDTH; n++) store(out + n * LANES + half * WIDTH, x[n]);
    }
}

/* Evidence of a position: what was said, the word, what is known, and what may end a document. */
static void gather(Batch *batch, const Slice *piece, int64_t t, const Evidence *given) {
    double *here = batch->evidence + t * given->width * LANES;
    point_at_rows(batch, piece, t, given->width);
    for (int64_t j = 0; j < given->width; j += WIDTH) collect(here + j * LANES, batch, given, j);
    for (int lane = 0; lane < LANES; lane++) {
        if (t == batch->length[lane] - 1)
            for (int64_t j = 0; j < given->J; j++) here[j * LANES + lane] *= given->ends[j];
        if (piece->known.n && t < batch->length[lane]) {
            int32_t known = piece->known.at[batch->begin[lane] + t];
            if (known >= 0)
                for (int64_t j = 0; j < given->J; j++)
                    if (j != known) here[j * LANES + lane] = 0.0;
        }
    }
}

/* What is lost at the end of a document, or because another label is known, will not be missed. */
static void note_lost(Batch *batch, const Slice *piece, int64_t t, const quad_bits *lost) {
    for (int lane = 0; lane < LANES; lane++) {
        if (!lost[lane / WIDTH][lane % WIDTH] || batch->lost[lane] >= 0 || t >= batch->length[lane] - 1) continue;
        if (piece->known.n && piece->known.at[batch->begin[lane] + t] >= 0) continue;
        batch->lost[lane] = t;
    }
}

/* What reaches some labels from the position before: Σ_i alpha[i]·T[i, j], for `many` labels from j on. */
static inline void reach(quad reached[][HALVES], const double *before, const double *trans, int64_t J, int many) {
    for (int n = 0; n < many; n++)
        for (int half = 0; half < HALVES; half++) reached[n][half] = spread(0.0);
    for (int64_t i = 0; i < J; i++) {
        quad share[HALVES];
        for (int half = 0; half < HALVES; half++) share[half] = load(before + i * LANES + half * WIDTH);
        for (int n = 0; n < many; n++) {
            quad step = spread(trans[i * J + n]);
            for (int half = 0; half < HALVES; half++) reached[n][half] = fused(share[half], step, reached[n][half]);
        }
    }
}

void forward(Batch *batch, const Slice *piece, int64_t L, const Steps *steps, const Evidence *given) {
    int64_t J = given->J, width = given->width;
    quad zero = spread(0.0), lost_below = spread(LOST / steps->least);
    for (int64_t t = 0; t < L; t++) {
        gather(batch, piece, t, given);
        double *here = batch->alpha + t * width * LANES;
        const double *before = here - width * LANES, *shown = batch->evidence + t * width * LANES;
        quad total[HALVES];
        quad_bits lost[HALVES];
        for (int half = 0; half < HALVES; half++) total[half] = zero, lost[half] = spread_bits(0);
        for (int64_t j = 0; j < J; j += BLOCK) {
            int many = (int)least_of(BLOCK, J - j);
            quad reached[BLOCK][HALVES];
            if (t == 0) {
                for (int n = 0; n < many; n++)
                    for (int half = 0; half < HALVES; half++) reached[n][half] = spread(steps->start.at[j + n]);
            } else if (many == BLOCK) {
                reach(reached, before, steps->trans.at + j, J, BLOCK);
            } else {
                reach(reached, before, steps->trans.at + j, J, many);
            }
            for (int n = 0; n < many; n++)
                for (int half = 0; half < HALVES; half++) {
                    int64_t place = (j + n) * LANES + half * WIDTH;
                    quad product = reached[n][half] * load(shown + place);
                    lost[half] |= (quad_bits)(reached[n][half] > zero) & (quad_bits)(product < lost_below);
                    total[half] = total[half] + product;
                    store(here + place, product);
                }
        }
        quad_bits any = lost[0] | lost[1];
        if (any[0] | any[1] | any[2] | any[3]) note_lost(batch, piece, t, lost);
        quad inverse[HALVES];
        for (int half = 0; half < HALVES; half++) {
            inverse[half] = where_above(total[half], spread(LOST), spread(1.0) / total[half], zero);
            store(batch->totals + t * LANES + half * WIDTH, total[half]);
            store(batch->inverses + t * LANES + half * WIDTH, inverse[half]);
        }
        for (int64_t j = 0; j < J; j++)
            for (int half = 0; half < HALVES; half++) {
                double *place = here + j * LANES + half * WIDTH;
                store(place, load(place) * inverse[half]);
            }
    }
}

double log_totals(const Batch *batch, int lane, double least) {
    double fall = log(LOST / least) + MARGIN;
    double log_z = 0.0, since_loss = 0.0;
    double running = 1.0; /* a product of sums, of which one logarithm is taken for many tokens */
    for (int64_t t = 0; t < batch->length[lane]; t++) {
        double total = batch->totals[t * LANES + lane];
        if (!(total > LOST)) return NAN;
        if (batch->lost[lane] >= 0 && batch->lost[lane] <= t) {
            since_loss += log(total);
            if (since_loss < fall) return NAN;
        }
        if (total < 1e-100) {
            log_z += log(total);
        } else {
            running *= total;
            if (running < 1e-150 || running > 1e150) {
                log_z += log(running);
                running = 1.0;
            }
        }
    }
    return log_z + log(running);
}

void drop_lane(Batch *batch, int lane, int64_t J, int64_t width) {
    for (int64_t t = 0; t < batch->length[lane]; t++) {
        batch->inverses[t * LANES + lane] = 0.0;
        for (int64_t j = 0; j < J; j++) batch->alpha[(t * width + j) * LANES + lane] = 0.0;
    }
    batch->length[lane] = 0;
}

/* What follows each label: Σ_j T[i, j]·shown[j], where shown is evidence·beta/total. Adds alpha[i]·shown[j] to pairs. */
static void step_back(const double *before, const double *shown, const double *trans, double *pairs, double *beta,
                      int64_t J) {
    for (int64_t i = 0; i < J; i++) {
        quad share[HALVES], weight[HALVES];
        for (int half = 0; half < HALVES; half++) {
            share[half] = load(before + i * LANES + half * WIDTH);
            weight[half] = spread(0.0);
        }
        for (int64_t j = 0; j < J; j++) {
            quad step = spread(trans[i * J + j]);
            double *pair = pairs + (i * J + j) * LANES;
            for (int half = 0; half < HALVES; half++) {
                quad there = load(shown + j * LANES + half * WIDTH);
                weight[half] = fused(there, step, weight[half]);
                store(pair + half * WIDTH, fused(share[half], there, load(pair + half * WIDTH)));
            }
        }
        /* A label that cannot be reached has no posterior, however well it would explain the rest. */
        for (int half = 0; half < HALVES; half++)
            store(beta + i * LANES + half * WIDTH,
                  where_above(share[half], spread(0.0), weight[half], spread(0.0)));
    }
}

void backward(Batch *batch, int64_t L, const Steps *steps, int64_t width) {
    int64_t J = steps->log_start.n;
    double *now = batch->beta, *next = batch->beta + J * LANES;
    for (int64_t i = 0; i < J * LANES; i++) now[i] = 0.0;
    for (int64_t t = L - 1; t >= 0; t--) {
        double *alpha = batch->alpha + t * width * LANES, *shown = batch->evidence + t * width * LANES;
        for (int lane = 0; lane < LANES; lane++)
            if (batch->length[lane] == t + 1)
                for (int64_t j = 0; j < J; j++) now[j * LANES + lane] = 1.0;
        for (int64_t j = 0; j < J; j++)
            for (int half = 0; half < HALVES; half++) {
                int64_t place = j * LANES + half * WIDTH;
                quad weight = load(now + place);
                store(alpha + place, load(alpha + place) * weight);
                store(shown + place, load(shown + place) * weight * load(batch->inverses + t * LANES + half * WIDTH));
            }
        if (t == 0) return;
        step_back(alpha - width * LANES, shown, steps->trans.at, batch->pairs, next, J);
        double *swap = now;
        now = next;
        next = swap;
    }
}

/* For four labels: add what each lane has of them to its row. */
static void distribute(double *out, const int64_t *rows, const double *x, int64_t j) {
    for (int half = 0; half < HALVES; half++) {
        quad square[WIDTH];
        for (int n = 0; n < WIDTH; n++) square[n] = load(x + n * LANES + half * WIDTH);
        turn(square);
        for (int n = 0; n < WIDTH; n++) {
            double *row = out + rows[half * WIDTH + n] + j;
            store(row, load(row) + square[n]);
        }
    }
}

void add_up(Batch *batch, const Slice *piece, int64_t L, int64_t width, double *of_sets, double *of_words) {
    for (int64_t t = 0; t < L; t++) {
        point_at_rows(batch, piece, t, width);
        for (int64_t j = 0; j < width; j += WIDTH) {
            const double *x = batch->alpha + (t * width + j) * LANES;
            distribute(of_sets, batch->set_row, x, j);
            distribute(of_words, batch->word_row, x, j);
        }
    }
}
