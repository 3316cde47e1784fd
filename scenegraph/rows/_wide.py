"""Vector code of functions in double precision; as `_mathematics`, which has them in single.

**Source:** ranges and polynomials of S. Moshier's Cephes library, unless a function says otherwise.
"""

import math
from collections.abc import Callable

from ._mathematics import (
    angle_of,
    constant,
    erf_inv_wide,
    integers,
    Number,
    polynomial,
    power_of_two,
)


def exp(x: Number) -> Number:
    # x = n log 2 + r with |r| <= log(2) / 2; exp r = 1 + 2 r P(r^2) / (Q(r^2) - r P(r^2)).
    bounded = x.like(-746.0).where(x.compare("<", -746.0), x)
    bounded = x.like(710.0).where(x.compare(">", 710.0), bounded)
    n = (bounded * 1.4426950408889634).call("rint")
    r = bounded - n * 6.93145751953125e-1 - n * 1.42860682030941723212e-6
    z = r * r
    above = [1.26177193074810590878e-4, 3.02994407707441961300e-2, 9.99999999999999999910e-1]
    below = [3.00198505138664455042e-6, 2.52448340349684104192e-3, 2.27265548208155028766e-1, 2.0]
    p = r * polynomial(z, above)
    value = (p / (polynomial(z, below) - p)) * 2.0 + 1.0
    value = power_of_two(value, n.truncated())
    return x.like(math.inf).where(x.compare(">", 709.782712893384), value)


def log(x: Number) -> Number:
    # x = 2^n m with sqrt(1/2) <= m < sqrt(2), s = (m - 1) / (m + 1):
    # log x = n log 2 + 2 (s + s^3 / 3 + s^5 / 5 + ...).
    b, kind = x.builder, integers(x.value.type)
    tiny = x.compare("<", 2.2250738585072014e-308)
    bits = (x * 2.0**54).where(tiny, x).bits()
    n = b.sub(b.lshr(bits, constant(kind, 52)), constant(kind, 1022))
    mantissa = b.and_(bits, constant(kind, 2**52 - 1))
    m = x.of_bits(b.or_(mantissa, constant(kind, 1022 * 2**52)))
    low = m.compare("<", math.sqrt(0.5))
    n = x.of_integer(n) - x.like(54.0).where(tiny, 0.0) - x.like(1.0).where(low, 0.0)
    f = (m + m).where(low, m) - 1.0
    s = f / (f + 2.0)
    z = s * s
    # 2 s = f - s f, which is exact but for s f.
    series = z * polynomial(z, [2 / k for k in range(23, 1, -2)])
    value = f - (s * (f - series) - n * 1.9082149292705877e-10)
    value = value + n * 0.6931471803691238
    value = x.where(x.compare("==", math.inf), value)
    value = x.like(-math.inf).where(x.compare("==", 0.0), value)
    return x.like(math.nan).where(x.builder.or_(x.compare("<", 0.0), x.is_nan()), value)


def logistic(x: Number) -> Number:
    return 1.0 / (1.0 + exp(-x))


def tanh(x: Number) -> Number:
    # 1 - 2 / (exp(2 |x|) + 1); near zero x + x^3 P(x^2) / Q(x^2).
    size, z = x.call("fabs"), x * x
    above = [-9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3]
    below = [1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3]
    near = x * z * (polynomial(z, above) / polynomial(z, [1.0, *below])) + x
    far = (1.0 - 2.0 / (exp(size * 2.0) + 1.0)).call("copysign", x)
    return near.where(size.compare("<", 0.625), far)


def _turned(x: Number, quarter: int) -> Number:
    """Computes the sine of x + quarter pi / 2."""
    # x = n pi / 2 + r, with pi / 2 as a sum of three numbers.
    b, kind = x.builder, integers(x.value.type)
    n = (x * (2 / math.pi)).call("rint")
    r = x - n * 1.5707962512969971 - n * 7.549789415861596e-8 - n * 5.390302858158119e-15
    z = r * r
    sine = [1.58962301576546568060e-10, -2.50507477628578072866e-8, 2.75573136213857245213e-6]
    sine += [-1.98412698295895385996e-4, 8.33333333332211858878e-3, -1.66666666666666307295e-1]
    cosine = [-1.13585365213876817300e-11, 2.08757008419747316778e-9, -2.75573141792967388112e-7]
    cosine += [2.48015872888517045348e-5, -1.38888888888730564116e-3, 4.16666666666665929218e-2]
    odd_value = polynomial(z, cosine) * (z * z) - 0.5 * z + 1.0
    even_value = polynomial(z, sine) * z * r + r
    turns = b.add(n.truncated(), constant(kind, quarter))
    odd = b.icmp_signed("!=", b.and_(turns, constant(kind, 1)), constant(kind, 0))
    flip = b.shl(b.and_(turns, constant(kind, 2)), constant(kind, 62))
    value = odd_value.where(odd, even_value)
    return x.of_bits(b.xor(value.bits(), flip))


