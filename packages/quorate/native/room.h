/* Room to work in, given back all at once when a kernel ends.
 *
 *     Room room = {0};
 *     double *alpha = doubles(&room, L * J);
 *     int32_t *back = (int32_t *)zeros(&room, L * J, sizeof(int32_t));
 *     if (room.short_of_memory) return leave(&room);
 *     …
 *     leave(&room);
 *
 * Where there is not enough memory, every call returns NULL, and `leave` tells: Python raises MemoryError when the
 * kernel returns, whatever it returned.
 */
#ifndef QUORATE_ROOM_H
#define QUORATE_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOST_BLOCKS 40

typedef struct {
    void *blocks[MOST_BLOCKS];
    int used;
    bool short_of_memory;
} Room;

/* n things of a size, all zero; not yet filled; n doubles, not yet filled; n doubles of one value. */
void *zeros(Room *room, int64_t n, size_t size);
void *unfilled(Room *room, int64_t n, size_t size);
double *doubles(Room *room, int64_t n);
double *filled(Room *room, int64_t n, double value);

/* Give all of it back; returns 0. */
int leave(Room *room);

#endif
