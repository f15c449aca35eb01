import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ConfigError } from '@toolgate/values'
import { fromAnthropicTools } from '../../expose/src/imports/import-tools.ts'
import { createGate } from './gate/gate.ts'
import { policyFromEnv, sendersFromEnv } from './policy/environment.ts'
import { defineTool } from './tools/tool.ts'

const tools = [defineTool({ name: 'search' }), defineTool({ name: 'remove', tags: ['danger'] })]
const policy = { deny: ['tag:danger'] }

/** As a host in JavaScript passes it. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- it is what the caller takes it for
function loose<T>(value: unknown): T {
  return value as T
}

const gateWith = (options: object) => createGate({ tools, ...options })
const gate = gateWith({ policy })

/** Each would silently take away a denial, a limit, a lock or a check. */
const WRONG: readonly (readonly [shows: string, path: string, use: () => unknown])[] = [
  ['a promise for the policy', 'policy[0]', () => gateWith({ policy: Promise.resolve(policy) })],
  ['a Set of policies', 'policy[0]', () => gateWith({ policy: new Set([policy]) })],
  ['a Map for a policy', 'policy[0]', () => gateWith({ policy: new Map(Object.entries(policy)) })],
  ['a promise for a clause', 'policy[0].deny[0]', () => gateWith({ policy: { deny: [Promise.resolve('search')] } })],
  ['a promise for the options', 'createGate', () => createGate(loose<object>(Promise.resolve({ tools, policy })))],
  ['no policy for setPolicy', 'setPolicy', () => gate.setPolicy(loose(undefined))],
  ['null for inherit', 'fork.inherit', () => gate.fork({ policy: {}, inherit: loose(null) })],
  ['0 for inherit', 'fork.inherit', () => gate.fork({ policy: {}, inherit: loose(0) })],
  ['a text for inherit', 'fork.inherit', () => gate.fork({ policy: {}, inherit: loose('false') })],
  ['null for groups', 'groups', () => gateWith({ groups: null })],
  ['a text for groups', 'groups', () => gateWith({ groups: '' })],
  ['a list of groups', 'groups', () => gateWith({ groups: [] })],
  ['a promise for groups', 'groups', () => gateWith({ groups: Promise.resolve({}) })],
  ['a promise for apps', 'apps', () => gateWith({ apps: Promise.resolve({}) })],
  ['null for apps', 'apps', () => gateWith({ apps: null })],
  ['a Set of aliases', 'aliases', () => gateWith({ aliases: new Set(['find']) })],
  ['null for concurrency', 'concurrency', () => gateWith({ concurrency: null })],
  ['null for tools', 'tools', () => gateWith({ tools: null })],
  ['a promise for tools', 'tools', () => gateWith({ tools: Promise.resolve(tools) })],
  ['null for sources', 'sources', () => gateWith({ sources: null })],
  ['a text for sources', 'sources', () => gateWith({ sources: 'files' })],
  ['null in sources', 'sources[0]', () => gateWith({ sources: [null] })],
  ['null for mayApprove', 'mayApprove', () => gateWith({ mayApprove: null })],
  ['an object for mayApprove', 'mayApprove', () => gateWith({ mayApprove: {} })],
  ['null for validateInput', 'validateInput', () => gateWith({ validateInput: null })],
  ['a text for counters', 'counters', () => gateWith({ counters: 'memory' })],
  ['null for counters', 'counters', () => gateWith({ counters: null })],
  ['an object without the functions for counters', 'counters', () => gateWith({ counters: { take() {} } })],
  ['a promise for state', 'state', () => gateWith({ state: Promise.resolve() })],
  ['a promise for approvals', 'approvals', () => gateWith({ approvals: Promise.resolve() })],
  ['null for audit', 'audit', () => gateWith({ audit: null })],
  ['a list for availability', 'availability', () => gateWith({ availability: [] })],
  ['a text for redactor', 'redactor', () => gateWith({ redactor: 'x' })],
  ['a text for onWarning', 'onWarning', () => gateWith({ onWarning: 'x' })],
  ['a number for clock', 'clock', () => gateWith({ clock: 0 })],
  ['null in dependsOn', 'groups.web.dependsOn', () => gateWith({ groups: { web: { tools: [], dependsOn: [null] } } })],
  ['a Map for the environment', 'environment', () => policyFromEnv(loose(new Map([['TOOL_DENYLIST', 'search']])))],
  ['no environment', 'environment', () => sendersFromEnv(loose(undefined))],
  [
    'a Map for overlay',
    'fromAnthropicTools.overlay',
    () =>
      fromAnthropicTools([{ name: 'a', input_schema: { type: 'object' } }], {
        overlay: loose(new Map([['a', { tags: ['danger'] }]])),
      }),
  ],
  ['null for overlay', 'fromAnthropicTools.overlay', () => fromAnthropicTools([], { overlay: loose(null) })],
  ['a list for execute', 'fromAnthropicTools.execute', () => fromAnthropicTools([], { execute: loose([]) })],
  ['a text for toId', 'fromAnthropicTools.toId', () => fromAnthropicTools([], { toId: loose('a') })],
  ['a number for namespace', 'fromAnthropicTools.namespace', () => fromAnthropicTools([], { namespace: loose(7) })],
]

describe('a value of the wrong kind', () => {
  for (const [shows, path, use] of WRONG)
    it(`is an error: ${shows}`, () =>
      assert.throws(use, (error) => {
        assert.ok(error instanceof ConfigError, String(error))
        assert.equal(error.path, path)
        return true
      }))

  it('leaves the policy as it was', async () => {
    const kept = gateWith({ policy })
    assert.throws(() => kept.setPolicy(loose(undefined)), ConfigError)
    assert.deepEqual((await kept.view({})).ids, ['search'])
    kept.setPolicy([])
    assert.deepEqual((await kept.view({})).ids, ['remove', 'search'])
  })

  it('in activeTools is an unknown tool, or an error', async () => {
    const view = await gate.view({})
    for (const wrong of [null, undefined, 7, {}])
      assert.throws(() => view.narrow({ activeTools: [loose<string>(wrong)] }), { path: 'activeTools[0]' })
  })
})
