/* The compiled part of taggers: scores from features and vectors, expected labels, AdaGrad steps, best paths.
 *
 * Letters: N tokens, D documents, F features of a token, W features in all, J labels, L tokens of one document,
 * X numbers in a token's vector, H units of the hidden layer. What a struct holds is said in Python.
 */
#include <math.h>
#include <string.h>

#include "layout.h"
#include "mersenne.h"
#include "room.h"
#include "single.h"

typedef struct {
    Ints32 features;
    Floats32 vectors;
    Ints doc_start;
    Floats target, pairs;
} TrainingData;

typedef struct {
    Bools first, steps;
    Floats end;
} Rules;

typedef struct {
    Floats32 features;
    Floats start, trans;
} Weights;

typedef struct {
    Floats features, start, trans;
} ExactWeights;

typedef struct {
    Floats32 inner, bias, outer;
} HiddenLayer;

static int64_t document_length(Ints doc_start, int64_t d) { return doc_start.at[d + 1] - doc_start.at[d]; }

/* ---- Scores ---- */

/* out [J]: the sum of the table's rows (0: none). */
#define SUM_ROWS(NAME, TABLE, NUMBER)                                                                                  \
    static void NAME(const int32_t *rows, int64_t n, TABLE table, double *restrict out) {                              \
        int64_t J = table.m;                                                                                           \
        for (int64_t j = 0; j < J; j++) out[j] = 0.0;                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            if (rows[i] == 0) continue;                                                                                \
            const NUMBER *row = table.at + rows[i] * J;                                                                \
            for (int64_t j = 0; j < J; j++) out[j] += row[j];                                                          \
        }                                                                                                              \
    }
SUM_ROWS(sum_rows, Floats32, float)
SUM_ROWS(sum_exact_rows, Floats, double)

KERNEL void score_tokens(Ints32 features, Floats32 weights, Floats out) {
    for (int64_t t = 0; t < features.n; t++)
        sum_rows(features.at + t * features.m, features.m, weights, out.at + t * weights.m);
}

KERNEL void score_exactly(Ints32 features, Floats weights, Floats out) {
    for (int64_t t = 0; t < features.n; t++)
        sum_exact_rows(features.at + t * features.m, features.m, weights, out.at + t * weights.m);
}

/* ---- Expected labels ---- */

/* Room for the recursions over one document. */
typedef struct {
    double *evidence, *alpha, *beta, *weight, *totals, *terms;
} ChainRoom;

static ChainRoom chain_room(Room *room, int64_t L, int64_t J) {
    return (ChainRoom){
        .evidence = doubles(room, L * J),
        .alpha = doubles(room, L * J),
        .beta = doubles(room, L * J),
        .weight = doubles(room, L * J),
        .totals = doubles(room, L),
        .terms = doubles(room, J),
    };
}

/* Evidence from the scores of labels, and of those that end. */
static void copy_evidence(const double *scores, int64_t L, Floats end, double *evidence) {
    int64_t J = end.n;
    memcpy(evidence, scores, (size_t)(L * J) * sizeof(double));
    for (int64_t j = 0; j < J; j++) evidence[(L - 1) * J + j] += end.at[j];
}

/* As chain_expectations, of labels that may end with scores of their own. */
static double ending_expectations(const double *scores, int64_t L, const Steps *steps, Floats end, double *posterior,
                                  double *pairs, const ChainRoom *work) {
    if (L == 0) return 0.0;
    copy_evidence(scores, L, end, work->evidence);
    return chain_expectations(work->evidence, L, steps, false, posterior, pairs, work->alpha, work->beta, work->weight,
                              work->totals, work->terms);
}

KERNEL double expectations(Floats scores, const Steps *steps, Floats end, Floats posterior, Floats pairs) {
    Room room = {0};
    ChainRoom work = chain_room(&room, scores.n, end.n);
    if (room.short_of_memory) return leave(&room);
    double log_z = ending_expectations(scores.at, scores.n, steps, end, posterior.at, pairs.at, &work);
    leave(&room);
    return log_z;
}

/* Cross entropy between what is to be learned and the chain, up to a constant; and its gradients, by each token's
 * scores [L, J] and by the scores of steps [J, J]. */
