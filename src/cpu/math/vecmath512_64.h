/* vecmath512_64.h - functions of vecmath64.h on 8 doubles at once, as vecmath512.h has them for floats; it is
 * the file to include.
 *
 * Polynomials and tables are made as those of vecmath64.h; of sums of two doubles the second is what the
 * first lacks. */
#ifndef TAPEGRAD_VECMATH512_64_H
#define TAPEGRAD_VECMATH512_64_H

typedef __m512d Vd;
VM_FN Vd vd_all(double c) { return _mm512_set1_pd(c); }
VM_FN Vd vd_fma(Vd a, Vd b, Vd c) { return _mm512_fmadd_pd(a, b, c); }
VM_FN Vd vd_fmac(Vd a, Vd b, double c) { return _mm512_fmadd_pd(a, b, vd_all(c)); }
VM_FN Vd vd_abs(Vd x) { return _mm512_abs_pd(x); }
VM_FN Vd vd_pick(const double *table, __m512i index)
{
    return _mm512_permutex2var_pd(_mm512_loadu_pd(table), index, _mm512_loadu_pd(table + 8));
}

/* |y| with the sign of x */
VM_FN Vd vd_sign(Vd y, Vd x)
{
    const __m512i sign = _mm512_set1_epi64(INT64_MIN);
    return _mm512_castsi512_pd(
        _mm512_ternarylogic_epi64(_mm512_castpd_si512(y), sign, _mm512_castpd_si512(x), 0xb8));
}

/* y[i] = f(a[i]), n a multiple of 8 */
VM_FN void vd_map(int64_t n, double *y, const double *a, Vd (*f)(Vd))
{
    for (int64_t i = 0; i < n; i += 8) _mm512_storeu_pd(y + i, f(_mm512_loadu_pd(a + i)));
}

/* The nearest double, as the instruction, in a third of its time: from an inverse root of 14 bits by two of
 * Newton's steps; then g + (x - g^2) h, h = 1 / (2 sqrt x) within 2^-52.  Where the root lies 2^-54 of its
 * unit beside the middle of two doubles, the last step could round to the wrong one; a square is that near
 * only for 1 + 2^-52 and 4 - 2^-51, times powers of 4, which test_vecmath.c has.  A vector with a lane
 * outside [2^-767, 2^769) is left to the instruction. */
VM_FN Vd vd_sqrt(Vd x)
{
    const __m512i from = _mm512_set1_epi64(INT64_C(0x1000000000000000)),
                  size = _mm512_set1_epi64(INT64_C(0x6000000000000000));
    const __m512i offset = _mm512_sub_epi64(_mm512_castpd_si512(x), from);
    if (_mm512_cmpge_epu64_mask(offset, size)) return _mm512_sqrt_pd(x);
    const Vd half = vd_all(.5), y = _mm512_rsqrt14_pd(x);
    Vd h = _mm512_mul_pd(y, half), g = _mm512_mul_pd(x, y), r = _mm512_fnmadd_pd(g, h, half);
    g = vd_fma(g, r, g), h = vd_fma(h, r, h), r = _mm512_fnmadd_pd(g, h, half);
    g = vd_fma(g, r, g), h = vd_fma(h, r, h);
    return vd_fma(_mm512_fnmadd_pd(g, g, x), h, g);
}

/* 2^(i/16), i < 16 */
static const double vd_exp_high[16] = { 0x1p+0,
                                        0x1.0b5586cf9890fp+0,
                                        0x1.172b83c7d517bp+0,
                                        0x1.2387a6e756238p+0,
                                        0x1.306fe0a31b715p+0,
                                        0x1.3dea64c123422p+0,
                                        0x1.4bfdad5362a27p+0,
                                        0x1.5ab07dd485429p+0,
                                        0x1.6a09e667f3bcdp+0,
                                        0x1.7a11473eb0187p+0,
                                        0x1.8ace5422aa0dbp+0,
                                        0x1.9c49182a3f09p+0,
                                        0x1.ae89f995ad3adp+0,
                                        0x1.c199bdd85529cp+0,
                                        0x1.d5818dcfba487p+0,
                                        0x1.ea4afa2a490dap+0 };
static const double vd_exp_low[16] = { 0,
                                       0x1.8a62e4adc610bp-54,
                                       -0x1.19041b9d78a76p-55,
                                       0x1.9b07eb6c70573p-54,
                                       0x1.6f46ad23182e4p-55,
                                       0x1.ada0911f09ebcp-55,
                                       0x1.d4397afec42e2p-56,
                                       0x1.6324c054647adp-54,
                                       -0x1.bdd3413b26456p-54,
                                       -0x1.41577ee04992fp-55,
                                       0x1.6e9f156864b27p-54,
                                       0x1.c7c46b071f2bep-56,
                                       0x1.7a1cd345dcc81p-54,
                                       0x1.11065895048ddp-55,
                                       0x1.2ed02d75b3707p-55,
                                       -0x1.e9c23179c2893p-54 };

