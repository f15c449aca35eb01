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

describe('toolgate tools --kind, and why about other kinds', () => {
  const URI = 'file:///docs/a b.md'
  const asked: string[] = []
  const run = serveScripted(({ url = '' }) => {
    const { pathname, searchParams } = new URL(url, 'http://gateway')
    asked.push(`${pathname} ${searchParams.get('kind') ?? searchParams.get('tool') ?? ''}`)
    const why = { as: 'vera', kind: 'resource', outcome: 'deny', visible: false, reasons: [], answers: [] }
    return { body: pathname === '/api/why' ? { ...why, tool: searchParams.get('tool') } : RESOURCES }
  })
  beforeEach(() => (asked.length = 0))

  it('lists the items of a kind that a caller sees', async () => {
    const { code, out, err } = await run('tools', '--as', 'vera', '--kind', 'resource')
    assert.deepEqual([code, err, asked], [0, '', ['/api/tools resource']])
    assert.equal(
      out,
      `vera sees 1 of 2 resources

RESOURCE                           ANSWER  TAGS  WHY
resource:files:file:///\\u001b[2Ja  allow

1 resource hidden; --all shows why.
`,
    )
    const json = await run('tools', '--as', 'vera', '--kind', 'resource', '--json')
    assert.deepEqual(JSON.parse(json.out), RESOURCES)
  })

  it('explains a URI, whether or not it is listed', async () => {
    const { code, out } = await run('why', `resource:files:${URI}`, '--as', 'vera')
    assert.deepEqual([code, asked], [1, [`/api/why resource:files:${URI}`]])
    assert.match(out, /^deny {2}vera does not see resource:files:file:\/\/\/docs\/a b\.md\n/)
    const json = await run('why', `resource:files:${URI}`, '--as', 'vera', '--json')
    assert.equal((JSON.parse(json.out) as { kind: string }).kind, 'resource')
  })

  it('needs a caller, and a known kind', async () => {
    const nobody = await run('tools', '--kind', 'prompt')
    assert.equal(nobody.code, 2)
    assert.match(nobody.err, /--kind needs --as or --caller/)
    const unknown = await run('tools', '--as', 'vera', '--kind', 'prompts')
    assert.equal(unknown.code, 2)
    assert.match(unknown.err, /Allowed choices are tool, resource, template, prompt/)
    assert.deepEqual(asked, [])
  })
})

const RESOURCES = {
  as: 'vera',
  policyRevision: 1,
  catalogRevision: 1,
  kind: 'resource',
  tools: [
    {
      id: 'resource:files:file:///\u001b[2Ja',
      kind: 'resource',
      outcome: 'allow',
      visible: true,
      tags: [],
      reasons: [],
    },
    { id: 'resource:files:file:///b', kind: 'resource', outcome: 'deny', visible: false, tags: [], reasons: [] },
  ],
  servers: [],
  groups: [],
}

describe('whose lists are shown', () => {
  const lists = [
    { server: 'mail', user: 'vera', state: 'known' },
    { server: 'chat', user: 'vera', tenant: 'acme', state: 'unknown' },
    { server: 'desk', state: 'no_user' },
    { server: 'bank', state: 'withheld' },
  ] as const
  const run = serveScripted(({ url = '' }) =>
    url.startsWith('/api/why')
      ? {
          body: {
            tool: 'mail:send',
            kind: 'tool',
            as: 'vera',
            outcome: 'allow',
            visible: true,
            reasons: [],
            list: lists[0],
          },
        }
      : {
          body: {
            as: 'vera',
            policyRevision: 1,
            catalogRevision: 1,
            kind: 'tool',
            tools: [],
            servers: [],
            groups: [],
            lists,
          },
        },
  )

  it('is said by "tools --as" and by "why"', async () => {
    assert.equal(
      (await run('tools', '--as', 'vera')).out,
      `vera sees 0 of 0 tools

server mail: the list of vera
server chat has not listed for acme/vera yet; their first request starts it.
server desk lists for each user, and this caller has none.
server bank lists for each user; only approvers and the user see the list.
`,
    )
    assert.match((await run('why', 'mail:send', '--as', 'vera')).out, /\n  server mail: the list of vera\n/)
  })
})