static double document_loss(const double *scores, int64_t L, const Steps *steps, const Rules *rules,
                            const double *target, const double *target_pairs, double *by_token, double *by_step,
                            const ChainRoom *work) {
    int64_t J = rules->end.n;
    for (int64_t step = 0; step < J * J; step++) by_step[step] = 0.0;
    double loss = ending_expectations(scores, L, steps, rules->end, by_token, by_step, work);
    for (int64_t t = 0; t < L; t++)
        for (int64_t j = 0; j < J; j++) {
            double wanted = target[t * J + j];
            if (wanted > 0.0) {
                loss -= wanted * scores[t * J + j];
                if (t == 0 && rules->first.at[j]) loss -= wanted * steps->log_start.at[j];
            }
            by_token[t * J + j] -= wanted;
        }
    for (int64_t step = 0; step < J * J; step++)
        if (rules->steps.at[step]) {
            loss -= target_pairs[step] * steps->log_trans.at[step];
            by_step[step] -= target_pairs[step];
        }
    return loss;
}

KERNEL double loss_and_gradient(Floats scores, const Weights *weights, const Rules *rules, Floats target,
                                Floats target_pairs, Floats by_token, Floats by_step) {
    Room room = {0};
    ChainRoom work = chain_room(&room, scores.n, rules->end.n);
    Steps steps = steps_in(&room, weights->start, weights->trans);
    if (room.short_of_memory) return leave(&room);
    double loss = document_loss(scores.at, scores.n, &steps, rules, target.at, target_pairs.at, by_token.at, by_step.at,
                                &work);
    leave(&room);
    return loss;
}

/* ---- The hidden layer ---- */

/* sums [H] += Σ values[k · stride] · rows[k] [H], one after another: four at a time, so that the sums are read and
 * written four times less often. */
static void add_weighted(float *restrict sums, int64_t H, const float *values, int64_t stride, const float *const *rows,
                         int64_t n) {
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
        const float *a = rows[k], *b = rows[k + 1], *c = rows[k + 2], *d = rows[k + 3];
        float p = values[k * stride], q = values[(k + 1) * stride];
        float r = values[(k + 2) * stride], s = values[(k + 3) * stride];
        for (int64_t h = 0; h < H; h++) sums[h] = sums[h] + p * a[h] + q * b[h] + r * c[h] + s * d[h];
    }
    for (; k < n; k++) {
        float value = values[k * stride];
        for (int64_t h = 0; h < H; h++) sums[h] += value * rows[k][h];
    }
}

/* What the units give for one vector [X], whose numbers have these rows [X] of weights; `kept` [H] weighs them (0:
 * dropped). */
static void units_of(const float *vector, int64_t X, const float *const *rows, Floats32 bias, const float *kept,
                     float *restrict units) {
    int64_t H = bias.n;
    for (int64_t h = 0; h < H; h++) units[h] = bias.at[h];
    add_weighted(units, H, vector, 1, rows, X);
    for (int64_t h = 0; h < H; h++) units[h] = (units[h] < 0.0f ? 0.0f : units[h]) * kept[h];
}

static const float **row_pointers(Room *room, int64_t n) { return unfilled(room, n, sizeof(float *)); }

KERNEL void fill_units(Floats32 vectors, const HiddenLayer *hidden, Floats32 kept, Floats32 units) {
    Room room = {0};
    int64_t X = vectors.m, H = hidden->bias.n;
    const float **rows = row_pointers(&room, X);
    if (!room.short_of_memory) {
        for (int64_t x = 0; x < X; x++) rows[x] = hidden->inner.at + x * H;
        for (int64_t t = 0; t < vectors.n; t++)
            units_of(vectors.at + t * X, X, rows, hidden->bias, kept.at, units.at + t * H);
    }
    leave(&room);
}

/* Fills the gradient of one token's units [H] before they were cut off at 0, from that of its scores [J]; adds to the
 * slopes of `outer` and `bias`. */
