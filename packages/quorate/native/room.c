#include "room.h"

#include <stdlib.h>

#include "arrays.h"

static _Thread_local bool memory_ran_out = false;

/* Whether a kernel of this thread went without memory since this was last asked. */
KERNEL bool ran_out_of_memory(void) {
    bool answer = memory_ran_out;
    memory_ran_out = false;
    return answer;
}

static void *kept(Room *room, void *block) {
    if (block == NULL || room->used == MOST_BLOCKS) {
        free(block);
        room->short_of_memory = true;
        return NULL;
    }
    room->blocks[room->used++] = block;
    return block;
}

/* Whether so much can be counted at all, where sizes have 32 bits. */
static bool countable(int64_t n, size_t size) { return n <= 0 || (uint64_t)n <= SIZE_MAX / size; }

void *zeros(Room *room, int64_t n, size_t size) {
    return kept(room, countable(n, size) ? calloc((size_t)(n > 0 ? n : 1), size) : NULL);
}

void *unfilled(Room *room, int64_t n, size_t size) {
    return kept(room, countable(n, size) ? malloc((size_t)(n > 0 ? n : 1) * size) : NULL);
}

double *doubles(Room *room, int64_t n) { return unfilled(room, n, sizeof(double)); }

double *filled(Room *room, int64_t n, double value) {
    double *block = doubles(room, n);
    if (block != NULL)
        for (int64_t i = 0; i < n; i++) block[i] = value;
    return block;
}

int leave(Room *room) {
    for (int i = 0; i < room->used; i++) free(room->blocks[i]);
    memory_ran_out |= room->short_of_memory;
    room->used = 0;
    return 0;
}
