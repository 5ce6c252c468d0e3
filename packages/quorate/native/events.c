/* Some of the events of a corpus, which lie in the order of their tokens, and sums over them. */
#include "pairs.h"

/* Fills the number of every event's pair. */
KERNEL void fill_pairs(const PairedEvents *events, Ints32 number) {
    Room room = {0};
    int64_t *pair_of = pairs_by_annotator(events, &room);
    for (int64_t d = 0; d + 1 < events->doc_start.n && pair_of; d++) {
        int64_t end = events->event_start.at[events->doc_start.at[d + 1]];
        look_at(events, d, pair_of);
        for (int64_t e = events->event_start.at[events->doc_start.at[d]]; e < end; e++)
            number.at[e] = (int32_t)pair_of[events->annotator.at[events->event_cell.at[e]]];
    }
    leave(&room);
}

/* Fills the weight of every event, times that of its pair. */
KERNEL void weigh_pairs(const PairedEvents *events, Floats of_pair, Floats weight) {
    Room room = {0};
    int64_t *pair_of = pairs_by_annotator(events, &room);
    for (int64_t d = 0; d + 1 < events->doc_start.n && pair_of; d++) {
        int64_t end = events->event_start.at[events->doc_start.at[d + 1]];
        look_at(events, d, pair_of);
        for (int64_t e = events->event_start.at[events->doc_start.at[d]]; e < end; e++)
            weight.at[e] = (events->weight.n ? events->weight.at[e] : 1.0) *
                           of_pair.at[pair_of[events->annotator.at[events->event_cell.at[e]]]];
    }
    leave(&room);
}

/* Leaves out the events of some pairs: see `keep_events`. */
KERNEL int64_t keep_pairs(const PairedEvents *events, Bools gone, Ints start, Ints32 cell, Floats kept_weight) {
    Room room = {0};
    int64_t *pair_of = pairs_by_annotator(events, &room), n = 0;
    for (int64_t d = 0; d + 1 < events->doc_start.n && pair_of; d++) {
        look_at(events, d, pair_of);
        for (int64_t t = events->doc_start.at[d]; t < events->doc_start.at[d + 1]; t++) {
            start.at[t] = n;
            for (int64_t e = events->event_start.at[t]; e < events->event_start.at[t + 1]; e++) {
                if (gone.at[pair_of[events->annotator.at[events->event_cell.at[e]]]]) continue;
                cell.at[n] = events->event_cell.at[e];
                if (events->weight.n) kept_weight.at[n] = events->weight.at[e];
                n++;
            }
        }
    }
    start.at[start.n - 1] = n;
    leave(&room);
    return n;
}

/* Fills token and cell of what some pairs events for sure, while there is room; returns how many events that are. */
KERNEL int64_t find_pairs(const PairedEvents *events, Bools wanted, Ints token, Ints32 cell) {
    Room room = {0};
    int64_t *pair_of = pairs_by_annotator(events, &room), n = 0;
    for (int64_t d = 0; d + 1 < events->doc_start.n && pair_of; d++) {
        bool any = false;
        for (int64_t p = events->first_pair.at[d]; p < events->first_pair.at[d + 1]; p++) any |= wanted.at[p];
        if (!any) continue;
        look_at(events, d, pair_of);
        for (int64_t t = events->doc_start.at[d]; t < events->doc_start.at[d + 1]; t++)
            for (int64_t e = events->event_start.at[t]; e < events->event_start.at[t + 1]; e++) {
                if (!wanted.at[pair_of[events->annotator.at[events->event_cell.at[e]]]] || !is_sure(events->weight, e)) continue;
                if (n < token.n) {
                    token.at[n] = t;
                    cell.at[n] = events->event_cell.at[e];
                }
                n++;
            }
    }
    leave(&room);
    return n;
}

/* Leaves out events: fills where those of each token begin and all end, their cells, and their weights if there are any;
 * returns how many stay. */
KERNEL int64_t keep_events(Ints event_start, Ints32 event_cell, Floats weight, Bools gone, Ints start, Ints32 cell,
                           Floats kept_weight) {
    int64_t n = 0;
    for (int64_t t = 0; t + 1 < event_start.n; t++) {
        start.at[t] = n;
        for (int64_t e = event_start.at[t]; e < event_start.at[t + 1]; e++) {
            cell.at[n] = event_cell.at[e];
            if (weight.n) kept_weight.at[n] = weight.at[e];
            n += !gone.at[e];
        }
    }
    start.at[start.n - 1] = n;
    return n;
}

/* Fills token and cell of the events of some cells, while there is room; returns how many there are. */
KERNEL int64_t find_events(Ints event_start, Ints32 event_cell, Bools wanted, Ints token, Ints32 cell) {
    int64_t n = 0;
    for (int64_t t = 0; t + 1 < event_start.n; t++)
        for (int64_t e = event_start.at[t]; e < event_start.at[t + 1]; e++) {
            if (!wanted.at[event_cell.at[e]]) continue;
            if (n < token.n) {
                token.at[n] = t;
                cell.at[n] = event_cell.at[e];
            }
            n++;
        }
    return n;
}

/* Adds to `there` [K, T] at how many tokens two others gave a type, for everyone who events something of them, and to
 * `marked` [K, T] at how many of those they gave it too. `kind` and `annotator` are of cells; a kind below 0 is no type.
 * What somebody gave a weight of a half or less was not events. */
KERNEL void add_alike(Ints event_start, Ints32 event_cell, Floats weight, Ints annotator, Ints kind, Floats there,
                      Floats marked) {
    int64_t T = there.m;
    Room room = {0};
    int64_t *votes = zeros(&room, T, sizeof(int64_t));
    if (room.short_of_memory) {
        leave(&room);
        return;
    }
    for (int64_t t = 0; t + 1 < event_start.n; t++) {
        int64_t begin = event_start.at[t], end = event_start.at[t + 1], most = 0;
        for (int64_t e = begin; e < end; e++) {
            int64_t type = kind.at[event_cell.at[e]];
            if (type >= 0 && is_sure(weight, e)) most = most_of(most, ++votes[type]);
        }
        if (most >= 2)
            for (int64_t e = begin; e < end; e++) {
                if (!is_sure(weight, e)) continue;
                int64_t own = kind.at[event_cell.at[e]], who = annotator.at[event_cell.at[e]];
                for (int64_t type = 0; type < T; type++) {
                    if (votes[type] - (own == type) < 2) continue;
                    there.at[who * T + type] += 1.0;
                    marked.at[who * T + type] += own == type;
                }
            }
        if (most)
            for (int64_t type = 0; type < T; type++) votes[type] = 0;
    }
    leave(&room);
}