/* 2^(i/16) e^r, i modulo 16: 2^(i/16) + 2^(i/16) (r + r^2 p), p by 2^-56.2, |r| <= log 2 / 32 */
VM_FN Vd vd_exp_part(__m512i i, Vd r)
{
    const Vd high = vd_pick(vd_exp_high, i), low = vd_pick(vd_exp_low, i);
    Vd p = vd_fmac(vd_all(0x1.6c185ee2b06dep-10), r, 0x1.11123b4831734p-7);
    p = vd_fmac(p, r, 0x1.555555545d859p-5);
    p = vd_fmac(p, r, 0x1.555555548ebcp-3);
    p = vd_fmac(p, r, 0x1.0000000000005p-1);
    p = vd_fma(_mm512_mul_pd(r, r), p, r);
    return _mm512_add_pd(high, vd_fma(high, p, low));
}

/* x - n log 2 */
VM_FN Vd vd_exp_rest(Vd x, Vd n)
{
    return vd_fma(n, vd_all(-0x1.cf79abc9e3b3ap-40), vd_fma(n, vd_all(-0x1.62e42fefap-1), x));
}

#define VD_SIXTEENTHS 0x1.8p48 /* adding it leaves a multiple of 1/16 */
VM_FN Vd vd_exp(Vd x)          /* .65 ulp */
{
    const Vd c = _mm512_max_pd(vd_all(-746), _mm512_min_pd(vd_all(710), x));
    const Vd t = vd_fmac(c, vd_all(0x1.71547652b82fep+0), VD_SIXTEENTHS),
             n = _mm512_sub_pd(t, vd_all(VD_SIXTEENTHS));
    return _mm512_scalef_pd(vd_exp_part(_mm512_castpd_si512(t), vd_exp_rest(c, n)), n); /* 2^floor(n) */
}

VM_FN Vd vd_exp2(Vd x) /* .75 ulp */
{
    const Vd c = _mm512_max_pd(vd_all(-1080), _mm512_min_pd(vd_all(1025), x));
    const Vd t = _mm512_add_pd(c, vd_all(VD_SIXTEENTHS)), n = _mm512_sub_pd(t, vd_all(VD_SIXTEENTHS));
    const Vd r = _mm512_mul_pd(_mm512_sub_pd(c, n), vd_all(0x1.62e42fefa39efp-1));
    return _mm512_scalef_pd(vd_exp_part(_mm512_castpd_si512(t), r), n);
}

typedef struct VdLog {
    double high[16], low[16]; /* of -log c of vm_log_c, + log 2 where m < 1 */
    double two, two_low;      /* log 2 */
    double unit, unit_low;    /* log e */
    double p[10];             /* log(1 + r) = r log e + r^2 p, 2^-60 */
} VdLog;

static const VdLog vd_log_e = {
    { 0, 0x1.9335e5d594p-4, 0x1.1178e8227ep-3, 0x1.a93ed3c8aep-3, 0x1.f991c6cb3cp-3, 0x1.269621134ep-2,
      0x1.522ae0738ap-2, 0x1.7fafa3bd81p-2, 0x1.af5295248ap-2, 0x1.e148a1a26fp-2, 0x1.fb358af7a1p-2,
      0x1.188ee40f22p-1, 0x1.269621134cp-1, 0x1.35028ad9d7p-1, 0x1.43d9ff2f908p-1, 0x1.62e42fefa2p-1 },
    { 0, 0x1.3115c3abd47dap-45, 0x1.1ef78ce2d07f2p-45, -0x1.8724350562169p-45, -0x1.90d04cd7cc834p-44,
      -0x1.1b61f10522625p-44, 0x1.ebe708164c759p-45, 0x1.46fb79bf6d4cbp-44, 0x1.6e833aad88bbap-41,
      0x1.b66ca6fc66eb6p-41, 0x1.c4217e8f05925p-41, 0x1.ca66277c55a33p-41, 0x1.b92783beb7677p-41,
      0x1.c85c1fca93f35p-41, 0x1.bc4cf616fdf5cp-41, 0x1.9ef35793c7673p-41 },
    0x1.62e42fefa2p-1,
    0x1.9ef35793c7673p-41,
    0x1p0,
    0,
    { 0x1.4d6f352ccc00fp-4, -0x1.999f551c064dfp-4, 0x1.c74222e60cf61p-4, -0x1.00005e36eabddp-3,
      0x1.249242cb2b42ep-3, -0x1.5555552ef412ep-3, 0x1.9999999a7b6b4p-3, -0x1.00000000025f7p-2,
      0x1.55555555555p-2, -0x1.fffffffffffffp-2 }
};
static const VdLog vd_log_2 = {
    { 0, 0x1.22dadc2ab4p-3, 0x1.8a8980abfcp-3, 0x1.32bfee370ep-2, 0x1.6cb0f6865cp-2, 0x1.a8ff97181p-2,
      0x1.e7df5fe538p-2, 0x1.14c560fe69p-1, 0x1.37222bb707p-1, 0x1.5b2c3da197p-1, 0x1.6ddfc2a79p-1,
      0x1.94c287492cp-1, 0x1.a8ff971811p-1, 0x1.bdce9dcc96p-1, 0x1.d338120a6ep-1, 0x1p0 },
    { 0, -0x1.6d25a5b8a19b2p-44, -0x1.66cccab240e9p-46, 0x1.cd0cb4492f1bcp-43, 0x1.1d406db502403p-43,
      0x1.4bc302ffa76fbp-43, 0x1.5669df6a2b592p-43, -0x1.41dfc7d7c3321p-43, 0x1.1ee969a95f529p-43,
      0x1.1d406db502403p-44, -0x1.ce60916e52e91p-44, 0x1.36c101ee1344p-43, -0x1.6879fa00b120ap-43,
      0x1.871a7610e40bdp-45, -0x1.3167ccc538261p-44, 0 },
    0x1p0,
    0,
    0x1.71547652b82fep0,
    0x1.777d0ffda0d24p-56,
    { 0x1.e10b4e4004c84p-4, -0x1.277ae7a48fa1ep-3, 0x1.48664436517e7p-3, -0x1.7154fe3ef61c4p-3,
      0x1.a617597eb8287p-3, -0x1.ec709d8c41657p-3, 0x1.2776c50f9ca4cp-2, -0x1.71547652bb9c3p-2,
      0x1.ec709dc3a0383p-2, -0x1.71547652b82fdp-1 }
};
static const VdLog vd_log_10 = {
    { 0, 0x1.5e3966b7fp-5, 0x1.db11ed767p-5, 0x1.715d0ce368p-4, 0x1.b721cd1718p-4, 0x1.ffbfc2bbc8p-4,
      0x1.25ba8215bp-3, 0x1.4d43f8275cp-3, 0x1.76a45cbb8p-3, 0x1.a209a84fbcp-3, 0x1.b88e67cf98p-3,
      0x1.e76124046cp-3, 0x1.ffbfc2bbc8p-3, 0x1.0c6711d6acp-2, 0x1.194b3bdef6p-2, 0x1.34413509f8p-2 },
    { 0, -0x1.b5ab9118cb412p-43, -0x1.502f348f0f913p-43, -0x1.41149840eaa65p-46, -0x1.40eb504cfa313p-43,
      -0x1.ff229f20ed3d2p-46, -0x1.007bf2d8bf07ap-44, -0x1.b7cd59750ce36p-43, -0x1.901388732d38dp-43,
      0x1.fef311f12b358p-44, -0x1.a01b9bb0ebf1bp-45, -0x1.81a1e23fe0fb6p-44, -0x1.ff229f20ed3d2p-45,
      -0x1.42d6ae59e7d9cp-45, 0x1.73bf1482108b6p-43, -0x1.80433b83b532ap-44 },
    0x1.34413509f8p-2,
    -0x1.80433b83b532ap-44,
    0x1.bcb7b1526e50ep-2,
    0x1.95355baaafad3p-57,
    { 0x1.219e10d6faf4dp-5, -0x1.63cb221ec0aeap-5, 0x1.8b6eb012a1364p-5, -0x1.bcb854fd47f63p-5,
      0x1.fc3f9b0d735f1p-5, -0x1.287a76159e194p-4, 0x1.63c62775e9325p-4, -0x1.bcb7b15272701p-4,
      0x1.287a7636f4315p-3, -0x1.bcb7b1526e50dp-3 }
};

