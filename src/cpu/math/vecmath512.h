/* vecmath512.h - functions of vecmath.h on 16 floats at once, by instructions of AVX-512 that a compiler does
 * not find in scalar code: exponents and mantissas, scaling, tables in registers.  1.5 to 4 times as fast.
 *
 * What vecmath.h says of its functions holds here too, and test_vecmath.c has these in their places; a loop
 * masks its last vector, so that an element's bits do not depend on where it stands.  Sums of two floats
 * carry what one would lose: where vecmath.h computes in double, these do not. */
#ifndef TAPEGRAD_VECMATH512_H
#define TAPEGRAD_VECMATH512_H

#include <immintrin.h>
#include "vecmath.h"
#include "vecmath512_tables.h"

#ifdef __clang__
#define UNROLL_TABLE _Pragma("clang loop unroll(full)")
#else
#define UNROLL_TABLE _Pragma("GCC unroll 16")
#endif

typedef __m512 Vm;

VM_FN Vm vm_all(float c) { return _mm512_set1_ps(c); }
VM_FN Vm vm_fma(Vm a, Vm b, Vm c) { return _mm512_fmadd_ps(a, b, c); }
VM_FN Vm vm_fmac(Vm a, Vm b, float c) { return _mm512_fmadd_ps(a, b, vm_all(c)); }
VM_FN Vm vm_abs(Vm x) { return _mm512_abs_ps(x); }
VM_FN Vm vm_pick(const float *table, __m512i index)
{
    return _mm512_permutexvar_ps(index, _mm512_loadu_ps(table));
}

VM_FN Vm vm_pick_32(const float *table, __m512i index)
{
    return _mm512_permutex2var_ps(_mm512_loadu_ps(table), index, _mm512_loadu_ps(table + 16));
}

/* |y| with the sign of x */
VM_FN Vm vm_sign(Vm y, Vm x)
{
    const __m512i sign = _mm512_set1_epi32(INT32_MIN);
    return _mm512_castsi512_ps(
        _mm512_ternarylogic_epi32(_mm512_castps_si512(y), sign, _mm512_castps_si512(x), 0xb8));
}

/* The first n lanes */
VM_FN __mmask16 vm_lanes(int64_t n) { return (__mmask16)(n < 16 ? (1u << n) - 1 : 0xffff); }

/* y[i] = f(a[i]); the last ones by way of a whole vector, so that f is there once */
VM_FN void vm_map(int64_t n, float *y, const float *a, Vm (*f)(Vm))
{
    float rest[16], *last = NULL;
    const __mmask16 lanes = vm_lanes(n & 15);
    for (;; n = 16) {
        for (; n >= 16; n -= 16, y += 16, a += 16) _mm512_storeu_ps(y, f(_mm512_loadu_ps(a)));
        if (!n) break;
        _mm512_storeu_ps(rest, _mm512_maskz_loadu_ps(lanes, a));
        last = y, y = rest, a = rest;
    }
    if (last) _mm512_mask_storeu_ps(last, lanes, _mm512_loadu_ps(rest));
}

/* The nearest float, as the instruction, in a third of its time: from an inverse root of 14 bits by Newton's
 * step; then g + (x - g^2) / (2 g).  A vector with a lane outside [2^-100, 2^102) is left to the instruction.
 */
VM_FN Vm vm_sqrt(Vm x)
{
    const __m512i from = _mm512_set1_epi32(0x0d800000),
                  size = _mm512_set1_epi32(0x65000000); /* 2^-100, 2^102 */
    const __m512i offset = _mm512_sub_epi32(_mm512_castps_si512(x), from);
    if (_mm512_cmpge_epu32_mask(offset, size)) return _mm512_sqrt_ps(x);
    const Vm y = _mm512_rsqrt14_ps(x), h = _mm512_mul_ps(y, vm_all(.5f)), g = _mm512_mul_ps(x, y);
    const Vm r = _mm512_fnmadd_ps(g, h, vm_all(.5f)), root = vm_fma(g, r, g);
    return vm_fma(_mm512_fnmadd_ps(root, root, x), vm_fma(h, r, h), root);
}

