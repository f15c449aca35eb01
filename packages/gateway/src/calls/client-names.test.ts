import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, defineTool } from '@toolgate/core'
import { createCanceller } from '@toolgate/values'
import type { JsonObject } from '@toolgate/values/json'
import { memoryState } from '@toolgate/core/stores'
import { definePrompt, defineResource } from '@toolgate/core/toolset'
import { ItemLists, ResourceOwners, ToolLists } from '@toolgate/mcp'
import { clientLink } from '../servers/asks/client-link.ts'
import { createRounds } from './rounds.ts'
import { clientNames } from './client-names.ts'
import type { Method } from './method.ts'
import { completeArgument } from '../mcp/completion/complete.ts'
import { promptMethods } from '../mcp/prompts/start.ts'
import { resourceMethods } from '../mcp/resources/methods.ts'
import { ResourceSubscriptions } from '../mcp/resources/subscriptions.ts'

const ITEMS = [
  defineResource({ uri: 'db:a', namespace: 's', execute: () => ({ contents: [] }) }),
  definePrompt({ name: 'greet', namespace: 's', arguments: [{ name: 'to' }], execute: () => ({ messages: [] }) }),
]
const CALLER = { user: 'vera' }

/** A gateway in which a tool and a resource were read, and whose rules deny what follows. */
async function serve() {
  const tools = [defineTool({ name: 'fetch', namespace: 'web', execute: () => 'x' }), ...ITEMS]
  const input = "'untrusted' in run.labels"
  const gate = createGate({
    tools,
    policy: {
      allow: ['*', 'resource:*:*', 'prompt:*:*'],
      deny: [
        { match: 'resource:s:*', input },
        { match: 'prompt:s:*', input },
      ],
    },
  })
  const names = new ToolLists(gate)
  const owners = new ResourceOwners(gate.catalog, () => ['s'])
  const clock = { monotonicMs: () => performance.now(), wallMs: () => Date.now() }
  const isStopping = () => false
  const rounds = createRounds({
    gate,
    clock,
    state: memoryState({ clock }),
    publicUrl: undefined,
    isStopping,
    cancelWaiting: () => {},
  })
  const notAsked = () => Promise.reject(new Error('not asked'))
  const lists = new ItemLists(names, owners)
  const watchResource = notAsked
  const subscriptions = new ResourceSubscriptions({ gate, names, owners, watchResource, onFault: assert.ifError })
  const rows: readonly Method[] = [
    ...resourceMethods({ names, owners, lists, subscriptionsOf: () => subscriptions }),
    ...promptMethods(names, lists),
    {
      name: 'completion/complete',
      serve: (request) => completeArgument({ gate, names, owners, complete: notAsked }, request),
    },
  ]
  const at = { gate, rounds, sessions: { keep: () => undefined }, streams: { notify: () => {} }, listTtlMs: 0 }
  const view = await gate.view(CALLER)
  await view.call({ tool: 'web:fetch' })
  return {
    view,
    names,
    close: () => gate.close(),
    async ask(method: string, params: JsonObject): Promise<unknown> {
      if (method === 'resources/subscribe')
        return subscriptions.subscribe({
          uri: String(params['uri']),
          caller: CALLER,
          owner: CALLER,
          era: 'modern',
          updated: () => {},
        })
      const link = clientLink({ era: 'modern', capabilities: {}, ask: undefined, log: () => {} })
      const request = {
        id: 1,
        params,
        client: 'c',
        caller: CALLER,
        owner: CALLER,
        session: undefined,
        callerNow: () => CALLER,
        protocolVersion: '2026-07-28',
        headers: undefined,
        signal: createCanceller(),
        link,
        notify: () => {},
      }
      return rows.find(({ name }) => name === method)?.serve(request, at)
    },
  }
}

describe('clientNames', () => {
  for (const [method, params] of [
    ['resources/read', { uri: 'db:a' }],
    ['resources/subscribe', { uri: 'db:a' }],
    ['prompts/get', { name: 's__greet' }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 's__greet' }, argument: { name: 'to', value: '' } }],
  ] as const)
    it(`a refusal of ${method} names what the run has read, and not the item itself`, async () => {
      const { ask, close } = await serve()
      const text = JSON.stringify(await ask(method, params))
      assert.match(text, /This run has read web__fetch, whose output is untrusted/)
      await close()
    })

  it('names tools and prompts as on the wire, resources by URI, and the item of the call as the client did', async () => {
    const { view, names, close } = await serve()
    const nameOf = clientNames(names, view, { id: 'resource:s:db:a', name: 'DB:a' })
    assert.deepEqual(['web:fetch', 'prompt:s:greet', 'resource:s:db:b', 'resource:s:db:a', 'gone:tool'].map(nameOf), [
      'web__fetch',
      's__greet',
      'db:b',
      'DB:a',
      'gone:tool',
    ])
    await close()
  })
})