def sin(x: Number) -> Number:
    return _turned(x, 0)


def cos(x: Number) -> Number:
    return _turned(x, 1)


def tan(x: Number) -> Number:
    return sin(x) / cos(x)


# (atan(r) / r - 1) / r^2 for r up to tan(pi / 8), interpolated at Chebyshev's points.
_ATAN = [-0.013905374525048308116, 0.030622995545065763979, -0.041038875464525538257]
_ATAN += [0.047192591881298325043, -0.052580202726370955901, 0.058819230561117212396]
_ATAN += [-0.066666418691310002144, 0.076923067291948870746, -0.090909090668160805626]
_ATAN += [0.11111111110751481032, -0.142857142857114906, 0.19999999999999991448]
_ATAN += [-0.33333333333333333329]


def atan(x: Number) -> Number:
    return atan2(x, x.like(1.0))


def atan2(y: Number, x: Number) -> Number:
    return angle_of(y, x, _ATAN, 6.123233995736766e-17)


def asin(x: Number) -> Number:
    return atan2(x, ((1.0 - x) * (1.0 + x)).call("sqrt"))


def acos(x: Number) -> Number:
    return atan2(((1.0 - x) * (1.0 + x)).call("sqrt"), x)


def erf(x: Number) -> Number:
    # x T(x^2) / U(x^2); from one on 1 - exp(-x^2) P(|x|) / Q(|x|).
    size = x.call("fabs")
    bounded = size.like(7.0).where(size.compare(">", 7.0), size)
    z = x * x
    near = x * (polynomial(z, _ERF[0]) / polynomial(z, _ERF[1]))
    tail = exp(-(bounded * bounded)) * (polynomial(bounded, _ERF[2]) / polynomial(bounded, _ERF[3]))
    value = near.where(size.compare("<", 1.0), (1.0 - tail).call("copysign", x))
    return x.where(x.is_nan(), value)


_ERF = (
    [9.60497373987051638749, 9.00260197203842689217e1, 2.23200534594684319226e3]
    + [7.00332514112805075473e3, 5.55923013010394962768e4],
    [1.0, 3.35617141647503099647e1, 5.21357949780152679795e2, 4.59432382970980127987e3]
    + [2.26290000613890934246e4, 4.92673942608635921086e4],
    [2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687]
    + [4.86371970985681366614e1, 1.96520832956077098242e2, 5.26445194995477358631e2]
    + [9.34528527171957607540e2, 1.02755188689515710272e3, 5.57535335369399327526e2],
    [1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2]
    + [9.75708501743205489753e2, 1.82390916687909736289e3, 2.24633760818710981792e3]
    + [1.65666309194161350182e3, 5.57535340817727675546e2],
)


def erf_inv(x: Number) -> Number:
    # -log(1 - x^2) = -log((1 - x) (1 + x)); near zero by its series.
    z = x * x
    near = z * polynomial(z, [1 / k for k in range(9, 0, -1)])
    far = -log((1.0 - x) * (1.0 + x))
    return erf_inv_wide(x, near.where(z.compare("<", 0.01), far))


def cbrt(x: Number) -> Number:
    # A third of the exponent's bits, then Newton's steps for y^3 = |x|.
    b, size = x.builder, x.call("fabs")
    kind = integers(x.value.type)
    tiny = size.compare("<", 1e-290)
    size = (size * 2.0**60).where(tiny, size)
    # By a multiplication: LLVM divides vectors of integers number by number.
    third = b.mul(b.lshr(size.bits(), constant(kind, 32)), constant(kind, 0x55555556))
    third = b.lshr(third, constant(kind, 32))
    y = size.of_bits(b.shl(b.add(third, constant(kind, 715094163)), constant(kind, 32)))
    for _ in range(4):
        y = y - (y - size / (y * y)) * (1 / 3)
    y = (y * 2.0**-20).where(tiny, y)
    same = b.or_(x.compare("==", 0.0), b.not_(x.call("fabs").compare("<", math.inf)))
    return x.where(same, y.call("copysign", x))


FUNCTIONS_WIDE: dict[str, Callable[..., Number]] = {
    "acos": acos,
    "asin": asin,
    "atan": atan,
    "atan2": atan2,
    "cbrt": cbrt,
    "cos": cos,
    "erf": erf,
    "erf_inv": erf_inv,
    "exp": exp,
    "log": log,
    "logistic": logistic,
    "sin": sin,
    "tan": tan,
    "tanh": tanh,
}