static void slopes_of_units(const float *units, const HiddenLayer *hidden, const float *kept, const double *by_token,
                            const HiddenLayer *slopes, float *by_unit) {
    int64_t H = hidden->bias.n, J = hidden->outer.m;
    for (int64_t h = 0; h < H; h++) {
        by_unit[h] = 0.0f;
        if (!(units[h] > 0.0f)) continue;
        const float *outer = hidden->outer.at + h * J;
        float *restrict slope = slopes->outer.at + h * J;
        double total = 0.0;
        for (int64_t j = 0; j < J; j++) total += by_token[j] * outer[j];
        for (int64_t j = 0; j < J; j++) slope[j] = (float)(slope[j] + units[h] * by_token[j]);
        by_unit[h] = (float)(total * kept[h]);
        slopes->bias.at[h] += by_unit[h];
    }
}

KERNEL void add_hidden_gradient(Floats32 vectors, Floats32 units, const HiddenLayer *hidden, Floats32 kept,
                                Floats by_token, const HiddenLayer *slopes) {
    int64_t L = units.n, X = vectors.m, H = units.m;
    Room room = {0};
    float *by_unit = unfilled(&room, L * H, sizeof(float));
    const float **rows = row_pointers(&room, L);
    if (!room.short_of_memory) {
        for (int64_t t = 0; t < L; t++) {
            rows[t] = by_unit + t * H;
            slopes_of_units(units.at + t * H, hidden, kept.at, by_token.at + t * by_token.m, slopes, by_unit + t * H);
        }
        for (int64_t x = 0; x < X; x++) add_weighted(slopes->inner.at + x * H, H, vectors.at + x, X, rows, L);
    }
    leave(&room);
}

/* ---- Training ---- */

/* What an epoch works in, and what it knows of the document at hand. */
typedef struct {
    Twister twister;
    Steps steps;
    ChainRoom chain;
    int32_t *kept;       /* features of the document's tokens that were not dropped, end to end */
    int64_t *kept_start; /* where those of each token begin [L + 1] */
    double *scores, *by_token, *by_step, *step, *square;
    int64_t n_seen;           /* numbers of the document's vectors that were not dropped, */
    int64_t *place;           /* where they are in a vector, */
    float *seen;              /* what they are [L, n_seen], */
    const float **inner_rows; /* and their weights */
    float *units, *kept_units, *by_unit;
    const float **unit_rows; /* the tokens' rows of by_unit */
    HiddenLayer slopes;      /* of `inner`, only the row at hand */
} Epoch;

static Floats32 floats(Room *room, int64_t n, int64_t m) {
    return (Floats32){unfilled(room, n * m, sizeof(float)), n, m};
}

static Epoch epoch_room(Room *room, const TrainingData *data, const Weights *weights, const HiddenLayer *hidden) {
    int64_t L = longest_document(data->doc_start), J = data->target.m, X = data->vectors.m, H = hidden->bias.n;
    return (Epoch){
        .steps = steps_in(room, weights->start, weights->trans),
        .chain = chain_room(room, L, J),
        .kept = unfilled(room, L * data->features.m + 1, sizeof(int32_t)),
        .kept_start = unfilled(room, L + 1, sizeof(int64_t)),
        .scores = doubles(room, L * J),
        .by_token = doubles(room, L * J),
        .by_step = doubles(room, J * J),
        .step = doubles(room, J),
        .square = doubles(room, J),
        .place = unfilled(room, X, sizeof(int64_t)),
        .seen = unfilled(room, L * X, sizeof(float)),
        .inner_rows = row_pointers(room, X),
        .units = unfilled(room, L * H, sizeof(float)),
        .kept_units = unfilled(room, H, sizeof(float)),
        .by_unit = unfilled(room, L * H, sizeof(float)),
        .unit_rows = row_pointers(room, L),
        .slopes = {floats(room, 1, H), floats(room, H, 1), floats(room, H, J)},
    };
}

/* Leaves out each feature of each token with the probability `dropout`. Without a branch, which would be guessed wrong
 * as often as not. */
static void drop_features(const int32_t *features, int64_t L, int64_t F, double dropout, Epoch *epoch) {
    int64_t n = 0;
    for (int64_t t = 0; t < L; t++) {
        epoch->kept_start[t] = n;
        for (int64_t f = 0; f < F; f++) {
            int32_t feature = features[t * F + f];
            bool dropped = dropout > 0.0 && uniform(&epoch->twister) < dropout;
            epoch->kept[n] = feature;
            n += !dropped & (feature != 0);
        }
    }
    epoch->kept_start[L] = n;
}

