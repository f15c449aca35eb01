"""A FastMCP server: on stdio, or over HTTP at a port."""
import sys
from dataclasses import dataclass
from typing import Annotated, Literal
from fastmcp import FastMCP, Context
from fastmcp.exceptions import ToolError
from pydantic import Field

mcp = FastMCP("real", instructions="Use it.")

@dataclass
class Row:
    id: int
    note: str | None = None

@mcp.tool(annotations={"readOnlyHint": True}, tags={"maths"})
def total(values: list[int], scale: float = 1.0) -> float:
    """Adds numbers."""
    return sum(values) * scale

@mcp.tool
def rows(count: Annotated[int, Field(ge=0, le=5)], kind: Literal["full", "short"] = "full", of: str | None = None) -> list[Row]:
    return [Row(i, of) for i in range(count)]

@mcp.tool
def fail() -> str:
    raise ToolError("It failed.")

@mcp.tool
def bug() -> str:
    raise ValueError("a bug")

@mcp.tool
async def asks(ctx: Context) -> str:
    answer = await ctx.elicit("Your name?", response_type=str)
    return str(answer)

@mcp.tool
async def steps(ctx: Context) -> str:
    await ctx.report_progress(1, 2)
    await ctx.info("half")
    await ctx.report_progress(2, 2)
    return "done"

@mcp.tool
def big(n: int) -> int:
    return n

@mcp.resource("note://one", mime_type="text/plain")
def one() -> str:
    """A note."""
    return "one"

@mcp.resource("note://{name}")
def note(name: str) -> str:
    return f"the note {name}"

@mcp.resource("files://{path*}{?size}")
def file(path: str, size: int = 3) -> str:
    return f"{path}: {size}"

@mcp.resource("data://bytes", mime_type="application/octet-stream")
def data() -> bytes:
    return b"\x00\x01\xff"

@mcp.prompt
def review(language: str, focus: list[str] | None = None) -> str:
    return f"Review the {language} code: {focus}."

if __name__ == "__main__":
    if len(sys.argv) > 1:
        mcp.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
    else:
        mcp.run(show_banner=False)
