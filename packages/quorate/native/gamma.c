/* ψ, ln Γ and how it bends, by their asymptotic series: see `infer/kernels/special.py`, which has the same in NumPy. */
#include "arrays.h"
#include "vectors.h"

#define HALF_LOG_2_PI 0.91893853320467274178

static const double PSI_SERIES[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12};
static const double GAMMALN_SERIES[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                        1.0 / 1188, -691.0 / 360360, 1.0 / 156};

/* q(q + 6)(q + 10)(q + 12). */
static quad product(quad q) {
    return fused(fused(fused(q + spread(28.0), q, spread(252.0)), q, spread(720.0)), q, spread(0.0));
}

/* The derivative of that by x, where q = x² + 7x. */
static quad slope(quad x, quad q) {
    quad cubic = fused(fused(spread(4.0), q, spread(84.0)), q, spread(504.0));
    return fused(cubic, q, spread(720.0)) * fused(spread(2.0), x, spread(7.0));
}

static quad series_in(quad square, const double *coefficients) {
    quad series = spread(coefficients[6]);
    for (int n = 5; n >= 0; n--) series = fused(series, square, spread(coefficients[n]));
    return series;
}

/* ln w − ψ(w) by its series in 1/w. */
static quad below_log(quad inverse) {
    return fused(series_in(inverse * inverse, PSI_SERIES), inverse, spread(0.5)) * inverse;
}

/* ln Γ(w) − (w − ½)·ln w + w − ½·ln 2π by its series in 1/w. */
static quad beyond_stirling(quad inverse) { return series_in(inverse * inverse, GAMMALN_SERIES) * inverse; }

static quad psi(quad x) {
    quad q = (x + spread(7.0)) * x, moved = x + spread(8.0);
    quad result = log_of(moved) - below_log(spread(1.0) / moved) - slope(x, q) / product(q);
    return where_above(x, spread(0.0), result, spread(-INFINITY));
}

static quad log_gamma(quad x) {
    quad q = (x + spread(7.0)) * x, moved = x + spread(8.0);
    quad rest = beyond_stirling(spread(1.0) / moved) + (spread(HALF_LOG_2_PI) - moved);
    quad whole = fused(log_of(moved), moved - spread(0.5), rest);
    return where_above(x, spread(0.0), whole - log_of(product(q)), spread(INFINITY));
}

static quad bend(quad x, quad step) {
    quad one = spread(1.0), zero = spread(0.0);
    quad far = x + step, y = x + spread(8.0), z = far + spread(8.0);
    quad at_y = one / y, at_z = one / z;
    quad share = step * at_y, whole = one + share;
    quad ahead = log_of(whole) + (share - (whole - one)) / whole; /* log1p */
    quad bent = fused(y, share - ahead, spread(0.5) * ahead) - step * below_log(at_z);
    bent = bent + (beyond_stirling(at_y) - beyond_stirling(at_z));
    quad q = (far + spread(7.0)) * far, at_far = product(q);
    bent = bent + (log_of(at_far / product((x + spread(7.0)) * x)) - step * slope(far, q) / at_far);
    return where_above(x, zero, bent, where_above(step, zero, spread(INFINITY), zero));
}

/* Groups of four; the last overlaps the one before, so that it is full. Fewer than four numbers are left as they are,
 * and `out` must not be `x`. */
#define FOR_QUADS(place, n) \
    for (int64_t group = 0, place; (n) >= WIDTH && group < (n) && (place = least_of(group, (n) - WIDTH), true); \
         group += WIDTH)

KERNEL void fill_psi(Floats x, Floats out) {
    FOR_QUADS(place, x.n) store(out.at + place, psi(load(x.at + place)));
}

KERNEL void fill_gammaln(Floats x, Floats out) {
    FOR_QUADS(place, x.n) store(out.at + place, log_gamma(load(x.at + place)));
}

KERNEL void fill_bend(Floats x, Floats step, Floats out) {
    FOR_QUADS(place, x.n) store(out.at + place, bend(load(x.at + place), load(step.at + place)));
}

KERNEL void fill_exp(Floats x, Floats out) {
    FOR_QUADS(place, x.n) store(out.at + place, exp_of(load(x.at + place)));
}

KERNEL void fill_log(Floats x, Floats out) {
    FOR_QUADS(place, x.n) store(out.at + place, log_of(load(x.at + place)));
}