/* As vm_log_parts: log x = high + r unit + *rest */
VM_FN Vd vd_log_parts(Vd x, const VdLog *l, Vd *r, Vd *rest)
{
    const Vd m = _mm512_getmant_pd(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan), k = _mm512_getexp_pd(x);
    const __m512i i = _mm512_srli_epi64(_mm512_castpd_si512(m), 48);
    const Vd c = _mm512_permutex2var_pd(_mm512_cvtps_pd(_mm256_loadu_ps(vm_log_c)), i,
                                        _mm512_cvtps_pd(_mm256_loadu_ps(vm_log_c + 8)));
    *r = vd_fmac(m, c, -1);
    const Vd z = _mm512_mul_pd(*r, *r);
    Vd p = vd_all(l->p[0]), q = vd_all(l->p[1]), low = vd_pick(l->low, i);
    UNROLL_TABLE for (int j = 2; j < 10; j += 2) p = vd_fmac(p, z, l->p[j]), q = vd_fmac(q, z, l->p[j + 1]);
    p = vd_fma(p, *r, q);
    if (l->two_low != 0) low = vd_fma(k, vd_all(l->two_low), low);
    if (l->unit_low != 0) low = vd_fma(*r, vd_all(l->unit_low), low);
    *rest = vd_fma(z, p, low);
    return vd_fma(k, vd_all(l->two), vd_pick(l->high, i));
}

VM_FN Vd vd_log(Vd x) /* .75 ulp */
{
    Vd low, r, high = vd_log_parts(x, &vd_log_e, &r, &low);
    return _mm512_add_pd(high, _mm512_add_pd(r, low));
}

/* As vm_log_exact */
VM_FN Vd vd_log_exact(Vd x, const VdLog *l)
{
    Vd low, r, high = vd_log_parts(x, l, &r, &low);
    const Vd unit = vd_all(l->unit), v = _mm512_mul_pd(r, unit), y = _mm512_add_pd(high, v);
    low = _mm512_add_pd(low, _mm512_fmsub_pd(r, unit, v));
    low = _mm512_add_pd(low, _mm512_sub_pd(v, _mm512_sub_pd(y, high)));
    return _mm512_mask_add_pd(y, _mm512_cmp_pd_mask(vd_abs(y), vd_all(INFINITY), _CMP_LT_OQ), y, low);
}
VM_FN Vd vd_log2(Vd x) /* .54 ulp */ { return vd_log_exact(x, &vd_log_2); }
VM_FN Vd vd_log10(Vd x) /* .52 ulp */ { return vd_log_exact(x, &vd_log_10); }