/* 0 with the probability `dropout`, else what makes up for it. */
static float drawn(Twister *twister, double dropout) {
    return uniform(twister) < dropout ? 0.0f : (float)(1.0 / (1.0 - dropout));
}

/* Draws which numbers of the vectors are seen in this document, and which units are kept. */
static void draw_hidden(const float *vectors, int64_t L, int64_t X, const HiddenLayer *hidden, double dropout,
                        Epoch *epoch) {
    int64_t H = hidden->bias.n, n = 0;
    float weight = (float)(1.0 / (1.0 - dropout));
    for (int64_t x = 0; x < X; x++)
        if (drawn(&epoch->twister, dropout) > 0.0f) {
            epoch->place[n] = x;
            epoch->inner_rows[n++] = hidden->inner.at + x * H;
        }
    for (int64_t h = 0; h < H; h++) epoch->kept_units[h] = drawn(&epoch->twister, dropout);
    for (int64_t t = 0; t < L; t++)
        for (int64_t k = 0; k < n; k++) epoch->seen[t * n + k] = vectors[t * X + epoch->place[k]] * weight;
    epoch->n_seen = n;
}

/* Adds what the hidden layer says to the scores. */
static void add_hidden_scores(int64_t L, int64_t J, const HiddenLayer *hidden, const Epoch *epoch) {
    int64_t H = hidden->bias.n, n = epoch->n_seen;
    for (int64_t t = 0; t < L; t++) {
        float *units = epoch->units + t * H;
        double *restrict scores = epoch->scores + t * J;
        units_of(epoch->seen + t * n, n, epoch->inner_rows, hidden->bias, epoch->kept_units, units);
        for (int64_t h = 0; h < H; h++)
            for (int64_t j = 0; j < J; j++) scores[j] += units[h] * hidden->outer.at[h * J + j];
    }
}

/* One step of AdaGrad for the features of a document's tokens. */
static void step_features(int64_t L, int64_t J, double rate, const Weights *weights, const Weights *squares,
                          const Epoch *epoch) {
    double *restrict step = epoch->step, *restrict added = epoch->square;
    for (int64_t t = 0; t < L; t++) {
        const double *gradient = epoch->by_token + t * J;
        for (int64_t j = 0; j < J; j++) {
            step[j] = rate * gradient[j];
            added[j] = gradient[j] * gradient[j];
        }
        for (int64_t k = epoch->kept_start[t]; k < epoch->kept_start[t + 1]; k++) {
            float *restrict weight = weights->features.at + epoch->kept[k] * J;
            float *restrict square = squares->features.at + epoch->kept[k] * J;
            for (int64_t j = 0; j < J; j++) {
                square[j] = (float)(square[j] + added[j]);
                weight[j] = (float)(weight[j] - step[j] / sqrtf(square[j]));
            }
        }
    }
}

/* One step of AdaGrad for n weights of the hidden layer. Squares are above 0 from the start: no slope, no step. */
static void step_some(int64_t n, float *restrict weight, float *restrict square, const float *restrict slope,
                      double rate) {
    for (int64_t k = 0; k < n; k++) {
        square[k] += slope[k] * slope[k];
        weight[k] = (float)(weight[k] - rate * slope[k] / sqrtf(square[k]));
    }
}

/* One step of AdaGrad for the hidden layer. Numbers that were dropped have no slope. */
static void step_hidden(int64_t L, int64_t J, double rate, const HiddenLayer *hidden, const HiddenLayer *squares,
                        const Epoch *epoch) {
    int64_t H = hidden->bias.n;
    const HiddenLayer *slopes = &epoch->slopes;
    size_t row = (size_t)H * sizeof(float);
    memset(slopes->bias.at, 0, row);
    memset(slopes->outer.at, 0, row * (size_t)J);
    for (int64_t t = 0; t < L; t++) {
        float *by_unit = epoch->by_unit + t * H;
        epoch->unit_rows[t] = by_unit;
        slopes_of_units(epoch->units + t * H, hidden, epoch->kept_units, epoch->by_token + t * J, slopes, by_unit);
    }
    for (int64_t k = 0; k < epoch->n_seen; k++) {
        int64_t first = epoch->place[k] * H;
        memset(slopes->inner.at, 0, row);
        add_weighted(slopes->inner.at, H, epoch->seen + k, epoch->n_seen, epoch->unit_rows, L);
        step_some(H, hidden->inner.at + first, squares->inner.at + first, slopes->inner.at, rate);
    }
    step_some(H, hidden->bias.at, squares->bias.at, slopes->bias.at, rate);
    step_some(H * J, hidden->outer.at, squares->outer.at, slopes->outer.at, rate);
}

