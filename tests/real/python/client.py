"""A client of mcp 1.x or 2.x: connects to the URL with the key, in the era, and does what each line says."""

import asyncio
import json
import sys
from contextlib import AsyncExitStack

import anyio.to_thread

url, key, era = sys.argv[1:]
headers = {"Authorization": f"Bearer {key}"}


async def connect(stack):
    try:
        from mcp.client.client import Client
    except ImportError:
        from mcp import ClientSession
        from mcp.client.streamable_http import streamablehttp_client

        read, write, _ = await stack.enter_async_context(streamablehttp_client(url, headers))
        session = await stack.enter_async_context(ClientSession(read, write))
        await session.initialize()
        return session
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers))
    transport = streamable_http_client(url, http_client=http)
    mode = "2026-07-28" if era == "modern" else "legacy"
    return await stack.enter_async_context(Client(transport, mode=mode))


async def act(client, asked):
    if "name" not in asked:
        return [tool.name for tool in (await client.list_tools()).tools]
    result = await client.call_tool(asked["name"], asked["arguments"])
    return json.loads(result.model_dump_json(by_alias=True, exclude_none=True))


async def main():
    async with AsyncExitStack() as stack:
        client = await connect(stack)
        while line := await anyio.to_thread.run_sync(sys.stdin.readline):
            try:
                answer = {"answer": await act(client, json.loads(line))}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), flush=True)


asyncio.run(main())
