import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { type CallContext, type Caller, createGate, defineTool, type GateOptions } from '@toolgate/core'
import { metaTools } from '@toolgate/core/search'
import { RpcError, toMcpOutput } from '@toolgate/mcp'
import { z } from 'zod'
import { type AnyClient, type ServeOptions, textOf, type Way, WAYS } from '../testing/mcp-ways.ts'
import { until } from '../testing/until.ts'
import { ADMIN, ADMINS_DELETE, createTestAudit, createWitness, VIEWER } from '../testing/world.ts'
import { guard } from './guard.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

async function world(way: Way, options: Partial<GateOptions> = {}, serving?: ServeOptions) {
  const witness = createWitness()
  const audit = createTestAudit()
  const gate = createGate({
    tools: ['search', 'delete_all', 'alpha'].map((name) => defineTool({ name, execute: witness.body(name) })),
    policy: options.tools ? [] : ADMINS_DELETE,
    audit,
    ...options,
  })
  const open = await way.open(gate, serving)
  closing.push(open.close)
  const connect = async (caller: Caller): Promise<AnyClient> => {
    const client = await open.connect(caller)
    closing.push(client.close)
    return client
  }
  return { witness, audit, gate, open, connect }
}

const namesOf = async (client: AnyClient) => (await client.list()).map(({ name }) => name)
const anyOrder = (a: string, b: string) => `(${a}, ${b}|${b}, ${a})`