/* e^x = 2^n e^r; r + r^2 p = e^r - 1 by 2^-28.2, as vm_exp_core_f32 has it */
VM_FN Vm vm_exp_part(Vm x, Vm *n)
{
    *n = _mm512_sub_ps(vm_fmac(x, vm_all(0x1.715476p+0f), VM_ROUND_F32), vm_all(VM_ROUND_F32));
    const Vm r = vm_fma(*n, vm_all(-0x1.7f7d1cp-20f), vm_fma(*n, vm_all(-0x1.62e4p-1f), x));
    Vm p = vm_fmac(vm_all(0x1.6ac868p-10f), r, 0x1.123df2p-7f);
    p = vm_fmac(p, r, 0x1.555858p-5f);
    p = vm_fmac(p, r, 0x1.55548cp-3f);
    p = vm_fmac(p, r, 0x1.fffffcp-2f);
    return vm_fma(_mm512_mul_ps(r, r), p, r);
}

VM_FN Vm vm_exp(Vm x) /* 1.00 ulp */
{
    Vm n, part = vm_exp_part(_mm512_max_ps(vm_all(-104), _mm512_min_ps(vm_all(89), x)), &n);
    return _mm512_scalef_ps(_mm512_add_ps(vm_all(1), part), n);
}

/* x = 2^k m, 3/4 <= m < 3/2; by the first four bits of m a c of few bits, so that r = c m - 1 is exact:
 * log x = k log 2 - log c + log(1 + r), -.038 <= r <= 1/16.  The sum of the first two to 15 bits after the
 * point is exact: the returned number, and *rest.  Where m < 1, getexp is k - 1. */
VM_FN Vm vm_log_parts(Vm x, const VmLog *l, Vm *r, Vm *rest)
{
    const Vm m = _mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan), k = _mm512_getexp_ps(x);
    const __m512i i = _mm512_srli_epi32(_mm512_castps_si512(m), 19);
    *r = vm_fmac(m, vm_pick(vm_log_c, i), -1);
    Vm p = vm_fmac(vm_all(l->p[3]), *r, l->p[2]), low = vm_pick(l->low[0], i);
    p = vm_fmac(p, *r, l->p[1]);
    p = vm_fmac(p, *r, l->p[0]);
    if (l->two_low != 0) low = vm_fma(k, vm_all(l->two_low), low);
    if (l->unit_low != 0) low = vm_fma(*r, vm_all(l->unit_low), low);
    *rest = vm_fma(_mm512_mul_ps(*r, *r), p, low);
    return vm_fma(k, vm_all(l->two), vm_pick(l->high[0], i));
}

VM_FN Vm vm_log(Vm x) /* .77 ulp */
{
    Vm low, r, high = vm_log_parts(x, &vm_log_e, &r, &low);
    return _mm512_add_ps(high, _mm512_add_ps(r, low));
}

/* With what the product and the first sum lose; an infinity loses nothing. */
VM_FN Vm vm_log_exact(Vm x, const VmLog *l)
{
    Vm low, r, high = vm_log_parts(x, l, &r, &low);
    const Vm unit = vm_all(l->unit), v = _mm512_mul_ps(r, unit), y = _mm512_add_ps(high, v);
    low = _mm512_add_ps(low, _mm512_fmsub_ps(r, unit, v));
    low = _mm512_add_ps(low, _mm512_sub_ps(v, _mm512_sub_ps(y, high)));
    return _mm512_mask_add_ps(y, _mm512_cmp_ps_mask(vm_abs(y), vm_all(INFINITY), _CMP_LT_OQ), y, low);
}
VM_FN Vm vm_log2(Vm x) /* .58 ulp */ { return vm_log_exact(x, &vm_log_2); }
VM_FN Vm vm_log10(Vm x) /* .59 ulp */ { return vm_log_exact(x, &vm_log_10); }

/* By exponent and two bits of |x|, from 2^-4 on, a polynomial about the interval's middle, 2^-28; below 5/64
 * about 0.  From 10 on tanh is 1. */
