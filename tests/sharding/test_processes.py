"""Programs of two and three processes on this machine: the coordinator, its keys and barriers, and what dies.

Arrays over processes, which plugins have, are in `tests/xla/test_processes.py`.
"""

from __future__ import annotations

import time

import pytest

from tests.processes import printed


def test_processes_count_each_other_and_their_devices():
    lines = printed("""
        devices = jax.devices()
        print(jax.process_index(), jax.process_count(), jax.device_count(), jax.local_device_count())
        print([d.id for d in devices], [d.process_index for d in devices])
        print(jax.local_devices(), jax.local_devices(1 - index) == [d for d in devices if d not in jax.local_devices()])
        mesh = jax.sharding.Mesh(np.array(devices).reshape(2, 2), ("p", "d"))
        print(mesh.is_multi_process, mesh.local_mesh.devices.shape, mesh.local_devices == jax.local_devices())
        s = jax.NamedSharding(mesh, jax.P("p"))
        print(s.is_fully_addressable, s.addressable_devices == set(jax.local_devices()), s.num_devices)
        print(error(lambda: jax.device_put(np.ones(4), s)))
        print(jax.jit(lambda x: x + 1)(np.float32(index)), jax.numpy.ones(2).sharding)
    """)
    for index, (counts, ids, local, mesh, sharding, refused, own) in enumerate(lines):
        assert counts == f"{index} 2 4 2"
        assert ids == "[0, 1, 131072, 131073] [0, 0, 1, 1]"
        first = index << 17
        assert local == f"[CpuDevice(id={first}), CpuDevice(id={first + 1})] True"
        assert (mesh, sharding) == ("True (1, 2) True", "False True 4")
        assert refused.startswith("NotImplementedError") and "several processes" in refused
        assert own == f"{index + 1}.0 SingleDeviceSharding(device=CpuDevice(id={first}), memory_kind=device)"


def test_what_each_process_has_of_an_axis():
    lines = printed("""
        from ferrax._src import sharding_impls as s
        devices = np.array(jax.devices()).reshape(2, 2)
        for mesh in (devices, devices.T, [devices[0], devices[1][::-1]]):
            mesh = jax.sharding.Mesh(np.array(mesh), ("p", "d"))
            for spec in (jax.P("p", "d"), jax.P("d", "p"), jax.P(("p", "d")), jax.P(None, "d")):
                sharding = jax.NamedSharding(mesh, spec)
                print([s.get_process_index_and_count(sharding, axis, 2) for axis in (0, 1)],
                      s.local_to_global_shape(sharding, (4, 3)),
                      [s.num_addressable_indices(sharding, axis, (8, 8)) for axis in (0, 1)])
        mesh = jax.sharding.Mesh(np.array([[devices[0, 0], devices[0, 1], devices[1, 0]]]), ("a", "b"))
        sharding = jax.NamedSharding(mesh, jax.P("b"))
        print(error(lambda: s.get_process_index_and_count(sharding, 0, 1)), s.local_to_global_shape(sharding, (2,)))
    """)
    for index, found in enumerate(lines):
        own = [
            f"[({index}, 2), (0, 1)] (8, 3) [4, 8]",
            f"[(0, 1), ({index}, 2)] (4, 6) [8, 4]",
            f"[({index}, 2), (0, 1)] (8, 3) [4, 8]",
            "[(0, 1), (0, 1)] (4, 3) [8, 8]",
        ]
        crossed = [
            f"[(0, 1), ({index}, 2)] (4, 6) [8, 4]",
            f"[({index}, 2), (0, 1)] (8, 3) [4, 8]",
            f"[({index}, 2), (0, 1)] (8, 3) [4, 8]",
            f"[(0, 1), ({index}, 2)] (4, 6) [8, 4]",
        ]
        assert found[:12] == own + crossed + own
        assert found[12].startswith("NonUniformShardingError") and found[12].endswith("(None,)")


