/* What an annotator did with a span, told by their marks. */
#ifndef QUORATE_MARKS_H
#define QUORATE_MARKS_H

#include "arrays.h"

/* What an annotator did with a true span; UNSEEN: was not shown all of its tokens, which says nothing. */
enum { EXACT, SHIFTED, SPLIT, OTHER_TYPE, OTHER_TYPE_SHIFTED, MISSED, UNSEEN };
#define N_RESPONSES UNSEEN

/* Some marks, or runs of tokens, of one annotator in one document, from `low` to `high`. */
typedef struct {
    int64_t low, high;
    const int64_t *from, *to, *kind;
} Marks;

/* The first of some marks, which are sorted and do not overlap, that ends behind a place. */
static inline int64_t first_behind(int64_t place, const Marks *marks) {
    int64_t low = marks->low, high = marks->high;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (marks->to[middle] <= place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Whether one of the marks overlaps a span. */
static inline bool is_touched(int64_t start, int64_t end, const Marks *marks) {
    int64_t first = first_behind(start, marks);
    return first < marks->high && marks->from[first] < end;
}

static inline bool was_shown(int64_t start, int64_t end, const Marks *runs) {
    for (int64_t run = runs->low; run < runs->high; run++)
        if (runs->from[run] <= start && end <= runs->to[run]) return true;
    return false;
}

/* What somebody did with a span, and the mark that tells so; −1 if none does. */
typedef struct {
    int8_t kind;
    int64_t mark;
} Response;

/* What somebody who was shown all of a span did with it. */
static inline Response response_to(int64_t start, int64_t end, int64_t kind, const Marks *marks) {
    int64_t best = -1, shared = 0, pieces = 0;
    bool same = false;
    for (int64_t m = first_behind(start, marks); m < marks->high && marks->from[m] < end; m++) {
        int64_t common = least_of(marks->to[m], end) - most_of(marks->from[m], start);
        if (common <= 0) continue;
        bool alike = marks->kind[m] == kind;
        pieces += alike;
        if (best < 0 || (alike && !same) || (alike == same && common > shared)) {
            best = m;
            shared = common;
            same = alike;
        }
    }
    if (best < 0) return (Response){MISSED, best};
    bool bounds = marks->from[best] == start && marks->to[best] == end;
    if (same) return (Response){bounds ? EXACT : pieces > 1 ? SPLIT : SHIFTED, best};
    return (Response){bounds ? OTHER_TYPE : OTHER_TYPE_SHIFTED, best};
}

#endif
