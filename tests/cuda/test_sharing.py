"""Arrays on a GPU that other libraries have, and theirs that are ours: DLPack and `__cuda_array_interface__`."""

START = """
class Other:
    \"\"\"Another library's array: it hands out one of ours, by the forms of DLPack that it knows.\"\"\"

    def __init__(self, x, versioned=True):
        self.x, self.versioned, self.streams = x, versioned, []

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **options):
        if options and not self.versioned:
            raise TypeError("unknown arguments")
        self.streams.append(stream)
        return self.x.__dlpack__(stream=stream, **options)

def at(x):
    return x.__cuda_array_interface__["data"][0]

x = jax.device_put(np.arange(12, dtype=np.float32).reshape(3, 4), gpus[1])
"""


def test_memory_is_shared(run):
    run(
        START
        + """
assert x.__dlpack_device__() == (2, 1) and jax.device_put(x, cpu).__dlpack_device__() == (1, 0)
other = Other(x + 1)
y = jnp.from_dlpack(other)
assert y.devices() == {gpus[1]} and at(y) == at(other.x) and len(other.streams) == 1 and other.streams[0] > 2
assert (np.asarray(y * 2) == (np.arange(12).reshape(3, 4) + 1) * 2).all()
del other
assert (np.asarray(jnp.sin(y)) == np.asarray(jnp.sin(x + 1))).all()
# what is not said to be constant is copied, unless sharing is asked for
old = Other(x, versioned=False)
assert at(jnp.from_dlpack(old)) != at(x) and at(jnp.from_dlpack(old, copy=False)) == at(x)
assert at(jnp.from_dlpack(Other(x), copy=True)) != at(x)
assert (np.asarray(jnp.from_dlpack(old)) == np.asarray(x)).all()
for dtype in ("bool", "int8", "uint32", "bfloat16", "complex64", "float8_e4m3fn"):
    z = jnp.ones((2, 3)).astype(dtype)
    z = jax.device_put(z, gpus[0])
    assert (np.asarray(jnp.from_dlpack(z)) == np.asarray(z)).all() and jnp.from_dlpack(z).dtype == z.dtype
empty = jax.device_put(np.zeros((0, 3), np.float32), gpus[0])
assert jnp.from_dlpack(empty).shape == (0, 3) and jnp.from_dlpack(jax.device_put(1.0, gpus[0])) == 1
assert (np.from_dlpack(Other(jax.device_put(x, cpu))) == np.asarray(x)).all()
"""
    )


def test_shared_memory_is_not_donated_and_goes_with_its_last_user(run):
    run(
        START
        + """
import gc, warnings
warnings.simplefilter("ignore")
step = jax.jit(lambda x: x + 1, donate_argnums=0)
jax.block_until_ready(step(x + 0))
gc.collect()
before = driver.get("blocks")
for share in (None, False):
    y = x * 3
    z = jnp.from_dlpack(Other(y), copy=share)
    kept = at(z)
    out = step(y)
    assert at(out) != kept and (np.asarray(z) == np.asarray(x) * 3).all()
    out = step(z)
    assert at(out) != kept and (np.asarray(out) == np.asarray(x) * 3 + 1).all()
    del y, z, out
# capsules that nobody takes give their memory back
capsules = [(x + i).__dlpack__(max_version=version, stream=-1) for i in range(3) for version in (None, (1, 1))]
del capsules
jax.block_until_ready(x + 1)
gc.collect()
jax.block_until_ready(step(x + 0))
assert driver.get("blocks") == before, (driver.get("blocks"), before)
"""
    )


def test_what_is_wrong_with_a_request(run):
    run(
        START
        + """
assert "stream must be" in message(ValueError, lambda: x.__dlpack__(stream=0))
assert "cannot be handed out" in message(BufferError, lambda: x.__dlpack__(dl_device=(2, 0)))
assert "cannot be handed out" in message(BufferError, lambda: x.__dlpack__(dl_device=(1, 0), copy=False))
assert "cannot be handed out" in message(BufferError, lambda: jax.device_put(x, cpu).__dlpack__(dl_device=(2, 0)))
assert "no DLPack type" in message(BufferError, lambda: jax.device_put(jnp.ones(3, "int4"), gpus[0]).__dlpack__())

class Elsewhere(Other):
    def __dlpack_device__(self):
        return (2, 7)

assert "there is no GPU 7" in message(Exception, lambda: jnp.from_dlpack(Elsewhere(x)))
# on the CPU a copy can be had
host = np.from_dlpack(x, device="cpu")
assert (host == np.asarray(x)).all()
"""
    )


def test_the_interface_of_arrays_on_gpus(run):
    run(
        START
        + """
y = x + 1
interface = y.__cuda_array_interface__
address, read_only = interface["data"]
assert read_only and address and interface["stream"] > 2
assert {k: v for k, v in interface.items() if k not in ("data", "stream")} == {
    "shape": (3, 4), "typestr": "<f4", "strides": None, "version": 3
}
assert jax.device_put(jnp.ones(2, "bool"), gpus[0]).__cuda_array_interface__["typestr"] == "|b1"
assert not hasattr(jax.device_put(x, cpu), "__cuda_array_interface__")
assert not hasattr(jax.device_put(jnp.ones(2, "bfloat16"), gpus[0]), "__cuda_array_interface__")
# copies on a GPU do not go by way of the host
calls = driver.get("calls")
z = jnp.array(y, copy=True)
assert at(z) != at(y) and (np.asarray(z) == np.asarray(y)).all()
"""
    )
