/* The distinct tokens: those of which the same was said, by the same people. */
#include <string.h>

#include "arrays.h"
#include "hash.h"
#include "room.h"

/* Whether two tokens have the same events, and the same known label or none. */
static bool alike(Ints event_start, Ints32 event_cell, Ints32 known, int64_t a, int64_t b) {
    if (known.n && known.at[a] != known.at[b]) return false;
    int64_t first = event_start.at[a], second = event_start.at[b];
    int64_t length = event_start.at[a + 1] - first;
    if (event_start.at[b + 1] - second != length) return false;
    return memcmp(event_cell.at + first, event_cell.at + second, (size_t)length * sizeof(int32_t)) == 0;
}

/* Fills the first token of each kind, in their order, and adds how many there are of each; returns how many kinds. */
KERNEL int64_t find_distinct(Ints event_start, Ints32 event_cell, Ints32 known, Ints first, Ints times) {
    int64_t N = event_start.n - 1, size = table_size(N), kinds = 0;
    Room room = {0};
    int64_t *table = unfilled(&room, size, sizeof(int64_t));
    if (room.short_of_memory) return leave(&room);
    for (int64_t place = 0; place < size; place++) table[place] = -1;
    for (int64_t t = 0; t < N; t++) {
        uint64_t code = known.n ? (uint64_t)((int64_t)known.at[t] + 1) : 0;
        for (int64_t e = event_start.at[t]; e < event_start.at[t + 1]; e++)
            code = mixed(code, (uint64_t)((int64_t)event_cell.at[e] + 1));
        int64_t place = (int64_t)(code & (uint64_t)(size - 1));
        while (table[place] >= 0 && !alike(event_start, event_cell, known, first.at[table[place]], t))
            place = (place + 1) & (size - 1);
        if (table[place] < 0) {
            table[place] = kinds;
            first.at[kinds++] = t;
        }
        times.at[table[place]]++;
    }
    leave(&room);
    return kinds;
}
