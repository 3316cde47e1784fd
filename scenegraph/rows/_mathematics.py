"""Vector code of the functions that processors lack, in single precision.

Each is written once, in arithmetic on `Number`s, and becomes code for one vector or one scalar of
rows. Errors are at most 4 units in the last place; special values are those of JAX. `_wide` has
them in double precision. For what is seldom used, the C library computes number by number.

**Source:** ranges and polynomials of S. Moshier's Cephes library, unless a function says otherwise.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from . import _assembly as ir


class Number:
    """A scalar or a vector of a function that is being written, with its arithmetic."""

    def __init__(self, builder: Any, value: Any):
        self.builder, self.value = builder, value

    def like(self, number: float) -> "Number":
        """Returns a constant of the same type."""
        return Number(self.builder, constant(self.value.type, number))

    def _other(self, x: Any) -> Any:
        return x.value if isinstance(x, Number) else constant(self.value.type, x)

    def __add__(self, x: Any) -> "Number":
        return Number(self.builder, self.builder.fadd(self.value, self._other(x), flags=FLAGS))

    def __sub__(self, x: Any) -> "Number":
        return Number(self.builder, self.builder.fsub(self.value, self._other(x), flags=FLAGS))

    def __rsub__(self, x: Any) -> "Number":
        return self.like(x) - self

    def __mul__(self, x: Any) -> "Number":
        return Number(self.builder, self.builder.fmul(self.value, self._other(x), flags=FLAGS))

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, x: Any) -> "Number":
        return Number(self.builder, self.builder.fdiv(self.value, self._other(x)))

    def __rtruediv__(self, x: Any) -> "Number":
        return self.like(x) / self

    def __neg__(self) -> "Number":
        return Number(self.builder, self.builder.fneg(self.value))

    def compare(self, sign: str, x: Any) -> Any:
        """Compares; false where one is NaN."""
        return self.builder.fcmp_ordered(sign, self.value, self._other(x))

    def is_nan(self) -> Any:
        """Returns where it is not a number."""
        return self.builder.fcmp_unordered("uno", self.value, self.value)

    def where(self, condition: Any, otherwise: Any) -> "Number":
        """Returns this number where a condition holds."""
        value = self.builder.select(condition, self.value, self._other(otherwise))
        return Number(self.builder, value)

    def call(self, name: str, *others: "Number") -> "Number":
        """Calls an intrinsic function of LLVM."""
        return Number(
            self.builder, intrinsic(self.builder, name, self.value, *(x.value for x in others))
        )

    def bits(self) -> Any:
        """Returns the number's bits as an integer."""
        return self.builder.bitcast(self.value, integers(self.value.type))

    def of_bits(self, bits: Any) -> "Number":
        """Returns the number of the same type that has these bits."""
        return Number(self.builder, self.builder.bitcast(bits, self.value.type))

    def truncated(self) -> Any:
        """Returns the integer below, in words as wide; zero for NaN."""
        return to_integer(self.builder, self.value, integers(self.value.type))

    def of_integer(self, integer: Any) -> "Number":
        """Returns an integer as a number of the same type."""
        return Number(self.builder, self.builder.sitofp(integer, self.value.type))

    def as_wide(self) -> "Number":
        """Returns the number in double precision."""
        return Number(
            self.builder,
            self.builder.fpext(self.value, same_shape(self.value.type, ir.DOUBLE)),
        )

    def as_narrow(self) -> "Number":
        """Returns the number in single precision."""
        return Number(
            self.builder,
            self.builder.fptrunc(self.value, same_shape(self.value.type, ir.FLOAT)),
        )


# Products and sums may be fused; nothing else is reordered.
FLAGS = ("contract",)


def same_shape(kind: Any, element: Any) -> Any:
    """Returns the type of as many elements of another type."""
    return ir.VectorType(element, kind.count) if isinstance(kind, ir.VectorType) else element


