import { type GatewayConfig, type RunningGateway, startGateway } from '../../gateway/src/index.ts'
import { send } from '../../../tests/support/http.ts'
import { CALLERS, KEYS } from '../../../tests/support/keys.ts'
import { toMessage } from '../../../tests/support/rpc.ts'
import type { Suite } from './suite.ts'

/** Starts a gateway without servers that allows everything, except for what is given. It is closed after the test. */
export async function keepGateway(
  stage: Suite,
  config: Partial<GatewayConfig>,
  options: Parameters<typeof startGateway>[1] = {},
): Promise<RunningGateway> {
  const gateway = await stage.keep(
    startGateway(
      {
        file: '/test/toolgate.yaml',
        listen: { host: '127.0.0.1', port: 0 },
        servers: [],
        callers: CALLERS,
        groups: [],
        policy: [{ allow: ['*'] }],
        limits: [],
        audit: { store: 'memory', mode: 'batched' },
        ...config,
      },
      { consoleDir: stage.consoleDir, ...options },
    ),
  )
  await gateway.ready
  return gateway
}

/** Calls a tool as the agent "viewer" does, over MCP, and returns the answer as JSON. */
export async function callAsViewer(gateway: RunningGateway, name: string, args: object): Promise<string> {
  const message = toMessage('2026-07-28', 'tools/call', { name, arguments: args })
  const answer = await send(`${gateway.url}/mcp`, {
    headers: { ...message.headers, authorization: `Bearer ${KEYS.viewer}` },
    body: JSON.stringify(message.body),
  })
  return JSON.stringify(answer)
}
