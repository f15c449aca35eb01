import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, memoryAudit } from '@toolgate/core'
import { createCanceller } from '@toolgate/values'
import type { JsonObject } from '@toolgate/values/json'
import { memoryState } from '@toolgate/core/stores'
import { definePrompt, defineResource, InputRequired } from '@toolgate/core/toolset'
import { ItemLists, ResourceOwners, ToolLists } from '@toolgate/mcp'
import { promptMethods } from '../mcp/prompts/start.ts'
import { resourceMethods } from '../mcp/resources/methods.ts'
import type { McpReply, McpRequest } from './request.ts'
import { clientLink } from '../servers/asks/client-link.ts'
import { createRounds, MAX_ROUNDS } from './rounds.ts'

const URI = 'db:a'
const ASKS = { method: 'elicitation/create', params: { message: 'Who?' } }
const PARAMS = { 'resources/read': { uri: URI }, 'prompts/get': { name: 's__greet' } } as const
type Method = keyof typeof PARAMS

/** Serves a resource and a prompt that always ask for more. */
function serve(maxOpen?: number) {
  const execute = () => new InputRequired({ requests: { who: ASKS }, state: 'own' })
  const items = [
    defineResource({ uri: URI, namespace: 's', execute }),
    definePrompt({ name: 'greet', namespace: 's', execute }),
  ]
  const audit = memoryAudit()
  const cancelled: unknown[] = []
  const gate = createGate({ tools: items, audit, policy: { allow: ['resource:*:*', 'prompt:*:*'] } })
  const clock = { monotonicMs: () => performance.now(), wallMs: () => Date.now() }
  const names = new ToolLists(gate)
  const owners = new ResourceOwners(gate.catalog, () => ['s'])
  const rounds = createRounds({
    gate,
    clock,
    state: memoryState({ clock }),
    publicUrl: undefined,
    isStopping: () => false,
    cancelWaiting: (...waiting) => void cancelled.push(waiting),
    ...(maxOpen !== undefined && { maxOpen }),
  })
  const lists = new ItemLists(names, owners)
  const subscriptionsOf = () => assert.fail('not called')
  const rows = [...resourceMethods({ names, owners, lists, subscriptionsOf }), ...promptMethods(names, lists)]
  const sessions = { keep: () => undefined }
  const at = { gate, rounds, sessions, streams: { notify: () => {} }, listTtlMs: 0 }
  const ask = (method: Method, more: JsonObject = {}): Promise<McpReply> => {
    const request: McpRequest = {
      id: 1,
      params: { ...PARAMS[method], ...more },
      client: 'c',
      caller: { user: 'vera' },
      owner: { user: 'vera' },
      session: undefined,
      callerNow: () => ({ user: 'vera' }),
      protocolVersion: '2026-07-28',
      headers: undefined,
      signal: createCanceller(),
      link: clientLink({ era: 'modern', capabilities: { elicitation: {} }, ask: undefined, log: () => {} }),
      notify: () => {},
    }
    const row = rows.find(({ name }) => name === method)
    assert.ok(row)
    return row.serve(request, at)
  }
  const lastRecord = () => {
    const { event, detail, continues } = audit.records.at(-1) ?? {}
    return { event, detail, isContinued: continues !== undefined }
  }
  return { ask, cancelled, lastRecord }
}

describe('CallRounds', () => {
  for (const method of ['resources/read', 'prompts/get'] as const) {
    const name = method === 'resources/read' ? URI : 's__greet'

    it(`answers ${method} with a JSON-RPC error when too many of its client's calls wait`, async () => {
      const { ask, cancelled, lastRecord } = serve(1)
      assert.ok('asks' in (await ask(method)))
      assert.deepEqual(await ask(method), {
        error: { code: -32_603, message: `${name} failed: too many of its calls wait for an answer` },
      })
      const detail = 'too many of its calls wait for an answer'
      assert.deepEqual(cancelled, [['own', 's', { user: 'vera' }, detail]])
      assert.deepEqual(lastRecord(), { event: 'tool_abandoned', detail, isContinued: true })
    })

    it(`answers ${method} with a JSON-RPC error when it has had too many rounds`, async () => {
      const { ask, cancelled, lastRecord } = serve()
      let reply = await ask(method)
      for (let round = 1; round <= MAX_ROUNDS; round++) {
        assert.ok('asks' in reply, JSON.stringify(reply))
        reply = await ask(method, { requestState: reply.state, inputResponses: { who: { action: 'accept' } } })
      }
      assert.deepEqual(reply, {
        error: {
          code: -32_603,
          message: `${name} failed: it asked for more input more than ${MAX_ROUNDS} times`,
        },
      })
      assert.equal(cancelled.length, 1)
      assert.equal(lastRecord().event, 'tool_abandoned')
    })
  }
})
