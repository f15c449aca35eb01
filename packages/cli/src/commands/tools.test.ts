import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import type { NeedRow } from '@toolgate/gateway'
import { serveScripted } from '../testing/scripted-api.ts'

const PORT: NeedRow = {
  kind: 'tcp',
  what: '127.0.0.1:4444',
  groups: ['web', 'shop'],
  state: 'unavailable',
  reason: 'nothing \u001b[2Jlistens on 127.0.0.1:4444',
  suggestion: 'Start the browser.',
  since: 0,
}
const TOKEN: NeedRow = {
  kind: 'env',
  what: 'the environment variable TOKEN',
  groups: ['web'],
  state: 'available',
  since: 0,
}

describe('toolgate needs', () => {
  let needs: readonly NeedRow[]
  const asked: (string | undefined)[] = []
  const run = serveScripted(({ url = '' }) => {
    asked.push(url)
    const app = new URL(url, 'http://gateway').searchParams.get('app')
    if (app === 'reserch')
      return { status: 404, body: { error: { code: 'app_unknown', message: 'No app is named "reserch".' } } }
    return { body: { ...(app === null ? {} : { app }), needs } }
  })
  beforeEach(() => {
    needs = [PORT, TOKEN]
    asked.length = 0
  })

  it('lists the needs of an app with state, reason and advice, and ends with no while one is missing', async () => {
    const { code, out, err } = await run('needs', 'research')
    assert.deepEqual([code, err, asked], [1, '', ['/api/needs?app=research']])
    assert.equal(
      out,
      `The app research needs 2 things, 1 not available

NEEDS                           STATE        SINCE                     GROUPS     WHY
127.0.0.1:4444                  unavailable  1970-01-01T00:00:00.000Z  web, shop  nothing \\u001b[2Jlistens on 127.0.0.1:4444. Start the browser.
the environment variable TOKEN  available    1970-01-01T00:00:00.000Z  web
`,
    )
  })

  it('answers yes once everything is available, and no while something was not checked yet', async () => {
    needs = [TOKEN]
    const { code, out } = await run('needs')
    assert.deepEqual([code, out.split('\n')[0]], [0, 'The groups need 1 thing, all available'])
    needs = [{ ...TOKEN, state: 'unknown' }]
    assert.equal((await run('needs')).code, 1)
    assert.deepEqual(asked, ['/api/needs', '/api/needs'])
  })

  it('prints that nothing is needed', async () => {
    needs = []
    assert.deepEqual(await run('needs', 'desk'), {
      code: 0,
      out: 'The app desk needs nothing that is checked.\n',
      err: '',
    })
    assert.equal((await run('needs')).out, 'The groups need nothing that is checked.\n')
  })

  it('prints the body for programs, and an unknown app as a usage error', async () => {
    const { code, out } = await run('needs', 'research', '--json')
    assert.equal(code, 1)
    assert.deepEqual(JSON.parse(out), { app: 'research', needs })
    const unknown = await run('needs', 'reserch')
    assert.deepEqual([unknown.code, unknown.err], [2, 'error  No app is named "reserch".\n'])
  })
})
