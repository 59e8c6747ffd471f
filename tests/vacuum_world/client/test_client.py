from __future__ import annotations

import asyncio

import pytest

from vacuum_world.client import (
    OutcomeUnknownError,
    RobotStrandedError,
    WorldClient,
    WorldControl,
    WorldRefusedError,
    WorldUnreachableError,
    join_world,
)
from vacuum_world.server import WorldServer
from vacuum_world.world import AddDirt, SetBattery


async def test_a_client_joins_acts_senses_and_leaves(served: WorldServer) -> None:
    async with await WorldClient.join(served.url, "ann") as client:
        assert (await client.move("east", "m-1")).position == (1, 0)
        assert (await client.clean("c-1")).ok
        reading = await client.sense()
        assert reading.dirty == await client.dirty()
        assert reading.blocked == await client.proximity()
        assert reading.battery == (await client.battery()).battery == 85
        assert reading.position == (await client.position()).position
        await client.leave()
    assert served.world.robots == ()
    assert [line.action_id for line in served.world.log] == ["m-1", "c-1"]


async def test_the_experimenter_looks_changes_and_restores(served: WorldServer) -> None:
    async with WorldControl(served.url, served.control_token) as control:
        before = await control.snapshot()
        happened = await control.intervene(AddDirt(cell=(4, 4)))
        assert [event.kind for event in happened.events] == ["dirt_appeared"]
        assert (await control.tick(2)).tick == 2
        assert (await control.world()).dirty == (*before.dirty, (4, 4))
        await control.restore(before)
        assert await control.world() == before
        member = await join_world(served.url, "ann")
        await control.remove(member.id)
    assert served.world.robots == ()


async def test_a_robot_is_taken_over_with_the_control_token(served: WorldServer) -> None:
    first = await join_world(served.url, "ann")
    with pytest.raises(WorldRefusedError, match="already in this world") as refused:
        await join_world(served.url, "ann")
    assert (refused.value.status, refused.value.error) == (409, "conflict")
    token = served.control_token
    async with await WorldClient.join(served.url, "ann", control_token=token) as client:
        assert client.robot_id == first.id
        assert (await client.move("south")).ok


async def test_a_stranded_robot_is_an_error_of_its_own(served: WorldServer) -> None:
    async with (
        await WorldClient.join(served.url, "ann") as client,
        WorldControl(served.url, served.control_token) as control,
    ):
        await client.move("south")
        await control.intervene(SetBattery(robot=client.robot_id, battery=0))
        with pytest.raises(RobotStrandedError, match="stranded"):
            await client.clean()


async def test_a_world_that_is_not_there_got_nothing(served: WorldServer) -> None:
    async with await WorldClient.join(served.url, "ann") as client:
        served.stop()
        with pytest.raises(WorldUnreachableError, match=r"POST /api/env/clean was not sent"):
            await client.clean()
        served.start()
        assert (await client.sense()).battery == 100


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\nno",
        b"HTTP/1.1 404 Oh\r\nContent-Length: 2\r\n\r\n[]",
        b"nonsense\r\n\r\n",
    ],
)
async def test_what_was_sent_and_not_answered_may_have_happened(answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, WorldClient(f"http://127.0.0.1:{port}", "r1", "token") as client:
        with pytest.raises(OutcomeUnknownError, match="may or may not have happened"):
            await client.clean("c-1")


async def test_an_answer_that_does_not_come_in_time_may_have_happened() -> None:
    done = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await done.wait()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    async with server, WorldClient(url, "r1", "token", timeout=1.5) as client:
        with pytest.raises(OutcomeUnknownError, match="ReadTimeout"):
            await client.clean()
        done.set()
