import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parse } from 'yaml'
import type { Suggestion } from '@toolgate/change'
import { suggestionYaml } from './suggestion-yaml.ts'

describe('suggestionYaml', () => {
  const text = suggestionYaml({
    policy: { name: 'suggested', allow: [{ match: ['a:b', 'c:d'], input: 'within(input.path, "/${x}")' }] },
    roles: [
      {
        roles: ['r\n# x'],
        calls: 30,
        tools: [{ tool: 'a:b', calls: 30, ask: false, input: 'x', unknownInputs: 2 }],
      },
    ],
    learned: 30,
    leftOut: [{ why: 'failed', calls: 1 }],
    missing: 0,
  })

  const few = (learned: number, leftOut: Suggestion['leftOut']) =>
    suggestionYaml({ policy: { name: 'suggested', allow: [] }, roles: [], learned, leftOut, missing: 0 })

  it('begins with why it learned from few calls, and how to label', () => {
    const said = few(3, [
      { why: 'failed', calls: 2 },
      { why: 'untrusted', calls: 95 },
    ])
    assert.match(
      said,
      /^# Learned from 3 of 100 calls\. Most were left out because the run had read something untrusted\.\n# .*\n# .*labels: \{ trusted: .*\n# "toolgate labels.*" proposes them\..*\n\n# Suggested from 3 calls/,
    )
    assert.match(few(1, []), /^# Only 1 call in the audit: let agents work .*\n\n# Suggested/)
    assert.match(few(0, [{ why: 'unknown_caller', calls: 40 }]), /Add these callers to the configuration/)
    assert.match(few(20, [{ why: 'untrusted', calls: 95 }]), /^# Suggested from 20 calls/)
  })

  it('escapes what begins a variable, and what would end a comment', () => {
    assert.deepEqual(parse(text), {
      policy: [{ name: 'suggested', allow: [{ match: ['a:b', 'c:d'], input: 'within(input.path, "/$${x}")' }] }],
    })
    assert.match(text, /^# {3}r\\u000a# x: 30 calls of 1 tool$/m)
    assert.match(text, /^# {5}a:b: the input of 2 calls was not kept as a whole, and may be refused$/m)
    assert.match(text, /match: \[ a:b, c:d \]/)
  })
})
