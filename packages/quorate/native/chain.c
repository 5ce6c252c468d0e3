/* A pass over a slice: evidence, forward–backward, counts.
 *
 * What was said and the words are turned from logarithms into probabilities once a set and once a word; a token's
 * evidence is the product of two rows. The recursion is scaled. Where labels are so many nats apart that a token's sum
 * vanishes, the document is done again in log space. EM and VB use the same kernels: VB only passes rows that sum to
 * less than 1.
 *
 * Letters: D documents, N tokens, U sets, C cells and V words of a slice, J labels, L tokens of one document. Rows of
 * labels are filled up with zeros to a multiple of WIDTH, their width, and lie end to end.
 */
#include "lanes.h"
#include "vectors.h"

/* What a pass adds up: posteriors of first tokens [J], neighbours [J, J], all tokens [J], by the slice's cells [C, J]
 * and words [V, J]; and of every token [N, J], unless that is empty. */
typedef struct {
    Floats starts, pairs, labels, cells, words, posterior;
} Filled;

/* What a pass has to work with: rows of evidence, and posteriors by set and by word in rows of the same width. */
typedef struct {
    const Slice *piece;
    const Rows *rows;
    const Steps *steps;
    const Filled *out;
    Evidence given;
    double *of_sets, *of_words;
} Pass;

/* Room for one document by itself. */
typedef struct {
    double *evidence, *posterior, *alpha, *beta, *weight, *totals, *terms;
} Alone;

static int64_t width_of(int64_t J) { return (J + WIDTH - 1) / WIDTH * WIDTH; }

/* out[j]: log-likelihood of all that was observed at a token, were its label j; −inf off a known label. */
static void gather_token(const Slice *piece, const Rows *rows, int64_t t, double *out) {
    int64_t J = rows->cells.m;
    for (int64_t j = 0; j < J; j++) out[j] = 0.0;
    add_set(piece, piece->token_set.at[t], rows->cells, out);
    for (int64_t j = 0; j < J; j++) out[j] *= rows->temper;
    int32_t word = piece->words.at[piece->token_word.at[t]];
    if (word < rows->words.n)
        for (int64_t j = 0; j < J; j++) out[j] += rows->words.at[word * J + j];
    if (piece->known.n && piece->known.at[t] >= 0)
        for (int64_t j = 0; j < J; j++)
            if (j != piece->known.at[t]) out[j] = -INFINITY;
}

/* Room for rows of logarithms, −inf, and for one more row without any evidence. */
static double *row_table(Room *room, int64_t n_rows, int64_t width) {
    return filled(room, (n_rows + 1) * width, -INFINITY);
}

/* Write logs − their maximum into a row, which is left if all are −inf; returns the maximum. */
static double place_logs(const double *logs, int64_t J, double *row) {
    double top = -INFINITY;
    for (int64_t j = 0; j < J; j++) top = logs[j] > top ? logs[j] : top;
    if (top > -INFINITY)
        for (int64_t j = 0; j < J; j++) row[j] = logs[j] - top;
    return top;
}

static void exponentiate(double *table, int64_t n) {
    for (int64_t place = 0; place < n; place += WIDTH) store(table + place, exp_of(load(table + place)));
}

static void fill_set_rows(Room *room, const Slice *piece, const Rows *rows, Evidence *given) {
    int64_t U = piece->set_start.n - 1, C = piece->cells.n, J = given->J, width = given->width;
    bool weighted = piece->event_weight.n > 0;
    double *cells = filled(room, C * width, 0.0); /* those of the slice alone, close together */
    double *logs = doubles(room, width);
    given->sets = row_table(room, U, width);
    given->set_tops = doubles(room, U);
    if (room->short_of_memory) return;
    for (int64_t c = 0; c < C; c++)
        for (int64_t j = 0; j < J; j++)
            cells[c * width + j] = rows->temper * rows->cells.at[piece->cells.at[c] * J + j];
    for (int64_t u = 0; u < U; u++) {
        for (int64_t j = 0; j < width; j++) logs[j] = 0.0;
        for (int64_t e = piece->set_start.at[u]; e < piece->set_start.at[u + 1]; e++)
            add_row(logs, cells + piece->event_cell.at[e] * width, weighted ? piece->event_weight.at[e] : 1.0, width);
        given->set_tops[u] = place_logs(logs, J, given->sets + u * width);
    }
    exponentiate(given->sets, (U + 1) * width);
}