def element_of(kind: Any) -> Any:
    """Returns the type of the elements of a vector, or the type of a scalar."""
    return kind.element if isinstance(kind, ir.VectorType) else kind


def integers(kind: Any) -> Any:
    """Returns the type of integers that are as wide."""
    return same_shape(kind, ir.IntType(64 if element_of(kind) == ir.DOUBLE else 32))


def constant(kind: Any, number: Any) -> Any:
    """Returns a number as a constant of a type; the same one in all elements of a vector."""
    # Also of their type, because 1 and 1.0 are equal, and by their bits, because 0.0 and -0.0 are.
    sign = math.copysign(1, number)
    return _constant(kind, number if number == number else None, type(number), sign)


@functools.lru_cache(4096)
def _constant(kind: Any, number: Any, of: type, sign: float) -> Any:
    if number is None:
        number = math.copysign(math.nan, sign)
    if isinstance(kind, ir.VectorType):
        return ir.constant_of(kind, [constant(kind.element, number)] * kind.count)
    return ir.constant_of(kind, int(number) if isinstance(kind, ir.IntType) else float(number))


def intrinsic(builder: Any, name: str, *values: Any, result: Any = None) -> Any:
    """Calls an intrinsic function of LLVM; its name ends in the types of results and operands."""
    kinds = [values[0].type] if result is None else [result, values[0].type]
    name = ".".join(["llvm", name, *map(_suffix, kinds)])
    return builder.call(
        declared(builder.module, name, result or values[0].type, [x.type for x in values]), values
    )


def declared(module: Any, name: str, result: Any, operands: Sequence[Any]) -> Any:
    """Returns a function from elsewhere by its name."""
    return module.globals.get(name) or ir.Function(module, ir.FunctionType(result, operands), name)


def _suffix(kind: Any) -> str:
    if isinstance(kind, ir.VectorType):
        return f"v{kind.count}{_suffix(kind.element)}"
    return {"float": "f32", "double": "f64"}.get(str(kind), str(kind))


def to_integer(builder: Any, value: Any, kind: Any, *, signed: bool = True) -> Any:
    """Converts to the nearest integer towards zero that there is; NaN to zero."""
    return intrinsic(builder, "fptosi.sat" if signed else "fptoui.sat", value, result=kind)


