import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '../gate/gate.ts'
import { lint } from '../gate/lint.ts'
import { defineTool } from '../tools/tool.ts'
import { type LimitInput } from './limits.ts'

const tools = ['search', 'fetch'].map((name) => defineTool({ name, execute: () => 'done' }))
const groups = { web: { tools: ['search', 'fetch'] } }
const coveredIn = (limits: LimitInput) =>
  lint({ tools, groups, limits })
    .filter(({ code }) => code === 'limit_covered')
    .map(({ path }) => path)

describe('a limit that a stricter one covers', () => {
  it('changes nothing, and lint says so', async () => {
    const limits = '*:1/60,search:2/60'
    const [found] = lint({ tools, limits })
    assert.equal(
      found?.text,
      '"search:2/60" changes nothing: limits[0] ("*:1/60") applies too, and is stricter; a limit for some tools is no exception from one for more tools',
    )
    const view = await createGate({ tools, limits, onWarning: () => {} }).view({ user: 'vera' })
    assert.equal((await view.call({ tool: 'search' })).status, 'done')
    assert.equal((await view.call({ tool: 'search' })).status, 'refused')
  })

  it('is warned of once, also by a gate whose rules are replaced', () => {
    const seen: string[] = []
    const gate = createGate({
      tools,
      limits: '*:9/60',
      onWarning: ({ path, code }) => void seen.push(`${code} ${path}`),
    })
    gate.setRules({ tools, limits: ['*:1/60', 'search:2/60'] })
    gate.setRules({ tools, limits: ['*:1/60', 'search:2/60'] })
    assert.deepEqual(seen, ['limit_covered limits[1]'])
  })

  for (const [limits, paths] of [
    ['search:2/60,*:1/60', ['limits[0]']],
    ['*:1/60,group:web:2/60', ['limits[1]']],
    // A minute after a minute allows 60 calls in an hour.
    ['*:1/60,search:60/3600', []],
    ['*:1/60,search:61/3600', ['limits[1]']],
    ['*:5/3600,search:5/60', ['limits[1]']],
    ['search:5/60,search:5/60', []],
    ['*:2/60,search:1/60', []],
    ['search:1/60,fetch:2/60', []],
  ] as const)
    it(`is found in ${limits}: ${paths.join() || 'none'}`, () => assert.deepEqual(coveredIn(limits), paths))

  it('is one that counts at most the same calls together', () => {
    const at = (match: string, max: number, per: ('user' | 'tool' | 'tenant')[]) => ({
      match,
      max,
      windowMs: 1000,
      per,
    })
    assert.deepEqual(coveredIn([at('*', 1, ['tenant']), at('search', 2, ['tenant', 'user'])]), ['limits[1]'])
    assert.deepEqual(coveredIn([at('*', 1, ['tenant', 'user']), at('search', 2, ['tenant'])]), [])
    assert.deepEqual(coveredIn([at('*', 1, ['user', 'tool']), at('search', 2, ['user'])]), ['limits[1]'])
    assert.deepEqual(coveredIn([at('*', 1, ['user', 'tool']), at('group:web', 2, ['user'])]), [])
  })
})
