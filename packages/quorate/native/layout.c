#include "layout.h"

#include <string.h>

#include "hash.h"
#include "room.h"

/* Whether two runs of events are alike. */
static bool alike(Ints32 event_cell, Floats event_weight, int64_t one, int64_t other, int64_t length) {
    if (memcmp(event_cell.at + one, event_cell.at + other, (size_t)length * sizeof(int32_t)) != 0) return false;
    if (event_weight.n)
        for (int64_t e = 0; e < length; e++)
            if (event_weight.at[one + e] != event_weight.at[other + e]) return false;
    return true;
}

/* Fills each token's set, and the first token of each set, in their order; returns how many sets. */
KERNEL int64_t find_sets(Ints event_start, Ints32 event_cell, Floats event_weight, Ints32 token_set, Ints first_token) {
    int64_t size = table_size(token_set.n);
    int32_t n_sets = 0;
    Room room = {0};
    int32_t *table = unfilled(&room, size, sizeof(int32_t));
    if (room.short_of_memory) return leave(&room);
    for (int64_t slot = 0; slot < size; slot++) table[slot] = -1;
    for (int64_t t = 0; t < token_set.n; t++) {
        int64_t begin = event_start.at[t], length = event_start.at[t + 1] - begin;
        uint64_t key = (uint64_t)length;
        for (int64_t e = begin; e < begin + length; e++) key = mixed(key, (uint64_t)(int64_t)event_cell.at[e]);
        int64_t slot = (int64_t)(key & (uint64_t)(size - 1));
        for (; table[slot] >= 0; slot = (slot + 1) & (size - 1)) {
            int64_t first = first_token.at[table[slot]], start = event_start.at[first];
            if (event_start.at[first + 1] - start == length && alike(event_cell, event_weight, start, begin, length))
                break;
        }
        if (table[slot] < 0) {
            table[slot] = n_sets;
            first_token.at[n_sets++] = t;
        }
        token_set.at[t] = table[slot];
    }
    leave(&room);
    return n_sets;
}

/* Fills short numbers in the order of the first time, and what each stands for; returns how many. `size` is more than
 * the greatest of the numbers. */
KERNEL int64_t number_anew(Ints32 numbers, int64_t size, Ints32 short_numbers, Ints32 met) {
    int32_t n = 0;
    Room room = {0};
    int32_t *number_of = unfilled(&room, size, sizeof(int32_t));
    if (room.short_of_memory) return leave(&room);
    for (int64_t number = 0; number < size; number++) number_of[number] = -1;
    for (int64_t place = 0; place < numbers.n; place++) {
        int32_t number = numbers.at[place];
        if (number_of[number] < 0) {
            number_of[number] = n;
            met.at[n++] = number;
        }
        short_numbers.at[place] = number_of[number];
    }
    leave(&room);
    return n;
}
