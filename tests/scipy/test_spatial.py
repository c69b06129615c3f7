"""`ferrax.scipy.spatial.transform` against SciPy and JAX."""

import jax.numpy
import jax.scipy.spatial.transform as jax_transform
import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax.scipy.spatial.transform import Rotation, Slerp
from ferrax.test_util import check_grads

scipy_transform = pytest.importorskip("scipy.spatial.transform")

RNG = np.random.default_rng(11)
QUATS = RNG.normal(size=(7, 4)).astype(np.float32)
VECTORS = RNG.normal(size=(7, 3)).astype(np.float32)
SEQUENCES = ["xyz", "zyx", "XYZ", "zxz", "YXY", "ZYX"]
OURS, THEIRS = Rotation.from_quat(QUATS), scipy_transform.Rotation.from_quat(QUATS)


def close(ours, theirs, tol=2e-5):
    assert tuple(np.shape(ours)) == np.shape(theirs)
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=tol, atol=tol)


def same(ours, theirs, tol=2e-5):
    """That rotations are the same: a quaternion and its negative mean one rotation."""
    close(ours.as_matrix(), theirs.as_matrix(), tol)


@pytest.mark.parametrize("form", ["as_matrix", "as_mrp", "as_rotvec", "as_quat", "magnitude"])
def test_representations(form):
    close(getattr(OURS, form)(), getattr(THEIRS, form)())
    close(getattr(OURS[2], form)(), getattr(THEIRS[2], form)())
    jax_rotation = jax_transform.Rotation.from_quat(jax.numpy.asarray(QUATS))
    assert getattr(OURS, form)().dtype == getattr(jax_rotation, form)().dtype


def test_quaternions():
    close(OURS.as_quat(canonical=True), THEIRS.as_quat(canonical=True))
    close(OURS.as_quat(scalar_first=True), THEIRS.as_quat(scalar_first=True))
    close(OURS.as_rotvec(degrees=True), THEIRS.as_rotvec(degrees=True), 1e-4)
    turned = Rotation(jnp.array([[-1.0, 0, 0, 0], [0, -1, 0, 0], [0, 0, -1, 0], [0, 0, 0, -1]]))
    close(turned.as_quat(canonical=True), np.eye(4))


@pytest.mark.parametrize("seq", SEQUENCES)
@pytest.mark.parametrize("degrees", [False, True])
def test_euler_angles(seq, degrees):
    close(OURS.as_euler(seq, degrees), THEIRS.as_euler(seq, degrees), 1e-3 if degrees else 1e-4)
    angles = VECTORS * (50 if degrees else 1)
    same(Rotation.from_euler(seq, angles, degrees), scipy_transform.Rotation.from_euler(seq, angles, degrees))
    for part in (seq[:1], seq[:2]):
        some = angles[:, : len(part)]
        same(Rotation.from_euler(part, some, degrees), scipy_transform.Rotation.from_euler(part, some, degrees))


@pytest.mark.parametrize("seq", SEQUENCES)
@pytest.mark.filterwarnings("ignore:Gimbal lock")
def test_euler_angles_that_are_not_determined(seq, x64):
    middle = [0.0, np.pi] if seq[0] == seq[2] else [np.pi / 2, -np.pi / 2]
    for angle in middle:
        rotation = scipy_transform.Rotation.from_euler(seq, [0.3, angle, 0.4])
        ours = Rotation.from_quat(rotation.as_quat())
        close(ours.as_euler(seq), rotation.as_euler(seq), 1e-6)


def test_one_axis_and_many_angles():
    angles = VECTORS[:, 0]
    same(Rotation.from_euler("x", angles), scipy_transform.Rotation.from_euler("x", angles[:, None]))
    assert Rotation.from_euler("x", jnp.array(0.5)).single and Rotation.from_euler("x", jnp.array([0.5])).single


def test_round_trips():
    same(Rotation.from_matrix(OURS.as_matrix()), THEIRS)
    same(Rotation.from_mrp(OURS.as_mrp()), THEIRS)
    same(Rotation.from_rotvec(OURS.as_rotvec()), THEIRS)
    same(Rotation.from_rotvec(OURS.as_rotvec(degrees=True), degrees=True), THEIRS)
    same(Rotation.from_rotvec(VECTORS * 1e-5), scipy_transform.Rotation.from_rotvec(VECTORS * 1e-5))
    close(Rotation.from_rotvec(VECTORS * 1e-5).as_rotvec() * 1e5, VECTORS)
    for axis in range(4):
        quat = np.full(4, 0.1) + np.eye(4)[axis]
        rotation = scipy_transform.Rotation.from_quat(quat)
        same(Rotation.from_matrix(rotation.as_matrix()), rotation)


def test_vectors():
    for inverse in (False, True):
        close(OURS.apply(VECTORS, inverse), THEIRS.apply(VECTORS, inverse))
        close(OURS.apply(VECTORS[0], inverse), THEIRS.apply(VECTORS[0], inverse))
        close(OURS[0].apply(VECTORS, inverse), THEIRS[0].apply(VECTORS, inverse))
    same(OURS * OURS[::-1], THEIRS * THEIRS[::-1])
    same(OURS * OURS[0], THEIRS * THEIRS[0])
    same(OURS.inv(), THEIRS.inv())


