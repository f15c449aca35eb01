import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '../gate/gate.ts'
import { defineTool } from '../tools/tool.ts'
import { limitsFromEnv } from './limits-environment.ts'

const read = (text: string | undefined) =>
  limitsFromEnv({ TOOL_RATE_LIMITS: text }, { groups: { web: { tools: ['web:*'] } } })

describe('limitsFromEnv', () => {
  const taken: readonly (readonly [text: string | undefined, limits: readonly unknown[]])[] = [
    [undefined, []],
    ['', []],
    [' \n', []],
    ['web_search:10/60', ['web_search:10/60']],
    ['web_search:10/60,tracker_search:20/60', ['web_search:10/60', 'tracker_search:20/60']],
    [' web:search:1/1 , group:web:5/3600 , *:100/60 ', ['web:search:1/1', 'group:web:5/3600', '*:100/60']],
    ['[]', []],
    [' ["web_search:10/60"]', ['web_search:10/60']],
    [
      '[{"match":"tag:slow","max":1,"windowMs":500,"per":["user"]},"*:9/9"]',
      [{ match: 'tag:slow', max: 1, windowMs: 500, per: ['user'] }, '*:9/9'],
    ],
  ]
  for (const [text, limits] of taken) {
    it(`reads ${text === undefined ? 'nothing where it is unset' : JSON.stringify(text)}`, () => {
      assert.deepEqual(read(text), limits)
    })
  }

  const refused: readonly (readonly [text: string, path: string, problem: RegExp])[] = [
    ['web_search', 'TOOL_RATE_LIMITS[0]', /"web_search" must read selector:uses\/seconds/],
    ['a:1/1,b:1', 'TOOL_RATE_LIMITS[1]', /"b:1" must read/],
    ['a:1/1,', 'TOOL_RATE_LIMITS[1]', /"" must read/],
    ['a:1/1,,b:1/1', 'TOOL_RATE_LIMITS[1]', /"" must read/],
    ['a:-1/60', 'TOOL_RATE_LIMITS[0]', /must read/],
    ['a:1.5/60', 'TOOL_RATE_LIMITS[0]', /must read/],
    ['a:0/60', 'TOOL_RATE_LIMITS[0]', /0 is not a count/],
    ['a:1/0', 'TOOL_RATE_LIMITS[0]', /window must be/],
    ['group:wbe:1/60', 'TOOL_RATE_LIMITS[0]', /names no group/],
    ['a b:1/60', 'TOOL_RATE_LIMITS[0]', /must not hold spaces/],
    ['[', 'TOOL_RATE_LIMITS', /is no JSON/],
    ['{"web_search":"10/60"}', 'TOOL_RATE_LIMITS', /must be a list of limits/],
    ['[null]', 'TOOL_RATE_LIMITS[0]', /must be a text .* or an object/],
    ['[["a:1/1"]]', 'TOOL_RATE_LIMITS[0]', /must be a text .* or an object/],
    ['["a:1/1", 7]', 'TOOL_RATE_LIMITS[1]', /must be a text .* or an object/],
    ['[{"match":"a","max":1}]', 'TOOL_RATE_LIMITS[0]', /window must be/],
    ['[{"max":1,"windowMs":1}]', 'TOOL_RATE_LIMITS[0]', /must be a string/],
    ['[{"match":"a","max":"1","windowMs":1}]', 'TOOL_RATE_LIMITS[0]', /1 is not a count/],
    ['[{"match":"a","max":1,"windowMs":"1000"}]', 'TOOL_RATE_LIMITS[0]', /window must be/],
    ['[{"match":"a","max":1,"windowMs":1,"window":1}]', 'TOOL_RATE_LIMITS[0].window', /unknown key/],
    ['[{"match":"a","max":1,"windowMs":1,"per":"user"}]', 'TOOL_RATE_LIMITS[0]', /"per" must be a list/],
    ['[{"match":"a","max":1,"windowMs":1,"per":["role"]}]', 'TOOL_RATE_LIMITS[0]', /cannot count per "role"/],
  ]
  for (const [text, path, problem] of refused) {
    it(`refuses ${JSON.stringify(text)}, naming ${path}`, () => {
      assert.throws(() => read(text), { name: 'ConfigError', path, problem })
    })
  }

  it('refuses a variable that it does not know', () => {
    const env = { TOOL_RATE_LIMITS_DM: 'a:1/1' }
    assert.throws(() => limitsFromEnv(env), { path: 'TOOL_RATE_LIMITS_DM', problem: /unknown variable/ })
  })

  it('gives limits as a gate takes them, beside its own', async () => {
    const tools = [defineTool({ name: 'search', execute: () => 'found' })]
    const gate = createGate({ tools, limits: ['*:100/60', ...limitsFromEnv({ TOOL_RATE_LIMITS: 'search:1/60' })] })
    const view = await gate.view({ user: 'vera' })
    assert.equal((await view.call({ tool: 'search' })).text, 'found')
    assert.match((await view.call({ tool: 'search' })).text, /rate limited \(1\/60\)/)
  })
})
