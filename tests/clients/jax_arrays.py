"""JAX with its CUDA plugin: XLA takes its pool from the driver, at once or, told so, as it grows."""

import json
import os

os.environ["XLA_FLAGS"] = "--xla_gpu_autotune_level=0"  # tuning needs results

import jax._src.hardware_utils

jax._src.hardware_utils.has_visible_nvidia_gpu = lambda: True  # it looks for /dev/nvidia0

import jax
import jax.numpy as jnp
import numpy as np

(device,) = jax.devices()
assert device.platform == "gpu", device
data = jax.device_put(np.ones((1024, 1024), np.float32))
more = [jax.device_put(np.full((512, size), 1, np.float32)) for size in (256, 1024)]
product = jax.jit(lambda a: a @ a + 1)(data)
product.block_until_ready()
del more[0]
stats = device.memory_stats()
print(
    json.dumps(
        {
            "live_bytes": sum(array.nbytes for array in jax.live_arrays()),
            "pool_bytes": stats["pool_bytes"],
            "peak_pool_bytes": stats["peak_pool_bytes"],
            "in_use_bytes": stats["bytes_in_use"],
        }
    ),
    flush=True,
)
