import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Caller } from '@toolgate/core'
import type { Cancelling } from '@toolgate/values'
import type { JsonObject } from '@toolgate/values/json'
import { RpcError } from '@toolgate/mcp'
import { everythingOverHttp, HOSTILE, nodeServer, SERVERS, testUpstream, until } from '../../../fixtures/servers.ts'
import type { ServerConfig } from '../../config/config.ts'
import type { ServerMay } from '../../config/may.ts'
import type { UpstreamCall } from '../../model/upstream.ts'

const MAY: ServerMay = { elicit: true, sample: true, roots: true, log: true, open: ['https://login.example.com'] }
const { signal } = new AbortController()
const VERA: Caller = { user: 'vera' }
const call = (name: string, more: Partial<UpstreamCall> = {}): UpstreamCall => ({
  method: 'tools/call',
  params: { name, arguments: {} },
  caller: VERA,
  signal,
  ...more,
})

interface Ask {
  readonly method: string
  readonly params: JsonObject
  readonly signal: Cancelling
}

/** A client that keeps what it is asked, and answers by method. */
function asking(answers: Readonly<Record<string, JsonObject>> = {}) {
  const asks: Ask[] = []
  const onAsk = async (method: string, params: JsonObject, withdrawn: Cancelling) => {
    asks.push({ method, params, signal: withdrawn })
    const answer = answers[method]
    if (!answer) throw new RpcError(-1, 'The person declined.')
    return answer
  }
  return { asks, onAsk }
}

async function started(t: TestContext, config: ServerConfig) {
  const server = testUpstream(t, config)
  await server.start()
  return server
}

describe('the client of a call', () => {
  for (const [where, config] of [
    ['stdio', nodeServer([SERVERS.everything, 'stdio'], { may: MAY })],
    ['HTTP', everythingOverHttp({ may: MAY })],
  ] as const) {
    it(`is asked by its server over ${where}: a form, a URL, a sample and roots`, async (t) => {
      const server = await started(t, config)
      const answers = {
        'elicitation/create': { action: 'accept', content: { name: 'Vera' } },
        'sampling/createMessage': { role: 'assistant', model: 'm', content: { type: 'text', text: 'sampled' } },
        'roots/list': { roots: [{ uri: 'file:///workspace', name: 'work' }] },
      }
      /** Returns the text of a call and what it was asked. The server asks for roots at any time: those are left out. */
      const asksOf = async (name: string, input: object) => {
        const { asks, onAsk } = asking(answers)
        const text = JSON.stringify(await server.call(call(name, { onAsk, params: { name, arguments: input } })))
        const others = asks.filter(({ method }) => method !== 'roots/list')
        return { text, asks: others.map(({ method, params }) => [method, params['mode'] ?? 'form']) }
      }
      for (const [name, input, text, asked] of [
        ['trigger-elicitation-request', {}, /Vera/, ['elicitation/create', 'form']],
        ['trigger-url-elicitation', { url: 'https://login.example.com/x' }, /accept/, ['elicitation/create', 'url']],
        ['trigger-sampling-request', { prompt: 'p', maxTokens: 5 }, /sampled/, ['sampling/createMessage', 'form']],
      ] as const) {
        const outcome = await asksOf(name, input)
        assert.match(outcome.text, text)
        assert.deepEqual(outcome.asks, [asked])
      }
      assert.match((await asksOf('get-roots-list', {})).text, /workspace/)
    })
  }

  for (const [where, config] of [
    ['stdio', nodeServer([SERVERS.everything, 'stdio'], { may: MAY })],
    ['HTTP', everythingOverHttp({ may: MAY })],
  ] as const)
    it(`is missing while no call runs: a server over ${where} that asks then is in the log, once`, async (t) => {
      const server = await started(t, config)
      const asked = () => server.lines.filter(({ message }) => message === 'asked for roots/list, which no client got')
      await until(() => asked().length > 0)
      assert.equal(asked()[0]?.detail, 'No running call has a client that can be asked.')
      assert.equal(asked().length, 1)
    })

  it('may refuse, and its error goes back to the server', async (t) => {
    const server = await started(t, nodeServer([HOSTILE, 'banner']))
    const { structuredContent } = await server.call(call('ask', { onAsk: asking().onAsk }))
    assert.deepEqual(structuredContent, { error: { code: -1, message: 'The person declined.' } })
  })

  it('is not asked on behalf of another: with calls of several callers on stdio, nobody is', async (t) => {
    const server = await started(t, nodeServer([HOSTILE, 'banner']))
    const other = asking({ 'sampling/createMessage': {} })
    const own = asking({ 'sampling/createMessage': {} })
    const leaving = new AbortController()
    const hanging = server.call(call('hang', { caller: { user: 'ben' }, onAsk: other.onAsk, signal: leaving.signal }))
    const { structuredContent } = await server.call(call('ask', { onAsk: own.onAsk }))
    assert.match(JSON.stringify(structuredContent), /Calls of several clients are running/)
    assert.deepEqual([own.asks.length, other.asks.length], [0, 0])
    const said = server.lines.find(({ message }) => message.endsWith('which no client got'))
    assert.match(said?.detail ?? '', /Calls of several clients are running/)
    leaving.abort()
    await assert.rejects(hanging, { code: 'aborted' })
    await server.call(call('ask', { onAsk: own.onAsk }))
    assert.equal(own.asks.length, 1)
  })

  it('is the only one that gets the log messages of its call', async (t) => {
    const server = await started(t, nodeServer([HOSTILE, 'banner'], { may: MAY }))
    const logs: JsonObject[] = []
    await server.call(call('log-line', { onLog: (params) => logs.push(params) }))
    await server.call(call('log-line'))
    assert.deepEqual(logs, [{ level: 'info', data: 'a line' }])
  })

  it('has time: its call does not end while it is asked', async (t) => {
    const server = await started(t, nodeServer([HOSTILE, 'banner'], { callTimeoutMs: 1_000 }))
    const onAsk = async () => {
      await sleep(1_500)
      return {}
    }
    const { structuredContent } = await server.call(call('ask', { onAsk }))
    assert.deepEqual(structuredContent, {})
  })

  it('is told when its call has ended', async (t) => {
    const server = await started(t, nodeServer([HOSTILE, 'banner']))
    const leaving = new AbortController()
    let asked: Cancelling | undefined
    const onAsk = (_method: string, _params: JsonObject, withdrawn: Cancelling) => {
      asked = withdrawn
      return new Promise<JsonObject>((_, reject) => withdrawn.onAbort(() => reject(withdrawn.reason as Error)))
    }
    const ending = server.call(call('ask', { onAsk, signal: leaving.signal }))
    await until(() => asked)
    leaving.abort()
    await assert.rejects(ending, { code: 'aborted' })
    await until(() => asked?.aborted)
  })
})