VM_FN Vm vm_tanh(Vm x)
{
    const Vm a = _mm512_min_ps(vm_all(11), vm_abs(x));
    const __m512i bits = _mm512_castps_si512(a), low = _mm512_set1_epi32(0x3d800000); /* 2^-4 */
    const __m512i i = _mm512_srli_epi32(_mm512_max_epi32(bits, low), 21);
    const Vm d = _mm512_sub_ps(a, vm_pick_32(vm_tanh_table[7][0], i));
    Vm y = vm_pick_32(vm_tanh_table[6][0], i);
    UNROLL_TABLE for (int k = 5; k >= 0; k--) y = vm_fma(y, d, vm_pick_32(vm_tanh_table[k][0], i));
    return vm_sign(y, x);
}

/* By exponent and three bits of 1 + x, 0 <= x < 15, a polynomial in d = x - low about the interval's middle:
 * its value there as the returned number, and *rest. */
VM_FN Vm vm_table(const float *table, Vm x, Vm low, Vm *rest)
{
    const __m512i middle = _mm512_set1_epi32(0x00080000), above = _mm512_set1_epi32((int)0xfff00000);
    const __m512i bits =
        _mm512_castps_si512(_mm512_min_ps(vm_all(0x1.fffffep3f), _mm512_add_ps(vm_all(1), x)));
    const __m512i i = _mm512_srli_epi32(bits, 20), c = _mm512_ternarylogic_epi32(bits, above, middle, 0xea);
    const Vm d = _mm512_sub_ps(_mm512_sub_ps(x, _mm512_sub_ps(_mm512_castsi512_ps(c), vm_all(1))), low);
    Vm y = vm_pick_32(table + 32 * 6, i);
    UNROLL_TABLE for (int k = 5; k > 0; k--) y = vm_fma(y, d, vm_pick_32(table + 32 * k, i));
    *rest = y;
    return vm_pick_32(table, i);
}

/* erfc(a) of a = |x| or, if half, erfc(a / sqrt 2) / 2; a <= most: by a table of e^(a^2) erfc(a), 2^-28.  a^2
 * and a / sqrt 2 are two floats, e^-a^2 = 2^n (1 + part). */
VM_FN Vm vm_tail(Vm x, int half, float most)
{
    const Vm a = _mm512_min_ps(vm_all(most), vm_abs(x)), b = _mm512_mul_ps(a, vm_all(half ? -.5f : -1));
    const Vm h = _mm512_mul_ps(a, b), l = _mm512_fmsub_ps(a, b, h);
    const Vm n = _mm512_sub_ps(vm_fmac(h, vm_all(0x1.715476p+0f), VM_ROUND_F32), vm_all(VM_ROUND_F32));
    const Vm r = vm_fma(n, vm_all(-0x1.62e4p-1f), h), r_low = vm_fma(n, vm_all(-0x1.7f7d1cp-20f), l);
    const Vm t = _mm512_add_ps(r, r_low);
    Vm p = vm_fmac(vm_all(0x1.6ac868p-10f), t, 0x1.123df2p-7f);
    p = vm_fmac(p, t, 0x1.555858p-5f);
    p = vm_fmac(p, t, 0x1.55548cp-3f);
    p = vm_fmac(p, t, 0x1.fffffcp-2f);
    const Vm curve = vm_fma(_mm512_mul_ps(t, t), p, r_low), part = _mm512_add_ps(r, curve);
    const Vm root = vm_all(0x1.6a09e6p-1f), at = half ? _mm512_mul_ps(a, root) : a;
    const Vm at_high = _mm512_fnmadd_ps(a, vm_all(0x1.9fcef4p-27f), _mm512_fnmadd_ps(a, root, at));
    Vm rest, y = vm_table(vm_erfc_table[0][0], at, half ? at_high : vm_all(0), &rest);
    const Vm high = _mm512_add_ps(y, rest), lost = _mm512_sub_ps(curve, _mm512_sub_ps(part, r));
    const Vm low = vm_fma(high, lost, _mm512_sub_ps(rest, _mm512_sub_ps(high, y)));
    return _mm512_scalef_ps(_mm512_add_ps(high, vm_fma(high, part, low)),
                            half ? _mm512_sub_ps(n, vm_all(1)) : n);
}