/* The same of each word; ones where a word has no row. */
static void fill_word_rows(Room *room, const Slice *piece, const Rows *rows, Evidence *given) {
    int64_t V = piece->words.n, J = given->J, width = given->width;
    given->words = row_table(room, V, width);
    given->word_tops = filled(room, V, 0.0);
    if (room->short_of_memory) return;
    for (int64_t v = 0; v < V; v++) {
        double *row = given->words + v * width;
        if (piece->words.at[v] < rows->words.n)
            given->word_tops[v] = place_logs(rows->words.at + piece->words.at[v] * J, J, row);
        else
            for (int64_t j = 0; j < J; j++) row[j] = 0.0;
    }
    exponentiate(given->words, (V + 1) * width);
}

static Evidence evidence_of(Room *room, const Slice *piece, const Rows *rows) {
    int64_t J = rows->cells.m;
    Evidence given = {.J = J, .width = width_of(J)};
    fill_set_rows(room, piece, rows, &given);
    fill_word_rows(room, piece, rows, &given);
    given.ends = doubles(room, J);
    if (!room->short_of_memory)
        for (int64_t j = 0; j < J; j++) given.ends[j] = exp(rows->end.at[j]);
    return given;
}

static Pass pass_over(Room *room, const Slice *piece, const Rows *rows, const Steps *steps, const Filled *out) {
    Pass pass = {.piece = piece, .rows = rows, .steps = steps, .out = out};
    pass.given = evidence_of(room, piece, rows);
    pass.of_sets = filled(room, piece->set_start.n * pass.given.width, 0.0);
    pass.of_words = filled(room, (piece->words.n + 1) * pass.given.width, 0.0);
    return pass;
}

/* For each cell the rows of all sets that it is in, tempered and added up. */
static void spread_sets(Room *room, const Slice *piece, double temper, const double *of_sets, Floats out) {
    int64_t J = out.m, width = width_of(J);
    bool weighted = piece->event_weight.n > 0;
    double *rows = filled(room, piece->cells.n * width, 0.0);
    if (room->short_of_memory) return;
    for (int64_t u = 0; u + 1 < piece->set_start.n; u++)
        for (int64_t e = piece->set_start.at[u]; e < piece->set_start.at[u + 1]; e++) {
            double w = weighted ? temper * piece->event_weight.at[e] : temper;
            add_row(rows + piece->event_cell.at[e] * width, of_sets + u * width, w, width);
        }
    for (int64_t c = 0; c < piece->cells.n; c++)
        for (int64_t j = 0; j < J; j++) out.at[c * J + j] = rows[c * width + j];
}

/* The sums by cell, word and label, from those by set and word. */
static void sum_up(Room *room, const Pass *pass) {
    int64_t J = pass->given.J, width = pass->given.width;
    spread_sets(room, pass->piece, pass->rows->temper, pass->of_sets, pass->out->cells);
    for (int64_t v = 0; v < pass->piece->words.n; v++)
        for (int64_t j = 0; j < J; j++) pass->out->words.at[v * J + j] = pass->of_words[v * width + j];
}

static Alone room_for_one(Room *room, int64_t L, int64_t J) {
    Alone alone = {doubles(room, L * J), doubles(room, L * J), doubles(room, L * J), doubles(room, L * J),
                   doubles(room, L * J), doubles(room, L),     doubles(room, J)};
    return alone;
}

/* One document by itself: adds what it has to the sums, fills its posterior; returns ln Z. */
static double one_chain(const Pass *pass, int64_t d, bool in_logs, const Alone *alone) {
    const Slice *piece = pass->piece;
    const Filled *out = pass->out;
    int64_t J = pass->given.J, width = pass->given.width;
    int64_t begin = piece->doc_start.at[d], L = piece->doc_start.at[d + 1] - begin;
    if (L == 0) return 0.0;
    for (int64_t t = 0; t < L; t++) gather_token(piece, pass->rows, begin + t, alone->evidence + t * J);
    /* What may end a document is taken as evidence at its last token. */
    for (int64_t j = 0; j < J; j++) alone->evidence[(L - 1) * J + j] += pass->rows->end.at[j];
    double log_z = chain_expectations(alone->evidence, L, pass->steps, in_logs, alone->posterior, out->pairs.at,
                                      alone->alpha, alone->beta, alone->weight, alone->totals, alone->terms);
    if (!(log_z > -INFINITY)) return log_z;
    for (int64_t t = 0; t < L; t++) {
        double *of_set = pass->of_sets + piece->token_set.at[begin + t] * width;
        double *of_word = pass->of_words + piece->token_word.at[begin + t] * width;
        for (int64_t j = 0; j < J; j++) {
            double share = alone->posterior[t * J + j];
            of_set[j] += share;
            of_word[j] += share;
            if (t == 0) out->starts.at[j] += share;
            if (out->posterior.n) out->posterior.at[(begin + t) * J + j] = share;
        }
    }
    return log_z;
}

