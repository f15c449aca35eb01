import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryAudit } from '../audit/memory.ts'
import { createGate } from '../gate/gate.ts'
import { redactor } from '@toolgate/values/redact'
import { defineTool } from '../tools/tool.ts'

const SECRET = 'ghp_0123456789abcdefghijklmnopqrstuvwxyz'

function setup() {
  const audit = memoryAudit()
  const lengths: number[] = []
  const watched = {
    ...redactor,
    redactText: (text: string) => {
      lengths.push(text.length)
      return redactor.redactText(text)
    },
  }
  const gate = createGate({ tools: [defineTool({ name: SECRET, execute: () => 'ok' })], audit, redactor: watched })
  return { gate, lengths, names: () => audit.records.map(({ tool }) => tool) }
}

describe('the name of a tool that does not exist', () => {
  it('is recorded without its secrets, whether it came as an id or as a spelling', async () => {
    const { gate, names } = setup()
    const view = await gate.view({})
    await view.call({ tool: `files:${SECRET}` })
    await view.call({ tool: undefined, calledAs: `files__${SECRET}` })
    await view.call({ tool: undefined, calledAs: 'password=hunter2-of-vera', malformed: 'it is not one' })
    for (const name of names()) assert.match(name ?? '', /\[redacted:[a-z-]+\]/)
    assert.doesNotMatch(names().join(), /0123456789|hunter2/)
  })

  it('costs no more than its first characters, and is cut behind a secret, not in it', async () => {
    const { gate, lengths, names } = setup()
    await (await gate.view({})).call({ tool: `${'a '.repeat(115)}${SECRET}${' b'.repeat(100_000)}` })
    assert.deepEqual(lengths, [512])
    assert.equal(names()[0]?.length, 256)
    assert.match(names()[0] ?? '', /\[redacted:github-token\]/)
  })

  it('is looked at no further where the tool exists: that name is its operator’s', async () => {
    const { gate, lengths, names } = setup()
    await (await gate.view({})).call({ tool: SECRET })
    assert.deepEqual([names(), lengths], [[SECRET, SECRET], []])
  })
})

describe('a call that is refused by the name of its tool', () => {
  const unreadable = new Proxy(
    {},
    {
      ownKeys: () => assert.fail('the input was walked'),
      get: () => assert.fail('the input was read'),
    },
  )

  it('leaves one record, and nobody walks, hashes or shows its input', async () => {
    const audit = memoryAudit()
    const ended: unknown[] = []
    const gate = createGate({
      tools: [defineTool({ name: 'hidden', execute: () => 'ok' })],
      policy: { deny: ['hidden'] },
      audit,
      onFault: (fault) => ended.push(fault),
      telemetry: {
        startCall: () => ({ traceId: undefined, within: (work) => work(), end: ({ input }) => ended.push(input) }),
      },
    })
    const view = await gate.view({})
    for (const tool of ['hidden', 'unknown', undefined]) await view.call({ tool, input: unreadable })
    assert.deepEqual(
      audit.records.map(({ event, input_hash, input_preview }) => [event, input_hash, input_preview]),
      [1, 2, 3].map(() => ['tool_blocked', undefined, undefined]),
    )
    assert.deepEqual(ended, [undefined, undefined, undefined])
  })
})