/* erfc(x) = 2 - erfc(-x) */
VM_FN Vm vm_erfc(Vm x)
{
    const Vm y = vm_tail(x, 0, 10.4f);
    return _mm512_mask_sub_ps(y, _mm512_cmp_ps_mask(x, vm_all(0), _CMP_LT_OQ), vm_all(2), y);
}

/* ndtr(x) = 1 - ndtr(-x) */
VM_FN Vm vm_ndtr(Vm x)
{
    const Vm y = vm_tail(x, 1, 14.5f);
    return _mm512_mask_sub_ps(y, _mm512_cmp_ps_mask(x, vm_all(0), _CMP_GT_OQ), vm_all(1), y);
}

/* log(z / u), u = 1 - z: of a quotient q by an inverse of 14 bits, and what it lacks; NaN at 0 and 1. */
VM_FN Vm vm_logit(Vm z)
{
    const Vm u = _mm512_sub_ps(vm_all(1), z), u_low = _mm512_sub_ps(_mm512_sub_ps(vm_all(1), u), z);
    const Vm q = _mm512_mul_ps(z, _mm512_rcp14_ps(u));
    const Vm off = _mm512_mul_ps(_mm512_fnmadd_ps(q, u_low, _mm512_fnmadd_ps(q, u, z)), _mm512_rcp14_ps(z));
    Vm r, low, high = vm_log_parts(q, &vm_log_e, &r, &low);
    low = _mm512_mask_add_ps(low, _mm512_cmp_ps_mask(off, off, _CMP_ORD_Q), low, off);
    return _mm512_add_ps(high, _mm512_add_ps(r, low));
}

/* c x, by way of double */
VM_FN Vm vm_share(Vm x, double c)
{
    const __m512d by = _mm512_set1_pd(c), low = _mm512_cvtps_pd(_mm512_castps512_ps256(x)),
                  high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
    const __m256 first = _mm512_cvtpd_ps(_mm512_mul_pd(low, by));
    return _mm512_insertf32x8(_mm512_castps256_ps512(first), _mm512_cvtpd_ps(_mm512_mul_pd(high, by)), 1);
}

/* By way of w = -log(1 - x^2): erfinv(x) / x as a function of it, 2^-28 */
VM_FN Vm vm_erfinv(Vm x)
{
    const Vm one = vm_all(1), a = vm_abs(x), u = _mm512_sub_ps(one, a), v = _mm512_add_ps(one, a);
    const Vm u_low = _mm512_sub_ps(_mm512_sub_ps(one, u), a), v_low = _mm512_sub_ps(a, _mm512_sub_ps(v, one));
    const Vm m = _mm512_mul_ps(u, v), off = vm_fma(u, v_low, vm_fma(v, u_low, _mm512_fmsub_ps(u, v, m)));
    Vm r, low, rest, high = vm_log_parts(m, &vm_log_e, &r, &low);
    low = _mm512_add_ps(r, vm_fma(off, _mm512_rcp14_ps(m), low));
    const Vm minus = _mm512_sub_ps(vm_all(0), high);
    const Vm y = vm_table(vm_erfinv_table[0][0], minus, low, &rest), p = _mm512_mul_ps(x, y);
    const Vm sum = _mm512_add_ps(p, vm_fma(x, rest, _mm512_fmsub_ps(x, y, p)));
    const __mmask16 tiny = _mm512_cmp_ps_mask(a, vm_all(0x1p-118f), _CMP_LT_OQ); /* products underflow */
    const Vm z = _mm512_mask_mov_ps(sum, tiny, vm_share(x, 0x1.c5bf891b4ef6ap-1));
    const Vm edge = _mm512_mask_mov_ps(vm_all(NAN), _mm512_cmp_ps_mask(a, one, _CMP_EQ_OQ),
                                       _mm512_mul_ps(x, vm_all(INFINITY)));
    return _mm512_mask_mov_ps(z, _mm512_cmp_ps_mask(a, one, _CMP_GE_OQ), edge);
}