/* x = n pi/2 + r + *low, |r| <= pi/4, for |x| <= VD_NEAR: pi/2 in two pieces of 43 bits, whose products with
 * n are exact, and a rest.  Where the second difference rounds, its first number is the larger one. */
#define VD_NEAR 0x1p10
VM_FN Vd vd_trig_reduce(Vd x, __m512i *n, Vd *low)
{
    const Vd t = vd_fmac(x, vd_all(0x1.45f306dc9c883p-1), VM_ROUND_F64),
             k = _mm512_sub_pd(t, vd_all(VM_ROUND_F64));
    const Vd a = vd_fma(k, vd_all(-0x1.921fb54442cp+0), x), w = _mm512_mul_pd(k, vd_all(0x1.18469898cc4p-44));
    const Vd r = _mm512_sub_pd(a, w), lost = _mm512_sub_pd(_mm512_sub_pd(a, r), w);
    *n = _mm512_castpd_si512(t);
    *low = vd_fma(k, vd_all(-0x1.1701b839a252p-88), lost);
    return r;
}

/* As vm_sin_poly_f64 */
VM_FN Vd vd_sin_poly(Vd r, Vd low, Vd *cosine)
{
    const Vd z = _mm512_mul_pd(r, r), h = _mm512_mul_pd(z, vd_all(.5)), one = _mm512_sub_pd(vd_all(1), h);
    Vd p = vd_fmac(vd_all(0x1.5d8f990cd0be8p-33), z, -0x1.ae5e59d398634p-26);
    p = vd_fmac(p, z, 0x1.71de3566e7e0ap-19);
    p = vd_fmac(p, z, -0x1.a01a019bfce8p-13);
    p = vd_fmac(p, z, 0x1.111111110f7c8p-7);
    p = vd_fmac(p, z, -0x1.5555555555548p-3);
    Vd q = vd_fmac(vd_all(-0x1.8fa45b5a41e7dp-37), z, 0x1.1ee9d73eaf326p-29);
    q = vd_fmac(q, z, -0x1.27e4f7ea1b30bp-22);
    q = vd_fmac(q, z, 0x1.a01a019c836afp-16);
    q = vd_fmac(q, z, -0x1.6c16c16c14f88p-10);
    q = vd_fmac(q, z, 0x1.555555555554bp-5);
    const Vd lost = _mm512_sub_pd(_mm512_sub_pd(vd_all(1), one), h);
    *cosine = _mm512_add_pd(one, vd_fma(_mm512_mul_pd(z, z), q, _mm512_fnmadd_pd(r, low, lost)));
    const Vd rest = vd_fma(_mm512_mul_pd(r, z), p, _mm512_mul_pd(low, one));
    return _mm512_mask_add_pd(r, _mm512_cmp_pd_mask(r, vd_all(0), _CMP_NEQ_UQ), r, rest);
}

VM_FN Vd vd_any_sin(Vd x, int quarters)
{
    __m512i n;
    Vd low, r = vd_trig_reduce(x, &n, &low), c, s = vd_sin_poly(r, low, &c);
    n = quarters ? _mm512_add_epi64(n, _mm512_set1_epi64(1)) : n;
    const Vd y = _mm512_mask_mov_pd(s, _mm512_test_epi64_mask(n, _mm512_set1_epi64(1)), c);
    const __m512i minus = _mm512_and_si512(_mm512_slli_epi64(n, 62), _mm512_set1_epi64(INT64_MIN));
    return _mm512_castsi512_pd(_mm512_xor_si512(_mm512_castpd_si512(y), minus));
}
VM_FN Vd vd_sin(Vd x) /* .77 ulp */ { return vd_any_sin(x, 0); }
VM_FN Vd vd_cos(Vd x) /* .75 ulp */ { return vd_any_sin(x, 1); }

/* a / b of normal numbers, by an inverse of 14 bits and two of Newton's steps */
VM_FN Vd vd_divide(Vd a, Vd b)
{
    Vd y = _mm512_rcp14_pd(b);
    y = vd_fma(y, _mm512_fnmadd_pd(b, y, vd_all(1)), y);
    y = vd_fma(y, _mm512_fnmadd_pd(b, y, vd_all(1)), y);
    const Vd q = _mm512_mul_pd(a, y);
    return vd_fma(_mm512_fnmadd_pd(q, b, a), y, q);
}

VM_FN Vd vd_tan(Vd x) /* 2.1 ulp */
{
    __m512i n;
    Vd low, r = vd_trig_reduce(x, &n, &low), c, s = vd_sin_poly(r, low, &c);
    const __mmask8 odd = _mm512_test_epi64_mask(n, _mm512_set1_epi64(1));
    const Vd up = _mm512_mask_mov_pd(s, odd, c), down = _mm512_mask_sub_pd(c, odd, vd_all(0), s);
    return _mm512_mask_mov_pd(vd_divide(up, down), _mm512_cmp_pd_mask(x, vd_all(0), _CMP_EQ_OQ), x);
}

#define VD_STEP_Z(c) p = vd_fmac(p, z, c);
#define VD_STEP_EVEN(c) p = vd_fmac(p, z2, c);
#define VD_STEP_ODD(c) q = vd_fmac(q, z2, c);

