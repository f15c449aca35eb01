import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { text as readText } from 'node:stream/consumers'
import { startTestGateway } from '../../tests/support/gateway.ts'
import { callerConfig } from '../../tests/support/keys.ts'
import { startRecordingServer } from '../../tests/support/recording-server.ts'
import { MODERN, type RpcAnswer, toMessage } from '../../tests/support/rpc.ts'
import { httpServer } from '../../tests/support/servers.ts'
import type { Shown } from './attackers.ts'
import type { Answer, OpenWay } from './way.ts'

const HOST = 'key-of-the-host'
const PERSON = 'key-of-the-approver'
const CALLERS = [
  callerConfig('key-of-emma', { user: 'emma', tenant: 'acme' }),
  callerConfig(HOST, { user: 'runner', tenant: 'acme' }, 'host'),
  callerConfig(PERSON, { user: 'ada', tenant: 'acme', roles: ['approver'] }, 'console'),
]

/** Through a gateway, over HTTP: its host starts each run, and the agent has the token of the run only. */
export const openGateway: OpenWay = async (suite, { labels, policy }) => {
  let next: Shown = { text: '', isError: false }
  let ran = false
  const server = await startRecordingServer(
    suite.tools.map(({ name, description, inputSchema }) => ({
      name,
      description,
      inputSchema,
      run() {
        ran = true
        return { content: [{ type: 'text', text: next.text }], isError: next.isError }
      },
    })),
  )
  const gateway = await startTestGateway({
    servers: [httpServer(suite.name, server.url, { tools: labels.tools })],
    callers: CALLERS,
    labels: { trusted: labels.trusted },
    // The file of a gateway says what is allowed; these policies say what is not.
    policy: [{ allow: ['*'] }, ...policy],
  })
  const agent = new Agent({ keepAlive: true })
  const send = (path: string, key: string, body: object, headers: object = { 'content-type': 'application/json' }) =>
    post(`${gateway.url}${path}`, agent, { ...headers, authorization: `Bearer ${key}` }, body)

  return {
    async start({ words, tools }) {
      const asked = { user: 'emma', ...(words !== undefined && { userWords: [words] }), ...(tools && { tools }) }
      const { id, token } = (await send('/api/runs', HOST, asked)) as { id: string; token: string }
      return {
        async call(tool, input, shown): Promise<Answer> {
          next = shown
          ran = false
          const message = toMessage(MODERN, 'tools/call', { name: `${suite.name}__${tool}`, arguments: input })
          const answer = (await send('/mcp', token, message.body, message.headers)) as RpcAnswer
          if (ran) return { status: 'done' }
          const text = JSON.stringify(answer)
          const approval = answer.result?._meta?.['dev.toolgate/approval'] as { readonly id: string } | undefined
          if (!approval) return { status: 'refused', text }
          const decide = async (decision: string) =>
            void (await send(`/api/approvals/${approval.id}`, PERSON, { decision }))
          return { status: 'waiting', text, decide }
        },
        async end() {
          server.forget()
          await post(`${gateway.url}/api/runs/${id}`, agent, { authorization: `Bearer ${HOST}` }, undefined, 'DELETE')
        },
      }
    },
    async close() {
      agent.destroy()
      await gateway.close()
      await server.close()
    },
  }
}

/** Returns the JSON of an answer. */
async function post(
  url: string,
  agent: Agent,
  headers: object,
  body: object | undefined,
  method = 'POST',
): Promise<unknown> {
  const sent = request(url, { method, agent, headers: { ...headers } })
  sent.end(body && JSON.stringify(body))
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const text = await readText(response)
  if (response.statusCode !== 200) throw new Error(`${method} ${url}: ${response.statusCode} ${text}`)
  return JSON.parse(text)
}