static int64_t document_length(const Slice *piece, int64_t d) {
    return piece->doc_start.at[d + 1] - piece->doc_start.at[d];
}

/* ln Z of the document in a lane, with the factors that were left out of its rows; nan if too much was lost. */
static double log_z_of_lane(const Pass *pass, const Batch *batch, int lane, int64_t d) {
    const Slice *piece = pass->piece;
    double log_z = log_totals(batch, lane, pass->steps->least);
    for (int64_t t = piece->doc_start.at[d]; t < piece->doc_start.at[d + 1]; t++)
        log_z += pass->given.set_tops[piece->token_set.at[t]] + pass->given.word_tops[piece->token_word.at[t]];
    return log_z;
}

/* What a batch adds to the first labels, and to the posterior of every token where that is wanted. */
static void take_posteriors(const Pass *pass, const Batch *batch) {
    int64_t J = pass->given.J, width = pass->given.width;
    const Filled *out = pass->out;
    for (int lane = 0; lane < LANES; lane++) {
        if (batch->length[lane])
            for (int64_t j = 0; j < J; j++) out->starts.at[j] += batch->alpha[j * LANES + lane];
        if (out->posterior.n)
            for (int64_t t = 0; t < batch->length[lane]; t++)
                for (int64_t j = 0; j < J; j++)
                    out->posterior.at[(batch->begin[lane] + t) * J + j] = batch->alpha[(t * width + j) * LANES + lane];
    }
}

/* One pass over a slice; returns Σ ln Z. A document of more than `long_document` tokens is done by itself, as lanes for
 * it would take much room. `noted` becomes the first document without a path, or −1, and how many were done in log
 * space. */
KERNEL double fill_chain_pass(const Slice *piece, const Rows *rows, const Steps *steps, int64_t long_document,
                         const Filled *out, Ints noted) {
    Room room = {0};
    Pass pass = pass_over(&room, piece, rows, steps, out);
    int64_t J = pass.given.J, width = pass.given.width, D = piece->by_length.n, alone_first = 0;
    while (alone_first < D &&
           (steps->in_logs || document_length(piece, piece->by_length.at[alone_first]) > long_document))
        alone_first++;
    int64_t side_by_side = alone_first == D ? 0 : document_length(piece, piece->by_length.at[alone_first]);
    Batch batch = batch_for(&room, side_by_side, J, width);
    Alone alone = room_for_one(&room, D ? document_length(piece, piece->by_length.at[0]) : 0, J);
    if (room.short_of_memory) return leave(&room);
    double sum = 0.0;
    int64_t stuck = D, redone = 0;
    for (int64_t n = 0; n < alone_first; n++) {
        int64_t d = piece->by_length.at[n];
        double log_z = one_chain(&pass, d, steps->in_logs, &alone);
        if (!(log_z > -INFINITY)) stuck = least_of(stuck, d);
        sum += log_z;
    }
    for (int64_t first = alone_first; first < D; first += LANES) {
        int64_t L = load_batch(&batch, piece, first);
        forward(&batch, piece, L, steps, &pass.given);
        for (int lane = 0; lane < LANES && first + lane < D; lane++) {
            int64_t d = piece->by_length.at[first + lane];
            double log_z = log_z_of_lane(&pass, &batch, lane, d);
            if (isnan(log_z)) {
                drop_lane(&batch, lane, J, width);
                log_z = one_chain(&pass, d, true, &alone);
                redone++;
                if (!(log_z > -INFINITY)) stuck = least_of(stuck, d);
            }
            sum += log_z;
        }
        backward(&batch, L, steps, width);
        add_up(&batch, piece, L, width, pass.of_sets, pass.of_words);
        take_posteriors(&pass, &batch);
    }
    for (int64_t i = 0; i < J * J; i++)
        if (steps->trans.at[i] > 0.0) {
            const double *lanes = batch.pairs + i * LANES;
            out->pairs.at[i] += sum_of(load(lanes) + load(lanes + WIDTH)) * steps->trans.at[i];
        }
    for (int64_t u = 0; u + 1 < piece->set_start.n; u++)
        for (int64_t j = 0; j < J; j++) out->labels.at[j] += pass.of_sets[u * width + j];
    sum_up(&room, &pass);
    noted.at[0] = stuck < D ? stuck : -1;
    noted.at[1] = redone;
    leave(&room);
    return sum;
}

