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

typedef __m512 Vm;

VM_FN Vm vm_all(float c) { return _mm512_set1_ps(c); }
VM_FN Vm vm_fma(Vm a, Vm b, Vm c) { return _mm512_fmadd_ps(a, b, c); }
VM_FN Vm vm_fmac(Vm a, Vm b, float c) { return _mm512_fmadd_ps(a, b, vm_all(c)); }
VM_FN Vm vm_abs(Vm x) { return _mm512_abs_ps(x); }
VM_FN Vm vm_pick(const float table[16], __m512i index)
{
    return _mm512_permutexvar_ps(index, _mm512_loadu_ps(table));
}

/* |y| with the sign of x */
VM_FN Vm vm_sign(Vm y, Vm x)
{
    const __m512i sign = _mm512_set1_epi32(INT32_MIN);
    return _mm512_castsi512_ps(
        _mm512_ternarylogic_epi32(_mm512_castps_si512(y), sign, _mm512_castps_si512(x), 0xb8));
}

/* y[i] = f(a[i]) */
VM_FN void vm_map(int64_t n, float *y, const float *a, Vm (*f)(Vm))
{
    for (; n >= 16; n -= 16, y += 16, a += 16) _mm512_storeu_ps(y, f(_mm512_loadu_ps(a)));
    if (n) {
        const __mmask16 rest = (__mmask16)((1u << n) - 1);
        _mm512_mask_storeu_ps(y, rest, f(_mm512_maskz_loadu_ps(rest, a)));
    }
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
 * point is exact.  Where m < 1, getexp is k - 1. */
typedef struct VmLog {
    float high[16], low[16]; /* of -log c, + log 2 where m < 1 */
    float two, two_low;      /* log 2 */
    float unit, unit_low;    /* log e */
    float p[4];              /* log(1 + r) = r log e + r^2 p, 2^-27.9 */
} VmLog;

static const float vm_log_c[16] = {
    1,         0x1.dp-1f, 0x1.cp-1f,  0x1.ap-1f,  0x1.9p-1f, 0x1.8p-1f,  0x1.7p-1f, 0x1.6p-1f,
    0x1.5p+0f, 0x1.4p+0f, 0x1.38p+0f, 0x1.28p+0f, 0x1.2p+0f, 0x1.18p+0f, 0x1.1p+0f, 1,
};
static const VmLog vm_log_e = {
    { 0, 0x1.934p-4f, 0x1.118p-3f, 0x1.a94p-3f, 0x1.f99p-3f, 0x1.2698p-2f, 0x1.5228p-2f, 0x1.7fbp-2f,
      0x1.af5p-2f, 0x1.e148p-2f, 0x1.fb38p-2f, 0x1.189p-1f, 0x1.2698p-1f, 0x1.3504p-1f, 0x1.43d8p-1f,
      0x1.62e4p-1f },
    { 0, -0x1.43454ep-17f, -0x1.c5f76p-17f, -0x1.2c3752p-19f, 0x1.c6cb3cp-19f, -0x1.deecb2p-18f,
      0x1.7039c6p-17f, -0x1.7109fap-20f, 0x1.4a9246p-17f, 0x1.4344e4p-19f, -0x1.3a842ep-17f, -0x1.1bf0dcp-17f,
      -0x1.deecb2p-17f, -0x1.752628p-17f, 0x1.ff2f92p-17f, 0x1.7f7d1cp-20f },
    0x1.62e4p-1f,
    0x1.7f7d1cp-20f,
    0x1p+0f,
    0,
    { -0x1.fffffap-2f, 0x1.55586ep-2f, -0x1.0040b6p-2f, 0x1.86f8b4p-3f },
};
static const VmLog vm_log_2 = {
    { 0, 0x1.22ep-3f, 0x1.8a9p-3f, 0x1.32cp-2f, 0x1.6cbp-2f, 0x1.a9p-2f, 0x1.e7ep-2f, 0x1.14c4p-1f,
      0x1.3724p-1f, 0x1.5b2cp-1f, 0x1.6dep-1f, 0x1.94c4p-1f, 0x1.a9p-1f, 0x1.bddp-1f, 0x1.d338p-1f, 0x1p+0f },
    { 0, -0x1.48f554p-17f, -0x1.9fd502p-17f, -0x1.1c8f12p-22f, 0x1.ed0cbap-19f, -0x1.a39fbep-20f,
      -0x1.40358ep-19f, 0x1.60fe68p-17f, -0x1.d448f8p-17f, 0x1.ed0cbap-20f, -0x1.eac382p-20f,
      -0x1.78b6d4p-17f, -0x1.a39fbep-19f, -0x1.62336ap-17f, 0x1.20a6dep-21f, 0 },
    0x1p+0f,
    0,
    0x1.715476p+0f,
    0x1.4ae0cp-26f,
    { -0x1.715472p-1f, 0x1.ec7516p-2f, -0x1.71b1c4p-2f, 0x1.1a02d8p-2f },
};
static const VmLog vm_log_10 = {
    { 0, 0x1.5e4p-5f, 0x1.dbp-5f, 0x1.716p-4f, 0x1.b72p-4f, 0x1.ffcp-4f, 0x1.25cp-3f, 0x1.4d4p-3f,
      0x1.76ap-3f, 0x1.a21p-3f, 0x1.b89p-3f, 0x1.e76p-3f, 0x1.ffcp-3f, 0x1.0c68p-2f, 0x1.1948p-2f,
      0x1.344p-2f },
    { 0, -0x1.a65206p-19f, 0x1.1ed766p-17f, -0x1.798e4cp-19f, 0x1.cd1716p-20f, -0x1.ea21c4p-23f,
      -0x1.5f7a94p-17f, 0x1.fc13aep-18f, 0x1.172eep-17f, -0x1.95ec1p-17f, -0x1.983068p-19f, 0x1.24046cp-19f,
      -0x1.ea21c4p-22f, -0x1.dc52a8p-19f, 0x1.9def7cp-17f, 0x1.3509f8p-18f },
    0x1.344p-2f,
    0x1.3509f8p-18f,
    0x1.bcb7b2p-2f,
    -0x1.5b235ep-27f,
    { -0x1.bcb7acp-3f, 0x1.287d26p-3f, -0x1.bd2938p-4f, 0x1.53b0aap-4f },
};

/* log x as the returned number, to 15 bits after the point, and *rest. */
VM_FN Vm vm_log_parts(Vm x, const VmLog *l, Vm *r, Vm *rest)
{
    const Vm m = _mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan), k = _mm512_getexp_ps(x);
    const __m512i i = _mm512_srli_epi32(_mm512_castps_si512(m), 19);
    *r = vm_fmac(m, vm_pick(vm_log_c, i), -1);
    Vm p = vm_fmac(vm_all(l->p[3]), *r, l->p[2]), low = vm_pick(l->low, i);
    p = vm_fmac(p, *r, l->p[1]);
    p = vm_fmac(p, *r, l->p[0]);
    if (l->two_low != 0) low = vm_fma(k, vm_all(l->two_low), low);
    if (l->unit_low != 0) low = vm_fma(*r, vm_all(l->unit_low), low);
    *rest = vm_fma(_mm512_mul_ps(*r, *r), p, low);
    return vm_fma(k, vm_all(l->two), vm_pick(l->high, i));
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

/* vm_tanh_f32 */
VM_FN Vm vm_tanh(Vm x) /* 1.39 ulp */
{
    const Vm a = vm_abs(x), z = _mm512_mul_ps(a, a);
    Vm p = vm_fmac(vm_all(-0x1.9454f2p-8f), z, 0x1.5811f6p-6f), n;
    p = vm_fmac(p, z, -0x1.b905c4p-5f);
    p = vm_fmac(p, z, 0x1.110c5ep-3f);
    p = vm_fmac(p, z, -0x1.555548p-2f);
    const Vm near = vm_fma(_mm512_mul_ps(x, z), p, x), b = _mm512_min_ps(vm_all(10), a);
    const Vm e = vm_exp_part(_mm512_add_ps(b, b), &n);
    const Vm w = _mm512_add_ps(_mm512_scalef_ps(_mm512_add_ps(vm_all(1), e), n), vm_all(1));
    const Vm far = _mm512_sub_ps(vm_all(1), _mm512_div_ps(vm_all(2), w));
    return vm_sign(_mm512_mask_mov_ps(far, _mm512_cmp_ps_mask(a, vm_all(.5625f), _CMP_LT_OQ), near), x);
}

/* ---- sines ------------------------------------------------------------------------------------- */

/* sin(j pi/16) as a sum of two; the first is -0 lest sin(-0) be 0 */
static const float vm_sines[2][40] = {
    { -0.f,
      0x1.8f8b84p-3f,
      0x1.87de2ap-2f,
      0x1.1c73b4p-1f,
      0x1.6a09e6p-1f,
      0x1.a9b662p-1f,
      0x1.d906bcp-1f,
      0x1.f6297cp-1f,
      1,
      0x1.f6297cp-1f,
      0x1.d906bcp-1f,
      0x1.a9b662p-1f,
      0x1.6a09e6p-1f,
      0x1.1c73b4p-1f,
      0x1.87de2ap-2f,
      0x1.8f8b84p-3f,
      0,
      -0x1.8f8b84p-3f,
      -0x1.87de2ap-2f,
      -0x1.1c73b4p-1f,
      -0x1.6a09e6p-1f,
      -0x1.a9b662p-1f,
      -0x1.d906bcp-1f,
      -0x1.f6297cp-1f,
      -1,
      -0x1.f6297cp-1f,
      -0x1.d906bcp-1f,
      -0x1.a9b662p-1f,
      -0x1.6a09e6p-1f,
      -0x1.1c73b4p-1f,
      -0x1.87de2ap-2f,
      -0x1.8f8b84p-3f,
      0,
      0x1.8f8b84p-3f,
      0x1.87de2ap-2f,
      0x1.1c73b4p-1f,
      0x1.6a09e6p-1f,
      0x1.a9b662p-1f,
      0x1.d906bcp-1f,
      0x1.f6297cp-1f },
    { 0,
      -0x1.cb2cfap-30f,
      0x1.abaa58p-28f,
      -0x1.9465cep-27f,
      0x1.9fcef4p-27f,
      0x1.21d434p-26f,
      0x1.e651a8p-26f,
      0x1.feeb96p-26f,
      0,
      0x1.feeb96p-26f,
      0x1.e651a8p-26f,
      0x1.21d434p-26f,
      0x1.9fcef4p-27f,
      -0x1.9465cep-27f,
      0x1.abaa58p-28f,
      -0x1.cb2cfap-30f,
      0,
      0x1.cb2cfap-30f,
      -0x1.abaa58p-28f,
      0x1.9465cep-27f,
      -0x1.9fcef4p-27f,
      -0x1.21d434p-26f,
      -0x1.e651a8p-26f,
      -0x1.feeb96p-26f,
      0,
      -0x1.feeb96p-26f,
      -0x1.e651a8p-26f,
      -0x1.21d434p-26f,
      -0x1.9fcef4p-27f,
      0x1.9465cep-27f,
      -0x1.abaa58p-28f,
      0x1.cb2cfap-30f,
      0,
      -0x1.cb2cfap-30f,
      0x1.abaa58p-28f,
      -0x1.9465cep-27f,
      0x1.9fcef4p-27f,
      0x1.21d434p-26f,
      0x1.e651a8p-26f,
      0x1.feeb96p-26f },
};

VM_FN Vm vm_pick_32(const float table[32], __m512i index)
{
    return _mm512_permutex2var_ps(_mm512_loadu_ps(table), index, _mm512_loadu_ps(table + 16));
}

/* x = n pi/16 + r + *low, |x| <= VM_NEAR.  Pi/16 in three pieces of 24 bits: the first product and difference
 * are exact, what the second ones lose is in *low. */
#define VM_NEAR 0x1p15f
VM_FN Vm vm_trig_reduce(Vm x, __m512i *n, Vm *low)
{
    const Vm t = vm_fmac(x, vm_all(0x1.45f306p2f), VM_ROUND_F32), k = _mm512_sub_ps(t, vm_all(VM_ROUND_F32));
    const Vm first = vm_fma(k, vm_all(-0x1.921fb4p-3f), x), piece = vm_all(0x1.4442dp-27f);
    const Vm second = _mm512_mul_ps(k, piece), r = _mm512_sub_ps(first, second);
    const Vm lost = _mm512_sub_ps(_mm512_sub_ps(first, r), second);
    *n = _mm512_castps_si512(t);
    *low = vm_fma(k, vm_all(-0x1.84698ap-51f), _mm512_add_ps(lost, _mm512_fnmadd_ps(k, piece, second)));
    return r;
}

/* sin(n pi/16 + r + low) = S + C (r + low + r^3 p) + S r^2 q, S and C the sine and cosine of n pi/16, from
 * vm_sines + table on, as the returned number and *rest; p by 2^-36.6, q by 2^-34.1 */
VM_FN Vm vm_turn(int table, __m512i n, Vm r, Vm low, Vm *rest)
{
    const __m512i m = _mm512_add_epi32(n, _mm512_set1_epi32(table));
    const Vm s = vm_pick_32(vm_sines[0] + table, n), s_low = vm_pick_32(vm_sines[1] + table, n);
    const Vm c = vm_pick_32(vm_sines[0] + 8, m), c_low = vm_pick_32(vm_sines[1] + 8, m);
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
    Vm low, rest, r = vm_trig_reduce(x, &n, &low), y = vm_turn(table, n, r, low, &rest);
    return _mm512_mask_add_ps(y, _mm512_cmp_ps_mask(x, vm_all(0), _CMP_NEQ_UQ), y, rest);
}
VM_FN Vm vm_sin(Vm x) /* .53 ulp */ { return vm_any_sin(x, 0); }
VM_FN Vm vm_cos(Vm x) /* .53 ulp */ { return vm_any_sin(x, 8); }

/* (S + C t) / (C - S t), t = tan(r + low): by an inverse of 14 bits, improved once, and what it lacks */
VM_FN Vm vm_tan(Vm x) /* .52 ulp */
{
    __m512i n;
    Vm low, r = vm_trig_reduce(x, &n, &low);
    const Vm s = vm_pick_32(vm_sines[0], n), s_low = vm_pick_32(vm_sines[1], n), z = _mm512_mul_ps(r, r);
    const Vm c = vm_pick_32(vm_sines[0] + 8, n), c_low = vm_pick_32(vm_sines[1] + 8, n);
    const Vm p = vm_fmac(vm_fmac(vm_all(0x1.bedf68p-5f), z, 0x1.110eb0p-3f), z, 0x1.555556p-2f);
    low = vm_fma(_mm512_mul_ps(z, r), p, low);
    const Vm v = _mm512_mul_ps(c, r), up = _mm512_add_ps(s, v), w = _mm512_mul_ps(s, r),
             part = _mm512_sub_ps(c, w);
    Vm up_low = vm_fma(c, low, vm_fma(c_low, r, s_low));
    up_low = _mm512_add_ps(_mm512_add_ps(up_low, _mm512_fmsub_ps(c, r, v)),
                           _mm512_sub_ps(v, _mm512_sub_ps(up, s)));
    Vm down_low = _mm512_fnmadd_ps(s, low, _mm512_fnmadd_ps(s_low, r, c_low));
    down_low = _mm512_sub_ps(_mm512_sub_ps(down_low, _mm512_fmsub_ps(s, r, w)),
                             _mm512_add_ps(w, _mm512_sub_ps(part, c)));
    const Vm down = _mm512_add_ps(part, down_low), rough = _mm512_rcp14_ps(down);
    down_low = _mm512_sub_ps(down_low, _mm512_sub_ps(down, part));
    const Vm inverse = vm_fma(rough, _mm512_fnmadd_ps(down, rough, vm_all(1)), rough),
             t = _mm512_mul_ps(up, inverse);
    const Vm off = _mm512_add_ps(_mm512_fnmadd_ps(t, down, up), _mm512_fnmadd_ps(t, down_low, up_low));
    return _mm512_mask_add_ps(x, _mm512_cmp_ps_mask(x, vm_all(0), _CMP_NEQ_UQ), t,
                              _mm512_mul_ps(off, inverse));
}

#endif
