import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '../gate/gate.ts'
import { defineResource, defineTemplate } from '../tools/items.ts'

/** Reads a URI from a server that has every URI and lists some. */
async function read(
  uri: string,
  listed: readonly string[],
  deny: readonly string[] = [],
  sent: unknown[] = [],
  allow = '*',
): Promise<string> {
  const resource = (own: string) =>
    defineResource({ uri: own, namespace: 'n', execute: (input) => (sent.push(input.uri), { contents: [] }) })
  const items = listed.map((one) =>
    one.includes('{') ? defineTemplate({ uriTemplate: one, namespace: 'n' }) : resource(one),
  )
  const source = { name: 'n', namespaces: ['n'], tools: () => items, unlisted: resource }
  const policy = { allow: [`resource:n:${allow}`], deny: deny.map((one) => `resource:n:${one}`) }
  const gate = createGate({ sources: [source], policy, onWarning: () => {} })
  const view = await gate.view({})
  return (await view.call({ tool: `resource:n:${uri}`, input: { uri } })).status
}

describe('a resource that nobody lists', () => {
  it('is not reached by another spelling of a denied resource', async () => {
    for (const [denied, ...others] of [
      ['notes://h/Secret_(x)', 'notes://h/Secret_%28x%29', 'notes://h/Secret_%2528x%2529', 'notes://h//Secret_(x)'],
      ['notes://private/*', 'notes:///private/a', 'notes:/private/a', 'notes://private%2Fa', 'notes:////private/a'],
      ['notes://h/private/*', 'notes://h/private%2Fa', 'notes://h//private/a', 'notes://h/x/..%2Fprivate/a'],
      [
        'https://h/private',
        'https://h/private/',
        'https://h//private',
        'https://h/%2Fprivate',
        'https://h:443/private',
      ],
    ])
      for (const uri of others) assert.equal(await read(uri, ['notes://{+path}'], [denied as string]), 'refused', uri)
  })

  it('keeps the case of an authority that is a name', async () => {
    assert.equal(await read('jira://PROJ-123', ['jira://{key}']), 'done')
    assert.equal(await read('jira://PROJ-123', ['jira://{key}'], ['jira://PROJ-123']), 'refused')
  })

  it('has one host in upper and lower case, which rules in any case name', async () => {
    const sent: unknown[] = []
    assert.equal(await read('HTTPS://HOST/a', ['https://host/{x}'], [], sent), 'done')
    assert.deepEqual(sent, ['https://host/a'])
    for (const denied of ['https://host/a', 'https://HOST/a', 'HTTPS://*.Example.com/*', 'https://Host/*'])
      for (const uri of ['https://host/a', 'https://HOST/a', 'https://Host/%61', 'https://X.example.COM/a'])
        if (denied.includes('*.') === uri.includes('X.'))
          assert.equal(await read(uri, ['https://{+x}'], [denied]), 'refused', `${denied} ${uri}`)
  })

  const table: readonly (readonly [what: string, uri: string, listed: readonly string[], expected: string])[] = [
    ['an empty authority that its server lists', 'memo:///a', ['memo:///{id}'], 'done'],
    ['an empty authority that its server does not list', 'memo:///a', ['memo://{+path}'], 'refused'],
    ['an authority where its server lists empty ones', 'memo://a', ['memo:///{+path}'], 'refused'],
    ['either where its server lists both', 'memo://a/b', ['memo:///{id}', 'memo://h/{id}'], 'done'],
    ['an authority of a scheme that is not listed', 'memo://a', [], 'done'],
    ['a query of a listed resource', 'db://h/a?b=c', ['db://h/a', 'db://h/{+x}'], 'refused'],
    ['a query of a listed resource where a template has some', 'db://h/a?b=c', ['db://h/a', 'db://h/a{?b}'], 'done'],
    ['a query of another resource', 'db://h/x?b=c', ['db://h/a'], 'done'],
    ['the normal form of a listed spelling', 'db://h/a(1)', ['db://h/a%281%29'], 'done'],
    ['the normal form of two listed spellings', 'db://h/a(1)', ['db://h/a%281%29', 'db://h/%61%281%29'], 'refused'],
    ['a listed normal form beside others', 'db://h/%61(1)', ['db://h/a%281)', 'db://h/a(1)', 'db://h/a(1%29'], 'done'],
    ['the normal form of a listed spelling that is more than coded', 'db://h/a(1)', ['db://h/a%281%29/'], 'refused'],
    ['a query of a listed spelling', 'db://h/a(1)?b=c', ['db://h/a%281%29', 'db://h/{+x}'], 'refused'],
    ['a query of a listed spelling that is more than coded', 'db://h/a?b=c', ['db://h/a/', 'db://h/{+x}'], 'refused'],
    ['a listed spelling', 'db://h/a%281%29/', ['db://h/a%281%29/'], 'done'],
  ]
  for (const [what, uri, listed, expected] of table)
    it(`${expected === 'done' ? 'may have' : 'has not'} ${what}`, async () =>
      assert.equal(await read(uri, listed), expected))

  it('is one resource in every spelling that differs by needless coding', async () => {
    for (const [normal, ...others] of [
      ['notes://h/Secret_(x)', 'notes://h/Secret_%28x%29', 'notes://h/%53ecret_(x%29'],
      ['db://h/a@b.de,c:d', 'db://h/a%40b.de%2cc%3Ad'],
      ['db://h/a?b=%2Fc%3Ad%2Ce', 'db://h/a?b=/c:d,e', 'db://h/a?b=%2fc:d%2Ce'],
      ['jira://A(1)', 'jira://A%281%29'],
      ['file:///C:/caf%C3%A9', 'file:///C%3a/caf%c3%a9'],
    ] as const)
      for (const one of [normal, ...others]) {
        const sent: unknown[] = []
        assert.equal(await read(one, [], [], sent), 'done', one)
        assert.deepEqual(sent, [normal], one)
        for (const denied of [normal, ...others, one.replace(/(?:%..|.)$/, '*')])
          assert.equal(await read(one, [], [denied]), 'refused', `${one}, denied as ${denied}`)
        for (const listed of others) {
          const sentAsListed: unknown[] = []
          assert.equal(await read(one, [listed], [], sentAsListed), 'done', one)
          assert.deepEqual(sentAsListed, [listed], one)
          for (const denied of [normal, ...others])
            assert.equal(await read(one, [listed], [denied]), 'refused', `${one}, denied as ${denied}`)
        }
      }
  })

  it('is approved in one spelling for all, and only for this resource', async () => {
    const resource = (uri: string) => defineResource({ uri, namespace: 'n', execute: () => ({ contents: [] }) })
    const source = { name: 'n', namespaces: ['n'], tools: () => [], unlisted: resource }
    const gate = createGate({
      sources: [source],
      policy: { allow: ['resource:*:*'], ask: ['resource:n:*'] },
      onWarning: () => {},
    })
    const view = await gate.view({ user: 'vera' })
    const call = (uri: string) => view.call({ tool: `resource:n:${uri}`, input: { uri } })
    const [first, second] = [await call('db://h/a%28x%29'), await call('db://h/%61(x)')]
    assert.ok(first.status === 'waiting' && second.status === 'waiting')
    assert.equal(first.approval.id, second.approval.id)
    await gate.approvals.decide({ user: 'vera' }, first.approval.id, { decision: 'approve' })
    assert.equal((await call('db://h/a(y)')).status, 'waiting')
    assert.equal((await call('db://h/a(x)')).status, 'done')
    assert.equal((await call('db://h/a(x%29')).status, 'waiting')
  })

  it('is denied with the resource that it is to a server which reads less of it', async () => {
    for (const [denied, ...uris] of [
      ['db://h/a', 'db://h/a?b=c', 'db://h/a;v=1', 'db://u@h/a', 'db://h:5432/a', 'db://u:p@h:5432/a;v?b=c'],
      ['notes://private/*', 'notes://x@private/a', 'notes://private:80/a'],
      ['https://h/private/*', 'https://h/private;a/b', 'https://h/private;/b?c'],
      ['https://h/a?b=c', 'https://h/a;d?b=c'],
    ] as const) {
      for (const uri of uris) {
        assert.equal(await read(uri, ['x://{+y}'], [denied]), 'refused', uri)
        assert.equal(await read(uri, ['x://{+y}']), 'done', uri)
        assert.equal(await read(uri, [uri], [denied]), 'done', `${uri}, which is listed`)
      }
      assert.equal(await read(denied.replace('*', 'x'), [uris[0] as string], uris.slice(0, 1)), 'done')
    }
  })

  it('is allowed as what it is only, in any of its spellings', async () => {
    for (const allow of ['db://h/a(1)', 'db://h/%61%281%29']) {
      for (const uri of ['db://h/a(1)', 'db://h/a%281)']) assert.equal(await read(uri, [], [], [], allow), 'done', uri)
      for (const uri of ['db://h/a(1)?b=c', 'db://u@h/a(1)', 'db://h:80/a(1)', 'db://h/a(1);v', 'db://h/a%2528'])
        assert.equal(await read(uri, [], [], [], allow), 'refused', uri)
    }
  })

  it('is decided as a template that matches its path without the query', async () => {
    const listed = ['db://h/{id}/view', 'db://h/{id}/edit']
    assert.equal(await read('db://h/5/view?x=1', listed, ['db://h/{id}/view']), 'refused')
    assert.equal(await read('db://h/5/edit?x=1', listed, ['db://h/{id}/view']), 'done')
  })
})
