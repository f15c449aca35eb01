import { createMCPClient } from '@ai-sdk/mcp'
import type { Client as ClientV2 } from '@modelcontextprotocol/client'
import type { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { Server as ServerV1 } from '@modelcontextprotocol/sdk/server/index.js'
import { McpServer as McpServerV1 } from '@modelcontextprotocol/sdk/server/mcp.js'
import {
  type AuthInfo,
  createMcpHandler,
  McpServer as McpServerV2,
  type McpServerFactory,
  Server as ServerV2,
  type ServerEventBus,
} from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { type Caller, createGate } from '@toolgate/core'
import type { Source } from '@toolgate/core/toolset'
import { fromMcpClient, fromMcpServer, guard, type McpAuthInfo, type McpSource } from '@toolgate/adapters/mcp'

const INFO = { name: 'test', version: '1' }
const gate = createGate()
const caller: Caller = { user: 'vera' }

// What it makes is what it was given, of either SDK.
const v1: ServerV1 = guard(gate, { server: () => new ServerV1(INFO), caller })()
const v2: ServerV2 = guard(gate, { server: () => new ServerV2(INFO), caller })()
const high1: McpServerV1 = guard(gate, { server: () => new McpServerV1(INFO), caller })()
const high2: McpServerV2 = guard(gate, { server: () => new McpServerV2(INFO), caller })()

// It fits where SDK v2 wants a factory, and its bus where it wants one.
const serve = guard(gate, { server: ({ era }) => new ServerV2({ ...INFO, name: era ?? 'none' }), caller })
const factory: McpServerFactory = serve
const bus: ServerEventBus = serve.bus
createMcpHandler(serve, { bus: serve.bus })
serveStdio(serve)

// Who asks is what the SDKs say.
guard(gate, {
  server: () => new ServerV2(INFO),
  caller: async ({ authInfo, headers, sessionId }) => ({
    user: authInfo?.clientId,
    scopes: [...(authInfo?.scopes ?? [])],
    attributes: { agent: headers?.get('user-agent') ?? '', session: sessionId ?? '' },
  }),
  app: 'desk',
  visibility: ['search'],
})
declare const authOfSdk: AuthInfo
const auth: McpAuthInfo = authOfSdk

// @ts-expect-error -- nobody is no caller
guard(gate, { server: () => new ServerV2(INFO) })
// @ts-expect-error -- a server is made anew each time
guard(gate, { server: new ServerV2(INFO), caller })
// @ts-expect-error -- it is no server
guard(gate, { server: () => ({}), caller })
// @ts-expect-error -- a run's list is its caller's: there are no steps
guard(gate, { server: () => new ServerV2(INFO), caller, activeTools: ['search'] })

// The tools of clients and of servers of all kinds are sources.
declare const clientV1: ClientV1
declare const clientV2: ClientV2
const sources: readonly Source[] = [
  await fromMcpClient(clientV1),
  await fromMcpClient(clientV2, { namespace: 'files', overlay: { 'read_*': { tags: ['read'] } }, trustHints: true }),
  await fromMcpClient(await createMCPClient({ transport: { type: 'http', url: 'http://127.0.0.1/mcp' } })),
  await fromMcpServer(new McpServerV1(INFO)),
  await fromMcpServer(new McpServerV2(INFO), { namespace: 'own' }),
]
createGate({ sources, groups: { files: { tools: ['files:*'], availableWhen: [(sources[1] as McpSource).probe] } } })

// @ts-expect-error -- an overlay has no such field
await fromMcpClient(clientV2, { overlay: { read: { tag: ['read'] } } })
// @ts-expect-error -- it is no client
await fromMcpClient({ listTools: () => [] })

export { auth, bus, factory, high1, high2, v1, v2 }