for (const way of WAYS) {
  describe(`guard: ${way.name}`, () => {
    it('lists the tools that the caller sees, in the order of the ids, with their whole definitions', async () => {
      const { connect } = await world(way, {
        tools: [
          defineTool({ name: 'hidden', namespace: 'files' }),
          defineTool({
            name: 'read',
            namespace: 'files',
            title: 'Read',
            description: 'Reads a file.',
            inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
            outputSchema: { type: 'object', properties: { text: { type: 'string' } } },
            annotations: { readOnlyHint: true },
            icons: [{ src: 'https://example.com/i.png' }],
            _meta: { 'example.com/own': 1 },
          }),
          defineTool({ name: 'alpha' }),
        ],
        policy: { deny: ['files:hidden'] },
      })
      assert.deepEqual(await (await connect(VIEWER)).list(), [
        { name: 'alpha', inputSchema: { type: 'object' } },
        {
          name: 'files__read',
          title: 'Read',
          description: 'Reads a file.',
          inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
          outputSchema: { type: 'object', properties: { text: { type: 'string' } } },
          annotations: { readOnlyHint: true },
          icons: [{ src: 'https://example.com/i.png' }],
          _meta: { 'example.com/own': 1 },
        },
      ])
    })

    it('runs no hidden tool, and answers as for an unknown one', async () => {
      const { connect, witness, audit } = await world(way)
      const viewer = await connect(VIEWER)
      for (const name of ['delete_all', 'nothing_1', 'constructor', '__proto__', 'toString']) {
        const result = await viewer.call(name)
        assert.deepEqual(
          Object.keys(result).toSorted(),
          ['content', 'isError', ...('_meta' in result ? ['_meta'] : [])].toSorted(),
        )
        assert.equal(result.isError, true)
        const expected = `^Tool "${name}" is not available\\. Available tools: ${anyOrder('alpha', 'search')}\\.$`
        assert.match(textOf(result), new RegExp(expected))
      }
      assert.deepEqual(witness.ran, [])
      assert.deepEqual(audit.attempts(), [
        'delete_all tool_blocked policy_denied',
        'nothing_1 tool_blocked tool_not_found',
        'constructor tool_blocked tool_not_found',
        '__proto__ tool_blocked tool_not_found',
        'toString tool_blocked tool_not_found',
      ])
    })

    it('runs no hidden tool by its id, if its wire name differs', async () => {
      const { connect, audit } = await world(way, {
        tools: [defineTool({ name: 'remove', namespace: 'files', execute: () => assert.fail('it ran') })],
        policy: { deny: ['files:remove'] },
      })
      const viewer = await connect(VIEWER)
      for (const name of ['files__remove', 'files:remove', 'FILES__REMOVE', 'files__remove '])
        assert.equal((await viewer.call(name)).isError, true)
      assert.deepEqual(
        audit.attempts().map((attempt) => attempt.split(' ').slice(-1)[0]),
        ['policy_denied', 'tool_not_found', 'tool_not_found', 'tool_not_found'],
      )
    })

    it('never mixes callers whose requests overlap', async () => {
      const { connect, witness } = await world(way)
      const viewer = await connect(VIEWER)
      const admin = await connect(ADMIN)
      const seen = await Promise.all(
        Array.from({ length: 40 }, async (_, i) => {
          const client = i % 2 === 0 ? viewer : admin
          const [names, result] = await Promise.all([namesOf(client), client.call('delete_all')])
          return `${names.join()} ${result.isError === true ? 'refused' : textOf(result)}`
        }),
      )
      assert.deepEqual(new Set(seen.filter((_, i) => i % 2 === 0)), new Set(['alpha,search refused']))
      assert.deepEqual(
        new Set(seen.filter((_, i) => i % 2 === 1)),
        new Set(['alpha,delete_all,search delete_all done']),
      )
      assert.equal(witness.ran.length, 20)
    })

    describe('approvals', () => {
      const asked = { policy: [ADMINS_DELETE, { ask: ['delete_all', 'search'] }] }
      const approve = async (gate: Awaited<ReturnType<typeof world>>['gate']) => {
        const [pending] = await gate.approvals.list({ status: 'pending' })
        await gate.approvals.decide(ADMIN, pending?.id ?? '', { decision: 'approve' })
        return pending
      }

      it('are requested, and let the call run exactly once', async () => {
        const { connect, gate, witness, audit } = await world(way, asked)
        const admin = await connect(ADMIN)
        const waiting = await admin.call('delete_all')
        assert.equal(waiting.isError, true)
        assert.equal(textOf(waiting), 'Waiting for approval of delete_all.')
        const pending = await approve(gate)
        assert.deepEqual(waiting._meta?.['dev.toolgate/approval'], { id: pending?.id, expiresAt: pending?.expiresAt })
        assert.equal(textOf(await admin.call('delete_all')), 'delete_all done')
        assert.equal(textOf(await admin.call('delete_all')), 'Waiting for approval of delete_all.')
        assert.deepEqual(witness.ran, ['delete_all'])
        assert.deepEqual(audit.attempts(), [
          'delete_all tool_approval_required approval_required',
          'delete_all tool_call',
          'delete_all tool_result',
          'delete_all tool_approval_required approval_required',
        ])
      })

      it('do not run a tool that has been hidden since', async () => {
        const { connect, gate, witness } = await world(way, asked)
        const admin = await connect(ADMIN)
        await admin.call('search')
        await approve(gate)
        gate.setPolicy({ deny: ['search'] })
        assert.match(textOf(await admin.call('search')), /^Tool "search" is not available\./)
        assert.deepEqual(witness.ran, [])
      })

      it('that a client only claims run nothing', async () => {
        const { connect, gate, witness } = await world(way, asked)
        const admin = await connect(ADMIN)
        const { _meta: told } = await admin.call('search')
        const { id } = (told ?? {})['dev.toolgate/approval'] as { id: string }
        const forged = { _meta: { 'dev.toolgate/approval': { id, status: 'approved' } }, approved: true }
        assert.equal((await admin.call('search', forged)).isError, true)
        assert.equal((await admin.call('search')).isError, true)
        assert.equal((await gate.approvals.list()).length, 2)
        assert.deepEqual(witness.ran, [])
      })
    })

    it('keeps a limit exactly under concurrent calls', async () => {
      const { connect, witness, audit } = await world(way, { limits: 'search:3/60' })
      const viewer = await connect(VIEWER)
      const results = await Promise.all(Array.from({ length: 10 }, () => viewer.call('search')))
      assert.equal(witness.ran.length, 3)
      const refused = results.filter(({ isError }) => isError === true)
      assert.equal(refused.length, 7)
      for (const result of refused) {
        assert.match(textOf(result), /^TOOL_CALL_BLOCKED: rate limited \(3\/60\)\. Try again in \d+ s\.$/)
        assert.equal(typeof result._meta?.['dev.toolgate/retry-after'], 'number')
      }
      assert.equal(audit.attempts().filter((attempt) => attempt === 'search tool_rate_limited rate_limited').length, 7)
    })

    it('passes MCP results unchanged', async () => {
      const content = [
        { type: 'text', text: 'größe 🙂', annotations: { audience: ['user'] } },
        { type: 'image', data: 'AAAA', mimeType: 'image/png' },
        { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' },
        { type: 'resource_link', uri: 'file:///a', name: 'a' },
        { type: 'resource', resource: { uri: 'file:///a', text: 'a' } },
      ]
      const { connect } = await world(way, {
        tools: [
          tool('all', () => ({ content, structuredContent: { a: [1] }, _meta: { 'example.com/kept': true } })),
          tool('bad', () => ({ content: [{ type: 'text', text: 'It failed.' }], isError: true })),
        ],
      })
      const viewer = await connect(VIEWER)
      const all = await viewer.call('all')
      assert.deepEqual(all.content, content)
      assert.deepEqual(all.structuredContent, { a: [1] })
      assert.equal(all._meta?.['example.com/kept'], true)
      const bad = await viewer.call('bad')
      assert.deepEqual([bad.isError, textOf(bad)], [true, 'It failed.'])
    })

    it('turns the outputs of other tools into results', async () => {
      const outputSchema = { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] }
      const { connect } = await world(way, {
        tools: [
          tool('text', () => 'hello'),
          defineTool({ name: 'sum', outputSchema, execute: () => ({ sum: 5 }) }),
          tool('list', () => [1, 2]),
          tool('none', () => undefined),
          tool('page', () => ({ content: ['a', 'b'] })),
          tool('texts', async function* () {
            yield 'to'
            yield 'gether'
          }),
          tool('steps', async function* () {
            yield { progress: 1 }
            yield { done: true }
          }),
          tool('breaks', async function* () {
            yield 'a'
            throw new Error('no more')
          }),
        ],
      })
      const viewer = await connect(VIEWER)
      await viewer.list()
      const given = async (name: string) => {
        const { content, structuredContent, isError } = await viewer.call(name)
        return [textOf({ content: content ?? [] }), structuredContent, isError]
      }
      assert.deepEqual(await given('text'), ['hello', undefined, undefined])
      assert.deepEqual(await given('sum'), ['{"sum":5}', { sum: 5 }, undefined])
      assert.deepEqual(await given('list'), ['[1,2]', undefined, undefined])
      assert.deepEqual(await given('none'), ['', undefined, undefined])
      assert.deepEqual(await given('page'), ['{"content":["a","b"]}', { content: ['a', 'b'] }, undefined])
      assert.deepEqual(await given('texts'), ['together', undefined, undefined])
      assert.deepEqual(await given('steps'), ['{"done":true}', { done: true }, undefined])
      assert.deepEqual(await given('breaks'), ['breaks failed: no more', undefined, true])
    })

    it('answers with valid JSON for every output of a tool', async () => {
      const outputs: Readonly<Record<string, () => unknown>> = {
        big: () => ({ rows: 7n }),
        date: () => new Date(0),
        block: () => ({ content: [{ type: 'text', text: 'rows', rows: 7n }] }),
        rich: () => ({ content: [{ type: 'text', marks: [] }] }),
        flagged: () => ({ content: [{ type: 'text', text: 'x' }], isError: 'no' }),
        async *stream() {
          yield { rows: 7n }
        },
        // oxlint-disable-next-line require-yield -- it stops before its first item
        async *torn() {
          throw Object.create(null) as unknown
        },
      }
      const { connect } = await world(way, {
        tools: Object.entries(outputs).map(([name, execute]) => tool(name, execute)),
      })
      const viewer = await connect(VIEWER)
      const told = async (name: string) => {
        const result = await viewer.call(name)
        return [textOf(result), result.structuredContent, result.isError]
      }
      assert.deepEqual(await told('big'), ['{"rows":7}', { rows: 7 }, undefined])
      assert.deepEqual(await told('date'), ['"1970-01-01T00:00:00.000Z"', undefined, undefined])
      assert.deepEqual(await told('block'), ['rows', undefined, undefined])
      for (const name of ['rich', 'flagged']) {
        const plain = outputs[name]?.()
        assert.deepEqual(await told(name), [JSON.stringify(plain), plain, undefined])
      }
      assert.deepEqual(await told('stream'), ['{"rows":7}', { rows: 7 }, undefined])
      assert.deepEqual(await told('torn'), ['torn failed: an error without a text', undefined, true])
    })

    it('lists and calls tools whose schemas clients would reject unchanged', async () => {
      const either = z.union([z.object({ a: z.string() }), z.object({ b: z.string() })])
      const { connect } = await world(way, {
        tools: [
          defineTool({ name: 'either', inputSchema: either, execute: (input) => Object.keys(input).join() }),
          defineTool({ name: 'any', inputSchema: { type: 'object', properties: { a: true, b: false } } }),
          defineTool({
            name: 'list',
            inputSchema: { type: ['object', 'null'] },
            outputSchema: { type: 'array' },
            execute: () => [1, 2],
          }),
          defineTool({ name: 'none', inputSchema: { type: 'array' } }),
        ],
      })
      const viewer = await connect(VIEWER)
      const [any, one, list] = await viewer.list()
      assert.deepEqual([any?.name, one?.name, list?.name], ['any', 'either', 'list'])
      assert.deepEqual(any?.['inputSchema'], { type: 'object', properties: { a: {}, b: { not: {} } } })
      assert.equal(textOf(await viewer.call('either', { b: 'x' })), 'b')
      const { structuredContent, ...result } = await viewer.call('list')
      assert.equal(textOf(result), '[1,2]')
      assert.deepEqual([list?.['outputSchema'], structuredContent], way.arrays)
    })

    it('passes progress on', async () => {
      const { connect } = await world(way, {
        tools: [
          tool('slow', async (_, { onProgress }) => {
            for (const progress of [1, 2, 3]) onProgress?.({ progress, total: 3 })
            await new Promise((resolve) => setImmediate(resolve))
            return 'done'
          }),
        ],
      })
      const heard: unknown[] = []
      const viewer = await connect(VIEWER)
      const onProgress = ({ progress, total }: { progress: number; total?: number | undefined }) =>
        heard.push([progress, total])
      assert.equal(textOf(await viewer.call('slow', {}, { onProgress })), 'done')
      assert.deepEqual(heard, [
        [1, 3],
        [2, 3],
        [3, 3],
      ])
      assert.equal(textOf(await viewer.call('slow')), 'done')
    })

    if (way.cancels)
      it('aborts a tool whose client cancels', async () => {
        const gone = new AbortController()
        let stopped: unknown
        const { connect, audit } = await world(way, {
          tools: [
            tool('hang', (_, { signal }) => {
              setImmediate(() => gone.abort(new Error('enough')))
              return new Promise((_resolve, reject) => {
                signal.addEventListener('abort', () => {
                  stopped = true
                  reject(new Error('stopped'))
                })
              })
            }),
          ],
        })
        await assert.rejects((await connect(VIEWER)).call('hang', {}, { signal: gone.signal }))
        await until(() => stopped)
        await until(() => audit.attempts().length === 2)
        assert.deepEqual(audit.attempts(), ['hang tool_call', 'hang tool_abandoned tool_aborted'])
      })

    it('reports a tool that throws to the model', async () => {
      const { connect, audit } = await world(way, {
        tools: [
          tool('broken', () => {
            throw new Error('out of paper')
          }),
        ],
      })
      const result = await (await connect(VIEWER)).call('broken')
      assert.deepEqual([result.isError, textOf(result)], [true, 'broken failed: out of paper'])
      assert.deepEqual(audit.attempts(), ['broken tool_call', 'broken tool_result tool_failed'])
    })

    it('answers with the RpcError that a tool throws, even with unusual fields', async () => {
      const { connect } = await world(way, {
        tools: [
          tool('taken', () => {
            throw new RpcError(-32_050, 'Taken.', { rows: 7n })
          }),
          tool('odd', () => {
            throw new RpcError(Number.NaN, 'Odd.')
          }),
        ],
      })
      const viewer = await connect(VIEWER)
      await assert.rejects(viewer.call('taken'), { code: -32_050, data: { rows: 7 } })
      await assert.rejects(viewer.call('odd'), { code: -32_603 })
    })

    it('refuses an invalid input, and names the place', async () => {
      const { connect, audit } = await world(way, {
        tools: [
          defineTool({
            name: 'add',
            inputSchema: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] },
            execute: () => assert.fail('it ran'),
          }),
        ],
      })
      const result = await (await connect(VIEWER)).call('add', { a: 'x' })
      assert.match(textOf(result), /^TOOL_CALL_BLOCKED: .*\/a/)
      assert.deepEqual(audit.attempts(), ['add tool_blocked input_invalid'])
    })

    it('passes a tool the input as the client wrote it, and the SDK’s context of the request', async () => {
      let got: { input: unknown; context: unknown } | undefined
      const { connect } = await world(way, {
        tools: [
          tool('take', (input, { context }) => {
            got = { input, context }
          }),
        ],
      })
      const viewer = await connect(VIEWER)
      await viewer.call('take', { a: { constructor: 1, toJSON: 'x' }, n: null, s: 'größe 🙂' })
      assert.equal(JSON.stringify(got?.input), '{"a":{"constructor":1,"toJSON":"x"},"n":null,"s":"größe 🙂"}')
      const fields = Object.keys(got?.context ?? {})
      assert.ok(fields.includes('mcpReq') || fields.includes('sendNotification'), fields.join())
    })

    it('has fields with the reason why a known tool is unavailable', async () => {
      const { connect } = await world(way, {
        groups: {
          web: {
            tools: ['search'],
            availableWhen: [() => ({ available: false, reason: 'nothing listens', suggestion: 'Start it.' })],
          },
        },
      })
      const viewer = await connect(VIEWER)
      const result = await until(async () => {
        const answer = await viewer.call('search')
        return /nothing listens/.test(textOf(answer)) && answer
      })
      assert.equal(textOf(result), 'search is unavailable: nothing listens. Start it.')
      assert.deepEqual(result._meta?.['dev.toolgate/refusal'], {
        error: 'group_unavailable',
        reason: 'nothing listens',
        suggestion: 'Start it.',
      })
    })

    it('narrows to an app and by visibility', async () => {
      const apps = { desk: { tools: ['search', 'delete_all'] } }
      const { connect } = await world(way, { apps }, { app: 'desk', visibility: ['search', 'alpha'] })
      const admin = await connect(ADMIN)
      assert.deepEqual(await namesOf(admin), ['search'])
      for (const name of ['alpha', 'delete_all']) assert.equal((await admin.call(name)).isError, true)
    })

    it('offers the meta-tools with MCP results', async () => {
      const { connect, audit } = await world(way, {
        tools: [
          tool('search', () => 'found'),
          tool('delete_all', () => assert.fail('it ran')),
          ...metaTools({ toOutput: toMcpOutput }),
        ],
        policy: ADMINS_DELETE,
      })
      const viewer = await connect(VIEWER)
      const found = await viewer.call('search_tools', { query: 'delete all' })
      assert.deepEqual((found.structuredContent as { tools: unknown[] }).tools, [])
      const refused = await viewer.call('call_tool', { name: 'delete_all', arguments: {} })
      assert.match(textOf(refused), /^Tool "delete_all" is not available\./)
      assert.equal(refused.isError, true)
      assert.equal(textOf(await viewer.call('call_tool', { name: 'search' })), 'found')
      assert.ok(audit.attempts().includes('delete_all tool_blocked policy_denied'))
    })

    it('takes effect at once when a policy tightens', async () => {
      const { connect, gate, witness } = await world(way)
      const admin = await connect(ADMIN)
      assert.deepEqual(await namesOf(admin), ['alpha', 'delete_all', 'search'])
      gate.setPolicy({ deny: ['delete_all'] })
      assert.equal((await admin.call('delete_all')).isError, true)
      assert.deepEqual(await namesOf(admin), ['alpha', 'search'])
      await gate.halt({ user: 'ada', reason: 'stop' })
      assert.equal((await admin.call('search')).isError, true)
      assert.deepEqual(witness.ran, [])
    })

    it('lists nothing and runs nothing for an unknown caller, and does not say why', async () => {
      const faults: unknown[] = []
      const caller = () => {
        throw new Error('the directory is down')
      }
      const { connect, witness, audit } = await world(way, {}, { caller, onFault: (error) => faults.push(error) })
      const client = await connect(ADMIN)
      for (const ask of [() => client.list(), () => client.call('search')])
        await assert.rejects(ask, (error: { code: unknown; message: string }) => {
          assert.equal(error.code, -32_603)
          assert.match(error.message, /^(MCP error -32603: )?The caller is not known\.$/)
          return true
        })
      assert.match(String(faults), /the directory is down/)
      assert.deepEqual(witness.ran, [])
      assert.equal(audit.attempts().length, 1)
      assert.match(audit.attempts()[0] ?? '', /^search tool_blocked/)
    })

    it('says no more if onFault throws, and the call is recorded', async () => {
      const failing = (): never => {
        throw new Error('the log is full')
      }
      const { connect, audit } = await world(way, {}, { caller: failing, onFault: failing })
      const client = await connect(ADMIN)
      await assert.rejects(client.call('search'), /^\w*Error: (MCP error -32603: )?The caller is not known\.$/)
      assert.equal(audit.attempts().length, 1)
    })

    const LOCKED = { browser: { tools: ['search'], unlock: 'request' as const, hint: 'Pages.' } }

    if (way.tells) {
      it('notifies a client that its list has changed, and no other client', async () => {
        const { connect, gate } = await world(way, {}, { watchEveryMs: 20 })
        const [viewer, admin] = [await connect(VIEWER), await connect(ADMIN)]
        await viewer.list()
        await admin.list()
        gate.setPolicy({ deny: ['delete_all'] })
        await until(() => admin.changes() === 1)
        assert.equal(viewer.changes(), 0)
        assert.deepEqual(await namesOf(admin), ['alpha', 'search'])
        gate.setPolicy({ deny: ['delete_all', 'alpha'] })
        await until(() => admin.changes() === 2 && viewer.changes() === 1)
      })

      it('opens locked groups for one connection, not for others of the same caller', async () => {
        const { connect, audit } = await world(way, { groups: LOCKED }, { watchEveryMs: 20 })
        const [one, other] = [await connect(VIEWER), await connect(VIEWER)]
        assert.deepEqual(await namesOf(one), ['alpha', 'request_tools'])
        assert.deepEqual(await namesOf(other), ['alpha', 'request_tools'])
        assert.match(textOf(await one.call('search')), /^search is locked\./)
        const { session_id: session } = audit.records.findLast(({ event }) => event === 'tool_blocked') ?? {}
        assert.match(session ?? '', /^\/vera\//)
        const opened = await one.call('request_tools', { group: 'browser' })
        assert.equal(textOf(opened), 'The group "browser" is open. In your list from your next step on: search.')
        await until(() => one.changes() === 1)
        assert.deepEqual(await namesOf(one), ['alpha', 'search'])
        assert.equal(textOf(await one.call('search')), 'search done')
        assert.deepEqual([await namesOf(other), other.changes()], [['alpha', 'request_tools'], 0])
      })
    } else
      it('leaves locked tools out of the list of a client without a session, and runs them all the same', async () => {
        const { connect } = await world(way, { groups: LOCKED })
        const viewer = await connect(VIEWER)
        assert.deepEqual(await namesOf(viewer), ['alpha'])
        assert.equal(textOf(await viewer.call('search')), 'search done')
      })
  })
}

describe('guard of MCP servers', () => {
  it('rejects invalid times', () => {
    const gate = createGate({ tools: [] })
    for (const wrong of [{ listTtlMs: -1 }, { listTtlMs: Number.NaN }, { watchEveryMs: 0 }, { watchEveryMs: 2 ** 31 }])
      assert.throws(() => guard(gate, { server: () => assert.fail('none'), caller: VIEWER, ...wrong }), {
        message: new RegExp(`^${Object.keys(wrong)[0]}: must be a number of milliseconds from \\d to 2147483647$`),
      })
  })
})

function tool(name: string, execute: (input: unknown, call: CallContext) => unknown) {
  return defineTool({ name, execute })
}
