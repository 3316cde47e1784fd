"""Fits the linearly transformed cosines of `scenegraph/shaders/_ltc.py`; run it to write its table.

    cd tests; python -m support.fit_ltc

**Source:** Heitz et al. 2016, "Real-Time Polygonal-Light Shading with Linearly Transformed
Cosines". The horizon stays where it is here, and the fit is the one of most likelihood.
"""

import pathlib

import numpy as np
from scipy.optimize import minimize


POINTS = 32
SMOOTHEST = 1e-3
TABLE = pathlib.Path(__file__).parents[2] / "scenegraph" / "shaders" / "ltc.npy"


def lobe(roughness: float, seen: float, count: int = 48) -> tuple[np.ndarray, np.ndarray]:
    """Returns directions of light (`n 3`) and the parts of GGX's lobe, with its cosine, there."""
    alpha = max(roughness**2, SMOOTHEST)
    eye = np.array([-np.sqrt(1 - seen**2), 0, seen])
    # Facets by angle and azimuth, dense within alpha of the normal; half of them, by symmetry.
    last = np.arcsinh(np.pi / alpha)
    part = (np.arange(count) + 0.5) / count
    steps, around = (x.ravel() for x in np.meshgrid(last * part, np.pi * part))
    angle, width = alpha / 2 * np.sinh(steps), alpha / 2 * np.cosh(steps) * last / count
    half = np.stack([np.cos(around), np.sin(around)], -1) * np.sin(angle)[:, None]
    half = np.concatenate([half, np.cos(angle)[:, None]], -1)
    meets = half @ eye
    light = 2 * meets[:, None] * half - eye
    keep = (meets > 0) & (light[:, 2] > 0)
    solid = (4 * meets * np.sin(angle) * width)[keep]
    half, light = half[keep], light[keep]
    # D n.l / (2 (n.l s(n.v) + n.v s(n.l)))
    density = (alpha / (half[:, 2] ** 2 * alpha**2 + half[:, 0] ** 2 + half[:, 1] ** 2)) ** 2
    spread = lambda x: np.sqrt(alpha**2 + (1 - alpha**2) * x**2)
    share = light[:, 2] / (light[:, 2] * spread(seen) + seen * spread(light[:, 2]))
    parts = density * share * solid
    return light, parts / parts.sum()


def cosines(numbers: np.ndarray, roughness: float, seen: float, light: np.ndarray) -> np.ndarray:
    """Returns the density of the transformed cosine of a table's three numbers."""
    tilt, along, across = numbers
    alpha = max(roughness**2, SMOOTHEST)
    shear = tilt * np.sqrt(1 - seen**2) / seen
    scales = 2 * alpha * along * (1 + shear**2), 2 * alpha * across
    x, y, z = (light[:, 0] - shear * light[:, 2]) / scales[0], light[:, 1] / scales[1], light[:, 2]
    # z / (pi |w|^4 det M), with w = (x, y, z)
    return z / (np.pi * scales[0] * scales[1] * (x**2 + y**2 + z**2) ** 2)


def fit(roughness: float, seen: float, start: np.ndarray) -> np.ndarray:
    """Returns the numbers of the transformed cosine that is most like the lobe."""
    light, parts = lobe(roughness, seen)
    first = np.append(start[0], np.log(start[1:]))

    def unlikeliness(numbers: np.ndarray) -> float:
        likely = cosines(np.append(numbers[0], np.exp(numbers[1:])), roughness, seen, light)
        # A little of the start, for numbers that do not matter, as the tilt of light from above.
        stay = 1e-5 * np.sum((numbers - first) ** 2)
        return stay - parts @ np.log(np.maximum(likely, 1e-300))

    options = {"xatol": 1e-5, "fatol": 1e-10, "maxiter": 2000}
    best = minimize(unlikeliness, first, method="Nelder-Mead", options=options).x
    return np.append(best[0], np.exp(best[1:]))


def axis_values() -> tuple[np.ndarray, np.ndarray]:
    """Returns the table's roughnesses, and its cosines to the eye."""
    even = np.linspace(0, 1, POINTS)
    return even, np.maximum(even**2, 1e-4)


def fit_all() -> np.ndarray:
    """Returns the table, `roughness seen 3`; each fit starts at its neighbour's."""
    roughnesses, cosines_seen = axis_values()
    table = np.zeros((POINTS, POINTS, 3))
    for row, roughness in enumerate(roughnesses):
        start = np.array([1 - roughness**2, 1.0, 1.0])
        # From just beside the normal outwards; on the normal the tilt is its neighbour's, and both
        # widths are equal.
        for column in range(POINTS - 2, -1, -1):
            start = table[row, column] = fit(roughness, cosines_seen[column], start)
        table[row, -1] = fit(roughness, 1.0, table[row, -2])
        table[row, -1, 1:] = np.sqrt(np.prod(table[row, -1, 1:]))
    return table


if __name__ == "__main__":
    np.save(TABLE, fit_all().astype(np.float32))
