/* What annotators marked, beside the spans of a consensus and beside what others marked. */
#include "marks.h"
#include "room.h"

/* As the Python types of the same names, which say what is in them. */
typedef struct {
    Ints doc_start, event_start;
    Ints32 event_cell;
    Ints annotator, label;
    Bools in_span, continues;
    Ints type_of;
} LabelEvents;

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
    int64_t *slot, *who, *first, *token, *label, *from, *to, *kind, *run_from, *run_to, *mark_start;
} Desk;

static Desk desk_for(const LabelEvents *events, int64_t low, int64_t high, int64_t K, Room *room) {
    int64_t most = 0;
    for (int64_t d = low; d < high; d++) {
        int64_t begin = events->doc_start.at[d], end = events->doc_start.at[d + 1];
        most = most_of(most, events->event_start.at[end] - events->event_start.at[begin]);
    }
    Desk desk = {.slot = zeros(room, K, sizeof(int64_t))};
    int64_t **parts[] = {&desk.who, &desk.first, &desk.token,    &desk.label,  &desk.from,
                         &desk.to,  &desk.kind,  &desk.run_from, &desk.run_to, &desk.mark_start};
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        *parts[i] = unfilled(room, most + 1, sizeof(int64_t));
    return desk;
}

/* Sorts what was said of a document by annotator; returns how many there are. Annotator number n of them, who[n], gave
 * labels from first[n] to first[n + 1]. `slot` has 0 for everybody, before and after. */
static int64_t sort_by_annotator(const LabelEvents *events, int64_t begin, int64_t end, Desk *desk) {
    const int64_t *event_start = events->event_start.at;
    int64_t people = 0, place = 0;
    for (int64_t e = event_start[begin]; e < event_start[end]; e++) {
        int64_t k = events->annotator.at[events->event_cell.at[e]];
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
            int64_t cell = events->event_cell.at[e], at = desk->first[desk->slot[events->annotator.at[cell]]]++;
            desk->token[at] = t;
            desk->label[at] = events->label.at[cell];
        }
    desk->first[0] = 0;
    for (int64_t n = 0; n < people; n++) desk->slot[desk->who[n]] = 0;
    return people;
}

/* The marks of what one annotator said, from `low` to `high`: they are put from `place` on. With the runs of tokens that
 * they labelled, if `runs` is given. */
static Marks find_marks(const LabelEvents *events, int64_t low, int64_t high, int64_t place, Desk *desk, Marks *runs) {
    int64_t n_marks = place, n_runs = 0, J = events->in_span.n;
    for (int64_t i = low; i < high; i++) {
        int64_t token = desk->token[i], label = desk->label[i];
        bool is_next = i > low && desk->token[i - 1] + 1 == token;
        if (!is_next) desk->run_from[n_runs++] = token;
        desk->run_to[n_runs - 1] = token + 1;
        if (!events->in_span.at[label]) continue;
        int64_t before = is_next ? desk->label[i - 1] : 0;
        if (!is_next || !events->in_span.at[before] || !events->continues.at[before * J + label]) {
            desk->from[n_marks] = token;
            desk->kind[n_marks++] = events->type_of.at[label];
        }
        desk->to[n_marks - 1] = token + 1;
    }
    if (runs != NULL) *runs = (Marks){0, n_runs, desk->run_from, desk->run_to, NULL};
    return (Marks){place, n_marks, desk->from, desk->to, desk->kind};
}

/* Adds to habits [12·T, K] what everybody did with the spans of documents `low` to `high`, and to tokens [K] how long
 * the documents are of which they labelled something. */
KERNEL void add_habits(const LabelEvents *events, const SureSpans *truth, int64_t low, int64_t high, Floats habits,
                       Floats tokens) {
    int64_t T = habits.n / N_HABITS, K = habits.m;
    Room room = {0};
    Desk desk = desk_for(events, low, high, K, &room);
    if (room.short_of_memory) {
        leave(&room);
        return;
    }
    for (int64_t d = low; d < high; d++) {
        int64_t begin = events->doc_start.at[d], end = events->doc_start.at[d + 1];
        int64_t people = sort_by_annotator(events, begin, end, &desk);
        Marks there = {truth->first.at[d], truth->first.at[d + 1], truth->start.at, truth->end.at, truth->kind.at};
        for (int64_t n = 0; n < people; n++) {
            double *own = habits.at + desk.who[n];
            Marks runs, marks = find_marks(events, desk.first[n], desk.first[n + 1], 0, &desk, &runs);
            tokens.at[desk.who[n]] += (double)(end - begin);
            for (int64_t s = there.low; s < there.high; s++) {
                int64_t start = there.from[s], stop = there.to[s], kind = there.kind[s];
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
                own[(MARKS * T + marks.kind[m]) * K] += 1.0;
                if (!is_touched(marks.from[m], marks.to[m], &there)) own[(INVENTED * T + marks.kind[m]) * K] += 1.0;
            }
        }
    }
    leave(&room);
}

/* Adds to total [T, K] how many marks of others, by type, each annotator could have met in the documents `low` to
 * `high`, and to met how many of them one of their own touches; to own [3, K] how many marks are theirs, how long those
 * are together, and how long the documents. Those of one team [K] are not others to each other, and their marks count
 * as those of one. */
KERNEL void add_coverage(const LabelEvents *events, Ints team, int64_t low, int64_t high, Floats met, Floats total, Floats own) {
    int64_t K = total.m;
    Room room = {0};
    Desk desk = desk_for(events, low, high, K, &room);
    if (room.short_of_memory) {
        leave(&room);
        return;
    }
    for (int64_t d = low; d < high; d++) {
        int64_t begin = events->doc_start.at[d], end = events->doc_start.at[d + 1];
        int64_t people = sort_by_annotator(events, begin, end, &desk), *mark_start = desk.mark_start;
        mark_start[0] = 0;
        for (int64_t n = 0; n < people; n++) {
            double *mine = own.at + desk.who[n];
            Marks marks = find_marks(events, desk.first[n], desk.first[n + 1], mark_start[n], &desk, NULL);
            mark_start[n + 1] = marks.high;
            mine[0] += (double)(marks.high - marks.low);
            for (int64_t m = marks.low; m < marks.high; m++) mine[K] += (double)(marks.to[m] - marks.from[m]);
            mine[2 * K] += (double)(end - begin);
        }
        for (int64_t n = 0; n < people; n++) {
            int64_t own_team = team.at[desk.who[n]], members = 0;
            for (int64_t other = 0; other < people; other++) members += team.at[desk.who[other]] == own_team;
            double weight = 1.0 / (double)members;
            for (int64_t other = 0; other < people; other++) {
                if (team.at[desk.who[other]] == own_team) continue;
                Marks theirs = {mark_start[other], mark_start[other + 1], desk.from, desk.to, desk.kind};
                for (int64_t m = mark_start[n]; m < mark_start[n + 1]; m++) {
                    int64_t place = desk.kind[m] * K + desk.who[other];
                    total.at[place] += weight;
                    if (is_touched(desk.from[m], desk.to[m], &theirs)) met.at[place] += weight;
                }
            }
        }
    }
    leave(&room);
}