/* One step of AdaGrad for scores that are allowed to move. */
static void step_allowed(Floats weights, Floats squares, Bools allowed, const double *gradient, double rate) {
    for (int64_t n = 0; n < allowed.n * allowed.m; n++)
        if (allowed.at[n]) {
            squares.at[n] += gradient[n] * gradient[n];
            weights.at[n] -= rate * gradient[n] / sqrt(squares.at[n]);
        }
}

KERNEL double train_epoch(const TrainingData *data, const Rules *rules, Ints order, const Weights *weights,
                          const Weights *squares, const HiddenLayer *hidden, const HiddenLayer *hidden_squares,
                          double rate, double dropout, double hidden_dropout, int64_t seed) {
    int64_t F = data->features.m, J = data->target.m, X = data->vectors.m;
    Room room = {0};
    Epoch epoch = epoch_room(&room, data, weights, hidden);
    if (room.short_of_memory) return leave(&room);
    epoch.twister = seeded((uint32_t)seed);
    double loss = 0.0;
    int64_t tokens = 0;
    for (int64_t o = 0; o < order.n; o++) {
        int64_t d = order.at[o], first = data->doc_start.at[d], L = document_length(data->doc_start, d);
        if (L == 0) continue;
        drop_features(data->features.at + first * F, L, F, dropout, &epoch);
        for (int64_t t = 0; t < L; t++) {
            int64_t start = epoch.kept_start[t];
            sum_rows(epoch.kept + start, epoch.kept_start[t + 1] - start, weights->features, epoch.scores + t * J);
        }
        draw_hidden(data->vectors.at + first * X, L, X, hidden, hidden_dropout, &epoch);
        add_hidden_scores(L, J, hidden, &epoch);
        exponentiate_steps(&epoch.steps);
        loss += document_loss(epoch.scores, L, &epoch.steps, rules, data->target.at + first * J,
                              data->pairs.at + d * J * J, epoch.by_token, epoch.by_step, &epoch.chain);
        tokens += L;
        step_features(L, J, rate, weights, squares, &epoch);
        if (hidden->bias.n) step_hidden(L, J, rate, hidden, hidden_squares, &epoch);
        step_allowed(weights->start, squares->start, rules->first, epoch.by_token, rate);
        step_allowed(weights->trans, squares->trans, rules->steps, epoch.by_step, rate);
    }
    leave(&room);
    return loss / (double)most_of(tokens, 1);
}

/* Adds a token's gradient [J] to the rows of its features [F]. */
static void add_to_rows(const int32_t *rows, int64_t F, const double *gradient, Floats table) {
    int64_t J = table.m;
    for (int64_t f = 0; f < F; f++) {
        if (rows[f] == 0) continue;
        double *restrict row = table.at + rows[f] * J;
        for (int64_t j = 0; j < J; j++) row[j] += gradient[j];
    }
}