/* Forward and backward over all documents of a slice side by side, and nothing else, `times` times: for measurements.
 * Returns Σ ln of the sums, so that no compiler can leave the work out. */
KERNEL double recurse(const Slice *piece, const Rows *rows, const Steps *steps, int64_t times) {
    Room room = {0};
    Evidence given = evidence_of(&room, piece, rows);
    Batch batch = batch_for(&room, longest_document(piece->doc_start), given.J, given.width);
    if (room.short_of_memory) return leave(&room);
    double sum = 0.0;
    for (int64_t n = 0; n < times; n++)
        for (int64_t first = 0; first < piece->by_length.n; first += LANES) {
            int64_t L = load_batch(&batch, piece, first);
            forward(&batch, piece, L, steps, &given);
            for (int lane = 0; lane < LANES; lane++) sum += log_totals(&batch, lane, steps->least);
            backward(&batch, L, steps, given.width);
        }
    leave(&room);
    return sum;
}

/* Where neither words nor known labels tell tokens of one set apart, each set is one token that occurs often: how
 * often, and a token that stands for it. */
static void count_alike(const Slice *piece, double *often, int64_t *standing_for) {
    for (int64_t t = 0; t < piece->token_set.n; t++) {
        often[piece->token_set.at[t]] += piece->times.n ? piece->times.at[t] : 1.0;
        standing_for[piece->token_set.at[t]] = t;
    }
}

/* The posterior of one token that stands alone, up to the factor 1/total; returns ln of its evidence. */
static double one_token(const Pass *pass, int64_t t, const double *start, double *row, double *logs, double *total) {
    const Slice *piece = pass->piece;
    const Evidence *given = &pass->given;
    int64_t J = given->J, width = given->width;
    int64_t u = piece->token_set.at[t], v = piece->token_word.at[t];
    int32_t known = piece->known.n ? piece->known.at[t] : -1;
    multiply_rows(row, given->sets + u * width, given->words + v * width, width);
    if (known >= 0)
        for (int64_t j = 0; j < J; j++)
            if (j != known) row[j] = 0.0;
    *total = product_sum(row, start, width);
    if (*total > 1e-200 && !pass->steps->in_logs) {
        multiply_rows(row, row, start, width);
        return log(*total) + given->set_tops[u] + given->word_tops[v];
    }
    gather_token(piece, pass->rows, t, logs);
    for (int64_t j = 0; j < J; j++) logs[j] += pass->steps->log_start.at[j];
    double log_total = log_sum(logs, J);
    *total = 1.0;
    for (int64_t j = 0; j < J; j++) row[j] = exp(logs[j] - log_total);
    return log_total;
}

/* One pass in which every token stands alone; returns Σ ln Z. */
KERNEL double fill_independent_pass(const Slice *piece, const Rows *rows, const Steps *steps, const Filled *out) {
    Room room = {0};
    Pass pass = pass_over(&room, piece, rows, steps, out);
    int64_t J = pass.given.J, width = pass.given.width, U = piece->set_start.n - 1;
    double *labels = filled(&room, width, 0.0), *start = filled(&room, width, 0.0), *row = filled(&room, width, 0.0);
    double *logs = doubles(&room, J), *often = filled(&room, U, 0.0);
    int64_t *standing_for = zeros(&room, U, sizeof(int64_t));
    if (room.short_of_memory) return leave(&room);
    for (int64_t j = 0; j < J; j++) start[j] = steps->start.at[j];
    bool alike = rows->words.n == 0 && piece->known.n == 0 && out->posterior.n == 0;
    if (alike) count_alike(piece, often, standing_for);
    double sum = 0.0;
    int64_t N = alike ? U : piece->token_set.n;
    for (int64_t n = 0; n < N; n++) {
        int64_t t = alike ? standing_for[n] : n;
        double total, log_total = one_token(&pass, t, start, row, logs, &total);
        double times = alike ? often[n] : piece->times.n ? piece->times.at[t] : 1.0;
        scale_row(row, times / total, width);
        sum += times * log_total;
        add_row(labels, row, 1.0, width);
        add_row(pass.of_sets + piece->token_set.at[t] * width, row, 1.0, width);
        add_row(pass.of_words + piece->token_word.at[t] * width, row, 1.0, width);
        if (out->posterior.n)
            for (int64_t j = 0; j < J; j++) out->posterior.at[t * J + j] = row[j] / times;
    }
    for (int64_t j = 0; j < J; j++) out->labels.at[j] = labels[j];
    sum_up(&room, &pass);
    leave(&room);
    return sum;
}

