/* What each annotator does with the spans of a consensus. */
#include "marks.h"
#include "room.h"

/* As the Python types of the same names, which say what is in them. */
typedef struct {
    Ints doc_start, event_start;
    Ints32 event_cell;
    Ints annotator, label;
    Bools in_span, continues;
    Ints type_of;
} Said;

typedef struct {
    Ints start, end, kind, first;
    Floats sure;
} SureSpans;

/* The rows of what is counted: the order of Python's `SpanHabits`. */
enum {
    IS_EXACT, IS_SHIFTED, IS_SPLIT, WRONG_TYPE, IS_MISSED, EARLY_START, LATE_START, EARLY_END, LATE_END, MARKS,
    INVENTED, THERE, N_HABITS
};
static const int HABIT_OF[] = {IS_EXACT, IS_SHIFTED, IS_SPLIT, WRONG_TYPE, WRONG_TYPE, IS_MISSED};

/* Room for one document: who labelled something in it, each with their tokens and labels, marks and runs. */
typedef struct {
    int64_t *slot, *who, *first, *token, *label, *from, *to, *kind, *run_from, *run_to;
    bool *covered;
} Desk;

/* Sorts what was said of a document by annotator; returns how many there are. Annotator number n of them, who[n], gave
 * labels from first[n] to first[n + 1]. `slot` has 0 for everybody, before and after. */
static int64_t sort_by_annotator(const Said *said, int64_t begin, int64_t end, Desk *desk) {
    const int64_t *event_start = said->event_start.at;
    int64_t people = 0, place = 0;
    for (int64_t e = event_start[begin]; e < event_start[end]; e++) {
        int64_t k = said->annotator.at[said->event_cell.at[e]];
        if (!desk->slot[k]) {
            desk->who[people] = k;
            desk->slot[k] = ++people;
            desk->first[people] = 0;
        }
        desk->first[desk->slot[k]]++;
    }
    for (int64_t n = 1; n <= people; n++) { /* to where each one's begin, which filling moves to where they end */
        int64_t count = desk->first[n];
        desk->first[n] = place;
        place += count;
    }
    for (int64_t t = begin; t < end; t++)
        for (int64_t e = event_start[t]; e < event_start[t + 1]; e++) {
            int64_t cell = said->event_cell.at[e], at = desk->first[desk->slot[said->annotator.at[cell]]]++;
            desk->token[at] = t;
            desk->label[at] = said->label.at[cell];
        }
    desk->first[0] = 0;
    for (int64_t n = 0; n < people; n++) desk->slot[desk->who[n]] = 0;
    return people;
}

/* The marks, and the runs of tokens that were seen, of what one annotator said, from `low` to `high`. */
static void find_marks(const Said *said, int64_t low, int64_t high, Desk *desk, Marks *marks, Marks *runs) {
    int64_t n_marks = 0, n_runs = 0, J = said->in_span.n;
    for (int64_t i = low; i < high; i++) {
        int64_t token = desk->token[i], label = desk->label[i];
        bool is_next = i > low && desk->token[i - 1] + 1 == token;
        if (is_next)
            desk->run_to[n_runs - 1] = token + 1;
        else {
            desk->run_from[n_runs] = token;
            desk->run_to[n_runs++] = token + 1;
        }
        if (!said->in_span.at[label]) continue;
        int64_t before = is_next ? desk->label[i - 1] : 0;
        if (is_next && said->in_span.at[before] && said->continues.at[before * J + label])
            desk->to[n_marks - 1] = token + 1;
        else {
            desk->from[n_marks] = token;
            desk->to[n_marks] = token + 1;
            desk->kind[n_marks++] = said->type_of.at[label];
        }
    }
    *marks = (Marks){0, n_marks, desk->from, desk->to, desk->kind};
    *runs = (Marks){0, n_runs, desk->run_from, desk->run_to, NULL};
}

/* Adds to habits [12·T, K] what everybody did with the spans of documents `low` to `high`, and to tokens [K] how long
 * the documents are of which they labelled something. */
KERNEL void add_habits(const Said *said, const SureSpans *truth, int64_t low, int64_t high, Floats habits,
                       Floats tokens) {
    int64_t T = habits.n / N_HABITS, K = habits.m, most = 0, longest = 0;
    const int64_t *doc_start = said->doc_start.at;
    for (int64_t d = low; d < high; d++) {
        most = most_of(most, said->event_start.at[doc_start[d + 1]] - said->event_start.at[doc_start[d]]);
        longest = most_of(longest, doc_start[d + 1] - doc_start[d]);
    }
    Room room = {0};
    Desk desk = {.slot = zeros(&room, K, sizeof(int64_t)), .covered = zeros(&room, longest, sizeof(bool))};
    int64_t **parts[] = {&desk.who, &desk.first, &desk.token, &desk.label, &desk.from,
                         &desk.to,  &desk.kind,  &desk.run_from, &desk.run_to};
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        *parts[i] = unfilled(&room, most + 1, sizeof(int64_t));
    if (room.short_of_memory) {
        leave(&room);
        return;
    }
    for (int64_t d = low; d < high; d++) {
        int64_t begin = doc_start[d], end = doc_start[d + 1];
        int64_t people = sort_by_annotator(said, begin, end, &desk);
        for (int64_t t = 0; t < end - begin; t++) desk.covered[t] = false;
        for (int64_t s = truth->first.at[d]; s < truth->first.at[d + 1]; s++)
            for (int64_t t = truth->start.at[s]; t < truth->end.at[s]; t++) desk.covered[t - begin] = true;
        for (int64_t n = 0; n < people; n++) {
            double *own = habits.at + desk.who[n];
            Marks marks, runs;
            find_marks(said, desk.first[n], desk.first[n + 1], &desk, &marks, &runs);
            tokens.at[desk.who[n]] += (double)(end - begin);
            for (int64_t s = truth->first.at[d]; s < truth->first.at[d + 1]; s++) {
                int64_t start = truth->start.at[s], stop = truth->end.at[s], kind = truth->kind.at[s];
                double sure = truth->sure.at[s];
                own[(THERE * T + kind) * K] += sure;
                if (!was_shown(start, stop, &runs)) continue;
                Response did = response_to(start, stop, kind, &marks);
                own[(HABIT_OF[did.kind] * T + kind) * K] += sure;
                if (did.kind != SHIFTED) continue;
                int64_t from = marks.from[did.mark], to = marks.to[did.mark];
                if (from != start) own[((from < start ? EARLY_START : LATE_START) * T + kind) * K] += sure;
                if (to != stop) own[((to < stop ? EARLY_END : LATE_END) * T + kind) * K] += sure;
            }
            for (int64_t m = 0; m < marks.high; m++) {
                bool touches = false;
                for (int64_t t = marks.from[m]; t < marks.to[m]; t++) touches |= desk.covered[t - begin];
                own[(MARKS * T + marks.kind[m]) * K] += 1.0;
                if (!touches) own[(INVENTED * T + marks.kind[m]) * K] += 1.0;
            }
        }
    }
    leave(&room);
}