/* The angle of (x, y): of the smaller coordinate to the larger t + p by vm_atan_f32's polynomial, p with what
 * the division lost; then from the nearest axis, 0, pi/2 or pi, as the sum of two floats. */
VM_FN Vm vm_atan2(Vm y, Vm x) /* .99 ulp */
{
    const Vm ax = vm_abs(x), ay = vm_abs(y), most = _mm512_max_ps(ax, ay), least = _mm512_min_ps(ax, ay);
    const __mmask16 left = _mm512_movepi32_mask(_mm512_castps_si512(x)),
                    steep = _mm512_cmp_ps_mask(ay, ax, _CMP_GT_OQ);
    const Vm ratio = _mm512_div_ps(least, most); /* NaN: 0 / 0 is 0, infinities give 1 */
    const Vm t = _mm512_mask_min_ps(ratio, _mm512_cmp_ps_mask(ratio, ratio, _CMP_UNORD_Q), most, vm_all(1));
    const Vm off = _mm512_mul_ps(_mm512_fnmadd_ps(t, most, least), _mm512_rcp14_ps(most));
    const Vm lost = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(vm_abs(off), t, _CMP_LE_OQ), off);
    const Vm z = _mm512_mul_ps(t, t);
    Vm p = vm_fmac(vm_all(vm_atan_p[0]), z, vm_atan_p[1]);
    UNROLL_TABLE for (int i = 2; i < 9; i++) p = vm_fmac(p, z, vm_atan_p[i]);
    p = vm_fma(_mm512_mul_ps(t, z), p, _mm512_fnmadd_ps(lost, _mm512_mul_ps(z, vm_all(.5f)), lost));
    const __m512i minus = _mm512_maskz_set1_epi32(left ^ steep, INT32_MIN);
    const Vm s = _mm512_xor_ps(t, _mm512_castsi512_ps(minus)),
             s_low = _mm512_xor_ps(p, _mm512_castsi512_ps(minus));
    const Vm turns = _mm512_mask_mov_ps(_mm512_maskz_mov_ps(left, vm_all(2)), steep, vm_all(1));
    const Vm axis = _mm512_mul_ps(turns, vm_all(0x1.921fb6p+0f)), sum = _mm512_add_ps(axis, s);
    const Vm rest = _mm512_sub_ps(s, _mm512_sub_ps(sum, axis));
    const Vm low = _mm512_fnmadd_ps(turns, vm_all(0x1.777a5cp-25f), s_low);
    const Vm angle = vm_sign(_mm512_add_ps(sum, _mm512_add_ps(rest, low)), y);
    return _mm512_mask_add_ps(angle, _mm512_cmp_ps_mask(x, y, _CMP_UNORD_Q), x, y);
}

/* ---- sines ------------------------------------------------------------------------------------- */

/* x = n pi/16 share + r + *low, |x| <= VM_NEAR.  Pi/16 in three pieces of 24 bits: the first product and
 * difference are exact, what the second ones lose is in *low. */
#define VM_NEAR 0x1p15f
VM_FN Vm vm_trig_reduce(Vm x, float share, __m512i *n, Vm *low)
{
    const Vm t = vm_fmac(x, vm_all(0x1.45f306p2f / share), VM_ROUND_F32);
    const Vm k = _mm512_sub_ps(t, vm_all(VM_ROUND_F32)), piece = vm_all(0x1.4442dp-27f * share);
    const Vm first = vm_fma(k, vm_all(-0x1.921fb4p-3f * share), x);
    const Vm second = _mm512_mul_ps(k, piece), r = _mm512_sub_ps(first, second);
    const Vm lost = _mm512_sub_ps(_mm512_sub_ps(first, r), second);
    *n = _mm512_castps_si512(t);
    *low =
        vm_fma(k, vm_all(-0x1.84698ap-51f * share), _mm512_add_ps(lost, _mm512_fnmadd_ps(k, piece, second)));
    return r;
}

/* sin(n pi/16 + r + low) = S + C (r + low + r^3 p) + S r^2 q, S and C the sine and cosine of n pi/16, from
 * vm_sines + table on, as the returned number and *rest; p by 2^-36.6, q by 2^-34.1 */
