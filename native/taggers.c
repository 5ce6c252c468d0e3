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

/* What the units give for one vector [X]; `kept` [H] weighs them (0: dropped). */
static void units_of(const float *vector, int64_t X, const HiddenLayer *hidden, const float *kept,
                     float *restrict units) {
    int64_t H = hidden->bias.n;
    for (int64_t h = 0; h < H; h++) units[h] = hidden->bias.at[h];
    for (int64_t x = 0; x < X; x++) {
        float value = vector[x];
        if (value == 0.0f) continue;
        const float *weight = hidden->inner.at + x * H;
        for (int64_t h = 0; h < H; h++) units[h] += value * weight[h];
    }
    for (int64_t h = 0; h < H; h++) units[h] = (units[h] < 0.0f ? 0.0f : units[h]) * kept[h];
}

KERNEL void fill_units(Floats32 vectors, const HiddenLayer *hidden, Floats32 kept, Floats32 units) {
    for (int64_t t = 0; t < vectors.n; t++)
        units_of(vectors.at + t * vectors.m, vectors.m, hidden, kept.at, units.at + t * units.m);
}

/* Adds the gradients of the layer's weights, from those of one token's scores [J]; by_unit [H] is room. */
static void add_unit_slopes(const float *vector, int64_t X, const float *units, const HiddenLayer *hidden,
                            const float *kept, const double *by_token, const HiddenLayer *slopes,
                            float *restrict by_unit) {
    int64_t H = hidden->bias.n, J = hidden->outer.m;
    for (int64_t h = 0; h < H; h++) {
        by_unit[h] = 0.0f;
        if (!(units[h] > 0.0f)) continue;
        double total = 0.0;
        for (int64_t j = 0; j < J; j++) {
            float *slope = slopes->outer.at + h * J + j;
            total += by_token[j] * hidden->outer.at[h * J + j];
            *slope = (float)(*slope + units[h] * by_token[j]);
        }
        by_unit[h] = (float)(total * kept[h]);
        slopes->bias.at[h] += by_unit[h];
    }
    for (int64_t x = 0; x < X; x++) {
        float value = vector[x];
        if (value == 0.0f) continue;
        float *slope = slopes->inner.at + x * H;
        for (int64_t h = 0; h < H; h++) slope[h] += value * by_unit[h];
    }
}

KERNEL void add_hidden_gradient(Floats32 vectors, Floats32 units, const HiddenLayer *hidden, Floats32 kept,
                                Floats by_token, const HiddenLayer *slopes) {
    Room room = {0};
    float *by_unit = unfilled(&room, units.m, sizeof(float));
    if (!room.short_of_memory)
        for (int64_t t = 0; t < units.n; t++)
            add_unit_slopes(vectors.at + t * vectors.m, vectors.m, units.at + t * units.m, hidden, kept.at,
                            by_token.at + t * by_token.m, slopes, by_unit);
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
    float *seen, *kept_numbers, *units, *kept_units, *by_unit;
    HiddenLayer slopes;
} Epoch;

static Floats32 like(Room *room, Floats32 array) {
    return (Floats32){unfilled(room, array.n * array.m, sizeof(float)), array.n, array.m};
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
        .seen = unfilled(room, L * X, sizeof(float)),
        .kept_numbers = unfilled(room, X, sizeof(float)),
        .units = unfilled(room, L * H, sizeof(float)),
        .kept_units = unfilled(room, H, sizeof(float)),
        .by_unit = unfilled(room, H, sizeof(float)),
        .slopes = {like(room, hidden->inner), like(room, hidden->bias), like(room, hidden->outer)},
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

/* kept [n]: 0 with the probability `dropout`, else what makes up for it. */
static void draw_kept(Twister *twister, int64_t n, double dropout, float *kept) {
    for (int64_t k = 0; k < n; k++) kept[k] = uniform(twister) < dropout ? 0.0f : (float)(1.0 / (1.0 - dropout));
}

/* Adds what the hidden layer says to the scores. Each number of the vectors, and each unit, is left out in the whole
 * document with the probability `dropout`. */
static void add_hidden_scores(const float *vectors, int64_t L, int64_t X, int64_t J, const HiddenLayer *hidden,
                              double dropout, Epoch *epoch) {
    int64_t H = hidden->bias.n;
    draw_kept(&epoch->twister, X, dropout, epoch->kept_numbers);
    draw_kept(&epoch->twister, H, dropout, epoch->kept_units);
    for (int64_t t = 0; t < (H ? L : 0); t++) {
        float *seen = epoch->seen + t * X, *units = epoch->units + t * H;
        double *scores = epoch->scores + t * J;
        for (int64_t x = 0; x < X; x++) seen[x] = vectors[t * X + x] * epoch->kept_numbers[x];
        units_of(seen, X, hidden, epoch->kept_units, units);
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

/* One step of AdaGrad for one part of the hidden layer. */
static void step_part(Floats32 weights, Floats32 squares, Floats32 slopes, double rate) {
    float *restrict weight = weights.at, *restrict square = squares.at;
    const float *restrict slope = slopes.at;
    for (int64_t n = 0; n < weights.n * weights.m; n++) {
        square[n] += slope[n] * slope[n];
        double step = rate * slope[n] / sqrtf(square[n]);
        weight[n] = (float)(weight[n] - (slope[n] != 0.0f ? step : 0.0));
    }
}

static void clear(Floats32 array) { memset(array.at, 0, (size_t)(array.n * array.m) * sizeof(float)); }

/* One step of AdaGrad for the hidden layer. */
static void step_hidden(int64_t L, int64_t X, int64_t J, double rate, const HiddenLayer *hidden,
                        const HiddenLayer *squares, const Epoch *epoch) {
    int64_t H = hidden->bias.n;
    const HiddenLayer *slopes = &epoch->slopes;
    clear(slopes->inner);
    clear(slopes->bias);
    clear(slopes->outer);
    for (int64_t t = 0; t < L; t++)
        add_unit_slopes(epoch->seen + t * X, X, epoch->units + t * H, hidden, epoch->kept_units,
                        epoch->by_token + t * J, slopes, epoch->by_unit);
    step_part(hidden->inner, squares->inner, slopes->inner, rate);
    step_part(hidden->bias, squares->bias, slopes->bias, rate);
    step_part(hidden->outer, squares->outer, slopes->outer, rate);
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
        add_hidden_scores(data->vectors.at + first * X, L, X, J, hidden, hidden_dropout, &epoch);
        exponentiate_steps(&epoch.steps);
        loss += document_loss(epoch.scores, L, &epoch.steps, rules, data->target.at + first * J,
                              data->pairs.at + d * J * J, epoch.by_token, epoch.by_step, &epoch.chain);
        tokens += L;
        step_features(L, J, rate, weights, squares, &epoch);
        if (hidden->bias.n) step_hidden(L, X, J, rate, hidden, hidden_squares, &epoch);
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
                   work.terms, &lost);
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
