/* symbols_expected.c - how long the codes of symbols.h are for a normal vector.
 *
 * Rounding at random takes x to level l with the probability of a tent around l, a sum of three of
 * E(x - c)+, which is known. Of natural the levels are powers of two, and the tents unlike on their
 * two sides.
 */
#include <math.h>

#include "compress/lossless/huffman.h"
#include "compress/lossless/runs.h"
#include "compress/lossless/symbols.h"

static const double root_2_pi = 2.50662827463100050242;

/* E(|z| - c)+ of a normal z. */
static double beyond(double c) {
    return 2 * exp(-c * c / 2) / root_2_pi - c * erfc(c / sqrt(2));
}

/* That of |z| * unit for level l, both signs. */
static double level_share(double unit, uint32_t l) {
    if (l == 0)
        return 1 - unit * (beyond(0) - beyond(1 / unit));
    const double share =
        unit * (beyond((l - 1) / unit) - 2 * beyond(l / unit) + beyond((l + 1) / unit));
    return fmax(share, 0);
}

/* That of |z| for the power of two with these bits of an exponent; where the density is even, the
 * tent's area. */
static double power_share(unsigned exponent) {
    const double power = ldexp(1, (int)exponent - 127);
    if (power < 1e-5)
        return 1.5 * power / root_2_pi;
    return fmax(0, (beyond(power / 2) - beyond(power)) / (power / 2) -
                       (beyond(power) - beyond(2 * power)) / power);
}

static double code_share(const part_numbers *n, double unit, uint32_t levels, unsigned code) {
    const unsigned level = code & ((1u << (n->width - 1)) - 1), sign = code >> (n->width - 1);
    if (n->codes == CODES_POWERS)
        return level > 0 && level < 255 ? power_share(level) / 2 : 0;
    if (n->codes == CODES_TERNARY)
        return code == 3 ? 0 : level_share(unit, code != 0) / (code != 0 ? 2 : 1);
    if (level == 0)
        return sign == 0 ? level_share(unit, 0) : 0;
    return level <= levels ? level_share(unit, level) / 2 : 0;
}

/* ---- huffman ---- */

enum { COUNTED = 1 << 30 };

/* Of one group's symbols, and their lengths. */
static double group_bits(const part_numbers *n, unsigned group, const double *share) {
    uint32_t counts[HUFFMAN_SYMBOLS];
    double shares[HUFFMAN_SYMBOLS], bits = 0;
    uint8_t lengths[HUFFMAN_SYMBOLS];
    const size_t symbols = sl_symbols_alphabet(n, group);
    for (size_t s = 0; s < symbols; s++) {
        shares[s] = 1;
        for (unsigned k = 0; k < group; k++)
            shares[s] *= share[s >> (k * n->width) & ((1u << n->width) - 1)];
        counts[s] = (uint32_t)(shares[s] * COUNTED);
    }
    sl_huffman_lengths(counts, symbols, lengths);
    for (size_t s = 0; s < symbols; s++)
        bits += shares[s] * lengths[s];
    return bits / group + sl_huffman_head_bits(lengths, symbols, 1) / (double)n->count;
}

static double huffman_bits(const part_numbers *n, double unit, uint32_t levels) {
    double share[HUFFMAN_SYMBOLS], of_levels[HUFFMAN_SYMBOLS];
    for (uint32_t l = 0; l <= levels && l < HUFFMAN_SYMBOLS; l++)
        of_levels[l] = level_share(unit, l);
    double least = sl_runs_bits(n, of_levels, levels);
    for (unsigned c = 0; c < 1u << n->width; c++)
        share[c] = code_share(n, unit, levels, c);
    for (unsigned group = 1; sl_symbols_alphabet(n, group) > 0; group++)
        least = fmin(least, group_bits(n, group, share));
    return least;
}

/* ---- elias ---- */

/* Of numbers with so many bits more than one. */
static double omega_bits(unsigned more) {
    return more == 0 ? 1 : more + 1 + omega_bits(31 - (unsigned)__builtin_clz(more));
}

static unsigned bits_more(uint32_t number) {
    return 31 - (unsigned)__builtin_clz(number);
}

static double elias_bits(const part_numbers *n, double unit, uint32_t levels) {
    const double filled = 1 - level_share(unit, 0);
    double bits = n->is_sparse ? filled : filled + level_share(unit, 0);
    for (uint32_t l = 1; l <= levels; l++)
        bits += level_share(unit, l) * omega_bits(bits_more(n->is_sparse ? l : l + 1));
    for (unsigned more = 0; n->is_sparse && more < 31; more++) /* gaps of 2^more to twice as many */
        bits += filled * omega_bits(more) *
                (exp((ldexp(1, (int)more) - 1) * log1p(-filled)) -
                 exp((ldexp(1, (int)more + 1) - 1) * log1p(-filled)));
    return bits;
}

double sl_symbols_bits(sl_entropy entropy, const part_numbers *n, double unit, uint32_t levels) {
    return fmin(n->width, entropy == SL_ENTROPY_HUFFMAN ? huffman_bits(n, unit, levels)
                                                        : elias_bits(n, unit, levels));
}