/* As vm_angle_f64 of |x| to 1 */
VM_FN Vd vd_atan(Vd x) /* 1.34 ulp */
{
    const Vd one = vd_all(1), a = _mm512_min_pd(vd_all(0x1p60), vd_abs(x)), most = _mm512_max_pd(a, one),
             least = _mm512_min_pd(a, one);
    const __mmask8 whole = _mm512_cmp_pd_mask(least, _mm512_mul_pd(most, vd_all(.6875)), _CMP_GT_OQ);
    const __mmask8 half =
        _mm512_cmp_pd_mask(least, _mm512_mul_pd(most, vd_all(0.41421356237309504880)), _CMP_GT_OQ);
    const Vd c = _mm512_mask_mov_pd(_mm512_maskz_mov_pd(half, vd_all(.5)), whole, one);
    const Vd high = _mm512_mask_mov_pd(_mm512_maskz_mov_pd(half, vd_all(0x1.dac670561bb4fp-2)), whole,
                                       vd_all(0x1.921fb54442d18p-1));
    const Vd low = _mm512_mask_mov_pd(_mm512_maskz_mov_pd(half, vd_all(0x1.a2b7f222f65e2p-56)), whole,
                                      vd_all(0x1.1a62633145c07p-55));
    const Vd t = vd_divide(_mm512_fnmadd_pd(c, most, least), vd_fma(c, least, most)), z = _mm512_mul_pd(t, t);
    const Vd z2 = _mm512_mul_pd(z, z);
    Vd p = vd_all(0), q = vd_all(0);
    VM_ATAN_TERMS(VD_STEP_EVEN, VD_STEP_ODD)
    p = vd_fma(q, z, p);
    p = _mm512_add_pd(vd_fma(_mm512_mul_pd(t, z), p, t), low);
    const Vd y = _mm512_add_pd(high, p), rest = _mm512_sub_pd(y, vd_all(0x1.1a62633145c07p-54));
    const Vd angle =
        _mm512_mask_sub_pd(y, _mm512_cmp_pd_mask(a, one, _CMP_GT_OQ), vd_all(0x1.921fb54442d18p+0), rest);
    return vd_sign(_mm512_mask_mov_pd(angle, _mm512_cmp_pd_mask(x, x, _CMP_UNORD_Q), x), x);
}