VM_FN Vm vm_turn(int table, __m512i n, Vm r, Vm low, Vm *rest)
{
    const __m512i m = _mm512_add_epi32(n, _mm512_set1_epi32(table));
    const Vm s = vm_pick_32(vm_sines[0][0] + table, n), s_low = vm_pick_32(vm_sines[1][0] + table, n);
    const Vm c = vm_pick_32(vm_sines[0][0] + 8, m), c_low = vm_pick_32(vm_sines[1][0] + 8, m);
    const Vm v = _mm512_mul_ps(c, r), y = _mm512_add_ps(s, v), z = _mm512_mul_ps(r, r);
    low = vm_fma(_mm512_mul_ps(z, r), vm_fmac(vm_all(0x1.10f816p-7f), z, -0x1.555554p-3f), low);
    const Vm q = _mm512_mul_ps(z, vm_fmac(vm_all(0x1.552cdcp-5f), z, -0x1.fffffcp-2f));
    low = vm_fma(c, low, vm_fma(s, q, vm_fma(c_low, r, s_low)));
    *rest =
        _mm512_add_ps(_mm512_add_ps(low, _mm512_fmsub_ps(c, r, v)), _mm512_sub_ps(v, _mm512_sub_ps(y, s)));
    return y;
}

VM_FN Vm vm_any_sin(Vm x, int table)
{
    __m512i n;
    Vm low, rest, r = vm_trig_reduce(x, 1, &n, &low), y = vm_turn(table, n, r, low, &rest);
    return _mm512_mask_add_ps(y, _mm512_cmp_ps_mask(x, vm_all(0), _CMP_NEQ_UQ), y, rest);
}
VM_FN Vm vm_sin(Vm x) /* .53 ulp */ { return vm_any_sin(x, 0); }
VM_FN Vm vm_cos(Vm x) /* .53 ulp */ { return vm_any_sin(x, 8); }

/* x = n pi/4 + r + low, |r| <= pi/8; t = tan(r + low), r + r^3 p by 2^-34; (S + C t) / (C - S t) with the 0,
 * 1 or -1 in proportion to the sine and cosine of n pi/4: by an inverse of 14 bits, and what it lacks */
VM_FN Vm vm_tan(Vm x) /* .69 ulp */
{
    static const float sines[16] = { 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1 };
    static const float cosines[16] = { 1, 1, 0, -1, 1, 1, 0, -1, 1, 1, 0, -1, 1, 1, 0, -1 };
    __m512i n;
    Vm low, r = vm_trig_reduce(x, 4, &n, &low);
    const Vm z = _mm512_mul_ps(r, r), s = vm_pick(sines, n), c = vm_pick(cosines, n);
    Vm p = vm_fmac(vm_all(0x1.603e02p-7f), z, 0x1.60c542p-6f);
    p = vm_fmac(p, z, 0x1.ba53f6p-5f);
    p = vm_fmac(p, z, 0x1.111096p-3f);
    p = vm_fmac(p, z, 0x1.555556p-2f);
    const Vm curve = vm_fma(_mm512_mul_ps(r, z), p, low), t = _mm512_add_ps(r, curve);
    low = _mm512_sub_ps(curve, _mm512_sub_ps(t, r));
    const Vm up = vm_fma(c, t, s), down = _mm512_fnmadd_ps(s, t, c), rough = _mm512_rcp14_ps(down);
    const Vm up_low = vm_fma(c, low, _mm512_fmsub_ps(c, t, _mm512_sub_ps(up, s)));
    const Vm down_low = _mm512_fnmadd_ps(s, low, _mm512_fnmsub_ps(s, t, _mm512_sub_ps(down, c)));
    const Vm q = _mm512_mul_ps(up, rough);
    const Vm off = _mm512_add_ps(_mm512_fnmadd_ps(q, down, up), _mm512_fnmadd_ps(q, down_low, up_low));
    return _mm512_mask_add_ps(x, _mm512_cmp_ps_mask(x, vm_all(0), _CMP_NEQ_UQ), q, _mm512_mul_ps(off, rough));
}

#include "vecmath512_64.h"

#endif
