/* The span model: what annotators did with each candidate, sums over sets of candidates.
 *
 * Letters: D documents, C candidates, Q pairs of a document and an annotator who saw it, M marks, R responses (one for
 * each pair and candidate of a document, pair by pair), K annotators. Candidates of a document are sorted by end, then
 * start; those that overlap, directly or through others, are a *cluster*, and clusters stand side by side.
 */
#include "marks.h"
#include "room.h"
#include "scheme.h"
#include "single.h"

/* Before, and behind, every token. */
#define LEFT (-((int64_t)1 << 62))
#define RIGHT ((int64_t)1 << 62)

/* As the Python type of the same name, which says what is in it. */
typedef struct {
    Ints start, end, kind, cluster, by_start, first, pair_start, who;
    Floats weight;
    Ints response_start;
    Codes response;
    Floats spread, prior;
    int64_t apart;
} Problem;

/* Candidates that overlap, directly or through others, and their log weights if they are true, and if they are free:
 * that is, if they overlap nothing that is true. */
typedef struct {
    int64_t n, apart;
    const int64_t *start, *end, *kind, *by_start;
    const double *if_true, *if_free;
} Cluster;

static int64_t most_candidates(Ints first, int64_t low, int64_t high) {
    int64_t most = 0;
    for (int64_t d = low; d < high; d++) most = most_of(most, first.at[d + 1] - first.at[d]);
    return most;
}

/* [C] The number of each candidate's cluster, ascending; candidates are sorted by end. */
KERNEL void fill_clusters(Ints start, Ints end, Ints first, int64_t apart, Ints cluster) {
    int64_t number = -1;
    for (int64_t d = 0; d + 1 < first.n; d++) {
        int64_t low = first.at[d], high = first.at[d + 1] - 1, leftmost = RIGHT;
        /* From the right: a cluster ends where everything that follows begins behind it. */
        for (int64_t c = high; c >= low; c--) {
            if (end.at[c] + apart <= leftmost) {
                number++;
                leftmost = start.at[c];
            }
            leftmost = least_of(leftmost, start.at[c]);
            cluster.at[c] = number;
        }
        if (high < low) continue;
        /* Numbers ascend with the candidates. */
        int64_t bottom = cluster.at[high], top = cluster.at[low];
        for (int64_t c = low; c <= high; c++) cluster.at[c] = bottom + top - cluster.at[c];
    }
}

/* Adds to count [C] how many other candidates of the same type overlap each. */
KERNEL void count_overlapping(Ints start, Ints end, Ints kind, Ints cluster, Ints count) {
    int64_t low = 0;
    for (int64_t c = 0; c < start.n; c++) {
        if (cluster.at[c] != cluster.at[low]) low = c;
        for (int64_t other = low; other < c; other++)
            if (kind.at[other] == kind.at[c] && start.at[other] < end.at[c] && start.at[c] < end.at[other]) {
                count.at[c]++;
                count.at[other]++;
            }
    }
}

/* What each annotator did with each candidate of the documents they saw.
 *
 * Pair p marked mark_start[p] to mark_start[p + 1], and saw the runs of tokens run_start[p] to run_start[p + 1]. Of
 * several marks on one candidate the one of its type that overlaps it most counts. */
KERNEL void responses(Ints start, Ints end, Ints kind, Ints first, Ints pair_start, Ints response_start,
                      Ints mark_start, Ints mark_from, Ints mark_to, Ints mark_kind, Ints run_start, Ints run_from,
                      Ints run_to, Codes out) {
    for (int64_t d = 0; d + 1 < first.n; d++) {
        int8_t *said = out.at + response_start.at[d];
        for (int64_t p = pair_start.at[d]; p < pair_start.at[d + 1]; p++) {
            Marks marks = {mark_start.at[p], mark_start.at[p + 1], mark_from.at, mark_to.at, mark_kind.at};
            Marks runs = {run_start.at[p], run_start.at[p + 1], run_from.at, run_to.at, NULL};
            for (int64_t c = first.at[d]; c < first.at[d + 1]; c++)
                *said++ = was_shown(start.at[c], end.at[c], &runs)
                              ? response_to(start.at[c], end.at[c], kind.at[c], &marks).kind
                              : UNSEEN;
        }
    }
}