/* erf(a) / a about a = i 25/64 as a polynomial in what is left, a coefficient a row, 2^-58 */
static const double vd_erf_table[13][16] = {
    { 0x1.20dd750429b6dp0, 0x1.12d24bc6062e5p0, 0x1.deec15b73431ep-1, 0x1.8a531a3e30825p-1,
      0x1.3ecaa33f522dbp-1, 0x1.04a37e830d0fdp-1, 0x1.b48171fa3c2d6p-2, 0x1.76733dfbbc047p-2,
      0x1.47ad3ff3018a1p-2, 0x1.23455ae0dacafp-2, 0x1.0624dc9d97a75p-2, 0x1.dca01dc032743p-3,
      0x1.b4e81b4e42575p-3, 0x1.934c67f9b19ccp-3, 0x1.767dce434a96cp-3, 0x1.5d867c3ece2a4p-3 },
    { 0x1.63796df1d1b3ap-61, -0x1.12cbe5a81994p-2, -0x1.a6b699a8ef00dp-2, -0x1.a7419a5ad97f5p-2,
      -0x1.57b0546a60744p-2, -0x1.fbb489b5025fcp-3, -0x1.706d7a7f21853p-3, -0x1.1167b7d8d1368p-3,
      -0x1.a35763ed2ef1bp-4, -0x1.4b655c5492397p-4, -0x1.0c6f672696d8bp-4, -0x1.bbb1e8132e3fdp-5,
      -0x1.74d3b7b0c35f8p-5, -0x1.3dacd314d5604p-5, -0x1.11e9ea3fd8303p-5, -0x1.dd37f5698c27dp-6 },
    { -0x1.812746b0379eap-2, -0x1.2076eb8b2301cp-2, -0x1.5a1b4cb822335p-4, 0x1.1221a8910064fp-4,
      0x1.dd90d7f64a955p-4, 0x1.a20126cd8c7d3p-4, 0x1.275fa5dd048ap-4, 0x1.8ab85d7a6a67fp-5,
      0x1.0bd914bd58695p-5, 0x1.78f9c4a5a0676p-6, 0x1.12df8d0b0abf3p-6, 0x1.9d0a0ff181161p-7,
      0x1.3e254d8c41262p-7, 0x1.f475e09702ccfp-8, 0x1.90b25822c0f2p-8, 0x1.45c7fe3bc3a42p-8 },
    { 0x1.563fc98c430a6p-46, 0x1.2ca8a2a412ad8p-3, 0x1.53b4c8907e79ap-3, 0x1.5ba070e2ef3cbp-4,
      0x1.b93e7c53a0de6p-8, -0x1.8af9035b5a9e8p-6, -0x1.8c0fa554b1d9cp-6, -0x1.0ee8955f5395p-6,
      -0x1.52a6a0f70fd24p-7, -0x1.ac338b87282dap-8, -0x1.196d1c8794829p-8, -0x1.807f831715415p-9,
      -0x1.0f7bf56bf2f49p-9, -0x1.8a3576ffde28ep-10, -0x1.2514bb567effdp-10, -0x1.bcccca634cea5p-11 },
    { 0x1.ce2f21a02f71p-4, 0x1.e567df70816a8p-5, -0x1.f4c2fe8c16ca2p-6, -0x1.ee6691fdd11b9p-5,
      -0x1.1fc543a29962fp-5, -0x1.c0e12cf278da7p-8, 0x1.0eebc4862d315p-8, 0x1.38e77479619c7p-8,
      0x1.9a16385abaf63p-9, 0x1.e29b34bc53c4ep-10, 0x1.1fdc2e34bef9dp-10, 0x1.65e694f6f1aa4p-11,
      0x1.cf54ab947dc62p-12, 0x1.3683e53074643p-12, 0x1.acbc50ccf62cfp-13, 0x1.2fa66d7d48184p-13 },
    { 0x1.4afd63707db88p-35, -0x1.8400723d10cf4p-5, -0x1.1ea2cb9b82157p-5, 0x1.a9b2cb297c817p-9,
      0x1.1c123f645f173p-6, 0x1.49931ae678ea8p-7, 0x1.0ceddeae3f34dp-9, -0x1.64a3eec2ca776p-11,
      -0x1.ac1cef138a58fp-11, -0x1.0758c81b845aap-11, -0x1.24fa4258e8174p-12, -0x1.4cf8b8e2ab4b4p-13,
      -0x1.8b5c04e7cf92bp-14, -0x1.e92e12810abafp-15, -0x1.3996e67759dd6p-15, -0x1.9e9567b6a44ecp-16 },
    { -0x1.b82ce3f58abf6p-6, -0x1.11bf2f7ed1e43p-7, 0x1.ffd1ffc35ef7ap-7, 0x1.a556b445160fcp-7,
      -0x1.a16d4f83ab603p-13, -0x1.19952110c3e38p-8, -0x1.217210dcdb3a4p-9, -0x1.9203d176c6086p-12,
      0x1.e8e1d6df06378p-14, 0x1.00e9f26d36e71p-13, 0x1.240c0ac0ed58dp-14, 0x1.34f2ea8ba0b81p-15,
      0x1.514854715948fp-16, 0x1.81514b88e344p-17, 0x1.cabc7f168b60cp-18, 0x1.1b05bca103e6ep-18 },
    { 0x1.9f5b9b5bda1b7p-27, 0x1.68d59922bf33dp-7, 0x1.10d7a18e9c5bcp-8, -0x1.35204dd719847p-8,
      -0x1.cc70251a612b3p-9, 0x1.582b10255c34fp-13, 0x1.e5a3e7947fa58p-11, 0x1.8ec8675382f9dp-12,
      0x1.9271cf47faa3p-15, -0x1.46b7fb90c9e49p-16, -0x1.0e55bbca5b701p-16, -0x1.1b5fede817834p-17,
      -0x1.1f639b0452ad8p-18, -0x1.2f7b5cb0bd3d5p-19, -0x1.4f88085455344p-20, -0x1.826b7d3743192p-21 },
    { 0x1.5659c8b3fdd7cp-8, 0x1.3825fec521509p-11, -0x1.f1a7df0608b5dp-9, -0x1.2f3f7ba5b9702p-10,
      0x1.5df82ecefda6dp-10, 0x1.7d4463d5fe534p-11, -0x1.a4908bc1b190fp-14, -0x1.5fcbfa45bc84ap-13,
      -0x1.ab7414152858dp-15, -0x1.e4174590d3f58p-19, 0x1.7fdba9e98bf7dp-19, 0x1.f23aa6aefab49p-20,
      0x1.e71cdf6f7ac78p-21, 0x1.ddd66290d9e1ap-22, 0x1.ead1f569353b5p-23, 0x1.07cbb2caf8b5fp-23 },
    { 0x1.b3419504a4eecp-21, -0x1.06d9b17c73575p-9, -0x1.b0f621b8af75ep-14, 0x1.25a4c9a3828bep-10,
      0x1.65b2f6c109f6fp-13, -0x1.588a7d6bf308p-12, -0x1.c3f75f48e6182p-14, 0x1.0d1caca28e286p-15,
      0x1.9a3f5371d500bp-16, 0x1.5bc9699faf962p-18, 0x1.1ae59e01fba1cp-25, -0x1.7a02e191be174p-22,
      -0x1.944e321c93bbfp-23, -0x1.7762769c946dep-24, -0x1.66efedea3dec1p-25, -0x1.682a2b3d8960ap-26 },
    { -0x1.c211b4f81b365p-11, 0x1.c958c7c54c5b1p-15, 0x1.4cecac1193aa5p-11, -0x1.144a4cab12dadp-14,
      -0x1.1801ba65bcd2ep-12, 0x1.cfff961667724p-18, 0x1.0cd18d41965c8p-14, 0x1.3a784328926f3p-17,
      -0x1.b9e6ecf729d85p-18, -0x1.73e22f02192a3p-19, -0x1.9989423312248p-22, 0x1.18bc5dafe2d27p-25,
      0x1.37f278935278ap-25, 0x1.245da12d7fc48p-26, 0x1.0650478f9a6fdp-27, 0x1.ebb96da83c264p-29 },
    { 0x1.497a879fc463ep-17, 0x1.359c1ce30c2a9p-12, -0x1.253de82df903p-14, -0x1.41e9231899ee2p-13,
      0x1.86a8010372756p-15, 0x1.8527008b824e4p-15, -0x1.517e591834b32p-17, -0x1.32074ce8a78cfp-17,
      0x1.58be94b558e8fp-26, 0x1.f46abe4837c8ep-21, 0x1.02281182520fbp-22, 0x1.40ae9d948a14bp-26,
      -0x1.68dfcbeb5a053p-28, -0x1.ba38f242a88e9p-29, -0x1.7fbe0c30de1eep-30, -0x1.50d195d3f7475p-31 },
    { 0x1.c271f1c3fd3d7p-14, -0x1.b7828dc61e315p-16, -0x1.4b15cc0faba8ep-14, 0x1.3eba79ed52fe7p-15,
      0x1.a2ed845ea7d7ap-16, -0x1.02777f1acd1dap-16, -0x1.4ada3ba441e7cp-18, 0x1.690890214bfeap-19,
      0x1.ccf289c26f129p-21, -0x1.46992ac84e047p-23, -0x1.99af6f935c4cap-24, -0x1.04b571981a2c8p-26,
      -0x1.db50aaef2f8e6p-33, 0x1.291fc75c5029bp-31, 0x1.1432d28f6b114p-32, 0x1.cb5a504f9a816p-34 }
};

