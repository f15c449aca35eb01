"""An agent in Python, without MCP and without packages: it lists its tools, asks what a call would get, and makes it."""

import json
import os
import sys
import urllib.request

URL = os.environ.get("TOOLGATE_URL", "http://127.0.0.1:8787")
KEY = os.environ.get("TOOLGATE_KEY", "demo-viewer")


def toolgate(path, body=None):
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(URL + path, data, headers)) as answer:
        return json.load(answer)


call = {"tool": sys.argv[1], "input": json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}}
print("sees:", *(item["id"] for item in toolgate("/api/list")["items"]))
print("decision:", toolgate("/api/decide", call)["outcome"])
outcome = toolgate("/api/call", call)
print(outcome["status"] + ":", outcome["text"])