def test_values_go_from_process_to_process():
    lines = printed(
        """
        print(multihost_utils.process_allgather(np.arange(2) + 10 * index).tolist())
        print(multihost_utils.process_allgather({"a": np.arange(2.0) + index}, tiled=True)["a"].tolist())
        print(multihost_utils.process_allgather(jax.numpy.bfloat16(index), tiled=True).dtype)
        print(multihost_utils.broadcast_one_to_all([index, np.full(2, index)])[1].tolist())
        print(multihost_utils.broadcast_one_to_all(np.array(index), is_source=index == 2))
        multihost_utils.sync_global_devices("here")
        multihost_utils.assert_equal({"a": np.ones(3)})
        print(error(lambda: multihost_utils.assert_equal(index, "they differ")))
        print(error(lambda: multihost_utils.sync_global_devices(f"place {index}")))
        """,
        3,
    )
    for index, (gathered, tiled, dtype, first, last, differ, places) in enumerate(lines):
        assert gathered == "[[0, 1], [10, 11], [20, 21]]"
        assert tiled == "[0.0, 1.0, 1.0, 2.0, 2.0, 3.0]"
        assert (dtype, first, last) == ("bfloat16", "[0, 0]", "2")
        assert differ == f"AssertionError: they differ. Expected: [0 1 2]; got: {index}."
        assert places.startswith(f"AssertionError: sync_global_devices name mismatch ('place {index}')")


def test_keys_and_barriers_are_those_of_jax():
    text = """
        if index == 0:
            client.key_value_set("k", "v")
            print(error(lambda: client.key_value_set("k", "w")))
            client.key_value_set("k", "w", allow_overwrite=True)
            client.key_value_set_bytes("d/x", bytes([0, 255]))
            client.key_value_set("d/y", "1")
            client.key_value_set("go", "")
            client.wait_at_barrier("read", 60_000)
            client.key_value_delete("d")
            total = client.key_value_increment
            print(client.key_value_dir_get("d"), total("n", 3), total("n", -1))
            print(error(lambda: client.key_value_increment("k", 1)))
        else:
            client.blocking_key_value_get("go", 60_000)
            print(client.key_value_try_get("k"), client.key_value_dir_get_bytes("d/"))
            print(error(lambda: client.key_value_try_get("zz")))
            print(error(lambda: client.blocking_key_value_get("zz", 100)))
            client.wait_at_barrier("read", 60_000)
        client.wait_at_barrier("again", 60_000)
        client.wait_at_barrier("again", 60_000)
        client.wait_at_barrier(f"alone {index}", 60_000, process_ids=[index])
        print(error(lambda: client.wait_at_barrier("other", 500, process_ids=[1 - index])))
        print(sorted(client.get_live_nodes([0, 1])))
        client.wait_at_barrier("before late", 60_000)
        if index == 0:
            print(error(lambda: client.wait_at_barrier("late", 200)).splitlines()[0])
        else:
            time.sleep(0.6)
            print(error(lambda: client.wait_at_barrier("late", 200)).splitlines()[0])
    """
    first, second = printed(text)
    assert first[0] == "JaxRuntimeError: ALREADY_EXISTS: key k already exists."
    assert first[1] == "[] 3 2"
    assert first[2] == 'JaxRuntimeError: FAILED_PRECONDITION: Failed to parse value "w" as an integer.'
    assert second[0] == "w [('d/x', b'\\x00\\xff'), ('d/y', b'1')]"
    assert second[1] == "JaxRuntimeError: NOT_FOUND: Config key zz not found."
    late = "JaxRuntimeError: DEADLINE_EXCEEDED: GetKeyValue() timed out with key: zz and duration: 100ms"
    assert second[2] == late
    for index, lines in enumerate((first[3:], second[3:])):
        text = f"JaxRuntimeError: INVALID_ARGUMENT: A non-participating task ({index}) called the barrier: other::0"
        assert lines[0] == text
        assert lines[1] == "[0, 1]"
        assert lines[2].startswith("JaxRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: late::0.")