static const double vd_erf_low[16] = { 0x1.1ae1ffc0db7f5p-56,  0x1.ec2ce1fe3b15dp-54,  -0x1.b638578223544p-56,
                                       -0x1.293aa0efb00f8p-57, 0x1.f40591abd6b29p-55,  0x1.b278ac9a3c22bp-56,
                                       0x1.c414300673f67p-59,  -0x1.fdd3a27674721p-58, -0x1.232668fc540e2p-56,
                                       0x1.0e7b989a1df42p-59,  -0x1.24c70fc7b9a28p-57, 0x1.8c34772edbadfp-60,
                                       -0x1.fb67b9ee2dbd2p-58, -0x1.25f7b0b67bc81p-59, 0x1.566465226d53fp-57,
                                       0x1.f355515b47237p-57 }; /* what the first row lacks */

VM_FN Vd vd_erf(Vd x) /* .9 ulp */
{
    const Vd a = _mm512_min_pd(vd_all(6), vd_abs(x)), round = vd_all(VM_ROUND_F64);
    const Vd t = vd_fma(a, vd_all(2.56), round), d = vd_fma(_mm512_sub_pd(t, round), vd_all(-.390625), a);
    const __m512i i = _mm512_castpd_si512(t);
    const Vd d2 = _mm512_mul_pd(d, d);
    Vd p = vd_pick(vd_erf_table[11], i), q = vd_pick(vd_erf_table[12], i);
    UNROLL_TABLE for (int k = 9; k > 0; k -= 2)
    {
        p = vd_fma(p, d2, vd_pick(vd_erf_table[k], i));
        q = vd_fma(q, d2, vd_pick(vd_erf_table[k + 1], i));
    }
    p = vd_fma(q, d, p);
    const Vd first = vd_pick(vd_erf_table[0], i), v = _mm512_mul_pd(a, first);
    const Vd low = vd_fma(a, vd_fma(p, d, vd_pick(vd_erf_low, i)), _mm512_fmsub_pd(a, first, v));
    const Vd y = _mm512_min_pd(vd_all(1), _mm512_add_pd(v, low));
    return vd_sign(_mm512_mask_mov_pd(y, _mm512_cmp_pd_mask(x, x, _CMP_UNORD_Q), x), x);
}

/* As vm_erfc_f64, by one inverse, and the power of two comes last. */
VM_FN Vd vd_erfc(Vd x) /* 3.9 ulp */
{
    const Vd a = vd_abs(x), b = _mm512_min_pd(vd_all(28), a), z = _mm512_mul_pd(b, b);
    const Vd wide = vd_fma(vd_all(2), b, vd_all(1)), more = _mm512_add_pd(b, vd_all(4));
    const Vd inverse = vd_divide(vd_all(1), _mm512_mul_pd(wide, more));
    const Vd t = _mm512_mul_pd(_mm512_mul_pd(_mm512_sub_pd(b, vd_all(4)), wide), inverse);
    const Vd z2 = _mm512_mul_pd(t, t);
    Vd p = vd_all(0), q = vd_all(0);
    VM_ERFC_TERMS(VD_STEP_EVEN, VD_STEP_ODD)
    p = vd_fma(q, t, p);
    const Vd m = vd_fmac(z, vd_all(-0x1.71547652b82fep+0), VD_SIXTEENTHS),
             n = _mm512_sub_pd(m, vd_all(VD_SIXTEENTHS));
    const Vd r = _mm512_sub_pd(vd_exp_rest(_mm512_sub_pd(vd_all(0), z), n), _mm512_fmsub_pd(b, b, z));
    const Vd e = vd_exp_part(_mm512_castpd_si512(m), r);
    p = _mm512_mul_pd(p, e);
    Vd y = _mm512_mul_pd(p, _mm512_mul_pd(inverse, more));
    y = _mm512_scalef_pd(vd_fma(_mm512_fnmadd_pd(y, wide, p), _mm512_mul_pd(inverse, more), y), n);
    y = _mm512_mask_sub_pd(y, _mm512_cmp_pd_mask(x, vd_all(0), _CMP_LT_OQ), vd_all(2), y);
    const __mmask8 small = _mm512_cmp_pd_mask(a, vd_all(.5), _CMP_LT_OQ);
    if (!small) return y;
    p = vd_all(0);
    VM_ERF_TERMS(VD_STEP_Z)
    return _mm512_mask_mov_pd(y, small, _mm512_fnmadd_pd(x, p, vd_all(1)));
}