/* [C] By how much the words of each candidate speak for its type, and not for `outside`, in nats.
 *
 * rows [V, J] is ln of each word's probability by label; `labels` are those that a span is written with. */
KERNEL void fill_word_support(Ints start, Ints end, Ints kind, Ints32 word, Floats rows, const SpanLabels *labels,
                              int64_t outside, Floats support) {
    for (int64_t c = 0; c < start.n; c++) {
        int64_t begin = start.at[c], final = end.at[c] - 1, k = kind.at[c];
        support.at[c] = 0.0;
        for (int64_t t = begin; t <= final; t++) {
            if (word.at[t] >= rows.n) continue;
            int64_t label = begin == final ? labels->single.at[k]
                            : t == begin   ? labels->first.at[k]
                            : t == final   ? labels->last.at[k]
                                           : labels->inside.at[k];
            const double *row = rows.at + word.at[t] * rows.m;
            support.at[c] += row[label] - row[outside];
        }
    }
}

/* The log weights of document d's candidates, if they are true and if they are free. */
static void weigh(const Problem *p, int64_t d, Floats of_true, Floats of_free, double temper, double *if_true,
                  double *if_free) {
    int64_t a = p->first.at[d], n = p->first.at[d + 1] - a;
    const double *spread = p->spread.at + a, *prior = p->prior.at + a;
    const int8_t *said = p->response.at + p->response_start.at[d];
    for (int64_t c = 0; c < n; c++) if_true[c] = if_free[c] = 0.0;
    for (int64_t pair = p->pair_start.at[d]; pair < p->pair_start.at[d + 1]; pair++, said += n) {
        double weight = p->weight.at[pair];
        const double *with_true = of_true.at + p->who.at[pair] * of_true.m;
        const double *with_free = of_free.at + p->who.at[pair] * of_free.m;
        for (int64_t c = 0; c < n; c++) {
            if (said[c] == UNSEEN) continue;
            double score = with_true[said[c]];
            if (said[c] == SHIFTED || said[c] == SPLIT || said[c] == OTHER_TYPE_SHIFTED) score -= spread[c];
            if_true[c] += weight * score;
            if_free[c] += weight * with_free[said[c] == EXACT];
        }
    }
    for (int64_t c = 0; c < n; c++) {
        if_true[c] = temper * if_true[c] + prior[c];
        if_free[c] *= temper;
    }
}

/* The cluster that begins with candidate i of the document of candidates a to b, weighed by `weigh`. */
static Cluster cluster_from(const Problem *p, int64_t i, int64_t a, int64_t b, const double *if_true,
                            const double *if_free) {
    int64_t j = i + 1;
    while (j < b && p->cluster.at[j] == p->cluster.at[i]) j++;
    return (Cluster){.n = j - i,
                     .apart = p->apart,
                     .start = p->start.at + i,
                     .end = p->end.at + i,
                     .kind = p->kind.at + i,
                     .by_start = p->by_start.at + i,
                     .if_true = if_true + (i - a),
                     .if_free = if_free + (i - a)};
}

/* A set of a cluster's candidates that do not overlap weighs the product of its own if_true and of if_free of every
 * candidate that overlaps none of it. So two true candidates that follow each other weigh, besides themselves, what is
 * free in the gap between them. Candidate −1 stands for the left end, n for the right one; tokens before `bound`, where
 * candidate i ends, are taken. */
static int64_t bound_of(const Cluster *here, int64_t i) { return i >= 0 ? here->end[i] : LEFT; }

