import numpy as np


def shrink(rgba: np.ndarray, factor: int, *, straight_alpha: bool = False) -> np.ndarray:
    """Averages blocks of `factor` x `factor` pixels; a rest that fills no block is cut off.

    Colours are weighted by their opacity, so that what is invisible does not bleed in; with
    `straight_alpha` they are not, as in the published mip-NeRF code. Bytes become 0 to 1.
    """
    height, width, channels = rgba.shape
    rows, columns = height // factor if factor > 0 else 0, width // factor if factor > 0 else 0
    if rows == 0 or columns == 0:
        raise ValueError(f"cannot shrink a picture of {width}x{height} pixels by {factor}.")
    blocks = rgba[: rows * factor, : columns * factor]
    if rgba.dtype == np.uint8:
        return _shrink_bytes(blocks, factor, straight_alpha or channels < 4)
    blocks = blocks.astype(np.float32)
    blocks = blocks.reshape(rows, factor, columns, factor, channels)
    if straight_alpha or channels < 4:
        return blocks.mean(axis=(1, 3), dtype=np.float32)
    # color = mean(alpha color) / mean(alpha)
    alpha = blocks[..., 3:]
    opacity = alpha.mean(axis=(1, 3))
    color = (blocks[..., :3] * alpha).mean(axis=(1, 3)) / np.maximum(opacity, 1e-12)
    return np.concatenate([color, opacity], axis=-1)


def _shrink_bytes(picture: np.ndarray, factor: int, straight: bool) -> np.ndarray:
    """Averages whole blocks of bytes by sums of integers, which are exact, and faster."""
    whole = 255.0 * factor**2
    channels = [picture[..., i].astype(np.uint16) for i in range(picture.shape[2])]
    if straight:
        averaged = [_block_sums(x, factor) / whole for x in channels]
        return np.stack(averaged, axis=-1, dtype=np.float32)
    *colors, alpha = channels
    opacity = _block_sums(alpha, factor)
    # color = sum(alpha color) / (255 sum(alpha))
    weight = 255.0 * np.maximum(opacity, 1)
    averaged = [_block_sums(alpha * color, factor) / weight for color in colors]
    return np.stack([*averaged, opacity / whole], axis=-1, dtype=np.float32)


def _block_sums(values: np.ndarray, factor: int) -> np.ndarray:
    """Adds up blocks of `factor` x `factor` 16-bit integers."""
    rows = values[::factor].astype(np.uint32 if factor < 2**8 else np.uint64)
    for offset in range(1, factor):
        rows += values[offset::factor]
    sums = rows[:, ::factor].copy()
    for offset in range(1, factor):
        sums += rows[:, offset::factor]
    return sums
