"""Made-up images as calibration data: ``write_images.py TARGET.npy COUNT PIXELS``.

Each is 8x8 patches of random colours with some noise; values lie in [0, 1], as pixels do.
"""

import sys

import numpy as np

target, count, pixels = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
shape = (count, 3, pixels, pixels)
images = np.lib.format.open_memmap(target, mode="w+", dtype=np.float32, shape=shape)
rng = np.random.default_rng(0)
for image in images:
    patches = rng.random((3, 8, 8), dtype=np.float32)
    smooth = patches.repeat(pixels // 8, axis=1).repeat(pixels // 8, axis=2)
    noise = rng.standard_normal(image.shape, dtype=np.float32)
    image[:] = np.clip(smooth + 0.05 * noise, 0, 1)