/* The first place of by_start with a candidate that begins behind the bound. */
static int64_t first_place(const Cluster *here, int64_t bound) {
    int64_t low = 0, high = here->n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (here->start[here->by_start[middle]] < bound)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Whether j, which begins behind i, is closer to it than spans of one type may be. */
static bool too_close(const Cluster *here, int64_t i, int64_t j) {
    return here->apart > 0 && i >= 0 && here->kind[i] == here->kind[j] && here->start[j] < here->end[i] + here->apart;
}

/* The gap grows by what is free from candidate *c on and ends by `until`; *c becomes the first that does not. */
static double widened(double gap, const Cluster *here, int64_t bound, int64_t until, int64_t *c) {
    for (; *c < here->n && here->end[*c] <= until; ++*c)
        if (here->start[*c] >= bound) gap += here->if_free[*c];
    return gap;
}

/* Adds to those of the candidates from `low` to `high` that begin behind the bound. */
static void add_behind(const Cluster *here, int64_t bound, int64_t low, int64_t high, double amount, double *to) {
    for (int64_t c = low; c < high; c++)
        if (here->start[c] >= bound) to[c] += amount;
}

/* Whether all that may follow candidate i is as for the next one. */
static bool ends_as_next(const Cluster *here, int64_t i) {
    if (i + 1 == here->n || here->end[i] != here->end[i + 1]) return false;
    return here->apart == 0 || here->kind[i] == here->kind[i + 1];
}

/* ln of the weight of all that may follow true candidate i, from `after` of those; `values` is room for n + 1. */
static double log_weight_after(const Cluster *here, int64_t i, const double *after, double *values) {
    int64_t bound = bound_of(here, i), c = most_of(i, 0), count = 0;
    double gap = 0.0;
    for (int64_t place = first_place(here, bound); place < here->n; place++) {
        int64_t j = here->by_start[place];
        if (too_close(here, i, j)) continue;
        gap = widened(gap, here, bound, here->start[j], &c);
        values[count++] = gap + here->if_true[j] + after[j];
    }
    values[count++] = widened(gap, here, bound, RIGHT, &c);
    return log_sum(values, count);
}

/* Adds to is_true the probability that i is true and each the next true one, and to is_free that i is true and each is
 * free in the gap that follows it. `until` is ln of the weight of all up to i, and with it true. */
static void share_out(const Cluster *here, int64_t i, double until, const double *after, double log_z, double *is_true,
                      double *is_free) {
    int64_t bound = bound_of(here, i), from = most_of(i, 0), c = from;
    double gap = 0.0, reached = 0.0;
    for (int64_t place = first_place(here, bound); place < here->n; place++) {
        int64_t j = here->by_start[place], passed = c;
        if (too_close(here, i, j)) continue;
        gap = widened(gap, here, bound, here->start[j], &c);
        add_behind(here, bound, passed, c, -reached, is_free); /* the next true one begins before these end */
        double chance = exp(until + gap + here->if_true[j] + after[j] - log_z);
        is_true[j] += chance;
        reached += chance;
    }
    int64_t passed = c;
    gap = widened(gap, here, bound, RIGHT, &c);
    add_behind(here, bound, passed, c, -reached, is_free);
    add_behind(here, bound, from, here->n, reached + exp(until + gap - log_z), is_free);
}

/* Sums over the sets of a cluster; returns ln Z. is_true and is_free become the probabilities. `after` and `values` are
 * room for n and for n + 1 numbers: after[i] is ln of the weight of all that may follow true candidate i. */
static double sum_over_cluster(const Cluster *here, double *after, double *values, double *is_true, double *is_free) {
    int64_t n = here->n;
    if (n == 1) {
        double true_ = here->if_true[0], free_ = here->if_free[0], top = true_ > free_ ? true_ : free_;
        double log_z = top + log(exp(true_ - top) + exp(free_ - top));
        is_true[0] = exp(true_ - log_z);
        is_free[0] = exp(free_ - log_z);
        return log_z;
    }
    for (int64_t i = n - 1; i >= 0; i--)
        after[i] = ends_as_next(here, i) ? after[i + 1] : log_weight_after(here, i, after, values);
    double log_z = log_weight_after(here, -1, after, values);
    for (int64_t c = 0; c < n; c++) is_true[c] = is_free[c] = 0.0;
    share_out(here, -1, 0.0, after, log_z, is_true, is_free);
    for (int64_t i = 0; i < n; i++)
        if (is_true[i] > 0.0) share_out(here, i, log(is_true[i]) + log_z - after[i], after, log_z, is_true, is_free);
    for (int64_t c = 0; c < n; c++) {
        is_true[c] = fmin(is_true[c], 1.0);
        is_free[c] = fmin(fmax(is_free[c], 0.0), 1.0);
    }
    return log_z;
}

/* Adds to counted [K, N_RESPONSES] and marked [K, 2] what everybody did with document d's candidates. */
static void count_responses(const Problem *p, int64_t d, double temper, const double *is_true, const double *is_free,
                            double *counted, double *marked) {
    int64_t a = p->first.at[d], n = p->first.at[d + 1] - a;
    const int8_t *said = p->response.at + p->response_start.at[d];
    for (int64_t pair = p->pair_start.at[d]; pair < p->pair_start.at[d + 1]; pair++, said += n) {
        double weight = temper * p->weight.at[pair];
        double *with_true = counted + p->who.at[pair] * N_RESPONSES, *with_free = marked + p->who.at[pair] * 2;
        for (int64_t c = 0; c < n; c++) {
            if (said[c] == UNSEEN) continue;
            with_true[said[c]] += weight * is_true[a + c];
            with_free[said[c] == EXACT] += weight * is_free[c];
        }
    }
}

/* One pass over the documents `low` to `high`; returns Σ ln Z.
 *
 * of_true [K, N_RESPONSES] and of_free [K, 2] (not marked, marked) are log probabilities of what annotators do with a
 * true span, and with one that overlaps nothing true. Weights are raised to `sharpness`. is_true [C] and log_zs [D] are
 * filled in; counted [K, N_RESPONSES] and marked [K, 2] are added to. */
KERNEL double sum_over_sets(const Problem *p, Floats of_true, Floats of_free, double temper, double sharpness,
                            int64_t low, int64_t high, Floats is_true, Floats log_zs, Floats counted, Floats marked) {
    int64_t most = most_candidates(p->first, low, high);
    Room room = {0};
    double *if_true = doubles(&room, most), *if_free = doubles(&room, most), *is_free = doubles(&room, most);
    double *after = doubles(&room, most), *values = doubles(&room, most + 1), total = 0.0;
    if (room.short_of_memory) return leave(&room);
    for (int64_t d = low; d < high; d++) {
        int64_t a = p->first.at[d], b = p->first.at[d + 1];
        log_zs.at[d] = 0.0;
        if (a == b) continue;
        weigh(p, d, of_true, of_free, temper, if_true, if_free);
        for (int64_t c = 0; c < b - a; c++) {
            if_true[c] *= sharpness;
            if_free[c] *= sharpness;
        }
        Cluster here;
        for (int64_t i = a; i < b; i += here.n) {
            here = cluster_from(p, i, a, b, if_true, if_free);
            log_zs.at[d] += sum_over_cluster(&here, after, values, is_true.at + i, is_free + (i - a));
        }
        total += log_zs.at[d];
        count_responses(p, d, temper, is_true.at, is_free, counted.at, marked.at);
    }
    leave(&room);
    return total;
}

/* The true candidate that best follows i (n: none); *weight becomes ln of what it and the best after it weigh. */
static int64_t best_after(const Cluster *here, int64_t i, const double *after, double *weight) {
    int64_t bound = bound_of(here, i), c = most_of(i, 0), next = here->n;
    double gap = 0.0, best = -INFINITY;
    for (int64_t place = first_place(here, bound); place < here->n; place++) {
        int64_t j = here->by_start[place];
        if (too_close(here, i, j)) continue;
        gap = widened(gap, here, bound, here->start[j], &c);
        double sum = gap + here->if_true[j] + after[j];
        if (sum > best) {
            best = sum;
            next = j;
        }
    }
    gap = widened(gap, here, bound, RIGHT, &c);
    *weight = gap >= best ? gap : best;
    return gap >= best ? here->n : next;
}

/* Of every document the set of candidates with the highest weight: as the sums, with the largest in their place. */
KERNEL void likeliest_set(const Problem *p, Floats of_true, Floats of_free, double temper, Bools chosen) {
    int64_t D = p->first.n - 1, most = most_candidates(p->first, 0, D);
    Room room = {0};
    double *if_true = doubles(&room, most), *if_free = doubles(&room, most), *after = doubles(&room, most);
    int64_t *next_true = unfilled(&room, most, sizeof(int64_t));
    if (room.short_of_memory) {
        leave(&room);
        return;
    }
    for (int64_t d = 0; d < D; d++) {
        int64_t a = p->first.at[d], b = p->first.at[d + 1];
        weigh(p, d, of_true, of_free, temper, if_true, if_free);
        Cluster here;
        for (int64_t i = a; i < b; i += here.n) {
            here = cluster_from(p, i, a, b, if_true, if_free);
            bool *members = chosen.at + i;
            double of_all;
            for (int64_t c = here.n - 1; c >= 0; c--) next_true[c] = best_after(&here, c, after, after + c);
            for (int64_t c = 0; c < here.n; c++) members[c] = false;
            for (int64_t c = best_after(&here, -1, after, &of_all); c < here.n; c = next_true[c]) members[c] = true;
        }
    }
    leave(&room);
}

/* Whether candidate c overlaps one of the chosen ones from `low` to `high`. */
static bool overlaps_chosen(const Problem *p, int64_t c, int64_t low, int64_t high, const bool *chosen) {
    for (int64_t other = low; other < high; other++)
        if (chosen[other] && p->start.at[other] < p->end.at[c] && p->start.at[c] < p->end.at[other]) return true;
    return false;
}

/* out [D]: ln of the weight of the chosen set of every document (less ln Z: of its probability). */
KERNEL void log_weight_of_set(const Problem *p, Floats of_true, Floats of_free, double temper, double sharpness,
                              Bools chosen, Floats out) {
    int64_t most = most_candidates(p->first, 0, out.n);
    Room room = {0};
    double *if_true = doubles(&room, most), *if_free = doubles(&room, most);
    if (room.short_of_memory) {
        leave(&room);
        return;
    }
    for (int64_t d = 0; d < out.n; d++) {
        int64_t a = p->first.at[d], b = p->first.at[d + 1];
        out.at[d] = 0.0;
        weigh(p, d, of_true, of_free, temper, if_true, if_free);
        for (int64_t i = a, n; i < b; i += n) {
            n = cluster_from(p, i, a, b, if_true, if_free).n;
            for (int64_t c = i; c < i + n; c++) {
                if (chosen.at[c])
                    out.at[d] += sharpness * if_true[c - a];
                else if (!overlaps_chosen(p, c, i, i + n, chosen.at))
                    out.at[d] += sharpness * if_free[c - a];
            }
        }
    }
    leave(&room);
}

/* A set of candidates: what it is worth, how many they are, and the last of them (−1: none); or, of one that ends with
 * a candidate, the one before that. */
typedef struct {
    double worth;
    int64_t many, last;
} Choice;

/* Of sets that are worth the same, the one with fewer spans. */
static bool better(const Choice *one, const Choice *other) {
    return one->worth > other->worth || (one->worth == other->worth && one->many < other->many);
}

/* Of every document the set of candidates that do not overlap with the highest sum of `gain`, if above 0.
 *
 * Weighted interval scheduling over candidates sorted by end; of sets with the same sum, the one with fewer spans. */
KERNEL void best_set(Ints start, Ints end, Ints kind, Ints first, int64_t apart, Floats gain, Bools chosen) {
    int64_t most = most_candidates(first, 0, first.n - 1);
    Room room = {0};
    /* Of the first j candidates; and with candidate j as the last. */
    Choice *best = unfilled(&room, most + 1, sizeof(Choice)), *ending = unfilled(&room, most, sizeof(Choice));
    if (room.short_of_memory) {
        leave(&room);
        return;
    }
    best[0] = (Choice){0.0, 0, -1};
    for (int64_t d = 0; d + 1 < first.n; d++) {
        int64_t a = first.at[d], n = first.at[d + 1] - a;
        for (int64_t j = 0; j < n; j++) {
            chosen.at[a + j] = false;
            best[j + 1] = best[j];
            if (!(gain.at[a + j] > 0.0)) continue;
            int64_t fits = j;
            while (fits > 0 && end.at[a + fits - 1] > start.at[a + j]) fits--;
            int64_t touching = fits;
            while (fits > 0 && end.at[a + fits - 1] + apart > start.at[a + j]) fits--;
            ending[j] = best[fits];
            for (int64_t i = fits; i < touching; i++) { /* closer than spans of one type may be */
                if (kind.at[a + i] == kind.at[a + j] || !(gain.at[a + i] > 0.0)) continue;
                if (better(&ending[i], &ending[j])) ending[j] = (Choice){ending[i].worth, ending[i].many, i};
            }
            ending[j].worth += gain.at[a + j];
            ending[j].many++;
            if (better(&ending[j], &best[j])) best[j + 1] = (Choice){ending[j].worth, ending[j].many, j};
        }
        for (int64_t j = best[n].last; j >= 0; j = ending[j].last) chosen.at[a + j] = true;
    }
    leave(&room);
}
