"""The pool of workers: it hides their deaths, and is fair to its clients."""

import asyncio
import os
import signal
import time

import pytest

from halfgraph.answering.pool import PoolBusy, WorkerPool
from halfgraph.answering.workers import Message, OutOfMemory
from halfgraph.errors import TimeLimit


def handle(job):
    match job:
        case {"sleep": seconds}:
            time.sleep(seconds)
        case {"signal": number}:
            os.kill(os.getpid(), number)
            time.sleep(60)
    return Message({"pid": os.getpid(), "job": job}, b"body")


def load():
    return {"hello": 1}, handle


def in_pool(play, **options):
    """Run a coroutine with a pool of two workers."""

    async def run():
        pool = WorkerPool(load, **{"size": 2, "queue": 1, "seconds": 30.0, "memory": None} | options)
        assert await pool.start() == {"hello": 1}
        try:
            return await play(pool)
        finally:
            await pool.close()

    return asyncio.run(run())


async def all_ready(pool):
    while pool.ready < pool.size + 1:
        await asyncio.sleep(0.02)


def test_a_pool_works_on_several_jobs_at_once():
    async def play(pool):
        await all_ready(pool)
        both = await asyncio.gather(pool.ask({"sleep": 0.3}), pool.ask({"sleep": 0.3}))
        return {message.head["pid"] for message in both}

    assert len(in_pool(play)) == 2


def test_a_job_beyond_its_time_is_stopped_and_its_worker_replaced():
    async def play(pool):
        await all_ready(pool)
        with pytest.raises(TimeLimit, match=r"stopped after 0\.5 s"):
            await pool.ask({"sleep": 60})
        assert pool.replaced == 1
        await all_ready(pool)
        return await pool.ask({"again": 1})

    assert in_pool(play, seconds=0.5, size=1).head["job"] == {"again": 1}


def test_a_job_that_kills_its_worker_takes_down_no_more_than_two():
    async def play(pool):
        with pytest.raises(PoolBusy, match="have ended"):
            await pool.ask({"signal": signal.SIGKILL})
        return pool.replaced

    assert in_pool(play) == 2


def test_a_job_that_aborts_its_worker_needed_too_much_memory():
    async def play(pool):
        with pytest.raises(OutOfMemory):
            await pool.ask({"signal": signal.SIGABRT})

    in_pool(play)


def test_jobs_beyond_the_queue_are_refused():
    async def play(pool):
        jobs = [asyncio.create_task(pool.ask({"sleep": 0.5})) for _ in range(3)]
        while pool.waiting < 1:
            await asyncio.sleep(0.01)
        with pytest.raises(PoolBusy, match="waiting"):
            await pool.ask({})
        await asyncio.gather(*jobs)

    in_pool(play)


def test_a_client_with_endless_jobs_leaves_a_worker_to_the_others():
    async def play(pool):
        await all_ready(pool)
        greedy = [asyncio.create_task(pool.ask({"sleep": 60}, "greedy")) for _ in range(6)]
        await asyncio.sleep(0)
        others = [await pool.ask({"number": number}, f"other {number % 3}") for number in range(20)]
        assert not any(task.done() for task in greedy[2:])
        pool.stop()
        await asyncio.gather(*greedy, return_exceptions=True)
        return [message.head["job"]["number"] for message in others]

    assert in_pool(play, queue=10) == list(range(20))


def test_a_client_holds_a_worker_until_the_one_that_its_job_has_killed_is_replaced():
    async def play(pool):
        await all_ready(pool)
        killing = [asyncio.create_task(pool.ask({"sleep": 60}, "greedy")) for _ in range(8)]
        served = 0
        while pool.replaced < 4:
            await pool.ask({}, "other")
            served += 1
        pool.stop()
        await asyncio.gather(*killing, return_exceptions=True)
        return served

    assert in_pool(play, queue=10, seconds=0.3) > 10


def test_waiting_clients_take_turns():
    async def play(pool):
        await all_ready(pool)
        order = []

        async def ask(client):
            await pool.ask({"sleep": 0.02}, client)
            order.append(client)

        await asyncio.gather(*map(ask, ["many"] * 12 + ["few"] * 2))
        return order

    order = in_pool(play, queue=20, size=1)
    assert max(place for place, client in enumerate(order) if client == "few") < 6


def test_a_job_whose_caller_has_left_is_stopped_and_frees_its_place():
    async def play(pool):
        await all_ready(pool)
        jobs = [asyncio.create_task(pool.ask({"sleep": 600})) for _ in range(2)]
        while len(pool.running) < 2:
            await asyncio.sleep(0.01)
        for job in jobs:
            job.cancel()
        async with asyncio.timeout(20):  # half a second on an idle machine
            while pool.running:
                await asyncio.sleep(0.01)
            await all_ready(pool)
        return await pool.ask({"next": 1})

    assert in_pool(play, seconds=600.0).head["job"] == {"next": 1}


def test_a_short_job_whose_caller_has_left_costs_no_worker():
    async def play(pool):
        await all_ready(pool)
        job = asyncio.create_task(pool.ask({"sleep": 0.05}))
        while not pool.running:
            await asyncio.sleep(0.01)
        job.cancel()
        while pool.running:
            await asyncio.sleep(0.01)
        return pool.replaced

    assert in_pool(play) == 0


def test_a_pool_that_stops_refuses_what_runs_and_what_waits():
    async def play(pool):
        await all_ready(pool)
        jobs = [asyncio.create_task(pool.ask({"sleep": 60})) for _ in range(3)]
        while not pool.waiting:
            await asyncio.sleep(0.01)
        pool.stop()
        ends = await asyncio.gather(*jobs, pool.ask({}), return_exceptions=True)
        return [str(end) for end in ends if isinstance(end, PoolBusy)]

    assert in_pool(play) == ["the server is stopping"] * 4
