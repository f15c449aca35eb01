import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { serveScripted } from '../testing/scripted-api.ts'

const READ = { approval: 'a1', atMs: Date.UTC(2026, 10, 23, 14, 3, 12), reader: 'files:read', field: 'input.content' }

describe('toolgate approvals compare', () => {
  let body: object = {}
  const asked: string[] = []
  const run = serveScripted(({ method, url }) => {
    asked.push(`${method} ${url}`)
    return { body }
  })
  beforeEach(() => {
    asked.length = 0
  })

  it('prints what differs with the lines around it, and when it was read', async () => {
    const text = Array.from({ length: 12 }, (_, i) => `line ${i}`)
    body = { ...READ, present: text.join('\n'), proposed: text.with(5, 'new\u001b[2J').join('\n'), masked: true }
    const { code, out } = await run('approvals', 'compare', 'a/1')
    assert.deepEqual([code, asked], [0, ['POST /api/approvals/a%2F1/compare']])
    assert.equal(
      out,
      `As of 2026-11-23T14:03:12.000Z, read with files:read, against input.content. It may change until the call runs. Secrets that are there are masked.
  … 2 equal lines
  line 2
  line 3
  line 4
- line 5
+ new\\u001b[2J
  line 6
  line 7
  line 8
  … 3 equal lines
`,
    )
  })

  it('says that there is no difference', async () => {
    body = { ...READ, present: 'a', proposed: 'a' }
    assert.match((await run('approvals', 'compare', 'a1')).out, /There is no difference\.$/m)
  })

  it('has all lines of texts that are too long to be compared', async () => {
    const long = (word: string) => Array.from({ length: 2500 }, (_, i) => `${word} ${i}`).join('\n')
    body = { ...READ, present: long('old'), proposed: long('new') }
    const { out } = await run('approvals', 'compare', 'a1')
    assert.deepEqual([out.match(/^- old/gm)?.length, out.match(/^\+ new/gm)?.length], [2500, 2500])
  })

  it('says why nothing is shown, and exits with "no"', async () => {
    body = { approval: 'a1', atMs: 0, notShown: 'The input is shown\u001b with parts of it masked.' }
    const { code, out } = await run('approvals', 'compare', 'a1')
    assert.deepEqual([code, out], [1, 'Not shown: The input is shown\\u001b with parts of it masked.\n'])
    assert.deepEqual(JSON.parse((await run('approvals', 'compare', 'a1', '--json')).out), body)
  })
})