@pytest.mark.parametrize("victim", [0, 1])
def test_a_process_that_dies_is_an_error_of_the_others(victim):
    begun = time.monotonic()
    survivor = 1 - victim
    codes = [0, 0]
    codes[victim] = 9
    lines = printed(
        f"""
        multihost_utils.sync_global_devices("begin")
        if index == {victim}:
            time.sleep(1)  # until the other one has its answer
            os._exit(9)
        print(error(lambda: client.wait_at_barrier("end", 60_000)))
        print(error(lambda: multihost_utils.process_allgather(1)))
        """,
        codes=tuple(codes),
    )
    assert time.monotonic() - begun < 60
    for line in lines[survivor]:
        assert line.startswith("JaxRuntimeError: UNAVAILABLE:") and f"process {victim}" in line, line


def test_one_process_alone_and_wrong_arguments():
    text = """
        jax.distributed.shutdown()
        print(error(lambda: jax.distributed.initialize()))
        print(error(lambda: jax.distributed.initialize("localhost:1")))
        print(error(lambda: jax.distributed.initialize("localhost:1", 2)))
        print(error(lambda: jax.distributed.initialize("localhost:1", 2, 2)))
        print(error(lambda: jax.distributed.initialize("localhost:1", 2, 1, initialization_timeout=1)))
        os.environ.update(SLURM_JOB_ID="1", SLURM_STEP_NODELIST="localhost", SLURM_NTASKS="1", SLURM_PROCID="0",
                          SLURM_LOCALID="0", JAX_COORDINATOR_PORT=str(port))
        jax.distributed.initialize()
        print(distributed.global_state.coordinator_address == f"localhost:{port}", jax.process_count())
        print(error(lambda: jax.distributed.initialize("localhost:1", 1, 0)))
    """
    ((address, number, process, which, nobody, slurm, twice),) = printed(text, 1)
    assert address == "ValueError: coordinator_address should be defined."
    assert number == "ValueError: Number of processes must be defined."
    assert process == "ValueError: The process id of the current process must be defined."
    assert which.startswith("ValueError: process_id and num_processes must be nonnegative")
    assert nobody.startswith("JaxRuntimeError: DEADLINE_EXCEEDED: no coordinator answered at localhost:1 within 1 s")
    assert (slurm, twice) == ("True 1", "RuntimeError: distributed.initialize should only be called once.")


def test_a_process_uses_the_gpus_that_it_is_given():
    """By the variable that the driver reads: of those that the process could see before."""
    text = """
        def seen(before, *args, **env):
            jax.distributed.shutdown()
            for name in ("CUDA_VISIBLE_DEVICES", "SLURM_LOCALID", "JAX_LOCAL_DEVICE_IDS"):
                os.environ.pop(name, None)
            os.environ.update(env)
            if before is not None:
                os.environ["CUDA_VISIBLE_DEVICES"] = before
            told = error(lambda: jax.distributed.initialize(f"localhost:{port}", 1, 0, *args))
            print(os.environ.get("CUDA_VISIBLE_DEVICES") if "Error" not in str(told) else told)

        seen(None)
        seen(None, 3)
        seen(None, [2, 0])
        seen("GPU-a,GPU-b,GPU-c", [2, 0])
        seen("5,7", None, JAX_LOCAL_DEVICE_IDS="1")
        seen("5,7", [0, 2])
        seen(None, [-1])
        os.environ.update(SLURM_JOB_ID="1", SLURM_STEP_NODELIST="localhost", SLURM_NTASKS="1", SLURM_PROCID="0")
        seen(None, SLURM_LOCALID="2")
        seen("4,5,6", SLURM_LOCALID="2")
        seen("6", SLURM_LOCALID="2")
        seen("4,5,6", [0, 1], SLURM_LOCALID="2")
    """
    ((*found,),) = printed(text, 1)
    means = "ValueError: local_device_ids are numbers of GPUs that the process sees, from 0 on"
    assert found == [
        *("None", "3", "2,0", "GPU-c,GPU-a", "7"),
        f"{means}, and CUDA_VISIBLE_DEVICES=5,7 leaves 2; got 2.",
        f"{means}; got -1.",
        *("2", "6", "6", "4,5"),
    ]
