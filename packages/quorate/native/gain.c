/* How many nats an annotator's labels of a document are expected to tell about its tokens. */
#include <math.h>
#include <string.h>

#include "arrays.h"
#include "room.h"

/* An own previous label less likely than this is left out. */
#define LEAST 1e-4

/* Adds, for every pair of document and annotator, the mutual information of label and truth of all tokens to `out`. */
KERNEL void add_information(Floats posterior, Ints doc_start, Floats matrices, Floats noise, int64_t before, Ints doc,
                            Ints who, Floats out) {
    int64_t J = posterior.m, P = noise.m / J;
    Room room = {0};
    double *own = doubles(&room, P), *following = doubles(&room, P), *said = doubles(&room, J);
    if (room.short_of_memory) {
        leave(&room);
        return;
    }
    for (int64_t u = 0; u < doc.n; u++) {
        for (int64_t p = 0; p < P; p++) own[p] = 0.0;
        own[P > 1 ? before : 0] = 1.0;
        for (int64_t t = doc_start.at[doc.at[u]]; t < doc_start.at[doc.at[u] + 1]; t++) {
            const double *truth = posterior.at + t * J;
            for (int64_t p = 0; p < P; p++) following[p] = 0.0;
            for (int64_t p = 0; p < P; p++) {
                if (own[p] < LEAST) continue;
                int64_t row = who.at[u] * P + p;
                double blur = 0.0, spread = 0.0;
                for (int64_t i = 0; i < J; i++) said[i] = 0.0;
                for (int64_t j = 0; j < J; j++) {
                    double r = truth[j];
                    if (!(r > 0.0)) continue;
                    const double *says = matrices.at + (row * J + j) * J;
                    blur += r * noise.at[row * J + j];
                    for (int64_t i = 0; i < J; i++) said[i] += r * says[i];
                }
                for (int64_t i = 0; i < J; i++) {
                    if (said[i] > 0.0) spread -= said[i] * log(said[i]);
                    if (P > 1) following[i] += own[p] * said[i];
                }
                out.at[u] += own[p] * (spread < blur ? 0.0 : spread - blur);
            }
            if (P > 1) memcpy(own, following, (size_t)P * sizeof(double));
        }
    }
    leave(&room);
}