def polynomial(x: Number, coefficients: Sequence[float]) -> Number:
    """Evaluates a polynomial, the coefficient of the highest power first."""
    total = x.like(coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total


def power_of_two(x: Number, exponent: Any) -> Number:
    """Returns x 2^n by the exponent's bits: twice a half of n, for the largest and the smallest."""
    b, kind = x.builder, integers(x.value.type)
    bias, shift = (1023, 52) if element_of(kind).width == 64 else (127, 23)
    half = b.ashr(exponent, constant(kind, 1))
    for part in (half, b.sub(exponent, half)):
        x = x * x.of_bits(b.shl(b.add(part, constant(kind, bias)), constant(kind, shift)))
    return x


def exp(x: Number) -> Number:
    # x = n log 2 + r with |r| <= log(2) / 2, and log 2 as a sum of two numbers.
    bounded = x.like(-104.0).where(x.compare("<", -104.0), x)
    bounded = x.like(89.0).where(x.compare(">", 89.0), bounded)
    n = (bounded * 1.44269504088896341).call("rint")
    r = bounded - n * 0.693359375 - n * -2.12194440e-4
    series = [1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1]
    value = polynomial(r, [*series, 5.0000001201e-1]) * (r * r) + r + 1.0
    return power_of_two(value, n.truncated())


def log(x: Number) -> Number:
    # x = 2^n m with sqrt(1/2) <= m < sqrt(2): log x = n log 2 + log m.
    b, kind = x.builder, integers(x.value.type)
    tiny = x.compare("<", 1.17549435e-38)
    bits = (x * 2.0**23).where(tiny, x).bits()
    n = b.sub(b.lshr(bits, constant(kind, 23)), constant(kind, 126))
    mantissa = b.and_(bits, constant(kind, 0x007FFFFF))
    m = x.of_bits(b.or_(mantissa, constant(kind, 0x3F000000)))
    low = m.compare("<", math.sqrt(0.5))
    n = x.of_integer(n) - x.like(23.0).where(tiny, 0.0) - x.like(1.0).where(low, 0.0)
    m = (m + m).where(low, m) - 1.0
    series = [7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1]
    series += [1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1]
    z = m * m
    value = polynomial(m, [*series, 3.3333331174e-1]) * m * z + n * -2.12194440e-4 - 0.5 * z
    value = m + value + n * 0.693359375
    value = x.where(x.compare("==", math.inf), value)
    value = x.like(-math.inf).where(x.compare("==", 0.0), value)
    return x.like(math.nan).where(x.builder.or_(x.compare("<", 0.0), x.is_nan()), value)


def log1p(x: Number) -> Number:
    # W. Kahan: log(u) x / (u - 1) with u = 1 + x as it is rounded.
    u = 1.0 + x
    value = log(u) * (x / (u - 1.0))
    value = u.where(u.compare("==", math.inf), value)
    value = log(u).where(u.compare("<=", 0.0), value)
    return x.where(u.compare("==", 1.0), value)


def expm1(x: Number) -> Number:
    # W. Kahan: (u - 1) x / log(u) with u = exp(x) as it is rounded.
    u = exp(x)
    value = (u - 1.0) * (x / log(u))
    value = u.where(x.compare(">", 80.0), value)
    value = x.like(-1.0).where(x.compare("<", -20.0), value)
    return x.where(u.compare("==", 1.0), value)


def logistic(x: Number) -> Number:
    return 1.0 / (1.0 + exp(-x))


def tanh(x: Number) -> Number:
    # (1 - e) / (1 + e) with e = exp(-2 |x|); near zero its series.
    size = x.call("fabs")
    e = exp(size * -2.0)
    z = x * x
    series = [-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1]
    near = polynomial(z, [*series, -3.33332819422e-1]) * z * x + x
    far = ((1.0 - e) / (1.0 + e)).call("copysign", x)
    return near.where(size.compare("<", 0.625), far)


def _turned(x: Number, quarter: int) -> Number:
    """Computes the sine of x + quarter pi / 2."""
    # x = n pi / 2 + r in double precision, with pi / 2 as a sum of three numbers.
    b, wide = x.builder, x.as_wide()
    n = (wide * (2 / math.pi)).call("rint")
    r = wide - n * 1.5707963267341256 - n * 6.0771005063039992e-11 - n * 2.0222662487959506e-21
    r = r.as_narrow()
    z, kind = r * r, integers(x.value.type)
    sine = polynomial(z, [-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1]) * z * r + r
    cosine = polynomial(z, [2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2])
    cosine = cosine * (z * z) - 0.5 * z + 1.0
    words = b.trunc(n.truncated(), kind)
    turns = b.add(words, constant(kind, quarter))
    odd = b.trunc(turns, same_shape(kind, ir.IntType(1)))
    flip = b.shl(b.and_(turns, constant(kind, 2)), constant(kind, 30))
    value = cosine.where(odd, sine)
    return x.of_bits(b.xor(value.bits(), flip))


def sin(x: Number) -> Number:
    return _turned(x, 0)


def cos(x: Number) -> Number:
    return _turned(x, 1)


def tan(x: Number) -> Number:
    return sin(x) / cos(x)


_ATAN = [8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1]


def atan(x: Number) -> Number:
    return atan2(x, x.like(1.0))


def atan2(y: Number, x: Number) -> Number:
    return angle_of(y, x, _ATAN, -4.371139e-8)


def angle_of(y: Number, x: Number, series: Sequence[float], rest: float) -> Number:
    """Computes an angle by a series of (atan(r) / r - 1) / r^2; `rest` is what pi / 2 lacks."""
    # The angle of the smaller coordinate over the larger, at most pi / 8 after another turn.
    b, a, c = y.builder, y.call("fabs"), x.call("fabs")
    steep = a.compare(">", c)
    small, large = c.where(steep, a), a.where(steep, c)
    t = small / large
    t = t.like(0.0).where(large.compare("==", 0.0), t)
    t = t.like(1.0).where(small.compare("==", math.inf), t)
    turned = t.compare(">", math.tan(math.pi / 8))
    # (t - 1) / (t + 1), of which t need not be rounded.
    r = (small - large) / (small + large)
    r = r.like(0.0).where(b.fcmp_ordered("==", small.value, large.value), r).where(turned, t)
    z = r * r
    angle = polynomial(z, series) * z * r + r
    angle = angle + r.like(rest / 2).where(turned, 0.0)
    angle = angle + r.like(math.pi / 4).where(turned, 0.0)
    angle = (rest - angle + math.pi / 2).where(steep, angle)
    zero = constant(integers(x.value.type), 0)
    behind = b.icmp_signed("<", x.bits(), zero)
    angle = (2 * rest - angle + math.pi).where(behind, angle).call("copysign", y)
    return x.like(math.nan).where(b.or_(x.is_nan(), y.is_nan()), angle)


_ASIN = [4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1]


def _near_zero(x: Number) -> Number:
    """Computes the arcus sine of a number of at most a half."""
    z = x * x
    return polynomial(z, _ASIN) * z * x + x


def asin(x: Number) -> Number:
    # asin(a) = pi / 2 - 2 asin(sqrt((1 - a) / 2))
    a = x.call("fabs")
    far = math.pi / 2 - 2.0 * _near_zero((0.5 * (1.0 - a)).call("sqrt"))
    return far.where(a.compare(">", 0.5), _near_zero(a)).call("copysign", x)


def acos(x: Number) -> Number:
    a = x.call("fabs")
    far = 2.0 * _near_zero((0.5 * (1.0 - a)).call("sqrt"))
    far = (math.pi - far).where(x.compare("<", 0.0), far)
    value = far.where(a.compare(">", 0.5), math.pi / 2 - _near_zero(x))
    return x.like(math.nan).where(a.compare(">", 1.0), value)


def power(x: Number, y: Number) -> Number:
    # |x|^y = 2^(y log2 |x|) in double precision, and its sign if y is an odd integer.
    b, size = x.builder, x.call("fabs")
    t = y.as_wide() * _log2_wide(size.as_wide())
    value = _exp2_wide(t).as_narrow()
    one = b.or_(y.compare("==", 0.0), size.compare("==", 1.0))
    value = value.like(1.0).where(b.and_(one, b.not_(x.is_nan())), value)
    value = value.like(1.0).where(y.compare("==", 0.0), value)
    whole = b.fcmp_ordered("==", y.call("floor").value, y.value)
    half = y * 0.5
    odd = b.and_(whole, b.fcmp_unordered("!=", half.call("floor").value, half.value))
    negative = b.icmp_signed("<", x.bits(), constant(integers(x.value.type), 0))
    value = (-value).where(b.and_(negative, odd), value)
    strange = b.and_(x.compare("<", 0.0), b.not_(whole))
    strange = b.and_(strange, x.compare(">", -math.inf))
    value = value.like(math.nan).where(strange, value)
    nan = b.or_(x.is_nan(), y.is_nan())
    ones = b.or_(y.compare("==", 0.0), x.compare("==", 1.0))
    return value.like(1.0).where(ones, value.like(math.nan).where(nan, value))


def _log2_wide(x: Number) -> Number:
    # x = 2^n m with sqrt(1/2) <= m < sqrt(2): log m = 2 (s + s^3 / 3 + ...), s = (m - 1) / (m + 1)
    b, kind = x.builder, integers(x.value.type)
    bits = x.bits()
    n = b.sub(b.lshr(bits, constant(kind, 52)), constant(kind, 1022))
    mantissa = b.and_(bits, constant(kind, 2**52 - 1))
    m = x.of_bits(b.or_(mantissa, constant(kind, 1022 * 2**52)))
    low = m.compare("<", math.sqrt(0.5))
    n = x.of_integer(n) - x.like(1.0).where(low, 0.0)
    m = (m + m).where(low, m)
    s = (m - 1.0) / (m + 1.0)
    series = [1 / k for k in range(15, 0, -2)]
    value = n + polynomial(s * s, series) * s * (2 / math.log(2))
    value = x.where(x.compare("==", math.inf), value)
    return x.like(-math.inf).where(x.compare("==", 0.0), value)


def log2(x: Number) -> Number:
    value = _log2_wide(x.as_wide()).as_narrow()
    wrong = x.builder.or_(x.compare("<", 0.0), x.is_nan())
    return x.like(math.nan).where(wrong, value)


def _exp2_wide(x: Number) -> Number:
    bounded = x.like(-1000.0).where(x.compare("<", -1000.0), x)
    bounded = x.like(1000.0).where(x.compare(">", 1000.0), bounded)
    n = bounded.call("rint")
    r = (bounded - n) * math.log(2)
    value = polynomial(r, [1 / math.factorial(k) for k in range(10, -1, -1)])
    return power_of_two(value, n.truncated())


def erf(x: Number) -> Number:
    # x P(x^2) / Q(x^2), in double precision; beyond 4 it is one to rounding. Coefficients: Eigen's
    # `generic_fast_erf`.
    size = x.call("fabs")
    bounded = x.like(4.0).call("copysign", x).where(size.compare(">", 4.0), x).as_wide()
    z = bounded * bounded
    above = [-2.72614225801306e-10, 2.77068142495902e-8, -2.10102402082508e-6]
    above += [-5.69250639462346e-5, -7.34990630326855e-4, -2.95459980854025e-3]
    below = [-1.45660718464996e-5, -2.13374055278905e-4, -1.68282697438203e-3]
    below += [-7.37332916720468e-3, -1.42647390514189e-2]
    quotient = polynomial(z, [*above, -1.60960333262415e-2]) / polynomial(z, below)
    return x.where(x.is_nan(), (bounded * quotient).as_narrow())


def cbrt(x: Number) -> Number:
    # In double precision: a third of the exponent's bits, then Newton's steps for y^3 = |x|.
    b, wide = x.builder, x.call("fabs").as_wide()
    kind = integers(wide.value.type)
    # By a multiplication: LLVM divides vectors of integers number by number.
    third = b.mul(b.lshr(wide.bits(), constant(kind, 32)), constant(kind, 0x55555556))
    third = b.lshr(third, constant(kind, 32))
    y = wide.of_bits(b.shl(b.add(third, constant(kind, 715094163)), constant(kind, 32)))
    for _ in range(3):
        y = y - (y - wide / (y * y)) * (1 / 3)
    value = y.as_narrow().call("copysign", x)
    same = b.or_(x.compare("==", 0.0), b.not_(x.call("fabs").compare("<", math.inf)))
    return x.where(same, value)


def erf_inv(x: Number) -> Number:
    # M. Giles 2010, "Approximating the erfinv function", in single precision.
    # 1 - x^2 = (1 - x) (1 + x), which loses nothing where x is almost one.
    size = x.call("fabs")
    w = -(log((1.0 - x) * (1.0 + x)).where(size.compare(">", 0.5), log1p(-(x * x))))
    near = polynomial(w - 2.5, _ERF_INV[0])
    far = polynomial(w.call("sqrt") - 3.0, _ERF_INV[1])
    value = near.where(w.compare("<", 5.0), far) * x
    return _at_ends(x, value)


def erf_inv_wide(x: Number, w: Number) -> Number:
    # The same in double precision, with w = -log(1 - x^2).
    root = w.call("sqrt")
    far = polynomial(root - 5.0, _ERF_INV_WIDE[2])
    middle = polynomial(root - 3.25, _ERF_INV_WIDE[1]).where(w.compare("<", 16.0), far)
    near = polynomial(w - 3.125, _ERF_INV_WIDE[0])
    return _at_ends(x, near.where(w.compare("<", 6.25), middle) * x)


def _at_ends(x: Number, value: Number) -> Number:
    """Returns infinities where x is one or minus one, and NaN beyond."""
    size = x.call("fabs")
    value = x.like(math.inf).call("copysign", x).where(size.compare("==", 1.0), value)
    return x.like(math.nan).where(size.compare(">", 1.0), value)


_ERF_INV = (
    [2.81022636e-8, 3.43273939e-7, -3.5233877e-6, -4.39150654e-6, 2.1858087e-4, -1.25372503e-3]
    + [-4.17768164e-3, 0.246640727, 1.50140941],
    [-2.00214257e-4, 1.00950558e-4, 1.34934322e-3, -3.67342844e-3, 5.73950773e-3, -7.6224613e-3]
    + [9.43887047e-3, 1.00167406, 2.83297682],
)
_ERF_INV_WIDE = (
    [-3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18]
    + [1.115787767802518096e-17, -1.333171662854620906e-16, 2.0972767875968561637e-17]
    + [6.6376381343583238325e-15, -4.0545662729752068639e-14, -8.1519341976054721522e-14]
    + [2.6335093153082322977e-12, -1.2975133253453532498e-11, -5.4154120542946279317e-11]
    + [1.051212273321532285e-9, -4.1126339803469836976e-9, -2.9070369957882005086e-8]
    + [4.2347877827932403518e-7, -1.3654692000834678645e-6, -1.3882523362786468719e-5]
    + [1.867342080340571352e-4, -7.4070253416626697512e-4, -6.0336708714301490533e-3]
    + [0.24015818242558961693, 1.6536545626831027356],
    [2.2137376921775787049e-9, 9.0756561938885390979e-8, -2.7517406297064545428e-7]
    + [1.8239629214389227755e-8, 1.5027403968909827627e-6, -4.013867526981545969e-6]
    + [2.9234449089955446044e-6, 1.2475304481671778723e-5, -4.7318229009055733981e-5]
    + [6.8284851459573175448e-5, 2.4031110387097893999e-5, -3.550375203628474796e-4]
    + [9.5328937973738049703e-4, -1.6882755560235047313e-3, 2.4914420961078508066e-3]
    + [-3.7512085075692412107e-3, 5.370914553590063617e-3, 1.0052589676941592334]
    + [3.0838856104922207635],
    [-2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-9]
    + [-3.7894654401267369937e-9, 7.6157012080783393804e-9, -1.4960026627149240478e-8]
    + [2.9147953450901080826e-8, -6.7711997758452339498e-8, 2.2900482228026654717e-7]
    + [-9.9298272942317002539e-7, 4.5260625972231537039e-6, -1.9681778105531670567e-5]
    + [7.5995277030017761139e-5, -2.1503011930044477347e-4, -1.3871931833623122026e-4]
    + [1.0103004648645343977, 4.8499064014085844221],
)


FUNCTIONS: dict[str, Callable[..., Number]] = {
    "acos": acos,
    "asin": asin,
    "atan": atan,
    "atan2": atan2,
    "cbrt": cbrt,
    "cos": cos,
    "erf": erf,
    "erf_inv": erf_inv,
    "exp": exp,
    "expm1": expm1,
    "log": log,
    "log1p": log1p,
    "log2": log2,
    "logistic": logistic,
    "pow": power,
    "sin": sin,
    "tan": tan,
    "tanh": tanh,
}
# By the C library's names, with an `f` at the end in single precision.
LIBRARY = {
    **{name: name for name in "acos acosh asin asinh atan atan2 atanh cbrt cos cosh".split()},
    **{
        name: name
        for name in "erf erfc exp exp2 expm1 log log1p log2 pow sin sinh tan tanh".split()
    },
    "lgamma": "lgamma",
    "nextafter": "nextafter",
    "rem": "fmod",
}
