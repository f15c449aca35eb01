import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parse } from 'yaml'
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

  it('escapes what begins a variable, and what would end a comment', () => {
    assert.deepEqual(parse(text), {
      policy: [{ name: 'suggested', allow: [{ match: ['a:b', 'c:d'], input: 'within(input.path, "/$${x}")' }] }],
    })
    assert.match(text, /^# {3}r\\u000a# x: 30 calls of 1 tool$/m)
    assert.match(text, /^# {5}a:b: the input of 2 calls was not kept as a whole, and may be refused$/m)
    assert.match(text, /match: \[ a:b, c:d \]/)
  })
})