def test_sequences():
    assert len(OURS) == 7 and OURS[1:3].quat.shape == (2, 4) and OURS[0].single and not OURS.single
    same(Rotation.concatenate([OURS, OURS[0]]), scipy_transform.Rotation.concatenate([THEIRS, THEIRS[0]]))
    close(Rotation.identity().quat, [0, 0, 0, 1])
    close(Rotation.identity(2, dtype="float16").quat, [[0, 0, 0, 1]] * 2)
    for call in (len, lambda r: r[0]):
        with pytest.raises(TypeError, match="Single rotation"):
            call(OURS[0])


def test_means():
    weights = np.arange(1.0, 8)
    same(OURS.mean(), THEIRS.mean())
    same(OURS.mean(weights), THEIRS.mean(weights))
    for wrong in (np.ones(3), np.ones((7, 1))):
        with pytest.raises(ValueError, match="`weights`"):
            OURS.mean(wrong)


def test_random_rotations():
    many = Rotation.random(ferrax.random.key(0), 2000)
    close(jnp.sum(many.quat**2, -1), np.ones(2000))
    assert float(jnp.abs(many.as_matrix().mean(0)).max()) < 0.06
    assert Rotation.random(ferrax.random.key(1)).single


def test_interpolation():
    times = np.array([0.0, 1, 2, 4, 5, 6, 7], np.float32)
    ours, theirs = Slerp.init(times, OURS), scipy_transform.Slerp(times, THEIRS)
    at = np.array([0.0, 0.25, 1, 3, 6.5, 7], np.float32)
    same(ours(at), theirs(at), 1e-4)
    same(ours(3.5), theirs(3.5), 1e-4)
    assert ours(3.5).single
    # beyond the ends motion goes on
    last = ours(jnp.array([6.5, 7.0, 7.5]))
    close((last[0].inv() * last[1]).as_rotvec(), (last[1].inv() * last[2]).as_rotvec(), 1e-4)
    for wrong in ((times, OURS[:3]), (times[:1], OURS[:1]), (times[None], OURS)):
        with pytest.raises(ValueError, match=r"xpected|sequence"):
            Slerp.init(*wrong)
    with pytest.raises(TypeError, match="Rotation"):
        Slerp.init(times, QUATS)
    with pytest.raises(ValueError, match="at most 1-dimensional"):
        ours(np.ones((2, 2)))


def test_derivatives(x64):
    vector = jnp.asarray(VECTORS[0].astype(np.float64))
    check_grads(lambda v: Rotation.from_rotvec(v).as_matrix(), (vector,), 2, atol=1e-5, rtol=1e-5)
    check_grads(lambda v: Rotation.from_euler("xyz", v).as_rotvec(), (vector,), 2, atol=1e-5, rtol=1e-5)
    check_grads(lambda v: Rotation.from_euler("xyz", v).as_euler("zxz"), (vector,), 1, atol=1e-5, rtol=1e-5)
    slope = ferrax.jacobian(lambda v: Rotation.from_rotvec(v).as_rotvec())(jnp.zeros(3))
    close(slope, np.eye(3))


def test_compiled_mapped_and_strict():
    def everything(quat, vector):
        r = Rotation.from_quat(quat)
        s = Rotation.from_euler("xyz", vector) * r
        return (s.apply(vector), s.as_euler("ZYX"), s.as_rotvec(), s.as_mrp(), s.magnitude(), s.inv().quat,
                Rotation.from_matrix(s.as_matrix()).as_quat(canonical=True))  # fmt: skip

    quats, vectors = jnp.asarray(QUATS), jnp.asarray(VECTORS)
    with ferrax.numpy_rank_promotion("raise"), ferrax.numpy_dtype_promotion("strict"):
        wanted = everything(quats, vectors)
        for form in (ferrax.jit(everything), ferrax.vmap(everything)):
            for ours, theirs in zip(form(quats, vectors), wanted):
                close(ours, theirs)
        OURS.mean(), Slerp.init(jnp.arange(7.0), OURS)(jnp.array(2.5))
    flags = ferrax.jit(lambda q, inverse: Rotation.from_quat(q).apply(jnp.ones(3), inverse))
    close(flags(quats, True), OURS.apply(jnp.ones(3), inverse=True))


@pytest.mark.parametrize("seq", ["", "xyzx", "xYz", "abc", "xxy"])
def test_axes_that_are_refused(seq):
    with pytest.raises(ValueError, match="xpected"):
        Rotation.from_euler(seq, jnp.ones(max(len(seq), 1)))
    with pytest.raises(ValueError, match="xpected"):
        OURS.as_euler(seq)


def test_shapes_that_are_refused():
    for make, shape in ((Rotation.from_quat, (3,)), (Rotation.from_rotvec, (4,)), (Rotation.from_mrp, ()),
                        (Rotation.from_matrix, (3,)), (OURS.apply, (2,))):  # fmt: skip
        with pytest.raises(ValueError, match="expected an array of shape"):
            make(jnp.ones(shape))
    with pytest.raises(ValueError, match="2 axes need angles"):
        Rotation.from_euler("xy", jnp.ones(3))
    with pytest.raises(TypeError, match="real numbers"):
        Rotation.from_quat(jnp.ones(4) * 1j)