KERNEL double add_gradient(const TrainingData *data, const Rules *rules, Ints documents, const ExactWeights *weights,
                           const ExactWeights *slopes) {
    int64_t F = data->features.m, J = data->target.m, longest = longest_document(data->doc_start);
    Room room = {0};
    ChainRoom work = chain_room(&room, longest, J);
    Steps steps = steps_in(&room, weights->start, weights->trans);
    double *scores = doubles(&room, longest * J), *by_token = doubles(&room, longest * J);
    double *by_step = doubles(&room, J * J);
    if (room.short_of_memory) return leave(&room);
    double loss = 0.0;
    for (int64_t o = 0; o < documents.n; o++) {
        int64_t d = documents.at[o], first = data->doc_start.at[d], L = document_length(data->doc_start, d);
        if (L == 0) continue;
        const int32_t *features = data->features.at + first * F;
        for (int64_t t = 0; t < L; t++) sum_exact_rows(features + t * F, F, weights->features, scores + t * J);
        loss += document_loss(scores, L, &steps, rules, data->target.at + first * J, data->pairs.at + d * J * J,
                              by_token, by_step, &work);
        for (int64_t t = 0; t < L; t++) add_to_rows(features + t * F, F, by_token + t * J, slopes->features);
        for (int64_t j = 0; j < J; j++) slopes->start.at[j] += by_token[j];
        for (int64_t step = 0; step < J * J; step++) slopes->trans.at[step] += by_step[step];
    }
    leave(&room);
    return loss;
}

/* ---- Whole corpora ---- */

/* Scales columns, then rows, of joint [J, J] to the sums `after` and `before` [J]; those of no weight stay. */
static void scale_margins(double *joint, int64_t J, const double *before, const double *after) {
    for (int64_t j = 0; j < J; j++) {
        double total = 0.0;
        for (int64_t i = 0; i < J; i++) total += joint[i * J + j];
        double factor = after[j] / total;
        if (total > 0.0)
            for (int64_t i = 0; i < J; i++) joint[i * J + j] *= factor;
    }
    for (int64_t i = 0; i < J; i++) {
        double total = 0.0;
        for (int64_t j = 0; j < J; j++) total += joint[i * J + j];
        double factor = before[i] / total;
        if (total > 0.0)
            for (int64_t j = 0; j < J; j++) joint[i * J + j] *= factor;
    }
}

KERNEL void couple(Floats target, Ints doc_start, Bools allowed, int64_t scalings, Floats out) {
    int64_t J = target.m;
    Room room = {0};
    double *joint = doubles(&room, J * J);
    for (int64_t d = 0; d < (room.short_of_memory ? 0 : doc_start.n - 1); d++)
        for (int64_t t = doc_start.at[d] + 1; t < doc_start.at[d + 1]; t++) {
            const double *after = target.at + t * J, *before = after - J;
            for (int64_t i = 0; i < J; i++)
                for (int64_t j = 0; j < J; j++) joint[i * J + j] = allowed.at[i * J + j] ? before[i] * after[j] : 0.0;
            for (int64_t s = 0; s < scalings; s++) scale_margins(joint, J, before, after);
            for (int64_t step = 0; step < J * J; step++) out.at[d * J * J + step] += joint[step];
        }
    leave(&room);
}

KERNEL void probabilities_of(Floats scores, Ints doc_start, Floats start, Floats trans, Floats end, Floats out) {
    int64_t J = end.n;
    Room room = {0};
    ChainRoom work = chain_room(&room, longest_document(doc_start), J);
    Steps steps = steps_in(&room, start, trans);
    bool lost;
    for (int64_t d = 0; d < (room.short_of_memory ? 0 : doc_start.n - 1); d++) {
        int64_t first = doc_start.at[d], L = document_length(doc_start, d);
        if (L == 0) continue;
        copy_evidence(scores.at + first * J, L, end, work.evidence);
        memcpy(work.weight, work.evidence, (size_t)(L * J) * sizeof(double));
        posteriors(work.evidence, work.weight, L, &steps, false, out.at + first * J, work.alpha, work.beta, work.totals,
                   NULL, work.terms, &lost);
    }
    leave(&room);
}

KERNEL void best_paths(Floats scores, Ints doc_start, Floats start, Floats trans, Floats end, Ints32 path) {
    int64_t J = end.n;
    Room room = {0};
    Steps steps = steps_in(&room, start, trans);
    int32_t *back = unfilled(&room, longest_document(doc_start) * J, sizeof(int32_t));
    double *best = doubles(&room, 2 * J);
    for (int64_t d = 0; d < (room.short_of_memory ? 0 : doc_start.n - 1); d++) {
        int64_t first = doc_start.at[d], L = document_length(doc_start, d);
        if (L) best_path(scores.at + first * J, L, &steps, end.at, back, best, path.at + first);
    }
    leave(&room);
}