/* The share of the votes that each label has in every set [U, J]. */
static void vote_in_sets(const Slice *piece, Floats votes, double smoothing, double *shares) {
    int64_t J = votes.m;
    for (int64_t u = 0; u + 1 < piece->set_start.n; u++) {
        double *row = shares + u * J, total = 0.0;
        for (int64_t j = 0; j < J; j++) row[j] = smoothing;
        add_set(piece, u, votes, row);
        for (int64_t j = 0; j < J; j++) total += row[j];
        for (int64_t j = 0; j < J; j++) row[j] = total > 0.0 ? row[j] / total : 1.0 / (double)J;
    }
}

/* Shares of votes as posterior: an event votes with its cell's row. Pairs as if tokens stood alone. */
KERNEL void fill_vote_pass(const Slice *piece, Floats votes, double smoothing, double temper, const Filled *out) {
    Room room = {0};
    int64_t J = votes.m, width = width_of(J), U = piece->set_start.n - 1;
    double *shares = doubles(&room, U * J), *of_sets = filled(&room, U * width, 0.0);
    double *row = doubles(&room, J), *before = doubles(&room, J);
    if (room.short_of_memory) {
        leave(&room);
        return;
    }
    vote_in_sets(piece, votes, smoothing, shares);
    for (int64_t d = 0; d + 1 < piece->doc_start.n; d++)
        for (int64_t t = piece->doc_start.at[d]; t < piece->doc_start.at[d + 1]; t++) {
            int32_t known = piece->known.n ? piece->known.at[t] : -1;
            double times = piece->times.n ? piece->times.at[t] : 1.0;
            int64_t u = piece->token_set.at[t], v = piece->token_word.at[t];
            for (int64_t j = 0; j < J; j++) {
                row[j] = known < 0 ? shares[u * J + j] : j == known ? 1.0 : 0.0;
                out->labels.at[j] += times * row[j];
                of_sets[u * width + j] += times * row[j];
                out->words.at[v * J + j] += times * row[j];
            }
            if (t == piece->doc_start.at[d]) {
                for (int64_t j = 0; j < J; j++) out->starts.at[j] += times * row[j];
            } else {
                for (int64_t i = 0; i < J; i++)
                    if (before[i] > 0.0)
                        for (int64_t j = 0; j < J; j++) out->pairs.at[i * J + j] += before[i] * row[j];
            }
            for (int64_t j = 0; j < J; j++) before[j] = row[j];
            if (out->posterior.n)
                for (int64_t j = 0; j < J; j++) out->posterior.at[t * J + j] = row[j];
        }
    spread_sets(&room, piece, temper, of_sets, out->cells);
    leave(&room);
}

/* Counts of the slice's cells under a posterior [N, J] that comes from elsewhere. */
KERNEL void fill_cell_sums(const Slice *piece, Floats posterior, Floats out) {
    Room room = {0};
    int64_t J = posterior.m, width = width_of(J);
    double *of_sets = filled(&room, (piece->set_start.n - 1) * width, 0.0);
    if (!room.short_of_memory) {
        for (int64_t t = 0; t < piece->token_set.n; t++) {
            double times = piece->times.n ? piece->times.at[t] : 1.0;
            for (int64_t j = 0; j < J; j++)
                of_sets[piece->token_set.at[t] * width + j] += times * posterior.at[t * J + j];
        }
        spread_sets(&room, piece, 1.0, of_sets, out);
    }
    leave(&room);
}

/* Add a slice's rows to those of the corpus; what is beyond its end is left out. */
KERNEL void merge(Ints32 numbers, Floats rows, Floats out) {
    for (int64_t n = 0; n < numbers.n; n++)
        if (numbers.at[n] < out.n)
            for (int64_t j = 0; j < out.m; j++) out.at[numbers.at[n] * out.m + j] += rows.at[n * rows.m + j];
}