/* ---- powers ------------------------------------------------------------------------------------ */

/* log x, x > 0, as the returned number and *rest: vd_log_parts with sums of two doubles, by 2^-64.
 * log(1 + r) = r - r^2 / 2 + r^3 p, r^3 p by 2^-71 */
VM_FN Vd vd_log_long(Vd x, Vd *rest)
{
    const Vd m = _mm512_getmant_pd(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan), k = _mm512_getexp_pd(x);
    const __m512i i = _mm512_srli_epi64(_mm512_castpd_si512(m), 48);
    const Vd c = _mm512_permutex2var_pd(_mm512_cvtps_pd(_mm256_loadu_ps(vm_log_c)), i,
                                        _mm512_cvtps_pd(_mm256_loadu_ps(vm_log_c + 8)));
    const Vd w = _mm512_mul_pd(m, c), r = _mm512_sub_pd(w, vd_all(1)), r_low = _mm512_fmsub_pd(m, c, w);
    const Vd z = _mm512_mul_pd(r, r), z_low = _mm512_fmsub_pd(r, r, z), half = vd_all(-.5);
    const Vd s = _mm512_fmadd_pd(half, z, r), s_low = _mm512_fmadd_pd(half, z, _mm512_sub_pd(r, s));
    Vd p = vd_fmac(vd_all(0x1.11a14a10e9c76p-4), z, 0x1.748011b7cdbe8p-4);
    p = vd_fmac(p, z, 0x1.c71c685ec4c2fp-4);
    p = vd_fmac(p, z, 0x1.24924924f6eabp-3);
    p = vd_fmac(p, z, 0x1.99999999999aep-3);
    p = vd_fmac(p, z, 0x1.5555555555555p-2);
    Vd q = vd_fmac(vd_all(-0x1.5471d53aa092dp-4), z, -0x1.999b27dddd245p-4);
    q = vd_fmac(q, z, -0x1.ffffff6111a46p-4);
    q = vd_fmac(q, z, -0x1.55555555619e3p-3);
    q = vd_fmac(q, z, -0x1.ffffffffffff6p-3);
    p = _mm512_fmadd_pd(q, r, p);
    Vd low = _mm512_fmadd_pd(half, z_low, _mm512_fmadd_pd(r_low, _mm512_sub_pd(z, r), r_low));
    low = _mm512_fmadd_pd(_mm512_mul_pd(r, z), p, _mm512_add_pd(low, s_low));
    const Vd high = _mm512_fmadd_pd(k, vd_all(0x1.62e42fefa2000p-1), vd_pick(vd_log_e.high, i));
    const Vd l = _mm512_add_pd(high, s), l_low = _mm512_add_pd(_mm512_sub_pd(high, l), s);
    const Vd table = _mm512_fmadd_pd(k, vd_all(0x1.9ef35793c7673p-41), vd_pick(vd_log_e.low, i));
    low = _mm512_add_pd(low, _mm512_add_pd(l_low, table));
    const Vd y = _mm512_add_pd(l, low);
    *rest = _mm512_sub_pd(low, _mm512_sub_pd(y, l));
    return y;
}

/* e^(y log x); *hard are lanes where x is not positive, or the result beyond e^-150 ... e^150, where the
 * error of the logarithm, times y, is more than one ulp. */
VM_FN Vd vd_pow(Vd x, Vd y, __mmask8 *hard) /* .9 ulp */
{
    Vd l_low, l = vd_log_long(x, &l_low);
    const Vd e = _mm512_mul_pd(y, l), e_low = _mm512_fmadd_pd(y, l_low, _mm512_fmsub_pd(y, l, e));
    const Vd round = vd_all(VM_ROUND_F64),
             n = _mm512_sub_pd(_mm512_fmadd_pd(e, vd_all(0x1.71547652b82fep+0), round), round);
    const Vd t = _mm512_fmadd_pd(n, vd_all(-0x1.62e42fefa2000p-1), e);
    const Vd t_low = _mm512_fmadd_pd(n, vd_all(-0x1.9ef35793c7673p-41), e_low), r = _mm512_add_pd(t, t_low);
    const Vd z = _mm512_mul_pd(r, r);
    Vd p = vd_fmac(vd_all(0x1.28ad9bb25afcbp-22), z, 0x1.a01999e22ec09p-16);
    p = vd_fmac(p, z, 0x1.6c16c18438c42p-10);
    p = vd_fmac(p, z, 0x1.555555555083ep-5);
    p = vd_fmac(p, z, 0x1.000000000000ap-1);
    Vd q = vd_fmac(vd_all(0x1.ad7f3f6335839p-26), z, 0x1.71df25b375c97p-19);
    q = vd_fmac(q, z, 0x1.a01a012a0e69bp-13);
    q = vd_fmac(q, z, 0x1.1111111127d14p-7);
    q = vd_fmac(q, z, 0x1.55555555554f9p-3);
    p = _mm512_fmadd_pd(q, r, p);
    const Vd part = _mm512_add_pd(t, _mm512_fmadd_pd(z, p, t_low));
    *hard = _mm512_cmp_pd_mask(_mm512_abs_pd(e), vd_all(150), _CMP_NLT_UQ);
    return _mm512_scalef_pd(_mm512_add_pd(vd_all(1), part), n);
}

#endif
