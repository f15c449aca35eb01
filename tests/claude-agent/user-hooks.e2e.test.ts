import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { HookCallback, PreToolUseHookSpecificOutput } from '@anthropic-ai/claude-agent-sdk'
import { fromClaudeAgent, guard } from '@toolgate/adapters/claude-agent'
import { createGate } from '@toolgate/core'
import { createTestAudit, createWitness, VIEWER } from '../../packages/adapters/src/testing/world.ts'
import { BYPASS, createPlace, type Place, use } from './support/query.ts'

describe("guard of the Claude Agent SDK, with the user's own hooks and permissions", () => {
  let place: Place
  before(() => (place = createPlace()))
  after(() => place.close())

  /** `Write` may write what ends in `.txt`; `search` is the gate's own. */
  function createWorld() {
    const audit = createTestAudit()
    const witness = createWitness()
    const input = '!input.file_path.endsWith(".txt")'
    const gate = createGate({
      tools: { ...fromClaudeAgent(['Write']), search: { execute: witness.body('search') } },
      policy: { deny: [{ match: 'Write', input, message: 'Texts only.' }] },
      audit,
    })
    return { gate, audit, witness }
  }

  const fileOf = (name: string) => ({ file_path: path.join(place.cwd, name), content: name })
  const write = (name: string, id = 'toolu_1') => use('Write', fileOf(name), id)
  const answering =
    (output: Omit<PreToolUseHookSpecificOutput, 'hookEventName'>): HookCallback =>
    async () => ({ hookSpecificOutput: { hookEventName: 'PreToolUse', ...output } })
  const beforeEach = (hook: HookCallback) => ({ PreToolUse: [{ hooks: [hook] }] })

  it('lets no hook of theirs allow what the gate refuses', async () => {
    const { gate, audit } = createWorld()
    const hooks = beforeEach(answering({ permissionDecision: 'allow' }))
    const { told } = await place.run([[write('a.exe')]], { ...BYPASS, ...(await guard(gate, VIEWER, { hooks })) })
    assert.equal(told.get('toolu_1'), 'PreToolUse:Write hook error: TOOL_CALL_BLOCKED: Texts only.')
    assert.ok(!place.wrote('a.exe'))
    assert.deepEqual(audit.attempts(), ['Write tool_blocked input_denied'])
  })

  it('lets a hook of theirs allow what the harness would ask about, and refuse what the gate allows', async () => {
    const { gate, audit, witness } = createWorld()
    const allow = beforeEach(answering({ permissionDecision: 'allow' }))
    await place.run([[write('b.txt')]], await guard(gate, VIEWER, { hooks: allow }))
    assert.ok(place.wrote('b.txt'))
    const deny = beforeEach(answering({ permissionDecision: 'deny', permissionDecisionReason: 'not today' }))
    const calls = [write('c.txt', 'a'), use('mcp__gate__search', {}, 'b')]
    const { told } = await place.run([calls], { ...BYPASS, ...(await guard(gate, VIEWER, { hooks: deny })) })
    assert.equal(told.get('a'), 'PreToolUse:Write hook error: not today')
    assert.ok(!place.wrote('c.txt'))
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(audit.attempts().slice(2).toSorted(), [
      'Write tool_abandoned tool_aborted',
      'Write tool_call',
      'search tool_blocked hook_denied',
    ])
  })

  it('decides the input that a hook of theirs puts in place', async () => {
    const { gate, audit } = createWorld()
    const run = async (name: string) => {
      const hooks = beforeEach(answering({ permissionDecision: 'allow', updatedInput: fileOf(name) }))
      return place.run([[write('asked.txt')]], { ...BYPASS, ...(await guard(gate, VIEWER, { hooks })) })
    }
    const refused = await run('d.exe')
    assert.equal(refused.told.get('toolu_1'), 'PreToolUse:Write hook error: TOOL_CALL_BLOCKED: Texts only.')
    assert.ok(!place.wrote('d.exe') && !place.wrote('asked.txt'))
    const count = audit.attempts().length
    await run('e.txt')
    assert.ok(place.wrote('e.txt') && !place.wrote('asked.txt'))
    assert.deepEqual(audit.attempts().slice(count).toSorted(), [
      'Write tool_abandoned tool_aborted',
      'Write tool_call',
      'Write tool_call',
      'Write tool_result',
    ])
  })

  it('decides the input that a permission of theirs puts in place', async () => {
    const { gate, audit } = createWorld()
    const run = async (name: string) => {
      const canUseTool = async () => ({ behavior: 'allow', updatedInput: fileOf(name) })
      return place.run([[write('asked.txt')]], await guard(gate, VIEWER, { canUseTool }))
    }
    const refused = await run('f.exe')
    assert.equal(refused.told.get('toolu_1'), 'TOOL_CALL_BLOCKED: Texts only.')
    assert.ok(!place.wrote('f.exe') && !place.wrote('asked.txt'))
    assert.deepEqual(audit.attempts().toSorted(), [
      'Write tool_abandoned tool_aborted',
      'Write tool_blocked input_denied',
      'Write tool_call',
    ])
    await run('g.txt')
    assert.ok(place.wrote('g.txt') && !place.wrote('asked.txt'))
    assert.equal(readFileSync(path.join(place.cwd, 'g.txt'), 'utf8'), 'g.txt')
  })

  it('decides the input that a permission hook of theirs puts in place', async () => {
    const { gate } = createWorld()
    const run = async (name: string) => {
      const decision = { behavior: 'allow' as const, updatedInput: fileOf(name) }
      const hook: HookCallback = async () => ({ hookSpecificOutput: { hookEventName: 'PermissionRequest', decision } })
      const options = await guard(gate, VIEWER, { hooks: { PermissionRequest: [{ hooks: [hook] }] } })
      return place.run([[write('asked.txt')]], options)
    }
    const refused = await run('h.exe')
    assert.match(refused.told.get('toolu_1') ?? '', /TOOL_CALL_BLOCKED: Texts only\./)
    assert.ok(!place.wrote('h.exe') && !place.wrote('asked.txt'))
    await run('i.txt')
    assert.ok(place.wrote('i.txt') && !place.wrote('asked.txt'))
  })

  it('gives no permission of theirs any hold on later calls', async () => {
    const { gate } = createWorld()
    const canUseTool = async (_: string, input: Record<string, unknown>) => ({
      behavior: 'allow',
      updatedInput: input,
      updatedPermissions: [
        { type: 'setMode', mode: 'bypassPermissions', destination: 'session' },
        { type: 'addRules', rules: [{ toolName: 'Write' }], behavior: 'allow', destination: 'session' },
      ],
    })
    const { told } = await place.run(
      [[write('j.txt')], [write('j.exe', 'second')]],
      await guard(gate, VIEWER, { canUseTool }),
    )
    assert.ok(place.wrote('j.txt'))
    assert.match(told.get('second') ?? '', /Texts only/)
    assert.ok(!place.wrote('j.exe'))
  })

  it('asks the gate anew when a person has taken their time', async () => {
    const { gate, audit } = createWorld()
    const canUseTool = async (_: string, input: Record<string, unknown>) => {
      gate.setPolicy({ deny: ['Write'] })
      return { behavior: 'allow', updatedInput: input }
    }
    const { told } = await place.run([[write('k.txt')]], await guard(gate, VIEWER, { canUseTool }))
    assert.equal(told.get('toolu_1'), 'Tool "Write" is not available. Available tools: mcp__gate__search.')
    assert.ok(!place.wrote('k.txt'))
    assert.deepEqual(audit.attempts(), [
      'Write tool_call',
      'Write tool_blocked policy_denied',
      'Write tool_abandoned tool_aborted',
    ])
  })

  it('asks them about tools of the gate too, and records what they refuse', async () => {
    const { gate, audit, witness } = createWorld()
    const asked: string[] = []
    const canUseTool = async (name: string) => {
      asked.push(name)
      return { behavior: 'deny', message: 'I said no.' }
    }
    const { told } = await place.run([[use('mcp__gate__search')]], await guard(gate, VIEWER, { canUseTool }))
    assert.deepEqual(asked, ['mcp__gate__search'])
    assert.equal(told.get('toolu_1'), 'I said no.')
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(audit.attempts(), ['search tool_blocked hook_denied'])
  })

  it('leaves the rest of their hooks as they are', async () => {
    const { gate } = createWorld()
    const heard: string[] = []
    const hear =
      (what: string): HookCallback =>
      async () => {
        heard.push(what)
        return {}
      }
    const hooks = {
      PreToolUse: [
        { matcher: 'Bash', hooks: [hear('before Bash')] },
        { matcher: 'Write', hooks: [hear('before Write')] },
      ],
      PostToolUse: [{ hooks: [hear('after')] }],
      Stop: [{ hooks: [hear('stop')] }],
    }
    await place.run([[write('l.txt')]], { ...BYPASS, ...(await guard(gate, VIEWER, { hooks })) })
    assert.deepEqual(heard, ['before Write', 'after', 'stop'])
  })
})
